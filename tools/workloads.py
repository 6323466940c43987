"""Write made-up COCO files with the statistics of a real detector's output, for measurements.

    python tools/workloads.py W1    # into the cache folder, skipped when it is there
    python tools/workloads.py W1 --detections 10000000    # the same images, more of them
    python tools/workloads.py W3 --boxes ../shared/data/coco-val2017-boxes

| name | images | objects | detections | classes | |
|------|-------:|--------:|-----------:|--------:|-|
| W1 | 5,000 | 36,000 | 735,000 | 80 | COCO val2017 and a detector that keeps 147 boxes an image |
| W2 | 40,000 | 295,000 | 2,400,000 | 365 | Objects365 |
| W3 | 4,952 | 36,781 | 735,000 | 80 | the real boxes of COCO val2017 as truth |
| W4 | 200 | 200,000 | 600,000 | 5 | crowds: 1,000 objects an image |
| W5 | 20,000 | 245,000 | 6,000,000 | 1,203 | LVIS v1 val, annotated in part, 300 boxes an image |

What a detector does: it finds most objects, the large ones better; boxes pile up around an
object, the best of them with the highest score, some under a wrong class; and a long tail of
background boxes has low scores. Scores have 5 decimals and coordinates 3, so that scores tie.
The files are as Python's ``json.dump`` writes them. Beside them is `detections.npy`: (D, 7)
float64 ``image_id, x, y, w, h, score, category_id``, bit for bit the numbers in the file.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

CACHE = Path.home() / ".cache" / "detmap-bench"
REAL_BOXES = Path(__file__).resolve().parents[2] / "shared" / "data" / "coco-val2017-boxes"
REAL_FILE = "instances_val2017_integer_boxes.json.xz"
SIZES = np.array([(640, 480), (480, 640), (640, 427), (500, 375), (612, 612)])
SIZE_SHARES = (0.45, 0.2, 0.2, 0.1, 0.05)
ROWS_AT_ONCE = 100_000

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Workload:
    """How much of everything, and the few numbers that make one data set unlike another.

    Parameters
    ----------
    images, objects, detections, classes : counts
    median_size : of an object's box, square root of its area, pixels
    zoom : factor on the images' width and height
    evenness : how alike images are in their number of objects; the shape of a gamma distribution
    absent : classes that an image names as absent (LVIS), on average; 0 for a ground truth that is
        annotated everywhere
    real : truth is the boxes of COCO val2017 instead of drawn ones
    seed : of the random generator
    """

    images: int
    objects: int
    detections: int
    classes: int
    median_size: float = 54.0
    zoom: float = 1.0
    evenness: float = 1.8
    absent: int = 0
    real: bool = False
    seed: int = 1

    def scaled(self, detections: int) -> Workload:
        """The same statistics of an image, and as many images as hold that many detections."""
        factor = detections / self.detections
        return replace(
            self,
            images=round(self.images * factor),
            objects=round(self.objects * factor),
            detections=detections,
        )


WORKLOADS = {
    "W1": Workload(images=5_000, objects=36_000, detections=735_000, classes=80),
    "W2": Workload(images=40_000, objects=295_000, detections=2_400_000, classes=365, seed=2),
    "W3": Workload(images=4_952, objects=36_781, detections=735_000, classes=80, real=True, seed=3),
    "W4": Workload(
        images=200,
        objects=200_000,
        detections=600_000,
        classes=5,
        median_size=40.0,
        zoom=4.0,
        evenness=200.0,
        seed=4,
    ),
    "W5": Workload(
        images=20_000, objects=245_000, detections=6_000_000, classes=1_203, absent=12, seed=5
    ),
}


@dataclass(frozen=True, slots=True)
class Objects:
    """The ground truth: I images and G objects on them, K classes.

    Parameters
    ----------
    image_ids : (I,) ids in file order
    extent : (I, 2) width and height, pixels
    category_ids : (K,) ascending
    image, label : (G,) positions in `image_ids` and `category_ids`
    boxes : (G, 4) x, y, width, height
    """

    image_ids: Ints
    extent: Ints
    category_ids: Ints
    image: Ints
    label: Ints
    boxes: Floats


@dataclass(frozen=True, slots=True)
class Boxes:
    """The detections: D rows, by image and then by falling score, as an exporter writes them.

    Parameters
    ----------
    image_id, category_id : (D,)
    boxes : (D, 4) x, y, width, height, 3 decimals
    score : (D,) 5 decimals
    """

    image_id: Ints
    category_id: Ints
    boxes: Floats
    score: Floats


# --- truth ----------------------------------------------------------------------------------------


def draw_objects(rng: np.random.Generator, load: Workload) -> Objects:
    """Objects in clumps of one class, a few images empty, a few full; one class in three objects
    is the first.
    """
    image_ids = rng.permutation(np.arange(1, 7 * load.images))[: load.images] * 17
    extent = (SIZES[rng.choice(len(SIZES), load.images, p=SIZE_SHARES)] * load.zoom).astype(
        np.int64
    )
    crowding = rng.gamma(load.evenness, size=load.images)
    image = np.sort(rng.choice(load.images, load.objects, p=crowding / crowding.sum()))
    label = rng.choice(load.classes, load.objects, p=class_shares(load.classes))
    first = np.r_[True, image[1:] != image[:-1]] | (rng.random(load.objects) < 0.4)
    label = label[
        np.maximum.accumulate(np.where(first, np.arange(load.objects), 0))
    ]  # else that of the object before
    boxes = np.round(place_boxes(rng, extent[image], load.median_size, 1.2), 2)
    return shuffled(
        rng, Objects(image_ids, extent, category_ids(load.classes), image, label, boxes)
    )


def read_objects(rng: np.random.Generator, folder: Path) -> Objects:
    """The boxes of COCO val2017; sizes of the images are drawn, and raised where a box needs it."""
    file = folder / REAL_FILE
    if not file.is_file():
        sys.exit(f"workloads: {file} is absent; name the folder that holds it with --boxes")
    content = json.loads(lzma.decompress(file.read_bytes()))
    image_ids = np.array([image["id"] for image in content["images"]])
    classes = np.sort([category["id"] for category in content["categories"]])
    order = np.argsort(image_ids)
    rows = content["annotations"]
    image = order[np.searchsorted(image_ids[order], [row["image_id"] for row in rows])]
    label = np.searchsorted(classes, [row["category_id"] for row in rows])
    boxes = np.array([row["bbox"] for row in rows], dtype=float)
    extent = SIZES[rng.choice(len(SIZES), len(image_ids), p=SIZE_SHARES)]
    np.maximum.at(extent, image, (boxes[:, :2] + boxes[:, 2:]).astype(np.int64))
    return Objects(image_ids, extent, classes, image, label, boxes)


def category_ids(n: int) -> Ints:
    """Ascending ids with gaps, as COCO's."""
    numbers = np.arange(1, n + n // 8 + 2)
    return numbers[numbers % 10 != 2][:n]


def class_shares(n: int) -> Floats:
    """One dominating class, like COCO's person, and a long tail."""
    shares = np.r_[0.0, 1.0 / np.arange(4.0, n + 3.0)]
    shares /= shares.sum() / 0.7
    shares[0] = 0.3
    return shares / shares.sum()


def place_boxes(rng: np.random.Generator, extent: Ints, median: float, spread: float) -> Floats:
    """Boxes of log-normal size anywhere inside their images, (n, 4) x, y, width, height."""
    size = median * np.exp(spread * rng.standard_normal(len(extent)))
    aspect = np.exp(0.4 * rng.standard_normal(len(extent)))
    sides = np.clip(np.stack([size * aspect, size / aspect], axis=1), 2.0, 0.97 * extent)
    return np.concatenate([rng.random((len(extent), 2)) * (extent - sides), sides], axis=1)


def shuffled(rng: np.random.Generator, objects: Objects) -> Objects:
    """The objects in no order, as in COCO's files."""
    order = rng.permutation(len(objects.label))
    return replace(
        objects, image=objects.image[order], label=objects.label[order], boxes=objects.boxes[order]
    )


# --- detections -----------------------------------------------------------------------------------


def detect(rng: np.random.Generator, objects: Objects, load: Workload) -> Boxes:
    """What a detector makes of the objects: one good box for most, duplicates around them,
    background.
    """
    size = np.sqrt(objects.boxes[:, 2] * objects.boxes[:, 3])
    ease = size / (size + 24.0)
    found = np.flatnonzero(rng.random(len(size)) < 0.25 + 0.72 * ease)[: load.detections // 2]
    n_around = (load.detections - len(found)) // 4
    around = rng.integers(0, len(size), n_around)
    n_background = load.detections - len(found) - n_around

    source = np.concatenate([found, around])
    good = np.arange(len(source)) < len(found)
    wobble = np.where(good, 0.072, 0.22) * rng.gamma(2.0, 0.5, len(source)) * (1.6 - ease[source])
    logit = np.where(good, 0.4 + 2.4 * ease[source], -2.6) - 6.0 * np.minimum(wobble, 0.5)
    logit += np.where(good, 1.5, 1.3) * rng.standard_normal(len(source))
    label = objects.label[source]
    wrong = rng.random(len(source)) < np.where(good, 0.12, 0.3)
    label = np.where(wrong, (label + rng.integers(1, 4, len(source))) % load.classes, label)
    near = jitter(rng, objects.boxes[source], wobble)

    weight = (3.0 + np.bincount(objects.image, minlength=load.images)) ** 0.4 * rng.lognormal(
        0.0, 0.15, load.images
    )
    image = rng.choice(load.images, n_background, p=weight / weight.sum())
    far = place_boxes(rng, objects.extent[image], 0.9 * load.median_size, 1.0)
    far_label = background_labels(rng, objects, image, load.classes)
    far_logit = -5.0 + 1.1 * rng.standard_normal(n_background)

    image = np.concatenate([objects.image[source], image])
    score = 1.0 / (1.0 + np.exp(-np.concatenate([logit, far_logit])))
    score = np.maximum(np.round(score, 5), 0.00001)
    boxes = clipped(np.concatenate([near, far]), objects.extent[image])
    category = objects.category_ids[np.concatenate([label, far_label])]
    order = np.lexsort((-score, objects.image_ids[image]))
    return Boxes(objects.image_ids[image][order], category[order], boxes[order], score[order])


def jitter(rng: np.random.Generator, boxes: Floats, wobble: Floats) -> Floats:
    """The boxes with their centres and sides off by `wobble` times their size, more or less."""
    shift, stretch = wobble[:, None] * rng.standard_normal((2, len(boxes), 2))
    sides = boxes[:, 2:] * np.exp(stretch)
    centre = boxes[:, :2] + boxes[:, 2:] * (0.5 + shift)
    return np.concatenate([centre - sides / 2, sides], axis=1)


def background_labels(
    rng: np.random.Generator, objects: Objects, image: Ints, classes: int
) -> Ints:
    """A class that is on the image for half of the background, any for the rest."""
    n_objects = np.bincount(objects.image, minlength=len(objects.image_ids))
    begin = np.cumsum(n_objects) - n_objects
    by_image = objects.label[np.argsort(objects.image, kind="stable")]
    pick = begin[image] + (rng.random(len(image)) * n_objects[image]).astype(np.int64)
    present = by_image[np.minimum(pick, len(by_image) - 1)]
    anything = rng.choice(classes, len(image), p=class_shares(classes))
    return np.where((rng.random(len(image)) < 0.5) & (n_objects[image] > 0), present, anything)


def clipped(boxes: Floats, extent: Ints) -> Floats:
    """The part of the boxes inside their images, to 3 decimals, no side below 0.1."""
    low = np.clip(boxes[:, :2], 0.0, extent - 1.0)
    high = np.clip(boxes[:, :2] + boxes[:, 2:], low + 0.1, extent)
    return np.round(np.concatenate([low, high - low], axis=1), 3)


# --- files ----------------------------------------------------------------------------------------


def lists(load: Workload, objects: Objects) -> list[str]:
    """What each image of an LVIS truth names besides: classes that are absent, and of its own
    classes those not annotated exhaustively; "" each elsewhere.
    """
    if not load.absent:
        return [""] * load.images
    rng = np.random.default_rng(load.seed)
    present: list[set[int]] = [set() for _ in range(load.images)]
    for image, label in zip(objects.image.tolist(), objects.label.tolist(), strict=True):
        present[image].add(label)
    ids, listed = objects.category_ids, []
    for own, n in zip(present, rng.poisson(load.absent, load.images).tolist(), strict=True):
        absent = sorted(set(rng.integers(0, load.classes, n).tolist()) - own)
        partly = [label for label in sorted(own) if rng.random() < 0.3]
        listed.append(
            f', "neg_category_ids": {ids[absent].tolist() if absent else []},'
            f' "not_exhaustive_category_ids": {ids[partly].tolist() if partly else []}'
        )
    return listed


def instances(rng: np.random.Generator, load: Workload, objects: Objects) -> Iterator[str]:
    """The text of the ground truth file, piece by piece."""
    head = {
        "info": {"description": "made-up objects for measurements", "version": "1.0"},
        "licenses": [],
    }
    yield json.dumps(head)[:-1] + ', "images": ['
    images = zip(
        objects.image_ids.tolist(), *objects.extent.T.tolist(), lists(load, objects), strict=True
    )
    yield ", ".join(
        f'{{"file_name": "{i:012d}.jpg", "height": {height}, "width": {width}, "id": {i}{more}}}'
        for i, width, height, more in images
    )
    yield '], "annotations": ['
    crowds = 0.0 if load.absent else 0.01  # LVIS has none
    ids = rng.permutation(np.arange(1, 4 * len(objects.label)))[: len(objects.label)]
    for begin in range(0, len(objects.label), ROWS_AT_ONCE):
        rows = slice(begin, begin + ROWS_AT_ONCE)
        yield (", " if begin else "") + ", ".join(records(rng, objects, ids, rows, crowds))
    names = [
        {"supercategory": "thing", "id": i, "name": f"class {i}"}
        for i in objects.category_ids.tolist()
    ]
    for k, name in enumerate(names if load.absent else []):  # classes get rarer
        name["frequency"] = "fcr"[3 * k // load.classes]
    yield '], "categories": ' + json.dumps(names) + "}"


def records(
    rng: np.random.Generator, objects: Objects, ids: Ints, rows: slice, crowds: float
) -> Iterator[str]:
    """The records of some objects: a polygon of 10 to 20 corners in the box; this share are crowds
    with run lengths.
    """
    boxes, image = objects.boxes[rows], objects.image[rows]
    n = len(boxes)
    corners = rng.integers(10, 21, n)
    angle = 2 * np.pi * np.arange(20) / corners[:, None]
    radius = rng.uniform(0.36, 0.5, (n, 20, 1)) * boxes[:, None, 2:]
    centre = (boxes[:, :2] + boxes[:, 2:] / 2)[:, None]
    outline = np.round(
        centre + radius * np.stack([np.cos(angle), np.sin(angle)], axis=2), 2
    ).reshape(n, 40)
    area = boxes[:, 2] * boxes[:, 3] * rng.uniform(0.45, 0.75, n)
    crowd = rng.random(n) < crowds
    columns = (
        outline,
        corners,
        area,
        crowd,
        objects.image_ids[image],
        objects.extent[image],
        boxes,
        objects.category_ids[objects.label[rows]],
        ids[rows],
    )
    for points, k, a, c, image_id, (width, height), (x, y, w, h), category, i in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        shape = (
            run_lengths(round(x), round(y), round(w), round(h), width, height)
            if c
            else f"[{points[: 2 * k]}]"
        )
        yield (
            f'{{"segmentation": {shape}, "area": {a}, "iscrowd": {int(c)}, "image_id": {image_id}, '
            f'"bbox": [{x}, {y}, {w}, {h}], "category_id": {category}, "id": {i}}}'
        )


def run_lengths(x: int, y: int, w: int, h: int, width: int, height: int) -> str:
    """A full box as uncompressed run lengths, column by column."""
    x, y = min(x, width - 1), min(y, height - 1)
    w, h = max(1, min(w, width - x)), max(1, min(h, height - y))
    counts = [x * height + y, h]
    for _ in range(w - 1):
        counts += [height - h, h]
    counts.append(width * height - sum(counts))
    return f'{{"counts": {counts}, "size": [{height}, {width}]}}'


def results(boxes: Boxes) -> Iterator[str]:
    """The text of the detections file, piece by piece."""
    yield "["
    for begin in range(0, len(boxes.score), ROWS_AT_ONCE):
        rows = slice(begin, begin + ROWS_AT_ONCE)
        columns = (boxes.image_id, boxes.category_id, *boxes.boxes.T, boxes.score)
        yield (", " if begin else "") + ", ".join(
            f'{{"image_id": {i}, "category_id": {c}, "bbox": [{x}, {y}, {w}, {h}], "score": {s}}}'
            for i, c, x, y, w, h, s in zip(
                *(column[rows].tolist() for column in columns), strict=True
            )
        )
    yield "]"


def write(name: str, load: Workload, folder: Path, real_boxes: Path) -> None:
    """Make one workload in `folder`; the manifest comes last, so that its presence means the
    files are whole.
    """
    rng = np.random.default_rng(load.seed)
    objects = read_objects(rng, real_boxes) if load.real else draw_objects(rng, load)
    boxes = detect(rng, objects, load)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "instances.json").open("w", encoding="ascii") as file:
        file.writelines(instances(rng, load, objects))
    with (folder / "results.json").open("w", encoding="ascii") as file:
        file.writelines(results(boxes))
    columns = [boxes.image_id, *boxes.boxes.T, boxes.score, boxes.category_id]
    np.save(folder / "detections.npy", np.stack(columns, axis=1).astype(np.float64))
    manifest = {"name": name, **asdict(load)} | {
        file: (folder / file).stat().st_size for file in ("instances.json", "results.json")
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="ascii")


def write_masks(folder: Path, per_image: int) -> None:
    """Write `masks.json` beside a workload: the best detections of each image as run lengths of
    the ellipse in their box, as a detector of masks writes them.
    """
    from pycocotools import mask

    images = json.loads((folder / "instances.json").read_bytes())["images"]
    sizes = {image["id"]: (image["height"], image["width"]) for image in images}
    table = best_of_images(np.load(folder / "detections.npy"), per_image)
    angle = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    circle = np.stack([0.5 + 0.5 * np.cos(angle), 0.5 + 0.5 * np.sin(angle)], axis=1)
    rows = []
    for image_id, x, y, w, h, score, category in table.tolist():
        height, width = sizes[int(image_id)]
        outline = (circle * (w, h) + (x, y)).ravel().tolist()
        (shape,) = mask.frPyObjects([outline], height, width)
        shape["counts"] = shape["counts"].decode("ascii")
        row = {"image_id": int(image_id), "category_id": int(category), "segmentation": shape}
        rows.append(row | {"score": score})
    write_whole(folder / "masks.json", rows)


def write_keypoints(folder: Path, per_image: int) -> None:
    """Write `keypoints_truth.json` and `keypoints.json` beside a workload: the objects of its first
    class with 17 points at the same places of their boxes, give or take 3 % of a side, a fifth of
    them not labeled; and the best detections of each image, give or take 5 %.
    """
    content = json.loads((folder / "instances.json").read_bytes())
    rng, category = np.random.default_rng(17), content["categories"][0]
    places = rng.random((17, 2))

    def points(boxes: Floats, wobble: float) -> Floats:
        """(n, 17, 2) x, y, two decimals."""
        at = places + wobble * rng.standard_normal((len(boxes), 17, 2))
        return np.round(boxes[:, None, :2] + at * boxes[:, None, 2:], 2)

    rows = [row for row in content["annotations"] if row["category_id"] == category["id"]]
    seen = rng.integers(1, 3, (len(rows), 17, 1)) * (rng.random((len(rows), 17, 1)) < 0.8)
    found = points(np.array([row["bbox"] for row in rows]), 0.03) * (seen > 0)
    labeled = np.concatenate([found, seen], axis=2).reshape(-1, 51)
    kept = ("area", "iscrowd", "image_id", "bbox", "category_id", "id")
    content["annotations"] = [
        {key: row[key] for key in kept}
        | {"keypoints": numbers, "num_keypoints": int(np.count_nonzero(v))}
        for row, numbers, v in zip(rows, labeled.tolist(), seen, strict=True)
    ]
    category |= {"keypoints": [f"point {i}" for i in range(17)], "skeleton": []}
    content["categories"] = [category]
    write_whole(folder / "keypoints_truth.json", content)

    table = np.load(folder / "detections.npy")
    table = best_of_images(table[table[:, 6] == category["id"]], per_image)
    marked = np.dstack([points(table[:, 1:5], 0.05), np.ones((len(table), 17))]).reshape(-1, 51)
    results = [
        {"image_id": int(i), "category_id": category["id"], "keypoints": numbers, "score": score}
        for i, score, numbers in zip(
            table[:, 0].tolist(), table[:, 5].tolist(), marked.tolist(), strict=True
        )
    ]
    write_whole(folder / "keypoints.json", results)


def best_of_images(table: Floats, per_image: int) -> Floats:
    """The rows of `detections.npy` with the highest scores of each image, by image."""
    table = table[np.lexsort((-table[:, 5], table[:, 0]))]
    starts = np.flatnonzero(np.diff(table[:, 0], prepend=-1.0))
    place = np.arange(len(table)) - np.repeat(starts, np.diff(np.append(starts, len(table))))
    return table[place < per_image]


def write_whole(path: Path, content: object) -> None:
    """Write JSON under another name first: a file of this name is whole."""
    draft = path.with_name(path.name + ".draft")
    draft.write_text(json.dumps(content), encoding="ascii")
    draft.rename(path)


def main() -> None:
    """Write one workload, unless it is there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("name", choices=WORKLOADS, help="which workload")
    add("--out", type=Path, default=CACHE, help=f"folder of all workloads (default {CACHE})")
    add("--detections", type=int, metavar="N", help="more or fewer images, for N detections")
    add("--boxes", type=Path, default=REAL_BOXES, help=f"folder of {REAL_FILE}, for W3")
    add("--masks", type=int, metavar="N", help="also masks.json, of the N best of each image")
    more = "also keypoints_truth.json and keypoints.json, of the N best of each image"
    add("--keypoints", type=int, metavar="N", help=more)
    arguments = parser.parse_args()
    load, name = WORKLOADS[arguments.name], arguments.name
    if arguments.detections:
        if load.real:
            parser.error("real boxes are as many as they are: no --detections for W3")
        load, name = load.scaled(arguments.detections), f"{name}-{arguments.detections}"
    folder = arguments.out / name
    if (folder / "manifest.json").exists():
        print(f"{folder} is there")
    else:
        write(name, load, folder, arguments.boxes)
    if arguments.masks and not (folder / "masks.json").exists():
        write_masks(folder, arguments.masks)
    if arguments.keypoints and not (folder / "keypoints.json").exists():
        write_keypoints(folder, arguments.keypoints)
    print(
        f"{folder}: {load.images} images, {load.objects} objects, {load.detections} detections,"
        f" {load.classes} classes"
    )


if __name__ == "__main__":
    main()
