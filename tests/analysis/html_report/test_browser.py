"""The page in a real browser: headless Chromium, where it is installed."""

import csv
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import detmap
from detmap.analysis import html_report as page
from tests.analysis.chromium_pages import (
    MARKS,
    UNFOLD,
    needs_axe,
    require_no_fault,
    window,
    without_policy,
)
from tests.analysis.html_report.test_page import BOTH, COCO, HOSTILE, PICTURES, hostile
from tests.support.running import run

webdriver = pytest.importorskip("selenium.webdriver", reason="pip install selenium")
support_ui = pytest.importorskip("selenium.webdriver.support.ui")
pytestmark = MARKS


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of files with long names, with pictures and receipts."""
    folder = tmp_path_factory.mktemp("page")
    both = [folder / f"{path.stem}_of_a_file_whose_name_is_as_long_as_a_line.json" for path in BOTH]
    for path, copy in zip(BOTH, both, strict=True):
        shutil.copy(path, copy)
    file = folder / "report.html"
    assert run("report", COCO, *both, "--images", PICTURES, "-o", file).code == 0
    return file


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of one detector of 20 classes with long names, without pictures."""
    n, k = 200, 20
    boxes = np.tile([0.0, 0, 30, 30], (n, 1))
    image, label = np.arange(1, n + 1), np.arange(n) % k + 1
    names = {j: f"a name of a class that is long {j}" for j in range(1, k + 1)}
    truth = detmap.truth_from_arrays(image, label, boxes, categories=names)
    wrong = np.where(np.arange(n) % 7 == 0, label % k + 1, label)
    found = detmap.detections_from_arrays(truth, image, wrong, boxes, np.linspace(0.1, 0.9, n))
    file = tmp_path_factory.mktemp("single") / "report.html"
    file.write_bytes(page.report(truth, {"a": found}, detmap.load_protocol("coco-bbox")))
    return file


@pytest.fixture(params=["sample", "single"])
def pages(request: pytest.FixtureRequest) -> Path:
    made: Path = request.getfixturevalue(request.param)
    return made


def open_page(browser: Any, file: Path, *, unfolded: bool = False) -> None:
    browser.get_log("browser"), browser.get_log("performance")
    browser.get(file.as_uri())
    if unfolded:
        browser.execute_script(UNFOLD)


def test_no_message_and_no_request(browser: Any, sample: Path) -> None:
    open_page(browser, sample)
    assert browser.get_log("browser") == []
    asked = [entry["message"] for entry in browser.get_log("performance")]
    urls = [text for text in asked if '"Network.requestWillBeSent"' in text]
    assert [text for text in urls if '"url":"http' in text] == []


def test_names_sort_from_a_and_nothing_stands_last(browser: Any, sample: Path) -> None:
    open_page(browser, sample, unfolded=True)

    def sort(head: str, n: int) -> list[str]:
        """The n-th column, after its heading is chosen."""
        button = browser.find_element("css selector", f"#{head} th:nth-child({n}) button")
        button.send_keys(webdriver.Keys.ENTER)
        cells = browser.find_elements("css selector", f"#{head} tbody td:nth-child({n})")
        return [cell.text.split("\n")[0] for cell in cells]

    names = sort("t-classes", 1)
    assert names == sorted(names)
    assert sort("t-classes", 1) == names[::-1]
    browser.execute_script(
        "document.querySelector('#t-classes tbody td:nth-child(3)').textContent = '\u2013'"
    )
    for _ in range(2):
        assert sort("t-classes", 3)[-1] == "\u2013"


def test_headings_sort_with_the_keyboard(browser: Any, sample: Path) -> None:
    open_page(browser, sample, unfolded=True)
    heads = browser.find_elements("css selector", "#t-classes th button")
    objects = next(head for head in heads if head.text.startswith("objects"))

    def column() -> list[int]:
        cells = browser.find_elements("css selector", "#t-classes tbody td:nth-child(2)")
        return [int(cell.text) for cell in cells]

    objects.send_keys(webdriver.Keys.ENTER)
    assert column() == sorted(column(), reverse=True)
    objects.send_keys(webdriver.Keys.SPACE)
    assert column() == sorted(column())
    head = browser.find_element("css selector", "#t-classes th[aria-sort]")
    assert head.get_attribute("aria-sort") == "ascending"


WIDTHS = (1280, 768, 560, 390)

CUT = """
    const wide = innerWidth, found = [];
    if (document.documentElement.scrollWidth > wide) found.push("the page");
    for (const each of document.querySelectorAll(".scroll, table, svg, figure, .card, b, h1, h2")) {
      const box = each.getBoundingClientRect();
      if (!box.width || each.closest("thead") || each.matches("caption")) continue;
      if (box.right > wide + 1 || box.left < -1) found.push(each.outerHTML.slice(0, 90));
      if (each.matches(".scroll") && each.scrollWidth > each.clientWidth + 1)
        found.push(`scrolls: ${each.getAttribute("aria-label")} ${each.scrollWidth}`);
    }
    for (const svg of document.querySelectorAll("svg[role=img]")) {
      const whole = svg.getBoundingClientRect();
      for (const text of svg.querySelectorAll("text:not(.turned)")) {
        const box = text.getBoundingClientRect();
        const [left, right] = [whole.left - box.left, box.right - whole.right];
        if (Math.max(left, right, box.bottom - whole.bottom - 1) > 2)
          found.push(`outside: ${text.textContent} in ${svg.ariaLabel.slice(0, 40)}`);
      }
    }
    return found;
"""
OVERLAPS = """
    const found = [];
    const meet = (texts, where) => {
      const boxes = texts.map(each => [each, each.getBoundingClientRect()])
        .filter(each => each[1].width);
      boxes.forEach(([one, a], i) => {
        for (const [other, b] of boxes.slice(i + 1)) {
          const x = Math.min(a.right, b.right) - Math.max(a.left, b.left);
          const y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
          if (x > 1 && y > 4) found.push(`${where}: ${one.textContent} | ${other.textContent}`);
        }
      });
    };
    for (const svg of document.querySelectorAll("svg[role=img]"))
      meet([...svg.querySelectorAll("text:not(.turned)")], svg.ariaLabel.slice(0, 40));
    for (const head of document.querySelectorAll(".plots thead"))
      meet([...head.querySelectorAll("text")], "ticks");
    for (const row of document.querySelectorAll(".facts, .legend, nav ul"))
      meet([...row.children], row.className);
    return found;
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_cut_and_nothing_overlaps(browser: Any, pages: Path, width: int) -> None:
    with window(browser, width):
        open_page(browser, pages, unfolded=True)
        assert browser.execute_script(CUT) == []
        assert browser.execute_script(OVERLAPS) == []


def test_every_chart_has_axis_words(browser: Any, pages: Path) -> None:
    open_page(browser, pages, unfolded=True)
    without = """
        const axes = svg => [...svg.querySelectorAll("text.axis")].filter(each => each.textContent);
        const charts = [...document.querySelectorAll("svg[role=img]:has(.tick)")];
        const heads = [...document.querySelectorAll(".plots thead th")];
        return [
          charts.length, heads.length,
          charts.filter(each => axes(each).length < 2).map(each => each.ariaLabel),
          heads.filter(each => !each.firstChild.nodeValue?.trim()).length,
        ];
    """
    charts, heads, unnamed, empty = browser.execute_script(without)
    assert charts >= 5
    assert heads >= 9
    assert (unnamed, empty) == ([], 0)


def test_values_are_shown_by_keyboard_and_hover(browser: Any, sample: Path) -> None:
    open_page(browser, sample)
    tip = browser.find_element("css selector", ".tip")
    for chart in ("#classes .plots", "#curves svg[role=img]"):
        element = browser.find_element("css selector", chart)
        browser.execute_script("arguments[0].focus()", element)
        seen = []
        for key in (webdriver.Keys.ARROW_DOWN, webdriver.Keys.ARROW_DOWN, webdriver.Keys.END):
            browser.switch_to.active_element.send_keys(key)
            seen.append(tip.text)
        assert len(set(seen)) == 3, seen
        assert all(re.search(r"\d", text) for text in seen)
        browser.switch_to.active_element.send_keys(webdriver.Keys.ESCAPE)
        assert not tip.is_displayed()
    row = browser.find_element("css selector", "#classes .plots tbody tr")
    center = "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})"
    browser.execute_script(center, row)
    name = row.find_element("css selector", "th").text.split()[0]

    def shown(_: Any) -> bool:
        """The page may still be moving under the pointer."""
        webdriver.ActionChains(browser).move_by_offset(1, 0).move_to_element(row).perform()
        return name in tip.text

    support_ui.WebDriverWait(browser, 5).until(shown, name)


def test_a_search_keeps_the_classes_of_that_name(browser: Any, sample: Path) -> None:
    open_page(browser, sample)
    browser.find_element("id", "find").send_keys("STA")
    rows = browser.find_elements("css selector", "#classes .plots tbody tr")
    assert [row.text.split()[0] for row in rows if row.is_displayed()] == ["star"]
    assert "1 found" in browser.find_element("css selector", "#classes .search").text


def test_a_table_is_copied_as_csv(browser: Any, sample: Path) -> None:
    open_page(browser, sample, unfolded=True)
    copied = """
        navigator.clipboard.writeText = text => { window.copied = text; };
        document.querySelector("#t-classes").closest("details").querySelector(".action").click();
        return window.copied;
    """
    rows = list(csv.reader(browser.execute_script(copied).splitlines()))
    assert rows[0][:5] == ["class", "objects", "A AP", "A AP interval", "B AP"]
    assert {len(row) for row in rows} == {len(rows[0])}
    assert len(rows) == 7


def test_suspected_labels_are_saved(browser: Any, sample: Path) -> None:
    open_page(browser, sample)
    saved = """
        const seen = [], done = arguments[arguments.length - 1];
        URL.createObjectURL = blob => { seen.push(blob.text()); return "#"; };
        for (const each of document.querySelectorAll("button[data-save]")) each.click();
        Promise.all(seen).then(done);
    """
    coco, cvat, studio = browser.execute_async_script(saved)
    assert json.loads(coco)["annotations"]
    assert ET.fromstring(cvat).findall("image/box")
    assert json.loads(studio)[0]["predictions"]


def test_hostile_names_run_nothing(browser: Any, tmp_path: Path) -> None:
    truth, detections = hostile()
    file = tmp_path / "hostile.html"
    rules = detmap.load_protocol("coco-bbox")
    file.write_bytes(page.report(truth, {HOSTILE[0]: detections}, rules, title=HOSTILE[1]))
    open_page(browser, file)
    assert browser.execute_script("return document.body.dataset.xss") is None
    assert browser.get_log("browser") == []
    assert HOSTILE[1] in browser.find_element("tag name", "h1").text


def test_it_reads_whole_without_its_script(browser: Any, sample: Path, tmp_path: Path) -> None:
    text = sample.read_text()
    begin = text.rindex("<script>")
    file = tmp_path / "plain.html"
    file.write_text(text[:begin] + text[text.rindex("</script>") + 9 :])
    open_page(browser, file)
    assert "Best F1 at score" in browser.find_element("id", "curves").text
    assert len(browser.find_elements("css selector", "#t-classes tbody tr")) == 6
    assert len(browser.find_elements("css selector", "#classes .plots tbody tr")) == 6


@needs_axe
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_fault(browser: Any, pages: Path, scheme: str) -> None:
    with without_policy(browser), window(browser, 1280, scheme):
        open_page(browser, pages, unfolded=True)
        require_no_fault(browser)


def test_it_prints_as_pdf(sample: Path) -> None:
    from detmap.analysis import chromium

    made = chromium.pdf(sample.read_bytes())
    assert made.startswith(b"%PDF")


@pytest.mark.slow
def test_it_is_a_picture_of_the_whole_page(sample: Path) -> None:
    from PIL import Image

    from detmap.analysis import chromium

    width, height = Image.open(io.BytesIO(chromium.png(sample.read_bytes()))).size
    assert (width, height > 5000) == (chromium.WIDTH, True)
