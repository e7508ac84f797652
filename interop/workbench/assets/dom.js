// Elements, pieces of pages from this server, and requests to it.

/** The only way by which HTML comes into a page: pieces that this server has made, and escaped. */
const policy = globalThis.trustedTypes?.createPolicy("duolog", { createHTML: (text) => text });

/** Elements of a piece of HTML from this server. */
export const pieces = (html) => {
  const template = document.createElement("template");
  template.innerHTML = policy ? policy.createHTML(html) : html;
  return template.content;
};

/** A whole page of this server, to take parts of. */
export const parsedPage = (html) =>
  new DOMParser().parseFromString(policy ? policy.createHTML(html) : html, "text/html");

/** An element with attributes, properties that begin with "on" as listeners, and children. */
export const make = (name, attributes = {}, ...children) => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
};

const SVG = "http://www.w3.org/2000/svg";

/** An element of SVG. */
export const draw = (name, attributes = {}, ...children) => {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
};

/** What went wrong with a request, with the status of the answer; 0 where there was none. */
export class RequestFailed extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const answered = async (request) => {
  let response;
  try {
    response = await request;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new RequestFailed(0, "the server does not answer");
  }
  const answer = await response.json().catch(() => ({ message: response.statusText }));
  if (!response.ok) throw new RequestFailed(response.status, answer.message ?? "refused");
  return answer;
};

/** Reads data: parameters are pairs, or an object. */
export const get = (path, parameters = {}, signal = undefined) => {
  const query = new URLSearchParams(parameters);
  return answered(fetch(`${path}?${query}`, { signal, headers: { Accept: "application/json" } }));
};

/** Sends data. */
export const post = (path, body) =>
  answered(fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  }));

/** A function that runs once for all calls within some milliseconds, at the end of them. */
export const soon = (run, wait) => {
  let timer = null;
  return () => {
    if (timer === null) timer = setTimeout(() => { timer = null; run(); }, wait);
  };
};

/** Puts a text on the clipboard. */
export const copy = async (text) => {
  await navigator.clipboard.writeText(text);
};
