// Files of what is listed: names of images as text, cases as CSV with the columns of
// `detmap diagnose --errors`.
const CSV_HEAD = ["kind", "image", "class", "x", "y", "w", "h", "score", "overlap", "other", "row"];

const save = (name, text, type) => {
  const link = element("a", {download: name, href: URL.createObjectURL(new Blob([text], {type}))});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};

// A text that begins like a formula follows an apostrophe; quotes where CSV needs them.
const csvCell = value => {
  if (typeof value === "number") return Number.isNaN(value) ? "" : String(value);
  const text = clean(value), safe = /^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};

const listedImages = app => app.state.view === "images" ? Array.from(app.list)
  : [...new Set(Array.from(app.list, code => imageOf(app, code)))];

const imageList = app => `${listedImages(app).map(i => clean(app.model.meta.files[i])).join("\n")}\n`;

// The highest-scoring detection whose fix would match a missed object, -1 for none.
const fixerOf = ({det, model, found, state}, g) => {
  const i = model.truth.image[g];
  for (let d = det.off[i]; d < det.off[i + 1] && det.step[d] >= found.steps[state.det]; d++) {
    if ([1, 2].includes(det.kind[d]) && det.object[d] === g) return d;
  }
  return -1;
};

const fileName = ({det, names, state}, what) => {
  const name = `${what} of ${names[state.det]} from ${shortest(det.steps, state.t[state.det])}`;
  return name.replace(/[^\p{L}\p{N}.-]+/gu, "-").slice(-120);
};

const caseList = async app => {
  const {model, state, found} = app, {classes, ids, files: names} = model.meta;
  const rows = [[...CSV_HEAD, ...(ids ? ["file"] : [])].join(",")];  // ids are joined with lists of images by their files
  for (const code of ordered(model, state, found.cases)) {
    const i = imageOf(app, code), boxes = await app.source.boxes(i), kind = kindOfCase(app, code);
    const each = itemsOf(model, boxes, state.det, i, found.steps[state.det]).find(item => item.code === code);
    const fixer = kind === MISS ? fixerOf(app, ~code) : -1, object = code < 0 ? -1 : app.det.object[code];
    const other = object >= 0 ? classes[model.truth.label[object]] : fixer >= 0 ? classes[app.det.label[fixer]] : "";
    const label = classes[labelOf(app, code)], name = fixer >= 0 ? `missed (${KIND_KEYS[app.det.kind[fixer]]})` : KIND_KEYS[kind];
    rows.push([name ?? "object", ids ? ids[i] : names[i], label, each.x, each.y, each.w, each.h,
      code < 0 ? NaN : each.score, Math.round(each.overlap * 100) / 100, other === label ? "" : other, each.row,
      ...(ids ? [names[i]] : [])].map(csvCell).join(","));
  }
  return `${rows.join("\n")}\n`;
};
