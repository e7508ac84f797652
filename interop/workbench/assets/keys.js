// Shows which keys do what on this page: by "?", and by the button in the head.

const shown = document.getElementById("keys");
const open = () => shown.showModal();

document.getElementById("show-keys").addEventListener("click", open);
shown.addEventListener("click", ({ target }) => {
  if (target === shown) shown.close(); // beside the box
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "?" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, dialog")) return;
  event.preventDefault();
  open();
});
