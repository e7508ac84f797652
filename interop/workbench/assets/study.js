// The pages of a study: what is filled in survives a reload, and is sent until the server has it.

import { passes, post } from "./dom.js";
import { Drafts } from "./draft.js";

const FIRST = 500; // milliseconds until what was not sent is sent again; twice as long each time
const LONGEST = 8000;

const said = /** @type {HTMLElement} */ (document.getElementById("said"));
const say = (text) => {
  said.textContent = text;
  said.hidden = !text;
};

/** Sends something until the server has it; false where the server refuses it. */
const sendFor = async (path, body) => {
  for (let wait = FIRST; ; wait = Math.min(wait * 2, LONGEST)) {
    try {
      const answer = await post(path, body, AbortSignal.timeout(60_000));
      return answer.next;
    } catch (error) {
      if (!passes(error.status) && error.status !== 500 && error.name !== "TimeoutError") {
        say(error.message);
        return "";
      }
      say("The server is away. Your answers are kept, and are sent as soon as it is back.");
    }
    await new Promise((done) => setTimeout(done, wait));
  }
};

const ids = () => Object.fromEntries(new URLSearchParams(location.search));

/** What a form sends, by what it does. */
const BODIES = {
  consent: (form, value) => ({ agreed: value === "yes", ids: value === "yes" ? ids() : {} }),
  begin: (form, value) => ({ place: Number(value) }),
  withdraw: () => ({}),
  answers: (form) => ({
    questionnaire: form.dataset.questionnaire,
    place: form.dataset.place ? Number(form.dataset.place) : null,
    answers: answersOf(form),
  }),
};

const answersOf = (form) => {
  const given = new FormData(form);
  const found = {};
  for (const item of form.querySelectorAll("[data-item]")) {
    const value = String(given.get(item.dataset.item) ?? "").trim();
    if (value)
      found[item.dataset.item] = ["scale", "number"].includes(item.dataset.type)
        ? Number(value)
        : value;
  }
  return found;
};

const fill = (form, kept) => {
  for (const [name, value] of Object.entries(kept ?? {})) {
    const field = form.elements.namedItem(name);
    if (field) field.value = String(value);
  }
};

for (const form of document.querySelectorAll("form[data-does]")) {
  const does = form.dataset.does;
  const drafts = new Drafts(
    form.dataset.owner ?? "",
    `${form.dataset.questionnaire ?? ""}:${form.dataset.place ?? ""}`,
  );
  const enable = (on) => {
    for (const button of form.querySelectorAll("button")) button.disabled = !on;
  };
  const count = () => {
    const items = form.querySelectorAll("[data-item]").length;
    const line = form.querySelector("#answered");
    if (line)
      line.textContent = `${Object.keys(answersOf(form)).length} of ${items} answered. You can skip a question.`;
  };
  if (does === "answers") {
    fill(form, drafts.read("answers"));
    form.addEventListener("input", () => {
      drafts.keep("answers", answersOf(form));
      count();
    });
    count();
  }
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const value = /** @type {HTMLButtonElement | null} */ (event.submitter)?.value ?? "";
    enable(false);
    const next = await sendFor(`/v1/study/${does}`, BODIES[does](form, value));
    if (!next) return enable(true);
    drafts.keep("answers", null);
    return location.assign(next === location.pathname ? next + location.search : next);
  });
  enable(true);
}
