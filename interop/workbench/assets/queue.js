// The review queue: the sessions that a reviewer has not reviewed yet, and the way to the next one.

import { byId, get, pieces, soon } from "./dom.js";
import { rememberReviewer, reviewer } from "./reviews.js";

const parameters = new URLSearchParams(location.search);
parameters.delete("by");
const queue = parameters.toString();
const field = byId("reviewer");

const asked = () => [...parameters, ["by", field.value.trim()]];
const failed = (error) => {
  byId("queue-problem").textContent = error.message;
};

const read = async () => {
  byId("queue-problem").textContent = "";
  if (!field.value.trim()) return;
  const { html, note } = await get("/v1/reviews/queue", asked());
  byId("left").textContent = note;
  byId("queue").replaceChildren(pieces(html));
  for (const link of byId("queue").querySelectorAll("a")) {
    const query = new URLSearchParams(new URL(link.href).search);
    query.set("tab", "review");
    query.set("queue", queue);
    link.href = `/session?${query}`;
  }
};
const readSoon = soon(() => read().catch(failed), 300);

field.value = reviewer();
field.addEventListener("input", readSoon);
byId("queue-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  rememberReviewer(field.value);
  try {
    const { session } = await get("/v1/reviews/next", asked());
    if (session)
      location.assign(`/session?${new URLSearchParams({ id: session, tab: "review", queue })}`);
    else byId("queue-problem").textContent = "You have reviewed all of these sessions.";
  } catch (error) {
    failed(error);
  }
});
read().catch(failed);
