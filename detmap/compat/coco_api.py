"""`COCO`: pycocotools' class with columns of large plain files, and dicts on first access."""

from __future__ import annotations

import copy
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from pycocotools.coco import COCO as Official

from detmap.compat.annotation_rows import Rows
from detmap.compat.annotation_sources import (
    Columns,
    Converted,
    Edited,
    Head,
    Instances,
    Results,
    open_instances,
    open_results,
    results_of_array,
)
from detmap.compat.class_stand_in import StandIn, is_ours, stands_in_for
from detmap.compat.lazy_attributes import Lazy, own_dict
from detmap.core.base import open_files
from detmap.errors import DataError

Tree = dict[str, Any]
Wanted = tuple[Sequence[Any], Sequence[Any] | None]
ANNOTATIONS = ("dataset", "anns", "imgToAnns", "catToImgs")
EVERYTHING = (*ANNOTATIONS, "imgs", "cats")


@stands_in_for(Official)
class COCO(Lazy, Official, metaclass=StandIn):  # type: ignore[misc]
    """Annotations of a dataset, or detections on it.

    Parameters
    ----------
    annotation_file : an instances file, or its content as a dict; none by default
    """

    _source: Instances | Results | Columns | None = None

    def __init__(self, annotation_file: Any = None) -> None:
        super().__init__()
        if annotation_file is None:
            return
        if isinstance(annotation_file, dict):
            self.dataset = annotation_file
            self.createIndex()
            return
        print("loading annotations into memory...")
        begin = time.time()
        source = open_instances(annotation_file)
        dataset: Any = None
        if source is None:
            with open(annotation_file, opener=open_files.regular) as file:
                dataset = open_files.parse_json(file.read(), open_files.shown(annotation_file))
            if type(dataset) is not dict:  # no `assert`: pytest would add to its text
                raise AssertionError(f"annotation file format {type(dataset)} not supported")
        print(f"Done (t={time.time() - begin:0.2f}s)")
        if source is None:
            self.dataset = dataset
        else:
            self._take_from(source)
        self.createIndex()

    @classmethod
    def from_columns(cls, source: Columns) -> COCO:
        """Returns annotations that are columns until a dict is read."""
        made = cls()
        made._take_from(source)
        return made

    def _take_from(self, source: Instances | Results | Columns) -> None:
        self._source = source
        self._wait_for(*EVERYTHING)

    def _make(self, name: str) -> None:
        """Creates all dicts at once; records of images and categories alone need no annotations."""
        assert self._source is not None
        if name in ("imgs", "cats") and self._waits_for(*ANNOTATIONS):
            self._fill(
                {
                    "imgs": _index_by_id(self._source.images),
                    "cats": _index_by_id(self._source.categories),
                }
            )
            return
        self._fill(_indexed(self._source.dataset()))

    def columns(self, *, scored: bool) -> Rows | None:
        """The annotations as columns, with scores if `scored`; None if they may have changed."""
        if self._source is None or not self._waits_for(*ANNOTATIONS):
            return None
        return None if scored and isinstance(self._source, Instances) else self._source.rows

    def shaped_columns(self, kind: str, wanted: Wanted, *, scored: bool) -> Rows | None:
        """The annotations with masks or keypoints, `kind`, as columns; None as in `columns`.

        Evaluated segmentations become run lengths, also in dicts that are made later.

        wanted : ids of the images and categories that are evaluated, None for all categories
        """
        if self.columns(scored=scored) is None or isinstance(self._source, Columns):
            return None
        if isinstance(self._source, Results):
            return self._source.shaped(kind)
        assert self._source is not None
        sizes = {key: (each.get("height"), each.get("width")) for key, each in self.imgs.items()}
        rows = self._source.shaped(kind, sizes)
        if rows is not None and kind == "segm":
            self._source.converted.append(Converted(*wanted, sizes))
        return rows

    # --- pycocotools' methods ---------------------------------------------------------------------

    def createIndex(self) -> None:
        """Applies changes of `dataset`."""
        if self._waits_for("dataset") and self._shared is None:
            self._wait_for(*EVERYTHING)
            print("creating index...")
            print("index created!")
        else:
            super().createIndex()

    def getImgIds(self, imgIds: Any = [], catIds: Any = []) -> list[Any]:  # noqa: B006
        """Same as pycocotools."""
        everything = all(hasattr(ids, "__len__") and len(ids) == 0 for ids in (imgIds, catIds))
        if everything and self._source is not None and self._waits_for("imgs"):
            return list(self._source.image_ids)
        chosen: list[Any] = super().getImgIds(imgIds, catIds)
        return chosen

    def getCatIds(self, catNms: Any = [], supNms: Any = [], catIds: Any = []) -> list[Any]:  # noqa: B006
        """Same as pycocotools."""
        ask: Any = super()
        if self._source is not None and self._waits_for("dataset"):
            ask = Official()
            ask.dataset = {"categories": self._source.categories}
        chosen: list[Any] = ask.getCatIds(catNms, supNms, catIds)
        return chosen

    def loadRes(self, resFile: Any) -> COCO:
        """Loads detections from a results file, a list of dicts, or an (N, 7) array."""
        begin = time.time()
        if isinstance(resFile, os.PathLike):
            return self.loadRes(os.fspath(resFile))
        if _is_empty(resFile):
            return self._load_nothing()
        head = self._head()
        source = None
        if head is None:
            pass  # pycocotools knows what that means
        elif type(resFile) is str:
            with suppress(OSError, ValueError):  # pycocotools meets those too
                os.close(open_files.regular(resFile, os.O_RDONLY))
            source = open_results(resFile, self.getImgIds(), head)
        elif type(resFile) is np.ndarray:
            source = results_of_array(resFile, self.getImgIds(), head)
        if source is None:
            return self._load_records(resFile)
        print("Loading and preparing results...")
        if type(resFile) is np.ndarray:
            print("Converting ndarray to lists...")
            print(resFile.shape)
            for i in range(0, len(resFile), 1_000_000):
                print(f"{i}/{len(resFile)}")
        print(f"DONE (t={time.time() - begin:0.2f}s)")
        results = COCO()
        results._take_from(source)
        results.createIndex()
        return results

    def _load_nothing(self) -> COCO:
        """Results without detections."""
        head = self._head()
        print("Loading and preparing results...")
        print("DONE (t=0.00s)")
        results = COCO()
        if head is None:
            results.dataset = {"images": list(self.dataset["images"]), "annotations": []}
        else:
            images, categories = list(head.truth.images), list(head.categories)
            results.dataset = {"info": head.truth.info, "images": images, "annotations": []}
            results.dataset["categories"] = categories
        results.createIndex()
        return results

    def _head(self) -> Head | None:
        """What results copy from this dataset as it is now; None if something is missing."""
        if isinstance(self._source, Instances) and self._waits_for("dataset"):
            return Head(self._source, copy.deepcopy(self._source.categories))
        if not {"images", "categories"} <= self.dataset.keys():
            return None
        info = copy.deepcopy(self.dataset.get("info", {}))
        edited = Edited(list(self.dataset["images"]), info)
        return Head(edited, copy.deepcopy(self.dataset["categories"]))

    def _load_records(self, given: Any) -> COCO:
        """Runs pycocotools' loadRes without creating dicts of the annotations."""
        truth = self
        if isinstance(self._source, Instances) and self._waits_for("dataset"):
            truth = Official()
            truth.dataset, truth.imgs = self._source.without_annotations(), self.imgs
        results = COCO()
        own_dict(results).update(vars(Official.loadRes(truth, given)))
        return results


def _is_empty(given: Any) -> bool:
    """Whether these results are an empty list, array or file of a list."""
    if isinstance(given, str):
        try:
            small = os.stat(given).st_size < 64
            return small and open_files.read_bytes(given).split() in ([b"[]"], [b"[", b"]"])
        except (OSError, ValueError, DataError):
            return False  # pycocotools meets them too
    if type(given) is np.ndarray:
        return given.ndim == 2 and given.shape == (0, 7)
    return type(given) is list and not given


def columns_of(coco: Any, *, scored: bool) -> Rows | None:
    """`COCO.columns` of a `COCO` of this package; None for any other."""
    return COCO.columns(coco, scored=scored) if is_ours(coco, COCO) else None


def shaped_columns_of(coco: Any, kind: str, wanted: Wanted, *, scored: bool) -> Rows | None:
    """`COCO.shaped_columns` of a `COCO` of this package; None for any other."""
    if not is_ours(coco, COCO):
        return None
    return COCO.shaped_columns(coco, kind, wanted, scored=scored)


def _indexed(dataset: Tree) -> Tree:
    """The dataset and all its indexes, by pycocotools' names."""
    image_annotations, category_images = defaultdict(list), defaultdict(list)
    for annotation in dataset["annotations"]:
        image_annotations[annotation["image_id"]].append(annotation)
        category_images[annotation["category_id"]].append(annotation["image_id"])
    return {
        "dataset": dataset,
        "anns": _index_by_id(dataset["annotations"]),
        "imgToAnns": image_annotations,
        "catToImgs": category_images,
        "imgs": _index_by_id(dataset["images"]),
        "cats": _index_by_id(dataset["categories"]),
    }


def _index_by_id(records: Iterable[Tree]) -> Tree:
    return {record["id"]: record for record in records}
