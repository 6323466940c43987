// Counts at a score threshold. A detection counts if its step is at least that of the threshold,
// so counts are those of detmap on the detections from that score on. No DOM: tests run it in Node.
const KINDS = 7, MISS = 6, FOUND = 7;  // TP, Cls, Loc, Both, Dupe, Bkg, Miss; FOUND: none of them
const GROUPS = ["both", "a", "b", "neither"];

const stepOf = (steps, threshold) => {  // the first step that is not below a threshold
  let low = 0, high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle] < threshold) low = middle + 1; else high = middle;
  }
  return low;
};

// A threshold with exact counts: the next step, if not all scores are steps or some are left out.
const snapped = (model, k, t) => {
  const {steps} = model.detectors[k], {exact, floor} = model.meta.detectors[k], n = stepOf(steps, t);
  return n === steps.length || (floor === null || t >= floor) && (exact || n === 0) ? t : steps[n];
};

// The limits of typed thresholds, and the threshold of a text: null if it is no number within them.
const limits = ({steps}) => [Math.min(0, steps[0]), Math.max(1, steps[steps.length - 1])];
const thresholdOf = (model, k, text) => {
  const t = /^[+-]?(\d+[.,]?\d*|[.,]\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text.replace(",", ".")) : NaN;
  const [low, high] = limits(model.detectors[k]);
  return t >= low && t <= high ? snapped(model, k, t) : null;
};

// A long number in as few digits as have its counts, at least four.
const shortest = (steps, t) => {
  for (let digits = String(t).length < 12 ? 21 : 4; digits <= 20; digits++) {
    const short = Number(t.toFixed(digits));
    if (stepOf(steps, short) === stepOf(steps, t)) return short;
  }
  return t;
};

const totals = (model, k, s) => {
  const {tp, fp, hits} = model.detectors[k], objects = model.truth.total, n = tp[s] + fp[s];
  const precision = n ? tp[s] / n : NaN, recall = objects ? tp[s] / objects : NaN;
  return {tp: tp[s], fp: fp[s], missed: objects - hits[s], precision, recall, f1: objects ? 2 * tp[s] / (n + objects) : NaN};
};

// One to one in the stored order: same class first, then by overlap.
const confuse = (model, k, s) => {
  const {truth, detectors} = model, det = detectors[k];
  const object = new Int32Array(det.n).fill(-1), taken = new Uint8Array(truth.n);
  for (let i = 0; i < model.nImages; i++) {
    for (let p = det.pairOff[i]; p < det.pairOff[i + 1]; p++) {
      const d = det.off[i] + det.pairDet[p];
      if (det.step[d] < s || object[d] >= 0) continue;
      const g = truth.off[i] + det.pairObj[p];
      if (taken[g]) continue;
      object[d] = g;
      taken[g] = 1;
    }
  }
  return {object, taken};
};

const groupOf = (model, g, steps) => {
  const a = model.detectors[0].found[g] >= steps[0], b = model.detectors[1].found[g] >= steps[1];
  return a ? (b ? 0 : 1) : (b ? 2 : 3);
};

// What a state shows. A case is a detection d, or an object as ~g. Each group of filters is counted
// with all others applied.
const select = (model, state, open = []) => {
  const {truth, detectors, nImages, nClasses} = model, det = detectors[state.det];
  const steps = detectors.map((each, k) => stepOf(each.steps, state.t[k])), s = steps[state.det];
  const mode = state.group >= 0 ? "group" : state.cell ? "cell" : "kind";
  const names = nameTest(model, state.name), background = nClasses;
  const wanted = state.slices.map((values, p) => values.length ? p : -1).filter(p => p >= 0);
  const sliced = [...new Set([...wanted, ...open])];
  const chosen = (list, n) => { const on = new Uint8Array(n); for (const each of list) on[each] = 1; return on; };
  const kindOn = chosen(state.kinds, KINDS + 1), classOn = chosen(state.classes, nClasses);
  const valueOn = sliced.map(p => chosen(state.slices[p], model.meta.properties[p].names.length + 1));
  const ofDet = sliced.map(p => propertyOf(model, det, p)), ofObj = sliced.map(p => truth.properties[p]);
  const anyKind = !state.kinds.length, anyClass = !state.classes.length;
  const isFree = sliced.map(p => !state.slices[p].length), nSliced = sliced.length;
  const kinds = new Uint32Array(KINDS + 1), classes = new Uint32Array(nClasses), groups = new Uint32Array(4);
  const slices = sliced.map(p => new Uint32Array(model.meta.properties[p].names.length + 1));
  const cells = new Map(), perImage = new Uint32Array(nImages), cases = [];
  const paired = detectors.length && !state.skipCells ? confuse(model, state.det, s) : null;

  // Counts a row in each group that alone may exclude it; returns whether none does.
  const consider = (code, kind, label, row, places, kindOk) => {
    const classOk = anyClass || classOn[label] === 1;
    let fails = (kindOk ? 0 : 1) + (classOk ? 0 : 1), failed = -1;
    if (fails > 1) return;
    for (let j = 0; j < nSliced; j++) {
      if (!isFree[j] && !valueOn[j][places[j][row]]) { fails++; failed = j; }
      if (fails > 1) return;
    }
    if (fails === 0 || !kindOk) kinds[kind]++;
    if (fails === 0 || !classOk) classes[label]++;
    for (let j = 0; j < nSliced; j++) if (fails === 0 || failed === j) slices[j][places[j][row]]++;
    if (fails) return;
    cases.push(code);
    perImage[code < 0 ? truth.image[~code] : det.image[code]]++;
  };
  const inSlices = (row, places) => sliced.every((_, j) => isFree[j] || valueOn[j][places[j][row]]);
  const count = (row, i, j, places) => {
    if (!inSlices(row, places)) return;
    const key = i * (nClasses + 1) + j;
    cells.set(key, (cells.get(key) ?? 0) + 1);
  };
  const kindOk = kind => anyKind ? (mode === "cell" || kind !== 0) : kindOn[kind] === 1;
  const cellOk = (i, j) => state.cell[0] === i && state.cell[1] === j;

  for (let i = 0; i < nImages; i++) {
    if (names && !names(i)) continue;
    for (let d = det.off[i]; d < det.off[i + 1] && det.step[d] >= s; d++) {
      if (det.kind[d] >= 8) continue;
      const label = det.label[d];
      if (paired) {
        const row = paired.object[d] < 0 ? background : truth.label[paired.object[d]];
        count(d, row, label, ofDet);
        if (mode === "cell" && !cellOk(row, label)) continue;
      }
      if (mode !== "group") consider(d, det.kind[d], label, d, ofDet, kindOk(det.kind[d]));
    }
    for (let g = truth.off[i]; g < truth.off[i + 1]; g++) {
      if (!truth.counted[g]) continue;
      const label = truth.label[g], missed = det.found[g] < s;
      if (paired && !paired.taken[g]) {
        count(g, label, background, ofObj);
        const kind = missed ? MISS : FOUND;
        if (mode === "cell" && cellOk(label, background)) consider(~g, kind, label, g, ofObj, kindOk(kind));
      }
      if (mode === "kind" && missed) consider(~g, MISS, label, g, ofObj, kindOk(MISS));
      if (detectors.length < 2) continue;
      const group = groupOf(model, g, steps);
      if ((anyClass || classOn[label]) && inSlices(g, ofObj)) groups[group]++;
      if (mode === "group" && group === state.group) consider(~g, FOUND, label, g, ofObj, true);
    }
  }
  const kept = cases.filter(code => perImage[code < 0 ? truth.image[~code] : det.image[code]] >= state.least);
  return {mode, steps, cases: kept, perImage, kinds, classes, groups, cells, paired,
    slices: new Map(sliced.map((p, j) => [p, slices[j]]))};
};

const nameTest = ({meta}, text) => text ? i => meta.files[i].toLowerCase().includes(text.toLowerCase()) : null;

const largestFirst = truth => {
  if (!truth.bySize) {
    const [, , w, h] = truth.box, area = Float64Array.from(w, (side, g) => side * h[g]);
    truth.bySize = Uint32Array.from(w.keys()).sort((a, b) => area[b] - area[a] || a - b);
  }
  return truth.bySize;
};

// Cases by score (equal ones by image), then objects by size; "low" reversed, "size" with the objects
// first; else as in the files.
const ordered = (model, state, cases) => {
  if (state.order === "file") return cases;
  const det = model.detectors[state.det], first = new Uint32Array(det.steps.length + 1);
  const there = new Uint8Array(model.truth.n), high = state.order !== "low", n = det.steps.length;
  const place = d => high ? n - 1 - det.step[d] : det.step[d];
  for (const each of cases) if (each < 0) there[~each] = 1; else first[place(each) + 1]++;
  for (let s = 0; s < n; s++) first[s + 1] += first[s];
  const sorted = new Int32Array(cases.length);
  for (const each of cases) if (each >= 0) sorted[first[place(each)]++] = each;
  const size = state.order === "size" ? cases.filter(each => each < 0).length : 0;
  if (size) sorted.copyWithin(size, 0);
  let at = size ? 0 : n ? first[n - 1] : 0;
  const bySize = largestFirst(model.truth);
  for (const g of high ? bySize : bySize.slice().reverse()) if (there[g]) sorted[at++] = ~g;
  return sorted;
};

// Images with at least as many cases as wanted, most cases first, fewest first, or as in the files.
const images = (model, state, perImage, filtered) => {
  const least = Math.max(state.least, filtered ? 1 : 0), names = nameTest(model, state.name), some = [];
  for (let i = 0; i < model.nImages; i++) if (perImage[i] >= least && (!names || names(i))) some.push(i);
  if (state.order === "file") return some;
  const sign = state.order === "low" ? 1 : -1;
  return some.sort((a, b) => sign * (perImage[a] - perImage[b]) || a - b);
};
