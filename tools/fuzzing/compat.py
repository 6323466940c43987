"""The drop-in on drawn data, parameters and calls, with the compiled lane for every size and
without: values, errors and printed text equal (==) to pycocotools'.
"""

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from detmap.compat import COCOeval
from detmap.compat import annotation_sources as sources
from tests.compat.both import OFFICIAL, OURS, Classes, Outcome, assert_same, load, run, summarize
from tests.support.drawing import draw_coco, draw_many_detections, pick
from tests.support.drawing_shapes import draw_keypoints, draw_segm

KINDS = {3: "segm", 5: "keypoints"}  # of every 8 seeds; else boxes
COUNTS = {"native": 0, "delegated": 0, "errors": 0}
NUMBERS = (0.0, 0.05, 0.3, 0.5, 0.5, 0.55, 0.75, 1.0, 1.5)
BOUNDS = (-1, 0, 32, 50, 400, 1024, 1e4, 1e10, float("inf"))
IMAGES = (0, 7, 3, 42, 1_000_000_007, 139, 5, 999)
CATEGORIES = (18, 1, 90, 3, 44, 77, 1000)


def some(rng: np.random.Generator, options: Any, most: int) -> list[Any]:
    """A few of the options, in any order, perhaps twice."""
    return [pick(rng, options) for _ in range(int(rng.integers(1, most + 1)))]


PARAMETERS: dict[str, Callable[[np.random.Generator], Any]] = {
    "iouThrs": lambda rng: np.array(some(rng, NUMBERS, 5)),
    "recThrs": lambda rng: np.array(some(rng, NUMBERS, 7)),
    "areaRng": lambda rng: [some(rng, BOUNDS, 1) + some(rng, BOUNDS, 1) for _ in range(3)],
    "maxDets": lambda rng: some(rng, (1, 2, 3, 5, 10, 100), 4),
    "imgIds": lambda rng: some(rng, IMAGES, 6),
    "catIds": lambda rng: some(rng, CATEGORIES, 6),
    "useCats": lambda rng: pick(rng, (0, 1)),
}


def parameters(rng: np.random.Generator, p: float) -> dict[str, Any]:
    """Some parameters replaced by lists that nobody sorted."""
    return {name: draw(rng) for name, draw in PARAMETERS.items() if rng.random() < p}


def set_all(params: Any, values: dict[str, Any]) -> Any:
    """The same parameters with copies of these values."""
    for name, value in values.items():
        setattr(params, name, copy.deepcopy(value))
    return params


def edit(rng: np.random.Generator, coco: Any) -> None:
    """Something that clients do to what they loaded."""
    rows = coco.dataset["annotations"]
    kind = int(rng.integers(7))
    if kind == 0:
        coco.dataset["annotations"] = rows[::2]
    elif kind == 1:
        rows.reverse()
    elif kind == 2:
        for row in rows[::2]:
            row["area"] = float(pick(rng, (1, 50, 1024, 1e4)))
    elif kind == 3 and rows:
        rows[-1]["id"] = int(pick(rng, (0, -1, rows[0]["id"])))
    elif kind == 4:
        for row in rows[::3] if rows and "bbox" in rows[0] else ():
            row["bbox"] = [*row["bbox"][:2], 3.5, 40]
    elif kind == 5:
        coco.imgToAnns.clear()
    else:
        coco.anns = dict(reversed(coco.anns.items()))
    if rng.random() < 0.6:
        coco.createIndex()


def script(seed: int, classes: Classes) -> Any:
    """One use of the classes: what it leaves behind."""
    rng = np.random.default_rng([seed, 1])
    kind = KINDS.get(seed % 8, "bbox")
    if kind != "bbox":
        data = (draw_segm if kind == "segm" else draw_keypoints)(rng)
    elif rng.random() < 0.8:
        data = (draw_many_detections if seed % 40 == 0 else draw_coco)(rng)
    else:
        data = draw_coco(rng, zero_id=True)
    pair = load(classes, *data)
    for coco in pair:
        if rng.random() < 0.2:
            edit(rng, coco)
    made = classes.evaluation(*pair, kind)
    set_all(made.params, parameters(rng, 0.2))
    made.evaluate()
    if rng.random() < 0.3:
        len(made.evalImgs)
    if rng.random() < 0.2:
        for cell in made.evalImgs[::3]:
            if cell is not None:
                cell["dtIgnore"][:, ::2] = True
    if rng.random() < 0.2:
        len(made.ious), len(made._gts), len(made._dts)
    other = set_all(copy.deepcopy(made.params), parameters(rng, 0.2))
    made.accumulate(other) if rng.random() < 0.4 else made.accumulate()
    if rng.random() < 0.5:
        summarize(made)
    if rng.random() < 0.1:
        made.evaluate()
        made.accumulate()
    return made


def case(seed: int) -> str | None:
    """What differs from pycocotools in one use."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for least in (1, sources.LEAST_SIZE):
            before, sources.LEAST_SIZE = sources.LEAST_SIZE, least
            try:
                expected, found = (
                    run(lambda classes: script(seed, classes), classes)
                    for classes in (OFFICIAL, OURS)
                )
            finally:
                sources.LEAST_SIZE = before
            wrong = difference(expected, found)
            if wrong:
                return f"{'lane' if least == 1 else 'dicts'}: {wrong}"
    return None


def difference(expected: Outcome, found: Outcome) -> str | None:
    """What is not the same."""
    if found.error != expected.error:
        return f"{found.error!r} for {expected.error!r}"
    if found.text != expected.text:
        return "printed text"
    if expected.error:
        COUNTS["errors"] += 1
        return None
    assert isinstance(found.value, COCOeval)
    COUNTS["native" if found.value._evaluated is not None else "delegated"] += 1
    try:
        assert_same(expected.value, found.value)
    except AssertionError as error:
        return f"not the same: {str(error)[:300]}"
    return None
