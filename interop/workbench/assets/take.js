// The page of somebody who takes part. All that it shows comes from the log, by the stream.

import { get, make, passes, pieces, post } from "./dom.js";
import { Drafts } from "./draft.js";
import { Editor } from "./editor.js";
import { observe } from "./effort.js";
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

// --- what happens ---------------------------------------------------------------------------------

const show = (entry) => {
  const atEnd = entries.scrollHeight - entries.scrollTop - entries.clientHeight < 60;
  const item = make("article", { class: `said ${entry.role}${entry.mine ? " mine" : ""} ${entry.kind}` });
  item.dataset.version = entry.version;
  item.append(make("span", { class: "who" }, entry.mine ? "you" : entry.actor), pieces(entry.html));
  entries.append(item);
  if (atEnd) entries.scrollTop = entries.scrollHeight;
};

const ask = (entry) => {
  const why = make("input", { type: "text", "aria-label": "Comment", placeholder: "Comment (optional)" });
  const answer = (approved) => () => {
    for (const button of card.querySelectorAll("button")) button.disabled = true;
    did({ act: "approve", asked: entry.version, approved, comment: why.value });
  };
  const card = make("div", { class: "approval", role: "group", "aria-label": "An approval is asked for" });
  card.dataset.asked = entry.version;
  card.append(
    make("span", { class: "who" }, entry.actor),
    pieces(entry.html),
    why,
    make("p", { class: "tools" },
      make("button", { type: "button", onclick: answer(true) }, "Approve"),
      make("button", { type: "button", onclick: answer(false) }, "Refuse")),
  );
  approvals.append(card);
};

const end = (reason) => {
  closed = reason;
  editor.close();
  approvals.replaceChildren();
  for (const control of document.querySelectorAll("#composer *, #acting *, #rating *, .foot button, .foot input")) {
    control.disabled = true;
  }
};

const markRating = (rating) => {
  for (const button of document.querySelectorAll("[data-rating]")) {
    button.setAttribute("aria-pressed", String(Number(button.dataset.rating) === rating));
  }
};

const took = (entry) => {
  if (entry.kind === "SnapshotTaken") editor.arrived(entry.version, entry.mine ? "you" : entry.actor);
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
  const explain = () => {
    const found = actions.find((one) => one.name === choice.value);
    help.textContent = found?.description ?? "";
    const names = Object.keys(found?.parameters?.properties ?? {});
    byId("arguments").value = JSON.stringify(Object.fromEntries(names.map((name) => [name, ""])), null, 1);
  };
  choice.addEventListener("change", explain);
  explain();
  byId("acting").addEventListener("submit", (event) => {
    event.preventDefault();
    try {
      did({ act: "do", name: choice.value, arguments: JSON.parse(byId("arguments").value || "{}") });
    } catch (error) {
      say(`the arguments are no JSON: ${error.message}`);
    }
  });
};

// --- the beginning --------------------------------------------------------------------------------

const join = async () => {
  for (let wait = 500; ; wait = Math.min(wait * 2, 8000)) {
    try {
      const seat = await post("/v1/take/join", who, AbortSignal.timeout(JOIN));
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
    const state = await get("/v1/take/state", who);
    if (state.trouble) say(`A model cannot be asked: ${state.trouble} It is asked again when you do something.`);
  } catch { /* the stream says that the server is away */ } finally {
    looking = false;
  }
};

follow("/v1/take/stream", new URLSearchParams(who), 0, { entry: took }, (live) => outbox.stands(live));
join();
outbox.run();
setInterval(look, LOOK);
observe(byId("effort"), drafts, (report) => post("/v1/take/effort", { ...who, ...report }));
