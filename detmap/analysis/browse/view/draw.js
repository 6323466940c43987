// Boxes and pictures of images on a canvas.
const STYLES = {  // colour, width, dashes: kinds differ without colour too
  tp: ["#3ccf9f", 2, []], fp: ["#ff9d45", 2, [6, 4]], missed: ["#ff62d0", 3, []],
  found: ["#ffffff", 1, []], ignored: ["#c3c9d1", 1, [2, 3]],
};
const BIDI = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
const clean = text => String(text).replace(BIDI, "\ufffd");
const middle = (text, most = 26) => text.length > most ? `${text.slice(0, most - 16)}\u2026${text.slice(-15)}` : text;  // both ends tell names apart
const cut = (text, most = 22) => text.length > most ? `${text.slice(0, most - 1)}\u2026` : text;
const KEPT_FILES = 40, KEPT_PICTURES = 240;

const loadScript = path => new Promise((resolve, reject) => document.head.append(element("script", {
  src: path, onload: resolve, onerror: () => reject(new Error(`${path} is missing or cannot be read`))})));

// The last used of what a function makes for a key; a failed promise is tried again.
const remember = (most, make) => {
  const kept = new Map();
  return key => {
    const value = kept.get(key) ?? make(key);
    kept.delete(key);
    kept.set(key, value);
    if (value instanceof Promise) value.catch(() => kept.delete(key));
    if (kept.size > most) kept.delete(kept.keys().next().value);
    return value;
  };
};

const outlineOf = raw => raw ? {off: offsets(unpack(raw.points)), x: unpack(raw.x), y: unpack(raw.y)} : null;

const makeSource = model => {
  const {meta} = model, base = meta.perFile, pictures = meta.pictures;
  const boxes = remember(KEPT_FILES, async k => {
    const name = `box${String(k).padStart(3, "0")}`;
    await loadScript(`data/${name}.js`);
    const raw = files.get(name);
    files.delete(name);
    return {
      first: k * base, truth: outlineOf(raw.truth),
      detectors: raw.detectors.map(each => ({box: each.box.map(unpack), overlap: unpack(each.overlap),
        row: unpack(each.row), outline: outlineOf(each.outline)})),
    };
  });
  const has = pictures.have ? unpack(pictures.have) : null;
  const path = i => pictures.kind === "copies" && has[i] ? `img/${String(i + 1).padStart(6, "0")}.jpg`
    : pictures.kind === "links" ? pictures.links[i] : "";
  const fits = (i, image) => {  // a linked file may be another one, or turned by its EXIF data
    const apart = Math.abs(image.naturalWidth * model.height[i] - image.naturalHeight * model.width[i]);
    return apart <= Math.max(image.naturalWidth, image.naturalHeight, model.height[i], model.width[i]);
  };
  const picture = remember(KEPT_PICTURES, i => new Promise(resolve => {
    if (!path(i)) { resolve(null); return; }
    const image = element("img", {onload: () => resolve(fits(i, image) ? image : null), onerror: () => resolve(null), src: path(i)});
  }));
  return {boxes: i => boxes(Math.floor(i / base)), picture};
};

const pointsOf = ({meta: {scale, origin}}, outline, n) => {
  const points = [];
  for (let p = outline?.off[n]; p < outline?.off[n + 1]; p++) points.push([outline.x[p] / scale - origin, outline.y[p] / scale - origin]);
  return points.length ? points : null;
};
const rectOf = ({meta: {scale, origin}}, [x, y, w, h], n) => ({x: x[n] / scale - origin, y: y[n] / scale - origin, w: w[n] / scale, h: h[n] / scale});

// What is drawn of a detector on an image, objects first, with a code as in `select`.
const itemsOf = (model, boxes, k, i, s) => {
  const {truth, meta} = model, det = model.detectors[k], own = boxes.detectors[k], found = [];
  const dots = meta.shape === "points";
  const skippedG = truth.off[boxes.first], skippedD = det.off[boxes.first];
  for (let g = truth.off[i]; g < truth.off[i + 1]; g++) {
    const style = !truth.counted[g] ? "ignored" : det.found[g] >= s ? "found" : "missed";
    const label = clean(meta.classes[truth.label[g]]);
    found.push({code: ~g, dots, style, label, name: style === "missed" ? `${cut(label)} missed` : cut(label), score: NaN,
      overlap: NaN, row: truth.row[g], points: pointsOf(model, boxes.truth, g - skippedG),
      kind: style === "missed" ? "Missed" : style === "found" ? "Object" : "Ignored", ...rectOf(model, truth.box, g)});
  }
  for (let d = det.off[i]; d < det.off[i + 1] && det.step[d] >= s; d++) {
    const at = d - skippedD, score = det.steps[det.step[d]], ignored = det.kind[d] >= 8;
    const style = ignored ? "ignored" : det.kind[d] === 0 ? "tp" : "fp", label = clean(meta.classes[det.label[d]]);
    found.push({code: d, dots, style, label, name: `${cut(label)} ${rounded(score, 2)}`, score, overlap: own.overlap[at] / 255,
      row: own.row[at], points: pointsOf(model, own.outline, at), kind: ignored ? "Ignored" : KIND_KEYS[det.kind[d]],
      ...rectOf(model, own.box, at)});
  }
  return found;
};

// Best IoU of an object with the detections of its class that are drawn; empty where only outlines
// are known.
const reachOf = (model, k, items, object) => {
  if (model.meta.shape || object.style === "ignored") return NaN;
  const area = each => each.w * each.h, label = model.truth.label[~object.code];
  const some = items.filter(each => each.code >= 0 && model.detectors[k].label[each.code] === label);
  return Math.max(0, ...some.map(each => {
    const w = Math.min(each.x + each.w, object.x + object.w) - Math.max(each.x, object.x);
    const h = Math.min(each.y + each.h, object.y + object.h) - Math.max(each.y, object.y);
    return w > 0 && h > 0 ? w * h / (area(each) + area(object) - w * h) : 0;
  }));
};

const rounded = (value, digits) => Number.isNaN(value) ? "" : value.toFixed(digits);

// Sizes a canvas to its place and returns its context in CSS pixels.
const prepare = (canvas, width, height) => {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  Object.assign(canvas, {width: Math.round(width * ratio), height: Math.round(height * ratio)});
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
};

// view: scale, and where the image's corner is on the canvas.
const paint = (context, size, view, picture, [imageWidth, imageHeight], items, shown = {}) => {
  const css = getComputedStyle(document.documentElement);
  context.fillStyle = css.getPropertyValue("--canvas");
  context.fillRect(0, 0, ...size);
  const w = imageWidth * view.scale, h = imageHeight * view.scale;
  if (picture) context.drawImage(picture, view.x, view.y, w, h);
  else Object.assign(context, {fillStyle: css.getPropertyValue("--blank")}).fillRect(view.x, view.y, w, h);
  const {focus = null, beside = null, labels = false, faint = .4} = shown, order = ["ignored", "found", "tp", "fp", "missed"];
  const sorted = [...items].sort((a, b) => order.indexOf(a.style) - order.indexOf(b.style));
  const strong = each => focus === null || each.code === focus || each.code === beside;
  for (const each of sorted.filter(each => !strong(each))) outline(context, view, each, faint, false);
  for (const each of sorted.filter(strong)) outline(context, view, each, 1, each.code === focus);
  const taken = [];
  const rank = each => each.code === focus ? 2 : each.code === beside ? 1 : 0;
  const named = sorted.filter(each => strong(each) && (each.style !== "found" || rank(each))).reverse().sort((a, b) => rank(b) - rank(a));
  if (labels) for (const each of named) nameBox(context, size, view, each, taken);
};

const trace = (context, view, each) => {
  const place = ([x, y]) => [view.x + x * view.scale, view.y + y * view.scale];
  context.beginPath();
  if (each.points && each.points.length > 2 && !each.dots) {
    each.points.forEach((point, n) => context[n ? "lineTo" : "moveTo"](...place(point)));
    context.closePath();
  } else {
    context.rect(...place([each.x, each.y]), Math.max(each.w * view.scale, 2), Math.max(each.h * view.scale, 2));
    if (each.dots) for (const point of each.points ?? []) {
      const [x, y] = place(point);
      context.moveTo(x + 1.5, y);
      context.arc(x, y, 1.5, 0, 7);
    }
  }
};

const outline = (context, view, each, alpha, thick) => {
  const [color, width, dashes] = STYLES[each.style];
  trace(context, view, each);
  Object.assign(context, {globalAlpha: alpha, lineWidth: width + (thick ? 3 : 2), strokeStyle: "rgba(0,0,0,.55)"});
  context.stroke();
  context.setLineDash(dashes);
  Object.assign(context, {lineWidth: width + (thick ? 1 : 0), strokeStyle: color});
  context.stroke();
  context.setLineDash([]);
  context.globalAlpha = 1;
};

// A name above its box, unless it would cover another one.
const nameBox = (context, [width, height], view, each, taken) => {
  const left = view.x + each.x * view.scale, top = view.y + each.y * view.scale;
  if (left > width || top > height || left + each.w * view.scale < 0 || top + each.h * view.scale < 0) return;  // not in sight
  context.font = "12px system-ui,sans-serif";
  const w = context.measureText(each.name).width + 8, h = 17;
  const x = Math.min(Math.max(left, 0), width - w), y = top >= h ? top - h : Math.min(Math.max(top, 0), height - h);
  if (taken.some(([a, b, c]) => x < a + c && a < x + w && y < b + h && b < y + h)) return;
  taken.push([x, y, w]);
  context.fillStyle = "rgba(10,12,15,.88)";
  context.fillRect(x, y, w, h);
  context.fillStyle = STYLES[each.style][0];
  context.fillText(each.name, x + 4, y + 12.5);
};

// The whole image in a canvas, or a window of 1.8 times a box, inside the image and at most 6x.
const fitView = ([width, height], [w, h]) => {
  const scale = Math.min(width / w, height / h);
  return {scale, x: (width - w * scale) / 2, y: (height - h * scale) / 2};
};
const cropView = ([width, height], [w, h], box) => {
  const whole = fitView([width, height], [w, h]);
  const wanted = Math.min(width / (1.8 * Math.max(box.w, 1)), height / (1.8 * Math.max(box.h, 1)), 6);
  const scale = Math.max(wanted, whole.scale);
  const corner = (side, length, middle) => length * scale <= side ? (side - length * scale) / 2
    : Math.min(0, Math.max(side - length * scale, side / 2 - middle * scale));
  return {scale, x: corner(width, w, box.x + box.w / 2), y: corner(height, h, box.y + box.h / 2)};
};
