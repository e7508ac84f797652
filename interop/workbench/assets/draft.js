// What somebody has typed and not sent: it survives a reload, and a server that is away.

/** Keeps texts of one session and actor in this browser, under names. */
export class Drafts {
  constructor(session, actor, storage = globalThis.localStorage) {
    this.prefix = `duolog:${session}:${actor}:`;
    this.storage = storage;
  }

  /** What is kept under a name; null where there is nothing. */
  read(name) {
    try {
      const text = this.storage.getItem(this.prefix + name);
      return text === null ? null : JSON.parse(text);
    } catch {
      return null; // the browser keeps nothing, or something else wrote there
    }
  }

  /** Keeps something, or nothing more where it is null. Says whether the browser did. */
  keep(name, value) {
    try {
      if (value === null) this.storage.removeItem(this.prefix + name);
      else this.storage.setItem(this.prefix + name, JSON.stringify(value));
      return true;
    } catch {
      return false; // full, or not allowed: the text is still on the page
    }
  }
}

/** An id for something that is done, so that sending it again does nothing. */
export const freshId = () => {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
};
