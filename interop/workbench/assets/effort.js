// Counts how long somebody reads, types and pauses here, where they have agreed to it; never what.

const TICK = 1000;
const REPORT = 15_000;
const TYPING = 2000; // milliseconds after a key that still count as typing
const PRESENT = 60_000; // without any sign of somebody, they are idle

/** What was observed since the last report. */
export class Observed {
  constructor() {
    this.reset();
  }

  reset() {
    this.reading = this.typing = this.idle = 0;
    this.inserted = this.deleted = 0;
  }

  /** A second has passed. */
  pass(seconds, sinceKey, sinceSign, visible) {
    if (!visible || sinceSign > PRESENT) this.idle += seconds;
    else if (sinceKey < TYPING) this.typing += seconds;
    else this.reading += seconds;
  }

  /** A text has another length. */
  change(before, after) {
    if (after > before) this.inserted += after - before;
    else this.deleted += before - after;
  }

  /** What to report; null where there is nothing. */
  report() {
    const { reading, typing, idle, inserted, deleted } = this;
    if (!(reading || typing || idle)) return null;
    this.reset();
    return { reading, typing, idle, inserted, deleted };
  }
}

/** Observes, while the box is ticked, and sends what it has seen now and then. */
export const observe = (box, drafts, send) => {
  const seen = new Observed();
  const lengths = new WeakMap();
  let key = -Infinity;
  let sign = performance.now();
  box.checked = drafts.read("effort") === true;
  box.addEventListener("change", () => {
    drafts.keep("effort", box.checked ? true : null);
    seen.reset();
  });
  document.addEventListener("input", (event) => {
    key = sign = performance.now();
    const length = /** @type {Partial<HTMLInputElement>} */ (event.target).value?.length ?? 0;
    seen.change(lengths.get(event.target) ?? length, length);
    lengths.set(event.target, length);
  });
  for (const name of ["pointermove", "scroll", "keydown"]) {
    document.addEventListener(
      name,
      () => {
        sign = performance.now();
      },
      { passive: true, capture: true },
    );
  }
  const flush = () => {
    const report = box.checked ? seen.report() : (seen.reset(), null);
    if (report) send(report).catch(() => {}); // counts that are lost say less, and nothing wrong
  };
  setInterval(() => {
    const now = performance.now();
    if (box.checked) seen.pass(TICK / 1000, now - key, now - sign, !document.hidden);
  }, TICK);
  setInterval(flush, REPORT);
  document.addEventListener("visibilitychange", flush);
};
