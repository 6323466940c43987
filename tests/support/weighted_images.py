"""Small sets of every protocol with image weights, and the same sets with repeated images."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

import detmap
from detmap.core.overlaps import masks
from detmap.core.overlaps.keypoints import Keypoints
from detmap.core.overlaps.rotated_boxes import RotatedBoxes
from detmap.core.tables import Detections, Truth
from detmap.errors import DetmapError
from tools.coverage import sampled_tables

N_IMAGES = 5
COLUMNS = ("vis_ratio", "visible", "truncated", "motion_iou")
FLAGS = ("occluded", "listed_easy", "listed_medium", "listed_hard")
ROLES = ("ignore", "uncertain", "unscored", "group_of")
EPSILON = 1e-9


@cache
def rules(name: str) -> detmap.Protocol:
    return detmap.load_protocol(name)


def draw(name: str, rng: np.random.Generator, *, ties: bool = True) -> tuple[Truth, Detections]:
    """Boxes in heaps on five images; scores tie between images, never inside of one."""
    n, m = int(rng.integers(0, 14)), int(rng.integers(0, 28))
    if not ties:
        n, m = 14, 28

    def rows(count: int) -> tuple[Any, Any, Any]:
        boxes = np.hstack(
            [rng.integers(0, 3, (count, 2)) * 9.0, rng.choice([24.0, 31, 60], (count, 2))]
        )
        return np.sort(rng.integers(1, N_IMAGES + 1, count)), rng.integers(1, 4, count), boxes

    image, label, own = rows(n)
    columns = {each: rng.random(n) for each in COLUMNS}
    columns |= {each: rng.integers(0, 2, n).astype(float) for each in FLAGS}
    columns |= {"left": own[:, 0] + 9, "top": own[:, 1] + 9}
    columns |= {"right": own[:, 0] + own[:, 2], "bottom": own[:, 1] + own[:, 3]}
    truth = detmap.truth_from_arrays(
        image, label, own, images=np.arange(1, N_IMAGES + 1),
        categories={1: "person", 2: "dog", 3: "cat"}, attributes=columns,
        roles={each: rng.random(n) < 0.15 for each in ROLES}, crowd=rng.random(n) < 0.15,
    )  # fmt: skip
    size = np.full(N_IMAGES, 400.0)
    index = {"crowdIndex": np.linspace(0, 1, N_IMAGES)}
    truth = replace(truth, images=replace(truth.images, width=size, height=size, attributes=index))
    rows_found = rows(m)
    scores = np.zeros(m)
    for i in range(1, N_IMAGES + 1):  # distinct inside an image
        mine = np.flatnonzero(rows_found[0] == i)
        scores[mine] = (rng.permutation(28)[: len(mine)] + 1) / 32
    if not ties:
        scores = (rng.permutation(m) + 1) / 32
    found = detmap.detections_from_arrays(truth, *rows_found, scores)
    return shaped(name, truth), shaped(name, found)


def shaped(name: str, table: Any) -> Any:
    """The table with the shapes that the protocol compares: those of its boxes."""
    kind, box, n = rules(name).iou.of, table.boxes, len(table)
    if kind == "keypoints":
        k = len(rules(name).iou.sigmas)
        places = np.random.default_rng(0).random((1, k, 2))
        points = np.ones((n, k, 3))
        points[:, :, :2] = box[:, None, :2] + places * box[:, None, 2:]
        return replace(table, shapes=Keypoints(points, box[:, 2] * box[:, 3]))
    if kind in ("masks", "boundary"):
        x, y, w, h = box.T
        corners = np.stack([x, y, x + w, y, x + w, y + h, x, y + h], axis=1).tolist()
        sizes = np.full((n, 2), 400.0)
        return replace(table, shapes=masks.read([[each] for each in corners], sizes, str))
    if kind in ("polygons", "rotated", "probiou"):
        middle = box[:, :2] + box[:, 2:] / 2
        values = np.column_stack([middle, box[:, 2:], np.full(n, 0.1)])
        return replace(table, shapes=RotatedBoxes(values))
    return table


def repeated(truth: Truth, found: Detections, times: Sequence[int]) -> tuple[Truth, Detections]:
    """Tables in which the copies of an image follow it, with all of its rows."""
    return sampled_tables(truth, found, np.repeat(np.arange(len(truth.images)), times))


def fault(name: str, seed: int, counts: dict[str, int] | None = None) -> str | None:
    """What is wrong with the weighted numbers of a drawn set; None if nothing is."""
    rng = np.random.default_rng(seed)
    truth, found = draw(name, rng)
    times = rng.integers(0, 4, N_IMAGES)
    times[rng.integers(0, N_IMAGES)] = 1
    counts = {} if counts is None else counts
    try:
        weighed = detmap.summarize(
            detmap.match(truth, found, name, threads=1), weights=times, threads=1
        )
    except DetmapError as error:
        counts["refused"] = counts.get("refused", 0) + 1
        words = (name, rules(name).evaluation.rule)
        if rules(name).detections.score_scale != "no" and len(set(found.score.tolist())) == 1:
            return None  # one score has no range to scale by, whatever the weights
        return None if any(word in str(error) for word in words) else f"{name}: {error}"
    whole = detmap.evaluate(*repeated(truth, found, times.tolist()), name, threads=1)
    counts["compared"] = counts.get("compared", 0) + 1
    for metric, value in weighed.metrics.items():
        wanted = whole.metrics[metric]
        if not (abs(value - wanted) <= EPSILON or (np.isnan(value) and np.isnan(wanted))):
            return f"{name}: {metric} {value} with weights {times}, {wanted} with copies"
    if weighed.counts() != whole.counts():
        return f"{name}: {weighed.counts()} with weights {times}, {whole.counts()} with copies"
    for one, other in zip(weighed.per_class, whole.per_class, strict=True):
        for key, value in one.items():
            wanted = other[key]
            if (
                value != wanted
                and not (np.isnan(value) and np.isnan(wanted))
                and abs(value - wanted) > EPSILON
            ):
                return f"{name}: {key} of {one['name']} {value}, {wanted} with copies ({times})"
    return None
