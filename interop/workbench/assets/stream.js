// An event stream of the log that comes back by itself, and says how it stands at the top of the page.

const connection = document.getElementById("connection");

const say = (state, text) => {
  if (!connection) return;
  connection.dataset.state = state;
  connection.textContent = text;
};

/**
 * Follows a stream.
 * @param {string} path of the stream
 * @param {URLSearchParams} parameters what it is about
 * @param {number} since the position that the page has reached
 * @param {Object<string, function(object, number)>} on what to do with each kind of message
 * @returns {{close: function()}} ends it
 */
export const follow = (path, parameters, since, on) => {
  let source = null;
  let position = since;
  let wait = 500;
  let closed = false;
  let timer = null;

  const connect = () => {
    timer = null;
    const query = new URLSearchParams(parameters);
    query.set("since", String(position));
    source = new EventSource(`${path}?${query}`);
    source.onopen = () => {
      wait = 500;
      say("live", "live");
    };
    for (const [name, act] of Object.entries(on)) {
      source.addEventListener(name, (event) => {
        if (event.lastEventId) position = Number(event.lastEventId);
        act(JSON.parse(event.data), position);
      });
    }
    source.onerror = () => {
      source.close();
      if (closed || timer !== null) return;
      say("lost", "reconnecting …");
      timer = setTimeout(check, wait);
      wait = Math.min(wait * 2, 10_000);
    };
  };

  // An event source does not say why it was refused: a request does.
  const check = async () => {
    let status = 0;
    try {
      status = (await fetch("/enter", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: "{}",
      })).status;
    } catch { /* the server is away: it is tried again */ }
    if (closed) return;
    if (status === 401) {
      say("out", "this server no longer knows you: open its new link");
      timer = setTimeout(check, 10_000);
      return;
    }
    connect();
  };

  connect();
  return {
    close() {
      closed = true;
      clearTimeout(timer);
      source?.close();
    },
  };
};
