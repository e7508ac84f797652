// The output of a session: any of its versions, as a document or as what changed.

import { get, make, pieces } from "./dom.js";

export class Output {
  constructor(host, session) {
    this.host = host;
    this.session = session;
    this.drafts = [];
    this.chosen = null; // a version; null for the latest one
    this.shape = "document";
    this.shown = "";
    this.version = make("select", {
      id: "version",
      onchange: () => {
        this.chosen = this.version.value === "latest" ? null : Number(this.version.value);
        this.#show();
      },
    });
    this.against = make("select", { id: "against", onchange: () => this.#show() });
    this.toggle = make(
      "button",
      {
        type: "button",
        "aria-pressed": "false",
        onclick: () => {
          this.shape = this.shape === "document" ? "changes" : "document";
          this.toggle.setAttribute("aria-pressed", String(this.shape === "changes"));
          this.#show();
        },
      },
      "Changes",
    );
    this.since = make(
      "span",
      { class: "since" },
      make("label", { for: "against" }, " since "),
      this.against,
    );
    this.body = make("div", { class: "draft", "aria-live": "polite" });
    host.append(
      make(
        "p",
        { class: "choice" },
        make("label", { for: "version" }, "Draft "),
        this.version,
        " ",
        this.toggle,
        this.since,
      ),
      this.body,
    );
  }

  /** Learns which versions there are at the moment that is shown. */
  update(drafts) {
    if (drafts.length === this.drafts.length && drafts.length) return;
    this.drafts = drafts;
    const option = (draft) =>
      make(
        "option",
        { value: draft.version },
        `${drafts.indexOf(draft) + 1} by ${draft.actor.slice(0, 40)}`,
      );
    const recent = drafts.slice(-500);
    this.version.replaceChildren(
      make("option", { value: "latest" }, "latest"),
      ...recent.map(option).reverse(),
    );
    if (this.chosen !== null && !drafts.some((draft) => draft.version === this.chosen))
      this.chosen = null;
    this.version.value = this.chosen ?? "latest";
    const before = this.against.value;
    this.against.replaceChildren(
      make("option", { value: "" }, "the one before"),
      ...recent.map(option),
    );
    this.against.value = [...this.against.options].some((one) => one.value === before)
      ? before
      : "";
    this.#show();
  }

  /** Shows a version. */
  choose(version, shape = this.shape) {
    this.chosen = version;
    this.shape = shape;
    this.toggle.setAttribute("aria-pressed", String(shape === "changes"));
    if (![...this.version.options].some((one) => one.value === String(version))) {
      this.version.append(make("option", { value: version }, String(version)));
    }
    this.version.value = String(version);
    this.#show();
  }

  async #show() {
    this.since.hidden = this.shape !== "changes";
    const place =
      this.chosen === null
        ? this.drafts.length - 1
        : this.drafts.findIndex((draft) => draft.version === this.chosen);
    const draft = this.drafts[place];
    if (!draft) {
      this.shown = "";
      this.body.replaceChildren(make("p", { class: "quiet" }, "There is no output yet."));
      return;
    }
    const against = this.against.value || (this.drafts[place - 1]?.version ?? 0);
    const wanted = { session: this.session, version: draft.version, shape: this.shape, against };
    const name = JSON.stringify(wanted);
    if (name === this.shown) return;
    this.shown = name;
    try {
      const { html } = await get("/v1/session/output", wanted);
      if (this.shown === name) this.body.replaceChildren(pieces(html));
    } catch (error) {
      this.shown = "";
      this.body.replaceChildren(make("p", { class: "problem" }, error.message));
    }
  }
}
