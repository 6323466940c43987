"""`CocoEvaluator` of torchvision's detection references, evaluated by detmap.

Replaces ``from coco_eval import CocoEvaluator``. It imports neither torchvision nor torch.

>>> from detmap.integrations.torchvision import CocoEvaluator            # doctest: +SKIP
>>> evaluator = CocoEvaluator(get_coco_api_from_dataset(dataset), ["bbox"])   # doctest: +SKIP
"""

import copy
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from detmap.compat import COCOeval, PycocotoolsQuirk, patch_pycocotools
from detmap.core.streaming import torch_ranks
from detmap.errors import require
from detmap.integrations.host_errors import HostError, value_errors
from detmap.integrations.inputs import coco_rows, field_values

FIELDS = {"bbox": "boxes", "segm": "masks", "keypoints": "keypoints"}
MASK_CUT = 0.5


class CocoEvaluator:
    """Evaluates boxes, masks and keypoints per image id, with the rules and bits of pycocotools.

    ``coco_eval[kind].stats`` has the numbers after `summarize`.

    Parameters
    ----------
    coco_gt : a `COCO` object of pycocotools or of `detmap.compat`
    iou_types : a list of ``bbox``, ``segm``, ``keypoints``
    """

    def __init__(self, coco_gt: Any, iou_types: Sequence[str]) -> None:
        if not isinstance(iou_types, list | tuple):
            what = f"a {type(iou_types).__name__}"
            raise TypeError(f'CocoEvaluator: iou_types: {what} (give a list: ["bbox"])')
        self.coco_gt, self.iou_types = copy.copy(coco_gt), list(iou_types)
        self.img_ids: list[Any] = []
        self._rows: dict[Any, dict[str, list[coco_rows.Row]]] = {}
        self.coco_eval = {kind: COCOeval(coco_gt, iouType=kind) for kind in iou_types}

    def update(self, predictions: Mapping[Any, Mapping[str, Any]]) -> None:
        """Adds images: boxes or masks or keypoints, scores and labels (category ids) per id."""
        if not isinstance(predictions, Mapping):
            fix = "give a dict of predictions per image id"
            raise HostError("predictions", f"a {type(predictions).__name__}", fix)
        for image, found in predictions.items():
            if image not in self.coco_gt.imgs:
                fix = "give the image ids of coco_gt"
                raise HostError(f"predictions[{image!r}]", "the image is not in coco_gt", fix)
            with value_errors("predictions"):
                where = f"image {image!r}"
                labels = field_values.field(found, "labels", where)
                labels = field_values.label_list(labels, f"{where}: labels")
                scores = field_values.field(found, "scores", where)
                self._rows[image] = {
                    kind: coco_rows.rows(image, scores, labels, kind, _shapes(found, kind, where))
                    for kind in self.iou_types
                }

    def synchronize_between_processes(self) -> None:
        """Adds the images of all ranks; an image that several ranks evaluated counts once.

        Raises `DetmapError` if a rank is lost; this rank keeps its images.
        """
        if torch_ranks.are_there():
            ranks = torch_ranks.gather(self._rows, None)
            self._rows = {image: rows for rank in reversed(ranks) for image, rows in rank.items()}

    def accumulate(self) -> None:
        """Matches and accumulates all images so far. Raises `ValueError` if there are none."""
        if not self._rows:
            raise HostError("CocoEvaluator.accumulate", "there are no images", "call update first")
        self.img_ids = sorted(self._rows)
        for kind in self.iou_types:
            rows = [row for image in self.img_ids for row in self._rows[image][kind]]
            if kind == "segm":
                rows = [{**row, "segmentation": _compressed(row["segmentation"])} for row in rows]
            with warnings.catch_warnings(), patch_pycocotools():
                warnings.simplefilter("ignore", PycocotoolsQuirk)
                found = self.coco_gt.loadRes(rows) if rows else type(self.coco_gt)()
                run = COCOeval(self.coco_gt, found, kind)
                run.params.imgIds = self.img_ids
                run.evaluate()
                run.accumulate()
            self.coco_eval[kind] = run

    def summarize(self) -> None:
        """Prints the metrics of each kind, as pycocotools."""
        for run in self.coco_eval.values():
            run.summarize()


def _compressed(runs: Mapping[str, Any]) -> Any:
    """Run lengths in the form that `loadRes` reads."""
    return require("pycocotools.mask", "parity").frPyObjects(runs, *runs["size"])


def _shapes(found: Mapping[str, Any], kind: str, where: str) -> Any:
    shapes = field_values.field(found, FIELDS[kind], where)
    if kind != "segm":
        return shapes
    masks = field_values.array(shapes)
    return (masks[:, 0] if masks.ndim == 4 else masks) > MASK_CUT if masks.size else np.zeros((0,))
