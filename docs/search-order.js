/* The order of search results: guides, then background, reference and symbols, unless the query is code
   itself, such as open_sync or duolog.Options. Sphinx puts this file before its own search tools. */
"use strict";

const CODE = /[_.(]|[a-z][A-Z]/;
const REFERENCE = /^(reference\/|changelog|glossary)/;
const BACKGROUND =
  /^(index|comparison|architecture|science|sensitivity|trust|scale|gallery\/|faq|stability|contributing)/;
const asked = new URLSearchParams(window.location.search).get("q") ?? "";

/** How much a result counts in addition to its own score. */
const place = (docname, kind) => {
  if (CODE.test(asked)) return 0;
  if (kind === "object" || kind === "index") return 0;
  if (REFERENCE.test(docname)) return 1000;
  return BACKGROUND.test(docname) ? 2000 : 3000;
};

// Sphinx looks for a global of this name; the numbers are its own.
var Scorer = {
  score: ([docname, , , , score, , kind]) => score + place(docname, kind),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
