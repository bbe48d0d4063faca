// The table of tasks: sorted by a click on a heading, filtered by status and by text; and the colours.
const table = document.getElementById("tasks");
const rows = [...table.tBodies[0].rows];
const find = document.getElementById("find");
const statuses = [...document.querySelectorAll("#statuses button")];
let wanted = "";

function filter() {
  const text = find.value.trim().toLowerCase();
  let shown = 0;
  for (const row of rows) {
    const fits = (!wanted || row.dataset.status === wanted) && row.textContent.toLowerCase().includes(text);
    row.hidden = !fits;
    shown += fits;
  }
  document.getElementById("shown").textContent = `${shown} of ${rows.length} shown`;
}

function value(row, column) {
  const cell = row.cells[column];
  return cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value);
}

function sort(heading, column) {
  const down = heading.getAttribute("aria-sort") === "ascending";
  for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
  heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  const order = new Intl.Collator(undefined, { numeric: true });
  rows.sort((one, two) => {
    const [left, right] = [value(one, column), value(two, column)];
    const compared = typeof left === "number" ? left - right : order.compare(left, right);
    return down ? -compared : compared;
  });
  table.tBodies[0].append(...rows);
}

statuses.forEach((button) => button.addEventListener("click", () => {
  wanted = button.dataset.status;
  statuses.forEach((other) => other.setAttribute("aria-pressed", other === button));
  filter();
}));
find.addEventListener("input", filter);
[...table.tHead.rows[0].cells].forEach((heading, column) =>
  heading.querySelector("button").addEventListener("click", () => sort(heading, column)));
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
filter();
