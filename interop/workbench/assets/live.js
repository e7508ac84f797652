// What goes on: open sessions, those first whose human is about to give up; and alerts.

import { pieces } from "./dom.js";
import { follow } from "./stream.js";

const body = document.getElementById("rows");
const key = (row) => JSON.parse(row.dataset.key);

/** Above 0 where a row with key b comes first: the greatest numbers do. */
export const urgency = (a, b) => {
  for (let index = 0; index < a.length; index += 1) {
    if (a[index] !== b[index]) return b[index] - a[index];
  }
  return 0;
};

const rowOf = (session) => body.querySelector(`tr[data-session="${CSS.escape(session)}"]`);

const show = ({ rows, gone, note, alerts }) => {
  document.getElementById("count").textContent = note;
  for (const session of gone) rowOf(session)?.remove();
  for (const [session, html] of Object.entries(rows)) {
    const [fresh] = pieces(html).children;
    const old = rowOf(session);
    const held = old?.contains(document.activeElement);
    old?.remove();
    const next = [...body.rows].find((row) => urgency(key(row), key(fresh)) > 0);
    if (!old) fresh.classList.add("new");
    body.insertBefore(fresh, next ?? null);
    if (held) fresh.querySelector("a").focus();
  }
  const host = document.getElementById("alerts");
  if (host && alerts !== undefined) host.replaceChildren(pieces(alerts));
};

if (body) follow("/v1/live/stream", {}, 0, { live: show });
