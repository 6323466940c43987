"""The page: what is in it, that nothing hostile gets in, that it is the same every time."""

import base64
import hashlib
import html
import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import detmap
from detmap.analysis import html_report as page
from detmap.analysis.html_report import charts
from detmap.analysis.html_report import gather as content
from detmap.analysis.html_report import what_changed as changes
from detmap.core.tables import Detections, Truth
from detmap.errors import DetmapError
from tests.analysis.diagnosis.troublesome_tables import tables
from tests.support import builders as make
from tests.support.running import run
from tests.support.tier import drawn

pytestmark = pytest.mark.slow  # each makes a page

COCO = make.SHAPES / "instances_test.json"
BOTH = [make.SHAPES / "detections" / f"{name}.json" for name in ("contours", "template")]
PICTURES = make.SHAPES / "JPEGImages"
HOSTILE = (
    "<script>document.body.dataset.xss=1</script>",
    '"><img src=x onerror="document.body.dataset.xss=1">',
    "</script><script>document.body.dataset.xss=1</script>",
    "]]></style><svg onload=alert(1)>",
    "{{ 7*7 }}{% raw %}",
    "=HYPERLINK('x')",
)


class Elements(HTMLParser):
    """Tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, dict(attrs)))


def elements(text: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = Elements()
    parser.feed(text)
    return parser.tags


def hostile() -> tuple[Truth, Detections]:
    """Classes and images whose names are attacks."""
    n = len(HOSTILE)
    boxes = np.array([[10.0 * k, 0, 9, 9] for k in range(n)])
    labels, names = list(range(1, n + 1)), list(HOSTILE)
    truth = detmap.truth_from_arrays(names, labels, boxes, categories=dict(enumerate(HOSTILE, 1)))
    shifted, score = [k % n + 1 for k in labels], np.linspace(0.5, 0.9, n)
    return truth, detmap.detections_from_arrays(truth, names, shifted, boxes, score)


def page_of_both(**options: Any) -> bytes:
    truth = detmap.read_truth(COCO)
    found = {path.stem: detmap.read_detections(path, truth) for path in BOTH}
    return page.report(truth, found, detmap.load_protocol("coco-bbox"), **options)


@pytest.fixture(scope="module")
def sample() -> bytes:
    return page_of_both(images=PICTURES)


def test_the_page_of_two_detectors(sample: bytes) -> None:
    text = sample.decode()
    assert len(sample) < 1_500_000
    assert text.count("<section") == 10
    first = text.split('<section id="classes">')[0]
    assert re.search(r"A is better: \+26\.0 AP, 95 % interval \+\d+\.\d to \+\d+\.\d, 60 im", first)
    assert "Use A with a confidence threshold of 0.44" in first
    assert "What changed" in first
    assert "44.8" in first
    assert "18.7" in first
    assert "ci:" not in first
    assert "data:image/webp;base64," in text
    assert "No p-values: fewer than 100 images." in text
    assert "adjusted" not in re.sub("<pre.*?</pre>", "", text, flags=re.DOTALL)


TABLES = {
    "t-metrics": ("A", "B", "B - A"),
    "t-costs": ("A AP gain if fixed", "B AP gain if fixed", "B - A"),
    "t-classes": ("A AP", "B AP50", "AP B - A", "A F1"),
    "t-best": ("precision", "recall", "F1"),
    "t-calibration": ("ECE", "largest deviation", "mean deviation", "D-ECE"),
    "t-lrp": ("oLRP", "localization", "false positives", "missed", "mean IoU"),
    "t-slices": ("A recall", "B recall", "recall B - A", "A AP", "B AP", "AP B - A"),
}


@pytest.mark.parametrize("table", TABLES)
def test_an_interval_is_shown_with_every_number(sample: bytes, table: str) -> None:
    text = re.search(rf'<table id="{table}"[^>]*>(.*?)</table>', sample.decode(), re.DOTALL)
    assert text is not None
    heads = re.findall(r"<button[^>]*>(.*?)</button>", text[1])
    rows = re.findall(r"<tr>(<td.*?)</tr>", text[1])
    assert rows
    number = r"[-+]?\d+(\.\d+)?"
    between = (
        rf"(<small>(± )?{number}( to {number}(, p 1)?)?(, bias {number})?</small>"
        r"|^\S*\u2013|^[+-]?(0|100)(\.0+)?$)"
    )
    for row in rows:
        cells = re.findall(r"<td[^>]*>\s*(.*?)</td>", row, re.DOTALL)
        for head in TABLES[table]:
            assert re.search(between, cells[heads.index(head)]), (head, cells)


def test_p_values_are_shown_with_differences(tmp_path: Path) -> None:
    """The sample four times, so that there are enough images, of each class too."""
    content = json.loads(COCO.read_text())
    found = [json.loads(path.read_text()) for path in BOTH]
    for shift in (1000, 2000):
        for rows in (content["annotations"], *found):
            rows += [{**row, "image_id": row["image_id"] + shift} for row in rows]
        for row in content["annotations"][len(content["annotations"]) // 2 :]:
            row["id"] += 1000 * shift
        content["images"] += [{**row, "id": row["id"] + shift} for row in content["images"]]
    truth = detmap.read_truth(make.write(tmp_path / "truth.json", content))
    tables = {
        name: detmap.read_detections(make.write(tmp_path / f"{name}.json", rows), truth)
        for name, rows in zip("ab", found, strict=True)
    }
    text = page.report(truth, tables, detmap.load_protocol("coco-bbox")).decode()
    number = r"[-+]\d+(?:\.\d+)?"
    for table in TABLES:
        rows = re.search(rf'<table id="{table}"[^>]*>(.*?)</table>', text, re.DOTALL)
        assert rows is not None
        tested = re.findall(rf"({number}) to ({number}), p (?:&lt; )?(\d\S*)</small>", rows[1])
        assert tested, table
        for low, high, p in tested:
            assert (float(low) > 0 or float(high) < 0) == (float(p) < 0.05), (table, low, high, p)
    assert "No p-values" not in text


def test_the_same_input_gives_the_same_bytes(sample: bytes) -> None:
    assert page_of_both(images=PICTURES, threads=1) == sample


def test_nothing_is_fetched_and_nothing_else_runs(sample: bytes) -> None:
    text = sample.decode()
    shown = re.sub(r'"data:image/webp;base64,[^"]*"', "", text)
    assert not re.search(r"https?:|//[a-z]", shown)
    for tag, attributes in elements(text):
        assert not [name for name in attributes if name.startswith("on") or name == "style"], tag
        assert str(attributes.get("src") or "data:").startswith("data:")
        assert str(attributes.get("href") or "#").startswith("#")
    policy = next(a["content"] for t, a in elements(text) if t == "meta" and "http-equiv" in a)
    assert policy is not None
    for tag in ("style", "script"):
        inside = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert inside is not None
        digest = base64.b64encode(hashlib.sha256(inside[1].encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_hostile_names_do_nothing() -> None:
    truth, detections = hostile()
    rules = detmap.load_protocol("coco-bbox")
    text = page.report(truth, {HOSTILE[0]: detections}, rules, title=HOSTILE[1]).decode()
    kinds = [tag for tag, attributes in elements(text) if not attributes.get("type")]
    assert kinds.count("script") == 1
    assert "img" not in kinds
    assert not [a for _, attributes in elements(text) for a in attributes if a.startswith("on")]
    assert HOSTILE[4] in text  # as it was written, not worked out
    for block in re.findall(
        r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL
    ):
        json.loads(block)


@pytest.mark.parametrize("seed", range(drawn(12)))
@pytest.mark.parametrize("name", ["coco-bbox", "voc2007"])
def test_odd_tables_have_a_page(seed: int, name: str) -> None:
    truth, detections = tables(seed)
    text = page.report(truth, {"a": detections}, detmap.load_protocol(name)).decode()
    assert text.count("<section") == 10
    assert not re.search(r">\s*-?(?:nan|inf)\s*<", text)
    assert "None" not in re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)


def test_many_classes_are_folded() -> None:
    n = 250
    ids, score = np.arange(1, n + 1), np.linspace(0.1, 0.9, n)
    boxes = np.tile([0.0, 0, 9, 9], (n, 1))
    truth = detmap.truth_from_arrays(ids, ids, boxes)
    detections = detmap.detections_from_arrays(truth, ids, np.roll(ids, 1), boxes, score)
    text = page.report(truth, {"a": detections}, detmap.load_protocol("coco-bbox")).decode()
    assert "The other 210 classes</summary>" in text
    assert "30 most confused classes" in text
    assert len(text) < 1_000_000


def test_a_missing_or_broken_picture_is_a_note(tmp_path: Path) -> None:
    (tmp_path / "000001.jpg").write_bytes(b"\xff\xd8 no picture")
    truth = detmap.read_truth(make.SHAPES)
    found = detmap.read_detections(make.SHAPES / "detections" / "contours", truth)
    text = page.report(
        truth, {"a": found}, detmap.load_protocol("coco-bbox"), images=tmp_path
    ).decode()
    assert "images without a file, shown as sketches" in text
    assert "data:image" not in text.split("<main>")[1]


def test_markdown_for_a_comment() -> None:
    text = page_of_both(kind="md").decode()
    assert "| AP " in text
    assert "**What changed**" in text
    assert "-26.0" in text
    assert "A is better" in text


def test_three_detectors_are_too_many() -> None:
    truth, detections = tables(1)
    with pytest.raises(DetmapError, match="3 detectors"):
        page.report(truth, dict.fromkeys("abc", detections), detmap.load_protocol("coco-bbox"))


def test_the_receipt_in_a_page_is_verified(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    assert run("report", COCO, *BOTH, "-o", file).code == 0
    text = file.read_text()
    assert "detmap verify run.json" in text
    for k, path in enumerate(BOTH, 1):
        found = re.search(rf'<pre id="receipt-{k}"[^>]*>(.*?)</pre>', text, re.DOTALL)
        assert found is not None
        receipt = tmp_path / f"run{k}.json"
        receipt.write_text(html.unescape(found[1]))
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert json.loads(receipt.read_text())["inputs"]["detections"]["sha256"] == digest
        assert digest in text.split('id="method"')[1].split("<details>")[0]
        known = run("verify", receipt, "--truth", COCO, "--detections", path)
        assert (known.code, "identical" in known.out) == (0, True)
        assert run("verify", receipt, "--truth", COCO, "--detections", BOTH[k % 2]).code == 1
    again = tmp_path / "again.html"
    assert run("report", COCO, *BOTH, "-o", again).code == 0
    assert again.read_bytes() == file.read_bytes()


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    outcome = run("report", COCO, *BOTH, "--images", PICTURES, "-o", file)
    assert outcome.code == 0
    assert f"{file}: " in outcome.out
    assert file.read_text().startswith("<!doctype html>")
    assert run("report", COCO, BOTH[0], "-o", tmp_path / "comment.md").code == 0
    assert (tmp_path / "comment.md").read_text().startswith("**")


def test_what_is_no_page_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    outcome = run("report", COCO, BOTH[0], "--images", tmp_path / "none", "-o", file)
    assert (outcome.code, file.exists()) == (2, False)
    assert "is not a folder of images" in outcome.err
    assert run("report", COCO, BOTH[0], "-o", COCO).code == 2
    assert run("report", COCO, BOTH[0], "-p", "coco-segm", "-o", file).code == 2


def test_charts_have_words_for_who_sees_no_picture() -> None:
    line = charts.Line(np.array([0.0, 1.0]), np.array([1.0, np.nan]), "a & b")
    text = str(charts.lines("T <1>", "told", [line], ("x", "y")))
    assert 'aria-label="T &lt;1&gt;: told"' in text
    assert "a &amp; b" in text
    assert "nan" not in text


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "circle", "bomb", "half"])
def test_images_that_are_none_or_too_large_are_sketches(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    whole = next(PICTURES.iterdir()).read_bytes()
    bomb = make.write(tmp_path / "bomb.png", b"")
    if kind == "bomb":
        Image.new("1", (20_000, 6_000)).save(bomb)
    for image in json.loads(COCO.read_text())["images"]:
        file = folder / Path(image["file_name"]).name
        if kind == "pipe":
            os.mkfifo(file)
        elif kind == "folder":
            file.mkdir()
        elif kind in ("device", "circle"):
            file.symlink_to("/dev/zero" if kind == "device" else file)
        else:
            file.write_bytes(bomb.read_bytes() if kind == "bomb" else whole[:99])
    outcome = run(
        *("report", str(COCO), str(BOTH[0]), "--images", str(folder)),
        *("-o", str(tmp_path / "page.html")),
    )
    assert outcome.code == 0, outcome.err
    assert "shown as sketches" in (tmp_path / "page.html").read_text()


def test_what_changed_says_nothing_of_equal_detectors_and_no_nan() -> None:
    truth = detmap.truth_from_arrays([1, 2, 3], [1] * 3, [[0, 0, 9, 9]] * 3)
    detections = detmap.detections_from_arrays(
        truth, [1, 2], [1] * 2, [[0, 0, 9, 9]] * 2, [0.9, 0.8]
    )
    empty = detmap.truth_from_arrays([], [], np.zeros((0, 4)), images=[1, 2], categories={1: "a"})
    false = detmap.detections_from_arrays(empty, [1], [1], [[0, 0, 9, 9]], [0.9])
    nothing = detmap.truth_from_arrays([], [], np.zeros((0, 4)), images=[1, 2], categories={})
    none = detmap.detections_from_arrays(nothing, [], [], np.zeros((0, 4)), [])
    rules = detmap.load_protocol("coco-bbox")
    assert b"Classes" in page.report(nothing, {"a": none, "b": none}, rules)
    shown = []
    for both in ((truth, detections), (empty, false)):
        runs = [content.gather(name, *both, rules) for name in "AB"]
        shown.append(" ".join(changes.changed(*runs)))
    assert shown[0].startswith("No change")
    assert "nan" not in shown[1]


@pytest.mark.parametrize("kind", page.KINDS)
def test_a_package_that_is_missing_is_named(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "find_spec", lambda name: None)
    truth, detections = tables(1)
    with pytest.raises(DetmapError, match="needs jinja2"):
        page.report(truth, {"a": detections}, detmap.load_protocol("coco-bbox"), kind=kind)


def test_a_protocol_is_refused_before_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "find_spec", lambda name: None)
    truth, detections = tables(1)
    with pytest.raises(DetmapError, match="protocol kitti"):
        page.report(truth, {"a": detections}, detmap.load_protocol("kitti"))
