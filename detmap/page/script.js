"use strict";
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.parentNode, table = head.closest("table"), body = table.tBodies[0];
    const column = [...head.parentNode.children].indexOf(head);
    const down = head.getAttribute("aria-sort") !== "descending";
    for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = row => row.cells[column].dataset.v ?? row.cells[column].textContent;
    const rows = [...body.rows].map((row, i) => [key(row), i, row]);
    rows.sort(([a, i], [b, j]) => {
      const x = parseFloat(a), y = parseFloat(b);
      const order = isNaN(x) || isNaN(y) ? isNaN(x) - isNaN(y) || a.localeCompare(b) : x - y;
      return (down ? -order : order) || i - j;
    });
    body.append(...rows.map(row => row[2]));
  });
}
for (const slider of document.querySelectorAll("input[data-points]")) {
  const points = JSON.parse(document.getElementById(slider.dataset.points).textContent);
  const told = document.getElementById(slider.getAttribute("aria-describedby"));
  slider.max = points.length - 1;
  const tell = () => {
    const [score, precision, recall, f1, fp, missed] = points[slider.value];
    const text = `score ${score}: precision ${precision}, recall ${recall}, F1 ${f1}; ${fp} false, ${missed} missed`;
    told.textContent = text;
    slider.setAttribute("aria-valuetext", text);
  };
  slider.value = slider.dataset.start;
  slider.addEventListener("input", tell);
  tell();
}
