// Chooses among the documents of a page, and finds sessions in their lists. Holds no import: pages of
// reports have it in themselves, behind charts.js.

/**
 * Lets the field above the lists of sessions narrow them down.
 *
 * @param {Element} root what holds the report
 */
export const findSessions = (root) => {
  const field = /** @type {HTMLInputElement | null} */ (root.querySelector(".find"));
  field?.addEventListener("input", () => {
    const wanted = field.value.trim().toLowerCase();
    for (const list of root.querySelectorAll("details")) {
      if (!list.id.startsWith("g")) continue;
      let found = 0;
      for (const row of list.querySelectorAll("tbody tr")) {
        row.hidden = !row.textContent.toLowerCase().includes(wanted);
        if (!row.hidden) found += 1;
      }
      list.hidden = !found;
      list.open = wanted !== "" && found > 0;
    }
  });
};

/**
 * Shows the document that the address asks for, and draws its figures.
 *
 * @param {Element} main where it is shown
 * @param {(root: Element, figures: object[]) => void} draw draws figures
 */
export const showParts = (main, draw) => {
  const choice = document.getElementById("part");
  const wanted = new URLSearchParams(location.search).get("task");
  const part = [...document.querySelectorAll("template")].find(
    (one) => one.dataset.part === wanted,
  );
  let data = document.getElementById("data");
  if (part) {
    main.replaceChildren(part.content.cloneNode(true));
    data = main.querySelector("script");
    choice.value = wanted;
  } else if (choice) {
    choice.selectedIndex = 0; // whatever the browser remembers of it
  }
  choice?.addEventListener("change", () => {
    location.search = new URLSearchParams({ task: choice.value }).toString();
  });
  draw(main, JSON.parse(data.textContent));
  findSessions(main);
};
