// The list: cards of images, or of cases as crops.
const PER_PAGE = 60, CARD = [240, 180];

const kindOfCase = ({det, found, state}, code) => code >= 0 ? det.kind[code] & 7
  : found.mode === "group" || det.found[~code] >= found.steps[state.det] ? FOUND : MISS;
const labelOf = (app, code) => code < 0 ? app.model.truth.label[~code] : app.det.label[code];
const imageOf = (app, code) => code < 0 ? app.model.truth.image[~code] : app.det.image[code];

// The object that a case is about: in a list of a cell the paired one, else that of its kind.
const objectOf = (app, code) => {
  if (code < 0) return -1;
  const {mode, paired} = app.found, pair = paired ? paired.object[code] : -1;
  return mode === "cell" && pair >= 0 ? pair : app.det.object[code];
};

const captionOf = (app, code) => {
  const {classes} = app.model.meta, label = clean(classes[labelOf(app, code)]), kind = kindOfCase(app, code);
  if (code < 0) {
    if (app.found.mode === "group") return [label, `found by ${["both", "A only", "B only", "neither"][app.state.group]}`];
    return [label, kind === MISS ? "missed" : "matched, but not paired here"];
  }
  const head = `${label} ${rounded(app.det.steps[app.det.step[code]], 4)}`, object = objectOf(app, code);
  const there = object < 0 ? "" : clean(classes[app.model.truth.label[object]]);
  if (app.found.mode === "cell") return [head, `${there && app.found.paired.object[code] >= 0 ? `overlaps ${there}` : "overlaps no free object"} \u00b7 ${KIND_NAMES[kind]}`];
  return [head, kind === 1 ? `Wrong class: it is ${there}` : kind === 3 ? `${KIND_NAMES[3]}: near ${there}` : KIND_NAMES[kind]];
};

// Pixel boxes of a case and its object, and what is drawn around them.
const sceneOf = async (app, i, code, k = app.state.det) => {
  const boxes = await app.source.boxes(i), items = itemsOf(app.model, boxes, k, i, app.found.steps[k]);
  const wanted = code === null || (code >= 0 && k !== app.state.det) ? null : items.find(each => each.code === code) ?? null;
  const object = code === null || k !== app.state.det ? -1 : objectOf(app, code);
  return {items, focus: wanted, beside: object < 0 ? null : ~object, picture: await app.source.picture(i)};
};

const drawCard = async (app, canvas, i, code) => {
  const size = [canvas.clientWidth || CARD[0], canvas.clientHeight || CARD[1]], whole = [app.model.width[i], app.model.height[i]];
  let scene;
  try { scene = await sceneOf(app, i, code); } catch (error) { app.warn(error.message); return; }
  if (!canvas.isConnected) return;
  const {items, focus, beside, picture} = scene, context = prepare(canvas, ...size);
  const other = items.find(each => each.code === beside);
  const around = focus && other ? {x: Math.min(focus.x, other.x), y: Math.min(focus.y, other.y),
    w: Math.max(focus.x + focus.w, other.x + other.w) - Math.min(focus.x, other.x),
    h: Math.max(focus.y + focus.h, other.y + other.h) - Math.min(focus.y, other.y)} : focus;
  const view = around ? cropView(size, whole, around) : fitView(size, whole);
  const marked = code === null && app.found.mode === "group" ? app.groupItems(items) : items;
  canvas.dataset.drawn = "";
  paint(context, size, view, picture, whole, marked, focus ? {focus: focus.code, beside, labels: true} : {});
};

const counted = (app, n) => {
  const what = app.found.mode === "group" ? "object" : app.state.kinds.length || app.found.mode === "cell" ? "case" : "error";
  return `${grouped(n)} ${what}${n === 1 ? "" : "s"}`;
};

const card = (app, n, i, code) => {
  const name = clean(app.model.meta.files[i]), short = middle(name, code === null ? 26 : 18), count = app.found.perImage[i];
  const [head, text] = code === null ? [short, counted(app, count)] : captionOf(app, code);
  const kind = code === null ? -1 : kindOfCase(app, code), style = kind < 0 ? "" : kind === MISS ? "lost" : kind === 0 ? "right" : kind === FOUND ? "" : "wrong";
  const canvas = element("canvas", {"aria-hidden": "true"});
  const made = pushable(`card${code === null ? `i${i}` : code}`, canvas, () => app.change({open: {image: i, code}}, {keepPage: true}), {className: "card", title: name});
  made.append(element("b", {className: style, textContent: head}), element("small", {textContent: code === null ? text : `${text} \u00b7 ${short}`}));
  app.drawers.set(canvas, () => drawCard(app, canvas, i, code));
  return element("li", {}, made);
};

const listOf = ({model, state, found}) => state.view === "cases" ? ordered(model, state, found.cases)
  : images(model, state, found.perImage, isFiltered(state));

const pageLinks = (app, page, last) => {
  const around = [...new Set([1, page - 2, page - 1, page, page + 1, page + 2, last])].filter(p => p >= 1 && p <= last);
  const turn = p => { app.change({page: p}, {keepPage: true}); window.scrollTo(0, 0); document.getElementById("list").focus(); };
  const link = (text, p, label) => pushable(`page${label}`, text, () => turn(p), {"aria-label": label, ...(p === page ? {"aria-current": "page"} : {})});
  if (last < 2) return [];
  return [...(page > 1 ? [link("Previous", page - 1, "Previous page")] : []),
    ...around.flatMap((p, n) => [...(n && p - around[n - 1] > 1 ? ["\u2026"] : []), link(grouped(p), p, `Page ${p}`)]),
    ...(page < last ? [link("Next", page + 1, "Next page")] : [])];
};

const drawList = app => {
  const {state, model, found} = app, list = app.list, cases = state.view === "cases";
  const last = Math.max(1, Math.ceil(list.length / PER_PAGE)), page = Math.min(state.page, last), begin = (page - 1) * PER_PAGE;
  const rows = Array.from(list.slice(begin, begin + PER_PAGE));
  app.drawers = new Map();
  redraw(document.getElementById("cards"), rows.map((each, n) => cases ? card(app, n, imageOf(app, each), each) : card(app, n, each, null)));
  redraw(document.getElementById("pages"), pageLinks(app, page, last));
  const what = cases ? (list.length === 1 ? "case" : "cases") : `of ${grouped(model.nImages)} images`;
  const range = list.length > PER_PAGE ? `; here ${grouped(begin + 1)} to ${grouped(begin + rows.length)}` : "";
  const total = cases ? "" : `, ${counted(app, found.cases.length)}`;
  document.getElementById("note").textContent = list.length ? `${grouped(list.length)} ${what}${total}${range}` : `Nothing matches these filters${total}`;
  app.seen?.disconnect();  // a card is drawn when it comes near the window
  app.seen = new IntersectionObserver((entries, seen) => {
    for (const {target, isIntersecting} of entries) if (isIntersecting) { seen.unobserve(target); app.drawers.get(target)?.(); }
  }, {rootMargin: "300px"});
  for (const canvas of app.drawers.keys()) app.seen.observe(canvas);
};
