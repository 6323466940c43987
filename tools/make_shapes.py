#!/usr/bin/env python3
"""Make the bundled sample data set `datasets/shapes/`.

An evaluator needs ground truth and detections to chew on, small enough to ship and free of licence
questions.  This tool draws images of six kinds of shapes, writes their ground truth twice (a PASCAL
VOC devkit tree and COCO instances JSON, record for record the same), and runs two classical
detectors over the saved JPEG files:

  contours   segments each image several ways and classifies the contours by their geometry
  template   correlates drawn shapes with the image at many scales and rotations

The detectors see pixels only, never the ground truth, so their misses, duplicates, loose boxes
and confusions are genuine.  Each image has its own random generator, seeded with the seed and
the image id, and annotations come out byte for byte the same on every run; `--check` tests that
the files on disk still agree.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np

CLASSES = (
    "circle",
    "ellipse",
    "pentagon",
    "square",
    "star",
    "triangle",
)  # alphabetical: category ids 1..6
CLASS_ODDS = (0.20, 0.15, 0.14, 0.19, 0.15, 0.17)
IMAGE_COUNT = 60
IMAGE_SIZES = ((320, 240), (320, 240), (320, 240), (240, 320), (360, 270), (256, 256), (400, 300))
EMPTY_IMAGES = {12, 33, 54}
CROWD_IMAGES = {17, 41}
DIAMETERS = ((12, 32), (40, 105), (120, 190))  # aimed at COCO's small, medium and large
DIAMETER_ODDS = (0.36, 0.44, 0.20)
FAINT_ODDS = 0.07
SHADOW_ODDS = 0.6
JPEG_QUALITY = 82
MAX_DETECTIONS = 100
COLOURS = 6

Array = np.ndarray


class Box(NamedTuple):
    """Whole pixels; x and y count from zero."""

    x: int
    y: int
    w: int
    h: int


class Detection(NamedTuple):
    score: float
    category: int
    box: Box


Detector = Callable[[Array], list[Detection]]


@dataclass
class Shape:
    """One ground-truth object: usually a single outline, several for a crowd."""

    name: str
    outlines: list[Array]
    faint: bool = False
    box: Box = Box(0, 0, 0, 0)
    truncated: bool = False
    difficult: bool = False

    @property
    def is_crowd(self) -> bool:
        return len(self.outlines) > 1


@dataclass
class Scene:
    image_id: int
    width: int
    height: int
    shapes: list[Shape]

    @property
    def stem(self) -> str:
        return f"{self.image_id:06d}"


# ---- geometry
# ----------------------------------------------------------------------------------------------


def outline(name: str, diameter: float, angle: float, squash: float = 1.0) -> Array:
    """Vertices (n, 2) of a shape centred on the origin."""
    count = {"triangle": 3, "square": 4, "pentagon": 5, "star": 10}.get(name, 72)
    radius = np.full(count, diameter / 2)
    if name == "star":
        radius[1::2] *= 0.46
    theta = np.arange(count) * (2 * np.pi / count)
    points = np.stack([radius * np.cos(theta), squash * radius * np.sin(theta)], axis=1)
    cos, sin = np.cos(angle), np.sin(angle)
    return points @ np.array([[cos, sin], [-sin, cos]])


def random_squash(name: str, rng: np.random.Generator) -> float:
    return rng.uniform(0.5, 0.76) if name == "ellipse" else rng.uniform(0.9, 1.0)


def coverage(outlines: list[Array], width: int, height: int) -> Array:
    """Anti-aliased mask 0..255 of filled outlines, clipped to the image."""
    mask = np.zeros((height, width), np.uint8)
    for points in outlines:
        cv2.fillPoly(mask, [np.rint(points * 16).astype(np.int32)], 255, cv2.LINE_AA, shift=4)
    return mask


def polygon_area(points: Array) -> float:
    return cv2.contourArea(points.astype(np.float32))


def extents(mask: Array) -> Box:
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    x, y = int(columns[0]), int(rows[0])
    return Box(x, y, int(columns[-1]) - x + 1, int(rows[-1]) - y + 1)


def iou(a: Box, b: Box) -> float:
    w = min(a.x + a.w, b.x + b.w) - max(a.x, b.x)
    h = min(a.y + a.h, b.y + b.h) - max(a.y, b.y)
    shared = max(w, 0) * max(h, 0)
    return shared / (a.w * a.h + b.w * b.h - shared)


# ---- scenes: what is where
# ---------------------------------------------------------------------------------


def plan_scene(seed: int, image_id: int) -> Scene:
    """Place shapes one over the other, then read boxes and flags off the masks."""
    rng = np.random.default_rng([seed, image_id])
    width, height = IMAGE_SIZES[rng.integers(len(IMAGE_SIZES))]
    scene = Scene(image_id, width, height, [])
    owner = np.full((height, width), -1)  # index of the topmost shape at each pixel
    reserved = np.zeros((height, width), bool)  # a crowd stands by itself
    areas: list[int] = []

    crowds = [random_crowd] * (image_id in CROWD_IMAGES)
    singles = [random_shape] * (0 if image_id in EMPTY_IMAGES else int(rng.integers(2, 10)))
    for draw in crowds + singles:
        for _ in range(20):
            shape = draw(rng, width, height)
            mask = coverage(shape.outlines, width, height) > 127
            mostly_outside = mask.sum() < 0.55 * sum(map(polygon_area, shape.outlines))
            hides_another = any(
                ((owner == k) & ~mask).sum() < 0.25 * area for k, area in enumerate(areas)
            )
            if not (mostly_outside or hides_another or (mask & reserved).any()):
                break
        else:
            continue  # no room left

        x, y, w, h = shape.box = extents(mask)
        points = np.concatenate(shape.outlines)
        shape.truncated = bool((points < 0).any() or (points > (width - 1, height - 1)).any())
        reserved[y : y + h, x : x + w] |= shape.is_crowd
        owner[mask] = len(areas)
        areas.append(int(mask.sum()))
        scene.shapes.append(shape)

    for k, shape in enumerate(scene.shapes):
        mostly_hidden = (owner == k).sum() < 0.5 * areas[k]
        shape.difficult = bool(mostly_hidden or shape.faint or shape.is_crowd)
    return scene


def random_shape(rng: np.random.Generator, width: int, height: int) -> Shape:
    name = str(rng.choice(CLASSES, p=CLASS_ODDS))
    diameter = rng.uniform(*DIAMETERS[rng.choice(3, p=DIAMETER_ODDS)])
    centre = rng.uniform((0, 0), (width, height))
    points = outline(name, diameter, rng.uniform(0, 2 * np.pi), random_squash(name, rng)) + centre
    return Shape(name, [points], faint=rng.random() < FAINT_ODDS)


def random_crowd(rng: np.random.Generator, width: int, height: int) -> Shape:
    """A cluster of tiny shapes of one class: too many to box one by one."""
    name = str(rng.choice(CLASSES))
    corner = rng.uniform((10, 10), (width - 90, height - 70))
    outlines = []
    for cell in np.ndindex(4, 3):
        centre = corner + 17 * np.array(cell) + rng.uniform(0, 5, 2)
        outlines.append(outline(name, rng.uniform(11, 16), rng.uniform(0, 2 * np.pi)) + centre)
    return Shape(name, outlines)


# ---- painting
# ----------------------------------------------------------------------------------------------


def paint(scene: Scene, seed: int) -> Array:
    rng = np.random.default_rng([seed, scene.image_id, 1])
    width, height = scene.width, scene.height
    canvas = background(rng, width, height)
    light = rng.uniform(0, 2 * np.pi)
    for shape in scene.shapes:
        mask = coverage(shape.outlines, width, height)
        colour = contrasting_colour(rng, canvas[mask > 127].mean(axis=0))
        if not shape.faint and rng.random() < SHADOW_ODDS:
            reach = rng.uniform(0.04, 0.2) * np.sqrt(polygon_area(shape.outlines[0]))
            offset = reach * np.array([np.cos(light), np.sin(light)])
            cast = coverage([points + offset for points in shape.outlines], width, height)
            shadow = soft(cast, 0.3 + reach / 5)
            canvas = canvas * (1 - rng.uniform(0.3, 0.6) * shadow)
        fill = colour + ripple(rng, width, height, strength=rng.uniform(0, 14))
        opacity = rng.uniform(0.12, 0.2) if shape.faint else rng.uniform(0.75, 1.0)
        alpha = opacity * soft(mask, rng.uniform(0.3, 1.0))
        canvas = canvas * (1 - alpha) + fill * alpha
    canvas = cv2.GaussianBlur(canvas, (0, 0), rng.uniform(0.3, 1.3))
    canvas += rng.normal(0, rng.uniform(1, 6), canvas.shape)
    return np.clip(np.rint(canvas), 0, 255).astype(np.uint8)


def soft(mask: Array, sigma: float) -> Array:
    """Opacity 0..1 with blurred edges, with a channel axis to broadcast over."""
    return cv2.GaussianBlur(mask, (0, 0), sigma)[..., None] / 255


def background(rng: np.random.Generator, width: int, height: int) -> Array:
    """A colour gradient with cloudy blotches, ripples and, sometimes, a few strokes of clutter."""
    start, change = rng.uniform(40, 215, 3), rng.uniform(-60, 60, 3)
    y, x = np.mgrid[0:height, 0:width] / max(width, height)
    angle = rng.uniform(0, 2 * np.pi)
    canvas = start + (np.cos(angle) * x + np.sin(angle) * y)[..., None] * change
    clouds = rng.normal(0, rng.uniform(0, 14), (7, 9, 3))
    canvas = canvas + cv2.resize(clouds, (width, height), interpolation=cv2.INTER_CUBIC)
    canvas = canvas + ripple(rng, width, height, strength=rng.uniform(0, 9))
    for _ in range(rng.integers(0, 5)):
        ends = rng.uniform((0, 0), (width, height), (2, 2)).astype(int).tolist()
        cv2.line(
            canvas, *ends, rng.uniform(20, 235, 3).tolist(), int(rng.integers(1, 5)), cv2.LINE_AA
        )
    return np.clip(canvas, 0, 255)


def ripple(rng: np.random.Generator, width: int, height: int, strength: float) -> Array:
    """Plane waves, the same in all channels."""
    y, x = np.mgrid[0:height, 0:width]
    angle, wavelength = rng.uniform(0, np.pi), rng.uniform(4, 16)
    return (
        strength
        * np.sin((np.cos(angle) * x + np.sin(angle) * y) * (2 * np.pi / wavelength))[..., None]
    )


def contrasting_colour(rng: np.random.Generator, around: Array) -> Array:
    while True:
        colour = rng.uniform(15, 240, 3)
        if np.linalg.norm(colour - around) > 70:
            return colour


# ---- ground truth in both formats
# --------------------------------------------------------------------------


def annotation_files(scenes: list[Scene]) -> dict[str, str]:
    """Text of every annotation file by its path in the data set."""
    files = {f"Annotations/{scene.stem}.xml": voc_xml(scene) for scene in scenes}
    files["ImageSets/Main/test.txt"] = "".join(f"{scene.stem}\n" for scene in scenes)
    for name in CLASSES:
        files[f"ImageSets/Main/{name}_test.txt"] = "".join(
            f"{scene.stem} {presence(scene, name):2d}\n" for scene in scenes
        )
    files["instances_test.json"] = coco_json(scenes)
    return files


def presence(scene: Scene, name: str) -> int:
    """VOC's label of a class in an image: 1 present, 0 difficult ones only, -1 absent."""
    flags = [shape.difficult for shape in scene.shapes if shape.name == name]
    return -1 if not flags else 0 if all(flags) else 1


def voc_xml(scene: Scene) -> str:
    lines = [
        "<annotation>",
        "\t<folder>shapes</folder>",
        f"\t<filename>{scene.stem}.jpg</filename>",
        "\t<size>",
        f"\t\t<width>{scene.width}</width>",
        f"\t\t<height>{scene.height}</height>",
        "\t\t<depth>3</depth>",
        "\t</size>",
        "\t<segmented>0</segmented>",
    ]
    for shape in scene.shapes:
        x, y, w, h = shape.box
        lines += [
            "\t<object>",
            f"\t\t<name>{shape.name}</name>",
            "\t\t<pose>Unspecified</pose>",
            f"\t\t<truncated>{shape.truncated:d}</truncated>",
            f"\t\t<difficult>{shape.difficult:d}</difficult>",
            "\t\t<bndbox>",
            f"\t\t\t<xmin>{x + 1}</xmin>",
            f"\t\t\t<ymin>{y + 1}</ymin>",
            f"\t\t\t<xmax>{x + w}</xmax>",
            f"\t\t\t<ymax>{y + h}</ymax>",
            "\t\t</bndbox>",
            "\t</object>",
        ]
    return "\n".join([*lines, "</annotation>", ""])


def coco_json(scenes: list[Scene]) -> str:
    images = [
        {
            "id": scene.image_id,
            "file_name": f"{scene.stem}.jpg",
            "width": scene.width,
            "height": scene.height,
        }
        for scene in scenes
    ]
    shapes = [(scene, shape) for scene in scenes for shape in scene.shapes]
    annotations = [
        {
            "id": number,
            "image_id": scene.image_id,
            "category_id": CLASSES.index(shape.name) + 1,
            "bbox": list(shape.box),
            "area": shape.box.w * shape.box.h,
            "iscrowd": int(shape.difficult),
            "segmentation": [],
        }
        for number, (scene, shape) in enumerate(shapes, start=1)
    ]
    categories = [{"id": number, "name": name} for number, name in enumerate(CLASSES, start=1)]
    info = {"description": "detmap sample data set: drawn shapes", "version": "1.0"}
    tables = {"images": images, "annotations": annotations, "categories": categories}
    body = ",\n".join(f'"{key}": {json_lines(records)}' for key, records in tables.items())
    return f'{{"info": {json.dumps(info)},\n{body}}}\n'


def json_lines(records: list[dict]) -> str:
    """A JSON list with one record per line: compact, yet diffs stay readable."""
    return (
        "[\n" + ",\n".join(json.dumps(record, separators=(",", ":")) for record in records) + "\n]"
    )


# ---- detector 1: contours
# ----------------------------------------------------------------------------------


class ContourDetector:
    """Segment, take contours, and compare each one's geometry with that of ideal drawings of the
    classes.

    Several segmentations of the image and of a degraded copy are pooled, so one shape is often
    proposed more than once, with slightly different boxes and scores.
    """

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        samples = [[self.ideal_geometry(name, rng) for _ in range(60)] for name in CLASSES]
        self.means = np.mean(samples, axis=1)
        self.deviations = (
            np.std(samples, axis=1).mean(axis=0) + 0.04
        )  # the floor stands for pixel noise

    def __call__(self, image: Array) -> list[Detection]:
        height, width = image.shape[:2]
        small = cv2.resize(image, (width // 3, height // 3), interpolation=cv2.INTER_AREA)
        noise = np.random.default_rng(0).normal(0, 10, small.shape)
        noisy = np.clip(small + noise, 0, 255).astype(np.uint8)
        degraded = cv2.resize(noisy, (width, height), interpolation=cv2.INTER_LINEAR)
        return suppress(
            [one for view in (image, degraded) for one in self.detect(view)], overlap=0.6
        )

    def detect(self, image: Array) -> Iterator[Detection]:
        height, width = image.shape[:2]
        lab = cv2.cvtColor(cv2.medianBlur(image, 7), cv2.COLOR_BGR2LAB).astype(np.float32)
        slopes = np.hypot(cv2.Sobel(lab, -1, 1, 0), cv2.Sobel(lab, -1, 0, 1)).max(axis=2) / 8
        for mask in self.segmentations(lab, slopes):
            contours, _ = cv2.findContours(mask, cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
            for contour in contours:
                box = Box(*cv2.boundingRect(contour))
                area = cv2.contourArea(contour)
                whole_image = box.w * box.h > 0.8 * width * height
                if whole_image or area < 40 or min(box.w, box.h) < 6:
                    continue
                columns, rows = contour[:, 0, 0], contour[:, 0, 1]
                slope = float(slopes[rows, columns].mean())
                edge, size = (
                    slope / (slope + 3),
                    area / (area + 80),
                )  # faint or tiny contours say little
                scores = np.sqrt(edge * size * self.fits(geometry(contour)))
                for k in np.argsort(-scores)[:3]:
                    if scores[k] > max(0.22, 0.35 * scores.max()):
                        yield Detection(round(float(scores[k]), 4), int(k) + 1, box)

    @staticmethod
    def segmentations(lab: Array, slopes: Array) -> Iterator[Array]:
        kernel = np.ones((3, 3), np.uint8)
        residual = lab - smooth_surface(lab)
        distance = np.linalg.norm(residual, axis=2)
        labels = cluster(residual)
        for threshold in (15, 30):  # whatever stands out from the background
            yield cv2.morphologyEx((distance > threshold).astype(np.uint8), cv2.MORPH_OPEN, kernel)
        for colour in range(COLOURS):  # areas of like colour, which tells overlapping shapes apart
            yield cv2.morphologyEx((labels == colour).astype(np.uint8), cv2.MORPH_OPEN, kernel)
        yield cv2.dilate(
            (slopes < 7).astype(np.uint8), kernel
        )  # areas between edges, grown over the edges

    @staticmethod
    def ideal_geometry(name: str, rng: np.random.Generator) -> Array:
        points = (
            outline(name, rng.uniform(16, 90), rng.uniform(0, 2 * np.pi), random_squash(name, rng))
            + 50
        )
        mask = cv2.medianBlur(coverage([points], 100, 100), 7)
        binary = (mask > 127).astype(np.uint8)
        return geometry(cv2.findContours(binary, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)[0][0])

    def fits(self, measured: Array) -> Array:
        """For each class, how well the geometry agrees with it; less where other classes agree
        as well.
        """
        fits = np.exp(-0.25 * np.mean(((measured - self.means) / self.deviations) ** 2, axis=1))
        return fits * fits / (fits.sum() + 1e-9)


def geometry(contour: Array) -> Array:
    """Scale and rotation invariant measures of a contour."""
    smooth = cv2.approxPolyDP(
        contour, 1.0, True
    )  # the staircase of pixels would lengthen the perimeter
    area, perimeter = cv2.contourArea(contour), cv2.arcLength(smooth, True)
    hull = cv2.convexHull(contour)
    sides = cv2.minAreaRect(contour)[1]
    triangle = cv2.minEnclosingTriangle(hull)[0]
    radius = cv2.minEnclosingCircle(contour)[1]
    vertices = len(cv2.approxPolyDP(contour, 0.03 * perimeter, True))
    measures = [
        4 * np.pi * area / perimeter**2,
        area / cv2.contourArea(hull),
        min(sides) / max(sides),
        area / (sides[0] * sides[1]),
        area / max(triangle, area),
        area / (np.pi * radius**2),
        min(vertices, 10) / 10,
    ]
    return np.array(measures)


def cluster(residual: Array) -> Array:
    """Label each pixel with one of COLOURS colours found by k-means."""
    cv2.setRNGSeed(1)
    criteria = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_MAX_ITER, 12, 0.5)
    labels = cv2.kmeans(residual.reshape(-1, 3), COLOURS, None, criteria, 1, cv2.KMEANS_PP_CENTERS)[
        1
    ]
    return labels.reshape(residual.shape[:2])


def smooth_surface(lab: Array) -> Array:
    """Background estimate: a quadratic surface per channel, refitted to the pixels that lie
    close to it.
    """
    height, width = lab.shape[:2]
    y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j].reshape(2, -1)
    terms = np.stack([np.ones_like(x), x, y, x * y, x * x, y * y], axis=1)
    pixels = lab.reshape(-1, 3)
    near = np.ones(len(pixels), bool)
    for _ in range(6):
        weights = np.linalg.lstsq(terms[near][::7], pixels[near][::7], rcond=None)[0]
        error = np.linalg.norm(pixels - terms @ weights, axis=1)
        near = error <= np.quantile(error, 0.6)
    return (terms @ weights).reshape(lab.shape).astype(np.float32)


# ---- detector 2: template
# ----------------------------------------------------------------------------------


class TemplateDetector:
    """Correlate drawn shapes with the grey image.

    Blind to colour, and its sizes and rotations come in coarse steps, hence its loose boxes.
    """

    SIZE = 26  # of the drawn shapes; the image is resized instead of the template
    DIAMETERS = tuple(13 * 1.3**step for step in range(11))
    ROTATIONS = {"circle": 1, "ellipse": 6, "pentagon": 3, "square": 4, "star": 3, "triangle": 6}
    PERIODS = {"circle": 1, "ellipse": 2, "pentagon": 5, "square": 4, "star": 5, "triangle": 3}

    def __init__(self) -> None:
        side = self.SIZE + 4  # a margin, so that the surroundings must differ from the shape
        self.templates = []
        for category, name in enumerate(CLASSES, start=1):
            for step in range(self.ROTATIONS[name]):
                angle = 2 * np.pi * step / self.ROTATIONS[name] / self.PERIODS[name]
                points = (
                    outline(name, self.SIZE, angle, 0.63 if name == "ellipse" else 0.95)
                    + (side - 1) / 2
                )
                mask = coverage([points], side, side)
                self.templates.append((category, mask, extents(mask > 127)))

    def __call__(self, image: Array) -> list[Detection]:
        grey = cv2.GaussianBlur(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), (0, 0), 1.0)
        scales = [diameter / self.SIZE for diameter in self.DIAMETERS]
        return suppress([one for scale in scales for one in self.detect(grey, scale)], overlap=0.45)

    def detect(self, grey: Array, scale: float) -> Iterator[Detection]:
        height, width = grey.shape
        size = (round(width / scale), round(height / scale))
        level = cv2.resize(
            grey, size, interpolation=cv2.INTER_AREA if scale > 1 else cv2.INTER_LINEAR
        )
        for category, mask, drawn in self.templates:
            if min(level.shape) < max(mask.shape):
                continue
            correlation = cv2.matchTemplate(level, mask, cv2.TM_CCOEFF_NORMED)
            match = np.minimum(np.abs(correlation), 1)  # light on dark and dark on light alike
            peaks = (match > 0.72) & (match == cv2.dilate(match, np.ones((7, 7))))
            for row, column in np.argwhere(peaks):
                x, y = round((column + drawn.x) * scale), round((row + drawn.y) * scale)
                w, h = (
                    min(round(drawn.w * scale), width - x),
                    min(round(drawn.h * scale), height - y),
                )
                yield Detection(round(float(match[row, column]), 4), category, Box(x, y, w, h))


# ---- detections
# --------------------------------------------------------------------------------------------


def suppress(found: list[Detection], overlap: float) -> list[Detection]:
    """Non-maximum suppression within each class; the best first, at most MAX_DETECTIONS."""
    kept: list[Detection] = []
    for new in sorted(
        found, key=lambda detection: (-detection.score, detection.category, detection.box)
    ):
        if len(kept) == MAX_DETECTIONS:
            break
        if all(new.category != old.category or iou(new.box, old.box) <= overlap for old in kept):
            kept.append(new)
    return kept


def detection_files(detector: str, found: dict[int, list[Detection]]) -> dict[str, str]:
    """One detector's output as COCO results and as VOC's text files."""
    ordered = [(image_id, detection) for image_id in sorted(found) for detection in found[image_id]]
    results = [
        {"image_id": image_id, "category_id": category, "bbox": list(box), "score": score}
        for image_id, (score, category, box) in ordered
    ]
    files = {f"detections/{detector}.json": json_lines(results) + "\n"}
    for number, name in enumerate(CLASSES, start=1):
        files[f"detections/{detector}/comp4_det_test_{name}.txt"] = "".join(
            f"{image_id:06d} {score:.4f} {box.x + 1} {box.y + 1} {box.x + box.w} {box.y + box.h}\n"
            for image_id, (score, category, box) in ordered
            if category == number
        )
    return files


# ---- command
# -----------------------------------------------------------------------------------------------


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


def save_images(root: Path, scenes: list[Scene], seed: int) -> None:
    folder = root / "JPEGImages"
    folder.mkdir(parents=True, exist_ok=True)
    for scene in scenes:
        progress("drawing", scene.image_id, len(scenes))
        path = str(folder / f"{scene.stem}.jpg")
        cv2.imwrite(path, paint(scene, seed), [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])


def run_detector(name: str, detect: Detector, root: Path) -> dict[int, list[Detection]]:
    paths = sorted((root / "JPEGImages").glob("*.jpg"))
    found = {}
    for number, path in enumerate(paths, start=1):
        progress(name, number, len(paths))
        found[int(path.stem)] = detect(cv2.imread(str(path)))
    return found


def progress(task: str, done: int, total: int) -> None:
    print(
        f"\r{task} {done}/{total}", end="\n" if done == total else "", file=sys.stderr, flush=True
    )


def differences(root: Path, files: dict[str, str]) -> list[str]:
    """Annotation files that are missing, stale or superfluous on disk."""
    on_disk = {
        path.relative_to(root).as_posix()
        for pattern in ("Annotations/*", "ImageSets/Main/*", "instances_test.json")
        for path in root.glob(pattern)
    }
    stale = {
        name
        for name in on_disk & files.keys()
        if (root / name).read_bytes() != files[name].encode()
    }
    return sorted(stale | (on_disk ^ files.keys()))


def main() -> int:
    shapes = Path(__file__).resolve().parents[1] / "datasets" / "shapes"
    parser = argparse.ArgumentParser(description="Make the sample data set of drawn shapes.")
    parser.add_argument("--out", type=Path, default=shapes, metavar="DIR", help="folder to write")
    parser.add_argument(
        "--seed", type=int, default=2012, help="seed of the random generators (%(default)s)"
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if annotations differ"
    )
    options = parser.parse_args()

    cv2.setNumThreads(1)  # sums in a fixed order give the same scores on every run
    scenes = [plan_scene(options.seed, image_id) for image_id in range(1, IMAGE_COUNT + 1)]
    annotations = annotation_files(scenes)
    if options.check:
        differing = differences(options.out, annotations)
        for name in differing:
            print(f"differs: {name}", file=sys.stderr)
        return 1 if differing else 0

    write(options.out, annotations)
    save_images(options.out, scenes, options.seed)
    for name, detect in {"contours": ContourDetector(), "template": TemplateDetector()}.items():
        write(options.out, detection_files(name, run_detector(name, detect, options.out)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
