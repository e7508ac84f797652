// What somebody has typed and not sent: it survives a reload, and a server that is away.

/**
 * Keeps values of one session and actor in this browser, under names. A tab reads what it kept itself;
 * a new one reads what any tab kept last.
 */
export class Drafts {
  /** @param {Storage[]} storages what is kept in all of them is read from the first that has it */
  constructor(session, actor, storages = [globalThis.sessionStorage, globalThis.localStorage]) {
    this.prefix = `duolog:${session}:${actor}:`;
    this.storages = storages;
  }

  /** What is kept under a name; null where there is nothing. */
  read(name) {
    for (const storage of this.storages) {
      try {
        const text = storage.getItem(this.prefix + name);
        if (text !== null) return JSON.parse(text);
      } catch (error) {
        // The browser keeps nothing, or something else wrote there: the next storage may have it.
        console.warn(`what was kept as ${name} cannot be read: ${error.message}`);
      }
    }
    return null;
  }

  /** The names that begin in a way, in all storages. */
  names(beginning) {
    const begin = this.prefix + beginning;
    const found = this.storages.flatMap((storage) => Object.keys(storage));
    return [...new Set(found)]
      .filter((key) => key.startsWith(begin))
      .map((key) => key.slice(this.prefix.length))
      .sort();
  }

  /** Keeps something, or nothing more where it is null. Says whether the browser did. */
  keep(name, value) {
    try {
      for (const storage of this.storages) {
        if (value === null) storage.removeItem(this.prefix + name);
        else storage.setItem(this.prefix + name, JSON.stringify(value));
      }
      return true;
    } catch (error) {
      // Full, or not allowed: the text is still on the page.
      console.warn(`${name} is not kept in this browser: ${error.message}`);
      return false;
    }
  }
}

/** An id for something that is done, so that sending it again does nothing. */
export const freshId = () => {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
};
