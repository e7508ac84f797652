// What goes on: open sessions, those first whose human is about to give up.

import { changeRows } from "./rows.js";
import { follow } from "./stream.js";

const body = document.getElementById("rows");

const show = (change) => {
  document.getElementById("count").textContent = change.note;
  changeRows(body, change);
};

if (body) follow("/v1/live/stream", {}, 0, { live: show });
