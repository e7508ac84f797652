// The agents of one task, compared: the report of what a list shows, as it is read, computed and drawn.

import { drawFigures } from "./charts.js";
import { pieces } from "./dom.js";
import { findSessions } from "./parts.js";

const host = document.getElementById("report");
const progress = document.getElementById("progress");

/** What is chosen is shown at once; the address says it. */
const pick = (form) => {
  form.addEventListener("change", ({ target }) => {
    const fields = new FormData(form);
    if (target.name === "task") fields.delete("agents"); // another task has others
    location.search = new URLSearchParams(
      [...fields].map(([name, value]) => [name, String(value)]),
    ).toString();
  });
};

const show = ({ pickers, html, figures, text }) => {
  progress.textContent = text;
  if (pickers) {
    const place = document.getElementById("choice");
    place.replaceChildren(pieces(pickers));
    pick(place.querySelector("form"));
  }
  host.replaceChildren(pieces(html));
  drawFigures(host, figures, "/session?id=");
  findSessions(host);
};

if (host) {
  const source = new EventSource(`/v1/compare/stream${location.search}`);
  source.addEventListener("progress", (event) => {
    progress.textContent = JSON.parse(event.data).text;
  });
  source.addEventListener("report", (event) => show(JSON.parse(event.data)));
  source.addEventListener("oversight", (event) => {
    source.close();
    const { html } = JSON.parse(event.data);
    document.getElementById("oversight").replaceChildren(pieces(html));
    document.getElementById("overseen").hidden = !html;
  });
  source.addEventListener("error", (/** @type {MessageEvent} */ event) => {
    if (event.data) {
      source.close();
      progress.textContent = JSON.parse(event.data).message;
    } else if (source.readyState === EventSource.CLOSED) {
      progress.textContent = "The report cannot be read: load the page again.";
    }
  });
}
