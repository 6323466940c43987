"""The page in a real browser: headless Chromium, where it is installed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap import html_report as page
from tests.html_report.test_page import BOTH, COCO, HOSTILE, PICTURES, hostile
from tests.support.running import run

webdriver = pytest.importorskip("selenium.webdriver", reason="pip install selenium")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="Chromium and its driver"),
]
AXE = Path(os.environ.get("DETMAP_AXE", "/nowhere/axe.min.js"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    profile = tmp_path_factory.mktemp("profile")
    for argument in (
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
        *("--window-size=1280,1000", f"--user-data-dir={profile}"),
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(executable_path=DRIVER)
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


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


def open_page(browser: Any, file: Path) -> None:
    browser.get_log("browser"), browser.get_log("performance")
    browser.get(file.as_uri())


def test_no_message_and_no_request(browser: Any, sample: Path) -> None:
    open_page(browser, sample)
    assert browser.get_log("browser") == []
    asked = [entry["message"] for entry in browser.get_log("performance")]
    urls = [text for text in asked if '"Network.requestWillBeSent"' in text]
    assert [text for text in urls if '"url":"http' in text] == []


def test_the_slider_tells_its_point(browser: Any, sample: Path) -> None:
    open_page(browser, sample)
    slider = browser.find_element("id", "s1")
    before = browser.find_element("id", "o1").text
    slider.send_keys(webdriver.Keys.HOME)
    first = browser.find_element("id", "o1").text
    slider.send_keys(webdriver.Keys.END)
    last = browser.find_element("id", "o1").text
    assert len({before, first, last}) == 3
    assert slider.get_attribute("aria-valuetext") == last
    assert float(first.split()[1].rstrip(":")) < float(last.split()[1].rstrip(":"))


def test_the_matrix_of_many_classes_is_whole(browser: Any, tmp_path: Path) -> None:
    """Its last column, of the missed objects, is in sight on a wide window."""
    n = 20
    boxes = np.tile([0.0, 0, 9, 9], (n, 1))
    each = np.arange(1, n + 1)
    truth = detmap.truth_from_arrays(each, each, boxes)
    found = detmap.detections_from_arrays(truth, each, np.roll(each, 1), boxes, each / n)
    file = tmp_path / "many.html"
    file.write_bytes(page.report(truth, {"a": found}, detmap.load_protocol("coco-bbox")))
    open_page(browser, file)
    hidden = """
        const box = document.querySelector("#confusion .scroll");
        return box.scrollWidth - box.clientWidth;
    """
    assert browser.execute_script(hidden) == 0


def test_the_thumb_stands_under_its_score(browser: Any, sample: Path) -> None:
    """Where the rule of the best F1 is, and at both ends of the axis."""
    open_page(browser, sample)
    slider = browser.find_element("id", "s1")
    places = """
        const slider = arguments[0], box = slider.getBoundingClientRect();
        const part = (slider.value - slider.min) / (slider.max - slider.min);
        const svg = slider.parentNode.querySelector("svg");
        const [rule, line] = ["line.marker", "line.grid"].map(
            each => svg.querySelector(each).getBoundingClientRect());
        return [box.left + 8 + part * (box.width - 16), rule.left, line.left, line.right];
    """
    thumb, rule, left, right = browser.execute_script(places, slider)
    assert abs(thumb - rule) < 2
    assert float(slider.get_attribute("value")) > 0
    slider.send_keys(webdriver.Keys.HOME)
    assert abs(browser.execute_script(places, slider)[0] - left) < 1
    slider.send_keys(webdriver.Keys.END)
    assert abs(browser.execute_script(places, slider)[0] - right) < 1


def test_names_sort_from_a_and_nothing_stands_last(browser: Any, sample: Path) -> None:
    open_page(browser, sample)

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
    open_page(browser, sample)
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


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_window(browser: Any, sample: Path, width: int) -> None:
    browser.set_window_size(max(width, 500), 900)  # no window of Chromium is narrower
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )
    open_page(browser, sample)
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert wide <= width


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
    assert "Best F1" in browser.find_element("id", "o1").text
    assert len(browser.find_elements("css selector", "#t-classes tbody tr")) == 6


@pytest.mark.skipif(not AXE.is_file(), reason="DETMAP_AXE names axe.min.js of axe-core")
def test_axe_finds_no_serious_fault(browser: Any, sample: Path, tmp_path: Path) -> None:
    text = sample.read_text()
    file = tmp_path / "open.html"  # the page's own policy keeps axe out
    begin = text.index('<meta http-equiv="Content-Security-Policy"')
    file.write_text(text[:begin] + text[text.index(">", begin) + 1 :])
    open_page(browser, file)
    browser.execute_script(AXE.read_text())
    found = browser.execute_async_script("axe.run().then(arguments[arguments.length - 1])")
    serious = [
        (each["id"], [node["html"][:120] for node in each["nodes"][:3]])
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
    ]
    assert serious == []


def test_it_prints_as_pdf(sample: Path) -> None:
    from detmap.cli import browser as chromium

    made = chromium.pdf(sample.read_bytes())
    assert made.startswith(b"%PDF")
