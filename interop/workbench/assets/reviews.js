// Reviews of a session: what stands, the form that adds to it, and the way through a queue.

import { byId, get, make, pieces, post } from "./dom.js";

const NAME = "duolog-reviewer";
const TAGS = "duolog-tags";

/** The name of the reviewer, as this browser knows it. */
export const reviewer = () => localStorage.getItem(NAME) ?? "";
export const rememberReviewer = (name) => localStorage.setItem(NAME, name.trim());

/** Tags that were given in this browser, the latest first. */
export const knownTags = () => JSON.parse(localStorage.getItem(TAGS) ?? "[]");
export const rememberTags = (tags) => {
  const all = [...new Set([...tags, ...knownTags()])].slice(0, 50);
  localStorage.setItem(TAGS, JSON.stringify(all));
};
export const tagsIn = (text) => text.split(/[\s,]+/).filter(Boolean);

/** Shows the reviews of a session in its panel; `subject` gives the round and record that are shown. */
export const showReviews = (session, subject) => {
  const form = byId("review-form");
  const parameters = new URLSearchParams(location.search);
  const queue = parameters.get("queue");

  const read = async () => {
    const { html } = await get("/v1/reviews", { session });
    byId("reviews").replaceChildren(pieces(html));
    for (const away of byId("reviews").querySelectorAll("[data-untag]")) {
      away.hidden = !form || away.dataset.by !== form.elements.by.value.trim();
    }
  };
  const failed = (error) => {
    if (form) byId("review-problem").textContent = error.message;
    else byId("reviews").textContent = error.message;
  };
  const next = async () => {
    if (!form || queue === null || !reviewer()) return;
    const found = await get("/v1/reviews/next", [
      ...new URLSearchParams(queue),
      ["by", reviewer()],
      ["here", session],
    ]);
    const link = byId("review-next");
    link.hidden = false;
    link.textContent = found.session
      ? `Next in the queue (${found.left} left)`
      : "The queue is empty";
    link.href = found.session
      ? `/session?${new URLSearchParams({ id: found.session, tab: "review", queue })}`
      : `/review?${queue}`;
  };
  const send = async (review) => {
    byId("review-problem").textContent = "";
    await post("/v1/reviews/add", {
      sessions: [session],
      by: form.elements.by.value.trim(),
      review,
    });
    await read();
    await next();
  };
  const about = async () => {
    const { round, at } = subject();
    const chosen = form.elements.about.value;
    if (chosen === "round") return { round };
    return chosen === "record"
      ? { of: (await get("/v1/session/about", { session, at })).version }
      : {};
  };

  if (form) {
    form.elements.by.value = reviewer();
    byId("known-tags").replaceChildren(...knownTags().map((tag) => make("option", { value: tag })));
    form.elements.by.addEventListener("change", () => {
      rememberReviewer(form.elements.by.value);
      read().then(next).catch(failed);
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      rememberReviewer(form.elements.by.value);
      const tags = tagsIn(form.elements.tags.value);
      const rating = form.elements.rating.value;
      rememberTags(tags);
      about()
        .then((what) =>
          send({
            tags,
            comment: form.elements.comment.value,
            ...(rating && { rating: Number(rating) }),
            ...what,
          }),
        )
        .then(() => {
          for (const name of ["tags", "comment"]) form.elements[name].value = "";
          for (const box of form.elements.rating) box.checked = false;
          byId("review-said").textContent = "added";
        })
        .catch(failed);
    });
    byId("reviews").addEventListener("click", ({ target }) => {
      const { untag, round, of } = target.dataset;
      if (untag === undefined) return;
      send({
        removed: [untag],
        ...(round && { round: Number(round) }),
        ...(of && { of: Number(of) }),
      }).catch(failed);
    });
  }
  document.addEventListener("keydown", (event) => {
    if (event.key !== "n" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (
      event.target.closest("input, textarea, select, dialog") ||
      !form ||
      byId("review-next").hidden
    )
      return;
    byId("review-next").click();
  });
  read().then(next).catch(failed);
  return () => read().catch(failed);
};
