// A session: what it came to, its timeline, transcript and output, as they were at one moment, or as they are now.

import { byId, calmly, copy, get, make, pieces, post, soon } from "./dom.js";
import { follow } from "./stream.js";
import { Transcript } from "./transcript.js";
import { Curves } from "./curves.js";
import { Output } from "./output.js";
import { Timeline, rank } from "./timeline.js";
import { showReviews } from "./reviews.js";

const parameters = new URLSearchParams(location.search);
const session = parameters.get("id");
const model = {
  count: 0,
  times: [],
  labels: [], // of each record its trace version; "45.1" is the first measurement after it
  rounds: [],
  drafts: [],
  work: [],
  advice: [],
  failed: [],
  actors: [],
  closed: 0,
  virtual: true,
  at: null,
  found: [],
};

/** The time since the session began. */
const clock = (time) => {
  const whole = Math.floor(time - model.times[0]);
  const parts = [Math.floor(whole / 60) % 60, whole % 60].map((part) =>
    String(part).padStart(2, "0"),
  );
  const hours = Math.floor(whole / 3600);
  return hours ? `${hours}:${parts.join(":")}` : `${Number(parts[0])}:${parts[1]}`;
};
const now = () => model.at ?? model.count;
const labelOf = (number) => model.labels[number - 1];
const lastOf = () => Math.floor(Number(labelOf(model.count)));
const roundAt = (number) => rank(model.rounds, number + 1);

// --- the parts of the page ------------------------------------------------------------------------

const load = async (from, to) => (await get("/v1/session/records", { session, from, to })).html;
const transcript = new Transcript(byId("transcript"), byId("entries"), load, (number) =>
  curves.mark(roundAt(number)),
);
const curves = new Curves(byId("panel-measures"), (round) => {
  const number = model.rounds[round - 1];
  if (!number) return;
  if (number > now()) go(number);
  transcript.reach(number, "start").then(() => curves.mark(round));
});
const output = new Output(byId("panel-output"), session);
const timeline = new Timeline(byId("timeline"), (number) => go(number));

let asking = null;
const readState = async () => {
  asking?.abort();
  asking = new AbortController();
  const moment = model.at;
  try {
    const state = await get("/v1/session/state", { session, at: now() }, asking.signal);
    if (moment !== model.at) return;
    curves.show(state);
    if (moment === null) timeline.measured(state);
    showJumps();
    const asked = state.approvals.length;
    byId("moment").dataset.approvals = asked ? `${asked} waiting for approval` : "";
    say();
  } catch (error) {
    if (error.name !== "AbortError") byId("moment").textContent = error.message;
  }
};
const readStateSoon = soon(readState, 120);
const readStateCalmly = calmly(readState, 120); // while records come, each of which changes it

/** What the whole session came to so far: its strip, and the measures along its timeline. */
const readStrip = async () => {
  const { html } = await get("/v1/session/strip", { session });
  byId("strip").replaceChildren(pieces(html));
  if (model.at === null) return;
  timeline.measured(await get("/v1/session/state", { session, at: model.count }));
  showJumps();
};
const readStripCalmly = calmly(
  () =>
    readStrip().catch((error) => {
      byId("strip").textContent = error.message;
    }),
  300,
);

let aboutAt = -1;
const showAbout = async () => {
  const at = now();
  if (byId("panel-about").hidden || at === aboutAt) return;
  aboutAt = at;
  const { html } = await get("/v1/session/about", { session, at });
  byId("panel-about").replaceChildren(pieces(html));
};
const showAboutSoon = soon(
  () =>
    showAbout().catch((error) => {
      aboutAt = -1; // it is read again when the moment or the tab changes
      byId("panel-about").replaceChildren(make("p", { class: "problem" }, error.message));
    }),
  200,
);

// --- the moment -----------------------------------------------------------------------------------

const say = () => {
  const at = now();
  const round = roundAt(at);
  const time = model.times[at - 1];
  const text = model.count
    ? `record ${labelOf(at)} of ${lastOf()} · round ${round}` +
      ` · ${time === undefined ? "" : clock(time)}`
    : "no records yet";
  const waiting = byId("moment").dataset.approvals;
  byId("moment").textContent = waiting ? `${text} · ${waiting}` : text;
  if (!model.virtual && time !== undefined)
    byId("moment").title = new Date(time * 1000).toLocaleString("sv"); // 2026-05-31 18:05:59
};

let tab = "output";
const address = soon(() => {
  const query = new URLSearchParams(location.search);
  const at = model.at === null ? null : labelOf(model.at);
  const shown = { at, tab: tab === "output" ? null : tab };
  for (const [name, value] of Object.entries(shown)) {
    if (value === null) query.delete(name);
    else query.set(name, String(value));
  }
  history.replaceState(null, "", `?${query}`);
}, 300);

const show = () => {
  const at = now();
  const slider = byId("slider");
  slider.max = String(Math.max(model.count, 1));
  slider.value = String(at);
  const following = model.at === null;
  byId("follow").setAttribute("aria-pressed", String(following));
  document.body.classList.toggle("looking-back", !following);
  const measured = model.labels.filter((label) => label.includes(".")).length;
  byId("records").textContent =
    `${(model.count - measured).toLocaleString("en")} records` +
    (measured ? `, ${measured.toLocaleString("en")} measurements` : "");
  transcript.show(model.at);
  timeline.show(model);
  output.update(following ? [...model.drafts] : model.drafts.filter((draft) => draft.number <= at));
  say();
  showJumps();
  if (following) readStateCalmly();
  else readStateSoon();
  showAboutSoon();
};

/** Whether there is anything to jump to. */
const showJumps = () => {
  const { failed } = model;
  const rated = timeline.state.points.some((point) => point.rating);
  byId("failure-before").hidden = byId("failure-after").hidden = !failed.length;
  byId("failure-before").disabled = !(failed[0] < now());
  byId("failure-after").disabled = !(failed.at(-1) > now());
  byId("lowest").hidden = !rated;
};

/** Takes the whole page to a moment; null for what is going on. */
const go = (at, reach = true) => {
  model.at = at === null ? null : Math.min(Math.max(at, 1), model.count);
  show();
  address();
  if (reach) transcript.reach(now(), "end");
};
const step = (by) => {
  if (by > 0 && model.at === null) return;
  const at = now() + by;
  go(at > model.count ? null : at);
};
const stepRound = (by) => {
  const at = now();
  let round = roundAt(at);
  if (by < 0 && model.rounds[round - 1] !== at) by += 1;
  round = Math.max(round + by, 1);
  go(model.rounds[round - 1] ?? null);
};

/** The last failure before the moment that is shown, or the first one after it. */
const stepFailure = (by) => {
  const place = rank(model.failed, by < 0 ? now() : now() + 1) + (by < 0 ? -1 : 0);
  const number = model.failed[place];
  if (number) go(number);
};
/** The end of the first of the rounds with the lowest rating. */
const goLowest = () => {
  const ratings = timeline.state.points.map((point) => point.rating ?? Infinity);
  const lowest = Math.min(...ratings);
  if (lowest === Infinity) return;
  const next = model.rounds[ratings.indexOf(lowest) + 1];
  go(next ? next - 1 : null);
};
byId("failure-before").addEventListener("click", () => stepFailure(-1));
byId("failure-after").addEventListener("click", () => stepFailure(1));
byId("lowest").addEventListener("click", goLowest);

byId("slider").addEventListener("input", () => go(Number(byId("slider").value)));
byId("first").addEventListener("click", () => go(1));
byId("back").addEventListener("click", () => step(-1));
byId("on").addEventListener("click", () => step(1));
byId("follow").addEventListener("click", () => go(null));

const KEYS = {
  "/": () => byId("find").focus(),
  ArrowLeft: () => step(-1),
  ArrowRight: () => step(1),
  "[": () => stepRound(-1),
  "]": () => stepRound(1),
  Home: () => go(1),
  End: () => go(null),
  f: () => go(null),
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, dialog, [role=tablist]")) return;
  const act = KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

// --- what is clicked on ---------------------------------------------------------------------------

const openTab = (name) => {
  tab = name;
  for (const other of tabs) {
    const mine = nameOf(other) === name;
    other.setAttribute("aria-selected", String(mine));
    other.tabIndex = mine ? 0 : -1;
    byId(other.getAttribute("aria-controls")).hidden = !mine;
  }
  address();
  showAboutSoon();
};
const tabs = [...document.querySelectorAll("[role=tab]")];
const nameOf = (node) => node.id.slice(4);
for (const [place, node] of tabs.entries()) {
  node.addEventListener("click", () => openTab(nameOf(node)));
  node.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    const next = tabs[(place + by + tabs.length) % tabs.length];
    next.focus();
    openTab(nameOf(next));
  });
}
const readReviews = showReviews(session, () => ({ round: roundAt(now()), at: now() }));
const readReviewsCalmly = calmly(readReviews, 500);
const named = parameters.get("tab");
if (tabs.some((node) => nameOf(node) === named)) openTab(named);

byId("main").addEventListener("click", async (event) => {
  const draft = event.target.closest("[data-draft]");
  if (draft) {
    openTab("output");
    output.choose(Number(draft.dataset.draft));
    return;
  }
  const copied = event.target.closest("[data-copy]");
  if (copied) {
    await copy(copied.dataset.copy);
    copied.textContent = "Copied";
    setTimeout(() => {
      copied.textContent = "Copy";
    }, 1500);
    return;
  }
  const number = event.target.closest("a.number");
  if (number && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    const entry = number.closest("article");
    if (event.shiftKey || entry.classList.contains("now")) await showRaw(entry);
    else go(Number(entry.dataset.i), false);
  }
});

/** Shows, or hides again, a record as the log holds it. */
const showRaw = async (entry) => {
  const there = entry.querySelector(":scope > .raw");
  if (there) {
    there.remove();
    return;
  }
  const { html } = await get("/v1/session/raw", { session, at: entry.dataset.i });
  const raw = make("div", { class: "raw" });
  raw.append(pieces(html));
  entry.append(raw);
};

// --- what is found --------------------------------------------------------------------------------

let hits = [];
let hit = -1;
const showHit = () => {
  const more = hits.length === 1000 ? "+" : "";
  byId("found").textContent = hits.length
    ? `${hit + 1} of ${hits.length.toLocaleString("en")}${more}`
    : "";
  if (hit >= 0) {
    if (model.at !== null && hits[hit] > model.at) go(null, false);
    transcript.reach(hits[hit], "start").then(() => transcript.mark(hits[hit]));
  }
};
const find = soon(async () => {
  const text = byId("find").value.trim();
  let found = [];
  try {
    if (text) ({ found } = await get("/v1/session/find", { session, text }));
  } catch (error) {
    byId("found").textContent = error.message;
    return;
  }
  if (byId("find").value.trim() !== text) return;
  hits = found;
  hit = found.length ? 0 : -1;
  model.found = found;
  timeline.show(model);
  showHit();
  if (text && !found.length) byId("found").textContent = "nothing found";
}, 200);
byId("find").addEventListener("input", find);
byId("find").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !hits.length) return;
  event.preventDefault();
  hit = (hit + (event.shiftKey ? -1 : 1) + hits.length) % hits.length;
  showHit();
});

byId("private")?.addEventListener("change", () => {
  document.body.classList.toggle("show-private", byId("private").checked);
});

// --- a fork ---------------------------------------------------------------------------------------

const dialog = byId("fork-dialog");
byId("fork")?.addEventListener("click", () => {
  byId("fork-where").textContent =
    `The fork continues after record ${labelOf(now())}, as a new session. This session does not change.`;
  byId("fork-problem").textContent = "";
  dialog.showModal();
});
byId("fork-cancel")?.addEventListener("click", () => dialog.close());
byId("fork-form")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const given = Object.fromEntries(
    [...new FormData(byId("fork-form"))].filter(([, value]) => String(value).trim()),
  );
  /** @type {Record<string, unknown>} */
  const asked = { session, at: now(), ...given };
  if (given.seed !== undefined) asked.seed = Number(given.seed);
  try {
    const begun = await post("/v1/session/fork", asked);
    location.assign(`/pair?${new URLSearchParams({ left: session, right: begun.session })}`);
  } catch (error) {
    byId("fork-problem").textContent = error.message;
  }
});

// --- records that come ----------------------------------------------------------------------------

const take = (growth) => {
  for (const name of ["times", "rounds", "drafts", "work", "advice", "failed"]) {
    for (const one of growth[name]) model[name].push(one);
  }
  for (const version of growth.versions) {
    const [last, since] = (model.labels.at(-1) ?? "0").split(".");
    model.labels.push(version ? String(version) : `${last}.${Number(since ?? 0) + 1}`);
  }
  model.count = growth.count;
  model.closed = growth.closed;
};
const grown = async (growth) => {
  let news = growth;
  if (growth.count <= model.count) return;
  if (growth.after !== model.count)
    news = await get("/v1/session/index", { session, after: model.count });
  if (news.after !== model.count) return;
  const stay = model.at === null && transcript.atEnd;
  take(news);
  readStripCalmly();
  readReviewsCalmly();
  transcript.grow(model.count);
  show();
  if (stay) transcript.reach(model.count, "end");
};

let queue = Promise.resolve();
const begin = async () => {
  const index = await get("/v1/session/index", { session });
  model.virtual = index.virtual;
  model.actors = index.actors;
  take(index);
  readStripCalmly();
  byId("waiting").hidden = true;
  transcript.grow(model.count);
  const place = model.labels.indexOf(parameters.get("at")) + 1;
  model.at = place || null;
  show();
  if (model.at !== null) await transcript.reach(model.at, "end");
  else if (!model.closed && model.count) await transcript.reach(model.count, "end");
  curves.mark(roundAt(transcript.top()));
  follow("/v1/session/stream", { session }, index.position, {
    grown: (growth) => {
      queue = queue
        .then(() => grown(growth))
        .catch((error) => {
          byId("moment").textContent = error.message; // the next news are asked for from here on
        });
    },
  });
};
begin().catch((error) => {
  byId("waiting").textContent = error.message;
});
