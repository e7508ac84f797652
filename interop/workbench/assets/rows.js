// Rows of a table that come, change and go while one looks, each under a name of its own.

import { pieces } from "./dom.js";

const key = (row) => JSON.parse(row.dataset.key);

/** Below 0 where a row with key a stands above one with key b: the greatest stands first. */
export const greatestFirst = (a, b) => {
  for (let index = 0; index < a.length; index += 1) {
    if (a[index] !== b[index]) return a[index] > b[index] ? -1 : 1;
  }
  return 0;
};

/** Puts rows, as HTML by name, into the body of a table, and takes those out that are gone. */
export const changeRows = (body, { rows, gone }) => {
  const named = new Map([...body.rows].map((row) => [row.dataset.name, row]));
  const first = !named.size;
  for (const name of gone) named.get(name)?.remove();
  for (const [name, html] of Object.entries(rows)) {
    const [fresh] = pieces(html).children;
    fresh.dataset.name = name;
    const old = named.get(name);
    const held = old?.contains(document.activeElement);
    old?.remove();
    const next = [...body.rows].find((row) => greatestFirst(key(row), key(fresh)) > 0);
    if (!old && !first) fresh.classList.add("new");
    body.insertBefore(fresh, next ?? null);
    if (held) fresh.querySelector("a").focus();
  }
};
