
const lower = text => text.toLowerCase();
const number = text => { const value = parseFloat(text.replaceAll(",", "")); return Number.isNaN(value) ? -Infinity : value; };

for (const table of document.querySelectorAll("table.sorts")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.onclick = () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const numeric = head.classList.contains("num");
      const keyed = [...body.rows].map(row => [numeric ? number(row.cells[at].textContent) : lower(row.cells[at].textContent), row]);
      keyed.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0) * (down ? -1 : 1));
      body.append(...keyed.map(pair => pair[1]));
    };
  });
}

const table = document.getElementById("items-table");
if (table) {
  const controls = document.getElementById("controls"), status = document.getElementById("matches");
  const rows = [...table.tBodies[0].rows].map(row => {
    const cells = [...row.cells].map(cell => cell.textContent);
    return [row, lower(cells.join("\n")), cells];
  });
  const search = controls.querySelector("input"), choices = [...controls.querySelectorAll("select")];
  controls.hidden = false;
  const filter = () => {
    const wanted = lower(search.value), chosen = choices.map(one => [Number(one.dataset.column), one.value]);
    let count = 0;
    for (const [row, text, cells] of rows) {
      const shown = text.includes(wanted) && chosen.every(([at, value]) => value === "" || cells[at] === value);
      row.hidden = !shown;
      count += shown;
    }
    status.textContent = count + " of " + rows.length + " items shown";
  };
  let waiting = 0;
  search.oninput = () => { clearTimeout(waiting); waiting = setTimeout(filter, 120); };
  for (const one of choices) one.onchange = filter;
  for (const link of document.querySelectorAll("a[data-cluster]")) link.onclick = () => {
    search.value = "";
    for (const one of choices) one.value = one.id === "by-cluster" ? link.dataset.cluster : "";
    filter();
  };
  filter();
}
