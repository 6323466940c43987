"""Reads batches as checked rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.in_memory import batch_keys, batch_shapes, batches
from detmap.core.adapters.in_memory.batch_join import Batch, Joiner
from detmap.core.adapters.in_memory.batch_tables import Known
from detmap.core.adapters.in_memory.batches import FLAG_KEYS, Fields, Rows
from detmap.core.adapters.joining import unknown_policy
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.tables import Note
from detmap.core.tables.grouping import Positions
from detmap.core.tables.notes import distinct
from detmap.errors import DataError, few

SOURCE = "predictions"


@dataclass(eq=False)
class Reader(Joiner):
    """Reads batches; a `Joiner` whose roles and attributes are required keys of targets.

    Parameters
    ----------
    policy : about images and classes that are not in the ground truth
    """

    policy: Policy = STRICT

    def __post_init__(self) -> None:
        if self.policy.class_names is not None and self.truth is None:
            raise DataError("class_names", "given without truth", "give them as classes=")
        ids = None if self.categories is None else self.categories.ids
        self._positions = None if ids is None else Positions(ids)
        self._predicted: tuple[Positions, NDArray[np.int32]] | None = None
        reader = self.shapes
        shapes = () if reader is None else (reader.field, reader.array or reader.field)
        both = {"boxes", "labels", "image_id", "orig_size", "box_format", *shapes}
        own = {"area", *FLAG_KEYS, *self.roles, *self.attributes}
        own.update(() if reader is None else reader.more)
        self._keys = frozenset(both | {"scores"}), frozenset(both | own)

    def read(
        self, ids: NDArray[Any], predicted: Sequence[Fields], annotated: Sequence[Fields]
    ) -> Batch:
        """Returns the rows of a batch; image i has ``ids[i]``.

        Raises `DataError` for invalid rows, misspelt keys, unknown images and unknown classes.
        """
        batch_keys.require_known("predictions", predicted, self._keys[0])
        sizes, like, objects = np.full((len(ids), 2), np.nan), None, None
        notes: tuple[Note, ...] = ()
        if self.truth is None:
            objects, sizes = self.read_targets(annotated, sizes)
            like = objects.shapes
        else:
            ids, predicted, sizes, notes = self._known(self.truth, ids, predicted, sizes)
            like = self.truth.table.shapes
        found, dropped = self._predictions(ids, predicted, sizes, like, objects)
        form = batches.table_format(self.box_format)
        odd = [
            batch_shapes.outside_boxes(where, rows.boxes, rows.shapes, form)
            for where, rows in (("predictions", found), ("targets", objects))
            if rows is not None
        ]
        return Batch(ids, found, objects, distinct(notes, dropped, *odd))

    def _known(
        self, truth: Known, ids: NDArray[Any], images: Sequence[Fields], sizes: NDArray[np.float64]
    ) -> tuple[NDArray[Any], Sequence[Fields], NDArray[np.float64], tuple[Note, ...]]:
        """Returns the images that are in the ground truth, their predictions, heights and widths,
        and notes on dropped ones.

        Raises `DataError` for unknown images, unless they are dropped.
        """
        position = truth.find(ids)
        has = position >= 0
        places = position[has]
        sizes = np.stack([truth.table.images.height, truth.table.images.width], axis=1)[places]
        found = truth.table.images.ids[places]
        if has.all():
            return found, images, sizes, ()
        lost = np.flatnonzero(~has).tolist()
        rows, _ = self._rows("predictions", [images[i] for i in lost], {"scores": None}, None)
        strange = ids[~has].tolist()
        if self.policy.unknown == "error":
            where, count = f"predictions[{lost[0]}].image_id", int(rows.count.sum())
            raise unknown_policy.refusal(where, "image", strange, count, truth.table, "on")
        dropped = unknown_policy.dropped("image", strange, int(rows.count.sum()), SOURCE)
        return found, [images[i] for i in np.flatnonzero(has).tolist()], sizes, dropped

    def _rows(
        self,
        where: str,
        images: Sequence[Fields],
        keys: Mapping[str, Any],
        sizes: NDArray[np.float64] | None,
        like: Any = None,
    ) -> tuple[Rows, NDArray[np.float64]]:
        """Returns the rows of a side with their shapes, and the images' heights and widths."""
        reader = self.shapes
        unknown = np.full((len(images), 2), np.nan)
        if reader is None or not images:
            return batches.read_rows(where, images, self.box_format, keys), unknown
        known = unknown if sizes is None else sizes
        shapes, count, sizes = batch_shapes.shapes_of(where, images, reader, known, like)
        form = self.box_format
        boxed = any("boxes" in image for image in images)
        if not boxed:
            around = reader.around if where == "predictions" else reader.around_objects
            table, form = batches.table_format(form), "voc" if form == "voc" else "xywh"
            images = batch_shapes.boxes_around(where, images, around(shapes), count, table)
        rows = batches.read_rows(where, images, form, keys)
        if rows.count.tolist() != count:
            i = int(np.argmax(rows.count != np.array(count)))
            what = f"{count[i]} {reader.field} for {rows.count[i]} boxes"
            raise DataError(f"{where}[{i}]", what, "give one per box")
        if boxed and where == "predictions" and reader.box_gives_area:
            sides = rows.boxes[:, 2:]
            shapes = replace(shapes, area=sides[:, 0] * sides[:, 1])  # type: ignore[type-var]
        return replace(rows, shapes=shapes), sizes

    def _predictions(
        self,
        ids: NDArray[Any],
        images: Sequence[Fields],
        sizes: NDArray[np.float64],
        like: Any,
        objects: Rows | None,
    ) -> tuple[Rows, tuple[Note, ...]]:
        """Returns the rows of predictions, and notes on dropped ones."""
        where = "predictions"
        rows, _ = self._rows(where, images, {"scores": None}, sizes, like)
        score = np.asarray(rows.more["scores"], dtype=np.float64)
        bad = ~np.isfinite(score)
        what = "{} is not a finite number"
        _refuse_first(bad, rows.count, (where, "scores"), score, what, "a score is a number")
        rows = replace(rows, more={"scores": score})
        if self.categories is None:
            return rows, ()
        label = self._predicted_label(rows.label)
        lost = label < 0
        if not lost.any():
            return replace(rows, label=label), ()
        strange = rows.label[lost].tolist()
        if self.policy.unknown == "error":
            i, row = batches.place_of(rows.count, lost)
            names = self.policy.class_names or {}
            named = [names.get(each, each) for each in strange]
            if objects is None:
                truth = self.truth.table  # type: ignore[union-attr]
            else:
                place = np.arange(len(ids), dtype=np.int32)
                truth = self._truth(np.arange(len(ids)), place, objects, self.categories)
            where = f"{where}[{i}].labels[{row}]"
            raise unknown_policy.refusal(where, "class", named, len(named), truth, "of")
        kept = replace(rows, label=label).take(~lost)
        names = self.policy.class_names or {}
        named = [names.get(each, each) for each in strange]
        return kept, unknown_policy.dropped("class", named, len(strange), SOURCE, self.categories)

    def _named(self, names: NDArray[np.str_]) -> NDArray[np.int32]:
        """Returns positions of classes by name, -1 if unknown."""
        assert self.categories is not None
        known = self.categories.names
        unique, inverse = np.unique(names, return_inverse=True)
        twice = [name for name in unique.tolist() if known.count(name) > 1]
        if twice:
            what = f"several classes are named {twice[0]!r}"
            raise DataError("labels", what, "give class ids")
        places = [known.index(name) if name in known else -1 for name in unique.tolist()]
        return np.array(places, dtype=np.int32)[inverse]

    def _predicted_label(self, given: NDArray[Any]) -> NDArray[np.int32]:
        """Returns positions of predicted classes, by id or name; -1 if unknown."""
        if given.dtype.kind == "U":
            return self._named(given)
        if self.truth is None:
            assert self._positions is not None
            return self._positions(given).astype(np.int32)
        if self._predicted is None:
            ids, labels = self.policy.class_ids(self.truth.table, "predictions.labels")
            labels = np.arange(len(ids), dtype=np.int32) if labels is None else labels
            # The last entry is the one that index -1 reads.
            self._predicted = Positions(ids), np.append(labels, np.int32(-1))
        positions, labels = self._predicted
        return labels[positions(given)]

    def read_targets(
        self, images: Sequence[Fields], sizes: NDArray[np.float64]
    ) -> tuple[Rows, NDArray[np.float64]]:
        """Returns the rows of targets, and the images' heights and widths. An area that is not
        given is NaN. Raises `DataError` for misspelt keys.
        """
        where = "targets"
        batch_keys.require_known(where, images, self._keys[1])
        extra = () if self.shapes is None else self.shapes.more
        optional = {"area": np.nan, **dict.fromkeys(FLAG_KEYS, 0), **dict.fromkeys(extra, np.nan)}
        asked = {
            key: missing
            for key, missing in optional.items()
            if any(key in image for image in images)
        }
        required = dict.fromkeys((*self.roles, *self.attributes))
        rows, sizes = self._rows(where, images, asked | required, sizes)
        for key in (*(key for key in FLAG_KEYS if key in asked), *self.roles):
            given = rows.more[key]
            bad, what = (given != 0) & (given != 1), "{} is not a flag"
            _refuse_first(bad, rows.count, (where, key), given, what, "flags are 0 or 1")
        n_rows = len(rows.boxes)
        area = np.asarray(rows.more.get("area", np.full(n_rows, np.nan)), dtype=np.float64)
        if "area" in asked:
            known = np.repeat(["area" in image for image in images], rows.count)
            bad = known & ~(np.isfinite(area) & (area >= 0))
            what, fix = "{} is negative or not a finite number", "areas are square pixels"
            _refuse_first(bad, rows.count, (where, "area"), rows.more["area"], what, fix)
        flags = {
            FLAG_KEYS.get(key, key): rows.more.get(key, np.zeros(n_rows)).astype(bool)
            for key in (*FLAG_KEYS, *self.roles)
        }
        named = {key: rows.more[key].astype(np.float64) for key in self.attributes}
        counts = {key: rows.more.get(key, np.full(n_rows, np.nan)) for key in extra}
        rows = replace(rows, more=flags | named | counts | {"area": area})
        return (rows if self.categories is None else self._labelled(where, rows)), sizes

    def _labelled(self, where: str, rows: Rows) -> Rows:
        assert self.categories is not None
        assert self._positions is not None
        if rows.label.dtype.kind == "U":
            label, fix = self._named(rows.label), f"the classes are {few(self.categories.names)}"
        else:
            label = self._positions(rows.label).astype(np.int32)
            fix = f"the class ids are {few(self.categories.ids.tolist())}"
        _refuse_first(label < 0, rows.count, (where, "labels"), rows.label, "no class {}", fix)
        return replace(rows, label=label)


def _refuse_first(
    bad: NDArray[np.bool_],
    count: NDArray[np.int64],
    place: tuple[str, str],
    values: NDArray[Any],
    what: str,
    fix: str,
) -> None:
    """Raises `DataError` for the first bad row, if any.

    `place` is the name of the batch and the key; `what` has ``{}`` for the row's value.
    """
    if bad.any():
        (where, key), (i, row) = place, batches.place_of(count, bad)
        raise DataError(f"{where}[{i}].{key}[{row}]", what.format(values[bad][0]), fix)
