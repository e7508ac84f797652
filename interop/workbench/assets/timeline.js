// The session along its minutes: rounds with ratings, utility, versions, stops, failures, and who worked when.
// It is the scrubber as well: a click or a drag takes the whole page to that time.

import { draw } from "./dom.js";

const LEFT = 72,
  RIGHT = 16,
  HEAD = 20,
  PLOT = 76,
  LANE = 16,
  FOOT = 20;
const MOST_LANES = 5; // more actors than that share a lane, but for the busiest
const APART = 18; // pixels between two marks
const MOST_MARKS = 24; // marks of failures in a lane
const MOST_DRAFTS = 60; // versions that are drawn with their numbers
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];

/** Of sorted numbers, how many are below one. */
export const rank = (sorted, value) => {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
};

/** The end of the axis of an open session: it leaves room, and changes seldom. */
const roomFor = (seconds) => {
  let end = 60;
  while (end < seconds * 1.05) end *= 1.5;
  return end;
};

const elapsed = (seconds) => {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const rest = String(whole % 60).padStart(2, "0");
  if (whole < 3600) return whole % 60 ? `${Math.floor(whole / 60)}:${rest}` : `${whole / 60} min`;
  return `${Math.floor(whole / 3600)}:${String(Math.floor(whole / 60) % 60).padStart(2, "0")} h`;
};

export class Timeline {
  /** @param {function(number): void} choose told which record was chosen */
  constructor(host, choose) {
    this.host = host;
    this.choose = choose;
    this.model = null;
    this.state = { points: [], stops: {} };
    this.drawn = "";
    new ResizeObserver(() => this.#draw()).observe(host);
    const at = (event) => {
      const box = host.getBoundingClientRect();
      const share = (event.clientX - box.left - LEFT) / Math.max(box.width - LEFT - RIGHT, 1);
      const time = this.begin + Math.min(Math.max(share, 0), 1) * (this.end - this.begin);
      const number = rank(this.model.times, time + 1e-3);
      this.choose(number >= this.model.count ? null : Math.max(number, 1));
    };
    host.addEventListener("pointerdown", (event) => {
      if (!this.model?.count) return;
      host.setPointerCapture(event.pointerId);
      at(event);
    });
    host.addEventListener("pointermove", (event) => {
      if (host.hasPointerCapture(event.pointerId)) at(event);
    });
  }

  /** Learns what has come, and which moment is shown. */
  show(model) {
    this.model = model;
    this.#draw();
  }

  /** Learns what the whole session came to so far. */
  measured(state) {
    this.state = state;
    this.drawn = "";
    this.#draw();
  }

  #draw() {
    const width = this.host.clientWidth;
    const { model } = this;
    if (!model?.count || !width) return;
    const drawn = `${width}/${model.count}`;
    if (drawn !== this.drawn || model.found !== this.found) {
      this.drawn = drawn;
      this.found = model.found;
      this.#all(width);
    }
    const number = model.at ?? model.count;
    const x = this.x(model.times[number - 1] ?? this.begin);
    this.play.setAttribute("transform", `translate(${x.toFixed(1)} 0)`);
    const round = rank(model.rounds, number + 1);
    for (const [place, box] of this.boxes.entries())
      box.classList.toggle("current", place + 1 === round);
  }

  #all(width) {
    const { model } = this;
    this.begin = model.times[0];
    const last = Math.max(model.times.at(-1), ...model.work.map(([, , to]) => to), this.begin + 1);
    this.end = model.closed ? last : this.begin + roomFor(last - this.begin);
    this.x = (time) =>
      LEFT + ((time - this.begin) / (this.end - this.begin)) * (width - LEFT - RIGHT);
    const lanes = this.#lanes();
    const foot = HEAD + PLOT + 4 + lanes.length * LANE;
    const svg = draw("svg", {
      viewBox: `0 0 ${width} ${foot + FOOT}`,
      height: foot + FOOT,
      class: "timeline",
      role: "img",
      "data-name": "Timeline",
      "aria-label": `${model.rounds.length} round${model.rounds.length === 1 ? "" : "s"} in ${elapsed(last - this.begin)}, with utility and who worked when`,
    });
    this.#rounds(svg, foot);
    this.#utility(svg, width);
    const first = lanes.findIndex(([, kind]) => kind === "agent"); // it shows the failures
    lanes.forEach((lane, place) => {
      this.#lane(svg, HEAD + PLOT + 4 + place * LANE, lane, place === first);
    });
    this.#stops(svg, foot);
    for (const number of this.model.found) {
      svg.append(
        draw("path", {
          class: "hit",
          d: `M${this.x(this.model.times[number - 1]).toFixed(1)} ${HEAD - 4}V${foot}`,
        }),
      );
    }
    this.#axis(svg, foot, width);
    this.play = draw("path", { class: "play", d: `M-5 ${HEAD - 4}h10l-5 6zM0 ${HEAD}V${foot}` });
    svg.append(this.play);
    this.host.replaceChildren(svg);
  }

  /** Title, role and actors of each lane: the humans first; where there are many, the least busy share one. */
  #lanes() {
    const roles = new Map(this.model.actors);
    const count = new Map();
    for (const [name] of this.model.work) count.set(name, (count.get(name) ?? 0) + 1);
    const names = [...count.keys()].filter(
      (name) => roles.get(name) === "human" || roles.get(name) === "agent",
    );
    names.sort(
      (a, b) =>
        Number(roles.get(b) === "human") - Number(roles.get(a) === "human") ||
        count.get(b) - count.get(a),
    );
    const shown = names.length > MOST_LANES ? names.slice(0, MOST_LANES - 1) : names;
    const rest = names.slice(shown.length);
    const lanes = shown.map((name) => [name, roles.get(name), new Set([name])]);
    if (rest.length) lanes.push([`${rest.length} more`, "agent", new Set(rest)]);
    return lanes;
  }

  #rounds(svg, foot) {
    const { rounds, times } = this.model;
    let line = -Infinity;
    this.boxes = rounds.map((number, place) => {
      const x = this.x(times[number - 1]);
      const next = rounds[place + 1];
      const wide = (next ? this.x(times[next - 1]) : this.x(this.end)) - x;
      const box = draw(
        "g",
        { class: "round" },
        draw("rect", { x, y: 0, width: Math.max(wide, 0), height: foot }),
      );
      if (x >= line + 6) {
        line = x; // the lines of short rounds would fill the chart
        box.append(draw("path", { d: `M${x.toFixed(1)} 0V${foot}` }));
      }
      const label = `Round ${place + 1}`;
      const room = 8 * label.length + 3;
      const text = wide > room ? label : wide > 8 * String(place + 1).length + 8 ? place + 1 : "";
      if (text) box.append(draw("text", { x: x + 4, y: 14 }, String(text)));
      const rating = this.state.points[place]?.rating;
      if (rating && wide > room + 30) {
        for (let mark = 1; mark <= 5; mark += 1) {
          const kind = mark > rating ? "" : rating < 3 ? " low" : " given";
          box.append(
            draw("rect", {
              class: `rate${kind}`,
              x: x + room + mark * 5,
              y: 5,
              width: 4,
              height: 10,
            }),
          );
        }
      }
      const rated = rating ? `, rated ${rating} of 5` : "";
      box.append(draw("title", {}, `Round ${place + 1}${rated}`));
      svg.append(box);
      return box;
    });
  }

  #utility(svg, width) {
    const { rounds, times, drafts } = this.model;
    const y = (value) => HEAD + 6 + (PLOT - 12) * (1 - Math.min(Math.max(value, 0), 1));
    for (const [value, text] of [
      [1, "1"],
      [0, "0"],
    ]) {
      svg.append(
        draw("path", { class: "grid", d: `M${LEFT} ${y(value)}H${width - RIGHT}` }),
        draw("text", { x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, text),
      );
    }
    svg.append(draw("text", { x: 0, y: y(0.5) + 4 }, "Utility"));
    if (this.state.missing) {
      svg.append(
        draw("text", { x: LEFT + 8, y: y(0.5) + 4, class: "none" }, `none: ${this.state.missing}`),
      );
      return;
    }
    let path = "";
    let scored = false;
    const values = [];
    this.state.points.forEach((point, place) => {
      scored ||= point.value !== null && point.value !== undefined;
      const after = rounds[place + 1] ?? Infinity;
      const own = drafts.filter(({ number }) => number >= rounds[place] && number < after);
      const at = times[(own.at(-1)?.number ?? rounds[place]) - 1];
      if (scored && at !== undefined) {
        path += path
          ? `H${this.x(at).toFixed(1)}V${y(point.utility).toFixed(1)}`
          : `M${this.x(at).toFixed(1)} ${y(point.utility).toFixed(1)}`;
        values.push([at, point.utility]);
      }
    });
    if (!path) return;
    const now = this.x(times.at(-1)).toFixed(1);
    const [first] = values;
    svg.append(
      draw("path", { class: "area", d: `${path}H${now}V${y(0)}H${this.x(first[0]).toFixed(1)}z` }),
      draw("path", { class: "course", d: `${path}H${now}` }),
    );
    if (drafts.length > MOST_DRAFTS) return;
    drafts.forEach((draft, place) => {
      const time = times[draft.number - 1];
      const stands = values.filter(([at]) => at <= time + 1e-6).at(-1) ?? first;
      const dot = draw(
        "g",
        {
          class: "version",
          transform: `translate(${this.x(time).toFixed(1)} ${y(stands[1]).toFixed(1)})`,
        },
        draw("circle", { r: 8 }),
        draw("text", { y: 4, "text-anchor": "middle" }, String(place + 1)),
        draw("title", {}, `Draft ${place + 1}, by ${draft.actor}`),
      );
      svg.append(dot);
    });
  }

  #lane(svg, top, lane, fails) {
    const [title, kind, names] = lane;
    const { work, failed } = this.model;
    let path = "";
    for (const [name, from, to] of work) {
      if (!names.has(name)) continue;
      const left = this.x(Math.max(from, this.begin));
      path += `M${left.toFixed(1)} ${top + 2}h${Math.max(this.x(to) - left, 2).toFixed(1)}v12H${left.toFixed(1)}z`;
    }
    const name = title.length > 10 ? `${title.slice(0, 9)}…` : title;
    svg.append(
      draw("text", { x: 0, y: top + 12 }, name, draw("title", {}, title)),
      draw("path", { class: `stints ${kind}`, d: path }),
    );
    if (!fails) return;
    for (const { x, numbers } of this.#apart(failed)) {
      const many = numbers.length > 1;
      const named = many
        ? `${numbers.length} failures, from record ${this.#label(numbers[0])} to ${this.#label(numbers.at(-1))}`
        : `record ${this.#label(numbers[0])} failed`;
      svg.append(
        draw(
          "g",
          { class: "failure", transform: `translate(${x.toFixed(1)} ${top + 8})` },
          draw("circle", { r: many ? 7 : 6 }),
          many
            ? draw("text", { y: 3.5, "text-anchor": "middle" }, String(numbers.length))
            : draw("path", { d: "M-3-3l6 6M3-3l-6 6" }),
          draw("title", {}, named),
        ),
      );
    }
  }

  #label(number) {
    return this.model.labels[number - 1];
  }

  /** Records whose marks would overlap become one. */
  #apart(numbers) {
    const apart = Math.max(APART, this.host.clientWidth / MOST_MARKS);
    const close = numbers.length > MOST_MARKS ? apart : APART;
    const groups = [];
    for (const number of numbers) {
      const x = this.x(this.model.times[number - 1]);
      const last = groups.at(-1);
      if (last && x - last.x < close) last.numbers.push(number);
      else groups.push({ x, numbers: [number] });
    }
    return groups;
  }

  #stops(svg, foot) {
    const { rounds, times } = this.model;
    for (const [tau, round] of Object.entries(this.state.stops)) {
      const number = rounds[round];
      const x = this.x(number ? times[number - 1] : times.at(-1));
      const edge = x > this.host.clientWidth - RIGHT - 36;
      const label = draw(
        "text",
        {
          x: edge ? x - 4 : x + 4,
          "text-anchor": edge ? "end" : "start",
          y: HEAD + PLOT - 2 - 12 * (Number(tau) - 1),
          class: "stop",
        },
        `τ = ${tau}`,
      );
      svg.append(draw("path", { class: "stop", d: `M${x.toFixed(1)} ${HEAD}V${foot}` }), label);
    }
  }

  #axis(svg, foot, width) {
    const seconds = this.end - this.begin;
    const wanted = Math.max(Math.floor((width - LEFT) / 160), 1);
    const step =
      STEPS.find((one) => seconds / one <= wanted) ?? Math.ceil(seconds / wanted / 86400) * 86400;
    for (let at = 0; at <= seconds; at += step) {
      const x = this.x(this.begin + at);
      const anchor = at === 0 ? "start" : x > width - RIGHT - 24 ? "end" : "middle";
      svg.append(draw("text", { x, y: foot + 14, "text-anchor": anchor }, elapsed(at)));
    }
  }
}
