// Head, toolbar, and what happens after a change.
const CURVES = [["precision", "dotted"], ["recall", "dashed"], ["f1", "solid"]], SLIDER = 1000, SETTLED = 120;

const makeApp = model => {
  const app = {
    model, source: makeSource(model), state: fromHash(model, location.hash), names: model.meta.detectors.map(each => clean(each.name)),
    open: new Set(), classText: "", allClasses: false, drawers: new Map(), list: [], found: null, counted: "",
    get det() { return model.detectors[this.state.det]; },
    warn(text) { document.getElementById("note").textContent = text; },
    groupItems(items) {  // the objects of the chosen group stand out
      const inGroup = g => model.truth.counted[g] && groupOf(model, g, app.found.steps) === app.state.group;
      return items.map(each => each.code < 0 && inGroup(~each.code) ? {...each, style: each.style === "missed" ? "missed" : "tp"} : {...each, style: each.code < 0 ? "ignored" : each.style});
    },
    change(changes, {keepPage = false, replace = false} = {}) {
      Object.assign(app.state, keepPage ? {} : {page: 1}, changes);
      history[replace ? "replaceState" : "pushState"](null, "", toHash(model, app.state));
      app.draw();
      const list = document.getElementById("list"), end = document.getElementById("cards").getBoundingClientRect().bottom;
      if (!keepPage && list.getBoundingClientRect().top < 0 && (changes.cell || end < innerHeight / 2)) list.scrollIntoView();
    },
    count() {  // only if what is counted has changed
      const {page, open, side, alone, view, order, ...counting} = app.state, key = JSON.stringify([counting, [...app.open]]);
      const listing = JSON.stringify([key, view, order]);
      if (key !== app.counted) app.found = select(model, app.state, [...app.open]);
      if (listing !== app.listed) app.list = listOf(app);
      const changed = listing !== app.listed;
      Object.assign(app, {counted: key, listed: listing});
      return changed;
    },
    draw() {
      const changed = app.count(), shown = `${app.listed}${app.state.page}`;
      app.head.draw();
      if (shown !== app.shownList) {
        if (changed) app.drawFilters();
        app.bar.draw();
        drawList(app);
        app.shownList = shown;
      }
      app.viewer.show();
    },
    recount() { app.count(); app.drawFilters(); },
    drawFilters() {
      redraw(document.getElementById("filters"), filterContent(app, app.found));
      const chips = chipsOf(app), active = chips.filter(each => each.dataset.key !== "clear").length;
      redraw(document.getElementById("chips"), chips);
      document.getElementById("drawer-name").textContent = active ? `Filters (${active} active)` : "Filters";
      if (document.getElementById("matrix").open) app.showMatrix();
    },
    showMatrix() {
      const dialog = document.getElementById("matrix"), close = pushable("close", "Close", () => dialog.close());
      dialog.replaceChildren(element("div", {className: "viewer-head"}, element("h2", {textContent: "Confusion matrix"}), close), cellTable(app, app.found));
      for (const each of dialog.querySelectorAll("td button")) each.addEventListener("click", () => dialog.close());
      if (!dialog.open) dialog.showModal();
    },
  };
  app.head = makeHead(app);
  app.bar = makeBar(app);
  app.viewer = makeViewer(app);
  return app;
};

const makeHead = app => {
  const {model} = app, head = document.getElementById("head"), timer = {};
  const title = element("p", {className: "title", title: clean(model.meta.title)}, element("a", {href: "index.html", textContent: "\u2190 Report"}), ` ${clean(model.meta.title)}`);
  const buttons = app.names.map((name, k) => pushable(`det${k}`, app.names.length > 1 ? `${"AB"[k]} ${name}` : name, () => { said = ""; app.change({det: k}); }));
  const canvas = element("canvas", {className: "curves", "aria-hidden": "true"});
  const slider = element("input", {type: "range", min: 0, max: SLIDER, step: 1, "aria-label": "Score threshold"});
  const field = element("input", {type: "text", inputMode: "decimal", "aria-label": "Score threshold, a number"});
  const best = pushable("best", "best F1", () => move(model.meta.detectors[app.state.det].best, true));
  const numbers = element("p", {className: "numbers", role: "status"});
  const floor = element("p", {className: "small", role: "status"});
  let said = "";
  head.replaceChildren(title, element("div", {className: "detectors", role: "group", "aria-label": "Detector"}, ...buttons),
    element("label", {className: "threshold"}, element("span", {textContent: "Score threshold"}), element("span", {className: "slide"}, canvas, slider)),
    element("span", {className: "exact"}, field, best), numbers, floor);

  const ends = () => { const {steps} = app.det; return [steps[0], steps[steps.length - 1]]; };
  const move = (t, settle, message = "") => {  // numbers at once, the list when the slider rests
    said = message;
    app.state.t[app.state.det] = snapped(model, app.state.det, t);
    draw();
    clearTimeout(timer.id);
    timer.id = setTimeout(() => app.change({t: [...app.state.t]}, {replace: !settle}), settle ? 0 : SETTLED);
  };
  slider.addEventListener("input", () => {
    const [low, high] = ends(), t = low + (high - low) * slider.value / SLIDER, digits = Math.max(0, 4 - Math.ceil(Math.log10(high - low || 1)));
    move(Number(t.toFixed(Math.min(digits, 20))), false);
  });
  field.addEventListener("change", () => {
    const k = app.state.det, text = field.value.trim(), t = thresholdOf(model, k, text);
    if (t === null) {
      said = `\u201c${cut(clean(text))}\u201d is not a score threshold: type a number from ${limits(app.det).join(" to ")}, such as 0.5.`;
      draw();
    } else move(t, true, t === Number(text.replace(",", ".")) ? "" : `Counts are exact at ${shortest(app.det.steps, t)}, the next of ${grouped(app.det.steps.length)} thresholds.`);
    field.value = shortest(app.det.steps, app.state.t[k]);
  });

  const rate = value => Number.isNaN(value) ? "\u2013" : `${(100 * value).toFixed(1)}\u202f%`;
  const draw = () => {
    const {state} = app, k = state.det, {steps} = app.det, t = state.t[k], [low, high] = ends(), s = Math.min(stepOf(steps, t), steps.length);
    buttons.forEach((each, n) => each.setAttribute("aria-pressed", n === k));
    slider.value = high > low ? SLIDER * (t - low) / (high - low) : 0;
    slider.setAttribute("aria-valuetext", String(shortest(steps, t)));
    if (document.activeElement !== field) field.value = shortest(steps, t);
    const {tp, fp, missed, precision, recall, f1} = totals(model, k, s);
    numbers.replaceChildren(element("b", {className: "right", textContent: grouped(tp)}), " TP ", element("b", {className: "wrong", textContent: grouped(fp)}), " FP ",
      element("b", {className: "lost", textContent: grouped(missed)}), ` missed \u00b7 precision ${rate(precision)}, recall ${rate(recall)}, F1 ${rate(f1)}`);
    const own = model.meta.detectors[k], left = own.of - app.det.n;
    floor.textContent = said + (own.floor === null ? "" : ` ${grouped(left)} of ${grouped(own.of)} detections, below ${own.floor.toPrecision(3)}, are left out: the slider ends there.`);
    curves(low, high);
  };
  const curves = (low, high) => {
    const w = canvas.clientWidth || 300, h = canvas.clientHeight || 36, context = prepare(canvas, w, h), {steps} = app.det;
    context.strokeStyle = getComputedStyle(head).color;
    for (const [name, style] of CURVES) {
      context.setLineDash({dotted: [1, 3], dashed: [5, 3], solid: []}[style]);
      context.lineWidth = style === "solid" ? 2 : 1;
      context.beginPath();
      for (let n = 0, first = true; n <= 100; n++) {
        const y = totals(model, app.state.det, stepOf(steps, low + (high - low) * n / 100))[name];
        if (Number.isNaN(y)) continue;
        context[first ? "moveTo" : "lineTo"](8 + (w - 16) * n / 100, h - 2 - (h - 4) * y);
        first = false;
      }
      context.stroke();
    }
  };
  window.addEventListener("resize", draw);
  return {draw};
};

const makeBar = app => {
  const root = document.getElementById("bar"), views = [["Images", "images"], ["Cases", "cases"]].map(([text, view]) => pushable(view, text, () => app.change({view})));
  const sort = element("select", {"aria-label": "Sort"}), name = element("input", {type: "search", placeholder: "file name", "aria-label": "File name"});
  const least = element("input", {type: "number", min: 0, step: 1, "aria-label": "Cases per image, at least"});
  const leastLabel = element("label", {title: "Only images with at least so many of the cases listed. The counts beside filters are without this limit."}, "\u2265 ", least, " cases");
  const saveImages = pushable("saveImages", "Save images", () => save(`${fileName(app, "images")}.txt`, imageList(app), "text/plain"));
  const saveCases = pushable("saveCases", "Save cases", async () => save(`${fileName(app, "cases")}.csv`, await caseList(app), "text/csv"));
  const options = element("div", {className: "options"}, element("label", {}, "Sort ", sort), name, leastLabel, saveImages, saveCases);
  root.append(element("div", {className: "views", role: "group", "aria-label": "View"}, ...views), options);
  sort.addEventListener("change", () => app.change({order: sort.value}));
  const typed = {};
  name.addEventListener("input", () => {
    clearTimeout(typed.id), typed.id = setTimeout(() => app.change({name: name.value}, {replace: true}), SETTLED);
  });
  least.addEventListener("change", () => app.change({least: Math.max(0, Math.floor(least.valueAsNumber || 0))}));
  const narrow = window.matchMedia("(max-width:760px)");
  const place = () => {
    (narrow.matches ? document.getElementById("more") : root).append(options);
    for (const name of ["drawer", "legend"]) document.getElementById(name).open = !narrow.matches;
  };
  narrow.addEventListener("change", place);
  place();
  return {
    draw() {
      const {state} = app, cases = state.view === "cases";
      views.forEach((each, n) => each.setAttribute("aria-pressed", cases === (n === 1)));
      const names = cases ? ["highest score first", "lowest score first", "file order", "largest missed first"]
        : ["most cases first", "fewest cases first", "file order"];
      sort.replaceChildren(...names.map((text, n) => element("option", {value: ORDERS[n], textContent: text})));
      sort.value = ORDERS.indexOf(state.order) < names.length ? state.order : "high";
      if (document.activeElement !== name) name.value = state.name;
      least.value = state.least || "";
    },
  };
};

const start = async () => {
  try {
    await loadScript("data/meta.js");
    const names = ["truth", ...files.get("meta").detectors.map((_, k) => `det${k}`)];
    await Promise.all(names.map(name => loadScript(`data/${name}.js`)));
  } catch (error) {
    document.getElementById("note").replaceChildren(`${error.message}. Keep the files of the report together. `,
      element("a", {href: "index.html", textContent: "The report"}), " is complete without them.");
    return;
  }
  const model = readModel();
  for (const name of [...files.keys()]) if (name !== "meta") files.delete(name);
  document.title = `${clean(model.meta.title)}: images`;
  const app = makeApp(model), again = () => { app.state = fromHash(model, location.hash); app.draw(); };
  window.addEventListener("popstate", again);
  window.matchMedia("(prefers-color-scheme:dark)").addEventListener("change", () => { app.shownList = null; app.draw(); });
  document.getElementById("skip").addEventListener("click", event => {
    event.preventDefault();
    (document.querySelector("#cards button") ?? document.getElementById("list")).focus();
  });
  app.draw();
  document.documentElement.dataset.ready = Math.round(performance.now());  // milliseconds since it was opened
};
start();
