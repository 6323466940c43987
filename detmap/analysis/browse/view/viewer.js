// One image in a dialog: layers, zoom, both detectors side by side, and its rows.
const MOST_ROWS = 400;
const makeViewer = app => {
  const dialog = document.getElementById("viewer"), {model} = app, two = model.detectors.length > 1;
  const shown = {truth: true, other: false, zoom: 1, x: 0, y: 0, hover: null};
  let panes = [], at = null, pointers = new Map();
  const button = (text, key, press, label) => {
    const made = pushable(label, text, press, key ? {title: label} : {title: label, "aria-label": label});
    if (key) made.append(" ", element("kbd", {textContent: key}));
    return made;
  };
  const title = element("h2", {id: "viewer-title"}), controls = element("div", {className: "controls"});
  const stage = element("div", {className: "stage"}), rows = element("div", {className: "rows"});
  dialog.append(element("div", {className: "viewer-head"}, title, controls), element("div", {className: "viewer-body"}, stage, rows));
  dialog.removeAttribute("aria-label");
  dialog.setAttribute("aria-labelledby", title.id);

  const index = ({view, open} = app.state) => app.list.indexOf(view === "cases" ? open.code : open.image);
  const move = step => {
    const next = app.list[Math.max(0, Math.min(app.list.length - 1, index() + step))];
    if (next === undefined) return;
    const cases = app.state.view === "cases", page = Math.floor(app.list.indexOf(next) / PER_PAGE) + 1;
    keep({open: cases ? {image: imageOf(app, next), code: next} : {image: next, code: null}, page});
  };
  const side = () => two && (app.state.side ?? app.found.mode === "group");
  const keep = changes => app.change(changes, {keepPage: true, replace: true});  // in the address
  const alone = () => keep({alone: !app.state.alone}), beside = () => two && keep({side: !side()});
  const toggle = name => { shown[name] = !shown[name]; reset(); draw(); };
  const current = () => shown.other ? 1 - app.state.det : app.state.det;  // the list stays that of the chosen one
  const reset = () => Object.assign(shown, {zoom: 1, x: 0, y: 0});
  const zoom = (factor, x = 0, y = 0) => {
    const next = Math.max(1, Math.min(40, shown.zoom * factor)), real = next / shown.zoom;
    const {scene, size} = panes.find(pane => pane.scene.focus) ?? {}, {image} = app.state.open, whole = [model.width[image], model.height[image]];
    if (scene && shown.zoom === 1 && x === 0 && y === 0) {  // the case comes to the middle
      const {focus} = scene, {scale} = fitView(size, whole);
      Object.assign(shown, {x: (whole[0] / 2 - focus.x - focus.w / 2) * scale, y: (whole[1] / 2 - focus.y - focus.h / 2) * scale});
    }
    Object.assign(shown, {zoom: next, x: x - (x - shown.x) * real, y: y - (y - shown.y) * real});
    if (next === 1) reset();
    paintPanes();
  };

  const detectors = () => side() ? [0, 1] : [current()];
  // Beside each other, or one below the other if the image is then larger.
  const layout = (n, [w, h]) => {
    const width = stage.clientWidth, height = stage.clientHeight, space = 24;
    const beside = Math.min(width / n / w, (height - space) / h), below = Math.min(width / w, (height / n - space) / h);
    stage.classList.toggle("beside", beside >= below);
    return beside >= below ? [Math.floor(width / n) - 4, height - space] : [width, Math.floor(height / n) - space];
  };

  const paintPanes = () => {
    const {image, code} = app.state.open, whole = [model.width[image], model.height[image]];
    for (const pane of panes) {
      const {canvas, size, scene} = pane, base = fitView(size, whole);
      const middle = [size[0] / 2, size[1] / 2], scale = base.scale * shown.zoom;
      const view = {scale, x: middle[0] + (base.x - middle[0]) * shown.zoom + shown.x, y: middle[1] + (base.y - middle[1]) * shown.zoom + shown.y};
      const items = shown.truth ? scene.items : scene.items.filter(each => each.code >= 0 || each.style === "missed");
      const focus = shown.hover ?? (app.state.alone ? code : null), known = items.some(each => each.code === focus);
      const beside = shown.hover === null ? scene.beside : null;
      paint(prepare(canvas, ...size), size, view, scene.picture, whole, items,
        known ? {focus, beside, labels: true, faint: 0} : {labels: true, focus: shown.hover === null && items.some(each => each.code === code) ? code : null, beside, faint: .55});
    }
  };

  const rowsOf = scene => {
    const body = element("tbody"), order = ["missed", "fp", "tp", "found", "ignored"];
    const sorted = [...scene.items].sort((a, b) => order.indexOf(a.style) - order.indexOf(b.style) || (b.score || 0) - (a.score || 0));
    for (const each of sorted.slice(0, MOST_ROWS)) {
      const show = element("button", {type: "button", textContent: each.kind, className: {missed: "lost", fp: "wrong", tp: "right"}[each.style] ?? ""});
      const row = element("tr", {}, element("td", {}, show), element("td", {textContent: cut(each.label, 40), title: each.label}), element("td", {textContent: rounded(each.score, 4)}),
        element("td", {textContent: rounded(each.code < 0 ? reachOf(model, current(), scene.items, each) : each.overlap, 2)}), element("td", {textContent: `${Math.round(each.w)}\u00d7${Math.round(each.h)}`}));
      if (each.code === app.state.open.code) row.className = "chosen";
      const hover = code => () => { shown.hover = code; paintPanes(); };
      for (const [on, off, target] of [["pointerenter", "pointerleave", row], ["focus", "blur", show]]) {
        target.addEventListener(on, hover(each.code));
        target.addEventListener(off, hover(null));
      }
      body.append(row);
    }
    const head = ["Kind", "Class", "Score", model.meta.overlap, "Size"].map(name => element("th", {scope: "col", textContent: name}));
    head[3].title = "Of a detection: with the object that its kind is about. Of an object: with the best detection of its class from the score threshold on";
    const name = two ? ` of ${app.names[current()]}` : "";
    return [element("p", {className: "small", textContent: `${grouped(sorted.length)} rows${name}${sorted.length > MOST_ROWS ? `, ${MOST_ROWS} of them listed` : ""}; point at one to see its box alone`}),
      roving(element("div", {role: "group", "aria-label": "Rows of the image"}, element("table", {}, element("thead", {}, element("tr", {}, ...head)), body)))];
  };

  const draw = async () => {
    const {image, code} = app.state.open, whole = [model.width[image], model.height[image]], place = index(), mine = {};
    at = mine;
    title.replaceChildren(clean(model.meta.files[image]),
      element("small", {textContent: ` ${place >= 0 ? `${grouped(place + 1)} of ${grouped(app.list.length)} \u00b7 ` : ""}${whole.join("\u00d7")}`}));
    const mark = (made, on) => { made.setAttribute("aria-pressed", on); return made; };
    redraw(controls, [button("\u2190", "", () => move(-1), "Previous"), button("\u2192", "", () => move(1), "Next"),
      mark(button("Truth", "G", () => toggle("truth"), "Ground truth"), shown.truth),
      ...(code === null ? [] : [mark(button("Only this", "F", alone, "Only this case"), app.state.alone)]),
      ...(two ? [mark(button("A | B", "S", beside, "A beside B"), side()), mark(button("Other", "D", () => toggle("other"), "Other detector"), shown.other)] : []),
      button("\u2212", "", () => zoom(1 / 1.5), "Zoom out"), button("Fit", "0", () => { reset(); paintPanes(); }, "Fit"),
      button("+", "", () => zoom(1.5), "Zoom in"), button("Close", "Esc", () => dialog.close(), "Close")]);
    const every = detectors();
    let scenes;
    try { scenes = await Promise.all(every.map(k => sceneOf(app, image, code, k))); } catch (error) { stage.replaceChildren(element("p", {className: "notice", textContent: `${error.message}. Keep the files of the report together.`})); return; }
    if (at !== mine || !dialog.open) return;
    const size = layout(every.length, whole);
    panes = every.map((k, n) => ({canvas: element("canvas", {role: "img", "aria-label": `Boxes of ${app.names[k]}`}), size, k, scene: scenes[n]}));
    stage.replaceChildren(...panes.map(({canvas, k}) => {
      Object.assign(canvas.style, {width: `${size[0]}px`, height: `${size[1]}px`});
      const t = app.state.t[k], name = two ? `${"AB"[k]} ${app.names[k]}` : app.names[k];
      return element("figure", {}, element("figcaption", {textContent: `${name}, score from ${shortest(model.detectors[k].steps, t)}`}), canvas);
    }));
    redraw(rows, rowsOf(scenes[Math.max(0, every.indexOf(current()))]));
    paintPanes();
  };

  stage.addEventListener("wheel", event => {
    event.preventDefault();
    const box = event.target.getBoundingClientRect();
    zoom(event.deltaY < 0 ? 1.2 : 1 / 1.2, event.clientX - box.left - box.width / 2, event.clientY - box.top - box.height / 2);
  }, {passive: false});
  stage.addEventListener("pointerdown", event => { pointers.set(event.pointerId, event); stage.setPointerCapture(event.pointerId); });
  for (const name of ["pointerup", "pointercancel"]) stage.addEventListener(name, event => pointers.delete(event.pointerId));
  stage.addEventListener("pointermove", event => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const others = [...pointers.values()].filter(each => each.pointerId !== event.pointerId);
    pointers.set(event.pointerId, event);
    if (others.length) {  // two fingers
      const apart = each => Math.hypot(each.clientX - others[0].clientX, each.clientY - others[0].clientY);
      zoom(apart(event) / Math.max(apart(before), 1));
    } else if (shown.zoom > 1) {
      shown.x += event.clientX - before.clientX;
      shown.y += event.clientY - before.clientY;
      paintPanes();
    }
  });
  const keys = {ArrowLeft: () => move(-1), ArrowRight: () => move(1), g: () => toggle("truth"), f: alone,
    s: beside, d: () => two && toggle("other"), "+": () => zoom(1.5), "=": () => zoom(1.5), "-": () => zoom(1 / 1.5), 0: () => { reset(); paintPanes(); }};
  dialog.addEventListener("keydown", event => {
    const press = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!press || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    press();
  }, true);
  dialog.addEventListener("close", () => {
    const {open, view} = app.state;
    if (!open) return;
    const key = view === "cases" && open.code !== null ? `card${open.code}` : `cardi${open.image}`;
    app.change({open: null, side: null, alone: false}, {keepPage: true});
    [...document.querySelectorAll("#cards [data-key]")].find(each => each.dataset.key === key)?.focus();
  });
  window.addEventListener("resize", () => { if (dialog.open) draw(); });

  return {
    show() {
      if (!app.state.open) { if (dialog.open) dialog.close(); return; }
      if (!dialog.open) {
        shown.other = false;
        dialog.showModal();
      }
      reset();
      shown.hover = null;
      draw();
    },
  };
};
