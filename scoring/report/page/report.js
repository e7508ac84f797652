"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const tip = document.getElementById("tip");
  const off = new Set();
  const W = 420, LEFT = 46, RIGHT = 12, TOP = 12, BOTTOM = 42;

  const make = (name, attributes = {}, text = null) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== null) node.textContent = text;
    return node;
  };
  const fixed = (value, places = 3) => {
    const text = value.toFixed(places);
    return Number(text) === 0 ? (0).toFixed(places) : text;
  };
  const counted = (number) => `${number} session${number === 1 ? "" : "s"}`;
  const whole = (value) => Math.round(value).toLocaleString("en");

  const show = (event, text) => {
    tip.textContent = text;
    tip.style.display = "block";
    const box = tip.getBoundingClientRect();
    const x = event.clientX + 14 + box.width > innerWidth
      ? event.clientX - 14 - box.width : event.clientX + 14;
    const y = Math.min(event.clientY + 14, innerHeight - box.height - 4);
    tip.style.left = `${Math.max(4, x)}px`;
    tip.style.top = `${Math.max(4, y)}px`;
  };
  const hide = () => { tip.style.display = "none"; };

  const frame = (host, title, note, height, label) => {
    const figure = document.createElement("figure");
    const caption = document.createElement("figcaption");
    caption.append(title || "\u00a0");
    const aside = document.createElement("span");
    aside.textContent = note;
    caption.append(aside);
    const svg = make("svg", { viewBox: `0 0 ${W} ${height}`, role: "img", "aria-label": label });
    figure.append(caption, svg);
    host.append(figure);
    return svg;
  };
  const between = (low, high, from, to) => (value) =>
    from + ((value - low) / (high - low || 1)) * (to - from);
  const ticks = (low, high, most) => {
    const rough = (high - low) / most;
    const power = 10 ** Math.floor(Math.log10(rough || 1));
    const step = [1, 2, 2.5, 5, 10].map((n) => n * power).find((n) => n >= rough) || power;
    const found = [];
    for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9; n += 1) {
      found.push(n * step);
    }
    return found;
  };
  const axes = (svg, height, xName, yName) => {
    const foot = height - BOTTOM;
    svg.append(make("path", { class: "axis", d: `M${LEFT} ${TOP}V${foot}H${W - RIGHT}` }));
    const middle = (LEFT + W - RIGHT) / 2;
    svg.append(make("text", { x: middle, y: height - 8, "text-anchor": "middle" }, xName));
    const turned = { x: 0, y: 0, "text-anchor": "middle",
      transform: `translate(12 ${(TOP + foot) / 2}) rotate(-90)` };
    svg.append(make("text", turned, yName));
  };
  const xTick = (svg, height, at, text) => {
    const foot = height - BOTTOM;
    svg.append(make("path", { class: "axis", d: `M${at} ${foot}v4` }));
    svg.append(make("text", { x: at, y: foot + 16, "text-anchor": "middle" }, text));
  };
  const yTick = (svg, at, text, lined = true) => {
    if (lined) svg.prepend(make("path", { class: "grid", d: `M${LEFT} ${at}H${W - RIGHT}` }));
    svg.append(make("text", { x: LEFT - 6, y: at + 4, "text-anchor": "end" }, text));
  };
  const layer = (svg, series) => {
    const group = make("g", { "data-series": series });
    svg.append(group);
    return group;
  };
  const reveal = (id) => {  // opens what holds it, and scrolls there
    const node = id && document.getElementById(id);
    if (!node) return false;
    for (let one = node; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
    node.scrollIntoView({ block: "start" });
    return true;
  };
  const leads = (spot, session) => {  // to the transcript, or to the row that says how to see it
    if (data.link) {  // or to a page of its own
      spot.classList.add("leads");
      spot.addEventListener("click", () => {
        location.assign(data.link + encodeURIComponent(session.name));
      });
      return;
    }
    const id = [`t${session.place}`, `s${session.place}`].find((one) => document.getElementById(one));
    if (!id) return;
    spot.classList.add("leads");
    spot.addEventListener("click", () => { location.hash = id; reveal(id); });
  };
  const visible = (series) => !off.has(series);

  const drawCurve = (host, panel, limits) => {
    const height = 300, foot = height - BOTTOM;
    const points = panel.groups.flatMap((group) => group.curve);
    if (!points.length) return;
    const last = data.rounds, most = data.reached;
    const x = between(0.6, last + 0.4, LEFT, W - RIGHT);
    const y = between(limits.low, limits.high, foot, TOP);
    const svg = frame(host, panel.title, panel.note, height,
      `Mean utility by round ${panel.title}`);
    axes(svg, height, "Round", "Mean utility");
    for (const value of ticks(limits.low, limits.high, 6)) yTick(svg, y(value), fixed(value, 2));
    const rounds = ticks(1, Math.max(last, 2), 9).filter(Number.isInteger);
    for (const value of rounds) if (value <= last) xTick(svg, height, x(value), String(value));
    const automated = new Set(panel.groups.map((g) => g.reference).filter((v) => v !== null));
    for (const value of automated) {
      svg.append(make("path", { class: "automated", d: `M${LEFT} ${y(value)}H${W - RIGHT}` }));
    }
    const drawn = [];  // curves and dots that lie on others leave those to be seen
    for (const group of panel.groups) {
      if (!group.curve.length) continue;
      const course = new Set(group.curve.map((point) => `${point.round} ${point.mean}`));
      const shared = (other) => [...course].filter((place) => other.has(place)).length;
      const hides = drawn.some((other) => shared(other) > 1);
      const under = (point) =>
        drawn.filter((other) => other.has(`${point.round} ${point.mean}`)).length;
      const { colour, dashes } = data.series[group.series];
      const g = layer(svg, group.series);
      const edge = (sign) => group.curve.map((point) =>
        `${x(point.round)} ${y(point.mean + sign * (point.sem || 0))}`);
      const band = `M${edge(1).join("L")}L${edge(-1).reverse().join("L")}Z`;
      g.append(make("path", { d: band, fill: colour, "fill-opacity": 0.15 }));
      const line = group.curve.map((point) => `${x(point.round)} ${y(point.mean)}`).join("L");
      g.append(make("path", { d: `M${line}`, fill: "none", stroke: colour, "stroke-width": 2,
        "stroke-dasharray": hides ? "6 8" : dashes }));
      for (const point of group.curve) {
        const r = Math.sqrt(3 + 27 * point.reached / most) * 0.6 ** under(point);
        const at = x(point.round);
        if (group.curve.length === 1 && point.sem) {
          g.append(make("path", { stroke: colour, "stroke-width": 1.5,
            d: `M${at} ${y(point.mean - point.sem)}V${y(point.mean + point.sem)}` }));
        }
        g.append(make("circle", { class: "dot", cx: at, cy: y(point.mean), r, fill: colour }));
      }
      drawn.push(course);
    }
    const guide = make("path", { class: "guide" });
    const surface = make("rect", { class: "catch", x: LEFT, y: TOP, width: W - LEFT - RIGHT,
      height: foot - TOP });
    svg.append(guide, surface);
    surface.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const place = (event.clientX - box.left) * (W / box.width);
      const share = (place - x(1)) / (x(2) - x(1));
      const round = Math.min(last, Math.max(1, Math.round(share) + 1));
      guide.setAttribute("d", `M${x(round)} ${TOP}V${foot}`);
      guide.style.visibility = "visible";
      const lines = [`Round ${round}`];
      for (const group of panel.groups) {
        const point = group.curve.find((one) => one.round === round);
        if (!point || !visible(group.series)) continue;
        const error = point.sem === null ? "" : ` ±${fixed(point.sem)}`;
        lines.push(`${data.series[group.series].name}: ${fixed(point.mean)}${error}, ` +
          `${point.reached} of ${counted(point.sessions)} reached it`);
      }
      for (const value of automated) lines.push(`automated: ${fixed(value)}`);
      show(event, lines.join("\n"));
    });
    surface.addEventListener("pointerleave", () => { guide.style.visibility = "hidden"; hide(); });
  };

  const drawSurvival = (host, panel) => {
    const height = 260, foot = height - BOTTOM;
    const groups = panel.groups.filter((group) => group.survival.length);
    if (!groups.length) return;
    const last = Math.max(...data.panels.flatMap((one) =>
      one.groups.map((group) => group.survival.length)));
    const x = between(0, last + 0.5, LEFT, W - RIGHT), y = between(0, 1.05, foot, TOP);
    const svg = frame(host, panel.title, panel.note, height,
      `Share of sessions still there by round ${panel.title}`);
    axes(svg, height, "Round", "Share still there");
    for (const value of [0, 0.2, 0.4, 0.6, 0.8, 1]) yTick(svg, y(value), fixed(value, 1));
    for (const value of ticks(0, Math.max(last, 2), 9).filter(Number.isInteger)) {
      if (value <= last) xTick(svg, height, x(value), String(value));
    }
    for (const group of groups) {
      const { colour, dashes, name } = data.series[group.series];
      const g = layer(svg, group.series);
      const steps = (pick) => {  // corners of the steps, the last one drawn to the edge
        const corners = [[0, 1]];
        for (const point of group.survival) {
          corners.push([point.round, corners[corners.length - 1][1]]);
          corners.push([point.round, pick(point) ?? point.survival]);
        }
        return corners.map(([round, share]) => `${x(round)} ${y(share)}`);
      };
      const band = [...steps((p) => p.high), ...steps((p) => p.low).reverse()];
      g.append(make("path", { d: `M${band.join("L")}Z`, fill: colour, "fill-opacity": 0.13 }));
      g.append(make("path", { class: "survival", d: `M${steps((p) => p.survival).join("L")}`,
        fill: "none", stroke: colour, "stroke-width": 2, "stroke-dasharray": dashes }));
      for (const point of group.survival) {
        const at = x(point.round), up = y(point.survival);
        if (point.censored) {
          g.append(make("path", { d: `M${at - 4} ${up}h8M${at} ${up - 4}v8`, stroke: colour,
            "stroke-width": 1.4 }));
        }
        const spot = make("circle", { cx: at, cy: up, r: 7, fill: "transparent" });
        spot.addEventListener("pointermove", (event) => {
          const span = point.low === null ? "" : ` (${fixed(point.low, 2)} to ${fixed(point.high, 2)})`;
          show(event, `${name}, after round ${point.round}\n${fixed(point.survival)}${span} still there\n` +
            `${point.left} of ${point.at_risk} left in it, ${point.censored} ended otherwise`);
        });
        spot.addEventListener("pointerleave", hide);
        g.append(spot);
      }
    }
  };

  const drawScatter = (host, panel, limits) => {
    const height = W - LEFT - RIGHT + TOP + BOTTOM, foot = height - BOTTOM;
    if (!panel.sessions.length) return;
    const [left, right] = limits.across, [bottom, top] = limits.up;
    const x = between(left, right, LEFT, W - RIGHT);
    const y = between(bottom, top, foot, TOP);
    const svg = frame(host, panel.title, `N = ${panel.sessions.length}`, height,
      `Agent tokens against human tokens ${panel.title}`);
    axes(svg, height, "Human tokens", "Agent tokens");
    for (const [power, name] of limits.xTicks) xTick(svg, height, x(power), name);
    for (const [power, name] of limits.yTicks) yTick(svg, y(power), name);
    for (const [ratio, name] of limits.ratios) {
      const rise = (ratio + left - bottom) / (right - left);
      const from = Math.max(0, -rise), to = Math.min(1, 1 - rise);
      const px = (t) => LEFT + t * (W - LEFT - RIGHT), py = (t) => foot - t * (foot - TOP);
      svg.append(make("path", { class: "ratio",
        d: `M${px(from)} ${py(from + rise)}L${px(to)} ${py(to + rise)}` }));
      const at = to - 0.06;
      svg.append(make("text", { class: "faint", "text-anchor": "middle",
        transform: `translate(${px(at)} ${py(at + rise) - 5}) rotate(-45)` }, name));
    }
    for (const session of panel.sessions) {
      const series = data.series[session.series];
      const spot = make("circle", { class: "spot", r: 3.2, fill: series.colour,
        cx: x(Math.log10(session.human)), cy: y(Math.log10(session.agent)) });
      spot.dataset.series = session.series;
      spot.addEventListener("pointermove", (event) => {
        const worth = session.performance === null ? "unknown" : fixed(session.performance);
        show(event, `${session.name}\n${series.name}\nagent ${whole(session.agent)}, ` +
          `human ${whole(session.human)} tokens (${(session.agent / session.human).toFixed(1)}:1)\n` +
          `final performance ${worth}`);
      });
      spot.addEventListener("pointerleave", hide);
      leads(spot, session);
      svg.append(spot);
    }
  };
  const drawBuckets = (host, panel) => {
    const height = 280, foot = height - BOTTOM, count = panel.stats.length;
    const x = between(0, count, LEFT, W - RIGHT);
    const y = between(-0.04, 1.12, foot, TOP);
    const svg = frame(host, panel.title, "", height,
      `Final performance by token ratio ${panel.title}`);
    axes(svg, height, "Agent tokens per human token", "Final performance");
    for (const value of [0, 0.2, 0.4, 0.6, 0.8, 1]) yTick(svg, y(value), fixed(value, 1));
    panel.edges.forEach((edge, index) => {
      const text = edge === null ? "∞" : String(edge);
      svg.prepend(make("path", { class: "grid", d: `M${x(index)} ${TOP}V${foot}` }));
      xTick(svg, height, x(index), text);
    });
    for (const session of panel.sessions) {
      const series = data.series[session.series];
      const spot = make("circle", { class: "spot", r: 2.6, fill: series.colour,
        cx: x(session.bucket + 0.5 + session.shift), cy: y(session.performance) });
      spot.dataset.series = session.series;
      spot.addEventListener("pointermove", (event) => show(event,
        `${session.name}\n${series.name}\nfinal performance ${fixed(session.performance)}`));
      spot.addEventListener("pointerleave", hide);
      leads(spot, session);
      svg.append(spot);
    }
    const known = panel.stats.map((bucket, index) => ({ ...bucket, index }))
      .filter((bucket) => bucket.mean !== null);
    const line = known.map((b) => `${x(b.index + 0.5)} ${y(b.mean)}`).join("L");
    svg.append(make("path", { class: "mean", d: `M${line}` }));
    for (const bucket of known) {
      const at = x(bucket.index + 0.5), error = bucket.sem || 0;
      svg.append(make("path", { class: "mean",
        d: `M${at} ${y(bucket.mean - error)}V${y(bucket.mean + error)}` }));
      const dot = make("circle", { cx: at, cy: y(bucket.mean), r: 4.5, fill: "var(--ink)" });
      dot.addEventListener("pointermove", (event) => show(event,
        `mean ${fixed(bucket.mean)}` + (bucket.sem === null ? "" : ` ±${fixed(bucket.sem)} SEM`) +
        `\n${counted(bucket.count)}`));
      dot.addEventListener("pointerleave", hide);
      svg.append(dot);
    }
    panel.stats.forEach((bucket, index) => svg.append(make("text", { class: "faint",
      x: x(index + 0.5), y: TOP + 8, "text-anchor": "middle" }, `n = ${bucket.count}`)));
  };

  const apply = () => {
    for (const node of document.querySelectorAll("svg [data-series]")) {
      node.classList.toggle("off-series", off.has(Number(node.dataset.series)));
    }
    for (const row of document.querySelectorAll("tr[data-series]")) {
      row.classList.toggle("off", off.has(Number(row.dataset.series)));
    }
  };
  const switches = document.getElementById("switches");
  if (data.series.length > 1) data.series.forEach((series, index) => {
    const button = document.createElement("button");
    const swatch = document.createElement("span");
    swatch.className = "swatch";
    swatch.style.background = series.colour;
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    button.append(swatch, series.name);
    button.addEventListener("click", () => {
      if (off.has(index)) off.delete(index); else off.add(index);
      button.setAttribute("aria-pressed", String(!off.has(index)));
      apply();
    });
    switches.append(button);
  });

  const host = (id) => document.getElementById(id);
  for (const panel of data.panels) drawCurve(host("curves"), panel, data.utility);
  if (data.left) for (const panel of data.panels) drawSurvival(host("survival"), panel);
  if (data.tokens) for (const panel of data.panels) {
    drawScatter(host("tokens"), panel, data.tokens);
  }
  for (const panel of data.buckets) drawBuckets(host("ratios"), panel);
  for (const link of document.querySelectorAll('a[href^="#"]')) {
    link.addEventListener("click", () => reveal(link.getAttribute("href").slice(1)));
  }
  addEventListener("hashchange", () => reveal(location.hash.slice(1)));
  reveal(location.hash.slice(1));
})();
