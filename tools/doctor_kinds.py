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
COCO_IDS = [n for n in range(1, 91) if n not in (12, 26, 29, 30, 45, 66, 68, 69, 71, 83)]
BOXES, PLACES, AREAS = ("boxes",), ("boxes", "keypoints"), ("boxes", "masks")
ALL = ("boxes", "masks", "keypoints")


class Kind(NamedTuple):
    """A kind of mistake.

    Parameters
    ----------
    make : changes a copy of a set, in place or by a new one
    wanted : findings of which one must be the first
    shapes : kinds of shapes that can have it
    close : how near the number after the fix must be; None where no fix can give it
    right : changes the right set first
    """

    make: Callable[[Set, np.random.Generator], Set | None]
    wanted: tuple[str, ...]
    shapes: tuple[str, ...] = ALL
    close: float | None = 0.001
    right: Callable[[Set], None] | None = None


def sizes(given: Set) -> dict[Any, np.ndarray]:
    """Width and height of each image."""
    return {i["id"]: np.array([i["width"], i["height"]], float) for i in given.truth["images"]}


def _boxes(change: Callable[[Boxes, Boxes], Boxes]) -> Callable[..., None]:
    """Change boxes of the results; both arrays are (n, 4) and (n, 2), the sizes of the images."""

    def make(given: Set, rng: np.random.Generator) -> None:
        size = sizes(given)
        box = np.array([row["bbox"] for row in given.rows], float)
        made = change(box, np.array([size[row["image_id"]] for row in given.rows]))
        for row, each in zip(given.rows, np.asarray(made).tolist(), strict=True):
            row["bbox"] = each

    return make


def _corners(b: Boxes) -> Boxes:
    return np.hstack([b[:, :2], b[:, :2] + b[:, 2:]])


def _centers(b: Boxes) -> Boxes:
    return np.hstack([b[:, :2] + b[:, 2:] / 2, b[:, 2:]])


def _two(s: Boxes) -> Boxes:
    return np.hstack([s, s])


def _affine(change: Callable[[Boxes, Boxes], Boxes]) -> Callable[..., None]:
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


def _turned_if(turns: int, which: Callable[[Boxes], Any]) -> Callable[[Boxes, Boxes], Boxes]:
    return lambda p, s: np.where(which(s)[:, None], _turned(p, s, turns), p)


def _portrait(s: Boxes) -> Any:
    return s[:, 1] > s[:, 0]


def _third_turned(given: Set, rng: np.random.Generator) -> None:
    chosen = {i["id"] for i in given.truth["images"] if rng.random() < 0.34}
    part = Set(given.truth, [row for row in given.rows if row["image_id"] in chosen], given.shape)
    _affine(lambda p, s: _turned(p, s, 2))(part, rng)


# --- classes --------------------------------------------------------------------------------------


def _classes(change: Callable[[int, list[int], list[str]], Any]) -> Callable[..., None]:
    """Change classes of the results by position among the categories, in the order of ids."""

    def make(given: Set, rng: np.random.Generator) -> None:
        known = sorted(given.truth["categories"], key=lambda c: c["id"])
        ids, names = [c["id"] for c in known], [c["name"] for c in known]
        for row in given.rows:
            row["category_id"] = change(ids.index(row["category_id"]), ids, names)

    return make


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


def _images(change: Callable[[int, list[dict[str, Any]]], Any]) -> Callable[..., None]:
    """Change image ids of the results by the position of the image."""

    def make(given: Set, rng: np.random.Generator) -> None:
        images = sorted(given.truth["images"], key=lambda i: i["id"])
        place = {image["id"]: p for p, image in enumerate(images)}
        for row in given.rows:
            row["image_id"] = change(place[row["image_id"]], images)

    return make


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


def _truth_boxes(change: Callable[[Boxes, Boxes], Boxes]) -> Any:
    def changed(each: dict[str, Any], size: np.ndarray) -> dict[str, Any]:
        return {"bbox": change(np.array([each["bbox"]], float), size[None])[0].tolist()}

    return _objects(changed)


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


KINDS: dict[str, Kind] = {
    "corners": Kind(_boxes(lambda b, s: _corners(b)), ("boxes-xyxy",), BOXES),
    "centers": Kind(_boxes(lambda b, s: _centers(b)), ("boxes-cxcywh",), BOXES),
    "fractions": Kind(_affine(lambda p, s: p / s), ("boxes-normalised",), PLACES),
    "fractions, corners": Kind(
        _boxes(lambda b, s: _corners(b) / _two(s)), ("boxes-normalised",), BOXES
    ),
    "fractions, centers": Kind(
        _boxes(lambda b, s: _centers(b) / _two(s)), ("boxes-normalised",), BOXES
    ),
    "fractions of 640": Kind(_affine(lambda p, s: p / 640), ("boxes-normalised",), PLACES, 0.02),
    "fractions of a padded square": Kind(
        _affine(lambda p, s: p / s.max(axis=1, keepdims=True)), ("boxes-normalised",), PLACES
    ),
    "x and y swapped": Kind(_affine(lambda p, s: p[:, ::-1]), ("boxes-xy-swapped",), PLACES),
    "corners, x and y swapped": Kind(
        _boxes(lambda b, s: _corners(b)[:, [1, 0, 3, 2]]), ("boxes-xy-swapped",), BOXES
    ),
    "height before width": Kind(_boxes(lambda b, s: b[:, [0, 1, 3, 2]]), ("boxes-xyhw",), BOXES),
    "half the size": Kind(_affine(lambda p, s: p / 2), ("boxes-resized",), PLACES, 0.02),
    "1.28 times": Kind(_affine(lambda p, s: p * 1.28), ("boxes-resized",), PLACES, 0.02),
    "stretched to 416": Kind(_affine(lambda p, s: p / s * 416), ("boxes-resized",), PLACES, 0.02),
    "0 to 1000": Kind(_affine(lambda p, s: p / s * 1000), ("boxes-resized",), PLACES, 0.02),
    "0 to 1000, top first": Kind(
        _boxes(lambda b, s: (_corners(b) / _two(s) * 1000)[:, [1, 0, 3, 2]]),
        ("boxes-resized",),
        BOXES,
        0.02,
    ),
    "short side 800": Kind(
        _affine(lambda p, s: p * 800 / s.min(axis=1, keepdims=True)),
        ("boxes-resized",),
        PLACES,
        0.02,
    ),
    "letterboxed to 640": Kind(_affine(_letterboxed), ("boxes-letterboxed",), PLACES, 0.02),
    "padded square of 640": Kind(
        _affine(lambda p, s: p * 640 / s.max(axis=1, keepdims=True)),
        ("boxes-resized",),
        PLACES,
        0.02,
    ),
    "width and height exchanged": Kind(
        _affine(lambda p, s: p * s[:, ::-1] / s), ("boxes-sizes-swapped",), PLACES
    ),
    "portrait images turned by 90": Kind(
        _affine(_turned_if(1, _portrait)), ("boxes-turned",), PLACES
    ),
    "portrait images turned by 270": Kind(
        _affine(_turned_if(3, _portrait)), ("boxes-turned",), PLACES
    ),
    "a third turned by 180": Kind(_third_turned, ("boxes-turned",), PLACES, 0.03),
    "mirrored": Kind(
        _affine(lambda p, s: np.stack([s[:, 0] - p[:, 0], p[:, 1]], axis=1)),
        ("boxes-mirrored",),
        PLACES,
    ),
    "shifted by 12": Kind(_affine(lambda p, s: p + 12), ("boxes-shifted",), PLACES, 0.03),
    "classes from 0": Kind(_classes(lambda k, ids, names: ids[k] - 1), ("classes-zero-based",)),
    "classes from 2": Kind(_classes(lambda k, ids, names: ids[k] + 1), ("classes-one-based",)),
    "classes numbered from 0": Kind(
        _classes(lambda k, ids, names: k), ("classes-contiguous", "classes-zero-based"), AREAS
    ),
    "classes numbered from 1": Kind(
        _classes(lambda k, ids, names: k + 1), ("classes-contiguous",), AREAS
    ),
    "classes in another order": Kind(_classes(_cycled), ("classes-permuted",), AREAS),
    "two classes swapped": Kind(
        _classes(lambda k, ids, names: ids[{0: 1, 1: 0}.get(k, k)]), ("classes-permuted",), AREAS
    ),
    "classes in alphabetical order": Kind(
        _classes(_alphabetical), ("classes-alphabetical", "classes-contiguous"), AREAS
    ),
    "class ids as text": Kind(_classes(lambda k, ids, names: str(ids[k])), ("classes-as-text",)),
    "class names, case and plural": Kind(
        _named(lambda name: name.upper().replace(" ", "_") + "S"), ("classes-spelling",), BOXES
    ),
    "class names, blanks": Kind(
        _named(lambda name: f" {name.title()} "), ("classes-spelling",), BOXES
    ),
    "one class for all": Kind(
        _classes(lambda k, ids, names: ids[0]), ("classes-agnostic",), AREAS, None
    ),
    "only the commonest class": Kind(_commonest, ("classes-without-detections",), AREAS, None),
    "COCO model, ids to 90": Kind(
        _coco_model(COCO_IDS), ("classes-coco-model",), BOXES, 0.001, _three_classes
    ),
    "COCO model, ids to 79": Kind(
        _coco_model(list(range(80))), ("classes-coco-model",), BOXES, 0.001, _three_classes
    ),
    "file stems": Kind(_images(_stem), ("images-by-stem",)),
    "file names": Kind(_images(lambda i, x: x[i]["file_name"]), ("images-by-stem",)),
    "paths": Kind(_images(lambda i, x: f"/data/val/{x[i]['file_name']}"), ("images-by-stem",)),
    "images from one too low": Kind(_images(lambda i, x: x[i]["id"] - 1), ("images-shifted",)),
    "images numbered from 0": Kind(
        _images(lambda i, x: i), ("images-by-position", "images-shifted")
    ),
    "images numbered from 1": Kind(
        _images(lambda i, x: i + 1), ("images-by-position", "images-shifted")
    ),
    "image ids as text": Kind(
        _images(lambda i, x: str(x[i]["id"])), ("images-by-id", "images-by-stem")
    ),
    "image ids as text, other numbers in file names": Kind(_numbered_files, ("images-by-id",)),
    "all images shuffled": Kind(_shuffled(1.0), ("images-shuffled",), ALL, None),
    "half of the images shuffled": Kind(_shuffled(0.5), ("images-shuffled",), ALL, None),
    "images of another split": Kind(
        _images(lambda i, x: 10**7 + 7 * i * i), ("images-other-split",), ALL, None
    ),
    "half of the images": Kind(
        _kept(lambda p, n, rng: rng.random() < 0.5), ("images-without-detections",), ALL, None
    ),
    "the first half": Kind(
        _kept(lambda p, n, rng: p < n // 2), ("images-without-detections",), ALL, None
    ),
    "no detections": Kind(
        _kept(lambda p, n, rng: False), ("images-without-detections",), ALL, None
    ),
    "percent": Kind(_scores(lambda p: round(100 * p, 3)), ("scores-percent",)),
    "logits": Kind(_scores(_logit), ("scores-logits",)),
    "negated": Kind(_scores(lambda p: -p), ("scores-negated",)),
    "lowest is best": Kind(_scores(lambda p: 1 - p), ("scores-negated",)),
    "equal": Kind(_scores(lambda p: 1.0), ("scores-equal",), ALL, None),
    "cut": Kind(_cut, ("scores-cut",), ALL, None),
    "all rows twice": Kind(
        lambda given, rng: given._replace(rows=given.rows * 2), ("rows-repeated",)
    ),
    "a sampler's padding": Kind(_padded, ("rows-repeated",)),
    "no suppression": Kind(_piled, ("duplicates",), BOXES, 0.05),
    "ground truth: fractions": Kind(
        _truth_boxes(lambda b, s: b / _two(s)), ("truth-boxes",), BOXES
    ),
    "ground truth: fractions, centers": Kind(
        _truth_boxes(lambda b, s: _centers(b) / _two(s)), ("truth-boxes",), BOXES
    ),
    "ground truth: fractions, corners": Kind(
        _truth_boxes(lambda b, s: _corners(b) / _two(s)), ("truth-boxes",), BOXES
    ),
    "ground truth: corners": Kind(_truth_boxes(lambda b, s: _corners(b)), ("truth-boxes",), BOXES),
    "ground truth: centers": Kind(_truth_boxes(lambda b, s: _centers(b)), ("truth-boxes",), BOXES),
    "ground truth: half the size": Kind(
        _truth_boxes(lambda b, s: b / 2), ("truth-boxes",), BOXES, 0.02
    ),
    "ground truth: x and y swapped": Kind(
        _truth_boxes(lambda b, s: b[:, [1, 0, 3, 2]]), ("truth-boxes",), BOXES
    ),
    "ground truth: width and height of images exchanged": Kind(
        _sizes_exchanged, ("truth-image-sizes",), PLACES, None
    ),
    "ground truth: area 0": Kind(_objects(lambda a, s: {"area": 0}), ("truth-area",), ALL, None),
    "ground truth: area in fractions": Kind(
        _objects(lambda a, s: {"area": a["area"] / s.prod()}), ("truth-area",), ALL, None
    ),
    "ground truth: all crowd": Kind(
        _objects(lambda a, s: {"iscrowd": 1}), ("truth-crowd",), PLACES, None
    ),
    "ground truth: 40 % crowd": Kind(
        _objects(lambda a, s: {"iscrowd": 1}, 0.4), ("truth-crowd",), PLACES, None
    ),
    "ground truth: objects twice": Kind(_twice, ("truth-duplicates",), ALL, None),
    "ground truth: objects nearly twice": Kind(
        _near_twice, ("truth-near-duplicates",), BOXES, None
    ),
    "ground truth: labels missing": Kind(_no_labels, ("truth-labels-missing",), ALL, None),
    "ground truth: unlisted images": Kind(_orphans, ("truth-unlisted",), BOXES, None),
    "ground truth: unlisted categories": Kind(_unlisted, ("truth-unlisted",), BOXES, None),
    "ground truth: ids restart": Kind(_restarting, ("truth-ids-twice",), ALL, None),
    "ground truth: boxes without size": Kind(
        _objects(lambda a, s: {"bbox": [*a["bbox"][:2], 0, 0]}, 0.1),
        ("truth-empty-boxes",),
        BOXES,
        None,
    ),
    "ground truth: boxes outside": Kind(
        _objects(lambda a, s: {"bbox": [9000, 9000, *a["bbox"][2:]]}, 0.1),
        ("truth-outside",),
        BOXES,
        None,
    ),
    "ground truth: polygons x x y y": Kind(_objects(_crossed), ("truth-shapes",), ("masks",), None),
    "ground truth: num_keypoints 0": Kind(
        _objects(lambda a, s: {"num_keypoints": 0}), ("truth-keypoints",), ("keypoints",), None
    ),
    "ground truth: visibility 0": Kind(
        _objects(_unseen), ("truth-keypoints",), ("keypoints",), None
    ),
    "masks in C order": Kind(_masks(_c_order), ("masks-c-order",), ("masks",)),
    "masks with x and y swapped": Kind(
        _masks(_transposed), ("masks-xy-swapped",), ("masks",), None
    ),
}
