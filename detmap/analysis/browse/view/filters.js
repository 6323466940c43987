// The left column: each group of filters with its counts.
const MOST_CELLS = 8, MOST_BARS = 12, MOST_MATRIX = 400;

const element = (tag, properties = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made && name !== "role") made[name] = value; else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
};
// A button; the key finds it again after a redraw.
const pushable = (key, text, press, properties = {}) => {
  const made = element("button", {type: "button", ...properties}, text);
  made.dataset.key = key;
  made.addEventListener("click", press);
  return made;
};
const grouped = n => n.toLocaleString("en-US").replaceAll(",", "\u202f");
const toggled = (list, value) => list.includes(value) ? list.filter(each => each !== value) : [...list, value].sort((a, b) => a - b);

// A bar is a button that switches a filter on and off.
const bar = (key, name, count, most, pressed, style, press) => {
  const made = pushable(key, element("span", {className: "fill"}), press, {className: `bar ${style}`, "aria-pressed": pressed});
  made.firstChild.style.width = `${most ? 100 * count / most : 0}%`;
  made.append(element("span", {className: "what", textContent: cut(name, 60), title: name}), element("span", {className: "count", textContent: grouped(count)}));
  return made;
};
const group = (title, ...content) => element("section", {className: "group", "aria-label": title}, element("h2", {textContent: title}), ...content);
const bars = (name, rows) => element("div", {className: "bars", role: "group", "aria-label": name}, ...rows);

// One tab stop for a group; arrows move inside. columns: of a table of buttons.
const roving = (root, columns = 1) => {
  const buttons = [...root.querySelectorAll("button")];
  buttons.forEach((each, n) => { each.tabIndex = n ? -1 : 0; });
  root.addEventListener("focusin", event => {
    for (const each of root.querySelectorAll("button")) each.tabIndex = each === event.target ? 0 : -1;
  });
  root.addEventListener("keydown", event => {
    const every = [...root.querySelectorAll("button")], at = every.indexOf(event.target);
    const step = {ArrowDown: columns, ArrowUp: -columns, ArrowRight: 1, ArrowLeft: -1}[event.key];
    const next = event.key === "Home" ? every[0] : event.key === "End" ? every.at(-1) : every[at + step];
    if (at < 0 || !next) return;
    event.preventDefault();
    next.focus();
  });
  return root;
};

const kindGroup = (app, found) => {
  const {state} = app, most = Math.max(...found.kinds.slice(0, KINDS), 1), wrong = [1, 2, 3, 4, 5];
  const rows = [1, 2, 3, 4, 5, MISS, 0].map(k => bar(`kind${k}`, `${KIND_NAMES[k]} (${KIND_KEYS[k]})`, found.kinds[k], most,
    state.kinds.includes(k), k === 0 ? "right" : k === MISS ? "lost" : "wrong",
    () => app.change({kinds: toggled(state.kinds, k), group: -1})));
  const all = wrong.every(k => state.kinds.includes(k)), count = wrong.reduce((sum, k) => sum + found.kinds[k], 0);
  const other = state.kinds.filter(k => !wrong.includes(k));
  const every = bar("kindfp", "All false positives", count, Math.max(most, count), all, "wrong",
    () => app.change({kinds: all ? other : [...other, ...wrong].sort((a, b) => a - b), group: -1}));
  return group("Kind", roving(bars("Kind", [every, ...rows])));
};

const foundBy = (app, found) => {
  const [a, b] = app.names, most = Math.max(...found.groups, 1);
  const names = ["both", `only A ${a}`, `only B ${b}`, "neither"];
  return group("Objects found by", roving(bars("Objects found by", names.map((name, k) => bar(`group${k}`, name, found.groups[k], most,
    app.state.group === k, "", () => app.change({group: app.state.group === k ? -1 : k, kinds: [], cell: null}))))));
};

const classGroup = (app, found) => {
  const {state, model} = app, names = model.meta.classes, wanted = app.classText.toLowerCase();
  let order = names.map((_, k) => k).sort((x, y) => found.classes[y] - found.classes[x] || x - y);
  if (wanted) order = order.filter(k => names[k].toLowerCase().includes(wanted));
  const many = names.length > MOST_BARS, shown = app.allClasses ? order.slice(0, MOST_MATRIX)
    : order.filter((k, n) => n < MOST_BARS || state.classes.includes(k));
  const most = Math.max(...order.slice(0, 1).map(k => found.classes[k]), 1);
  const rows = shown.map(k => bar(`class${k}`, clean(names[k]), found.classes[k], most, state.classes.includes(k), "",
    () => app.change({classes: toggled(state.classes, k)})));
  const search = element("input", {type: "search", placeholder: "find a class", value: app.classText, "aria-label": "Find a class"});
  search.dataset.key = "classText";
  search.addEventListener("input", () => { app.classText = search.value; app.drawFilters(); });
  const more = pushable("allClasses", app.allClasses ? "Fewer classes" : `All ${grouped(names.length)} classes`,
    () => { app.allClasses = !app.allClasses; app.drawFilters(); });
  return group("Class", ...(many ? [search] : []), roving(bars("Class", rows)), ...(many ? [more] : []));
};

const sliceGroups = (app, found) => app.model.meta.properties.map((property, p) => {
  const chosen = app.state.slices[p], folded = element("details", {className: "group", open: app.open.has(p)},
    element("summary", {textContent: `${property.by}${chosen.length ? `, ${chosen.length} active` : ""}`}));
  folded.firstChild.dataset.key = `slice${p}`;
  folded.addEventListener("toggle", () => {
    if (folded.open === app.open.has(p)) return;
    if (folded.open) app.open.add(p); else app.open.delete(p);
    app.recount();
  });
  const counts = found.slices.get(p);
  if (folded.open && counts) {
    const most = Math.max(...counts, 1);
    folded.append(roving(bars(property.by, property.names.map((name, v) => bar(`slice${p}.${v}`, clean(name), counts[v + 1], most,
      chosen.includes(v + 1), "", () => app.change({slices: app.state.slices.map((each, q) => q === p ? toggled(each, v + 1) : each)}))))));
  }
  return folded;
});

const pressCell = (app, i, j) => {
  const {cell} = app.state, same = cell !== null && cell[0] === i && cell[1] === j;
  app.change(same ? {cell: null} : {cell: [i, j], kinds: [], classes: [], group: -1, view: "cases"});
};
const cellName = (app, cell) => cell.map(k => clean(app.model.meta.classes[k] ?? "background")).join(" \u2192 ");

const cellTable = (app, found) => {
  const names = [...app.model.meta.classes.map(clean), "background"], n = names.length;
  const highest = Math.max(1, ...[...found.cells].filter(([key]) => Math.floor(key / n) !== key % n).map(each => each[1]));
  const head = element("tr", {}, element("td"), ...names.map(name => element("th", {scope: "col", title: name},
    element("span", {textContent: cut(name, 14)}))));
  const table = element("table", {className: "cells"}, element("caption", {className: "hidden", textContent: "Rows: true class. Columns: predicted class."}),
    element("thead", {}, head));
  const body = element("tbody");
  for (let i = 0; i < n; i++) {
    const row = element("tr", {}, element("th", {scope: "row", textContent: cut(names[i], 14), title: names[i]}));
    for (let j = 0; j < n; j++) {
      const count = found.cells.get(i * n + j) ?? 0, cell = app.state.cell, pressed = cell !== null && cell[0] === i && cell[1] === j;
      const place = element("td");
      if (count || pressed) {
        const text = count > 9999 ? `${Math.round(count / 1000)}k` : String(count), label = `${names[i]} predicted as ${names[j]}: ${count}`;
        place.append(pushable(`cell${i}-${j}`, text, () => pressCell(app, i, j), {title: label, "aria-label": label, "aria-pressed": pressed,
          className: i === j ? "same" : `d${Math.min(4, Math.ceil(4 * count / highest))}`}));
      }
      row.append(place);
    }
    body.append(row);
  }
  table.append(body);
  return roving(element("div", {className: "scroll", role: "group", "aria-label": "Cells of the confusion matrix"}, table));
};

const confusionGroup = (app, found) => {
  const {model, state} = app, n = model.nClasses + 1;
  const note = element("p", {className: "small", textContent: "True \u2192 predicted class. Kinds follow the protocol\u2019s matching; "
    + "the matrix pairs detections and objects by overlap, same class first. A cell can therefore hold other kinds than its name suggests."});
  if (model.nClasses <= MOST_CELLS) return group("Confusion", note, cellTable(app, found));
  const pairs = [...found.cells].map(([key, count]) => [Math.floor(key / n), key % n, count])
    .filter(([i, j]) => i !== j && i < n - 1 && j < n - 1).sort((a, b) => b[2] - a[2] || a[0] - b[0] || a[1] - b[1]).slice(0, MOST_BARS);
  if (state.cell && !pairs.some(([i, j]) => i === state.cell[0] && j === state.cell[1])) pairs.push([...state.cell, found.cells.get(state.cell[0] * n + state.cell[1]) ?? 0]);
  const most = Math.max(1, ...pairs.map(each => each[2]));
  const rows = pairs.map(([i, j, count]) => bar(`cell${i}-${j}`, cellName(app, [i, j]), count, most,
    state.cell !== null && state.cell[0] === i && state.cell[1] === j, "", () => pressCell(app, i, j)));
  const whole = pushable("whole", "Whole matrix", () => app.showMatrix());
  return group("Confusion", note, roving(bars("Confused classes", rows)), ...(model.nClasses <= MOST_MATRIX ? [whole] : []));
};

// Replaces the content and puts the focus back on the same control.
const redraw = (root, content) => {
  const active = document.activeElement, key = root.contains(active) ? active.dataset.key : null;
  const caret = key && active.type === "search" ? active.selectionStart : null;
  root.replaceChildren(...content);
  if (!key) return;
  const again = [...root.querySelectorAll("[data-key]")].find(each => each.dataset.key === key);
  again?.focus({preventScroll: true});
  if (caret !== null) again?.setSelectionRange(caret, caret);
};

const filterContent = (app, found) => [
  ...(found.mode === "group" ? [] : [kindGroup(app, found)]),
  ...(app.names.length > 1 ? [foundBy(app, found)] : []),
  classGroup(app, found),
  ...(found.mode === "group" ? [] : [confusionGroup(app, found)]),
  element("section", {className: "slices", "aria-label": "Subsets"}, element("h2", {textContent: "Subsets"}), ...sliceGroups(app, found)),
];

const chipsOf = app => {
  const {state, model} = app, {classes, properties} = model.meta, chips = [];
  const chip = (text, changes) => chips.push(pushable(text, `${text} \u2715`, () => app.change(changes),
    {className: "chip", "aria-label": `Remove the filter ${text}`}));
  for (const k of state.kinds) chip(KIND_NAMES[k], {kinds: toggled(state.kinds, k)});
  for (const k of state.classes) chip(clean(classes[k]), {classes: toggled(state.classes, k)});
  state.slices.forEach((values, p) => values.forEach(v => chip(`${clean(properties[p].by)}: ${clean(properties[p].names[v - 1] ?? "unknown")}`,
    {slices: state.slices.map((each, q) => q === p ? toggled(each, v) : each)})));
  if (state.cell) chip(cellName(app, state.cell), {cell: null});
  if (state.group >= 0) chip(["found by both", `only A ${app.names[0]}`, `only B ${app.names[1]}`, "found by neither"][state.group], {group: -1});
  if (state.name) chip(`name: ${clean(state.name)}`, {name: ""});
  if (state.least) chip(`at least ${state.least} cases`, {least: 0});
  if (chips.length > 1) chips.push(pushable("clear", "Clear filters", () => app.change(unfiltered(model)), {className: "chip"}));
  return chips;
};
