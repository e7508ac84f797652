// The page at "/": exchanges the token in the address for a cookie, and goes on to where it leads.

const say = document.getElementById("say");
const form = document.getElementById("entrance");
const box = document.getElementById("token");

/** Where to go on to: a path of this server, and never another address. */
export const destination = (search, session) => {
  const to = new URLSearchParams(search).get("to") ?? "";
  const safe = /^\/(?![/\\])[^\u0000-\u001f]*$/.test(to) && !to.startsWith("/enter");
  if (safe && to !== "/") return to;
  return session ? `/participate?id=${encodeURIComponent(session)}` : "/sessions";
};

const enter = async (token) => {
  const response = await fetch("/enter", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(token === null ? {} : { token }),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.message);
  location.replace(destination(location.search, answer.session));
};

const ask = (why) => {
  say.textContent = why;
  form.hidden = false;
  box.focus();
};

const begin = async () => {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token !== null) history.replaceState(null, "", location.pathname + location.search);
  try {
    await enter(token);
  } catch (error) {
    ask(
      token === null
        ? "Open the link that the workbench printed when it started, or enter its token."
        : `Not let in: ${error.message}.`,
    );
  }
};

if (form) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await enter(box.value.trim());
    } catch (error) {
      ask(`Not let in: ${error.message}.`);
    }
  });
  begin();
}
