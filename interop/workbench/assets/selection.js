// The sessions that are selected in the list: they are tagged together.

import { byId, make, post } from "./dom.js";
import { knownTags, rememberReviewer, rememberTags, reviewer, tagsIn } from "./reviews.js";

/** Makes the dialog tag the sessions that `selected` gives. */
export const tagSelected = (selected) => {
  const form = byId("tag-form");
  if (!form) return;
  const dialog = byId("tag-dialog");
  byId("tag-selected").addEventListener("click", () => {
    form.elements.by.value = reviewer();
    byId("known-tags").replaceChildren(...knownTags().map((tag) => make("option", { value: tag })));
    byId("tag-problem").textContent = "";
    dialog.showModal();
  });
  byId("tag-cancel").addEventListener("click", () => dialog.close());
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const tags = tagsIn(form.elements.tags.value);
    rememberReviewer(form.elements.by.value);
    rememberTags(tags);
    try {
      const body = { sessions: selected(), by: form.elements.by.value.trim(), review: { tags } };
      const { failed } = await post("/v1/reviews/add", body);
      const [why] = Object.values(failed);
      if (why) byId("tag-problem").textContent = why;
      else dialog.close();
    } catch (error) {
      byId("tag-problem").textContent = error.message;
    }
  });
};
