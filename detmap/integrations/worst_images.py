"""The images with most errors and their boxes, for W&B, MLflow and others that show pictures."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.diagnosis.analysis import BEYOND, KINDS, TP, Diagnosis
from detmap.analysis.diagnosis.mistakes import ImageErrors
from detmap.analysis.diagnosis.mistakes import images as by_errors
from detmap.analysis.diagnosis.operating_sweep import best_f1
from detmap.analysis.html_report.image_files import Pictures, draw_box
from detmap.analysis.row_overlaps import edges
from detmap.core.tables import Images
from detmap.errors import DataError

FOUND, MISSED, RIGHT, WRONG = (20, 130, 60), (200, 40, 40), (40, 90, 220), (240, 140, 20)
"""Colors, RGB: objects found and missed, right and wrong detections."""


@dataclass(frozen=True, slots=True)
class WorstImage:
    """One image and its boxes; coordinates are pixels, left, top, right, bottom, from 0.

    Parameters
    ----------
    path : its file; errors : the counts at the score threshold
    classes : id to name
    objects : (G, 4) float64, their class ids, and whether each was found
    detections : (D, 4) float64, class ids, scores, and the kind of each (``TP``, ``Loc`` ...)
    source : the folder, the images of the ground truth, and the row of this one
    """

    path: Path
    errors: ImageErrors
    classes: dict[int, str]
    objects: tuple[NDArray[np.float64], list[int], list[bool]]
    detections: tuple[NDArray[np.float64], list[int], list[float], list[str]]
    source: tuple[Pictures, Images, int] = field(repr=False)

    def wandb_boxes(self) -> dict[str, Any]:
        """What ``wandb.Image(str(path), boxes=...)`` takes."""
        boxes, labels, found = self.objects
        objects = [
            _data(box, label, f"{self.classes[label]}{'' if right else ', missed'}")
            for box, label, right in zip(boxes.tolist(), labels, found, strict=True)
        ]
        detections = [
            {**_data(box, label, f"{self.classes[label]} {kind}"), "scores": {"score": score}}
            for box, label, score, kind in zip(
                self.detections[0].tolist(), *self.detections[1:], strict=True
            )
        ]
        groups = {"ground_truth": objects, "detections": detections}
        return {
            name: {"box_data": rows, "class_labels": self.classes} for name, rows in groups.items()
        }

    def drawn(self) -> NDArray[np.uint8]:
        """The picture with its boxes, (height, width, 3) RGB; ``mlflow.log_image`` takes it.

        Raises
        ------
        DataError : the file is no image, or has another shape than in the ground truth
        """
        pictures, images, row = self.source
        read = pictures.read(images, row)
        if read is None:
            raise DataError(str(self.path), pictures.notes()[0], "check the folder of the images")
        picture = np.ascontiguousarray(read[:, :, ::-1])
        for box, right in zip(self.objects[0], self.objects[2], strict=True):
            draw_box(picture, box, FOUND if right else MISSED)
        for box, kind in zip(self.detections[0], self.detections[3], strict=True):
            draw_box(picture, box, RIGHT if kind == KINDS[TP] else WRONG)
        return picture


def worst_images(
    diagnosis: Diagnosis, images: str | Path, n: int = 8, *, confidence: float | None = None
) -> list[WorstImage]:
    """The images with most false positives and missed objects, worst first.

    Parameters
    ----------
    diagnosis : of `detmap.diagnose`
    images : folder of the image files; images without a file there are left out
    n : how many
    confidence : lowest score of the detections; default: the score of the highest F1

    Raises
    ------
    DataError : there is no such folder, or it has none of the images
    """
    pictures = Pictures(Path(images))
    table = diagnosis.truth.images
    rows = {image: k for k, image in enumerate(table.ids.tolist())}
    least = best_f1(diagnosis).score if confidence is None else confidence
    shown = ~diagnosis.ignored & (diagnosis.kind != BEYOND) & ~(diagnosis.detections.score < least)
    found: list[WorstImage] = []
    for errors in by_errors(diagnosis, confidence=least):
        if len(found) >= n:
            break
        source = pictures, table, rows[errors.image]
        paths = pictures.paths(*source[1:])
        if len(paths) == 1:
            found.append(_worst_image(diagnosis, errors, paths[0], source, shown))
    if not found and n > 0:
        raise DataError(str(images), "has none of the images", "give their folder")
    return found


def _worst_image(
    diagnosis: Diagnosis,
    errors: ImageErrors,
    path: Path,
    source: tuple[Pictures, Images, int],
    shown: NDArray[np.bool_],
) -> WorstImage:
    """The boxes of one image; `shown` are the detections that count."""
    truth, detections, image = diagnosis.truth, diagnosis.detections, source[2]
    ids = truth.categories.ids
    classes = dict(zip(ids.tolist(), truth.categories.names, strict=True))
    objects = np.flatnonzero((truth.image == image) & diagnosis.to_find)
    by = diagnosis.by[objects]
    right = (by >= 0) & shown[by]
    rows = np.flatnonzero((detections.image == image) & shown)
    return WorstImage(
        path,
        errors,
        classes,
        (edges(truth, objects)[:, :4], ids[truth.label[objects]].tolist(), right.tolist()),
        (
            edges(detections, rows)[:, :4],
            ids[detections.label[rows]].tolist(),
            detections.score[rows].tolist(),
            [KINDS[kind] for kind in diagnosis.kind[rows]],
        ),
        source,
    )


def _data(box: list[float], label: int, caption: str) -> dict[str, Any]:
    """A box as W&B has it."""
    position = dict(zip(("minX", "minY", "maxX", "maxY"), box, strict=True))
    return {"position": position, "domain": "pixel", "class_id": label, "box_caption": caption}
