// Sends what somebody did, in order, until the server has it: over reconnects and reloads.

import { post, RequestFailed } from "./dom.js";
import { freshId } from "./draft.js";

const FIRST = 500;
const LONGEST = 8000;

/** A queue of things done that have not been acknowledged. */
export class Outbox {
  /**
   * @param {Drafts} drafts where the queue is kept
   * @param {function(): object} who session and actor of each
   * @param {function(string)} say shows how it stands
   */
  constructor(drafts, who, say) {
    this.drafts = drafts;
    this.who = who;
    this.say = say;
    this.waiting = drafts.read("outbox") ?? [];
    this.settled = new Map();
    this.running = false;
    this.wait = FIRST;
  }

  /** Sends something; resolves with the answer, or rejects where the server refuses it for good. */
  send(act) {
    const item = { ...act, id: freshId() };
    this.waiting.push(item);
    this.drafts.keep("outbox", this.waiting);
    const answer = new Promise((resolve, reject) => this.settled.set(item.id, { resolve, reject }));
    this.run();
    return answer;
  }

  /** Sends what waits, one after the other. */
  async run() {
    if (this.running) return;
    this.running = true;
    while (this.waiting.length) {
      const item = this.waiting[0];
      let end = null;
      try {
        const answer = await post("/v1/take/act", { ...this.who(), ...item });
        end = (settled) => settled.resolve(answer);
        this.wait = FIRST;
        this.say("");
      } catch (error) {
        const later = !(error instanceof RequestFailed) || error.status === 0 || error.status === 429
          || error.status >= 500;
        if (later) {
          this.say("not sent yet: the server is away");
          await new Promise((done) => setTimeout(done, this.wait));
          this.wait = Math.min(this.wait * 2, LONGEST);
          continue;
        }
        end = (settled) => settled.reject(error);
      }
      this.waiting.shift();
      this.drafts.keep("outbox", this.waiting.length ? this.waiting : null);
      const settled = this.settled.get(item.id);
      this.settled.delete(item.id);
      if (settled) end(settled);
    }
    this.running = false;
  }
}
