// Who worked when: a row for each actor, stretches of work along the session's time.

import { draw, make } from "./dom.js";

const ROW = 26, LEFT = 8, RIGHT = 8, FOOT = 22;

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

export class Work {
  /** @param {function(number)} choose told which record was chosen */
  constructor(host, choose, clock) {
    this.host = host;
    this.choose = choose;
    this.clock = clock;
    this.drawn = "";
    new ResizeObserver(() => this.#draw()).observe(host);
  }

  show(model) {
    this.model = model;
    this.#draw();
  }

  #draw() {
    const width = this.host.clientWidth;
    if (!this.model || !width) return;
    const { work, times, at, count } = this.model;
    const drawn = `${width}/${work.length}/${times.length}`;
    const moment = at ?? count;
    if (drawn !== this.drawn) {
      this.drawn = drawn;
      this.#chart(width);
    }
    if (this.cut) {
      const x = this.x(times[Math.max(moment - 1, 0)] ?? 0);
      this.cut.setAttribute("d", `M${x} 0V${this.foot}`);
      this.later.setAttribute("x", x);
      this.later.setAttribute("width", Math.max(width - RIGHT - x, 0));
    }
  }

  #chart(width) {
    const { work, times, actors } = this.model;
    const roles = new Map(actors);
    const names = [...new Set([...roles.keys(), ...work.map((stint) => stint[0])])]
      .filter((name) => work.some((stint) => stint[0] === name));
    if (!names.length) {
      this.host.replaceChildren(make("p", { class: "quiet" }, "Nobody has worked yet."));
      return;
    }
    let begin = Infinity;
    let end = -Infinity;
    for (const [, from, to] of work) {
      begin = Math.min(begin, from);
      end = Math.max(end, to);
    }
    begin = Math.min(begin, times[0] ?? begin);
    end = Math.max(end, times.at(-1) ?? end, begin + 1e-6);
    const x = this.x = (time) => LEFT + ((time - begin) / (end - begin)) * (width - LEFT - RIGHT);
    this.foot = names.length * (ROW + 14);
    const height = this.foot + FOOT;
    const svg = draw("svg", {
      viewBox: `0 0 ${width} ${height}`, height, role: "img", class: "work",
      "aria-label": `Who worked when: ${names.join(", ")}`,
    });
    names.forEach((name, row) => {
      const top = row * (ROW + 14) + 14;
      let path = "";
      for (const [actor, from, to] of work) {
        if (actor !== name) continue;
        const left = x(from);
        path += `M${left.toFixed(1)} ${top}h${Math.max(x(to) - left, 0.8).toFixed(1)}v${ROW - 8}H${left.toFixed(1)}z`;
      }
      svg.append(draw("text", { x: LEFT, y: top - 3 }, name.slice(0, 60)));
      svg.append(draw("path", { class: `stints ${roles.get(name) ?? "environment"}`, d: path }));
    });
    for (const share of [0, 0.5, 1]) {
      const anchor = ["start", "middle", "end"][share * 2];
      const at = begin + share * (end - begin);
      svg.append(draw("text", { x: x(at), y: height - 6, "text-anchor": anchor }, this.clock(at)));
    }
    this.later = draw("rect", { class: "later", y: 0, height: this.foot });
    this.cut = draw("path", { class: "here" });
    svg.append(this.later, this.cut);
    svg.addEventListener("click", (event) => {
      const box = svg.getBoundingClientRect();
      const time = begin + (((event.clientX - box.left) * (width / box.width) - LEFT)
        / (width - LEFT - RIGHT)) * (end - begin);
      this.choose(Math.min(Math.max(rank(this.model.times, time), 1), this.model.times.length));
    });
    const note = "A stretch begins with the latest that the actor had seen when it decided, or with "
      + "its own act before, and ends with the act. Click to go back to that time.";
    this.host.replaceChildren(svg, make("p", { class: "quiet" }, note));
  }
}
