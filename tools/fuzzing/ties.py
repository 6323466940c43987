"""Random orders of equal scores: every order of small drawn sets is evaluated, and each number that
a random order gave must be that of one of them. A case is one set with 2 to 150 orders; eight sets
in a row share their rules.
"""

from functools import lru_cache
from itertools import permutations, product
from math import factorial, prod
from typing import Any

import numpy as np

import detmap
from detmap.core.curves import aggregation
from detmap.core.curves import scores as curves
from detmap.core.curves.scores import Scores
from detmap.core.matching.engine import match
from detmap.core.protocol.integrators import AT_TRUE_POSITIVES
from detmap.core.statistics.ties import evaluated
from tests.support.drawing import pick
from tests.support.drawing_rules import STOCK

COUNTS = {"orders": 0, "numbers": 0, "both ends": 0}
DRAWN = 12  # random orders of a set
MOST = 150  # orders of a set
SETS = 8  # drawn under the same rules: to make rules takes as long as to evaluate a set
EPSILON = 1e-12
CHOICES: dict[str, tuple[Any, ...]] = {
    **{key: values for key, values in STOCK.items() if key != "limits.order"},
    "ap.integrator": tuple(row.name for row in AT_TRUE_POSITIVES),
    "ap.recall_over": ("counted", "all"),
    "limits.max_dets": ([], [1], [2], [1, 2, 3], [2, 4], [100]),
    "matching.neutral.crowd": ("count", "ignore", "absorb"),
    "subsets": (
        {"all": {}},
        {"all": {}, "small": {"area": [0, 100]}, "wide": {"width": [10, 200]}},
    ),
}


def draw(rng: np.random.Generator) -> tuple[detmap.Truth, detmap.Detections, detmap.Protocol]:
    """A set and its rules."""
    protocol = draw_rules(rng)
    return *draw_set(rng), protocol


@lru_cache(maxsize=2)
def rules(seed: int) -> tuple[detmap.Protocol, detmap.Protocol]:
    """Drawn rules; and the same with equal scores in the order of the input."""
    protocol = draw_rules(np.random.default_rng([seed, 1]))
    return protocol, protocol.override({"ranking.ties": "input"})


def draw_rules(rng: np.random.Generator) -> detmap.Protocol:
    """Rules that benchmarks have."""
    settings = {key: pick(rng, values) for key, values in CHOICES.items() if rng.random() < 0.5}
    limits = settings.get("limits.max_dets", [100])
    rows = ["AP", "AP@subset", "AR@max_dets", "AR@subset", "AP-group"]
    first = settings.get("iou.thresholds", [0.5])[0]
    rows.append(f"AP{100 * first:g}")
    settings["metrics"] = rows if limits else [row for row in rows if "max" not in row]
    settings["groups"] = {"group": ["a"]}
    return detmap.load_protocol("coco-bbox").override(settings)


def draw_set(rng: np.random.Generator) -> tuple[detmap.Truth, detmap.Detections]:
    """Few boxes in heaps, and few scores."""
    n_images, n_classes = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    n_objects, n_found = int(rng.integers(1, 6)), int(rng.integers(2, 8))

    def rows_of(n: int) -> tuple[Any, Any, Any]:
        heap = rng.integers(0, 2, (n, 1)) * np.array([[60, 0]])
        corner = heap + rng.integers(0, 4, (n, 2))
        boxes = np.hstack([corner, rng.integers(8, 13, (n, 2))]).astype(float)
        return rng.integers(0, n_images, n), rng.integers(0, n_classes, n), boxes

    truth = detmap.truth_from_arrays(
        *rows_of(n_objects),
        crowd=rng.random(n_objects) < 0.25,
        images=np.arange(n_images),
        categories={k: "ab"[k] for k in range(2)},
    )
    score = pick(rng, ([0.5], [0.4, 0.8], [0.2, 0.4, 0.8]))
    found = detmap.detections_from_arrays(truth, *rows_of(n_found), rng.choice(score, n_found))
    return truth, found


def orders(found: detmap.Detections, protocol: detmap.Protocol) -> list[np.ndarray[Any, Any]]:
    """Every order of the rows that differs in that of equal scores; none where there are many."""
    group = found.score if protocol.limits.scope == "image" else found.score + found.label
    runs = [np.flatnonzero(group == each) for each in np.unique(group)]
    if prod(factorial(len(run)) for run in runs) > MOST:
        return []
    every = []
    for each in product(*(permutations(run.tolist()) for run in runs)):
        order = np.arange(len(group))
        for run, new in zip(runs, each, strict=True):
            order[run] = new
        every.append(order)
    return every


def metrics_by_order(
    truth: detmap.Truth,
    found: detmap.Detections,
    protocol: detmap.Protocol,
    every: list[np.ndarray[Any, Any]],
) -> list[list[float]]:
    """The metrics under each order of the rows, from one evaluation in which each order has images
    and classes of its own.
    """
    n, n_images, n_classes = len(every), len(truth.images), len(truth.categories)

    def copied(column: Any, step: int) -> Any:
        """The numbers of images or classes in each copy."""
        return column + step * np.arange(n).repeat(len(column) // n)

    whole = detmap.truth_from_arrays(
        copied(np.tile(truth.image, n), n_images),
        copied(np.tile(truth.label, n), n_classes),
        np.tile(truth.boxes, (n, 1)),
        crowd=np.tile(truth.roles["crowd"], n),
        images=np.arange(n * n_images),
        categories={k: str(k) for k in range(n * n_classes)},
    )
    rows = np.concatenate(every)
    ordered = detmap.detections_from_arrays(
        whole,
        copied(found.image[rows], n_images),
        copied(found.label[rows], n_classes),
        found.boxes[rows],
        found.score[rows],
    )
    made = curves.scores(match(whole, ordered, protocol, threads=1), threads=1)
    known: dict[bytes, list[float]] = {}  # most orders give the same curves
    values = []
    for k in range(0, n * n_classes, n_classes):
        part = classes_of(made, k, n_classes)
        key = content(part)
        if key not in known:
            known[key] = [
                aggregation.mean(part, row, protocol, truth.categories)
                for row in protocol.rows()[0]
            ]
        values.append(known[key])
    return values


def content(scores: Scores) -> bytes:
    """All that a mean is made of."""
    own = (scores.judged, scores.terms, scores.recall, scores.n_objects, scores.n_tp, scores.n_fp)
    own += (scores.n_ignored, scores.n_images)
    return b"".join([column.tobytes() for column in own] + [*map(content, scores.lower.values())])


def classes_of(scores: Scores, first: int, n: int) -> Scores:
    """The scores of n classes."""
    some, judged = slice(first, first + n), scores.judged
    mine = slice(*np.searchsorted(judged, [first, first + n]))
    return Scores(
        judged[mine] - first,
        scores.terms[..., mine],
        scores.recall[..., mine],
        scores.n_objects[some],
        scores.n_tp[..., some],
        scores.n_fp[..., some],
        scores.n_ignored[..., some],
        scores.n_images[some],
        lower={limit: classes_of(each, first, n) for limit, each in scores.lower.items()},
    )


def case(seed: int) -> str | None:
    """What is wrong with the numbers of one set."""
    rng = np.random.default_rng(seed)
    protocol, by_input = rules(seed // SETS)
    every: list[np.ndarray[Any, Any]] = []
    while len(every) < 2:  # too many, or a single one, of which there is nothing to tell
        truth, found = draw_set(rng)
        every = orders(found, protocol)
    result = detmap.evaluate(truth, found, protocol, threads=1)
    parts = np.array(metrics_by_order(truth, found, by_input, every))
    COUNTS["orders"] += len(parts)
    wrong = None
    for tables, where in ((result.matched, ""), (None, "without tables: ")):
        known = result.matches, result.scores, tables
        names, own, some = evaluated(*known, DRAWN, seed, threads=1)
        for q, name in enumerate(names):
            possible = np.append(parts[:, q], own[q])
            near = np.isclose(some[:, q, None], possible, rtol=0, atol=EPSILON, equal_nan=True)
            if not near.any(axis=1).all():
                wrong = wrong or f"{where}{name}: {some[:, q]} of {sorted(set(possible))}"
            COUNTS["numbers"] += 1
            ends = some[:, q].min(), some[:, q].max()
            COUNTS["both ends"] += ends == (possible.min(), possible.max())
    return wrong
