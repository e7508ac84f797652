// The report of what a list shows, as it is read, computed and drawn.

import { drawFigures } from "./charts.js";
import { pieces } from "./dom.js";

const host = document.getElementById("report");
const progress = document.getElementById("progress");

const show = ({ html, figures, text }, place) => {
  if (text) progress.textContent = text;
  place.replaceChildren(pieces(html));
  drawFigures(place, figures, "/session?id=");
};

if (host) {
  const source = new EventSource(`/v1/compare/stream${location.search}`);
  source.addEventListener("progress", (event) => {
    progress.textContent = JSON.parse(event.data).text;
  });
  source.addEventListener("report", (event) => show(JSON.parse(event.data), host));
  source.addEventListener("pairs", (event) => {
    source.close();
    show(JSON.parse(event.data), document.getElementById("pairs"));
  });
  source.addEventListener("error", (event) => {
    if (event.data) {
      source.close();
      progress.textContent = JSON.parse(event.data).message;
    } else if (source.readyState === EventSource.CLOSED) {
      progress.textContent = "The report cannot be read: load the page again.";
    }
  });
}
