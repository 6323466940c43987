"""Data sets that look for trouble: ties, overlaps exactly at a threshold, areas exactly on a
border.

`draw_coco`, `draw_many_detections`, `draw_round_recall` and `draw_voc` take a NumPy generator
and serve any tool. The strategies `coco_data`, `many_detections`, `round_recall` and `voc_data`
are thin wrappers that hand hypothesis the seed, and the sizes where it should shrink them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from hypothesis import strategies as st

T = TypeVar("T")
Box = tuple[float, float, float, float]  # x, y, width, height
CocoData = tuple[dict[str, Any], list[dict[str, Any]]]  # instances, results
VocObjects = dict[str, dict[str, list[tuple[float, float, float, float, bool]]]]
VocDetections = dict[str, list[tuple[str, float, float, float, float, float]]]

# Sizes of which k/20 of the width is exact in binary, so that a part overlaps its whole by exactly
# k/20.
TWENTIETHS = ((10, 10), (20, 10), (20, 20), (10, 20), (40, 5), (5, 10))
# 1024 or 9216
ON_BORDER = ((32, 32), (96, 96), (64, 16), (16, 64), (144, 64), (128.0, 8.0), (48, 192))
JUST_UNDER_32, JUST_OVER_96 = float(np.nextafter(32, 0)), float(np.nextafter(96, 100))
BESIDE_BORDER = ((31, 33), (25, 41), (95, 97), (13, 709), (32, JUST_UNDER_32), (96, JUST_OVER_96))
BORDER_AREAS = (1024, 9216, 1024.0, 9216.0)
JUST_OVER, JUST_UNDER = float(np.nextafter(1024, 2000)), float(np.nextafter(9216, 0))
BESIDE_AREAS = (1023, 1025, 9215, 9217, 1023.5, JUST_OVER, JUST_UNDER)
FLAT = ((0, 0), (0, 7), (7, 0), (0.0, 10.5))
VAST = (200_000, 100_000)  # more than the 1e10 where the range "all" ends
# Half as wide as the spacing of the numbers at its x: two of these have a union of 0, an infinite
# overlap.
SLIVER = (2.0**20 + 2.0**-32, 3, 2.0**-33, 10)

# How far right of a box its neighbour begins, in widths: touching, or a half or a quarter of it.
SHIFTS = (1, 0.5, 0.25)

COMMON_SCORES = (0, 0.25, 0.5, 0.5, 0.9, 1)
ODD_SCORES = (-0.0, -1.5, 2.0, 1e-300, 0.1 + 0.2, 0.3)

IMAGE_IDS = (0, 7, 3, 42, 1_000_000_007, 139, 5)
CATEGORY_IDS = (18, 1, 90, 3, 44)
UNLISTED_CATEGORY = 77
VOC_IMAGES = ("000005", "2008_000123", "000001", "img-7")
VOC_CLASSES = ("person", "cat", "tvmonitor")


def pick(rng: np.random.Generator, options: Sequence[T]) -> T:
    """One of the options, each as likely; much cheaper than ``rng.choice``."""
    return options[int(rng.integers(len(options)))]


def mix(rng: np.random.Generator, options: Sequence[T]) -> list[T]:
    """The options in some order."""
    return [options[i] for i in rng.permutation(len(options))]


def draw_number(rng: np.random.Generator, low: int, high: int) -> float:
    """A small integer most often, else a half, a number of one decimal or any float."""
    whole = int(rng.integers(low, high))
    kind = rng.random()
    if kind < 0.5:
        return whole
    if kind < 0.7:
        return whole + 0.5
    if kind < 0.8:
        return round(whole + float(rng.random()), 1)
    return whole + float(rng.random())


def draw_box(rng: np.random.Generator) -> Box:
    """A box on its own, often of a size that lies exactly on some border."""
    x, y = draw_number(rng, -3, 12), draw_number(rng, -3, 12)
    kind = rng.random()
    if kind < 0.35:
        return (x, y, *pick(rng, TWENTIETHS))
    if kind < 0.50:
        return (x, y, *pick(rng, ON_BORDER))
    if kind < 0.58:
        return (x, y, *pick(rng, BESIDE_BORDER))
    if kind < 0.64:
        return (x, y, *pick(rng, FLAT))
    if kind < 0.65:
        return (x, y, *VAST)
    if kind < 0.69:
        return SLIVER
    return x, y, draw_number(rng, 1, 20), draw_number(rng, 1, 20)


def draw_near(rng: np.random.Generator, box: Box) -> Box:
    """A box that overlaps `box` by k/20, as a part or as a whole of it, or nearly, or only touches
    it.

    Two kinds overlap the box and its neighbour on the right (see `draw_objects`) equally.
    """
    x, y, width, height = box
    part = int(rng.integers(9, 20)) / 20
    shift = pick(rng, SHIFTS)
    kind = rng.random()
    if kind < 0.20:
        return box
    if kind < 0.42:
        return x, y, width * part, height
    if kind < 0.50:
        return x, y, width, height * part
    if kind < 0.58:
        return x, y, width / part, height
    if kind < 0.70:
        return x, y, width * (1 + shift), height  # reaches to the neighbour's end
    if kind < 0.76:
        return x + width * shift / 2, y, width, height  # half-way to the neighbour
    if kind < 0.84:
        return x + width * (1 - part), y, width, height
    if kind < 0.90:
        return x + width, y, width, height
    return x + draw_number(rng, -2, 3), y + draw_number(rng, -2, 3), width, height


def draw_score(rng: np.random.Generator, coarse: float) -> float:
    """A score from a few common ones with probability `coarse`, else an odd one or any float."""
    kind = rng.random()
    if kind < coarse:
        return pick(rng, COMMON_SCORES)
    if kind < coarse + 0.03:
        return pick(rng, ODD_SCORES)
    return float(rng.random())


def draw_objects(rng: np.random.Generator, n: int) -> list[Box]:
    """Boxes of one image: some anew, some equal to an earlier one, some near it or its
    neighbour."""
    boxes: list[Box] = []
    for _ in range(n):
        kind = rng.random()
        if not boxes or kind < 0.5:
            boxes.append(draw_box(rng))
        elif kind < 0.65:
            boxes.append(pick(rng, boxes))
        elif kind < 0.9:
            x, y, width, height = pick(rng, boxes)
            boxes.append((x + width * pick(rng, SHIFTS), y, width, height))
        else:
            boxes.append(draw_near(rng, pick(rng, boxes)))
    return boxes


def draw_contest(rng: np.random.Generator) -> tuple[Box, Box, Box]:
    """Two neighbours and a box that overlaps both by exactly the same, 0.5 or more.

    Which of the two it takes shows as soon as a later detection wants one of them.
    """
    width, height = pick(rng, TWENTIETHS)
    x, y = int(rng.integers(40)), int(rng.integers(40))
    shift = pick(rng, SHIFTS)
    left, right = (x, y, width, height), (x + width * shift, y, width, height)
    return left, right, (x, y, width * (1 + shift), height)


def draw_area(rng: np.random.Generator, box: Box) -> float:
    """An annotation's area: that of its box, of a mask within it, or one at a border whatever
    the box."""
    kind = rng.random()
    if kind < 0.5:
        return box[2] * box[3]
    if kind < 0.7:
        return box[2] * box[3] * 0.6
    return pick(rng, BORDER_AREAS) if kind < 0.87 else pick(rng, BESIDE_AREAS)


def build_instances(
    images: Sequence[int], categories: Sequence[int], annotations: list[dict[str, Any]]
) -> dict[str, Any]:
    """A COCO instances dict."""
    return {
        "images": [
            {"id": i, "width": 640, "height": 480, "file_name": f"{i:012d}.jpg"} for i in images
        ],
        "categories": [{"id": k, "name": f"class {k}"} for k in categories],
        "annotations": annotations,
    }


@dataclass(frozen=True)
class Habits:
    """What all images of one COCO data set have in common."""

    rng: np.random.Generator
    in_truth: list[int]  # categories that may have annotations
    in_results: list[int]  # categories that may have results
    coarse: float  # share of scores from a few common ones
    p_crowd: float
    p_missing: (
        float  # share of annotations without ``iscrowd`` (where it would be 0) or without ``area``
    )

    def annotate(self, image: int, category: int, box: Box) -> dict[str, Any]:
        """One annotation, its id still to be given."""
        rng = self.rng
        annotation = {"id": -1, "image_id": image, "category_id": category, "bbox": list(box)}
        if rng.random() < self.p_crowd:
            annotation["iscrowd"] = 1
        elif rng.random() >= self.p_missing:
            annotation["iscrowd"] = 0
        if rng.random() >= self.p_missing:
            annotation["area"] = draw_area(rng, box)
        return annotation

    def detect(self, image: int, category: int, box: Box) -> dict[str, Any]:
        """One result."""
        score = draw_score(self.rng, self.coarse)
        return {"image_id": image, "category_id": category, "bbox": list(box), "score": score}

    def draw_image(
        self, image: int, n_objects: int, n_detections: int
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Annotations and results of one image."""
        rng = self.rng
        annotations: list[dict[str, Any]] = []
        results: list[dict[str, Any]] = []
        both = [category for category in self.in_truth if category in self.in_results]
        if both and min(n_objects, n_detections) >= 2 and rng.random() < 0.3:
            category = pick(rng, both)
            *neighbours, across = draw_contest(rng)
            annotations += [self.annotate(image, category, box) for box in neighbours]
            results.append(self.detect(image, category, across) | {"score": 0.9})
            results.append(self.detect(image, category, pick(rng, neighbours)) | {"score": 0.5})

        for box in draw_objects(rng, n_objects - len(annotations)):
            again = annotations and rng.random() < 0.6  # so that neighbours compete in one class
            category = annotations[-1]["category_id"] if again else pick(rng, self.in_truth)
            annotations.append(self.annotate(image, category, box))

        for _ in range(n_detections - len(results)):
            kind = rng.random()
            if annotations and kind < 0.65:
                target = pick(rng, annotations)
                same = target["category_id"] in self.in_results and rng.random() < 0.9
                category = target["category_id"] if same else pick(rng, self.in_results)
                results.append(self.detect(image, category, draw_near(rng, tuple(target["bbox"]))))
            elif results and kind < 0.85:
                earlier = pick(rng, results)
                repeated = self.detect(image, earlier["category_id"], tuple(earlier["bbox"]))
                results.append(
                    repeated if rng.random() < 0.5 else repeated | {"score": earlier["score"]}
                )
            else:
                results.append(self.detect(image, pick(rng, self.in_results), draw_box(rng)))
        return annotations, results


def draw_coco(
    rng: np.random.Generator,
    *,
    n_images: int | None = None,
    n_classes: int | None = None,
    max_objects: int = 8,
    max_detections: int = 12,
    n_flood: int = 0,
    zero_id: bool = False,
) -> CocoData:
    """COCO instances and results: a few images and classes, at most so many objects and detections
    per image.

    Annotation ids are unique and at least 1; `zero_id` gives one annotation the id 0. `n_flood`
    adds that many detections to one class of one image. Every result is of a listed image, but
    may be of an unlisted category. ``iscrowd`` (then 0) and ``area`` (then that of the box) are
    sometimes missing."""
    n_images = int(rng.integers(1, 5)) if n_images is None else n_images
    n_classes = int(rng.integers(1, 4)) if n_classes is None else n_classes
    images = mix(rng, IMAGE_IDS)[:n_images]
    categories = mix(rng, CATEGORY_IDS)[:n_classes]
    coarse, p_crowd, p_missing = (
        pick(rng, p) for p in ((0.3, 0.7, 0.97), (0.0, 0.15, 0.4), (0.0, 0.3, 1.0))
    )
    in_truth = [category for category in categories if rng.random() < 0.85]
    in_results = [category for category in categories if rng.random() < 0.85]
    if not in_results or rng.random() < 0.15:
        in_results.append(UNLISTED_CATEGORY)
    if zero_id and not in_truth:
        in_truth = categories
    habits = Habits(rng, in_truth, in_results, coarse, p_crowd, p_missing)

    annotations: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for image in images:
        if rng.random() < 0.1:
            continue
        n_objects = int(rng.integers(max_objects + 1)) if in_truth and rng.random() < 0.9 else 0
        n_detections = int(rng.integers(max_detections + 1)) if rng.random() < 0.9 else 0
        more_annotations, more_results = habits.draw_image(image, n_objects, n_detections)
        annotations += more_annotations
        results += more_results
    if zero_id and not annotations:
        annotations.append(habits.annotate(pick(rng, images), pick(rng, in_truth), draw_box(rng)))
    if n_flood:
        image, category, target = pick(rng, images), pick(rng, categories), draw_box(rng)
        if annotations:
            chosen = pick(rng, annotations)
            image, category, target = (
                chosen["image_id"],
                chosen["category_id"],
                tuple(chosen["bbox"]),
            )
        results += [habits.detect(image, category, draw_near(rng, target)) for _ in range(n_flood)]

    if rng.random() < 0.7:
        annotations, results = mix(rng, annotations), mix(rng, results)
    for annotation, number in zip(annotations, rng.permutation(3 * len(annotations)), strict=False):
        annotation["id"] = int(number) + 1
    if zero_id:
        pick(rng, annotations)["id"] = 0
    return build_instances(images, categories, annotations), results


def draw_many_detections(rng: np.random.Generator) -> CocoData:
    """As `draw_coco`, with 101 to 130 detections more in one class of one image, past COCO's
    limit of 100."""
    return draw_coco(rng, max_objects=4, max_detections=4, n_flood=int(rng.integers(101, 131)))


def draw_round_recall(rng: np.random.Generator) -> CocoData:
    """Two images and one class with 20, 50 or 100 objects, so that recall lands on COCO's recall
    points.

    With 20 objects these are 0.35, 0.7 and 0.95, for instance, where ``np.linspace`` and i/100
    differ in the last bit: the next hit counts instead, mostly with another precision."""
    n_objects = pick(rng, (20, 20, 50, 100))
    boxes = [[20 * (i % 20), 20 * (i // 20), 10, 10] for i in range(n_objects)]
    annotations = [
        {"id": i + 1, "image_id": i % 2, "category_id": 1, "bbox": box, "area": 100, "iscrowd": 0}
        for i, box in enumerate(boxes)
    ]
    results = []
    for i, (x, y, width, height) in enumerate(boxes):
        missed = 15 * (rng.random() < 0.3)
        box = [x + missed, y, width, height]
        results.append(
            {"image_id": i % 2, "category_id": 1, "bbox": box, "score": float(rng.random())}
        )
        if missed or rng.random() < 0.1:
            results.append(
                {"image_id": i % 2, "category_id": 1, "bbox": [x, y, 8, 10], "score": 0.5}
            )
    return build_instances([0, 1], [1], annotations), results


def inclusive(box: Box) -> Box:
    """The corners of a box whose corner pixels belong to it; at least one pixel wide and high."""
    x, y, width, height = box
    return x, y, x + (max(width, 1) - 1), y + (max(height, 1) - 1)


def draw_voc(
    rng: np.random.Generator,
    *,
    n_images: int | None = None,
    n_classes: int | None = None,
    max_objects: int = 5,
    max_detections: int = 8,
) -> tuple[VocObjects, VocDetections]:
    """VOC objects and detections: a few images, at most so many objects and detections per class
    and image.

    Both dicts hold the same classes, and every class of objects holds every image, be it with an
    empty list. The order of the images is not that of their names, and the order of a class's
    detections is neither."""
    n_images = int(rng.integers(1, 5)) if n_images is None else n_images
    n_classes = int(rng.integers(1, 4)) if n_classes is None else n_classes
    images = mix(rng, VOC_IMAGES)[:n_images]
    coarse = pick(rng, (0.3, 0.7, 0.97))

    objects: VocObjects = {}
    detections: VocDetections = {}
    for name in mix(rng, VOC_CLASSES)[:n_classes]:
        # A class may lack objects or detections, or all of its objects may be difficult.
        p_object = pick(rng, (0.0, 0.8, 0.8, 0.8, 0.8, 0.8))
        p_detection = pick(rng, (0.0, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9))
        p_difficult = pick(rng, (0.0, 0.3, 0.3, 0.6, 0.6, 1.0))
        objects[name], detections[name] = {}, []
        for image in images:
            n_objects = int(rng.integers(max_objects + 1)) if rng.random() < p_object else 0
            n_detections = (
                int(rng.integers(max_detections + 1)) if rng.random() < p_detection else 0
            )
            boxes = draw_objects(rng, n_objects)
            found: list[Box] = []
            for _ in range(n_detections):
                kind = rng.random()
                if boxes and kind < 0.7:
                    found.append(draw_near(rng, pick(rng, boxes)))
                elif found and kind < 0.85:
                    found.append(pick(rng, found))
                else:
                    found.append(draw_box(rng))
            objects[name][image] = [
                (*inclusive(box), bool(rng.random() < p_difficult)) for box in boxes
            ]
            detections[name] += [(image, draw_score(rng, coarse), *inclusive(box)) for box in found]
        if rng.random() < 0.8:
            detections[name] = mix(rng, detections[name])
    return objects, detections


SEEDS = st.integers(0, 2**32 - 1)


def sized(
    draw: Callable[..., T], max_objects: int, max_detections: int, **fixed: Any
) -> st.SearchStrategy[T]:
    """Strategy that shrinks towards few images, classes, objects and detections."""
    return st.builds(
        lambda seed, **sizes: draw(np.random.default_rng(seed), **sizes, **fixed),
        SEEDS,
        n_images=st.integers(1, 4),
        n_classes=st.integers(1, 3),
        max_objects=st.integers(0, max_objects),
        max_detections=st.integers(0, max_detections),
    )


def coco_data(*, zero_id: bool = False) -> st.SearchStrategy[CocoData]:
    """Strategy of `draw_coco`."""
    return sized(draw_coco, 8, 12, zero_id=zero_id)


def many_detections() -> st.SearchStrategy[CocoData]:
    """Strategy of `draw_many_detections`."""
    return st.builds(lambda seed: draw_many_detections(np.random.default_rng(seed)), SEEDS)


def round_recall() -> st.SearchStrategy[CocoData]:
    """Strategy of `draw_round_recall`."""
    return st.builds(lambda seed: draw_round_recall(np.random.default_rng(seed)), SEEDS)


def voc_data() -> st.SearchStrategy[tuple[VocObjects, VocDetections]]:
    """Strategy of `draw_voc`."""
    return sized(draw_voc, 5, 8)


def draw_lvis(rng: np.random.Generator) -> CocoData:
    """As `draw_coco`, annotated in part: images list classes that are absent or not exhaustively
    annotated, classes have a frequency, annotations an ``ignore``; there is a result, and none of
    an unlisted category. Some boxes and annotations have the area 0.
    """
    instances, results = draw_coco(rng, n_images=int(rng.integers(1, 6)), n_classes=3)
    categories = [category["id"] for category in instances["categories"]]
    for image in instances["images"]:
        for key in ("neg_category_ids", "not_exhaustive_category_ids"):
            image[key] = [k for k in categories if rng.random() < 0.4]
    for category in instances["categories"]:
        category["frequency"] = pick(rng, "rcf")
    p_ignore, p_empty = pick(rng, (0.0, 0.3)), pick(rng, (0.0, 0.2))
    for annotation in instances["annotations"]:
        if rng.random() < p_ignore:
            annotation["ignore"] = int(rng.integers(0, 2))
        if rng.random() < p_empty:
            annotation["area"] = 0
    results = [result for result in results if result["category_id"] in categories]
    for result in results:
        if rng.random() < p_empty:
            result["bbox"] = [*result["bbox"][:3], 0]
    if not results:
        image, category = instances["images"][0]["id"], categories[0]
        results = [{"image_id": image, "category_id": category, "bbox": [0, 0, 9, 9], "score": 0.5}]
    return instances, results
