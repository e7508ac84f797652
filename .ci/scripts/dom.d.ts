// The elements of the pages, which Python makes: what the type check knows of them.

/** The form with which reviewers add to a session. */
interface ReviewForm extends HTMLFormElement {
  readonly elements: HTMLFormControlsCollection & {
    by: HTMLInputElement;
    tags: HTMLInputElement;
    comment: HTMLTextAreaElement;
    about: RadioNodeList;
    rating: RadioNodeList & Iterable<HTMLInputElement>;
  };
}
/** The form with which reviewers tag selected sessions. */
interface TagForm extends HTMLFormElement {
  readonly elements: HTMLFormControlsCollection & { by: HTMLInputElement; tags: HTMLInputElement };
}
/** The form that adds an alert rule. */
interface RuleForm extends HTMLFormElement {
  readonly elements: HTMLFormControlsCollection & { rule: HTMLInputElement };
}

/** Elements that are more than an HTMLElement, by id. */
interface Ids {
  after: HTMLAnchorElement;
  autosave: HTMLInputElement;
  columns: HTMLFormElement;
  "compare-selected": HTMLAnchorElement;
  editor: HTMLTextAreaElement;
  every: HTMLInputElement;
  export: HTMLDetailsElement;
  "export-selected": HTMLAnchorElement;
  "f-q": HTMLInputElement;
  "failure-after": HTMLButtonElement;
  "failure-before": HTMLButtonElement;
  filters: HTMLFormElement;
  find: HTMLInputElement;
  "fork-dialog": HTMLDialogElement;
  "fork-form": HTMLFormElement;
  instance: HTMLInputElement;
  keys: HTMLDialogElement;
  model: HTMLInputElement;
  "pair-selected": HTMLAnchorElement;
  palette: HTMLDialogElement;
  "palette-field": HTMLInputElement;
  part: HTMLSelectElement;
  people: HTMLInputElement;
  private: HTMLInputElement;
  "queue-selected": HTMLAnchorElement;
  "review-form": ReviewForm;
  "review-next": HTMLAnchorElement;
  reviewer: HTMLInputElement;
  rows: HTMLTableSectionElement;
  "rule-form": RuleForm;
  seed: HTMLInputElement;
  "share-form": HTMLFormElement;
  slider: HTMLInputElement;
  "tag-dialog": HTMLDialogElement;
  "tag-form": TagForm;
  task: HTMLSelectElement;
  token: HTMLInputElement;
  versions: HTMLSelectElement;
}

interface Document {
  getElementById<Id extends keyof Ids>(id: Id): Ids[Id] | null;
  getElementById(id: string): HTMLElement | null;
}
interface ParentNode {
  querySelector<Name extends keyof HTMLElementTagNameMap>(selectors: Name): HTMLElementTagNameMap[Name] | null;
  querySelector(selectors: string): HTMLElement | null;
  querySelectorAll<Name extends keyof HTMLElementTagNameMap>(selectors: Name): NodeListOf<HTMLElementTagNameMap[Name]>;
  querySelectorAll(selectors: string): NodeListOf<HTMLElement>;
}
interface Element {
  closest<Name extends keyof HTMLElementTagNameMap>(selectors: Name): HTMLElementTagNameMap[Name] | null;
  closest(selectors: string): HTMLElement | null;
}
/** Listeners of the pages are told of elements only. */
interface EventTarget {
  readonly id?: string;
  readonly name?: string;
  readonly dataset?: DOMStringMap;
  closest?<Name extends keyof HTMLElementTagNameMap>(selectors: Name): HTMLElementTagNameMap[Name] | null;
  closest?(selectors: string): HTMLElement | null;
}
interface Error {
  status?: number;
}
interface Window {
  readonly trustedTypes?: TrustedTypePolicyFactory;
}
interface TrustedTypePolicyFactory {
  createPolicy(name: string, rules: { createHTML(text: string): string }): { createHTML(text: string): string };
}
declare var trustedTypes: TrustedTypePolicyFactory | undefined;
