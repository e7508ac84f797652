// Elements, pieces of pages from this server, and requests to it.

/** The only way by which HTML comes into a page: pieces that this server has made, and escaped. */
const policy = globalThis.trustedTypes?.createPolicy("duolog", { createHTML: (text) => text });

/** Elements of a piece of HTML from this server. */
export const pieces = (html) => {
  const template = document.createElement("template");
  template.innerHTML = policy ? policy.createHTML(html) : html;
  return template.content;
};

const parsedPage = (html) =>
  new DOMParser().parseFromString(policy ? policy.createHTML(html) : html, "text/html");

/** An element with attributes, properties that begin with "on" as listeners, and children. */
export const make = (name, attributes = {}, ...children) => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined)
      node.setAttribute(key, value);
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

const SHARE = 3; // times as long as something took before it is done again by itself
const FIRST = 500; // milliseconds until what could not be read is asked for again; twice as long each time
const LONGEST = 8000;
const LIMIT = 120_000; // milliseconds for one answer: a connection may be slow, and may be dead

/** Whether what a request met with passes: the server is away, or has too much to do. */
export const passes = (status) => [0, 429, 502, 503, 504].includes(status);

/** The answer of a request: as text where the server sends a page, else what it says as JSON. */
const answered = async (request, isPage = false) => {
  let response;
  let answer;
  try {
    response = await request;
    answer = isPage ? await response.text() : await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    if (!response) throw new RequestFailed(0, "the server does not answer");
    if (response.ok) throw new RequestFailed(0, "the answer broke off");
  }
  if (!response.ok)
    throw new RequestFailed(response.status, answer?.message ?? response.statusText);
  return answer;
};

/** Reads something, and asks again until the server answers. */
const insist = async (url, { signal = undefined, isPage = false } = {}) => {
  for (let wait = FIRST; ; wait = Math.min(wait * 2, LONGEST)) {
    const limit = AbortSignal.timeout(LIMIT);
    try {
      return await answered(
        fetch(url, {
          signal: signal ? AbortSignal.any([signal, limit]) : limit,
          headers: { Accept: isPage ? "text/html" : "application/json" },
        }),
        isPage,
      );
    } catch (error) {
      if (!passes(error.status)) throw error;
    }
    await new Promise((done) => setTimeout(done, wait));
    signal?.throwIfAborted();
  }
};

/** Reads data: parameters are pairs, or an object. Asks again until the server answers. */
export const get = (path, parameters = {}, signal = undefined) =>
  insist(`${path}?${new URLSearchParams(parameters)}`, { signal });

/** Reads a page, to take parts of. */
export const getPage = async (url) => parsedPage(await insist(url, { isPage: true }));

/** Sends data, once: whether it is sent again is for the caller to say. */
export const post = (path, body, signal = undefined) =>
  answered(
    fetch(path, {
      method: "POST",
      signal,
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    }),
  );

/** A function that runs once for all calls within some milliseconds, at the end of them. */
export const soon = (run, wait) => {
  let timer = null;
  return () => {
    if (timer === null)
      timer = setTimeout(() => {
        timer = null;
        run();
      }, wait);
  };
};

/** The same for what may take long: it runs again only after a multiple of the time that it took. */
export const calmly = (run, wait) => {
  let next = null; // what is to be done once the pause is over: nothing, or to run again
  const start = async () => {
    next = () => {};
    const begin = performance.now();
    try {
      await run();
    } finally {
      const took = performance.now() - begin;
      setTimeout(
        () => {
          const then = next;
          next = null;
          then();
        },
        Math.max(wait, SHARE * took),
      );
    }
  };
  return () => {
    if (next === null) start();
    else next = start;
  };
};

/**
 * The element with an id, of the kind that the pages have there; see dom.d.ts.
 *
 * @type {Document["getElementById"]}
 */
export const byId = (/** @type {string} */ id) => document.getElementById(id);

/** Puts a text on the clipboard. */
export const copy = async (text) => {
  await navigator.clipboard.writeText(text);
};
