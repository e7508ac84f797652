// Sends what somebody did, in order, until the server has it: over reconnects, reloads and several tabs.

import { passes, post, RequestFailed } from "./dom.js";
import { freshId } from "./draft.js";

const FIRST = 500;
const LONGEST = 8000;
const KEPT = "outbox:";

/**
 * A queue of things done that have not been acknowledged. Each tab keeps one of its own, so that no tab
 * overwrites another's, and takes over those of tabs that are gone. A tab that lives holds a lock.
 * Browsers have no locks on pages that came over plain HTTP from another machine: there a queue may be
 * sent by two tabs, and the ids of what is sent keep it from being done twice.
 */
export class Outbox {
  /**
   * @param {import("./draft.js").Drafts} drafts where the queue is kept
   * @param {function(): object} who session and actor of each
   * @param {function(string): void} say shows how it stands
   */
  constructor(drafts, who, say) {
    this.drafts = drafts;
    this.who = who;
    this.say = say;
    this.tab = freshId();
    this.waiting = [];
    this.settled = new Map();
    this.running = false;
    this.wait = FIRST;
    this.asking = null; // aborts the request that is on its way
    this.waking = () => {}; // ends a pause between two attempts
    this.alive = this.#live().then(() => this.#adopt());
  }

  /** Sends something; resolves with the answer, or rejects where the server refuses it for good. */
  send(act) {
    const item = { ...act, id: freshId() };
    this.waiting.push(item);
    this.#keep();
    const answer = new Promise((resolve, reject) => this.settled.set(item.id, { resolve, reject }));
    this.run();
    return answer;
  }

  /** Sends what waits, one after the other. */
  async run() {
    if (this.running) return;
    this.running = true;
    await this.alive;
    while (this.waiting.length) {
      const item = this.waiting[0];
      let end = null;
      try {
        this.asking = new AbortController();
        const answer = await post(
          "/v1/participate/act",
          { ...this.who(), ...item },
          this.asking.signal,
        );
        end = (settled) => settled.resolve(answer);
        this.wait = FIRST;
        this.say("");
      } catch (error) {
        const known = error instanceof RequestFailed ? error.status : 0;
        if (passes(known) || known === 500 || known === 401) {
          this.say(`not sent yet: ${known === 401 ? error.message : "the server is away"}`);
          await new Promise((done) => {
            this.waking = () => done(null);
            setTimeout(done, this.wait);
          });
          this.wait = Math.min(this.wait * 2, LONGEST);
          continue;
        }
        end = (settled) => settled.reject(error);
      }
      this.waiting.shift();
      this.#keep();
      const settled = this.settled.get(item.id);
      this.settled.delete(item.id);
      if (settled) end(settled);
    }
    this.running = false;
  }

  /** The connection is there, or is lost: what waits is tried at once, or again later. */
  stands(live) {
    if (live) this.waking();
    else this.asking?.abort();
  }

  #keep() {
    this.drafts.keep(KEPT + this.tab, this.waiting.length ? this.waiting : null);
  }

  /** Holds this tab's lock for as long as it is there. */
  #live() {
    if (!navigator.locks) return Promise.resolve();
    return new Promise((held) => {
      navigator.locks
        .request(this.#lock(this.tab), () => {
          held();
          return new Promise(() => {});
        })
        .catch(held);
    });
  }

  #lock(tab) {
    return this.drafts.prefix + KEPT + tab;
  }

  /** Takes over the queues of tabs that are gone, before anything of its own. */
  async #adopt() {
    for (const name of this.drafts.names(KEPT)) {
      const take = () => {
        const found = this.drafts.read(name);
        if (!found || name === KEPT + this.tab) return;
        const known = new Set(this.waiting.map((item) => item.id));
        this.waiting.unshift(...found.filter((item) => !known.has(item.id)));
        this.#keep();
        this.drafts.keep(name, null);
      };
      if (!navigator.locks) take();
      else {
        await navigator.locks.request(this.drafts.prefix + name, { ifAvailable: true }, (lock) => {
          if (lock) take();
        });
      }
    }
  }
}
