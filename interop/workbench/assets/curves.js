// Curves of utility and of each measure of effort by round: small ones, one below the other.

import { drawPanel } from "./charts.js";
import { draw, make } from "./dom.js";

const LEFT = 44,
  RIGHT = 10,
  TOP = 6,
  BOTTOM = 6;
const TITLES = {
  rounds: "Human-led rounds",
  acts: "Human acts",
  tokens_written: "Tokens written",
  tokens_read: "Tokens read",
  deferrals: "Deferrals",
  seconds: "Time of the human",
  agent_tokens: "Agent tokens",
  human_tokens: "Human tokens",
  token_ratio: "Agent : human tokens",
};
const MOST_DOTS = 60;

const clock = (seconds) => {
  const whole = Math.round(seconds);
  const rest = String(whole % 60).padStart(2, "0");
  const minutes = Math.floor(whole / 60);
  return minutes < 60
    ? `${minutes}:${rest}`
    : `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${rest}`;
};
export const amount = (name, value) => {
  if (value === null || value === undefined) return "–";
  if (name === "utility") return value.toFixed(3);
  if (name === "seconds") return clock(value);
  return name === "token_ratio" ? value.toFixed(2) : Math.round(value).toLocaleString("en");
};

/** A value of each round, by name of the curve; of utility nothing before the first score. */
export const series = (points) => {
  let scored = false;
  const found = {
    utility: points.map((point) => {
      scored ||= point.value !== null && point.value !== undefined;
      return scored ? point.utility : null;
    }),
  };
  for (const name of Object.keys(TITLES)) {
    const values = points.map((point) => point.effort?.[name] ?? null);
    if (values.some((value) => value !== null)) found[name] = values;
  }
  return found;
};

export class Curves {
  /** @param {function(number): void} choose told which round was chosen */
  constructor(host, choose) {
    this.host = host;
    this.choose = choose;
    this.state = null;
    this.round = 0;
    this.drawn = "";
    this.marks = [];
    new ResizeObserver(() => this.#draw()).observe(host);
  }

  show(state) {
    this.state = state;
    this.drawn = "";
    this.#draw();
  }

  /** Marks the round that the transcript is at. */
  mark(round) {
    this.round = round;
    for (const { line, x } of this.marks) {
      line.setAttribute("visibility", round ? "visible" : "hidden");
      line.setAttribute("x1", x(round));
      line.setAttribute("x2", x(round));
    }
    this.#say(round);
  }

  #draw() {
    const width = this.host.clientWidth;
    if (!this.state || !width || this.drawn === String(width)) return;
    this.drawn = String(width);
    const { points, stops, missing } = this.state;
    this.values = series(points);
    this.marks = [];
    const flat = Object.entries(this.values)
      .filter(([name, values]) => name !== "utility" && !values.some((value) => value))
      .map(([name]) => name);
    const drawn = Object.entries(this.values).filter(([name]) => !flat.includes(name));
    if (missing)
      drawn.splice(
        drawn.findIndex(([name]) => name === "utility"),
        1,
      );
    const zero = flat.length
      ? [
          make(
            "p",
            { class: "quiet" },
            `Always 0: ${flat.map((name) => TITLES[name].toLowerCase()).join(", ")}.`,
          ),
        ]
      : [];
    const charts = drawn.map(([name, values]) =>
      this.#chart(name, values, width, name === "utility" ? 130 : 56, points, stops),
    );
    const note = missing ? [make("p", { class: "quiet" }, `No utility: ${missing}.`)] : [];
    this.said = make("p", { class: "said", role: "status" }, "");
    this.host.replaceChildren(this.said, ...note, ...charts, ...zero, this.#numbers(points));
    this.mark(this.round);
  }

  #chart(name, values, width, height, points, stops) {
    const rounds = values.length;
    const known = values.filter((value) => value !== null);
    const isUtility = name === "utility";
    const top = isUtility ? 1 : Math.max(...known, 1e-9);
    const ticks = isUtility
      ? [
          [0, "0"],
          [0.5, "0.5"],
          [1, "1"],
        ]
      : [[top, amount(name, top)]];
    const title = `${TITLES[name] ?? "Utility"} by round: at last ${amount(name, known.at(-1))}`;
    const dotted = rounds <= MOST_DOTS;
    const advised = isUtility ? Object.entries(stops) : [];
    const figure = {
      title,
      x: { low: Math.min(1, rounds - 1), high: Math.max(rounds, 2), ticks: [] },
      y: { low: 0, high: top, ticks },
      series: [],
    };
    const panel = {
      title: "",
      rules: advised.map(([, round]) => ({ x: [round, round], y: [0, 1], kind: "stop" })),
      lines: [
        {
          series: null,
          points: values.flatMap((value, index) =>
            value === null
              ? []
              : [
                  {
                    x: index + 1,
                    y: value,
                    size: dotted ? 0.14 : null,
                    hollow: isUtility && points[index].stale,
                  },
                ],
          ),
        },
      ],
    };
    const { svg, x, foot } = drawPanel(figure, panel, {
      width,
      height,
      left: LEFT,
      right: RIGHT,
      top: TOP,
      bottom: BOTTOM,
    });
    svg.setAttribute("class", `curve ${name}`);
    svg.setAttribute("height", height);
    for (const [tau, round] of advised) {
      svg.append(
        draw(
          "text",
          { class: "faint", x: x(round) + 3, y: TOP + 8 + 11 * (Number(tau) - 1) },
          `τ${tau}`,
        ),
      );
    }
    if (isUtility) this.#ratings(svg, points, x, height);
    const line = draw("line", { class: "here", y1: TOP, y2: foot, visibility: "hidden" });
    svg.append(line);
    this.marks.push({ line, x });
    const at = (event) => {
      const box = svg.getBoundingClientRect();
      const share = ((event.clientX - box.left) * (width / box.width) - x(1)) / (x(2) - x(1));
      return Math.min(Math.max(Math.round(share) + 1, 1), rounds);
    };
    svg.addEventListener("pointermove", (event) => this.#say(at(event)));
    svg.addEventListener("pointerleave", () => this.#say(this.round));
    svg.addEventListener("click", (event) => this.choose(at(event)));
    return make("figure", {}, make("figcaption", {}, TITLES[name] ?? "Utility"), svg);
  }

  /** How each round's progress was rated, as marks at the foot. */
  #ratings(svg, points, x, height) {
    if (points.length > 4 * MOST_DOTS) return;
    for (const point of points) {
      if (point.rating === null || point.rating === undefined) continue;
      const low = point.rating < Number(this.host.dataset.productive) ? " low" : "";
      svg.append(
        draw("rect", {
          class: `rated${low}`,
          x: x(point.round) - 2,
          width: 4,
          y: height - BOTTOM - 2 * point.rating,
          height: 2 * point.rating,
        }),
      );
    }
  }

  #say(round) {
    if (!this.said) return;
    const point = this.state.points[round - 1];
    if (!point) {
      this.said.textContent = this.state.points.length
        ? "A round: point at a curve."
        : "No rounds yet.";
      return;
    }
    const rating = point.pending ? "pending" : (point.rating ?? "missing");
    const utility = amount("utility", this.values.utility[round - 1]);
    const stale = point.stale ? " (stale)" : "";
    this.said.textContent = `Round ${round} (${point.stage ?? "initial"}): utility ${utility}${stale}, progress ${rating}`;
  }

  /** The same in numbers, for the keyboard and for those who do not see curves. */
  #numbers(points) {
    const details = make("details", { class: "numbers" }, make("summary", {}, "Numbers"));
    details.addEventListener("toggle", () => {
      if (!details.open || details.querySelector("table")) return;
      const names = Object.keys(this.values);
      const head = make(
        "tr",
        {},
        make("th", { scope: "col" }, "Round"),
        ...names.map((name) => make("th", { scope: "col" }, TITLES[name] ?? "Utility")),
        make("th", { scope: "col" }, "Progress"),
      );
      const rows = points
        .slice(-300)
        .map((point) =>
          make(
            "tr",
            {},
            make(
              "th",
              { scope: "row" },
              make(
                "button",
                { type: "button", onclick: () => this.choose(point.round) },
                String(point.round),
              ),
            ),
            ...names.map((name) =>
              make("td", { class: "number" }, amount(name, this.values[name][point.round - 1])),
            ),
            make(
              "td",
              { class: "number" },
              String(point.pending ? "pending" : (point.rating ?? "–")),
            ),
          ),
        );
      details.append(
        make(
          "div",
          { class: "wide", tabindex: 0, role: "region", "aria-label": "Numbers" },
          make("table", { class: "parts" }, make("thead", {}, head), make("tbody", {}, ...rows)),
        ),
      );
    });
    return details;
  }
}
