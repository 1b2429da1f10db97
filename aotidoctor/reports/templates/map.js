
const byCall = new Map(), scrolling = [...document.querySelectorAll(".panels .box, #memory-buffers .box")];
let marked = [], pressed = null;
const callsOf = element => (element.dataset.calls || "").split(" ").filter(Boolean);
const clear = () => {
  for (const one of marked) one.classList.remove("marked");
  if (pressed) pressed.setAttribute("aria-pressed", "false");
  marked = [];
  pressed = null;
};
const choose = (element, button) => {
  const again = button && button === pressed;
  clear();
  if (again) return;
  const found = new Set();
  for (const call of callsOf(element)) for (const one of byCall.get(call) || []) found.add(one);
  marked = [...found];
  for (const one of marked) one.classList.add("marked");
  if (button) { button.setAttribute("aria-pressed", "true"); pressed = button; }
  for (const box of scrolling) {
    if (box.contains(element)) continue;
    const first = box.querySelector("tr.marked:not([hidden])");
    if (first) box.scrollTop = first.offsetTop - box.clientHeight / 3;
  }
};
for (const element of document.querySelectorAll("[data-calls]")) {
  for (const call of callsOf(element)) {
    if (!byCall.has(call)) byCall.set(call, []);
    byCall.get(call).push(element);
  }
  if (element.tagName === "TR") {
    const head = element.cells[0], button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", "false");
    button.append(...head.childNodes);
    head.replaceChildren(button);
    button.onclick = () => choose(element, button);
  } else element.addEventListener("click", () => choose(element, null));
}
document.addEventListener("keydown", event => { if (event.key === "Escape") clear(); });
