// The list of sessions: rows with what was measured, rows that change while one looks, filters.

import { calmly, get, getPage, make, pieces, soon } from "./dom.js";
import { follow } from "./stream.js";
import { compareKeys } from "./order.js";
import { tagSelected } from "./selection.js";

const AT_ONCE = 50;
const form = document.getElementById("filters");
const parameters = () => new URLSearchParams(form.dataset.query); // without what makes no sense
const paged = parameters().has("after") || parameters().has("before");

let body = document.getElementById("rows");
let measuring = false;
const wanted = new Map(); // session to the key of the row that is to be there, null for as it is

const rowOf = (session) => body.querySelector(`tr[data-session="${CSS.escape(session)}"]`);
const keyOf = (row) => JSON.parse(row.dataset.key ?? "null");
const descending = () => body.closest("table").hasAttribute("data-descending");

/** Puts a row where its key says, or in the place of the one that was there. */
const place = (row, key) => {
  const rows = [...body.rows].filter((other) => other !== row);
  const next = rows.find((other) => {
    const theirs = keyOf(other);
    return theirs !== null && compareKeys(key, theirs, descending()) < 0;
  });
  const focused = document.activeElement === document.body ? null : document.activeElement;
  body.insertBefore(row, next ?? null);
  if (focused instanceof HTMLElement && row.contains(focused)) focused.focus();
};

const take = (session, html) => {
  const [fresh] = pieces(html).children;
  const old = rowOf(session);
  const key = keyOf(fresh);
  if (old) {
    const held = old.contains(document.activeElement) ? document.activeElement.tagName : null;
    const moved = old.dataset.key !== fresh.dataset.key;
    old.replaceWith(fresh);
    if (held) fresh.querySelector("a")?.focus();
    if (!moved) return;
  } else {
    fresh.classList.add("new");
  }
  if (key !== null) place(fresh, key);
};

const measure = async () => {
  if (measuring) return;
  measuring = true;
  try {
    const all = [...wanted.keys()];
    for (let start = 0; start < all.length; start += AT_ONCE) {
      const sessions = all.slice(start, start + AT_ONCE);
      for (const session of sessions) wanted.delete(session);
      const query = [...parameters(), ...sessions.map((session) => ["of", session])];
      const { rows } = await get("/v1/sessions/rows", query);
      for (const [session, html] of Object.entries(rows)) take(session, html);
      showChosen();
      trim();
    }
  } finally {
    measuring = false;
    if (wanted.size) measureSoon();
  }
};
const measureSoon = calmly(measure, 150); // while rows change all the time

const size = AT_ONCE;
const trim = () => {
  while (body.rows.length > size) body.rows[body.rows.length - 1].remove();
};

/** Says of a key whether a row with it would stand on this page, as it is now. */
const fitting = () => {
  const keys = [...body.rows].map(keyOf).filter((found) => found !== null);
  const full = body.rows.length >= size;
  const down = descending();
  return (key) => {
    if (!keys.length) return !paged;
    if (paged && compareKeys(key, keys[0], down) < 0) return false;
    return !full || compareKeys(key, keys[keys.length - 1], down) < 0;
  };
};

// Sessions that are selected stay so while their rows change, come and go.
const chosen = new Set();
const table = body.closest("table");
const showChosen = () => {
  for (const row of body.rows) {
    const on = chosen.has(row.dataset.session);
    row.classList.toggle("on", on);
    row.querySelector("input").checked = on;
  }
  const every = document.getElementById("every");
  const shown = [...body.rows].filter((row) => chosen.has(row.dataset.session)).length;
  every.checked = shown > 0 && shown === body.rows.length;
  every.indeterminate = shown > 0 && !every.checked;
  document.getElementById("selection").hidden = !chosen.size;
  document.getElementById("selected").textContent = `${chosen.size.toLocaleString("en")} selected`;
  const query = new URLSearchParams({ session: [...chosen].join(",") });
  document.getElementById("compare-selected").href = `/compare?${query}`;
  document.getElementById("export-selected").href = `/v1/export/sessions?${query}&format=csv`;
  const queue = document.getElementById("queue-selected");
  if (queue) queue.href = `/review?${query}`;
  const pair = document.getElementById("pair-selected");
  const [left, right] = chosen;
  pair.hidden = chosen.size !== 2;
  if (!pair.hidden) pair.href = `/pair?${new URLSearchParams({ left, right })}`;
};
table.addEventListener("change", ({ target }) => {
  const rows = target.id === "every" ? [...body.rows] : [target.closest("tr")];
  for (const row of rows) {
    if (/** @type {HTMLInputElement} */ (target).checked) chosen.add(row.dataset.session);
    else chosen.delete(row.dataset.session);
  }
  showChosen();
});
document.getElementById("clear").addEventListener("click", () => {
  chosen.clear();
  showChosen();
});
tagSelected(() => [...chosen]);

const reload = soon(async () => {
  const fresh = await getPage(location.href);
  for (const id of ["rows", "count"]) {
    document.getElementById(id).replaceWith(fresh.getElementById(id));
  }
  const pages = document.querySelector("nav.pages");
  pages.replaceWith(fresh.querySelector("nav.pages"));
  body = document.getElementById("rows");
  showChosen();
  measureAll();
}, 100);

const measureAll = () => {
  for (const row of body.rows)
    if (!row.hasAttribute("data-measured")) wanted.set(row.dataset.session);
  if (wanted.size) measure();
};

const changed = ({ rows, gone, reload: anew, complete, note }) => {
  document.getElementById("count").textContent = note;
  if (anew || (complete && !body.hasAttribute("data-complete"))) {
    reload();
    return;
  }
  for (const session of gone) rowOf(session)?.remove();
  const fits = fitting();
  for (const [session, key] of rows) {
    const old = rowOf(session);
    if (old || fits(key)) wanted.set(session);
  }
  if (body.rows.length < size / 2 && gone.length) reload();
  if (wanted.size) measureSoon();
};

// What is typed is one more condition; the address says all of them.
const field = document.getElementById("f-q");
const go = (pairs) => {
  const query = new URLSearchParams(pairs).toString();
  location.assign(query ? `/sessions?${query}` : "/sessions");
};
form.addEventListener("submit", (event) => {
  event.preventDefault();
  const given = [...new FormData(form)].map(([key, value]) => [key, String(value).trim()]);
  const text = given
    .filter(([key, value]) => key === "q" && value)
    .map(([, value]) => value)
    .join(" ");
  go([...(text ? [["q", text]] : []), ...given.filter(([key, value]) => key !== "q" && value)]);
});
field.addEventListener("keydown", (event) => {
  if (event.key === "Backspace" && !field.value)
    [...form.querySelectorAll(".away")].at(-1)?.click();
});

const columns = document.getElementById("columns");
columns.addEventListener("change", () => {
  const fields = new FormData(columns);
  const kept = [...parameters()].filter(
    ([key]) => !["columns", "effort", "after", "before"].includes(key),
  );
  const effort = fields.get("effort");
  go([
    ...kept,
    ...(effort === "seconds" ? [] : [["effort", effort]]),
    ["columns", fields.getAll("columns").join(",")],
  ]);
});

// Views are saved in this browser, each under its own conditions.
const SAVED = "duolog-views";
const saved = () => JSON.parse(localStorage.getItem(SAVED) ?? "[]");
const showViews = () => {
  document.getElementById("views").replaceChildren(
    ...saved().map(({ name, to }) =>
      make(
        "span",
        { class: "view" },
        make(
          "a",
          {
            href: to,
            ...(to === location.pathname + location.search && { "aria-current": "page" }),
          },
          name,
        ),
        make(
          "button",
          {
            type: "button",
            "aria-label": `Forget the view ${name}`,
            onclick: () => {
              localStorage.setItem(SAVED, JSON.stringify(saved().filter((one) => one.to !== to)));
              showViews();
            },
          },
          "×",
        ),
      ),
    ),
  );
};
document.getElementById("save-view").addEventListener("click", () => {
  const terms = [...form.querySelectorAll(".chip > span")].map((chip) => chip.textContent);
  const name = (terms.join(", ") || parameters().get("sort") || "columns").slice(0, 60);
  const to = location.pathname + location.search;
  localStorage.setItem(
    SAVED,
    JSON.stringify([...saved().filter((one) => one.to !== to), { name, to }]),
  );
  showViews();
});
showViews();

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select")) return;
  event.preventDefault();
  field.focus();
});

measureAll();
const since = Number(document.getElementById("main").dataset.position ?? 0);
const query = parameters();
for (const name of ["after", "before"]) query.delete(name);
follow("/v1/sessions/stream", query, since, { list: changed });
