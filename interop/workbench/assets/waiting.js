// The list of an empty log: it waits for the first session.

import { follow } from "./stream.js";

const since = Number(document.getElementById("main").dataset.position ?? 0);
follow("/v1/sessions/stream", {}, since, {
  list: ({ rows, reload }) => {
    if (rows.length || reload) location.reload();
  },
});
