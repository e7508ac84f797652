// The Share dialog: makes links for others, lists them, and revokes them.

import { copy, get, pieces, post } from "./dom.js";

const byId = (id) => document.getElementById(id);
const dialog = byId("share");
const form = byId("share-form");
const failed = (error) => { byId("share-problem").textContent = error.message; };

const read = async () => {
  const { rows } = await get("/v1/links");
  const table = pieces(`<table><tbody>${rows.join("")}</tbody></table>`);
  byId("share-rows").replaceChildren(...table.querySelectorAll("tr"));
};

byId("show-share").addEventListener("click", () => {
  byId("share-made").hidden = true;
  byId("share-problem").textContent = "";
  dialog.showModal();
  read().catch(failed);
});
byId("share-close").addEventListener("click", () => dialog.close());
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  byId("share-problem").textContent = "";
  try {
    const { role, days, name } = Object.fromEntries(new FormData(form));
    const { token } = await post("/v1/links/make", { role, days: Number(days), name });
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
