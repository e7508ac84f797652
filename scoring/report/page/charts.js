// Draws figures from their data: lines, dots and rules on two axes. Used by pages of reports, which hold
// this script, and by the workbench.

const SVG = "http://www.w3.org/2000/svg";
const TOP = 12;
const WIDE = 704;
const NARROW = 300;
const SQUARE = 480;
const ROOM = 540; // pixels that a row with its words takes
const MOST_ROWS = 500; // of a table of numbers
const ROW = 28; // pixels

const make = (name, attributes = {}, text = null) => {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== null) node.textContent = text;
  return node;
};

const element = (name, attributes = {}, ...children) => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
};

/** A number for people: whole numbers with separators, others with three decimals. */
const shown = (value) => {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value)) return value.toLocaleString("en");
  const text = value.toFixed(3);
  return Number(text) === 0 ? "0.000" : text;
};

const listed = (values) =>
  Object.entries(values)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name} ${shown(value)}`);

// --- what is said where the pointer is ---

const tip = () =>
  document.getElementById("tip") ??
  document.body.appendChild(element("div", { id: "tip", role: "status" }));

const show = (event, text) => {
  const node = tip();
  node.textContent = text;
  node.style.display = "block";
  const box = node.getBoundingClientRect();
  const x =
    event.clientX + 14 + box.width > innerWidth
      ? event.clientX - 14 - box.width
      : event.clientX + 14;
  node.style.left = `${Math.max(4, x)}px`;
  node.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - box.height - 4))}px`;
};
const hide = () => {
  tip().style.display = "none";
};

// --- one panel ---

const scale = (axis, from, to) => {
  const at = axis.log ? Math.log10 : (value) => value;
  const low = at(axis.low),
    high = at(axis.high);
  return (value) => from + ((at(value) - low) / (high - low || 1)) * (to - from);
};

const through = (corners) =>
  `M${corners.map(([x, y]) => `${x.toFixed(2)} ${y.toFixed(2)}`).join("L")}`;

/** The corners of a line; of steps, each value holds from its point on. */
const cornersOf = (line, x, y, of) =>
  line.points.flatMap((point, index) => {
    const here = [x(point.x), y(of(point))];
    return line.steps && index ? [[here[0], y(of(line.points[index - 1]))], here] : [here];
  });

let clips = 0;

/**
 * Draws a panel of a figure.
 *
 * @returns the SVG, and the functions that place values on it
 */
export const drawPanel = (
  figure,
  panel,
  { width = 420, height = null, left = 46, right = 12, bottom = 42, top = TOP } = {},
) => {
  const tall =
    height ?? (figure.square ? width - left - right + top + bottom : 90 + figure.height * 100);
  const foot = tall - bottom;
  const svg = make("svg", {
    viewBox: `0 0 ${width} ${tall}`,
    role: "img",
    "aria-label": `${figure.title} ${panel.title}`.trim(),
  });
  const x = scale(figure.x, left, width - right),
    y = scale(figure.y, foot, top);
  const clip = `clip${(clips += 1)}`;
  svg.append(make("clipPath", { id: clip }));
  svg.firstChild.append(
    make("rect", { x: left, y: top, width: width - left - right, height: foot - top }),
  );
  for (const [value, text] of figure.y.ticks) {
    svg.append(make("path", { class: "grid", d: `M${left} ${y(value)}H${width - right}` }));
    svg.append(make("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, text));
  }
  const rows = !figure.y.ticks.length; // each with its name and its numbers, without a scale upwards
  for (const [value, text] of panel.ticks?.length ? panel.ticks : figure.x.ticks) {
    const mark = rows
      ? { class: "grid", d: `M${x(value)} ${top}V${foot}` }
      : { class: "axis", d: `M${x(value)} ${foot}v4` };
    svg.append(make("path", mark));
    svg.append(make("text", { x: x(value), y: foot + 16, "text-anchor": "middle" }, text));
  }
  if (!rows)
    svg.append(make("path", { class: "axis", d: `M${left} ${top}V${foot}H${width - right}` }));
  if (bottom > 40) {
    svg.append(
      make(
        "text",
        { x: (left + width - right) / 2, y: tall - 8, "text-anchor": "middle" },
        figure.x.title,
      ),
    );
    svg.append(
      make(
        "text",
        {
          x: 0,
          y: 0,
          "text-anchor": "middle",
          transform: `translate(12 ${(top + foot) / 2}) rotate(-90)`,
        },
        figure.y.title,
      ),
    );
  }
  for (const rule of panel.rules ?? []) {
    const [[x1, y1], [x2, y2]] = [0, 1].map((end) => [x(rule.x[end]), y(rule.y[end])]);
    const kind = rule.automated ? "automated" : (rule.kind ?? "rule");
    svg.append(
      make("path", {
        class: kind,
        d: through([
          [x1, y1],
          [x2, y2],
        ]),
        "clip-path": `url(#${clip})`,
      }),
    );
    if (!rule.label) continue;
    const end = Math.min(1, y2 < top ? (top - y1) / (y2 - y1) : 1) - 0.07;
    const angle = (Math.atan2(y2 - y1, x2 - x1) * 180) / Math.PI;
    svg.append(
      make(
        "text",
        {
          class: "faint",
          "text-anchor": "middle",
          transform: `translate(${x1 + end * (x2 - x1)} ${y1 + end * (y2 - y1) - 5}) rotate(${angle})`,
        },
        rule.label,
      ),
    );
  }
  for (const line of panel.lines ?? []) drawLine(svg, figure, line, x, y);
  if (figure.square) svg.style.maxWidth = `${SQUARE}px`;
  return { svg, x, y, foot, left, top, inner: width - left - right };
};

const drawLine = (svg, figure, line, x, y) => {
  const series = line.series === null ? null : figure.series[line.series];
  const colour = series?.colour ?? "var(--ink)";
  const layer = svg.appendChild(
    make("g", { class: "line", ...(series && { "data-series": line.series }) }),
  );
  const spread = line.points.some((point) => point.low !== null && point.low !== undefined);
  if (spread && !line.bars) {
    const edges = [
      ...cornersOf(line, x, y, (one) => one.high),
      ...cornersOf(line, x, y, (one) => one.low).reverse(),
    ];
    layer.append(
      make("path", { class: "band", d: `${through(edges)}Z`, fill: colour, "fill-opacity": 0.14 }),
    );
  }
  if (line.points.length) {
    const dashes = line.covered ? "6 8" : series?.dashes.map((one) => 2 * one).join(" ");
    layer.append(
      make("path", {
        class: "course",
        d: through(cornersOf(line, x, y, (one) => one.y)),
        fill: "none",
        stroke: colour,
        "stroke-width": 2,
        ...(dashes && { "stroke-dasharray": dashes }),
      }),
    );
  }
  for (const point of line.points) {
    const at = x(point.x),
      up = y(point.y);
    if (line.bars && spread) {
      layer.append(
        make("path", {
          stroke: colour,
          "stroke-width": 1.5,
          d: `M${at} ${y(point.low)}V${y(point.high)}`,
        }),
      );
    }
    if (point.size !== null && point.size !== undefined) {
      const kind = point.hollow ? "dot hollow" : "dot";
      layer.append(
        make("circle", {
          class: kind,
          cx: at,
          cy: up,
          r: Math.sqrt(3 + 27 * point.size),
          fill: colour,
        }),
      );
    }
    if (point.crossed) {
      layer.append(
        make("path", {
          d: `M${at - 4} ${up}h8M${at} ${up - 4}v8`,
          stroke: colour,
          "stroke-width": 1.4,
        }),
      );
    }
  }
};

/** Says what the lines of a panel show at the pointer. */
const follow = (figure, panel, { svg, x, foot, left, top, inner }, hidden) => {
  const lines = panel.lines.filter((line) => line.series !== null && figure.y.ticks.length);
  const places = [...new Set(lines.flatMap((line) => line.points.map((point) => point.x)))];
  if (!places.length) return;
  const guide = svg.appendChild(make("path", { class: "guide" }));
  const surface = svg.appendChild(
    make("rect", { class: "catch", x: left, y: top, width: inner, height: foot - top }),
  );
  surface.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const at = (event.clientX - box.left) * (svg.viewBox.baseVal.width / box.width);
    const place = places.reduce((one, other) =>
      Math.abs(x(other) - at) < Math.abs(x(one) - at) ? other : one,
    );
    guide.setAttribute("d", `M${x(place)} ${top}V${foot}`);
    guide.style.visibility = "visible";
    const said = [`${figure.x.title} ${shown(place)}`];
    for (const line of lines) {
      const point = line.points.findLast((one) => (line.steps ? one.x <= place : one.x === place));
      if (!point || hidden.has(line.series)) continue;
      const more = listed(point.values).join(", ");
      said.push(`${figure.series[line.series].name}: ${shown(point.y)}${more ? ` (${more})` : ""}`);
    }
    for (const rule of panel.rules) if (rule.automated) said.push(`automated: ${shown(rule.y[0])}`);
    show(event, said.join("\n"));
  });
  surface.addEventListener("pointerleave", () => {
    guide.style.visibility = "hidden";
    hide();
  });
};

/** The outline of a dot: an agent has a shape as well as a colour. */
const outline = (shape, x, y, r) =>
  [
    "",
    `M${x - r * 0.9} ${y - r * 0.9}h${r * 1.8}v${r * 1.8}h${-r * 1.8}z`,
    `M${x} ${y - r * 1.1}l${r * 1.1} ${r * 2}h${-r * 2.2}z`,
    `M${x} ${y - r * 1.25}l${r * 1.25} ${r * 1.25}l${-r * 1.25} ${r * 1.25}l${-r * 1.25} ${-r * 1.25}z`,
    `M${x} ${y + r * 1.1}l${r * 1.1} ${-r * 2}h${-r * 2.2}z`,
  ][shape];

const drawDots = (figure, panel, { svg, x, y }, open) => {
  for (const dot of panel.dots) {
    const series = dot.series === null ? null : figure.series[dot.series];
    const at = x(dot.x),
      up = y(dot.y);
    const boxed = dot.mark === "square" || dot.mark === "hollow";
    const r = dot.mark === "mean" ? 5.5 : 3.2;
    const look = {
      class: dot.mark === "mean" ? "mean" : "spot",
      fill: series?.colour ?? "var(--ink)",
    };
    const spot = boxed
      ? make("rect", { class: dot.mark, x: at - 4, y: up - 4, width: 8, height: 8 })
      : series?.shape
        ? make("path", { ...look, d: outline(series.shape, at, up, r) })
        : make("circle", { ...look, cx: at, cy: up, r });
    if (series) spot.dataset.series = dot.series;
    const said = [dot.session, series?.name, ...listed(dot.values)].filter(Boolean).join("\n");
    spot.addEventListener("pointermove", (event) => show(event, said));
    spot.addEventListener("pointerleave", hide);
    const go = dot.session ? open(dot) : null;
    if (go) {
      spot.classList.add("leads");
      spot.addEventListener("click", go);
    }
    svg.append(spot);
  }
  const narrow = x(figure.x.high) < ROOM; // then the words of a row are above it
  for (const words of panel.words) {
    const last = narrow && words.left && words.x > figure.x.low;
    svg.append(
      make(
        "text",
        {
          class: words.left ? "name" : "faint",
          x: x(last ? figure.x.high : words.x),
          y: y(words.y),
          "text-anchor": last ? "end" : words.left ? "start" : "middle",
          ...(words.left && { dy: narrow ? -10 : 4 }),
        },
        words.text,
      ),
    );
  }
};

/** Lets the arrow keys lead from dot to dot of a panel; Enter follows one. */
const walk = (svg) => {
  const dots = () =>
    [...svg.querySelectorAll(".spot.leads")].filter((dot) => dot.checkVisibility());
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
  if (!svg.querySelector(".spot.leads")) return; // not dots(): the panel is not on the page yet
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

// --- files of a panel ---

/** Saves a text or a picture as a file. */
export const save = (name, type, content) => {
  const url = URL.createObjectURL(new Blob([content], { type }));
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
};

const STYLED = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "font-size",
  "font-family",
  "text-anchor",
  "opacity",
  "display",
  "visibility",
];

/** The width and the height of a figure, in its own units. */
const sizeOf = (svg) => {
  const box = svg.getAttribute("viewBox")?.split(" ").slice(2).map(Number);
  return box ?? [svg.clientWidth, svg.clientHeight];
};

/** A figure as a file: with the styles that it has on the page. */
export const asSvg = (svg) => {
  const copied = svg.cloneNode(true);
  const theirs = [...svg.querySelectorAll("*")];
  [...copied.querySelectorAll("*")].forEach((node, index) => {
    const style = getComputedStyle(theirs[index]);
    for (const name of STYLED) node.setAttribute(name, style.getPropertyValue(name));
    node.removeAttribute("class");
  });
  const [width, height] = sizeOf(svg);
  for (const [name, value] of Object.entries({
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
  })) {
    copied.setAttribute(name, value);
  }
  const grounds = [document.body, document.documentElement].map(
    (one) => getComputedStyle(one).backgroundColor,
  );
  const ground = grounds.find((one) => !one.endsWith(", 0)")) ?? "white";
  copied.prepend(make("rect", { width, height, fill: ground })); // of a dark page, too
  copied.setAttribute("xmlns", SVG);
  copied.setAttribute("font-family", "sans-serif");
  return new XMLSerializer().serializeToString(copied);
};

const DENSITY = 2; // pixels of a picture for each unit of a figure

/** A figure as a picture, drawn from the same SVG. */
export const asPng = async (svg) => {
  const [width, height] = sizeOf(svg).map((size) => Math.round(size * DENSITY));
  const url = URL.createObjectURL(new Blob([asSvg(svg)], { type: "image/svg+xml" }));
  try {
    const image = new Image(width, height);
    image.src = url;
    await image.decode();
    const canvas = element("canvas", { width, height });
    canvas.getContext("2d").drawImage(image, 0, 0, width, height);
    return await new Promise((done) => canvas.toBlob(done, "image/png"));
  } finally {
    URL.revokeObjectURL(url);
  }
};

const cell = (value) => {
  const text = value === null || value === undefined ? "" : String(value);
  // A name that begins like a formula must not become one in a spreadsheet.
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};

/** Rows of values as CSV. */
export const csvOf = (rows) => rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";

/** Rows of objects as CSV, with a line of their names. */
export const asCsv = (rows) => {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  return csvOf([names, ...rows.map((row) => names.map((name) => row[name]))]);
};

const named = (values) =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name.toLowerCase().replaceAll(/\W+/g, "_"),
      value,
    ]),
  );

/** The numbers behind a panel: of its sessions, or of its lines. */
export const rowsOf = (figure, panel) => {
  const name = (one) => (one.series === null ? "" : figure.series[one.series].name);
  const rows = !figure.y.ticks.length; // of means, each with its interval
  const dots = panel.dots.filter((dot) => rows || dot.mark !== "mean");
  if (rows) return dots.map((dot) => ({ agent: name(dot), ...named(dot.values) }));
  if (dots.length)
    return dots.map((dot) => ({ session: dot.session, series: name(dot), ...named(dot.values) }));
  return panel.lines.flatMap((line) =>
    line.points.map((point) => ({
      series: name(line),
      ...named({ [figure.x.title]: point.x, [figure.y.title]: point.y }),
      low: point.low,
      high: point.high,
      ...named(point.values),
    })),
  );
};

/** The numbers of a panel as a table, made when it is opened. */
const numbersOf = (figure, panel) => {
  const details = element("details", { class: "numbers" }, element("summary", {}, "Numbers"));
  details.addEventListener(
    "toggle",
    () => {
      const rows = rowsOf(figure, panel);
      const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
      const line = (kind, cells, more = {}) =>
        element("tr", {}, ...cells.map((one) => element(kind, more, String(one))));
      const text = (value) => (typeof value === "string" ? value : shown(value));
      const titles = names.map((name) => name.replaceAll("_", " "));
      const table = element(
        "table",
        {},
        element("thead", {}, line("th", titles, { scope: "col" })),
        element(
          "tbody",
          {},
          ...rows.slice(0, MOST_ROWS).map((row) =>
            line(
              "td",
              names.map((name) => text(row[name])),
            ),
          ),
        ),
      );
      const region = { class: "wide", tabindex: 0, role: "region", "aria-label": "Numbers" };
      details.append(element("div", region, table));
      if (rows.length > MOST_ROWS)
        details.append(`The first ${MOST_ROWS} of ${shown(rows.length)} rows; CSV has all.`);
    },
    { once: true },
  );
  return details;
};

// --- all figures of a report ---

/** The size of a panel: a figure of one panel is as wide as its place; rows have their names within. */
const sizesOf = (figure, host) => {
  const width = host.clientWidth ? Math.min(Math.max(host.clientWidth, NARROW), WIDE) : WIDE;
  const { low, high, ticks } = figure.y;
  if (!ticks.length)
    return {
      width,
      height: (width < ROOM ? 1.5 * ROW : ROW) * (high - low) + 32,
      left: 4,
      right: 4,
      bottom: 28,
      top: 4,
    };
  if (figure.panels.length > 1) return {};
  return { width: figure.square ? Math.min(width, SQUARE) : width };
};

/** Gives a swatch the colour and the shape of a series. */
const dress = (swatch, series) => {
  swatch.style.background = series?.colour;
  if (series?.shape) swatch.dataset.shape = series.shape;
  return swatch;
};

/** Opens what holds a place of the page, and scrolls there. */
const reveal = (id) => {
  const node = id && document.getElementById(id);
  if (!node) return;
  for (let one = node; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
  node.scrollIntoView({ block: "start" });
};

/**
 * Draws the figures of a report into their places, and adds the switches of its series.
 *
 * @param {Element} root what holds the report
 * @param {object[]} figures their data
 * @param {string|null} link address of a session's page, but for its id; null if the report is one page
 */
export const drawFigures = (root, figures, link = null) => {
  const hidden = new Set();
  const open = (dot) => {
    if (link !== null) return () => location.assign(link + encodeURIComponent(dot.session));
    const id = [`t${dot.place}`, `s${dot.place}`].find((one) => document.getElementById(one));
    return id
      ? () => {
          location.hash = id;
          reveal(id);
        }
      : null;
  };
  for (const figure of figures) {
    const host = root.querySelector(`#${figure.name}`);
    figure.panels.forEach((panel, place) => {
      const drawn = drawPanel(figure, panel, sizesOf(figure, host));
      follow(figure, panel, drawn, hidden);
      drawDots(figure, panel, drawn, open);
      walk(drawn.svg);
      const name = figure.panels.length > 1 ? `${figure.name}-${place + 1}` : figure.name;
      const button = (kind, type, made) => {
        const node = element("button", { type: "button" }, kind.toUpperCase());
        node.addEventListener("click", async () => save(`${name}.${kind}`, type, await made()));
        return node;
      };
      const saves = element(
        "p",
        { class: "save" },
        button("svg", "image/svg+xml", () => asSvg(drawn.svg)),
        " ",
        button("png", "image/png", () => asPng(drawn.svg)),
        " ",
        button("csv", "text/csv", () => asCsv(rowsOf(figure, panel))),
      );
      const titled = panel.title || panel.note;
      const caption = element("figcaption", {}, panel.title, element("span", {}, panel.note));
      const alone = figure.panels.length === 1; // its buttons are next to the title of the figure
      if (alone) host.parentElement.prepend(saves);
      host.append(
        element(
          "figure",
          {},
          ...(titled ? [caption] : []),
          drawn.svg,
          ...(alone ? [] : [saves]),
          numbersOf(figure, panel),
        ),
      );
    });
  }
  const series = figures.find((figure) => figure.series.length)?.series ?? [];
  for (const swatch of root.querySelectorAll(".swatch")) {
    dress(swatch, series[swatch.dataset.colour]);
  }
  const apply = () => {
    for (const node of root.querySelectorAll("svg [data-series]")) {
      node.classList.toggle("off-series", hidden.has(Number(node.dataset.series)));
    }
    for (const row of root.querySelectorAll("tr[data-series]")) {
      row.classList.toggle("off", hidden.has(Number(row.dataset.series)));
    }
  };
  const switches = root.querySelector(".switches");
  if (switches && series.length > 1)
    series.forEach((one, index) => {
      const swatch = dress(element("span", { class: "swatch" }), one);
      const button = element(
        "button",
        { type: "button", "aria-pressed": "true" },
        swatch,
        one.name,
      );
      button.addEventListener("click", () => {
        if (!hidden.delete(index)) hidden.add(index);
        button.setAttribute("aria-pressed", String(!hidden.has(index)));
        apply();
      });
      switches.append(button);
    });
  for (const at of root.querySelectorAll('a[href^="#"]')) {
    at.addEventListener("click", () => reveal(at.getAttribute("href").slice(1)));
  }
  if (link === null) {
    addEventListener("hashchange", () => reveal(location.hash.slice(1)));
    reveal(location.hash.slice(1));
  }
};
