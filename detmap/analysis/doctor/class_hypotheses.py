"""Hypotheses about classes: how they are numbered, ordered and spelled."""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.doctor.raw_rows import Key, Raw, are_numbers, class_places
from detmap.analysis.doctor.repair import Repair
from detmap.analysis.doctor.trial import Sample
from detmap.core.base.assignment import assign_all
from detmap.core.tables import Categories, Truth
from detmap.errors import few

MOST_CLASSES = 500  # of a permutation that is looked for
LEAST_MOVED = 0.05  # share of the overlapping rows that a permutation moves,
LEAST_SURE, TIMES_SURE = 0.01, 3  # or less, where nearly none of them fits as it is

NAMES = """
person, bicycle, car, motorcycle, airplane, bus, train, truck, boat, traffic light, fire hydrant,
stop sign, parking meter, bench, bird, cat, dog, horse, sheep, cow, elephant, bear, zebra, giraffe,
backpack, umbrella, handbag, tie, suitcase, frisbee, skis, snowboard, sports ball, kite,
baseball bat, baseball glove, skateboard, surfboard, tennis racket, bottle, wine glass, cup, fork,
knife, spoon, bowl, banana, apple, sandwich, orange, broccoli, carrot, hot dog, pizza, donut, cake,
chair, couch, potted plant, bed, dining table, toilet, tv, laptop, mouse, remote, keyboard,
cell phone, microwave, oven, toaster, sink, refrigerator, book, clock, vase, scissors, teddy bear,
hair drier, toothbrush
"""
COCO = re.split(r",\s+", NAMES.strip())
"""COCO's 80 classes in the order of their ids. Source: the categories of instances_val2017.json."""

OFFICIAL = sorted({*range(1, 91)} - {12, 26, 29, 30, 45, 66, 68, 69, 71, 83})
"""Their ids. Source: the same."""

SAME = (
    ("airplane", "aeroplane", "plane"),
    ("motorcycle", "motorbike"),
    ("couch", "sofa"),
    ("tv", "tvmonitor", "television"),
    ("pottedplant", "houseplant"),
    ("diningtable", "table"),
    ("person", "people", "pedestrian"),
    ("cellphone", "mobilephone"),
    ("hairdrier", "hairdryer"),
    ("donut", "doughnut"),
)
"""Names that data sets give to one class, as `normalised` spells them."""
_SYNONYM = {name: same[0] for same in SAME for name in same}


def repairs(sample: Sample) -> Iterator[Repair]:
    """Other readings of the classes that rows name."""
    raw, known = sample.rows, sample.truth.categories
    used = [raw.classes[code] for code in np.unique(raw.label).tolist()]
    if not used:
        return
    if are_numbers(used):
        numbers = [int(key) for key in used]
        yield from _numbered(numbers, *_named(raw, known))
        yield from _coco_model(numbers, known)
    else:
        yield from _spelled([str(key) for key in used], known)
    ids = {str(i) for i in known.ids.tolist()} | {*known.names}
    if len(used) == 1 and str(used[0]) in ids:  # any other class would gain by its objects alone
        return
    mapping = permutation(sample)
    if mapping:
        text = "the classes are in another order: by overlap, " + _moved(mapping, known)
        guess = ", ".join(f"{key} is {name}" for key, name in mapping.items())
        yield replace(_renaming("classes-permuted", text, mapping, 5), guess=guess)


def _renaming(
    name: str, text: str, mapping: Mapping[Key, int], weight: int = 1, sure: bool = False
) -> Repair:
    return Repair(name, text, partial(renamed, mapping=mapping), weight, sure)


def renamed(raw: Raw, truth: Truth, *, mapping: Mapping[Key, int]) -> Raw:
    """The rows with other class ids; of a class that the mapping lacks none is known."""
    least = int(truth.categories.ids.min(initial=0)) - 1
    classes = tuple(mapping.get(key, least) for key in raw.classes)
    return replace(raw, classes=classes, names=None, class_names=raw.class_names or raw.classes)


def _named(raw: Raw, known: Categories) -> tuple[Categories, dict[int, int]]:
    """The classes by the ids that the detections use, and the ids of the ground truth for them."""
    if raw.names is None:
        return known, {i: i for i in known.ids.tolist()}
    by_name = dict(zip(known.names, known.ids.tolist(), strict=True))
    names = {i: name for i, name in sorted(raw.names.items()) if name in by_name}
    ids = np.array(list(names), dtype=np.int64)
    return Categories(ids, tuple(names.values())), {i: by_name[names[i]] for i in names}


def _numbered(used: Sequence[int], known: Categories, own: Mapping[int, int]) -> Iterator[Repair]:
    """Numberings of `known` classes; `own` are the ground truth's ids of their ids."""
    mapping: dict[Key, int]
    ids = known.ids.tolist()
    n, low, high = len(ids), min(used), max(used)
    first = ids[0] if ids else 0
    for step, name, text in (
        (1, "classes-zero-based", f"class ids count from {first - 1}, the objects' from {first}"),
        (-1, "classes-one-based", f"class ids count from {first + 1}, the objects' from {first}"),
    ):
        mapping = {key: own[key + step] for key in used if key + step in known.ids}
        if len(mapping) >= 0.9 * len(used):
            yield _renaming(name, text, mapping)
    gaps = ids != list(range(first, first + n))
    by_name = sorted(range(n), key=lambda k: known.names[k])
    for start in (0, 1):
        if low < start or high >= start + n:
            continue
        ends = f"from {start} to {n - 1 + start}"
        if gaps:
            text = (
                f"class ids are numbered through {ends}, the ground truth's go from {first} to "
                f"{ids[-1]} with gaps"
            )
            mapping = {key: own[ids[key - start]] for key in used}
            yield _renaming("classes-contiguous", text, mapping)
        if by_name != list(range(n)):
            text = (
                f"class ids are numbered {ends} in alphabetical order of the names, the truth's are"
                " not"
            )
            mapping = {key: own[ids[by_name[key - start]]] for key in used}
            yield _renaming("classes-alphabetical", text, mapping, 2)
    if n == len(OFFICIAL) and not gaps and high > first + n - 1:
        text = "class ids are COCO's from 1 to 90 with gaps; those of the ground truth have no gaps"
        mapping = {key: own[ids[OFFICIAL.index(key)]] for key in used if key in OFFICIAL}
        yield _renaming("classes-coco-ids", text, mapping, 2)


def _coco_model(used: Sequence[int], known: Categories) -> Iterator[Repair]:
    """The ids of a model with COCO's 80 classes, where the ground truth has some of their names."""
    by_name = {normalised(name): i for name, i in zip(known.names, known.ids.tolist(), strict=True)}
    shared = [name for name in COCO if normalised(name) in by_name]
    if len(known) >= len(COCO) or not shared or set(used) <= set(known.ids.tolist()):
        return
    for ids in (OFFICIAL, list(range(80)), list(range(1, 81))):
        if not set(used) <= set(ids):
            continue
        name = dict(zip(ids, COCO, strict=True))
        same = {i: by_name.get(normalised(name[i])) for i in used}
        mapping: dict[Key, int] = {i: own for i, own in same.items() if own is not None}
        text = (
            f"class ids are those of COCO's 80 classes, from {ids[0]} to {ids[-1]}; the ground "
            f"truth has {few(shared)} of them: detections of other classes are dropped (or name "
            "the classes with --class-names)"
        )
        yield Repair("classes-coco-model", text, partial(_kept_of_coco, mapping=mapping), 2, True)


def _kept_of_coco(raw: Raw, truth: Truth, *, mapping: Mapping[Key, int]) -> Raw:
    known = np.array([key in mapping for key in raw.classes], dtype=bool)
    rows = np.flatnonzero(known[raw.label])
    return renamed(raw.take(rows), truth, mapping=mapping)


# --- names ----------------------------------------------------------------------------------------


def normalised(name: str) -> str:
    """A name without case, separators and plural, the first of its synonyms."""
    letters = re.sub(r"[\W_]+", "", name.casefold())
    for each in (letters, letters.removesuffix("es"), letters.removesuffix("s")):
        if each in _SYNONYM:
            return _SYNONYM[each]
    return letters.removesuffix("s")


def _spelled(used: Sequence[str], known: Categories) -> Iterator[Repair]:
    if all(re.fullmatch(r"\d{1,9}", name) for name in used):
        mapping: dict[Key, int] = {name: int(name) for name in used}
        text = "class ids are written as text"
        yield _renaming("classes-as-text", text, mapping, 1, True)
        own = {i: i for i in known.ids.tolist()}
        if set(mapping.values()) <= own.keys():  # nothing more to explain
            return
        for repair in _numbered([int(name) for name in used], known, own):
            inner = repair.apply.keywords["mapping"]  # type: ignore[attr-defined]
            mapping = {name: inner[int(name)] for name in used if int(name) in inner}
            text = f"{repair.sentence}, and are written as text"
            yield _renaming(repair.name, text, mapping, 2, True)
        return
    strange = [name for name in used if name not in known.names]
    if not strange:
        return
    spelled = {normalised(name): name for name in known.names}
    meant: dict[str, str] = {}
    for name in strange:
        close = difflib.get_close_matches(normalised(name), spelled, n=1, cutoff=0.8)
        same = normalised(name) if normalised(name) in spelled else next(iter(close), None)
        if same is not None and spelled[same] not in used:
            meant[name] = spelled[same]
    if meant and len(set(meant.values())) == len(meant):
        ids = dict(zip(known.names, known.ids.tolist(), strict=True))
        wanted = {name: meant.get(name, name) for name in used}
        mapping = {name: ids[other] for name, other in wanted.items() if other in ids}
        pairs = few(f"{name!r} for {other!r}" for name, other in meant.items())
        text = f"{len(meant)} class names are spelled differently in the ground truth: {pairs}"
        yield _renaming("classes-spelling", text, mapping, 1, True)


# --- a permutation --------------------------------------------------------------------------------


def confusion(sample: Sample, images: int | None = None) -> NDArray[np.float64]:
    """(C, K) how often rows of each class key overlap objects of each class; higher scores weigh
    more. `images` 0 or 1 selects every second image.
    """
    raw, truth, met = sample.rows, sample.truth, sample.met
    counts = np.zeros((len(raw.classes), len(truth.categories)))
    rank = np.empty(len(raw))
    rank[np.argsort(raw.score, kind="stable")] = np.arange(1, len(raw) + 1) / max(1, len(raw))
    some = slice(None) if images is None else truth.image[met.place] % 2 == images
    row, place = met.row[some], met.place[some]
    np.add.at(counts, (raw.label[row], truth.label[place]), rank[row] ** 4)
    return counts


def permutation(sample: Sample) -> dict[Key, int]:
    """Returns class ids by key that overlap suggests; empty if no class changes.

    What is found on half of the images must hold on the other half.
    """
    known = sample.truth.categories
    if max(len(known), len(sample.raw.classes)) > MOST_CLASSES or len(known) < 2:
        return {}
    as_is = class_places(sample.truth, sample.raw.classes, sample.raw.names)
    # Keeps the class of rows that overlap nothing.
    spare = np.where(as_is[:, None] == np.arange(len(known)), 1e-9, 0.0)
    halves = confusion(sample, 0), confusion(sample, 1)
    for fitted, held in (halves, halves[::-1]):
        chosen = assigned(fitted + spare)
        moved = np.flatnonzero((chosen >= 0) & (chosen != as_is))
        here = held[moved, chosen[moved]].sum()
        before = held[moved, as_is[moved]][as_is[moved] >= 0].sum()
        most = held.sum()
        if here <= min(before + LEAST_MOVED * most, TIMES_SURE * before + LEAST_SURE * most):
            return {}
    chosen = assigned(halves[0] + halves[1] + spare)
    ids = known.ids.tolist()
    return {
        key: ids[place]
        for key, place in zip(sample.raw.classes, chosen.tolist(), strict=True)
        if place >= 0
    }


def assigned(gain: NDArray[np.float64]) -> NDArray[np.int64]:
    """(C,) the column of each row in the assignment of the highest sum, -1 for a row without."""
    rows, columns = assign_all(gain)
    out = np.full(gain.shape[0], -1, dtype=np.int64)
    out[rows] = columns
    return out


def _moved(mapping: Mapping[Key, int], known: Categories) -> str:
    name = dict(zip(known.ids.tolist(), known.names, strict=True))
    return few(f"{key} is {name[i]}" for key, i in mapping.items() if key not in (i, name[i]))
