// The menu "Export": adds the figures and tables that the page shows to the files that the server makes.

import { make } from "./dom.js";

const MOST = 40; // figures and tables in the menu
const FIGURES = "main svg[role=img]:not(.spark), main figure svg, #timeline > svg";
const TABLES = "main table";
const LEFT_OUT = ".entry, .diff"; // what a session's records hold

const textOf = (node) =>
  node.textContent
    .replaceAll(/\s+/g, " ")
    .replace(/ [▲▼]$/, "")
    .trim();

/** The name of a figure or table: its own, its caption, its label, or the heading before it. */
const nameOf = (node) => {
  const own = node.dataset.name ?? (node.caption?.textContent || node.getAttribute("aria-label"));
  if (own) return own;
  const before = [...document.querySelectorAll("main :is(h1, h2, h3, summary)")].filter(
    (one) => one.compareDocumentPosition(node) & Node.DOCUMENT_POSITION_FOLLOWING,
  );
  return textOf(before.at(-1) ?? document.querySelector("h1"));
};

/** The texts of a table, without the column of boxes. */
const rowsOf = (table) =>
  [...table.rows].map((row) => [...row.cells].filter((one) => !one.matches(".tick")).map(textOf));

/** The name of a file. */
const fileOf = (name, kind) =>
  `${name.toLowerCase().replaceAll(/\W+/g, "-").replaceAll(/^-|-$/g, "")}.${kind}`;

const said = (problem) => {
  document
    .getElementById("exports")
    .append(make("p", { class: "problem", role: "alert" }, problem));
};

/** A row of the menu: a name, and a button for each form, which makes the contents of a file. */
const rowOf = (name, forms, save) =>
  make(
    "p",
    {},
    make("span", {}, name),
    ...forms.map(([kind, type, contents]) =>
      make(
        "button",
        {
          type: "button",
          "aria-label": `${name} as ${kind.toUpperCase()}`,
          onclick: async () => {
            try {
              save(fileOf(name, kind), type, await contents());
            } catch (error) {
              said(`${name} cannot be saved: ${error.message}`);
            }
          },
        },
        kind.toUpperCase(),
      ),
    ),
  );

const fill = async (menu, host) => {
  for (const old of host.querySelectorAll(":scope > :not([data-kept])")) old.remove();
  const { asPng, asSvg, csvOf, save } = await import("./charts.js");
  const shown = (node) => node.checkVisibility() && !node.closest(LEFT_OUT);
  const figures = [...document.querySelectorAll(FIGURES)].filter(shown).map((svg) =>
    rowOf(
      nameOf(svg),
      [
        ["svg", "image/svg+xml", () => asSvg(svg)],
        ["png", "image/png", () => asPng(svg)],
      ],
      save,
    ),
  );
  const tables = [...document.querySelectorAll(TABLES)]
    .filter(shown)
    .map((table) => rowOf(nameOf(table), [["csv", "text/csv", () => csvOf(rowsOf(table))]], save));
  host.append(...[...figures, ...tables].slice(0, MOST));
  if (!host.children.length)
    host.append(make("p", { class: "quiet" }, "Nothing on this page yet."));
};

const menu = document.getElementById("export");
const host = document.getElementById("exports");
for (const made of host.children) made.dataset.kept = "";
menu.addEventListener("toggle", () => {
  if (menu.open) fill(menu, host).catch((error) => said(error.message));
});
document.addEventListener("click", ({ target }) => {
  if (target instanceof Node && !menu.contains(target)) menu.open = false;
});
menu.addEventListener("keydown", ({ key }) => {
  if (key !== "Escape") return;
  menu.open = false;
  menu.querySelector("summary").focus();
});
