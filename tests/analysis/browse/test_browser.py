"""The page of all images in headless Chromium, against `diagnose` and `confusion`."""

import csv
import functools
import io
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.analysis.browse import cases, writer
from detmap.analysis.browse.cases import Shown
from detmap.analysis.browse.pictures import Wanted
from tests.analysis.browse.counting import Expected, every_shown, groups, voc_detectors
from tests.analysis.browse.test_counts import sample
from tests.analysis.chromium_pages import (
    MARKS,
    UNFOLD,
    needs_axe,
    require_no_fault,
    window,
    without_policy,
)
from tests.analysis.diagnosis.test_shape_overlaps import rectangles
from tests.analysis.diagnosis.troublesome_tables import tables
from tests.support import builders as make

pytestmark = MARKS


READY = "'ready' in document.documentElement.dataset"


def written(every: dict[str, Shown], place: Path, wanted: Wanted | None = None) -> Path:
    """The report folder of detectors; its first page is a stand-in."""
    detectors = {name: (each.diagnosis, each.best) for name, each in every.items()}
    index = b'<!doctype html><html lang="en"><title>report</title><h1>report</h1>'
    writer.write(place, index, detectors, title="a title", wanted=wanted or Wanted())
    return place


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("browse") / "report"
    return written(sample(), place, Wanted(make.SHAPES / "JPEGImages"))


def open_page(browser: Any, place: Path, state: str = "") -> None:
    browser.get("about:blank")
    browser.get_log("browser"), browser.get_log("performance")
    browser.get(f"{(place / 'images.html').as_uri()}{state}")
    until(browser, f"return {READY}")


def until(browser: Any, script: str) -> Any:
    """What a script returns as soon as it is true."""
    for _ in range(1000):
        if found := browser.execute_script(script):
            return found
        time.sleep(0.01)
    pytest.fail(f"never true: {script}; {browser.get_log('browser')}")


READ = r"""
    const number = text => Number(text.replace(/\D/g, ""));
    const bars = prefix => [...document.querySelectorAll(`#filters [data-key^=${prefix}]`)];
    const count = bar => number((bar.querySelector(".count") ?? bar).textContent);
    const counts = prefix => Object.fromEntries(bars(prefix).map(
      bar => [bar.dataset.key.slice(prefix.length), count(bar)]));
    const note = document.getElementById("note").textContent;
    return {
      totals: [...document.querySelectorAll(".numbers b")].map(each => number(each.textContent)),
      kinds: counts("kind"), groups: counts("group"), cells: counts("cell"), note,
      listed: note.startsWith("Nothing") ? 0 : number(note.split(/ (?:of|case)/)[0]),
    };
"""


def read(browser: Any) -> dict[str, Any]:
    return dict(browser.execute_script(READ))


def press(browser: Any, key: str) -> None:
    browser.execute_script("document.querySelector(`[data-key='${arguments[0]}']`).click()", key)


def require_numbers(browser: Any, every: dict[str, Shown], det: int, t: list[float]) -> None:
    """All numbers of the page in a state without filters, then the length of each list."""
    pair = [Expected(each, at) for each, at in zip(every.values(), t, strict=True)]
    mine, seen = pair[det], read(browser)
    right, *wrong, lost = mine.kinds()
    assert seen["totals"] == [right, sum(wrong), lost]
    assert [seen["kinds"][str(k)] for k in range(7)] == mine.kinds()
    assert [seen["groups"][str(k)] for k in range(4)] == groups(*pair)
    matrix, n = mine.matrix(), len(mine.found.truth.categories)
    cells = {tuple(map(int, key.split("-"))): count for key, count in seen["cells"].items()}
    if n <= 8:
        assert cells == matrix
    assert all(matrix[cell] == count for cell, count in cells.items())
    press(browser, "cases")
    for k, count in enumerate(mine.kinds()):
        press(browser, f"kind{k}")
        assert read(browser)["listed"] == count
        press(browser, f"kind{k}")
    for cell in cells:
        press(browser, "cell{}-{}".format(*cell))
        assert read(browser)["listed"] == matrix[cell], cell
        press(browser, "cell{}-{}".format(*cell))
    for k, count in enumerate(groups(*pair)):
        press(browser, f"group{k}")
        assert read(browser)["listed"] == count
        press(browser, f"group{k}")
    press(browser, "images")


def drive(
    browser: Any, place: Path, every: dict[str, Shown], thresholds: list[list[float]]
) -> None:
    for t in thresholds:
        for det in (0, 1):
            state = f"#detector={'ab'[det]}&a={t[0]!r}&b={t[1]!r}"
            open_page(browser, place, state)
            require_numbers(browser, every, det, t)


def test_numbers_of_the_sample(browser: Any, shapes: Path) -> None:
    every = sample()
    best = [each.best for each in every.values()]
    drive(browser, shapes, every, [best, [0.3, 0.8], [0.5, 0.9], [0.6, 0.75], [0.0, 0.99]])


def test_numbers_of_crowds_and_ties(browser: Any, tmp_path: Path) -> None:
    for seed in (3, 5, 8):
        truth, found = tables(seed)
        half = found.take(np.arange(len(found) // 2))
        every = every_shown(truth, {"a": found, "b": half}, "coco-bbox")
        place = written(every, tmp_path / str(seed))
        drive(browser, place, every, [[0.0, 0.5], [0.5, 0.1]])


def test_numbers_of_voc_2007(browser: Any, voc2007: Path, tmp_path: Path) -> None:
    every = voc_detectors(voc2007)
    best = [each.best for each in every.values()]
    drive(browser, written(every, tmp_path / "report"), every, [best, [0.1, 0.3]])


def type_threshold(browser: Any, given: str) -> tuple[str, str]:
    """Types into the field; returns what it holds then, and the message."""
    browser.execute_script(
        "const field = document.querySelector('#head .exact input');"
        "field.value = arguments[0]; field.dispatchEvent(new Event('change'))",
        given,
    )
    script = """
        const message = document.querySelector("#head .small[role=status]").textContent;
        return [document.querySelector("#head .exact input").value, message];
    """
    shown, message = browser.execute_script(script)
    return str(shown), str(message)


def test_the_threshold_moves_by_slider_field_and_button(browser: Any, shapes: Path) -> None:
    open_page(browser, shapes)
    first = read(browser)["totals"]
    assert first == [143, 63, 156]
    slider = browser.find_element("css selector", "input[type=range]")
    slider.send_keys("\ue014" * 3)  # arrow right
    until(browser, "return location.hash.includes('a=')")
    t = float(browser.execute_script("return /a=([^&]+)/.exec(location.hash)[1]"))
    mine = Expected(sample()["contours"], t)
    assert [read(browser)["kinds"][str(k)] for k in range(7)] == mine.kinds()
    for given, value in (("0.6", 0.6), ("0,7", 0.7), (".6", 0.6), ("0.9", 0.9), ("0", 0.0)):
        assert type_threshold(browser, given) == (str(value).removesuffix(".0"), "")
        until(browser, f"return location.hash === '#a={value:g}'")
        kinds = Expected(sample()["contours"], value).kinds()
        assert [read(browser)["kinds"][str(k)] for k in range(7)] == kinds
        assert read(browser)["totals"] == [kinds[0], sum(kinds[1:6]), kinds[6]]
    for given in ("2", "-3", "abc", "", "50%", "NaN", "Infinity", "0x1"):
        shown, message = type_threshold(browser, given)
        assert (shown, given in message) == ("0", True)
        assert "type a number from 0 to 1" in message
    field = browser.find_element("css selector", "#head .exact input")
    press(browser, "best")
    until(browser, "return !location.hash.includes('a=')")
    assert read(browser)["totals"] == first
    shown, _ = type_threshold(browser, str(field.get_property("value")))
    assert (shown, read(browser)["totals"]) == ("0.4366", first)
    numbers = browser.execute_script(
        "return [0.467578, 0.4675781234567, 0.43661].map(t => shortest([0.4, 0.4675781234567], t))"
    )
    assert numbers == [0.467578, 0.467578, 0.43661]  # 0.4676 would count less
    open_page(browser, shapes, "#detector=b")
    assert type_threshold(browser, ".6") == ("0.6", "")  # below its lowest score
    kinds = Expected(sample()["template"], 0.6).kinds()
    assert read(browser)["totals"] == [kinds[0], sum(kinds[1:6]), kinds[6]]


def test_a_threshold_between_steps_is_the_next_step(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cases, "MOST_STEPS", 100)
    every = sample()
    open_page(browser, written(every, tmp_path / "report"), "#a=0.2555")
    field = browser.find_element("css selector", "#head .exact input")
    assert field.get_property("value") == "0.26"
    mine = Expected(every["contours"], 0.26)
    assert [read(browser)["kinds"][str(k)] for k in range(7)] == mine.kinds()
    shown, message = type_threshold(browser, "0.2655")
    assert (shown, message.startswith("Counts are exact at 0.27, the next of")) == ("0.27", True)
    assert type_threshold(browser, "0.99") == ("0.99", "")
    assert read(browser)["totals"] == [0, 0, 299]


def test_a_threshold_below_the_floor_is_the_floor(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "shown", functools.partial(cases.shown, most=500))
    every = sample(floor=500)
    floor = every["contours"].floor or 0.0
    open_page(browser, written(every, tmp_path / "report"), "#a=0.001")
    mine = Expected(every["contours"], floor)
    assert [read(browser)["kinds"][str(k)] for k in range(7)] == mine.kinds()
    _, message = type_threshold(browser, "0.001")
    assert message.startswith("Counts are exact at ")


def test_no_message_and_no_request_outside(browser: Any, shapes: Path) -> None:
    open_page(browser, shapes)
    until(browser, "return document.querySelector('#cards canvas[data-drawn]')")
    assert browser.get_log("browser") == []
    asked = [entry["message"] for entry in browser.get_log("performance")]
    urls = [re.search(r'"url":"([^"]+)"', text) for text in asked if "requestWillBeSent" in text]
    assert urls
    assert [each[1] for each in urls if each and not each[1].startswith(shapes.as_uri())] == []


def test_the_address_holds_the_state(browser: Any, shapes: Path) -> None:
    open_page(browser, shapes, "#detector=b&kind=Cls-Bkg&class=2&view=cases&sort=low")
    there = read(browser)
    wanted = [*("Wrong class ✕", "Background ✕", "pentagon ✕", "Clear filters")]
    assert [each.text for each in browser.find_elements("css selector", ".chip")] == wanted
    press(browser, "clear")
    assert read(browser)["note"] != there["note"]
    browser.back()
    until(browser, "return document.querySelectorAll('.chip').length === 4")
    assert read(browser) == there
    odd = "#class=99&cell=a-b&open=9999&page=-1&a=x&group=c"
    browser.get((shapes / "images.html").as_uri() + odd)
    until(browser, f"return {READY}")
    assert browser.get_log("browser") == []


def test_filters_narrow_the_list(browser: Any, shapes: Path) -> None:
    """More than three false positives on an image from a score on, and a list of these images."""
    open_page(browser, shapes, "#a=0.3&kind=Cls-Loc-Both-Dupe-Bkg&least=4")
    mine = Expected(sample()["contours"], 0.3).found
    wrong = ~mine.ignored & (mine.kind > 0) & (mine.kind < 6)
    per_image = np.bincount(mine.detections.image[wrong], minlength=len(mine.truth.images))
    names = {mine.truth.images.files[k] for k in np.flatnonzero(per_image > 3)}
    assert read(browser)["listed"] == len(names)
    assert {*saved(browser, "saveImages").splitlines()} == names


def test_the_fewest_cases_of_an_image_hold_in_both_views(browser: Any, shapes: Path) -> None:
    for view, note in (("images", "4 of 60 images, 8 cases"), ("cases", "8 cases")):
        open_page(browser, shapes, f"#kind=Bkg&least=2&view={view}")
        assert read(browser)["note"] == note
        assert len(saved(browser, "saveImages").splitlines()) == 4
        assert len(saved(browser, "saveCases").splitlines()) == 1 + 8
        assert browser.find_element("css selector", ".options input[type=number]").is_displayed()


SAVED = """
    const done = arguments[arguments.length - 1];
    HTMLAnchorElement.prototype.click = function () { window.clicked = this.download; };
    URL.createObjectURL = blob => { blob.text().then(done); return "#"; };
    document.querySelector(`[data-key=${arguments[0]}]`).click();
"""


def saved(browser: Any, key: str) -> str:
    return str(browser.execute_async_script(SAVED, key))


@pytest.mark.parametrize(("name", "t"), [("contours", 0.4366), ("template", 0.8)])
def test_cases_are_saved_with_the_columns_of_errors(
    browser: Any, shapes: Path, name: str, t: float
) -> None:
    """The rows and values that `diagnose` lists of the detections from the threshold on."""
    from detmap.analysis.diagnosis.mistakes import errors

    kept = np.flatnonzero(sample()[name].diagnosis.detections.score >= t)
    mine = Expected(sample()[name], t).found
    wanted = {
        (np.isnan(each.score), each.row if np.isnan(each.score) else kept[each.row]): each
        for each in errors(mine)
    }
    open_page(browser, shapes, f"#view=cases&detector={'ab'[name == 'template']}&a={t}&b={t}")
    rows = list(csv.DictReader(io.StringIO(saved(browser, "saveCases"))))
    link = browser.execute_script("return window.clicked")
    assert link == f"cases-of-{name}-from-{t}.csv"
    assert list(rows[0]) == [*next(iter(wanted.values())).to_dict(), "file"]  # images have ids
    assert len(rows) == len(wanted)
    assert {"missed (Cls)", "missed (Loc)", "Miss", "Loc"} <= {row["kind"] for row in rows}
    for row in rows:
        of_object, own = row["score"] == "", row["kind"] in ("Loc", "Dupe")
        there = wanted.pop((of_object, int(row["row"]))).to_dict()
        if own:  # of the object that makes the kind
            there |= {"other": "", "overlap": mine.same[np.searchsorted(kept, int(row["row"]))]}
        for key in ("kind", "image", "class", "other"):
            assert row[key] == str(there[key]), row
        assert all(abs(float(row[key]) - there[key]) <= 0.13 for key in "xywh")
        assert of_object or float(row["score"]) == there["score"]
        assert of_object == (row["overlap"] == "")
        assert of_object or abs(float(row["overlap"]) - there["overlap"]) < 0.01
        assert row["kind"] != "Loc" or 0.1 <= float(row["overlap"]) <= 0.5


@pytest.mark.parametrize(("name", "t"), [("contours", 0.4366), ("template", 0.8)])
def test_objects_have_the_iou_of_the_chosen_detector_at_the_threshold(
    browser: Any, shapes: Path, name: str, t: float
) -> None:
    mine = Expected(sample()[name], t).found
    rows = """return [...document.querySelectorAll(".rows tbody tr")].filter(
        row => ["Missed", "Object"].includes(row.cells[0].textContent)).map(
        row => [row.cells[1].textContent, Number(row.cells[3].textContent)])"""
    names = mine.truth.categories.names
    for image in range(0, 60, 9):
        open_page(browser, shapes, f"#detector={'ab'[name == 'template']}&a={t}&b={t}&open={image}")
        until(browser, "return document.querySelector('.rows tbody tr')")
        objects = np.flatnonzero(mine.to_find & (mine.truth.image == image))
        wanted = sorted((names[mine.truth.label[g]], mine.reach[g]) for g in objects)
        for seen, (label, overlap) in zip(
            sorted(browser.execute_script(rows)), wanted, strict=True
        ):
            assert seen == [label, pytest.approx(overlap, abs=0.03)]


def focused(browser: Any) -> str:
    return str(browser.execute_script("return document.activeElement.dataset.key ?? ''"))


def test_everything_by_keyboard(browser: Any, shapes: Path) -> None:
    open_page(browser, shapes, "#group=b")
    browser.find_element("id", "skip").send_keys("\ue007")
    first = focused(browser)
    assert first.startswith("cardi")
    browser.switch_to.active_element.send_keys("\ue007")
    until(browser, "return document.querySelectorAll('#viewer canvas').length === 2")
    key = browser.switch_to.active_element.send_keys
    title = "return document.querySelector('#viewer-title').textContent"
    here = browser.execute_script(title)
    key("\ue014")
    until(browser, f"{title} !== {here!r}")
    key("s")
    until(browser, "return document.querySelectorAll('#viewer canvas').length === 1")
    key("d")
    caption = "document.querySelector('#viewer figcaption').textContent"
    until(browser, f"return {caption}.startsWith('B template')")
    for each in ("g", "+", "-", "0"):
        key(each)
    key("\ue00c")  # escape
    # the browser gives the focus back to the first card before the event of closing moves it on
    until(browser, f"return ![{first!r}, ''].includes(document.activeElement.dataset.key ?? '')")
    assert focused(browser).startswith("cardi")
    assert not browser.execute_script("return document.getElementById('viewer').open")
    assert browser.get_log("browser") == []
    bars = browser.find_element("css selector", "[data-key=group2]")
    bars.send_keys("\ue015")
    assert focused(browser) == "group3"
    browser.switch_to.active_element.send_keys("\ue00d")
    assert focused(browser) == "group3"
    assert "found by neither" in browser.find_element("id", "chips").text


def test_a_cell_brings_the_top_of_the_list_into_view(browser: Any, shapes: Path) -> None:
    """So does a filter that leaves a list which ends above the window."""
    place = "return document.getElementById(arguments[0]).getBoundingClientRect().top"
    with window(browser, 1280):
        for key, state in (("cell3-6", ""), ("cell3-6", "#view=cases"), ("kind4", "#view=cases")):
            open_page(browser, shapes, state)
            browser.execute_script("scrollTo(0, document.body.scrollHeight)")
            assert browser.execute_script(place, "list") < -500
            press(browser, key)
            assert -1 < browser.execute_script(place, "list") < 300
            assert browser.execute_script(place, "cards") < 700


def test_a_case_comes_to_the_middle_as_the_image_is_zoomed(browser: Any, shapes: Path) -> None:
    spy = """
        const rect = CanvasRenderingContext2D.prototype.rect;
        window.seen = [];
        CanvasRenderingContext2D.prototype.rect = function (x, y, w, h) {
          const {width, height} = this.canvas.getBoundingClientRect();
          window.seen.push(Math.hypot(x + w / 2 - width / 2, y + h / 2 - height / 2));
          return rect.call(this, x, y, w, h);
        };
    """
    some = sample()["contours"]
    image = some.diagnosis.detections.image[some.rows[110]]
    for case in (f"{some.diagnosis.truth.image[some.objects[17]]}.o17", f"{image}.d110"):
        open_page(browser, shapes, f"#view=cases&a=0.1&open={case}")
        until(browser, "return document.querySelector('#viewer canvas')")
        browser.execute_script(spy)
        press(browser, "Only this case")
        until(browser, "return document.querySelector('#viewer [aria-pressed=true][title*=case]')")
        time.sleep(0.3)
        nearest = "return Math.min(...seen.splice(0))"
        apart = browser.execute_script(nearest)
        for _ in range(3):
            press(browser, "Zoom in")
            assert browser.execute_script(nearest) < 2 < apart


def test_the_address_holds_what_the_viewer_shows(browser: Any, shapes: Path) -> None:
    two = "return document.querySelectorAll('#viewer canvas').length"
    open_page(browser, shapes, "#view=cases&open=3.o0")  # an object of another image
    until(browser, f"{two} === 1")
    assert "of" not in browser.find_element("css selector", "#viewer h2 small").text
    for state, before, after in (("#group=a&open=3", 2, 1), ("#view=cases&open=0.o0", 1, 2)):
        open_page(browser, shapes, state)
        until(browser, f"{two} === {before}")
        press(browser, "A beside B")
        until(browser, f"{two} === {after}")
        if "cases" in state:
            press(browser, "Only this case")
        browser.refresh()
        until(browser, f"{two} === {after}")
    pressed = "return document.querySelector('[data-key=\"Only this case\"]').ariaPressed"
    assert browser.execute_script(pressed) == "true"
    press(browser, "Close")
    until(browser, "return !/open|side|alone/.test(location.hash)")


def test_objects_found_by_a_detector_have_no_kind(browser: Any, shapes: Path) -> None:
    open_page(browser, shapes, "#group=b&kind=Bkg&cell=0-1")
    chips = [each.text for each in browser.find_elements("css selector", ".chip")]
    assert chips == ["only B template ✕"]


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first page of a report folder."""
    place = tmp_path_factory.mktemp("linked") / "report"
    found = [make.SHAPES / "detections" / f"{name}.json" for name in ("contours", "template")]
    detmap.report(make.SHAPES / "instances_test.json", *found, output=place)
    return place / "index.html"


def test_the_report_links_to_cases(browser: Any, linked: Path) -> None:
    browser.get(linked.as_uri())
    browser.execute_script(
        "document.querySelector('#confusion [data-href$=\"a&view=cases&cell=3-6\"]')"
        ".dispatchEvent(new Event('click', {bubbles: true}))"
    )
    until(browser, f"return location.pathname.endsWith('images.html') && {READY}")
    assert read(browser)["note"] == "30 cases"
    browser.get(linked.as_uri())
    browser.execute_script("document.querySelector('#mistakes .gallery a').click()")
    until(browser, "return document.getElementById('viewer')?.open")


def test_linked_images_are_shown(browser: Any, tmp_path: Path) -> None:
    place = written(sample(), tmp_path / "report", Wanted(make.SHAPES / "JPEGImages", link=True))
    open_page(browser, place, "#open=0")
    until(browser, "return document.querySelector('#viewer canvas')")
    pixels = """
        const context = document.querySelector("#viewer canvas").getContext("2d");
        try { context.getImageData(0, 0, 1, 1); } catch (error) { return error.name; }
    """
    assert until(browser, pixels) == "SecurityError"  # a picture from a file was drawn
    assert browser.get_log("browser") == []


def test_shapes_are_drawn_as_outlines(browser: Any, tmp_path: Path) -> None:
    truth_file, found_file = rectangles(tmp_path, 1)
    truth = detmap.read_truth(truth_file, shapes="masks")
    found = detmap.read_detections(found_file, truth)
    place = written(every_shown(truth, {"a": found}, "coco-segm"), tmp_path / "report")
    open_page(browser, place, "#a=0")
    until(browser, "return document.querySelector('#cards canvas[data-drawn]')")
    assert browser.get_log("browser") == []


def test_a_missing_file_is_named(browser: Any, tmp_path: Path) -> None:
    place = written(sample(), tmp_path / "report")
    note = "return document.getElementById('note').textContent"
    (place / "data" / "box000.js").unlink()
    open_page(browser, place)
    until(browser, f"{note}.includes('data/box000.js is missing')")
    (place / "data" / "det1.js").unlink()
    browser.get((place / "images.html").as_uri())
    until(browser, f"{note}.includes('data/det1.js is missing')")


def test_without_scripts_it_says_where_to_look(browser: Any, shapes: Path) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    browser.get((shapes / "images.html").as_uri())
    notice = browser.find_element("css selector", ".notice")
    assert notice.is_displayed()
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


HOSTILE = (
    "<img src=x onerror=document.body.dataset.xss=1>",
    "</script><script>document.body.dataset.xss=1</script>",
    "'\"`{{7*7}}${1}\u2028\u2029",
    "photo\u202egpj.exe",
    "a" * 300,
    "..\\..\\C:\\data\\img 1.jpg",
    "../../etc/passwd",
    "=HYPERLINK('x')",
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    n = len(HOSTILE)
    boxes = np.array([[10.0 * k, 0, 9, 9] for k in range(n)])
    labels, names = list(range(1, n + 1)), dict(enumerate(HOSTILE, 1))
    truth = detmap.truth_from_arrays([*HOSTILE], labels, boxes, categories=names)
    shifted, score = [k % n + 1 for k in labels], np.linspace(0.5, 0.9, n)
    found = detmap.detections_from_arrays(truth, [*HOSTILE], shifted, boxes, score)
    every = every_shown(truth, {HOSTILE[0]: found, HOSTILE[4]: found}, "coco-bbox")
    return written(every, tmp_path_factory.mktemp("hostile") / "report")


VIEWS = {
    "images": "",
    "cases": "#view=cases&kind=Cls",
    "cell": "#view=cases&cell=0-1",
    "group": "#group=a&detector=b",
    "one": "#open=1",
    "case": "#view=cases&open=0.o0",
    "page": "#view=cases&a=0&page=2",
}


WIDE = """
    const wide = innerWidth, found = [], whole = document.documentElement.scrollWidth;
    if (whole > wide) found.push(`the page: ${whole}`);
    const some = "button, input, select, h2, p, table, canvas";
    for (const each of document.querySelectorAll(some)) {
      const box = each.getBoundingClientRect();
      if (!box.width || box.left < -900 || each.closest(".scroll")) continue;
      if (box.right > wide + 1 || box.left < -1) found.push(each.outerHTML.slice(0, 90));
    }
    return found;
"""


@pytest.mark.parametrize("width", [1280, 768, 390])
@pytest.mark.parametrize("name", ["shapes", "hostile"])
def test_nothing_is_wider_than_the_window(
    browser: Any, request: pytest.FixtureRequest, name: str, width: int
) -> None:
    place = request.getfixturevalue(name)
    with window(browser, width):
        for state in VIEWS.values():
            open_page(browser, place, state)
            assert browser.execute_script(WIDE) == [], state
            assert browser.execute_script("return document.body.dataset.xss") is None
            assert browser.get_log("browser") == []


def test_hostile_names_are_harmless_text(browser: Any, hostile: Path) -> None:
    open_page(browser, hostile, "#view=cases&a=0")
    text = browser.execute_script("return document.body.textContent")
    assert "\u202e" not in text
    assert "onerror" in text
    rows = saved(browser, "saveCases").splitlines()
    assert any("'=HYPERLINK" in row for row in rows)
    assert not any(re.search(r"(^|,)=", row) for row in rows)


@needs_axe
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_no_fault(browser: Any, shapes: Path, view: str, scheme: str, width: int) -> None:
    with without_policy(browser), window(browser, width, scheme):
        open_page(browser, shapes, VIEWS[view])
        browser.execute_script(UNFOLD)
        until(browser, "return document.querySelector('canvas[data-drawn], #viewer canvas')")
        require_no_fault(browser)


@needs_axe
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_fault_in_links(browser: Any, linked: Path, scheme: str, width: int) -> None:
    with without_policy(browser), window(browser, width, scheme):
        browser.get(linked.as_uri())
        require_no_fault(browser)
