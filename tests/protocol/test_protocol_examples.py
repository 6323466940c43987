"""docs/protocols.md: every worked example comes out as it says, and the table of keys is that of
the code.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.core import protocol
from detmap.core.tables import ABSENT, NOT_EXHAUSTIVE, Scope

PAGE = Path(__file__).resolve().parents[2] / "docs" / "protocols.md"
EXAMPLES = re.findall(r"^```example\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
BASE = {"iou.thresholds": [0.5], "limits.max_dets": [100], "subsets": {"all": {}}}
OUTCOMES = {"TP", "FP", "IGNORED", "-"}


def columns_of(rows: list[list[str]]) -> dict[str, list[Any]]:
    """Boxes, marks such as ``class=cat``, flags and outcomes of rows of one kind."""
    marks = [dict(word.split("=") for word in row[4:] if "=" in word) for row in rows]
    return {
        "box": [[float(x) for x in row[:4]] for row in rows],
        "score": [float(mark.get("score", 1)) for mark in marks],
        "image": [int(mark.get("image", 1)) for mark in marks],
        "class": [mark.get("class", "cat") for mark in marks],
        "flags": [[w for w in row[4:] if "=" not in w and w not in OUTCOMES] for row in rows],
        "outcomes": [[word for word in row[4:] if word in OUTCOMES] for row in rows],
    }


def settings_of(text: str) -> dict[str, str]:
    parts = re.split(r", (?=[a-z_]+[.])", text.strip())
    return {key: value.strip('"') for key, value in (part.split("=", 1) for part in parts)}


def read(text: str) -> tuple[detmap.Truth, detmap.Detections, list[list[str]], dict[str, Any]]:
    """Tables, the outcomes of each detection, and the other lines by their first word."""
    lines = [line.split(maxsplit=1) for line in text.splitlines()]
    rows = {
        kind: [rest.split() for key, rest in lines if key == kind] for kind in ("object", "found")
    }
    other = {key: rest for key, rest in lines if key not in rows}
    objects, found = columns_of(rows["object"]), columns_of(rows["found"])
    names = other.get("classes", "").split() or sorted({*objects["class"], *found["class"]})
    place = {name: i + 1 for i, name in enumerate(names)}
    truth = detmap.truth_from_arrays(
        objects["image"],
        [place[name] for name in objects["class"]],
        objects["box"],
        images=[int(i) for i in other.get("images", "1").split()],
        categories={i: name for name, i in place.items()},
    )
    roles = {flag for flags in objects["flags"] for flag in flags}
    truth = replace(
        truth,
        roles={role: np.array([role in flags for flags in objects["flags"]]) for role in roles},
    )
    pairs = [
        (place[name] - 1, kind)
        for key, kind in (("absent", ABSENT), ("partly", NOT_EXHAUSTIVE))
        for name in other.get(key, "").split()
    ]
    if pairs:
        label, kind = np.array(sorted(pairs)).T
        scope = Scope(np.array([0, len(pairs)]), label.astype(np.int32), kind.astype(np.uint8))
        truth = replace(truth, scope=scope)
    detections = detmap.detections_from_arrays(
        truth,
        found["image"],
        [place[name] for name in found["class"]],
        found["box"],
        found["score"],
    )
    return truth, detections, found["outcomes"], other


@pytest.mark.parametrize("text", EXAMPLES, ids=lambda text: settings_of(text.split("|")[0][10:]))
def test_an_example_comes_out_as_the_page_says(text: str) -> None:
    truth, detections, outcomes, other = read(text)
    aps = other.get("AP", "").split()
    for column, settings in enumerate(other["settings"].split("|")):
        result = detmap.evaluate(
            truth, detections, "coco-bbox", settings=BASE | settings_of(settings)
        )
        matches = result.matches
        found = ["-"] * len(detections)
        for row, position in enumerate(matches.position.tolist()):
            hit, excused = matches.tp[row, 0], matches.ignored[row, 0]
            found[position] = "TP" if hit else "IGNORED" if excused else "FP"
        assert found == [each[column] for each in outcomes], settings
        if aps:
            assert round(result.metrics["AP"], 6) == float(aps[column])


def test_examples_are_found_and_every_column_differs_somewhere() -> None:
    assert len(EXAMPLES) >= 13
    for text in EXAMPLES:
        _, _, outcomes, other = read(text)
        n = other["settings"].count("|") + 1
        assert all(len(each) == n for each in outcomes)
        columns = [*zip(*outcomes, strict=True), *([] if "AP" not in other else [()])]
        assert len(set(columns)) > 1 or "AP" in other


def test_the_table_of_keys_is_that_of_the_code() -> None:
    table = PAGE.read_text().partition("protocol.describe() -->\n")[2].partition("\n<!-- end")[0]
    assert table == protocol.describe()
