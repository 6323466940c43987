"""`COCO`: pycocotools' class, which keeps columns of large plain files and makes dicts of them
when they are asked for.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any

import numpy as np
from pycocotools.coco import COCO as Official

from detmap.compat.rows import Rows
from detmap.compat.sources import Instances, Results, open_instances, open_results, results_of_array

Tree = dict[str, Any]


class COCO(Official):  # type: ignore[misc]
    """Annotations of a data set, or detections on it.

    Parameters
    ----------
    annotation_file : an instances file; none when left out
    """

    _source: Instances | Results | None = None

    def __init__(self, annotation_file: Any = None) -> None:
        if annotation_file is None:
            super().__init__()
            return
        print("loading annotations into memory...")
        begin = time.time()
        self._source = open_instances(annotation_file)
        if self._source is None:
            with open(annotation_file) as file:
                dataset = json.load(file)
            assert type(dataset) is dict, f"annotation file format {type(dataset)} not supported"
            self.dataset = dataset
        print(f"Done (t={time.time() - begin:0.2f}s)")
        self.createIndex()

    # --- what is made when it is first read; assigning any of these simply replaces it
    # ---------------------------------------

    @cached_property
    def dataset(self) -> Tree:
        """The whole file as dicts."""
        assert self._source is not None
        return self._source.dataset()

    @cached_property
    def imgs(self) -> Tree:
        """Records of images by id."""
        return {image["id"]: image for image in self._listed("images")}

    @cached_property
    def cats(self) -> Tree:
        """Records of categories by id."""
        return {category["id"]: category for category in self._listed("categories")}

    @cached_property
    def anns(self) -> Tree:
        """Annotations by id."""
        return {annotation["id"]: annotation for annotation in self.dataset["annotations"]}

    @cached_property
    def imgToAnns(self) -> defaultdict[Any, list[Tree]]:
        """Annotations by image id."""
        found = defaultdict(list)
        for annotation in self.dataset["annotations"]:
            found[annotation["image_id"]].append(annotation)
        return found

    @cached_property
    def catToImgs(self) -> defaultdict[Any, list[Any]]:
        """Image ids, one an annotation, by category id."""
        found = defaultdict(list)
        for annotation in self.dataset["annotations"]:
            found[annotation["category_id"]].append(annotation["image_id"])
        return found

    def _listed(self, group: str) -> Any:
        """The records of ``images`` or ``categories``, without making those of the annotations."""
        apart = self._source is not None and "dataset" not in vars(self)
        return getattr(self._source, group) if apart else self.dataset[group]

    def columns(self) -> Rows | None:
        """The annotations as columns, where nobody can have changed them; else None."""
        if self._source is None or vars(self).keys() & {
            "dataset",
            "anns",
            "imgToAnns",
            "catToImgs",
        }:
            return None
        return self._source.rows

    # --- pycocotools' methods ---------------------------------------------------------------------
    # ---------------------------

    def createIndex(self) -> None:
        """Take up what was done to `dataset`."""
        if self._source is not None and "dataset" not in vars(self):
            print("creating index...")
            print("index created!")
        else:
            super().createIndex()

    def getImgIds(self, imgIds: Any = [], catIds: Any = []) -> list[Any]:  # noqa: B006
        """As pycocotools."""
        everything = all(hasattr(ids, "__len__") and len(ids) == 0 for ids in (imgIds, catIds))
        if everything and self._source is not None and not vars(self).keys() & {"dataset", "imgs"}:
            return list(self._source.image_ids)
        found: list[Any] = super().getImgIds(imgIds, catIds)
        return found

    def getCatIds(self, catNms: Any = [], supNms: Any = [], catIds: Any = []) -> list[Any]:  # noqa: B006
        """As pycocotools."""
        found: list[Any] = Official.getCatIds(
            _of_dict({"categories": self._listed("categories")}), catNms, supNms, catIds
        )
        return found

    def loadRes(self, resFile: Any) -> COCO:
        """Detections from a results file, a list of dicts, or an (N, 7) array."""
        begin = time.time()
        source = None
        if "dataset" in vars(self) and not {"images", "categories"} <= self.dataset.keys():
            pass  # pycocotools knows what that means
        elif type(resFile) is str:
            source = open_results(resFile, self.getImgIds(), self._whole_head())
        elif type(resFile) is np.ndarray:
            source = results_of_array(resFile, self.getImgIds(), self._whole_head())
        if source is None:
            return self._load_records(resFile)
        print("Loading and preparing results...")
        if type(resFile) is np.ndarray:
            print("Converting ndarray to lists...")
            print(resFile.shape)
            for i in range(0, len(resFile), 1_000_000):
                print(f"{i}/{len(resFile)}")
        print(f"DONE (t={time.time() - begin:0.2f}s)")
        results = COCO.__new__(COCO)
        results._source = source
        results.createIndex()
        return results

    def _whole_head(self) -> Any:
        """What makes the dataset without its annotations, as it is now."""
        if isinstance(self._source, Instances) and "dataset" not in vars(self):
            return self._source.head
        names = [name for name in ("info", "images", "categories") if name in self.dataset]
        return partial(dict, [(name, self.dataset[name]) for name in names])

    def _load_records(self, given: Any) -> COCO:
        """Detections by pycocotools' own loadRes, without making dicts of the truth's
        annotations.
        """
        truth = self
        if isinstance(self._source, Instances) and "dataset" not in vars(self):
            truth = _of_dict(self._source.head())
            truth.imgs = self.imgs
        results = COCO.__new__(COCO)
        results.__dict__ |= vars(Official.loadRes(truth, given))
        return results


def _of_dict(dataset: Mapping[str, Any]) -> Any:
    """An object of pycocotools for a dataset that needs no index."""
    coco = Official()
    coco.dataset = dataset
    return coco
