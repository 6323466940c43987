// What is shown, as a part of the address: back, reload and a link in a ticket give the same page.
const LETTERS = ["a", "b"], KIND_KEYS = ["TP", "Cls", "Loc", "Both", "Dupe", "Bkg", "Miss"];
const KIND_NAMES = ["True positive", "Wrong class", "Poor location", "Wrong class and poor location",
  "Duplicate", "Background", "Missed object", "Matched object"];
const ORDERS = ["high", "low", "file"];

const startState = model => ({
  det: 0, t: model.meta.detectors.map(each => each.best), view: "images", kinds: [], classes: [],
  slices: model.meta.properties.map(() => []), name: "", cell: null, group: -1, order: "high",
  least: 0, page: 1, open: null, side: null, alone: false,  // side: as usual for the list
});

// Image i, and the case on it that is looked at: "17", "17.d204", "17.o31" (rows of the columns).
const openText = open => open.code === null ? `${open.image}`
  : `${open.image}.${open.code < 0 ? "o" : "d"}${open.code < 0 ? ~open.code : open.code}`;

const toHash = (model, state) => {
  const start = startState(model), found = new URLSearchParams();
  if (state.det) found.set("detector", "b");
  state.t.forEach((t, k) => { if (t !== start.t[k]) found.set(LETTERS[k], String(t)); });
  if (state.view !== "images") found.set("view", state.view);
  if (state.kinds.length) found.set("kind", state.kinds.map(k => KIND_KEYS[k]).join("-"));
  if (state.classes.length) found.set("class", state.classes.join("-"));
  state.slices.forEach((values, p) => { if (values.length) found.set(`s${p}`, values.join("-")); });
  if (state.cell) found.set("cell", state.cell.join("-"));
  if (state.group >= 0) found.set("group", GROUPS[state.group]);
  if (state.name) found.set("name", state.name);
  if (state.order !== "high") found.set("sort", state.order);
  if (state.least) found.set("least", state.least);
  if (state.page > 1) found.set("page", state.page);
  if (state.open) found.set("open", openText(state.open));
  if (state.side !== null) found.set("side", Number(state.side));
  if (state.alone) found.set("alone", 1);
  return `#${found}`;
};

const fromHash = (model, hash) => {
  const state = startState(model), given = new URLSearchParams(hash.replace(/^#/, ""));
  const numbers = (key, limit) => (given.get(key) ?? "").split("-").map(text => /^\d+$/.test(text) ? Number(text) : -1)
    .filter(n => n >= 0 && n < limit);
  if (given.get("detector") === "b" && model.detectors.length > 1) state.det = 1;
  state.t = state.t.map((t, k) => {
    const value = thresholdOf(model, k, given.get(LETTERS[k]) ?? "");
    return Number.isNaN(value) ? t : value;
  });
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
    const row = Number(open[3]), most = open[2] === "o" ? model.truth.n : model.detectors[state.det].n;
    const code = open[2] && row < most ? (open[2] === "o" ? ~row : row) : null;
    state.open = {image: Number(open[1]), code};
    if (/^[01]$/.test(given.get("side"))) state.side = given.get("side") === "1";
    state.alone = given.get("alone") === "1";
  }
  return state;
};

const isFiltered = state => state.kinds.length > 0 || state.classes.length > 0 || state.cell !== null
  || state.group >= 0 || state.slices.some(values => values.length);
const unfiltered = model => (({kinds, classes, slices, name, cell, group, least}) => ({kinds, classes, slices, name, cell, group, least}))(startState(model));
