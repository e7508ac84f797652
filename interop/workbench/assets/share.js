// The Share dialog: makes links for others, lists them, and revokes them.

import { copy, get, make, pieces, post } from "./dom.js";

const byId = (id) => document.getElementById(id);
const dialog = byId("share");
const form = byId("share-form");
const role = byId("share-role");
const seat = byId("share-seat");
const say = (text) => {
  byId("share-problem").textContent = text;
  byId("share-problem").hidden = !text;
};
const failed = (error) => say(error.message);

/** The choice of a person, for those who are to take part. */
const offer = () => {
  const takes = role.value === "participant";
  const some = seat.options.length > 0;
  for (const one of [seat, seat.labels[0]]) one.hidden = !takes || !some;
  byId("share-none").hidden = !takes || some;
  byId("share-make").disabled = takes && !some;
};
role.addEventListener("change", offer);

const read = async () => {
  const { rows, seats } = await get("/v1/links");
  const here = new URLSearchParams(location.search).get("id");
  const chosen = seat.value;
  seat.replaceChildren(
    ...seats.map((one) =>
      make(
        "option",
        {
          value: JSON.stringify([one.session, one.actor]),
          selected: one.session === here || undefined,
        },
        `${one.title}: ${one.actor}`,
      ),
    ),
  );
  if (chosen) seat.value = chosen;
  offer();
  const table = pieces(`<table><tbody>${rows.join("")}</tbody></table>`);
  byId("share-rows").replaceChildren(...table.querySelectorAll("tr"));
};

byId("show-share").addEventListener("click", () => {
  byId("share-made").hidden = true;
  say("");
  dialog.showModal();
  read().catch(failed);
});
byId("share-close").addEventListener("click", () => dialog.close());
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  say("");
  try {
    const { days, name } = Object.fromEntries(new FormData(form));
    const [session, actor] = role.value === "participant" ? JSON.parse(seat.value) : ["", ""];
    const wanted = { role: role.value, days: Number(days), name, session, actor };
    const { token } = await post("/v1/links/make", wanted);
    byId("share-link").value = `${location.origin}/#token=${token}`;
    byId("share-made").hidden = false;
    byId("share-link").select();
    await read();
  } catch (error) {
    failed(error);
  }
});
byId("share-copy").addEventListener("click", async () => {
  try {
    await copy(byId("share-link").value);
    byId("share-copy").textContent = "Copied";
  } catch (error) {
    failed(error);
  }
});
byId("share-rows").addEventListener("click", async ({ target }) => {
  if (target.dataset.revoke === undefined) return;
  try {
    await post("/v1/links/revoke", { id: target.dataset.revoke });
    await read();
  } catch (error) {
    failed(error);
  }
});
