// Elements that are looked up by a selector or an id are of any kind: the page is made by Python, and its
// scripts know its elements. All else is checked.

interface ParentNode {
  querySelector(selectors: string): any;
  querySelectorAll(selectors: string): NodeListOf<any>;
}
interface Document {
  getElementById(id: string): any;
}
interface Element {
  closest(selectors: string): any;
  dataset: DOMStringMap;
  focus(): void;
}
interface EventTarget {
  closest(selectors: string): any;
  value?: any;
}
interface Error {
  status?: number;
}
declare var trustedTypes: any;
