"""What the browser must count at a threshold, by `diagnose` on the detections from there on."""

import json
import math
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.analysis.browse import folder
from detmap.analysis.browse.cases import Shown, shown
from detmap.analysis.diagnosis import Diagnosis, diagnose
from detmap.analysis.diagnosis.analysis import BEYOND
from detmap.analysis.diagnosis.confusion import confusion
from detmap.analysis.diagnosis.operating_sweep import best_f1, sweep
from detmap.core.protocol import Protocol
from detmap.core.tables import Detections, Truth

NODE = shutil.which("node")
SCRIPT = Path(__file__).with_name("count.js")
STATE: dict[str, Any] = {
    **{"det": 0, "kinds": [], "classes": [], "name": "", "cell": None, "group": -1},
    **{"order": "file", "least": 0},
}


def every_shown(
    truth: Truth, tables: dict[str, Detections], rules: Protocol | str, most: int | None = None
) -> dict[str, Shown]:
    found = {name: diagnose(truth, table, rules) for name, table in tables.items()}
    limit = {} if most is None else {"most": most}
    return {name: shown(each, best_f1(each).score, **limit) for name, each in found.items()}


def write(every: dict[str, Shown], place: Path) -> dict[str, Any]:
    """Writes the data files; returns an empty state."""
    place.mkdir(parents=True)
    for name, content in folder.data_files(every, "a title", {"kind": "none"}):
        (place / name.removeprefix("data/")).write_bytes(content)
    n_slices = len(folder.cases.property_content(next(iter(every.values()))))
    return {**STATE, "slices": [[]] * n_slices}


def counted_by_node(jobs: list[dict[str, Any]], place: Path) -> list[list[dict[str, Any]]]:
    if NODE is None:
        pytest.skip("node is not installed")
    file = place / "jobs.json"
    file.write_text(json.dumps(jobs))
    done = subprocess.run(
        [NODE, str(SCRIPT), str(folder.VIEW), str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[list[dict[str, Any]]] = json.loads(done.stdout)
    return found


class Expected:
    """Counts of detmap on the detections from a score on."""

    def __init__(self, some: Shown, threshold: float) -> None:
        whole = some.diagnosis
        kept = whole.detections.take(np.flatnonzero(whole.detections.score >= threshold))
        self.found: Diagnosis = diagnose(whole.truth, kept, whole.protocol)
        self.threshold = threshold

    def kinds(self) -> list[int]:
        counts = self.found.counts()
        names = ("TP", "Cls", "Loc", "Both", "Dupe", "Bkg", "missed")
        return [counts[name] for name in names]

    def matrix(self) -> dict[tuple[int, int], int]:
        # the score of no highest F1 would be chosen if all detections are kept
        made = confusion(self.found, confidence=-math.inf)
        return {(i, j): n for i, j, n in zip(*(x.tolist() for x in made.counts()), strict=True)}

    def matched(self) -> Any:
        return self.found.to_find & (self.found.by >= 0)

    def classes(self, kind: int | None) -> list[int]:
        """Cases of each class: errors, or of one kind."""
        diagnosis, n = self.found, len(self.found.truth.categories)
        some = ~diagnosis.ignored & (diagnosis.kind != BEYOND)
        some &= diagnosis.kind > 0 if kind is None else diagnosis.kind == kind
        counts = np.bincount(diagnosis.detections.label[some], minlength=n)
        if kind in (None, 6):
            lost = diagnosis.to_find & (diagnosis.by < 0)
            counts = counts + np.bincount(diagnosis.truth.label[lost], minlength=n)
        return [int(each) for each in counts]

    def per_image(self) -> list[int]:
        diagnosis, n = self.found, len(self.found.truth.images)
        wrong = ~diagnosis.ignored & (diagnosis.kind != BEYOND) & (diagnosis.kind > 0)
        lost = diagnosis.to_find & (diagnosis.by < 0)
        counts = np.bincount(diagnosis.detections.image[wrong], minlength=n)
        return [int(n) for n in counts + np.bincount(diagnosis.truth.image[lost], minlength=n)]


def groups(one: Expected, other: Expected) -> list[int]:
    a, b, to_find = one.matched(), other.matched(), one.found.to_find
    every = (a & b, a & ~b, b & ~a, to_find & ~a & ~b)
    return [int(each.sum()) for each in every]


def require_equal(result: dict[str, Any], a: Expected, b: Expected, det: int) -> None:
    """The result of a state of a detector without filters."""
    mine = (a, b)[det]
    n = len(mine.found.truth.categories) + 1
    assert result["kinds"][:7] == mine.kinds()
    assert {(key // n, key % n): count for key, count in result["cells"]} == mine.matrix()
    assert result["classes"] == mine.classes(None)
    assert result["perImage"] == mine.per_image()
    assert len(result["cases"]) == sum(mine.kinds()[1:]) == len(set(result["cases"]))
    right, *wrong, missed = mine.kinds()
    totals = [result["totals"][name] for name in ("tp", "fp", "missed")]
    assert totals == [right, sum(wrong), missed]
    points = sweep(mine.found)
    row = points.row(len(points.threshold) - 1 if len(points.threshold) else None)
    for name in ("precision", "recall", "f1"):
        seen = math.nan if result["totals"][name] is None else result["totals"][name]
        assert seen == pytest.approx(row[name], abs=1e-12, nan_ok=True), name
    assert result["groups"] == groups(a, b)


def require_lists(results: list[dict[str, Any]], states: list[dict[str, Any]]) -> None:
    """Each filtered state lists as many cases as the first one, without filters, counts for it."""
    plain, *filtered = results
    cells, size = dict(map(tuple, plain["cells"])), len(plain["classes"]) + 1
    for state, result in zip(states[1:], filtered, strict=True):
        if state["cell"]:
            wanted = cells[state["cell"][0] * size + state["cell"][1]]
        elif state["group"] >= 0:
            wanted = plain["groups"][state["group"]]
        elif state["kinds"]:
            wanted = plain["kinds"][state["kinds"][0]]
        else:
            wanted = plain["classes"][state["classes"][0]]
        assert len(result["cases"]) == wanted, state
        assert sum(result["perImage"]) == wanted
        assert sorted(result["ordered"]) == sorted(result["cases"])


def voc_detectors(voc2007: Path) -> dict[str, Shown]:
    """Two detectors of different strength on VOC 2007's test set."""
    truth = detmap.read_truth(voc2007 / "VOCdevkit")
    names = ("yolov2-voc", "tiny-yolov2-voc")
    tables = {name: detmap.read_detections(voc2007 / name, truth) for name in names}
    return every_shown(truth, tables, "voc2007")
