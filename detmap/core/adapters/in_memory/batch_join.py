"""Joins the checked rows of many batches to tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.in_memory import batches
from detmap.core.adapters.in_memory.batch_tables import Known
from detmap.core.adapters.in_memory.batches import FLAG_KEYS, Rows
from detmap.core.adapters.joining import unknown_policy
from detmap.core.base.immutable import view, vouched
from detmap.core.overlaps.shape_records import ShapeReader
from detmap.core.tables import Categories, Detections, Images, Note, Truth
from detmap.core.tables.notes import merged


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """The checked rows of B images.

    Parameters
    ----------
    ids : (B,) ids of the images
    found : the predictions; labels are positions of classes, or ids or names if classes come as
        they are
    objects : the targets; None if the ground truth is known in advance
    notes : on dropped predictions
    """

    ids: NDArray[Any]
    found: Rows
    objects: Rows | None = None
    notes: tuple[Note, ...] = ()

    def __len__(self) -> int:
        """The number of predictions and targets."""
        return len(self.found.boxes) + (0 if self.objects is None else len(self.objects.boxes))

    def labels(self) -> NDArray[Any]:
        """Returns the labels of all rows."""
        sides = [self.found.label, *([] if self.objects is None else [self.objects.label])]
        return np.concatenate([each for each in sides if len(each)] or sides[:1])

    def renumbered(self, by: int) -> Batch:
        """Adds a number to all image ids."""
        return replace(self, ids=self.ids + by)


@dataclass(eq=False)
class Joiner:
    """Joins checked rows to tables.

    Parameters
    ----------
    categories : classes of the labels, also of predictions without `truth`; None: they come as they
        are
    box_format : one of `box_conventions.IN_MEMORY`
    roles, attributes : keys of targets, with flags and numbers
    truth : known in advance, or None
    shapes : reader of the shapes that the protocol compares; None if it compares boxes
    """

    categories: Categories | None
    box_format: str
    roles: Sequence[str] = ()
    attributes: Sequence[str] = ()
    truth: Known | None = None
    shapes: ShapeReader | None = None

    def join(self, parts: Sequence[Batch]) -> Batch:
        """Returns one batch of the images of all; they are distinct."""
        if len(parts) == 1:
            return parts[0]
        objects = [part.objects for part in parts if part.objects is not None]
        return Batch(
            np.concatenate([part.ids for part in parts]),
            self._stacked([part.found for part in parts]),
            self._stacked(objects) if objects else None,
            merged(*(part.notes for part in parts)),
        )

    def _stacked(self, parts: Sequence[Rows]) -> Rows:
        count = np.concatenate([part.count for part in parts])
        full = [part for part in parts if len(part.boxes)] or parts[:1]
        shapes = None if self.shapes is None else self.shapes.join([each.shapes for each in full])
        return Rows(
            count,
            np.concatenate([part.boxes for part in full]),
            np.concatenate([part.label for part in full]),
            {key: np.concatenate([part.more[key] for part in full]) for key in full[0].more},
            shapes,
        )

    def tables(self, batch: Batch) -> tuple[Truth, Detections]:
        """Returns the tables of the images of a batch, by ascending id, and of the classes; classes
        that come as they are are those of the batch, by ascending id or name.
        """
        categories, found, objects = self.categories, batch.found, batch.objects
        if categories is None and objects is not None:
            categories, known = classes_of(batch.labels())
            used, there = np.unique(found.label), np.unique(objects.label)
            notes = unknown_policy.off_by_one(used, there, "predictions")
            batch = replace(batch, notes=(*batch.notes, *notes))
            found = replace(found, label=_places(known, found.label))
            objects = replace(objects, label=_places(known, objects.label))
        ids = np.sort(batch.ids)
        place = _places(ids, batch.ids)
        if self.truth is not None:
            truth = self.truth.select_images(self.truth.find(ids))
        else:
            assert objects is not None
            assert categories is not None
            truth = self._truth(ids, place, objects, categories)
        return truth, self._detections(truth, place, replace(batch, found=found))

    def truth_table(self, ids: NDArray[Any], objects: Rows) -> Truth:
        """Returns the ground truth of the targets of images with these ids; see `tables`."""
        categories = self.categories
        if categories is None:
            categories, known = classes_of(objects.label)
            objects = replace(objects, label=_places(known, objects.label))
        images = np.sort(ids)
        return self._truth(images, _places(images, ids), objects, categories)

    def detection_table(self, batch: Batch, truth: Truth) -> Detections:
        """Returns the predictions of a batch on all images of a ground truth that has them."""
        return self._detections(truth, _places(truth.images.ids, batch.ids), batch)

    def views(self, batch: Batch) -> tuple[Truth, Detections] | None:
        """Returns the boxes of a batch as tables that share its arrays, for one look: images have
        its order, and neither images nor classes are described. None for targets known in advance,
        and for names and 64-bit ids.
        """
        found, objects = batch.found, batch.objects
        if objects is None:
            return None
        labels = []
        for each in (found, objects):
            if each.label.dtype.kind == "U":
                return None
            labels.append(each.label.astype(np.int32))
            if (labels[-1] != each.label).any():
                return None
        place = np.arange(len(batch.ids), dtype=np.int32)
        box_format = batches.table_format(self.box_format)
        truth = view(
            Truth,
            image=np.repeat(place, objects.count),
            label=labels[1],
            boxes=objects.boxes,
            roles=objects.more,
            attributes={**objects.more, "area": self._area(objects)},
            box_format=box_format,
            source="targets",
        )
        detections = view(
            Detections,
            image=np.repeat(place, found.count),
            label=labels[0],
            boxes=found.boxes,
            score=found.more["scores"],
            box_format=box_format,
            shapes=None,
        )
        return truth, detections

    def _detections(self, truth: Truth, place: NDArray[np.int32], batch: Batch) -> Detections:
        """The predictions of images at these places."""
        found = batch.found
        detections = vouched(  # `Reader` has checked the rows
            Detections,
            images=truth.images,
            categories=truth.categories,
            image=np.repeat(place, found.count),
            label=found.label,
            boxes=found.boxes,
            score=found.more["scores"],
            box_format=batches.table_format(self.box_format),
            source="detections",
            notes=batch.notes,
            shapes=found.shapes,
            attributes={},
        )
        return _group_rows(detections)

    def _truth(
        self, ids: NDArray[Any], place: NDArray[np.int32], rows: Rows, categories: Categories
    ) -> Truth:
        unknown = np.full(len(ids), np.nan)
        attributes = {"area": self._area(rows)} | {key: rows.more[key] for key in self.attributes}
        truth = Truth(
            Images(ids, ("",) * len(ids), unknown, unknown),
            categories,
            image=np.repeat(place, rows.count),
            label=rows.label,
            boxes=rows.boxes,
            roles={key: rows.more[key] for key in (*FLAG_KEYS.values(), *self.roles)},
            attributes=attributes,
            box_format=batches.table_format(self.box_format),
            family="voc" if self.box_format == "voc" else "coco",
        )
        if self.shapes is not None:
            values = {key: _optional(rows.more[key]) for key in ("area", *self.shapes.more)}
            truth = self.shapes.complete(truth, rows.shapes, values, "targets[{}]".format)
        return _group_rows(truth)

    def _area(self, rows: Rows) -> NDArray[np.float64]:
        """The given areas; elsewhere those of the boxes."""
        voc = self.box_format == "voc"
        sides = rows.boxes[:, 2:] - rows.boxes[:, :2] + 1 if voc else rows.boxes[:, 2:]
        given = rows.more["area"]
        return np.where(np.isnan(given), sides[:, 0] * sides[:, 1], given)


def classes_of(labels: NDArray[Any]) -> tuple[Categories, NDArray[Any]]:
    """Returns the classes of ids or names, and the sorted ids or names."""
    known = np.unique(labels)
    numbers = known.dtype.kind != "U"
    ids = known if numbers else np.arange(len(known))
    return Categories(ids.astype(np.int64), tuple(map(str, known.tolist()))), known


def _places(known: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.int32]:
    return (
        np.searchsorted(known, labels).astype(np.int32)
        if len(labels)
        else labels[:0].astype(np.int32)
    )


def _optional(column: NDArray[np.float64]) -> list[float | None]:
    return [None if np.isnan(each) else each for each in column.tolist()]


Table = TypeVar("Table", Detections, Truth)


def _group_rows(table: Table) -> Table:
    """Sorts the rows of a table by image (stable)."""
    if (table.image[1:] >= table.image[:-1]).all():
        return table
    return table.take(np.argsort(table.image, kind="stable"))
