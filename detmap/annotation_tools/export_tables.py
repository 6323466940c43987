"""Creates the tables of an export from its columns: images by file name, classes by name."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters import box_conventions, text_fields
from detmap.core.adapters.joining import image_names, image_sizes, join
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.adapters.tabular.column_tables import MOST_CLASSES
from detmap.core.adapters.tabular.csv_parquet import spelled
from detmap.core.base.flat_rows import first_true
from detmap.core.base.open_files import shown
from detmap.core.tables import Categories, Detections, Note, Truth
from detmap.errors import DataError

OWN_FLAGS = ("difficult", "crowd", "ignore")
"""Roles that are read even if they are not requested, as from CSV columns."""
_FLAGS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False, "": False}


@dataclass(frozen=True, slots=True, eq=False)
class Export:
    """The n boxes of I images, by column.

    Parameters
    ----------
    source : the path, for messages
    files : I names or paths of images
    sizes : (I,) widths and (I,) heights; NaN if unknown
    image : (n,) position in `files`
    classes : n class names
    boxes : (n, 4) numbers
    box_format : their convention, one of `box_conventions.FORMATS`
    place : the place of row i, for messages
    notes : what was left out or converted
    """

    source: str
    files: Sequence[str]
    sizes: image_sizes.Sizes
    image: Sequence[int]
    classes: Sequence[str]
    boxes: NDArray[np.float64]
    box_format: str
    place: Callable[[int], str]
    notes: tuple[Note, ...] = ()

    def truth(
        self,
        classes: Iterable[str] = (),
        roles: Mapping[str, NDArray[np.bool_]] | None = None,
        attributes: Mapping[str, NDArray[np.float64]] | None = None,
    ) -> Truth:
        """Returns the boxes as ground truth, with classes in alphabetical order and ids from 1.

        Parameters
        ----------
        classes : declared names, which may have no object
        roles, attributes : flags and numbers of the objects, by name
        """
        declared = list(classes)
        image_names.require_visible(self.files, lambda i: f"{self.source}: images[{i}]")
        image_names.require_visible(self.classes, self.place)
        image_names.require_visible(declared, lambda i: f"{self.source}: classes[{i}]")
        images, order = image_names.table(self.source, self.files, self.sizes)
        back = np.argsort(order).tolist()
        images = replace(images, files=tuple(self.files[i] for i in back))
        names = sorted({*self.classes, *declared})
        if len(names) > MOST_CLASSES:
            what = f"{len(names)} classes, the limit is {MOST_CLASSES}"
            raise DataError(self.source, what, "check the class names")
        label_of = {name: label for label, name in enumerate(names)}
        owner = order[np.array(self.image, dtype=np.int64)]
        boxes, table_format = box_conventions.table_boxes(
            self.boxes,
            self.box_format,
            sizes=(images.width[owner], images.height[owner]),
            place=self.place,
        )
        return Truth(
            images,
            Categories(np.arange(1, len(names) + 1), tuple(names)),
            image=owner,
            label=np.array([label_of[name] for name in self.classes], dtype=np.int32),
            boxes=boxes,
            roles=roles or {},
            attributes={**(attributes or {}), "area": box_conventions.areas(boxes, table_format)},
            box_format=table_format,
            family="coco",
            source=self.source,
            notes=self.notes,
            named=True,
        )

    def detections(
        self, truth: Truth, score: NDArray[np.float64], policy: Policy = STRICT
    ) -> Detections:
        """Returns the boxes as detections, joined by image name and class name."""
        names = [self.files[i] for i in self.image]
        image, joins = join.images_named(truth, names, self.place, self.source)
        bad = ~np.isfinite(score)
        if (row := first_true(bad)) is not None:
            raise DataError(self.place(row), "no finite score", "give every detection a score")
        boxes, table_format = box_conventions.table_boxes(
            self.boxes,
            self.box_format,
            sizes=box_conventions.sizes_of(truth, image),
            place=self.place,
        )
        return join.joined(
            truth,
            image,
            join.classes_by_id(truth, list(self.classes), self.source, policy),
            boxes,
            score,
            box_format=table_format,
            origin=join.Origin(self.source, self.place, names, self.classes),
            policy=policy,
            notes=(*self.notes, *joins),
        )


def notes(source: str, rows: Iterable[tuple[Any, ...]]) -> tuple[Note, ...]:
    """Returns notes of code, text, count and names, if any; none for what was not found."""
    every = (Note(code, text, count, source, *names) for code, text, count, *names in rows if count)
    return tuple(every)


def no_detections(path: Path, truth: Truth, policy: Policy = STRICT) -> NoReturn:
    """Raises the error for a format that has ground truth only."""
    del truth, policy
    fix = "give the detector's own output, such as COCO results or CSV with a column score"
    raise DataError(shown(path), "a file of annotations, without scores", fix)


def named_values(
    records: Sequence[Mapping[str, Any]],
    roles: Sequence[str],
    attributes: Sequence[str],
    place: Callable[[int], str],
) -> tuple[dict[str, NDArray[np.bool_]], dict[str, NDArray[np.float64]]]:
    """Returns the flags and numbers that some objects have by name; False and NaN if missing.

    Parameters
    ----------
    records : n, values of each object by name
    roles, attributes : requested names; `OWN_FLAGS` are always read
    place : the place of object i, for messages

    Raises `DataError` for values that are not flags or not numbers.
    """
    keys = {name for record in records for name in record}
    flags, numbers = {}, {}
    for role in (*OWN_FLAGS, *roles):
        for key in _same(role, keys):
            words = [str(record.get(key, "")).strip().lower() for record in records]
            bad = next((i for i, word in enumerate(words) if word not in _FLAGS), None)
            if bad is not None:
                what = f"{text_fields.short(words[bad])} is not a flag"
                raise DataError(f"{place(bad)}.{key}", what, "write true or false")
            flags[role] = np.array([_FLAGS[word] for word in words], dtype=bool)
    for name in attributes:
        for key in _same(name, keys):
            texts = [str(record.get(key, "")).strip() or "nan" for record in records]
            values = [text_fields.number(text) for text in texts]
            if None in values:
                row = values.index(None)
                what = f"{text_fields.short(texts[row])} is not a number"
                raise DataError(f"{place(row)}.{key}", what, "write a number, or leave it out")
            numbers[name] = np.array(values, dtype=np.float64)
    return flags, numbers


def _same(name: str, keys: Iterable[str]) -> list[str]:
    """Returns the key that is spelled like a name, with ``is`` before it or without."""
    wanted = (spelled(name), f"is{spelled(name)}")
    return sorted(key for key in keys if spelled(key) in wanted)[:1]


def sides(
    files: Sequence[str], width: Sequence[float], height: Sequence[float], source: str
) -> image_sizes.Sizes:
    """Returns the sizes of images; NaN stays unknown.

    Raises `DataError` for sizes that are not above 0 or too large.
    """
    sizes = np.array([width, height], dtype=np.float64).reshape(2, -1)
    bad = (~((sizes > 0) & (sizes <= image_sizes.MOST)) & ~np.isnan(sizes)).any(axis=0)
    if (row := first_true(bad)) is not None:
        what = f"a size of {sizes[0, row]:g} x {sizes[1, row]:g} pixels"
        raise DataError(f"{source}: image {files[row]}", what, "write the size of the image")
    return sizes[0].copy(), sizes[1].copy()
