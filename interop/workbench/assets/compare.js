// The report of what a list shows: read, drawn, and each of its figures to be saved.

import { draw, make, pieces } from "./dom.js";

const host = document.getElementById("report");
const progress = document.getElementById("progress");
let drawn = 0;

const save = (name, type, text) => {
  const url = URL.createObjectURL(new Blob([text], { type }));
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
};

const STYLED = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "font-size",
  "font-family", "text-anchor", "opacity", "display", "visibility"];

/** A figure as a file of its own: with the styles that it has on the page. */
export const asSvg = (svg) => {
  const copied = svg.cloneNode(true);
  const theirs = [...svg.querySelectorAll("*")];
  [...copied.querySelectorAll("*")].forEach((node, index) => {
    const style = getComputedStyle(theirs[index]);
    for (const name of STYLED) node.setAttribute(name, style.getPropertyValue(name));
    node.removeAttribute("class");
  });
  const [, , width, height] = (copied.getAttribute("viewBox") ?? "0 0 100% 100%").split(" ");
  const ground = getComputedStyle(document.documentElement).backgroundColor;
  copied.prepend(draw("rect", { width, height, fill: ground })); // of a dark page, too
  copied.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copied.setAttribute("font-family", "sans-serif");
  return new XMLSerializer().serializeToString(copied);
};

const cell = (value) => {
  const text = value === null || value === undefined ? "" : String(value);
  // A name that begins like a formula must not become one in a spreadsheet.
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};

/** Rows of objects as CSV, with a line of their names. */
export const asCsv = (rows) => {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  return [names.join(","), ...rows.map((row) => names.map((name) => cell(row[name])).join(","))]
    .join("\r\n") + "\r\n";
};

/** The numbers behind a figure. */
export const rowsOf = (data, figure, panel) => {
  const name = (group) => data.series[group.series].name;
  if (figure === "ratios") {
    const buckets = data.buckets[panel];
    return buckets.sessions.map((one) => ({
      session: one.name, series: name(one), bucket: one.bucket + 1, performance: one.performance,
    }));
  }
  const found = data.panels[panel];
  if (figure === "tokens") {
    return found.sessions.map((one) => ({
      session: one.name, series: name(one), human_tokens: one.human, agent_tokens: one.agent,
      performance: one.performance,
    }));
  }
  const part = figure === "curves" ? "curve" : "survival";
  return found.groups.flatMap((group) => group[part].map((point) => ({ series: name(group), ...point })));
};

/** Lets the arrow keys lead from dot to dot of a figure; Enter opens the session of one. */
const walk = (svg) => {
  const dots = () => [...svg.querySelectorAll(".spot.leads")].filter((dot) => dot.checkVisibility());
  let at = null;
  const leave = () => {
    at?.classList.remove("at");
    at?.dispatchEvent(new PointerEvent("pointerleave"));
    at = null;
  };
  const reach = (dot) => {
    leave();
    at = dot;
    at.classList.add("at");
    const box = at.getBoundingClientRect();
    at.dispatchEvent(new PointerEvent("pointermove", { clientX: box.right, clientY: box.bottom }));
  };
  if (!dots().length) return;
  svg.setAttribute("tabindex", "0");
  svg.addEventListener("blur", leave);
  svg.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const all = dots();
    if (by && all.length) {
      event.preventDefault();
      const place = at ? all.indexOf(at) + by : by > 0 ? 0 : -1;
      reach(all[(place + all.length) % all.length]);
    } else if (event.key === "Enter" && at) {
      at.dispatchEvent(new MouseEvent("click"));
    }
  });
};

const offer = (data) => {
  for (const figure of ["curves", "survival", "tokens", "ratios"]) {
    const drawings = [...(document.getElementById(figure)?.querySelectorAll("figure") ?? [])];
    drawings.forEach((node, panel) => {
      walk(node.querySelector("svg"));
      const file = drawings.length > 1 ? `${figure}-${panel + 1}` : figure;
      node.append(make("p", { class: "save" },
        make("button", { type: "button", onclick: () => save(`${file}.svg`, "image/svg+xml", asSvg(node.querySelector("svg"))) }, "SVG"),
        " ",
        make("button", { type: "button", onclick: () => save(`${file}.csv`, "text/csv", asCsv(rowsOf(data, figure, panel))) }, "CSV")));
    });
  }
};

const show = async ({ html, data, text }) => {
  progress.textContent = text;
  // The script of the report's page reads its numbers from here.
  const held = make("pre", { id: "data", hidden: true }, data);
  host.replaceChildren(held, pieces(html));
  const parsed = JSON.parse(data);
  if (document.getElementById("switches")) {
    drawn += 1;
    await import(`/assets/report.js?drawn=${drawn}`);
    offer(parsed);
  }
};

if (host) {
  const source = new EventSource(`/v1/compare/stream${location.search}`);
  source.addEventListener("progress", (event) => {
    progress.textContent = JSON.parse(event.data).text;
  });
  source.addEventListener("pairs", (event) => {
    source.close();
    document.getElementById("pairs").replaceChildren(pieces(JSON.parse(event.data).html));
  });
  source.addEventListener("report", (event) => {
    show(JSON.parse(event.data)).catch((error) => { progress.textContent = error.message; });
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
