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
