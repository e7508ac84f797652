// The page on which a session is begun.

import { make, post } from "./dom.js";

const byId = (id) => document.getElementById(id);
const task = byId("task");
const agents = byId("agents");
const said = byId("said");

const offer = () => {
  const option = task.selectedOptions[0];
  const kinds = Object.entries(JSON.parse(option?.dataset.agents ?? "{}"));
  agents.replaceChildren(agents.querySelector("legend"), ...kinds.map(([name, about]) => {
    const box = make("input", { type: "checkbox", value: name, checked: name === option.dataset.agent });
    return make("label", {}, box, make("span", {}, make("b", {}, name), about ? `: ${about}` : ""));
  }));
};

task.addEventListener("change", offer);
offer();

byId("new").addEventListener("submit", async (event) => {
  event.preventDefault();
  said.textContent = "Beginning …";
  try {
    const begun = await post("/v1/take/begin", {
      task: task.value,
      agents: Array.from(agents.querySelectorAll(":checked"), (box) => box.value),
      model: byId("model").value.trim(),
      instance: byId("instance").value.trim(),
      seed: Number(byId("seed").value),
      people: Number(byId("people").value),
    });
    const links = Object.entries(begun.links);
    if (links.length === 1) {
      location.assign(`/take?id=${encodeURIComponent(begun.session)}`);
      return;
    }
    said.textContent = "Give each person a link; yours is the first.";
    const address = (actor) => `/take?id=${encodeURIComponent(begun.session)}&as=${encodeURIComponent(actor)}`;
    byId("links").replaceChildren(make("ul", {}, ...links.map(([actor, link], number) => make(
      "li", {},
      `${actor}: `,
      number ? make("code", {}, location.origin + link) : make("a", { href: address(actor) }, "begin"),
    ))));
  } catch (error) {
    said.textContent = `Not begun: ${error.message}`;
  }
});
