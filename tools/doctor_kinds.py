"""Kinds of mistakes for the battery of the doctor: each changes a right set (`tools.doctor_sets`).

`KINDS` lists them with the finding that names each, and what a fix must give.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from pycocotools.mask import encode

from detmap.core.overlaps.mask_reader import MaskReader
from detmap.core.overlaps.ragged_runs import unpacked
from tools.doctor_sets import Set

Boxes = np.ndarray
Change = Callable[[Boxes, Boxes], Boxes]
COCO_IDS = [n for n in range(1, 91) if n not in (12, 26, 29, 30, 45, 66, 68, 69, 71, 83)]
BOXES, PLACES, AREAS = ("boxes",), ("boxes", "keypoints"), ("boxes", "masks")
ALL = ("boxes", "masks", "keypoints")


class Kind(NamedTuple):
    """A kind of mistake.

    Parameters
    ----------
    make : changes a copy of a set, in place or by a new one
    findings : words of which one must be the first finding
    shapes : kinds of shapes that can have it
    close : how near the number after the fix must be; None where no fix can give it
    right : changes the right set first
    """

    make: Callable[[Set, np.random.Generator], Set | None]
    findings: str
    shapes: tuple[str, ...] = ALL
    close: float | None = 0.001
    right: Callable[[Set], None] | None = None

    @property
    def wanted(self) -> tuple[str, ...]:
        """The findings."""
        return tuple(self.findings.split())


def sizes(given: Set) -> dict[Any, np.ndarray]:
    """Width and height of each image."""
    return {i["id"]: np.array([i["width"], i["height"]], float) for i in given.truth["images"]}


def _box_kind(change: Change, wanted: str, close: float = 0.001) -> Kind:
    """Change boxes of the results; both arrays are (n, 4) and (n, 2), the sizes of the images."""

    def make(given: Set, rng: np.random.Generator) -> None:
        size = sizes(given)
        box = np.array([row["bbox"] for row in given.rows], float)
        made = change(box, np.array([size[row["image_id"]] for row in given.rows]))
        for row, each in zip(given.rows, np.asarray(made).tolist(), strict=True):
            row["bbox"] = each

    return Kind(make, wanted, BOXES, close)


def _corners(b: Boxes) -> Boxes:
    return np.hstack([b[:, :2], b[:, :2] + b[:, 2:]])


def _centers(b: Boxes) -> Boxes:
    return np.hstack([b[:, :2] + b[:, 2:] / 2, b[:, 2:]])


def _two(s: Boxes) -> Boxes:
    return np.hstack([s, s])


def _affine(change: Change) -> Callable[..., None]:
    """Change points (n, 2) of images with sizes (n, 2): of boxes their corners, and keypoints."""

    def make(given: Set, rng: np.random.Generator) -> None:
        size = sizes(given)
        for row in given.rows:
            s = size[row["image_id"]][None]
            if "bbox" in row:
                x, y, w, h = row["bbox"]
                ends = change(np.array([[x, y], [x + w, y + h]], float), np.repeat(s, 2, 0))
                low, high = ends.min(axis=0), ends.max(axis=0)
                row["bbox"] = [*low.tolist(), *(high - low).tolist()]
            if "keypoints" in row:
                points = np.array(row["keypoints"], float).reshape(-1, 3)
                points[:, :2] = change(points[:, :2], np.repeat(s, len(points), 0))
                row["keypoints"] = points.ravel().tolist()

    return make


def _letterboxed(p: Boxes, s: Boxes) -> Boxes:
    scale = 640 / s.max(axis=1, keepdims=True)
    return p * scale + (640 - s * scale) / 2


def _turned(p: Boxes, s: Boxes, turns: int) -> Boxes:
    x, y, w, h = p[:, 0], p[:, 1], s[:, 0], s[:, 1]
    columns = {1: (h - y, x), 2: (w - x, h - y), 3: (y, w - x)}[turns]
    return np.stack(columns, axis=1)


def _turned_if(turns: int, which: Callable[[Boxes], Any]) -> Change:
    return lambda p, s: np.where(which(s)[:, None], _turned(p, s, turns), p)


def _portrait(s: Boxes) -> Any:
    return s[:, 1] > s[:, 0]


def _third_turned(given: Set, rng: np.random.Generator) -> None:
    chosen = {i["id"] for i in given.truth["images"] if rng.random() < 0.34}
    part = Set(given.truth, [row for row in given.rows if row["image_id"] in chosen], given.shape)
    _affine(lambda p, s: _turned(p, s, 2))(part, rng)


# --- classes --------------------------------------------------------------------------------------


def _class_kind(
    change: Callable[[int, list[int], list[str]], Any],
    wanted: str,
    shapes: tuple[str, ...] = AREAS,
    close: float | None = 0.001,
) -> Kind:
    """Change classes of the results by position among the categories, in the order of ids."""

    def make(given: Set, rng: np.random.Generator) -> None:
        known = sorted(given.truth["categories"], key=lambda c: c["id"])
        ids, names = [c["id"] for c in known], [c["name"] for c in known]
        for row in given.rows:
            row["category_id"] = change(ids.index(row["category_id"]), ids, names)

    return Kind(make, wanted, shapes, close)


def _cycled(k: int, ids: list[int], names: list[str]) -> int:
    return ids[(k + 1) % len(ids)]


def _alphabetical(k: int, ids: list[int], names: list[str]) -> int:
    return sorted(range(len(names)), key=lambda j: names[j]).index(k) + 1


def _named(change: Callable[[str], str]) -> Callable[..., None]:
    def make(given: Set, rng: np.random.Generator) -> None:
        names = {c["id"]: c["name"] for c in given.truth["categories"]}
        for row in given.rows:
            row["category_name"] = change(names[row.pop("category_id")])

    return make


def _three_classes(given: Set) -> None:
    """Three classes with names that COCO has."""
    new = {c["id"]: k % 3 + 1 for k, c in enumerate(given.truth["categories"])}
    for each in (*given.truth["annotations"], *given.rows):
        each["category_id"] = new[each["category_id"]]
    names = ("person", "car", "dog")
    given.truth["categories"] = [{"id": k + 1, "name": name} for k, name in enumerate(names)]


def _coco_model(ids: list[int]) -> Callable[..., None]:
    """Ids of an 80-class COCO model, which detects other classes too."""

    def make(given: Set, rng: np.random.Generator) -> Set:
        for row in given.rows:
            row["category_id"] = ids[(0, 2, 16)[row["category_id"] - 1]]
        others = [ids[k] for k in (1, 39, 56, 60, 79)]
        extra = [dict(row, category_id=int(rng.choice(others))) for row in given.rows]
        return given._replace(rows=given.rows + extra)

    return make


def _commonest(given: Set, rng: np.random.Generator) -> Set:
    counted = np.bincount([a["category_id"] for a in given.truth["annotations"]])
    most = int(np.argmax(counted))
    return given._replace(rows=[row for row in given.rows if row["category_id"] == most])


# --- images ---------------------------------------------------------------------------------------


def _image_kind(
    change: Callable[[int, list[dict[str, Any]]], Any], wanted: str, close: float | None = 0.001
) -> Kind:
    """Change image ids of the results by the position of the image."""

    def make(given: Set, rng: np.random.Generator) -> None:
        images = sorted(given.truth["images"], key=lambda i: i["id"])
        place = {image["id"]: p for p, image in enumerate(images)}
        for row in given.rows:
            row["image_id"] = change(place[row["image_id"]], images)

    return Kind(make, wanted, ALL, close)


def _stem(i: int, images: list[dict[str, Any]]) -> str:
    return str(images[i]["file_name"].rpartition(".")[0])


def _shuffled(share: float) -> Callable[..., None]:
    def make(given: Set, rng: np.random.Generator) -> None:
        ids = [i["id"] for i in given.truth["images"]]
        some = rng.permutation([i for i in ids if rng.random() < share]).tolist()
        other = dict(zip(some, some[1:] + some[:1], strict=True))
        for row in given.rows:
            row["image_id"] = other.get(row["image_id"], row["image_id"])

    return make


def _numbered_files(given: Set, rng: np.random.Generator) -> None:
    """Image ids as text, beside file names that are numbers of other images."""
    images = given.truth["images"]
    ids = [i["id"] for i in images]
    for image, other in zip(images, ids[1:] + ids[:1], strict=True):
        image["file_name"] = f"{other}.jpg"
    for row in given.rows:
        row["image_id"] = str(row["image_id"])


def _kept(test: Callable[[int, int, np.random.Generator], bool]) -> Callable[..., Set]:
    def make(given: Set, rng: np.random.Generator) -> Set:
        ids = [i["id"] for i in given.truth["images"]]
        kept = {i for p, i in enumerate(ids) if test(p, len(ids), rng)}
        return given._replace(rows=[row for row in given.rows if row["image_id"] in kept])

    return make


# --- scores and repeated rows ---------------------------------------------------------------------


def _scores(change: Callable[[float], float]) -> Callable[..., None]:
    def make(given: Set, rng: np.random.Generator) -> None:
        for row in given.rows:
            row["score"] = float(change(row["score"]))

    return make


def _cut(given: Set, rng: np.random.Generator) -> Set:
    """As many detections as half of the objects."""
    kept = len(given.truth["annotations"]) // 2
    least = sorted(row["score"] for row in given.rows)[-kept]
    return given._replace(rows=[row for row in given.rows if row["score"] >= least])


def _logit(p: float) -> float:
    p = min(max(p, 1e-6), 1 - 1e-6)
    return float(np.log(p / (1 - p)))


def _piled(given: Set, rng: np.random.Generator) -> Set:
    """Three detections for each, a little beside it and with a lower score."""
    again = []
    for row in given.rows:
        for _ in range(2):
            b = np.array(row["bbox"])
            moved = b + rng.normal(0, 0.01, 4) * np.tile(b[2:], 2)
            score = row["score"] * rng.uniform(0.8, 1)
            again.append(dict(row, bbox=np.maximum(moved, [-9, -9, 0, 0]).tolist(), score=score))
    return given._replace(rows=given.rows + again)


def _padded(given: Set, rng: np.random.Generator) -> Set:
    """The first tenth of the images again, as a distributed sampler pads its last batch."""
    ids = [i["id"] for i in given.truth["images"]]
    first = set(ids[: max(3, len(ids) // 10)])
    return given._replace(rows=given.rows + [r for r in given.rows if r["image_id"] in first])


# --- the ground truth -----------------------------------------------------------------------------


def _objects(change: Callable[[dict[str, Any], np.ndarray], Any], share: float = 1.0) -> Any:
    """Change annotations; `change` gets one and its image's width and height."""

    def make(given: Set, rng: np.random.Generator) -> None:
        size = sizes(given)
        for each in given.truth["annotations"]:
            if share == 1 or rng.random() < share:
                each.update(change(each, size[each["image_id"]]))

    return make


def _truth_box_kind(change: Change, close: float = 0.001) -> Kind:
    def changed(each: dict[str, Any], size: np.ndarray) -> dict[str, Any]:
        return {"bbox": change(np.array([each["bbox"]], float), size[None])[0].tolist()}

    return Kind(_objects(changed), "truth-boxes", BOXES, close)


def _twice(given: Set, rng: np.random.Generator) -> None:
    each = given.truth["annotations"]
    given.truth["annotations"] = each + [dict(a, id=a["id"] + 10**6) for a in each]


def _near_twice(given: Set, rng: np.random.Generator) -> None:
    each = given.truth["annotations"]
    again = [dict(a, id=a["id"] + 10**6, bbox=[v + 0.3 for v in a["bbox"]]) for a in each[::6]]
    given.truth["annotations"] = each + again


def _no_labels(given: Set, rng: np.random.Generator) -> None:
    ids = [i["id"] for i in given.truth["images"]]
    kept = set(ids[: len(ids) // 3])
    given.truth["annotations"] = [a for a in given.truth["annotations"] if a["image_id"] in kept]


def _sizes_exchanged(given: Set, rng: np.random.Generator) -> None:
    for image in given.truth["images"]:
        image["width"], image["height"] = image["height"], image["width"]


def _orphans(given: Set, rng: np.random.Generator) -> None:
    for each in given.truth["annotations"]:
        if rng.random() < 0.1:
            each["image_id"] += 10**6


def _unlisted(given: Set, rng: np.random.Generator) -> None:
    for each in given.truth["annotations"]:
        if rng.random() < 0.1:
            each["category_id"] += 10**4


def _restarting(given: Set, rng: np.random.Generator) -> None:
    seen: dict[Any, int] = {}
    for each in given.truth["annotations"]:
        seen[each["image_id"]] = seen.get(each["image_id"], 0) + 1
        each["id"] = seen[each["image_id"]]


def _crossed(each: dict[str, Any], size: np.ndarray) -> dict[str, Any]:
    if isinstance(each["segmentation"], dict):
        return {}
    return {"segmentation": [ring[0::2] + ring[1::2] for ring in each["segmentation"]]}


def _unseen(each: dict[str, Any], size: np.ndarray) -> dict[str, Any]:
    points = list(each["keypoints"])
    points[2::3] = [0] * len(points[2::3])
    return {"keypoints": points}


# --- masks ----------------------------------------------------------------------------------------


def _masks(change: Callable[[np.ndarray], np.ndarray]) -> Callable[..., None]:
    """Change masks of the results as arrays (height, width); they become run lengths."""

    def make(given: Set, rng: np.random.Generator) -> None:
        size = sizes(given)
        for row in given.rows:
            mask = dense(row["segmentation"], size[row["image_id"]][::-1])
            row["segmentation"] = {"size": list(mask.shape), "counts": run_text(change(mask))}

    return make


def dense(value: Any, size: np.ndarray) -> np.ndarray:
    """Return (height, width) bool of a segmentation; `size` is height, width."""
    runs = MaskReader().read([value], size[None], str).runs
    _, counts = unpacked(runs.off, runs.counts)
    flat = np.repeat(np.arange(len(counts)) % 2 == 1, counts)
    return flat.reshape(int(size[1]), int(size[0])).T


def run_text(mask: np.ndarray) -> str:
    """Return COCO's compressed run lengths."""
    return str(encode(np.asfortranarray(mask, dtype=np.uint8))["counts"].decode())


def _c_order(mask: np.ndarray) -> np.ndarray:
    return mask.ravel().reshape(mask.shape, order="F")


def _transposed(mask: np.ndarray) -> np.ndarray:
    """Swap x and y on the same canvas: what lies beyond it is lost."""
    out = np.zeros_like(mask)
    side = min(mask.shape)
    out[:side, :side] = mask[:side, :side].T
    return out


def _place_kind(change: Change, wanted: str, close: float = 0.001) -> Kind:
    return Kind(_affine(change), wanted, PLACES, close)


def _lost_kind(make: Any, wanted: str, shapes: tuple[str, ...] = ALL) -> Kind:
    """What no fix can give back."""
    return Kind(make, wanted, shapes, None)


KINDS: dict[str, Kind] = {
    "corners": _box_kind(lambda b, s: _corners(b), "boxes-xyxy"),
    "centers": _box_kind(lambda b, s: _centers(b), "boxes-cxcywh"),
    "fractions": _place_kind(lambda p, s: p / s, "boxes-normalised"),
    "fractions, corners": _box_kind(lambda b, s: _corners(b) / _two(s), "boxes-normalised"),
    "fractions, centers": _box_kind(lambda b, s: _centers(b) / _two(s), "boxes-normalised"),
    "fractions of 640": _place_kind(lambda p, s: p / 640, "boxes-normalised", 0.02),
    "fractions of a padded square": _place_kind(
        lambda p, s: p / s.max(axis=1, keepdims=True), "boxes-normalised"
    ),
    "x and y swapped": _place_kind(lambda p, s: p[:, ::-1], "boxes-xy-swapped"),
    "corners, x and y swapped": _box_kind(
        lambda b, s: _corners(b)[:, [1, 0, 3, 2]], "boxes-xy-swapped"
    ),
    "height before width": _box_kind(lambda b, s: b[:, [0, 1, 3, 2]], "boxes-xyhw"),
    "half the size": _place_kind(lambda p, s: p / 2, "boxes-resized", 0.02),
    "1.28 times": _place_kind(lambda p, s: p * 1.28, "boxes-resized", 0.02),
    "stretched to 416": _place_kind(lambda p, s: p / s * 416, "boxes-resized", 0.02),
    "0 to 1000": _place_kind(lambda p, s: p / s * 1000, "boxes-resized", 0.02),
    "0 to 1000, top first": _box_kind(
        lambda b, s: (_corners(b) / _two(s) * 1000)[:, [1, 0, 3, 2]], "boxes-resized", 0.02
    ),
    "short side 800": _place_kind(
        lambda p, s: p * 800 / s.min(axis=1, keepdims=True), "boxes-resized", 0.02
    ),
    "letterboxed to 640": _place_kind(_letterboxed, "boxes-letterboxed", 0.02),
    "padded square of 640": _place_kind(
        lambda p, s: p * 640 / s.max(axis=1, keepdims=True), "boxes-resized", 0.02
    ),
    "width and height exchanged": _place_kind(
        lambda p, s: p * s[:, ::-1] / s, "boxes-sizes-swapped"
    ),
    "portrait images turned by 90": _place_kind(_turned_if(1, _portrait), "boxes-turned"),
    "portrait images turned by 270": _place_kind(_turned_if(3, _portrait), "boxes-turned"),
    "a third turned by 180": Kind(_third_turned, "boxes-turned", PLACES, 0.03),
    "mirrored": _place_kind(
        lambda p, s: np.stack([s[:, 0] - p[:, 0], p[:, 1]], axis=1), "boxes-mirrored"
    ),
    "shifted by 12": _place_kind(lambda p, s: p + 12, "boxes-shifted", 0.03),
    "classes from 0": _class_kind(lambda k, ids, names: ids[k] - 1, "classes-zero-based", ALL),
    "classes from 2": _class_kind(lambda k, ids, names: ids[k] + 1, "classes-one-based", ALL),
    "classes numbered from 0": _class_kind(
        lambda k, ids, names: k, "classes-contiguous classes-zero-based", AREAS
    ),
    "classes numbered from 1": _class_kind(
        lambda k, ids, names: k + 1, "classes-contiguous", AREAS
    ),
    "classes in another order": _class_kind(_cycled, "classes-permuted"),
    "two classes swapped": _class_kind(
        lambda k, ids, names: ids[{0: 1, 1: 0}.get(k, k)], "classes-permuted", AREAS
    ),
    "classes in alphabetical order": _class_kind(
        _alphabetical, "classes-alphabetical classes-contiguous", AREAS
    ),
    "class ids as text": _class_kind(lambda k, ids, names: str(ids[k]), "classes-as-text", ALL),
    "class names, case and plural": Kind(
        _named(lambda name: name.upper().replace(" ", "_") + "S"), "classes-spelling", BOXES
    ),
    "class names, blanks": Kind(
        _named(lambda name: f" {name.title()} "), "classes-spelling", BOXES
    ),
    "one class for all": _class_kind(lambda k, ids, names: ids[0], "classes-agnostic", AREAS, None),
    "only the commonest class": Kind(_commonest, "classes-without-detections", AREAS, None),
    "COCO model, ids to 90": Kind(
        _coco_model(COCO_IDS), "classes-coco-model", BOXES, 0.001, _three_classes
    ),
    "COCO model, ids to 79": Kind(
        _coco_model(list(range(80))), "classes-coco-model", BOXES, 0.001, _three_classes
    ),
    "file stems": _image_kind(_stem, "images-by-stem"),
    "file names": _image_kind(lambda i, x: x[i]["file_name"], "images-by-stem"),
    "paths": _image_kind(lambda i, x: f"/data/val/{x[i]['file_name']}", "images-by-stem"),
    "images from one too low": _image_kind(lambda i, x: x[i]["id"] - 1, "images-shifted"),
    "images numbered from 0": _image_kind(lambda i, x: i, "images-by-position images-shifted"),
    "images numbered from 1": _image_kind(lambda i, x: i + 1, "images-by-position images-shifted"),
    "image ids as text": _image_kind(lambda i, x: str(x[i]["id"]), "images-by-id images-by-stem"),
    "image ids as text, other numbers in file names": Kind(_numbered_files, "images-by-id"),
    "all images shuffled": _lost_kind(_shuffled(1.0), "images-shuffled"),
    "half of the images shuffled": _lost_kind(_shuffled(0.5), "images-shuffled"),
    "images of another split": _image_kind(
        lambda i, x: 10**7 + 7 * i * i, "images-other-split", None
    ),
    "half of the images": _lost_kind(
        _kept(lambda p, n, rng: rng.random() < 0.5), "images-without-detections"
    ),
    "the first half": _lost_kind(_kept(lambda p, n, rng: p < n // 2), "images-without-detections"),
    "no detections": _lost_kind(_kept(lambda p, n, rng: False), "images-without-detections"),
    "percent": Kind(_scores(lambda p: round(100 * p, 3)), "scores-percent"),
    "logits": Kind(_scores(_logit), "scores-logits"),
    "negated": Kind(_scores(lambda p: -p), "scores-negated"),
    "lowest is best": Kind(_scores(lambda p: 1 - p), "scores-negated"),
    "equal": _lost_kind(_scores(lambda p: 1.0), "scores-equal"),
    "cut": _lost_kind(_cut, "scores-cut"),
    "all rows twice": Kind(lambda given, rng: given._replace(rows=given.rows * 2), "rows-repeated"),
    "a sampler's padding": Kind(_padded, "rows-repeated"),
    "no suppression": Kind(_piled, "duplicates", BOXES, 0.05),
    "ground truth: fractions": _truth_box_kind(lambda b, s: b / _two(s)),
    "ground truth: fractions, centers": _truth_box_kind(lambda b, s: _centers(b) / _two(s)),
    "ground truth: fractions, corners": _truth_box_kind(lambda b, s: _corners(b) / _two(s)),
    "ground truth: corners": _truth_box_kind(lambda b, s: _corners(b)),
    "ground truth: centers": _truth_box_kind(lambda b, s: _centers(b)),
    "ground truth: half the size": _truth_box_kind(lambda b, s: b / 2, 0.02),
    "ground truth: x and y swapped": _truth_box_kind(lambda b, s: b[:, [1, 0, 3, 2]]),
    "ground truth: width and height of images exchanged": _lost_kind(
        _sizes_exchanged, "truth-image-sizes", PLACES
    ),
    "ground truth: area 0": _lost_kind(_objects(lambda a, s: {"area": 0}), "truth-area"),
    "ground truth: area in fractions": _lost_kind(
        _objects(lambda a, s: {"area": a["area"] / s.prod()}), "truth-area"
    ),
    "ground truth: all crowd": _lost_kind(
        _objects(lambda a, s: {"iscrowd": 1}), "truth-crowd", PLACES
    ),
    "ground truth: 40 % crowd": _lost_kind(
        _objects(lambda a, s: {"iscrowd": 1}, 0.4), "truth-crowd", PLACES
    ),
    "ground truth: objects twice": _lost_kind(_twice, "truth-duplicates"),
    "ground truth: objects nearly twice": _lost_kind(_near_twice, "truth-near-duplicates", BOXES),
    "ground truth: labels missing": _lost_kind(_no_labels, "truth-labels-missing"),
    "ground truth: unlisted images": _lost_kind(_orphans, "truth-unlisted", BOXES),
    "ground truth: unlisted categories": _lost_kind(_unlisted, "truth-unlisted", BOXES),
    "ground truth: ids restart": _lost_kind(_restarting, "truth-ids-twice"),
    "ground truth: boxes without size": _lost_kind(
        _objects(lambda a, s: {"bbox": [*a["bbox"][:2], 0, 0]}, 0.1), "truth-empty-boxes", BOXES
    ),
    "ground truth: boxes outside": _lost_kind(
        _objects(lambda a, s: {"bbox": [9000, 9000, *a["bbox"][2:]]}, 0.1), "truth-outside", BOXES
    ),
    "ground truth: polygons x x y y": _lost_kind(_objects(_crossed), "truth-shapes", ("masks",)),
    "ground truth: num_keypoints 0": _lost_kind(
        _objects(lambda a, s: {"num_keypoints": 0}), "truth-keypoints", ("keypoints",)
    ),
    "ground truth: visibility 0": _lost_kind(_objects(_unseen), "truth-keypoints", ("keypoints",)),
    "masks in C order": Kind(_masks(_c_order), "masks-c-order", ("masks",)),
    "masks with x and y swapped": Kind(_masks(_transposed), "masks-xy-swapped", ("masks",), None),
}
