// The command palette: pages, sessions and actions by their names, by Ctrl K or Cmd K.

import { get, make } from "./dom.js";

const PAUSE = 120; // milliseconds after a key until sessions are looked for
const PAGES = "header nav a, .list-head a";
const ACTIONS =
  "header button, header summary, header .menu a, main button, main summary, main input[type=search]";
const LEFT_OUT = "#show-palette, dialog, table, .entry, .filters .chip, [hidden]";

const dialog = document.getElementById("palette");
const field = document.getElementById("palette-field");
const list = document.getElementById("palette-list");

let items = []; // what the page has
let found = []; // what is listed
let at = 0;
let asking = new AbortController();
let timer = null;

const nameOf = (node) =>
  (node.getAttribute("aria-label") ?? node.textContent).replaceAll(/\s+/g, " ").trim();

/** The pages, and what can be done on this one. */
const gather = () => {
  const there = (node) => node.checkVisibility() && !node.disabled && !node.closest(LEFT_OUT);
  const of = (selector, kind) =>
    [...document.querySelectorAll(selector)]
      .filter(there)
      .map((node) => ({
        name: nameOf(node),
        kind,
        run: () => {
          node.focus();
          node.click();
        },
      }))
      .filter(({ name }) => /\p{L}/u.test(name));
  return [...of(PAGES, "page"), ...of(ACTIONS, "action")];
};

const mark = () => {
  [...list.children].forEach((node, place) =>
    node.setAttribute("aria-selected", String(place === at)),
  );
  const chosen = list.children[at];
  chosen?.scrollIntoView({ block: "nearest" });
  field.setAttribute("aria-activedescendant", chosen?.id ?? "");
};

const show = (sessions = []) => {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  const meets = ({ name }) => words.every((word) => name.toLowerCase().includes(word));
  found = [...items.filter(meets), ...sessions];
  at = 0;
  list.replaceChildren(
    ...found.map(({ name, kind, title = name }, place) =>
      make(
        "li",
        { role: "option", id: `palette-${place}`, title, onclick: () => run(place) },
        make("bdi", {}, name),
        " ",
        make("small", {}, kind),
      ),
    ),
  );
  if (!found.length) list.append(make("li", { class: "quiet" }, "Nothing is called that."));
  mark();
};

const run = (place) => {
  const chosen = found[place];
  if (!chosen) return;
  dialog.close();
  chosen.run();
};

/** Sessions whose ids or titles begin like this. */
const search = async (begin) => {
  asking.abort();
  asking = new AbortController();
  try {
    const { sessions } = await get("/v1/sessions/named", { begin }, asking.signal);
    show(
      sessions.map(({ name, id, to }) => ({
        name,
        title: id,
        kind: "session",
        run: () => location.assign(to),
      })),
    );
  } catch (error) {
    if (error.name !== "AbortError")
      show([{ name: error.message, kind: "sessions", run: () => {} }]);
  }
};

const open = () => {
  items = gather();
  field.value = "";
  show();
  dialog.showModal();
};

field.addEventListener("input", () => {
  clearTimeout(timer);
  show();
  const begin = field.value.trim();
  if (begin) timer = setTimeout(() => search(begin), PAUSE);
});
field.addEventListener("keydown", (event) => {
  const steps = { ArrowDown: 1, ArrowUp: -1 };
  if (event.key in steps && found.length) {
    event.preventDefault();
    at = (at + steps[event.key] + found.length) % found.length;
    mark();
  } else if (event.key === "Enter") {
    event.preventDefault();
    run(at);
  }
});
dialog.addEventListener("click", ({ target }) => {
  if (target === dialog) dialog.close(); // beside the box
});
dialog.addEventListener("close", () => {
  clearTimeout(timer);
  asking.abort();
});
document.addEventListener("keydown", (event) => {
  if (
    event.key.toLowerCase() !== "k" ||
    !(event.ctrlKey || event.metaKey) ||
    event.altKey ||
    event.shiftKey
  )
    return;
  event.preventDefault();
  if (dialog.open) return dialog.close();
  if (!document.querySelector("dialog[open]")) open();
});
document.getElementById("show-palette").addEventListener("click", open);
