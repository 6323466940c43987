"""Draws of the benchmarks whose files are lines of text, of about the benchmark's size."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from boxes import Random, anywhere, classes_near, near

from detmap.benchmarks.uavdt.files import LENGTHS

NO_REGIONS = ("M0209", "M0801")
"""Sequences of UAVDT for which the toolkit reads no ignored regions."""
VIDEOS = {6: 19, 7: 12, 8: 11, 9: 12, 10: 12}
"""Videos of each set of Caltech's test split."""
FRAMES = range(29, 330, 30)
"""Evaluated frames of a video of 330 frames: 11, so that there are 726 in all."""


def lines(path: Path, rows: Iterable[Any], between: str = ",") -> None:
    """Writes a line per row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(between.join(map(str, row)) + "\n" for row in rows))


def scores(rng: Random, n: int) -> Any:
    """N different scores below 1."""
    return (rng.permutation(n) / n).round(6)


def visdrone(folder: Path) -> None:
    """20 images of 1360 x 765, each with 60 objects and 200 detections sorted by score."""
    rng, sides = np.random.default_rng(0), (765, 8, 120)
    (folder / "images").mkdir(parents=True, exist_ok=True)
    for i in range(20):
        name = f"{i:07}_00000_d_{i:07}"
        cv2.imwrite(str(folder / "images" / f"{name}.jpg"), np.zeros((765, 1360), np.uint8))
        boxes = anywhere(rng, 60, *sides).round()
        labels = rng.choice([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], 60)
        counted = rng.random(60) < 0.95
        rows = [
            (*box, int(on), label, 0, 0)
            for box, on, label in zip(boxes.astype(int).tolist(), counted, labels, strict=True)
        ]
        regions = anywhere(rng, i % 2 * 2, 765, 40, 150).astype(int).tolist()
        rows += [(*box, 0, 0, 0, 0) for box in regions]
        lines(folder / "annotations" / f"{name}.txt", rows)
        source, found = near(rng, boxes, 200, 3, sides)
        ranked = np.sort(scores(rng, 200))[::-1]
        classes = classes_near(rng, labels, source, 10)
        columns = zip(found.tolist(), ranked, classes, strict=True)
        rows = [(*box, score, label, -1, -1) for box, score, label in columns]
        lines(folder / "results" / f"{name}.txt", rows)


def uavdt(folder: Path) -> None:
    """The 20 test sequences, 16,592 frames, with 10 vehicles and 20 detections a frame."""
    rng, sides = np.random.default_rng(0), (1000, 15, 100)
    for name, n_frames in LENGTHS.items():
        objects: list[Any] = []
        regions: list[Any] = []
        found: list[Any] = []
        for frame in range(1, n_frames + 1):
            boxes = anywhere(rng, 10, *sides).round()
            numbers = enumerate(boxes.astype(int).tolist(), 1)
            objects += [(frame, k, *box, 1, 1, 0) for k, box in numbers]
            if frame % 4 == 0:
                region = anywhere(rng, 1, 1000, 100, 300).astype(int).tolist()[0]
                regions.append((frame, -1, *region, 1, -1, -1))
            _, moved = near(rng, boxes, 20, 3, sides)
            found += [[frame, -1, *box, 0, 1, -1] for box in moved.tolist()]
        for row, score in zip(found, scores(rng, len(found)), strict=True):
            row[6] = score
        lines(folder / "gt" / f"{name}_gt_whole.txt", objects)
        if name not in NO_REGIONS:
            lines(folder / "gt" / f"{name}_gt_ignore.txt", regions)
        lines(folder / "det" / f"{name}.txt", found)


def caltech(folder: Path) -> None:
    """726 frames of 640 x 480, with up to 3 people and 10 detections.

    The toolkit reads results by video, in ``videos``; the same lines by frame are in ``results``.
    """
    rng = np.random.default_rng(0)
    for place, n_videos in VIDEOS.items():
        for video in range(n_videos):
            rows: list[Any] = []
            for frame in FRAMES:
                name = f"set{place:02}_V{video:03}_I{frame:05}.txt"
                truth, found = pedestrians(rng)
                lines(folder / "annotations" / name, truth, " ")
                lines(folder / "results" / name, found, " ")
                rows += [(frame + 1, *row) for row in found]
            lines(folder / "videos" / f"set{place:02}" / f"V{video:03}.txt", rows)


def pedestrians(rng: Random) -> tuple[list[Any], list[Any]]:
    """Lines of a frame's annotations and results."""
    boxes = anywhere(rng, 4, 480, 20, 160).round()
    boxes[:, 2] = (boxes[:, 3] * rng.uniform(0.35, 0.47, 4)).round()
    truth: list[Any] = [("%", "bbGt", "version=3")]
    for x, y, w, h in boxes[: rng.integers(0, 4)].astype(int).tolist():
        label = rng.choice(["person", "person", "person?", "people", "ignore"])
        seen = int(h * rng.uniform(0.1, 1)) if rng.random() < 0.3 else 0
        shown = (1, x, y, w, seen) if seen else (0, 0, 0, 0, 0)
        truth.append((label, x, y, w, h, *shown, 0, 0))
    _, found = near(rng, boxes, 10, 4, (480, 20, 160))
    rows = zip(found.tolist(), rng.random(10).round(6).tolist(), strict=True)
    return truth, [(*box, score) for box, score in rows]


def imagenet(folder: Path) -> None:
    """2,000 images and 200 classes, 3 objects and 30 detections an image."""
    rng, sides = np.random.default_rng(0), (500, 8, 250)
    ids = [f"n{10000000 + k}" for k in range(200)]
    names = [f"ILSVRC2012_val_{i:08}" for i in range(1, 2001)]
    (folder / "xml").mkdir(parents=True, exist_ok=True)
    found: list[Any] = []
    banned: list[Any] = []
    for i, name in enumerate(names, 1):
        labels = rng.integers(1, 201, 3)
        boxes = anywhere(rng, 3, *sides).round()
        objects = zip([ids[k - 1] for k in labels], boxes.astype(int).tolist(), strict=True)
        (folder / "xml" / f"{name}.xml").write_text(annotation(name, list(objects)))
        source, moved = near(rng, boxes, 30, 6, sides)
        for label, (x, y, w, h) in zip(
            classes_near(rng, labels, source, 200), moved.tolist(), strict=True
        ):
            found.append([i, label, 0, x, y, round(x + w, 1), round(y + h, 1)])
        banned += [(i, ids[k]) for k in rng.integers(0, 200, int(i % 10 == 0))]
    for row, score in zip(found, scores(rng, len(found)), strict=True):
        row[2] = score
    lines(folder / "val.txt", zip(names, range(1, 2001), strict=True), " ")
    lines(folder / "synsets.txt", ((name,) for name in ids))
    lines(folder / "blacklist.txt", banned, " ")
    lines(folder / "predictions.txt", found, " ")


def annotation(name: str, objects: list[tuple[str, list[int]]]) -> str:
    """XML of an image."""
    size = "<size><width>500</width><height>500</height><depth>3</depth></size>"
    rows = "".join(
        f"<object><name>{wnid}</name><bndbox><xmin>{x}</xmin><xmax>{x + w}</xmax>"
        f"<ymin>{y}</ymin><ymax>{y + h}</ymax></bndbox></object>"
        for wnid, (x, y, w, h) in objects
    )
    head = f"<folder>val</folder><filename>{name}</filename>"
    return f"<annotation>{head}{size}{rows}</annotation>\n"


def luna16(folder: Path) -> None:
    """888 scans, 1,186 nodules, 20 excluded findings and 120 marks a scan."""
    rng = np.random.default_rng(0)
    scans = np.array([f"1.3.6.1.4.1.{i:04}" for i in range(888)])
    nodules = rng.integers(0, 888, 1186)
    centers = rng.uniform(-200, 200, (1186, 3)).round(3)
    diameters = rng.uniform(3, 30, 1186).round(3)
    head = ("seriesuid", "coordX", "coordY", "coordZ")
    rows = zip(scans[nodules], centers.tolist(), diameters.tolist(), strict=True)
    truth = [(scan, *center, size) for scan, center, size in rows]
    lines(folder / "annotations.csv", [(*head, "diameter_mm"), *truth])
    others = rng.uniform(-200, 200, (17760, 3)).round(3).tolist()
    rows = zip(np.repeat(scans, 20), others, strict=True)
    excluded = [(scan, *center, -1) for scan, center in rows]
    lines(folder / "annotations_excluded.csv", [(*head, "diameter_mm"), *excluded])
    lines(folder / "seriesuids.csv", [(scan,) for scan in scans])
    of_scan = np.concatenate([nodules.repeat(5), rng.integers(0, 888, 888 * 120 - 1186 * 5)])
    marks = rng.uniform(-200, 200, (len(of_scan), 3))
    marks[: 1186 * 5] = (centers + rng.normal(0, 4, (5, 1186, 3))).transpose(1, 0, 2).reshape(-1, 3)
    columns = zip(scans[of_scan], marks.round(3).tolist(), scores(rng, len(marks)), strict=True)
    found = [(scan, *center, score) for scan, center, score in columns]
    lines(folder / "results.csv", [(*head, "probability"), *found])


def rotated(folder: Path, counts: tuple[int, int, int, int]) -> None:
    """Boxes with an angle; counts are those of images, objects and detections each, and classes."""
    rng, sides = np.random.default_rng(0), (800, 10, 150)
    n_images, n_objects, n_found, n_classes = counts
    truth: list[Any] = []
    found: list[Any] = []
    for i in range(n_images):
        boxes = anywhere(rng, n_objects, *sides)
        labels = rng.integers(1, n_classes + 1, n_objects)
        angles = rng.uniform(-1.5, 1.5, n_objects).round(4)
        hard = (rng.random(n_objects) < 0.1).astype(int)
        columns = zip(labels, hard, boxes.tolist(), angles, strict=True)
        truth += [(i, f"c{label}", off, *box, angle) for label, off, box, angle in columns]
        source, moved = near(rng, boxes, n_found, 3, sides)
        turned = (angles[source] + rng.normal(0, 0.05, n_found)).round(4)
        classes = classes_near(rng, labels, source, n_classes)
        columns = zip(classes, moved.tolist(), turned, strict=True)
        found += [[i, f"c{label}", 0, *box, angle] for label, box, angle in columns]
    for row, score in zip(found, scores(rng, len(found)), strict=True):
        row[2] = score
    shape = ("cx", "cy", "w", "h", "angle")
    lines(folder / "truth.csv", [("image", "class", "difficult", *shape), *truth])
    lines(folder / "dets.csv", [("image", "class", "score", *shape), *found])


DRAWN: dict[str, Callable[[Path], None]] = {
    "visdrone": visdrone,
    "uavdt": uavdt,
    "caltech": caltech,
    "imagenet-det": imagenet,
    "luna16": luna16,
    "hrsc2016": partial(rotated, counts=(444, 3, 50, 1)),
    "dior-r": partial(rotated, counts=(2000, 10, 50, 20)),
    "ultralytics-obb": partial(rotated, counts=(2000, 10, 50, 20)),
}
