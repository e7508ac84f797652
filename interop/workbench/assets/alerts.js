// What alert rules have fired for: each time, and what their webhook answered.

import { pieces } from "./dom.js";
import { changeRows } from "./rows.js";
import { follow } from "./stream.js";

const body = document.getElementById("rows");

const show = (change) => {
  document.getElementById("count").textContent = change.note;
  document.getElementById("rules").replaceChildren(pieces(change.rules));
  changeRows(body, change);
  const after = document.getElementById("after");
  if (change.next) after.href = change.next;
  after.hidden = !change.next;
};

if (body) follow("/v1/alerts/stream", new URLSearchParams(location.search), 0, { alerts: show });
