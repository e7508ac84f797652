// An event stream of the log that comes back by itself, and says how it stands at the top of the page.

const connection = document.getElementById("connection");
const FIRST = 500; // milliseconds until a lost stream is asked for again; twice as long each time
const LONGEST = 10_000;
const EVERY = 5; // seconds between beats, until the server has said how many
const MISSED = 3; // beats that are missed before the connection is taken for dead

const say = (state, text) => {
  if (!connection) return;
  connection.dataset.state = state;
  connection.textContent = text;
};

/**
 * Follows a stream.
 * @param {string} path of the stream
 * @param {URLSearchParams | Record<string, string>} parameters what it is about
 * @param {number} since the position that the page has reached
 * @param {Object<string, function(any, number): void>} on what to do with each kind of message
 * @param {function(boolean): void} stands told when the connection is there, and when it is lost
 * @returns {{close: function()}} ends it
 */
export const follow = (path, parameters, since, on, stands = () => {}) => {
  let source = null;
  let position = since;
  let wait = FIRST;
  let patience = MISSED * EVERY * 1000;
  let closed = false;
  let timer = null;
  let silence = null;

  const heard = () => {
    clearTimeout(silence);
    if (!closed) silence = setTimeout(lose, patience);
  };

  const connect = () => {
    timer = null;
    const query = new URLSearchParams(parameters);
    query.set("since", String(position));
    const mine = (source = new EventSource(`${path}?${query}`));
    heard();
    source.onopen = () => {
      heard();
      wait = FIRST;
      say("live", "live");
      stands(true);
    };
    for (const [name, act] of Object.entries(on)) {
      source.addEventListener(name, (event) => {
        if (mine !== source) return; // of a connection that was given up
        heard();
        if (event.lastEventId) position = Number(event.lastEventId);
        act(JSON.parse(event.data), position);
        if (connection) connection.dataset.position = String(position);
      });
    }
    source.addEventListener("beat", (event) => {
      patience = MISSED * JSON.parse(event.data).every * 1000;
      heard();
    });
    source.onerror = lose;
  };

  /** The connection has ended, or nothing comes through it. */
  const lose = () => {
    source?.close();
    source = null;
    clearTimeout(silence);
    if (closed || timer !== null) return;
    say("lost", "offline, reconnecting …");
    stands(false);
    timer = setTimeout(check, wait);
    wait = Math.min(wait * 2, LONGEST);
  };

  // An event source does not say why it was refused: a request does.
  const check = async () => {
    let status = 0;
    try {
      status = (
        await fetch("/enter", {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: "{}",
          signal: AbortSignal.timeout(patience),
        })
      ).status;
    } catch (error) {
      say(
        "lost",
        `offline, reconnecting … (${error.name === "TimeoutError" ? "no answer" : "the server is away"})`,
      );
    }
    if (closed) return;
    if (status === 401) {
      say("out", "this server no longer knows you: open its new link");
      timer = setTimeout(check, LONGEST);
      return;
    }
    connect();
  };

  connect();
  return {
    close() {
      closed = true;
      clearTimeout(timer);
      clearTimeout(silence);
      source?.close();
    },
  };
};
