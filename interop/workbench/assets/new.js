// The page on which a session is begun.

import { byId, copy, make, post } from "./dom.js";

const task = byId("task");
const agents = byId("agents");
const said = byId("said");

const offer = () => {
  const option = task.selectedOptions[0];
  const kinds = Object.entries(JSON.parse(option?.dataset.agents ?? "{}"));
  agents.replaceChildren(
    agents.querySelector("legend"),
    ...kinds.map(([name, about]) => {
      const box = make("input", {
        type: "checkbox",
        value: name,
        checked: name === option.dataset.agent,
      });
      return make(
        "label",
        {},
        box,
        make("span", {}, make("b", {}, name), about ? `: ${about}` : ""),
      );
    }),
  );
};

const invitation = (link) => {
  const button = make(
    "button",
    {
      type: "button",
      onclick: async () => {
        try {
          await copy(link);
          button.textContent = "Copied";
        } catch (error) {
          said.textContent = error.message;
        }
      },
    },
    "Copy",
  );
  return [make("code", {}, link), button];
};

task.addEventListener("change", offer);
offer();

byId("new").addEventListener("submit", async (event) => {
  event.preventDefault();
  said.textContent = "Beginning …";
  try {
    const begun = await post("/v1/participate/begin", {
      task: task.value,
      agents: Array.from(agents.querySelectorAll("input"))
        .filter((box) => box.checked)
        .map((box) => box.value),
      model: byId("model").value.trim(),
      instance: byId("instance").value.trim(),
      seed: Number(byId("seed").value),
      people: Number(byId("people").value),
    });
    const links = Object.entries(begun.links);
    const own = /** @type {HTMLButtonElement | null} */ (event.submitter)?.value !== "invite";
    if (own && links.length === 1) {
      location.assign(`/participate?id=${encodeURIComponent(begun.session)}`);
      return;
    }
    said.textContent = own
      ? "Send each other person a link; the first seat is yours."
      : "Send each person a link.";
    const address = (actor) =>
      `/participate?id=${encodeURIComponent(begun.session)}&as=${encodeURIComponent(actor)}`;
    byId("links").replaceChildren(
      make(
        "ul",
        { class: "commands" },
        ...links.map(([actor, link], number) =>
          make(
            "li",
            {},
            make("span", {}, actor),
            ...(own && !number
              ? [make("a", { href: address(actor) }, "Begin")]
              : invitation(location.origin + link)),
          ),
        ),
      ),
    );
    byId("links").scrollIntoView({ block: "nearest" });
  } catch (error) {
    said.textContent = `Not begun: ${error.message}`;
  }
});
