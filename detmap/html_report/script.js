"use strict";
const nothing = text => text === "" || text === "-" || text === "\u2013";
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.parentNode, table = head.closest("table"), body = table.tBodies[0];
    const column = [...head.parentNode.children].indexOf(head);
    const key = row => row.cells[column].firstChild?.nodeValue?.trim() ?? "";
    const rows = [...body.rows].map((row, i) => [key(row), i, row]);
    const [known, none] = [rows.filter(each => !nothing(each[0])), rows.filter(each => nothing(each[0]))];
    const numbers = known.every(each => !isNaN(each[0]));
    const first = numbers ? "descending" : "ascending", second = numbers ? "ascending" : "descending";
    const order = head.getAttribute("aria-sort") === first ? second : first;
    for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order);
    known.sort(([a, i], [b, j]) => {
      const apart = numbers ? a - b : a.localeCompare(b, undefined, {numeric: true});
      return (order === "descending" ? -apart : apart) || i - j;
    });
    body.append(...[...known, ...none].map(each => each[2]));
  });
}
for (const slider of document.querySelectorAll("input[data-points]")) {
  const points = JSON.parse(document.getElementById(slider.dataset.points).textContent);
  const output = document.getElementById(slider.getAttribute("aria-describedby"));
  const show = point => {
    const [score, precision, recall, f1, fp, missed] = point;
    const text = `score ${score}: precision ${precision}, recall ${recall}, F1 ${f1}; ${fp} FP, ${missed} missed`;
    output.textContent = text;
    slider.setAttribute("aria-valuetext", text);
  };
  const near = (a, b) => Math.abs(a[0] - slider.value) <= Math.abs(b[0] - slider.value) ? a : b;
  slider.addEventListener("input", () => show(points.reduce(near)));
  show(points[slider.dataset.start]);
}
