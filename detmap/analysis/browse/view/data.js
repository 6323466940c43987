// Data files, and their columns as typed arrays. Everything is sorted by image.
const files = new Map();
globalThis.detmapData = (name, content) => { files.set(name, content); };

const decoded = text => {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);  // not in older browsers
  const signs = atob(text), bytes = new Uint8Array(signs.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = signs.charCodeAt(i);
  return bytes;
};
const unpack = ({b, w}) => {
  const bytes = decoded(b), n = bytes.length, Kind = {1: Uint8Array, 2: Uint16Array, 4: Uint32Array, 8: Float64Array}[w];
  if (Kind) return new Kind(bytes.buffer);
  const numbers = new Uint32Array(n / 3);
  for (let i = 0, k = 0; k < n; i++, k += 3) numbers[i] = bytes[k] | bytes[k + 1] << 8 | bytes[k + 2] << 16;
  return numbers;
};

const offsets = counts => {
  const off = new Uint32Array(counts.length + 1);
  for (let i = 0; i < counts.length; i++) off[i + 1] = off[i] + counts[i];
  return off;
};

const spread = (off, n) => {  // the image of each row
  const image = new Uint32Array(n);
  for (let i = 0; i + 1 < off.length; i++) image.fill(i, off[i], off[i + 1]);
  return image;
};

const readTruth = raw => {
  const off = offsets(unpack(raw.counts)), label = unpack(raw.label), n = label.length;
  const truth = {
    n, off, label, image: spread(off, n), counted: unpack(raw.counted), row: unpack(raw.row),
    box: raw.box.map(unpack), properties: raw.properties.map(unpack), total: 0,
  };
  for (const each of truth.counted) truth.total += each;
  return truth;
};

const readDetector = (raw, truth) => {
  const off = offsets(unpack(raw.counts)), step = unpack(raw.step), n = step.length;
  const kind = unpack(raw.kind), linked = unpack(raw.object), object = new Int32Array(n);
  const image = spread(off, n), steps = unpack(raw.steps), pairOff = offsets(unpack(raw.pairs));
  const found = new Int32Array(truth.n).fill(-1);  // step of the detection that matched an object
  const tp = new Uint32Array(steps.length + 1), fp = new Uint32Array(steps.length + 1);
  const hits = new Uint32Array(steps.length + 1);
  for (let d = 0; d < n; d++) {
    object[d] = linked[d] ? truth.off[image[d]] + linked[d] - 1 : -1;
    if (kind[d] >= 8) continue;
    (kind[d] === 0 ? tp : fp)[step[d]]++;
    if (kind[d] === 0 && object[d] >= 0) found[object[d]] = Math.max(found[object[d]], step[d]);
  }
  for (let g = 0; g < truth.n; g++) {
    if (!truth.counted[g]) found[g] = -1;
    else if (found[g] >= 0) hits[found[g]]++;
  }
  for (const counts of [tp, fp, hits]) {
    for (let s = steps.length - 1; s >= 0; s--) counts[s] += counts[s + 1];
  }
  return {
    n, off, step, kind, label: unpack(raw.label), object, image, steps, found, tp, fp, hits,
    code: unpack(raw.code), pairOff, pairDet: unpack(raw.pairDet), pairObj: unpack(raw.pairObj), properties: [],
  };
};

// The place of each detection among the values of a property: of a TP and where the detection has
// none of its own, that of its object; 0 if unknown.
const propertyOf = (model, detector, p) => {
  if (detector.properties[p]) return detector.properties[p];
  const {meta, truth} = model, property = meta.properties[p], values = new Uint8Array(detector.n);
  let below = 1;
  for (const each of meta.properties.slice(p + 1)) if (each.own) below *= each.names.length + 1;
  for (let d = 0; d < detector.n; d++) {
    const object = detector.object[d], byObject = object >= 0 ? truth.properties[p][object] : 0;
    if (!property.own || (detector.kind[d] & 7) === 0) values[d] = byObject;
    else values[d] = Math.floor(detector.code[d] / below) % (property.names.length + 1);
  }
  detector.properties[p] = values;
  return values;
};

const readModel = () => {
  const meta = files.get("meta"), truth = readTruth(files.get("truth"));
  const detectors = meta.detectors.map((_, k) => readDetector(files.get(`det${k}`), truth));
  return {meta, truth, detectors, nImages: meta.files.length, nClasses: meta.classes.length,
    width: unpack(meta.width), height: unpack(meta.height)};
};
