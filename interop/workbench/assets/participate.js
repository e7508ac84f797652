// The page of somebody who takes part. All that it shows comes from the log, by the stream.

import { get, make, passes, pieces, post } from "./dom.js";
import { Drafts } from "./draft.js";
import { Editor } from "./editor.js";
import { observe } from "./effort.js";
import { formOf } from "./forms.js";
import { Outbox } from "./outbox.js";
import { follow } from "./stream.js";

const LOOK = 4000; // milliseconds between looks whether a model is away
const JOIN = 60_000; // milliseconds for taking a seat: a long session has to be made to go on first

const byId = (id) => document.getElementById(id);
const place = byId("together");
const who = { session: place.dataset.session, actor: place.dataset.actor };
const drafts = new Drafts(who.session, who.actor);
const trouble = byId("trouble");
const say = (text) => {
  trouble.textContent = text;
  trouble.hidden = !text;
};
const queues = new Drafts(who.session, who.actor, [globalThis.localStorage]);
const outbox = new Outbox(queues, () => who, say);
const editor = new Editor(who, drafts, outbox);
const entries = byId("entries");
const approvals = byId("approvals");
const message = byId("message");
let closed = null;

const did = (act) => outbox.send(act).catch((error) => say(error.message));

const WORK = new Set(["ActionTaken", "ActionResolved"]);

/** The fold of what an agent does between two messages: it shows that it works, and not all of it. */
const workOf = (entry) => {
  let fold = entries.lastElementChild;
  if (!fold?.classList.contains("work")) {
    fold = make("details", { class: "work" }, make("summary"));
    fold.dataset.steps = "0";
    fold.dataset.since = String(entry.time);
    entries.append(fold);
  }
  const steps = Number(fold.dataset.steps) + (entry.kind === "ActionTaken" ? 1 : 0);
  fold.dataset.steps = String(steps);
  const seconds = Math.round(entry.time - Number(fold.dataset.since));
  const who = entry.role === "environment" ? "The agent" : `The ${entry.actor}`;
  fold.firstElementChild.textContent = `${who} did ${steps} thing${steps === 1 ? "" : "s"}${seconds ? ` in ${seconds} seconds` : ""}`;
  return fold;
};

/** What they have to know is always in sight. */
const brief = (html) => byId("brief-text").append(pieces(html));

// --- what happens ---------------------------------------------------------------------------------

const show = (entry) => {
  if (!entry.html) return;
  const atEnd = entries.scrollHeight - entries.scrollTop - entries.clientHeight < 60;
  const item = make("article", {
    class: `said ${entry.role}${entry.mine ? " mine" : ""} ${entry.kind}`,
  });
  item.dataset.version = entry.version;
  item.append(make("span", { class: "who" }, entry.mine ? "you" : entry.actor), pieces(entry.html));
  const works = !entry.mine && WORK.has(entry.kind) && !entry.failed;
  (works ? workOf(entry) : entries).append(item);
  if (atEnd) entries.scrollTop = entries.scrollHeight;
};

const ask = (entry) => {
  const why = make("input", {
    type: "text",
    "aria-label": "Comment",
    placeholder: "Comment (optional)",
  });
  const answer = (approved) => () => {
    for (const button of card.querySelectorAll("button")) button.disabled = true;
    did({ act: "approve", asked: entry.version, approved, comment: why.value });
  };
  const card = make("div", {
    class: "approval",
    role: "group",
    "aria-label": "An approval is asked for",
  });
  card.dataset.asked = entry.version;
  card.append(
    make("span", { class: "who" }, entry.actor),
    pieces(entry.html),
    why,
    make(
      "p",
      { class: "tools" },
      make("button", { type: "button", onclick: answer(true) }, "Approve"),
      make("button", { type: "button", onclick: answer(false) }, "Refuse"),
    ),
  );
  approvals.append(card);
};

const end = (reason) => {
  closed = reason;
  byId("onward").hidden = false;
  byId("ending").hidden = true;
  byId("time").textContent = "";
  editor.close();
  approvals.replaceChildren();
  for (const control of document.querySelectorAll(
    "#composer *, #acting *, #rating *, .stops *, .foot button, .foot input",
  )) {
    control.toggleAttribute("disabled", true);
  }
};

const markRating = (rating) => {
  for (const button of document.querySelectorAll("[data-rating]")) {
    button.setAttribute("aria-pressed", String(Number(button.dataset.rating) === rating));
  }
};

const took = (entry) => {
  if (entry.brief) brief(entry.brief);
  if (entry.kind === "SnapshotTaken")
    editor.arrived(entry.version, entry.mine ? "you" : entry.actor);
  if (entry.kind === "ApprovalAsked" && !entry.mine) ask(entry);
  else show(entry);
  if (entry.kind === "ApprovalGiven") {
    approvals.querySelector(`[data-asked="${entry.asked}"]`)?.remove();
  }
  if (entry.rating !== undefined && entry.mine) markRating(entry.rating);
  else if (entry.role === "agent") markRating(null); // it is about another round now
  if (entry.closed) end(entry.closed);
};

// --- what they do ---------------------------------------------------------------------------------

const submitMessage = () => {
  const text = message.value.trim();
  if (!text || closed) return;
  message.value = "";
  drafts.keep("message", null);
  outbox.send({ act: "say", text }).catch((error) => {
    say(error.message);
    if (!message.value) message.value = text; // refused: they have it again
    drafts.keep("message", message.value);
  });
};

message.value = drafts.read("message") ?? "";
message.addEventListener("input", () => drafts.keep("message", message.value || null));
message.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    submitMessage();
  }
});
byId("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  submitMessage();
});

byId("rating").addEventListener("click", (event) => {
  const rating = Number(event.target.dataset?.rating);
  if (rating) did({ act: "rate", rating });
});

let ending = null; // the button that asks to end the session
for (const button of document.querySelectorAll("[data-end]")) {
  button.addEventListener("click", () => {
    ending = button;
    byId("ending").hidden = false;
    byId("why").focus();
  });
}
byId("end-not").addEventListener("click", () => {
  byId("ending").hidden = true;
  ending.focus();
});
const endNow = () => did({ act: "stop", reason: ending.dataset.end, detail: byId("why").value });
byId("end-now").addEventListener("click", endNow);
byId("why").addEventListener("keydown", (event) => {
  if (event.key === "Enter") endNow();
});

const offerActions = (actions) => {
  const choice = byId("action");
  const help = byId("action-help");
  choice.replaceChildren(...actions.map((one) => make("option", { value: one.name }, one.name)));
  byId("actions").hidden = !actions.length;
  let form = formOf(null);
  const explain = () => {
    const found = actions.find((one) => one.name === choice.value);
    help.textContent = found?.description ?? "";
    form = formOf(found?.parameters);
    byId("fields").replaceChildren(form.node);
  };
  choice.addEventListener("change", explain);
  explain();
  byId("acting").addEventListener("submit", (event) => {
    event.preventDefault();
    did({ act: "do", name: choice.value, arguments: form.read() });
  });
};

// --- tabs on a phone, and the time ----------------------------------------------------------------

const tabs = document.querySelectorAll("[data-tab]");
const choose = (name) => {
  place.dataset.shown = name;
  for (const tab of tabs) tab.setAttribute("aria-pressed", String(tab.dataset.tab === name));
};
for (const tab of tabs) tab.addEventListener("click", () => choose(tab.dataset.tab));
choose("talk");
editor.pending = (count) => {
  document.querySelector("[data-tab=output] .badge").textContent = count ? ` ${count}` : "";
};

const tick = () => {
  const left = Math.max(0, Number(place.dataset.until) - Date.now() / 1000);
  const minutes = Math.floor(left / 60);
  byId("time").textContent = closed
    ? ""
    : left
      ? `${minutes}:${String(Math.floor(left % 60)).padStart(2, "0")} left`
      : "Time is up";
  byId("time").classList.toggle("warn", left < 120);
};
if (place.dataset.until) {
  tick();
  setInterval(tick, 1000);
}

// --- the beginning --------------------------------------------------------------------------------

const join = async () => {
  for (let wait = 500; ; wait = Math.min(wait * 2, 8000)) {
    try {
      const seat = await post("/v1/participate/join", who, AbortSignal.timeout(JOIN));
      offerActions(seat.actions);
      return;
    } catch (error) {
      if (!passes(error.status) && error.status !== 500) {
        say(error.message);
        return;
      }
      await new Promise((done) => setTimeout(done, wait));
    }
  }
};

let looking = false;
const look = async () => {
  if (closed || document.hidden || looking) return;
  looking = true;
  try {
    const state = await get("/v1/participate/state", who);
    if (state.trouble)
      say(`A model cannot be asked: ${state.trouble} It is asked again when you do something.`);
  } catch (error) {
    if (!passes(error.status)) say(error.message); // else the stream says that the server is away
  } finally {
    looking = false;
  }
};

follow("/v1/participate/stream", new URLSearchParams(who), 0, { entry: took }, (live) =>
  outbox.stands(live),
);
join();
outbox.run();
setInterval(look, LOOK);
observe(byId("effort"), drafts, (report) => post("/v1/participate/effort", { ...who, ...report }));
