"""Tables of drawn arrays, whole and by `replace`: refused by a `DetmapError`, or what was given."""

import math
from dataclasses import fields, replace
from typing import Any

import numpy as np

import detmap
from detmap.core.tables import Detections, Truth
from detmap.errors import DetmapError

COUNTS = {"accepted": 0, "refused": 0}
VALUES = (0, 1, -1, 2, 5, 10**6, 2**31 - 1, -(2**31), math.nan, math.inf, -math.inf, 1e99, 1e200)
KINDS = (">i4", ">f8", "<i8", "<f4", "<u4", "?", "O", "<U3", "<i4", "<f8", "<c16")
OTHERS: tuple[Any, ...] = (None, 5, "x", [], (), {}, [1, 2], np.float64(3), np.zeros(()), True)
ODD_IDS: tuple[Any, ...] = ("a", "a\0", 1, 2.5, 3.0, True, None, math.nan, 2**70, "é" * 2000, b"b")


def case(seed: int) -> str | None:
    """What is wrong with one drawn table."""
    rng = np.random.default_rng(seed)
    try:
        return (by_replace, by_replace, by_arrays)[rng.integers(3)](rng)
    except DetmapError as error:
        COUNTS["refused"] += 1
        return None if error.where and error.what else "an error that says nothing"


def tables(rng: np.random.Generator) -> tuple[Truth, Detections]:
    """A ground truth and detections of a few boxes; ids of images are numbers or names."""
    n_images, n_classes = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    ids: Any = np.sort(rng.choice(50, n_images, replace=False))
    ids = ids if rng.random() < 0.7 else np.array([f"im{i:02}" for i in ids])

    def rows(n: int) -> tuple[Any, Any, Any]:
        boxes = np.hstack([rng.integers(0, 8, (n, 2)), rng.integers(1, 9, (n, 2))]).astype(float)
        return ids[rng.integers(0, n_images, n)], rng.integers(0, n_classes, n), boxes

    n = int(rng.integers(0, 7))
    truth = detmap.truth_from_arrays(
        *rows(n),
        crowd=rng.random(n) < 0.3,
        images=ids,
        categories={k: f"c{k}" for k in range(n_classes)},
    )
    n = int(rng.integers(0, 12))
    return truth, detmap.detections_from_arrays(truth, *rows(n), rng.integers(0, 5, n) / 4)


def by_replace(rng: np.random.Generator) -> str | None:
    """Columns of a good table replaced, and the arrays overwritten afterwards."""
    truth, detections = tables(rng)
    table: Any = truth if rng.random() < 0.5 else detections
    names = [field.name for field in fields(table) if field.name not in ("source", "year", "split")]
    given: dict[str, Any] = {}
    for name in rng.choice(names, int(rng.integers(1, 3)), replace=False).tolist():
        given[name] = odd(rng, getattr(table, name), tables(rng))
    made = replace(table, **given)
    COUNTS["accepted"] += 1
    copies = {name: np.array(value) for name, value in given.items() if type(value) is np.ndarray}
    for name, value in copies.items():
        if not np.array_equal(getattr(made, name), value):
            return f"{name} is not what was given"
    wrong = fault(made)
    if wrong:
        return wrong
    if not all(name in ("image", "label") for name in given):
        pair = (made, detections) if table is truth else (truth, made)
        detmap.evaluate(*pair, "coco-bbox", threads=1)
        return None
    pair = (made, detections) if table is truth else (truth, made)
    before = detmap.evaluate(*pair, "coco-bbox", threads=1).signature
    for name in given:
        if type(given[name]) is np.ndarray and given[name].flags.writeable:
            given[name][...] = 10**9
    after = detmap.evaluate(*pair, "coco-bbox", threads=1).signature
    return None if before == after else "an array that was changed afterwards shows"


def odd(rng: np.random.Generator, value: Any, others: tuple[Truth, Detections]) -> Any:
    """Something in place of a column."""
    if hasattr(value, "items"):
        columns = {name: odd(rng, column, others) for name, column in value.items()}
        return columns if rng.random() < 0.8 else {**columns, "x": np.zeros(int(rng.integers(4)))}
    if type(value) is not np.ndarray:
        choices = (*OTHERS, others[0].images, others[0].categories, others[0], value)
        return choices[rng.integers(len(choices))]
    choice = rng.integers(9)
    with np.errstate(all="ignore"):
        if choice <= 2 and value.size:
            copy = value.astype(value.dtype)
            try:
                copy.reshape(-1)[rng.integers(value.size)] = VALUES[rng.integers(len(VALUES))]
            except (OverflowError, ValueError):
                return None
            return copy
        if choice == 3:
            return value[: int(rng.integers(0, len(value) + 1))].copy()
        if choice == 4:
            return value.astype(KINDS[rng.integers(len(KINDS))])
        if choice == 5:
            return np.repeat(value, 2, axis=0)[::2]
        if choice == 6:
            return np.ma.masked_array(value) if rng.random() < 0.5 else value.tolist()
        if choice == 7:
            return OTHERS[rng.integers(len(OTHERS))]
    return rng.permutation(value.copy()) if value.ndim else value


def fault(table: Any) -> str | None:
    """What a table holds that it must not; row by row."""
    n_images, n_classes = len(table.images.ids.tolist()), len(table.categories.ids.tolist())
    boxes, image, label = table.boxes.tolist(), table.image.tolist(), table.label.tolist()
    if not len(boxes) == len(image) == len(label) == len(table):
        return "lengths differ"
    if not all(0 <= i < n_images for i in image) or not all(0 <= k < n_classes for k in label):
        return "a position is out of range"
    if not all(len(box) == 4 and all(abs(x) <= 1e100 for x in box) for box in boxes):
        return "a box is no box"
    columns = [table.image, table.label, table.boxes]
    if isinstance(table, Detections):
        columns.append(table.score)
        if any(math.isnan(x) for x in table.score.tolist()) or len(table.score) != len(boxes):
            return "a score is NaN"
    else:
        named = [*table.roles.values(), *table.attributes.values()]
        columns += named
        if any(len(column) != len(boxes) for column in named):
            return "a named column is too long"
    for column in columns:
        good = column.flags.c_contiguous and column.dtype.isnative and not column.flags.writeable
        if type(column) is not np.ndarray or not good:
            return "a column is not in order"
    return None


def by_arrays(rng: np.random.Generator) -> str | None:
    """Arguments of the array API, some of them odd; what is accepted is what was given."""
    n = int(rng.integers(1, 5))
    arguments: dict[str, Any] = {
        "image_id": rng.integers(0, 3, n).tolist(),
        "category_id": rng.integers(0, 3, n).tolist(),
        "boxes": rng.integers(0, 9, (n, 4)).tolist(),
        "crowd": (rng.random(n) < 0.5).tolist(),
        "area": rng.integers(0, 99, n).astype(float).tolist(),
    }
    for name in rng.choice(sorted(arguments), int(rng.integers(1, 3)), replace=False).tolist():
        value = arguments[name]
        choice = rng.integers(5)
        if choice <= 1:
            source = ODD_IDS if name.endswith("_id") else (*VALUES, "1", None, 1j, 0.5)
            value[rng.integers(n)] = source[rng.integers(len(source))]
        elif choice == 2:
            arguments[name] = OTHERS[rng.integers(len(OTHERS))]
        elif choice == 3:
            arguments[name] = value[:-1]
        else:
            arguments[name] = odd(rng, np.array(value), tables(rng))
    made = detmap.truth_from_arrays(**arguments)
    COUNTS["accepted"] += 1
    wrong = fault(made)
    if wrong:
        return wrong
    for name, held in (
        ("image_id", made.images.ids[made.image].tolist()),
        ("category_id", made.categories.ids[made.label].tolist()),
        ("boxes", made.boxes.tolist()),
        ("crowd", made.crowd.tolist()),
        ("area", made.area.tolist()),
    ):
        given = arguments[name]
        listed = given.tolist() if hasattr(given, "tolist") else given
        if given is not None and len(made) and list(listed) != held:
            return f"{name}: {listed!r} became {held!r}"
    return None
