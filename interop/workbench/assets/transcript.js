// A long transcript of which only what is in sight is there: parts are loaded, and let go again.

import { make, pieces } from "./dom.js";

const SIZE = 20; // records in a part: as many as can be put in and laid out without a pause
const NEAR = "900px 0px"; // how far out of sight a part is loaded
const REST = 70; // milliseconds that a part has to stay in reach before it is loaded
const PASSED = 120; // milliseconds between two looks at what stands at the top
const GUESS = 64; // pixels of an entry, until some have been seen

class Part {
  constructor(first) {
    this.first = first;
    this.filled = 0; // up to which record it is loaded
    this.height = 0;
    this.seen = false;
    this.loading = null;
    this.timer = null;
    this.node = make("div", { class: "part", "data-part": first });
  }

  get last() {
    return this.first + SIZE - 1;
  }
}

/** Hides outcomes that another part shows in the entries of their calls. */
export const hideJoined = (host) => {
  for (const { dataset } of host.querySelectorAll(".result[data-i]"))
    host.querySelector(`article[data-i="${dataset.i}"]`)?.classList.add("merged");
};

export class Transcript {
  /**
   * @param {HTMLElement} root what scrolls
   * @param {HTMLElement} host what holds the parts
   * @param {function(number, number): Promise<string>} load the HTML of some records
   * @param {function(number): void} passed told which record stands at the top
   */
  constructor(root, host, load, passed) {
    this.root = root;
    this.host = host;
    this.load = load;
    this.passed = passed;
    this.parts = [];
    this.count = 0;
    this.cut = null;
    this.average = GUESS;
    this.observer = new IntersectionObserver((entries) => this.#sighted(entries), {
      root,
      rootMargin: NEAR,
    });
    let waiting = false;
    root.addEventListener(
      "scroll",
      () => {
        if (waiting) return;
        waiting = true;
        setTimeout(() => {
          waiting = false;
          this.passed(this.top());
        }, PASSED);
      },
      { passive: true },
    );
  }

  /** Learns how many records there are. */
  grow(count) {
    this.count = count;
    while (this.parts.length * SIZE < count) {
      const part = new Part(this.parts.length * SIZE + 1);
      this.#guess(part);
      this.parts.push(part);
      this.host.append(part.node);
      this.observer.observe(part.node);
    }
    for (const part of this.parts.slice(-2)) {
      if (part.seen) this.#fill(part);
      else if (!part.filled) this.#guess(part);
    }
    this.#cutParts();
  }

  /** Shows it as it was after some records; null for all. */
  show(cut) {
    this.cut = cut;
    this.#cutParts();
  }

  /** The record that stands at the top, or the first one in sight. */
  top() {
    const box = this.root.getBoundingClientRect();
    for (const offset of [8, 40, 90]) {
      const found = document.elementFromPoint(box.left + box.width / 2, box.top + offset);
      const entry = found?.closest("[data-i]");
      if (entry && this.host.contains(entry)) return Number(entry.dataset.i);
      const part = found?.closest("[data-part]");
      if (part && this.host.contains(part)) return Number(part.dataset.part);
    }
    return 1;
  }

  get atEnd() {
    return this.root.scrollHeight - this.root.scrollTop - this.root.clientHeight < 80;
  }

  /** Brings a record into sight. */
  async reach(number, block = "nearest") {
    const part = this.parts[Math.floor((number - 1) / SIZE)];
    if (!part) return;
    if (part.filled < number) {
      this.#bring(part.node, "start");
      part.seen = true;
      await this.#fill(part);
    }
    const found =
      part.node.querySelector(`article[data-i="${number}"]:not(.merged)`) ??
      part.node.querySelector(`.result[data-i="${number}"]`) ??
      part.node;
    found.closest("details.run")?.setAttribute("open", "");
    const target = block === "start" ? found.previousElementSibling : null;
    this.#bring(target?.matches("h2") ? target : found, block);
  }

  /** Marks a record that was found. */
  mark(number) {
    for (const node of this.host.querySelectorAll(".hit")) node.classList.remove("hit");
    this.host.querySelector(`[data-i="${number}"]:not(.merged)`)?.classList.add("hit");
  }

  /** Scrolls the transcript, and nothing around it. */
  #bring(node, block) {
    const box = node.getBoundingClientRect();
    const room = this.root.getBoundingClientRect();
    if (block === "start") this.root.scrollTop += box.top - room.top - 4;
    else if (block === "end" || box.bottom > room.bottom)
      this.root.scrollTop += box.bottom - room.bottom + 12;
    else if (box.top < room.top) this.root.scrollTop += box.top - room.top - 40;
  }

  #sighted(entries) {
    for (const entry of entries) {
      const part = this.parts[(Number(entry.target.dataset.part) - 1) / SIZE];
      part.seen = entry.isIntersecting;
      clearTimeout(part.timer);
      if (part.seen)
        part.timer = setTimeout(() => {
          if (part.seen) this.#fill(part);
        }, REST);
      else if (part.filled)
        part.timer = setTimeout(() => {
          if (!part.seen) this.#let(part);
        }, 4 * REST);
    }
  }

  async #fill(part) {
    if (part.loading) {
      await part.loading;
      if (!part.seen) return;
    }
    const last = Math.min(part.last, this.count);
    if (part.filled >= last) return;
    const first = Math.max(part.first, part.filled + 1);
    part.loading = this.load(first, last)
      .then((html) => {
        if (part.filled >= last) return;
        if (!part.filled) part.node.replaceChildren();
        part.node.append(pieces(html));
        part.node.style.minHeight = "";
        part.filled = last;
        hideJoined(this.host);
        this.#cutPart(part);
      })
      .catch((error) => {
        part.seen = false; // it is loaded when it comes into sight again
        if (!part.filled) part.node.replaceChildren(make("p", { class: "problem" }, error.message));
      })
      .finally(() => {
        part.loading = null;
      });
    await part.loading;
  }

  /** Lets go of a part that is far away; its room stays. */
  #let(part) {
    if (!part.filled || part.node.contains(document.activeElement)) return;
    part.height = part.node.offsetHeight;
    if (part.filled === part.last) {
      this.average = 0.8 * this.average + 0.2 * (part.height / SIZE);
    }
    part.filled = 0;
    part.node.replaceChildren();
    this.#guess(part);
  }

  #guess(part) {
    const records = Math.min(part.last, this.count) - part.first + 1;
    part.node.style.minHeight = `${Math.round(part.height || records * this.average)}px`;
  }

  #cutParts() {
    for (const part of this.parts) {
      part.node.hidden = this.cut !== null && part.first > this.cut;
      if (part.filled) this.#cutPart(part);
    }
  }

  #cutPart(part) {
    for (const node of part.node.querySelectorAll("[data-i]")) {
      const number = Number(node.dataset.i);
      node.hidden = this.cut !== null && number > this.cut;
      node.classList.toggle("now", number === this.cut);
    }
  }
}
