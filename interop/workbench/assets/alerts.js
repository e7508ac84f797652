// What alert rules have fired for: each time, and what their webhook answered; and the form for rules.

import { pieces, post } from "./dom.js";
import { changeRows } from "./rows.js";
import { follow } from "./stream.js";

const body = document.getElementById("rows");
const form = document.getElementById("rule-form");

const show = (change) => {
  document.getElementById("count").textContent = change.note;
  document.getElementById("rules").replaceChildren(pieces(change.rules));
  changeRows(body, change);
  const after = document.getElementById("after");
  if (change.next) after.href = change.next;
  after.hidden = !change.next;
};

/** Changes the rules, and shows the page with them, from its beginning. */
const change = async (path, rule) => {
  try {
    await post(path, { rule });
    location.assign("/alerts");
  } catch (error) {
    document.getElementById("rule-problem").textContent = error.message;
  }
};

form?.addEventListener("submit", (event) => {
  event.preventDefault();
  change("/v1/alerts/add", form.elements.rule.value);
});
document.getElementById("rules")?.addEventListener("click", ({ target }) => {
  if (target.dataset.remove !== undefined) change("/v1/alerts/remove", target.dataset.remove);
});
if (body) follow("/v1/alerts/stream", new URLSearchParams(location.search), 0, { alerts: show });
