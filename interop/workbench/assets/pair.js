// Two sessions side by side: the records of a round are loaded when it comes into sight.

import { get, make, pieces, soon } from "./dom.js";
import { follow } from "./stream.js";
import { hideJoined } from "./transcript.js";

const SIZE = 40; // records in one request
const PAUSE = 3000; // milliseconds until a page of a session that goes on is read again

const fill = async (cell) => {
  const { session, from, to } = cell.dataset;
  for (let first = Number(from); first <= Number(to); first += SIZE) {
    const last = Math.min(first + SIZE - 1, Number(to));
    const { html } = await get("/v1/session/records", { session, from: first, to: last });
    cell.append(pieces(html));
  }
  hideJoined(cell);
  for (const heading of cell.querySelectorAll("h2")) heading.remove(); // the round has one already
};

const observer = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      observer.unobserve(target);
      fill(target).catch((error) => target.append(make("p", { class: "problem" }, error.message)));
    }
  },
  { rootMargin: "600px 0px" },
);

for (const cell of document.querySelectorAll(".cell[data-session]")) observer.observe(cell);

const again = soon(() => location.reload(), PAUSE);
for (const side of document.querySelectorAll("[data-open]")) {
  const { open, position } = side.dataset;
  follow("/v1/session/stream", { session: open }, Number(position), { grown: again });
}
