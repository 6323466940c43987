"""Masks and keypoints that look for trouble: equal overlaps, parts of k/20, crowds, polygons beside
run lengths, objects without a labelled point."""

from typing import Any

import numpy as np
from pycocotools import mask

from tests.support.drawing import CocoData, pick

HEIGHT, WIDTH = 24, 30
CATEGORIES = (1, 18)
SCORES = (0.25, 0.5, 0.5, 0.9, 1.0)
AREAS = (1023.5, 1024, 9216, 9217, 500)


def instances(
    n_images: int, annotations: list[dict[str, Any]], categories: tuple[int, ...]
) -> dict[str, Any]:
    """A COCO instances dict."""
    return {
        "images": [{"id": i, "width": WIDTH, "height": HEIGHT} for i in range(n_images)],
        "categories": [{"id": k, "name": f"class {k}"} for k in categories],
        "annotations": annotations,
    }


def draw_rectangle(rng: np.random.Generator) -> tuple[int, int, int, int]:
    """x, y, width, height in the image; often 20 wide, so that parts are k/20."""
    width = int(pick(rng, (20, 20, 10, 5, int(rng.integers(1, WIDTH)))))
    height = int(pick(rng, (4, 8, int(rng.integers(1, HEIGHT)))))
    return (
        int(rng.integers(WIDTH - width + 1)),
        int(rng.integers(HEIGHT - height + 1)),
        width,
        height,
    )


def pixels(box: tuple[int, int, int, int]) -> np.ndarray:
    """The image with the box filled."""
    x, y, width, height = box
    image = np.zeros((HEIGHT, WIDTH), dtype=np.uint8, order="F")
    image[y : y + height, x : x + width] = 1
    return image


def near(rng: np.random.Generator, image: np.ndarray) -> np.ndarray:
    """A mask that shares a part with another, or is the same."""
    kind = rng.random()
    columns = np.flatnonzero(image.any(axis=0))
    other = image.copy(order="F")
    if kind < 0.3 or not columns.size:
        return other
    if kind < 0.7:
        other[:, columns[: int(rng.integers(len(columns)))]] = 0
    elif kind < 0.85:
        other[rng.random(image.shape) < 0.1] ^= 1
    else:
        other = np.asfortranarray(np.roll(other, int(rng.integers(1, 4)), axis=1))
    return other


def runs(image: np.ndarray) -> list[int]:
    """Run lengths, column by column, the first of zeros."""
    flat = image.flatten(order="F")
    change = np.flatnonzero(np.diff(flat)) + 1
    lengths = np.diff(np.concatenate([[0], change, [flat.size]])).tolist()
    return [0, *lengths] if flat[0] else lengths


def packed(image: np.ndarray) -> dict[str, Any]:
    """Run lengths as results have them."""
    rle = mask.encode(np.asfortranarray(image))
    return {"size": rle["size"], "counts": rle["counts"].decode()}


def segmentation(rng: np.random.Generator, image: np.ndarray, box: Any) -> Any:
    """One of the ways of writing a mask; polygons are of the box that it began as."""
    kind = rng.random()
    if kind < 0.35:
        return packed(image)
    if kind < 0.6:
        return {"size": [HEIGHT, WIDTH], "counts": runs(image)}
    x, y, width, height = box
    wobble = rng.random(8) * float(pick(rng, (0, 0, 1.5)))
    corners = [x, y, x, y + height, x + width, y + height, x + width, y]
    ring = (np.array(corners) + wobble).tolist()
    return [ring] if rng.random() < 0.8 else [ring, [x, y, x + 2.5, y, x, y + 3.5]]


def draw_segm(rng: np.random.Generator) -> CocoData:
    """Instances and results with masks."""
    n_images = int(rng.integers(1, 4))
    annotations: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    coarse, with_boxes = rng.random() < 0.7, rng.random() < 0.2
    for image_id in range(n_images):
        drawn = []
        for _ in range(int(rng.integers(0, 7))):
            box = draw_rectangle(rng)
            image = pixels(box) if not drawn or rng.random() < 0.6 else near(rng, drawn[-1])
            drawn.append(image)
            area = float(image.sum()) if rng.random() < 0.5 else float(pick(rng, AREAS))
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": image_id,
                    "category_id": int(pick(rng, CATEGORIES)),
                    "segmentation": segmentation(rng, image, box),
                    "bbox": [float(side) for side in box],
                    "area": area,
                    "iscrowd": int(rng.random() < 0.2),
                }
            )
        for _ in range(int(rng.integers(0, 10))):
            close = drawn and rng.random() < 0.8
            image = near(rng, pick(rng, drawn)) if close else pixels(draw_rectangle(rng))
            result = {
                "image_id": image_id,
                "category_id": int(pick(rng, CATEGORIES)),
                "segmentation": packed(image),
                "score": float(pick(rng, SCORES)) if coarse else float(rng.random()),
            }
            if with_boxes:
                result["bbox"] = [float(side) for side in draw_rectangle(rng)]
            results.append(result)
    return instances(n_images, annotations, CATEGORIES), results


def draw_outlined(rng: np.random.Generator) -> CocoData:
    """Instances and results whose edges matter: holes, thin lines, combs, masks that touch each
    other or the image's edge, empty ones; detections that are nearly the same, on images of any
    shape.
    """
    images, annotations, results = [], [], []
    for image_id in range(1, int(rng.integers(2, 5))):
        h, w = (int(pick(rng, (5, 20, 63, 64, 65, 130, 250))) for _ in range(2))
        images.append({"id": image_id, "height": h, "width": w})
        drawn = [_outlined(rng, h, w) for _ in range(int(rng.integers(0, 6)))]
        for pixels_ in drawn:
            shared = {"image_id": image_id, "category_id": int(pick(rng, CATEGORIES))}
            lengths = runs(pixels_)
            ways: tuple[Any, ...] = (packed(pixels_), {"size": [h, w], "counts": lengths})
            ways += ({"size": [h, w], "counts": [0, 0, *lengths[:-1], 0, 0, lengths[-1]]},)
            area = int(pixels_.sum()) if rng.random() < 0.7 else float(pick(rng, AREAS))
            annotations.append(
                {"id": len(annotations) + 1, "iscrowd": int(rng.random() < 0.15), "area": area}
                | {"bbox": [0, 0, w, h], "segmentation": pick(rng, ways), **shared}
            )
            for _ in range(int(rng.integers(0, 4))):
                same = {} if rng.random() < 0.2 else shared
                other = _nearly(rng, pixels_)
                result = {"image_id": image_id, "category_id": int(pick(rng, CATEGORIES)), **same}
                if rng.random() < 0.2:  # a run without pixels
                    rle = mask.frPyObjects({"size": [h, w], "counts": [*runs(other), 0, 0]}, h, w)
                    result["segmentation"] = rle | {"counts": rle["counts"].decode()}
                else:
                    result["segmentation"] = packed(other)
                result["score"] = float(pick(rng, SCORES))
                results.append(result)
    classes = [{"id": k, "name": f"class {k}"} for k in CATEGORIES]
    return {"images": images, "annotations": annotations, "categories": classes}, results


def _outlined(rng: np.random.Generator, h: int, w: int) -> np.ndarray:
    """A mask (h, w)."""
    y, x = np.mgrid[:h, :w]
    center, radius = rng.random(2) * (h, w), 1 + rng.random(2) * (h, w)
    far = ((y - center[0]) / radius[0]) ** 2 + ((x - center[1]) / radius[1]) ** 2
    made = far < 1
    kind = rng.integers(7)
    if kind == 0:
        made &= far > 0.2  # a hole
    elif kind == 1:
        made = (y - center[0]) ** 2 < 4  # a line from edge to edge
    elif kind == 2:
        made &= (x % 7 > 0) | (y < center[0])  # a comb
    elif kind == 3:
        made = x < center[1]  # it fills columns: a single run
    elif kind == 4:
        made &= rng.random((h, w)) > 0.002  # holes of a pixel
    elif kind == 5:
        made = np.full((h, w), rng.random() < 0.7)
    return np.asfortranarray(made, dtype=np.uint8)


def _nearly(rng: np.random.Generator, image: np.ndarray) -> np.ndarray:
    """The mask, or another that differs at its edge, in a hole or by a neighbor."""
    other, (h, w) = image.copy(order="F"), image.shape
    kind = rng.integers(5)
    if kind == 0:
        other = np.roll(other, tuple(rng.integers(-2, 3, 2)), (0, 1))
    elif kind == 1:
        other |= np.roll(other, 1, int(rng.integers(2)))
    elif kind == 2:
        other[int(rng.integers(h)), int(rng.integers(w))] ^= 1
    elif kind == 3:
        other[:, int(rng.integers(w)) :] = 0
    return np.asfortranarray(other)


def draw_keypoints(rng: np.random.Generator) -> CocoData:
    """Instances and results with 17 keypoints."""
    n_images = int(rng.integers(1, 4))
    annotations: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    coarse, with_boxes = rng.random() < 0.7, rng.random() < 0.2
    whole = rng.random() < 0.5
    for image_id in range(n_images):
        drawn: list[np.ndarray] = []
        for _ in range(int(rng.integers(0, 6))):
            points = rng.random((17, 2)) * 100
            if drawn and rng.random() < 0.4:
                points = drawn[-1] + rng.normal(0, 2, (17, 2))
            points = points.round() if whole else points.round(2)
            drawn.append(points)
            share = float(pick(rng, (0.0, 0.2, 0.6, 1.0)))
            seen = np.where(rng.random(17) < share, rng.integers(1, 3, 17), 0)
            low, high = points.min(axis=0), points.max(axis=0)
            rows = np.concatenate([np.where(seen[:, None] > 0, points, 0), seen[:, None]], axis=1)
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": image_id,
                    "category_id": 1,
                    "keypoints": number(rows.ravel(), whole),
                    "num_keypoints": int((seen > 0).sum()),
                    "bbox": [*low.tolist(), *(high - low).tolist()],
                    "area": float(pick(rng, AREAS)),
                    "iscrowd": int(rng.random() < 0.15),
                }
            )
        for _ in range(int(rng.integers(0, 26 if rng.random() < 0.2 else 9))):
            points = rng.random((17, 2)) * 100
            if drawn and rng.random() < 0.85:
                points = pick(rng, drawn) + rng.normal(0, float(pick(rng, (0, 1, 4))), (17, 2))
            rows = np.concatenate([points.round() if whole else points, np.ones((17, 1))], axis=1)
            result = {
                "image_id": image_id,
                "category_id": 1,
                "keypoints": number(rows.ravel(), whole),
                "score": float(pick(rng, SCORES)) if coarse else float(rng.random()),
            }
            if with_boxes:
                result["bbox"] = [float(side) for side in draw_rectangle(rng)]
            results.append(result)
    return instances(n_images, annotations, (1,)), results


def number(values: np.ndarray, whole: bool) -> list[float]:
    """Integers where all are whole, as COCO writes them."""
    return values.astype(int).tolist() if whole else values.tolist()
