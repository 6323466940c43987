// What is shown, as a part of the address: back, reload and a link in a ticket give the same page.
const LETTERS = ["a", "b"], KIND_KEYS = ["TP", "Cls", "Loc", "Both", "Dupe", "Bkg", "Miss"];
const KIND_NAMES = ["True positive", "Wrong class", "Poor location", "Wrong class and poor location",
  "Duplicate", "Background", "Missed object", "Matched object"];
const ORDERS = ["high", "low", "file", "size"];  // size: of cases only

const startState = model => ({
  det: 0, t: model.meta.detectors.map(each => each.best), view: "images", kinds: [], classes: [],
  slices: model.meta.properties.map(() => []), name: "", cell: null, group: -1, order: "high",
  least: 0, page: 1, open: null, side: null, alone: false,  // side: as usual for the list
});

// Of the address: what differs from the start. open: image i, and the case on it that is looked at:
// "17", "17.d204", "17.o31" (rows of the columns).
const toHash = (model, {det, t, view, kinds, classes, slices, name, cell, group, order, least, page, open, side, alone}) => {
  const start = startState(model), {image, code} = open ?? {};
  const caseText = code === null ? "" : code < 0 ? `.o${~code}` : `.d${code}`;
  const parts = [
    ["detector", det && "b"], ...t.map((each, k) => [LETTERS[k], each !== start.t[k] && String(each)]),
    ["view", view !== "images" && view], ["kind", kinds.map(k => KIND_KEYS[k]).join("-")], ["class", classes.join("-")],
    ...slices.map((values, p) => [`s${p}`, values.join("-")]), ["cell", cell?.join("-")], ["group", GROUPS[group]],
    ["name", name], ["sort", order !== "high" && order], ["least", least], ["page", page > 1 && page],
    ["open", open && `${image}${caseText}`], ["side", side !== null && String(Number(side))], ["alone", alone && 1],
  ];
  return `#${new URLSearchParams(parts.filter(each => each[1]))}`;
};

const fromHash = (model, hash) => {
  const state = startState(model), given = new URLSearchParams(hash.replace(/^#/, ""));
  const numbers = (key, limit) => (given.get(key) ?? "").split("-").map(text => /^\d+$/.test(text) ? Number(text) : -1)
    .filter(n => n >= 0 && n < limit);
  if (given.get("detector") === "b" && model.detectors.length > 1) state.det = 1;
  state.t = state.t.map((t, k) => thresholdOf(model, k, given.get(LETTERS[k]) ?? "") ?? t);
  if (given.get("view") === "cases") state.view = "cases";
  state.kinds = (given.get("kind") ?? "").split("-").map(key => KIND_KEYS.indexOf(key)).filter(k => k >= 0);
  state.classes = numbers("class", model.nClasses);
  state.slices = model.meta.properties.map((each, p) => numbers(`s${p}`, each.names.length + 1));
  const cell = numbers("cell", model.nClasses + 1);
  if (cell.length === 2) state.cell = cell;
  if (model.detectors.length > 1) state.group = GROUPS.indexOf(given.get("group"));
  if (state.group >= 0) Object.assign(state, {kinds: [], cell: null});  // objects of any kind
  state.name = given.get("name") ?? "";
  if (ORDERS.includes(given.get("sort"))) state.order = given.get("sort");
  state.least = numbers("least", 1e9)[0] ?? 0;
  state.page = Math.max(1, numbers("page", 1e9)[0] ?? 1);
  const open = /^(\d+)(?:\.([do])(\d+))?$/.exec(given.get("open") ?? "");
  if (open && Number(open[1]) < model.nImages) {
    const row = Number(open[3]), image = Number(open[1]), table = open[2] === "o" ? model.truth : model.detectors[state.det];
    const code = table.image[row] === image ? (open[2] === "o" ? ~row : row) : null;  // only of this image
    state.open = {image, code};
    if (/^[01]$/.test(given.get("side"))) state.side = given.get("side") === "1";
    state.alone = given.get("alone") === "1";
  }
  return state;
};

const isFiltered = state => state.kinds.length > 0 || state.classes.length > 0 || state.cell !== null
  || state.group >= 0 || state.slices.some(values => values.length);
const unfiltered = model => (({kinds, classes, slices, name, cell, group, least}) => ({kinds, classes, slices, name, cell, group, least}))(startState(model));
