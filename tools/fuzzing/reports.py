"""Reports about hostile boxes, names and scores of three images, of one detector or two: refused in
words, or HTML whose elements nest and which runs no script of the input. Few subsets of the
images, but for every fortieth report.
"""

import json
import random
import re

from detmap.core.base import parallel
from detmap.core.statistics import subsets
from tests.support.running import run
from tools.fuzzing._files import scratch

NAMES = ["cat", "", "$$", "\\frac{", "</script><script>x()</script>", "<b>&amp;", "\x1b[31m"]
NAMES += ["a\nb", "{{ 7 * 7 }}", "\u202eabc", "x" * 5000, "=1+1", "]]>", "<!--", "猫", "'\""]
NUMBERS = [0, 1, -1, 0.5, 9, 40, 1e-300, 3e9, 1e18, 1e99, 1e101, -1e50, 2**53, None, "1", 1e308]
VOID = {"meta", "link", "br", "hr", "img", "input", "col", "wbr", "source", "path", "line", "rect"}
VOID |= {"circle", "use", "polyline", "polygon", "stop"}
COUNTS = {"reports": 0}
FOLDER = scratch(".")


FULL = {name: getattr(subsets, name) for name in ("PARTS", "SPLITS")}
FEW = dict.fromkeys(FULL, 2)  # changes no element of the page, but most of the time
WITH_FULL = 40  # one report of so many has as many subsets as those of users


def prepare() -> None:
    """Small files gain nothing by threads, and starting them takes half of the time."""
    parallel.default_threads = lambda: 1


TOKEN = re.compile(
    r"<!--.*?-->|<!doctype[^>]*>|<(?P<raw>script|style)\b[^>]*>.*?</(?P=raw)\s*>"
    r"|<(?P<close>/?)(?P<name>[a-z][^\s/>]*)(?:[^>\"']|\"[^\"]*\"|'[^']*')*>|<(?=[a-z/!?])",
    re.DOTALL | re.IGNORECASE,
)
"""Comments, whole scripts and styles, tags, and what only begins like a tag."""


def unnested(page: str) -> str | None:
    """What is wrong with the tags of a page. The parser of the standard library takes four times as
    long, and does not report a tag that never ends.
    """
    opened: list[str] = []
    for token in TOKEN.finditer(page):
        text, name = token[0], (token["name"] or "").lower()
        if text == "<":
            return f"a tag that never ends: {page[token.start() : token.start() + 80]!r}"
        if not name or name in VOID:
            continue
        if not token["close"]:
            opened.append(name)
        elif not opened or opened.pop() != name:
            return f"{text} at character {token.start()} closes nothing"
    return f"<{opened[-1]}> is left open" if opened else None


def case(seed: int) -> str | None:
    """What is wrong with the report about one drawn pair of files."""
    rng = random.Random(seed)
    vars(subsets).update(FULL if seed % WITH_FULL == 0 else FEW)

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
    outcome = run(
        "report", *(FOLDER / name for name in files), "--title", rng.choice(NAMES), "-o", page
    )
    if outcome.code == 2 and outcome.err.count("detmap: error: ") == 1:
        return None
    if outcome.code != 0 or not page.is_file():
        return f"exit {outcome.code}: {outcome.err[-300:]}"
    COUNTS["reports"] += 1
    text = page.read_text()
    if "<script>x()" in text:
        return "a name became a script"
    return unnested(text)
