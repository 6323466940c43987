"""Reports about hostile boxes, names and scores: refused in words, or HTML whose elements nest."""

from __future__ import annotations

import json
import random
from html.parser import HTMLParser
from pathlib import Path

from detmap.base import parallel
from detmap.diagnosis import diagnosis_intervals
from detmap.html_report import gather
from tests.support.running import run

NAMES = [
    "cat",
    "",
    "$$",
    "\\frac{",
    "</script><script>x()</script>",
    "<b>&amp;",
    "\x1b[31m",
    "a\nb",
]
NAMES += ["{{ 7 * 7 }}", "\u202eabc", "x" * 5000, "=1+1", "]]>", "<!--", "猫", "'\""]
NUMBERS = [0, 1, -1, 0.5, 9, 40, 1e-300, 3e9, 1e18, 1e99, 1e101, -1e50, 2**53, None, "1", 1e308]
VOID = {"meta", "link", "br", "hr", "img", "input", "col", "wbr", "source", "path", "line", "rect"}
VOID |= {"circle", "use", "polyline", "polygon", "stop"}
COUNTS = {"reports": 0}
FOLDER = Path()


FULL, FEW = 1000, 16  # replicates
WITH_FULL = 20  # one report of so many has as many replicates as those of users


def prepare() -> None:
    """Small files gain nothing by threads, and starting them takes half of the time."""
    parallel.default_threads = lambda: 1


def set_replicates(n: int) -> None:
    """The number of replicates changes no element of the page, but takes most of the time."""
    gather.REPLICATES = (n, min(n, 96))
    defaults = diagnosis_intervals.uncertainty.__kwdefaults__
    defaults |= {"replicates": n, "of_lists": min(n, 200)}


class Page(HTMLParser):
    """What is wrong with a page: elements that do not nest, scripts that are not its own."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.wrong = self.wrong or f"</{tag}> at {self.getpos()} closes nothing"


def case(seed: int) -> str | None:
    """What is wrong with the report about one drawn pair of files."""
    rng = random.Random(seed)
    set_replicates(FULL if seed % WITH_FULL == 0 else FEW)

    def number() -> object:
        return rng.choice(NUMBERS) if rng.random() < 0.02 else rng.randrange(40)

    def box() -> list[object]:
        return [number() for _ in range(4)]

    names = [rng.choice(NAMES) for _ in range(rng.randrange(1, 4))]
    truth = {
        "images": [
            {"id": i, "width": 40, "height": number(), "file_name": rng.choice(NAMES)}
            for i in range(1, 4)
        ],
        "categories": [{"id": i, "name": name} for i, name in enumerate(names, 1)],
        "annotations": [
            {"id": i, "image_id": rng.randrange(1, 4), "category_id": rng.randint(1, len(names))}
            | {"bbox": box(), "area": number(), "iscrowd": int(rng.random() < 0.1)}
            for i in range(1, rng.randrange(2, 9))
        ],
    }
    found = [
        {"image_id": rng.randrange(1, 4), "category_id": rng.randint(1, len(names))}
        | {"bbox": box(), "score": rng.choice(NUMBERS) if rng.random() < 0.03 else rng.random()}
        for _ in range(rng.randrange(9))
    ]
    for name, content in (("gt.json", truth), ("dt.json", found), ("b.json", found[:1])):
        (FOLDER / name).write_text(json.dumps(content))
    page = FOLDER / "report.html"
    page.unlink(missing_ok=True)
    files = ["gt.json", "dt.json", *rng.choice([[], [], ["b.json"]])]
    outcome = run("report", *files, "--title", rng.choice(NAMES), "-o", page)
    if outcome.code == 2 and outcome.err.count("detmap: error: ") == 1:
        return None
    if outcome.code != 0 or not page.is_file():
        return f"exit {outcome.code}: {outcome.err[-300:]}"
    COUNTS["reports"] += 1
    text = page.read_text()
    parser = Page()
    parser.feed(text)
    parser.close()
    if "<script>x()" in text:
        return "a name became a script"
    return parser.wrong or (f"<{parser.open[-1]}> is left open" if parser.open else None)
