// The shared output: what is typed becomes versions; a version that arrives meanwhile is offered to merge.

import { get, make, pieces, post, soon } from "./dom.js";

const PAUSE = 3000; // milliseconds without a key after which what was typed is saved

/** The editor of the output. */
export class Editor {
  /**
   * @param {object} who session and actor
   * @param {import("./draft.js").Drafts} drafts keeps what is not saved
   * @param {import("./outbox.js").Outbox} outbox sends versions
   */
  constructor(who, drafts, outbox) {
    this.who = who;
    this.drafts = drafts;
    this.outbox = outbox;
    this.box = document.getElementById("editor");
    this.bar = document.getElementById("merge");
    this.why = document.getElementById("merge-why");
    this.saved = document.getElementById("saved");
    this.versions = document.getElementById("versions");
    this.auto = document.getElementById("autosave");
    this.base = null; // version that the text was made from
    this.original = ""; // its text
    this.latest = null; // the newest version, by anybody
    this.timer = null;
    this.author = "someone"; // of the newest version
    this.other = "someone"; // else who has changed it last
    this.saving = false;
    this.refresh = soon(() => this.renew(), 60);
    this.changes = document.getElementById("changes");
    this.accepted = drafts.read("accepted") ?? null; // the text that they have accepted
    /** @type {function(number): void} */
    this.pending = () => {}; // is told how many changes wait for them
    this.judging = false;
    this.waiting = []; // changes that they have not judged, in the version that they look at
    const kept = drafts.read("output");
    if (kept) {
      this.base = kept.base;
      this.original = kept.original;
      this.box.value = kept.text;
      this.say("not saved yet");
    }
    this.box.addEventListener("input", () => this.typed());
    this.box.addEventListener("keydown", (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key === "s") {
        event.preventDefault();
        this.save();
      }
    });
    document.getElementById("save").addEventListener("click", () => this.save());
    document.getElementById("merge-both").addEventListener("click", () => this.merge());
    document.getElementById("merge-theirs").addEventListener("click", () => this.take(this.latest));
    document.getElementById("merge-mine").addEventListener("click", () => this.keepMine());
    this.versions.addEventListener("change", () => this.goBack());
  }

  /** Whether something is typed that no version holds. */
  get dirty() {
    return this.box.value !== this.original;
  }

  say(text) {
    this.saved.textContent = text;
  }

  typed() {
    this.keep();
    this.say(this.dirty ? "not saved yet" : "");
    clearTimeout(this.timer);
    if (this.auto.checked && this.bar.hidden) this.timer = setTimeout(() => this.save(), PAUSE);
  }

  keep() {
    const text = this.box.value;
    this.drafts.keep(
      "output",
      this.dirty ? { base: this.base, original: this.original, text } : null,
    );
  }

  /** A version was put up. */
  arrived(version, actor) {
    this.versions.append(
      make("option", { value: version }, `version ${this.versions.length}, by ${actor}`),
    );
    this.latest = version;
    this.author = actor;
    if (actor !== "you") this.other = actor;
    this.refresh();
  }

  /** Shows the newest version, or offers it where something is typed. */
  async renew() {
    if (this.latest === null || this.latest === this.base || this.saving) return;
    if (this.dirty) this.offer(this.author);
    else await this.take(this.latest);
  }

  offer(actor) {
    clearTimeout(this.timer);
    this.why.textContent = `${actor} has changed the output while you were typing. Nothing of yours is lost.`;
    this.bar.hidden = false;
  }

  /** Shows a version in place of what is there, unless that is changed before the version has come. */
  async take(version) {
    const before = this.box.value;
    const found = await get("/v1/participate/output", { ...this.who, version: version ?? "" });
    if (version !== this.latest && version !== null) return; // a newer one has arrived meanwhile
    if (this.box.value !== before) {
      this.offer(this.author);
      return;
    }
    this.settle(found.version, found.text);
    this.box.value = found.text;
    this.keep();
    this.say(found.version === null ? "" : `version ${found.number}, by ${found.actor}`);
    await this.judge();
  }

  /** Shows each change by others since the text that they accepted, to accept, change or undo. */
  async judge() {
    if (this.accepted === null) this.accept(this.original); // the first draft is new as a whole
    const found = await post("/v1/participate/changes", { ...this.who, text: this.accepted ?? "" });
    if (found.version !== this.base || this.dirty) return; // it has changed meanwhile: it is judged again
    const author = this.other;
    this.waiting = found.stretches;
    this.changes.replaceChildren(...found.stretches.map((one) => this.card(one, author)));
    if (found.stretches.length > 1) {
      this.changes.prepend(
        make(
          "p",
          { class: "tools" },
          `${found.stretches.length} changes `,
          make("button", { type: "button", onclick: () => this.acceptAll() }, "Accept all"),
        ),
      );
    }
    this.pending(found.stretches.length);
  }

  card(one, author) {
    const accept = () => {
      this.record(1);
      const lines = (this.accepted ?? "").split("\n");
      lines.splice(one.old, one.taken.length, ...one.put);
      this.accept(lines.join("\n"));
      this.judge();
    };
    const change = () => {
      const before = this.original.split("\n").slice(0, one.new).join("\n");
      const from = before.length + (one.new ? 1 : 0);
      this.box.focus();
      this.box.setSelectionRange(from, from + one.put.join("\n").length);
    };
    const undo = () => {
      if (this.dirty) return this.say("save your own changes first");
      const lines = this.original.split("\n");
      lines.splice(one.new, one.put.length, ...one.taken);
      this.box.value = lines.join("\n");
      this.judging = true;
      this.record(0);
      return this.save();
    };
    return make(
      "section",
      { class: "change", "aria-label": `A change by ${author}` },
      pieces(one.html),
      make(
        "p",
        { class: "tools" },
        make("span", {}, one.under ? `${author} changed “${one.under}”` : `${author} changed this`),
        make("button", { type: "button", onclick: undo }, "Undo"),
        make("button", { type: "button", onclick: change }, "Change …"),
        make("button", { type: "button", class: "primary", onclick: accept }, "Accept"),
      ),
    );
  }

  accept(text) {
    this.accepted = text;
    this.drafts.keep("accepted", text);
  }

  /** The log keeps which share of a version's changes they kept. */
  record(kept, of = this.base) {
    if (of !== null)
      this.outbox.send({ act: "judge", of, kept }).catch((error) => this.say(error.message));
  }

  /** The share of the changes that wait which a text of theirs keeps, by lines. */
  shareKept(text) {
    const lines = new Set(text.split("\n"));
    const found = this.waiting.flatMap((one) =>
      one.put.length
        ? one.put.map((line) => lines.has(line))
        : one.taken.map((line) => !lines.has(line)),
    );
    return found.filter(Boolean).length / found.length;
  }

  acceptAll() {
    this.record(1);
    this.accept(this.original);
    return this.judge();
  }

  settle(version, text) {
    this.base = version;
    this.original = text;
    this.bar.hidden = true;
  }

  /** Puts both together, for the person to look through and save. */
  async merge() {
    const mine = this.box.value;
    const merged = await post("/v1/participate/merge", { ...this.who, base: this.base, mine });
    const latest = await get("/v1/participate/output", {
      ...this.who,
      version: merged.version ?? "",
    });
    if (this.box.value !== mine) return; // typed on meanwhile: the choice stands again
    this.settle(merged.version, latest.text);
    this.box.value = merged.text;
    this.keep();
    this.say(
      merged.conflicts
        ? `merged; look for <<<<<<< in ${merged.conflicts} place${merged.conflicts > 1 ? "s" : ""}, then save`
        : "merged; look it through, then save",
    );
    this.box.focus();
  }

  /** The text stays as it is typed, and is to follow the newest version. */
  async keepMine() {
    const latest = await get("/v1/participate/output", { ...this.who, version: this.latest ?? "" });
    this.settle(latest.version, latest.text);
    this.keep();
    this.say("yours is kept; save it to share it");
  }

  /** Puts up what is typed as a version. */
  async save() {
    clearTimeout(this.timer);
    if (this.saving || !this.bar.hidden || !this.dirty) return;
    const text = this.box.value;
    const of = this.base;
    this.saving = true;
    this.say("saving …");
    try {
      const answer = await this.outbox.send({ act: "submit", content: text, base: this.base });
      this.settle(answer.version, text);
      if (!this.judging) {
        if (this.waiting.length) this.record(this.shareKept(text), of);
        this.waiting = [];
        this.accept(text); // they have seen what they saved
      }
      this.judging = false;
      this.author = "you";
      this.keep();
      await this.judge();
      this.say(this.dirty ? "not saved yet" : "saved as a version");
    } catch (error) {
      if (error.status === 409) this.offer(this.author);
      else this.say(`not saved: ${error.message}`);
    } finally {
      this.saving = false;
    }
    if (this.dirty && this.bar.hidden && this.auto.checked) this.typed();
    else this.refresh();
  }

  /** Puts the text of an earlier version into the editor, to be saved as a new one. */
  async goBack() {
    const version = this.versions.value;
    if (!version) return;
    const before = this.box.value;
    const found = await get("/v1/participate/output", { ...this.who, version });
    if (this.box.value !== before) {
      this.versions.value = "";
      return; // typed on meanwhile: it can be chosen again
    }
    this.box.value = found.text;
    this.typed();
    this.say(`as in version ${found.number}; save to use it again`);
    clearTimeout(this.timer);
    this.versions.value = "";
    this.box.focus();
  }

  /** Nothing can be changed any more. */
  close() {
    clearTimeout(this.timer);
    this.box.readOnly = true;
    for (const button of document.querySelectorAll(".output button, .output select"))
      button.toggleAttribute("disabled", true);
    this.changes.replaceChildren();
  }
}
