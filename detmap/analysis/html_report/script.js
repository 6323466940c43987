"use strict";
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const nothing = text => text === "" || text === "-" || text === "\u2013";
const make = (tag, properties) => Object.assign(document.createElement(tag), properties);
for (const each of all("[data-live]")) each.hidden = false;

for (const button of all("th button")) {
  button.addEventListener("click", () => {
    const head = button.parentNode, table = head.closest("table"), body = table.tBodies[0];
    const column = [...head.parentNode.children].indexOf(head);
    const key = row => (row.cells[column].firstChild?.nodeValue ?? "").trim();
    const number = text => Number(text.replaceAll(",", ""));
    const rows = [...body.rows].map((row, i) => [key(row), i, row]);
    const [known, none] = [rows.filter(each => !nothing(each[0])), rows.filter(each => nothing(each[0]))];
    const numbers = known.every(each => !isNaN(number(each[0])));
    const first = numbers ? "descending" : "ascending", second = numbers ? "ascending" : "descending";
    const order = head.getAttribute("aria-sort") === first ? second : first;
    for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order);
    known.sort(([a, i], [b, j]) => {
      const apart = numbers ? number(a) - number(b) : a.localeCompare(b, undefined, {numeric: true});
      return (order === "descending" ? -apart : apart) || i - j;
    });
    body.append(...[...known, ...none].map(each => each[2]));
  });
}

const field = text => {
  const safe = /^[=@\t\r]|^[+-](?![\d.])/.test(text) ? `'${text}` : text;
  return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};
const csv = table => {
  const rows = [...table.rows].map(row => [...row.cells]), [head, ...body] = rows;
  const wide = head.map((_, k) => body.some(cells => cells[k]?.querySelector("small")));
  const line = (cells, extra) => cells.flatMap((cell, k) => {
    const under = cell.querySelector("small")?.textContent ?? "";
    const text = under ? cell.firstChild.nodeValue : cell.textContent;
    return wide[k] ? [field(text.trim()), field(extra ? `${text.trim()} interval` : under)] : [field(text.trim())];
  }).join(",");
  return rows.map((cells, i) => line(cells, i === 0)).join("\n") + "\n";
};
const copy = async text => {
  try { await navigator.clipboard.writeText(text); } catch {
    const area = make("textarea", {value: text});
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
};
for (const table of all("table.data")) {
  const heads = [...table.tHead.rows[0].cells].map(cell => cell.textContent);
  for (const row of table.tBodies[0].rows) [...row.cells].forEach((cell, k) => { cell.dataset.head = heads[k]; });
  table.classList.add("cards");
  const button = make("button", {type: "button", className: "action", textContent: "Copy as CSV"});
  button.addEventListener("click", async () => {
    await copy(csv(table));
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy as CSV"; }, 1500);
  });
  table.closest(".scroll").before(button);
}

for (const button of all("button[data-save]")) {
  button.addEventListener("click", () => {
    const content = document.getElementById(button.dataset.save).textContent;
    const url = URL.createObjectURL(new Blob([content], {type: "application/octet-stream"}));
    make("a", {href: url, download: button.dataset.file}).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  });
}

for (const input of all("input[type=search]")) {
  const section = input.closest("section"), counted = section.querySelector("[data-found]");
  input.addEventListener("input", () => {
    const wanted = input.value.trim().toLowerCase();
    let found = 0;
    for (const row of all("tbody tr", section)) {
      row.hidden = !row.cells[0].firstChild.textContent.toLowerCase().includes(wanted);
      if (!row.hidden && row.closest(".plots")) found += 1;
    }
    if (wanted) for (const each of all("details.rest", section)) each.open = true;
    counted.textContent = wanted ? `${found} found` : "";
  });
}

const tip = make("div", {className: "tip", hidden: true});
tip.setAttribute("role", "status");
document.querySelector("main").append(tip);
const charts = new Map();
for (const title of all(".hit > title, .plots svg > title")) {
  const mark = title.closest("tr") ?? title.parentNode, chart = mark.closest("table, svg");
  mark.dataset.tip = title.textContent;
  title.remove();
  if (!charts.has(chart)) charts.set(chart, []);
  charts.get(chart).push(mark);
}
const show = mark => {
  for (const other of all(".shown")) other.classList.remove("shown");
  tip.hidden = !mark;
  if (!mark) return;
  mark.classList.add("shown");
  tip.textContent = mark.dataset.tip;
  const box = mark.getBoundingClientRect(), own = tip.getBoundingClientRect();
  const left = Math.min(Math.max(8, box.left + box.width / 2 - own.width / 2), innerWidth - own.width - 8);
  const above = box.top - own.height - 6;
  tip.style.left = `${left}px`;
  tip.style.top = `${above > 0 ? above : box.bottom + 6}px`;
};
const follow = mark => { if (mark) location.href = mark.dataset.href; };
for (const [chart, marks] of charts) {
  let place = -1;
  chart.setAttribute("tabindex", "0");
  chart.addEventListener("pointerover", event => show(event.target.closest("[data-tip]")));
  chart.addEventListener("pointerleave", () => show(null));
  chart.addEventListener("blur", () => show(null));
  chart.addEventListener("click", event => follow(event.target.closest("[data-href]")));
  chart.addEventListener("keydown", event => {
    const seen = marks.filter(mark => !mark.hidden), last = seen.length - 1;
    const next = {
      ArrowRight: place + 1, ArrowDown: place + 1, ArrowLeft: place - 1, ArrowUp: place - 1, Home: 0, End: last,
    }[event.key];
    if (event.key === "Escape") show(null);
    if (event.key === "Enter" && event.target === chart) follow(marks.find(mark => mark.matches(".shown[data-href]")));
    if (next === undefined || last < 0) return;
    event.preventDefault();
    place = Math.min(Math.max(next, 0), last);
    seen[place].scrollIntoView({block: "nearest"});
    show(seen[place]);
  });
}
document.addEventListener("scroll", () => { if (!document.activeElement?.matches("svg, table")) show(null); }, {passive: true});
