"""Collects the boxes of an export, image by image, and creates its tables: images by file name,
classes by name.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap.annotation_tools import typed_json
from detmap.core.adapters import box_conventions, folder_files, text_fields
from detmap.core.adapters.joining import image_names, image_sizes, join
from detmap.core.adapters.joining.unknown_policy import Policy
from detmap.core.adapters.tabular.column_tables import MOST_CLASSES
from detmap.core.adapters.tabular.csv_parquet import spelled
from detmap.core.base.flat_rows import first_repeated, first_true
from detmap.core.base.open_files import shown
from detmap.core.tables import BoxFormat, Categories, Detections, Note, Truth
from detmap.core.tables.notes import listed_names
from detmap.errors import DataError

Record = TypeVar("Record")
Content = TypeVar("Content")
JSON, HOLDER = ".json", "give the folder that holds them"
Corners = tuple[float, float, float, float]
OWN_FLAGS = ("difficult", "crowd", "ignore")
"""Roles that are read even if they are not requested, as from CSV columns."""
_FLAGS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False, "": False}


class Boxes:
    """The boxes of an export, which are added one by one.

    Parameters
    ----------
    path : for messages
    box_format : one of `detmap.core.adapters.box_conventions.FORMATS`
    texts : of notes by code, in the order of the notes; others follow
    """

    def __init__(
        self, path: Path, box_format: str, texts: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.source, self.box_format, self.texts = shown(path), box_format, texts
        self.files: list[str] = []
        self.sizes: list[tuple[float | None, float | None]] = []
        self.image: list[int] = []
        self.classes: list[str] = []
        self.boxes: list[Sequence[float]] = []
        self.places: list[str] = []
        self.scores: list[float | None] = []
        self.values: list[Mapping[str, Any]] = []
        self.counts: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self.bare: list[str] = []
        self.unread: tuple[Note, ...] = ()

    def add_image(
        self, name: str, where: str, width: float | None = None, height: float | None = None
    ) -> None:
        """Adds an image; boxes that follow are on it."""
        if not image_names.stem(name.strip()):
            raise DataError(where, f"{name!r} is not the name of an image", "name its file")
        self.files.append(name.strip())
        self.sizes.append((width, height))

    def add(
        self,
        name: str,
        box: Sequence[float],
        where: str,
        score: float | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> None:
        """Adds a box on the last image; `values` are its flags and numbers by name."""
        if not name.strip():
            raise DataError(where, "no class", "give every box a class name")
        self.image.append(len(self.files) - 1)
        self.classes.append(name)
        self.boxes.append(box)
        self.places.append(where)
        self.scores.append(score)
        self.values.append(values or {})

    def place(self, row: int) -> str:
        """Returns the place of a box, for messages."""
        return self.places[row]

    def require(self, given: Content | msgspec.UnsetType, where: str) -> Content | tuple[()]:
        """Returns the records of the last image; notes a missing key, which may be misspelled."""
        if given is not msgspec.UNSET:
            return given
        self.bare.append(where)
        key = where.rpartition(".")[2]
        self.count("key-missing", f"images have no key {key}: read as images without objects")
        return ()

    def count(self, code: str, text: str = "", *, name: str = "") -> None:
        """Counts a record that a note reports; the note lists the names."""
        self.counts[code, text or self.texts[code]][name] += 1

    def json_files(self, folder: Path, fix: str = HOLDER) -> list[Path]:
        """Returns the JSON files of a folder, and counts those in its sub-folders."""
        self.unread += folder_files.unread(folder, JSON)
        return folder_files.required(folder, JSON, fix)

    def add_pictures(self, files: Iterable[Path], text: str) -> None:
        """Adds pictures that the export does not name, as images without objects; a note says
        `text`.
        """
        known = set(map(image_names.stem, self.files))
        for file in files:
            if file.stem not in known:
                self.add_image(file.name, self.source)
                self.count("images-unannotated", text)

    def complete_sizes(
        self, sizes_file: Path | None = None, folders: Iterable[Path] = ()
    ) -> image_sizes.Sizes:
        """Returns (I,) widths and (I,) heights; those that the export lacks are of a size file or
        of pictures, else NaN.

        Raises `DataError` for sizes that are not above 0 or too large.
        """
        sizes = np.array(self.sizes, dtype=np.float64).reshape(-1, 2)
        bad = (~((sizes > 0) & (sizes <= image_sizes.MOST)) & ~np.isnan(sizes)).any(axis=1)
        if (row := first_true(bad)) is not None:
            what = f"a size of {sizes[row, 0]:g} x {sizes[row, 1]:g} pixels"
            where = f"{self.source}: image {self.files[row]}"
            raise DataError(where, what, "write the size of the image")
        if self.bare and len(self.bare) == len(self.files):
            raise DataError(self.bare[0], "missing in all images", "write the key of the objects")
        if sizes_file is not None:
            read = image_sizes.from_path(sizes_file, [(name,) for name in self.files])
            sizes = np.column_stack(read)
        elif np.isnan(sizes).any():
            found = folder_files.pictures(folders, set(map(image_names.stem, self.files)))
            files = [found.get(image_names.stem(name)) for name in self.files]
            read = image_sizes.from_pictures(files)
            sizes = np.where(np.isnan(sizes), np.column_stack(read), sizes)
        self.sizes = [(width, height) for width, height in sizes.tolist()]
        return np.ascontiguousarray(sizes[:, 0]), np.ascontiguousarray(sizes[:, 1])

    def truth(
        self,
        classes: Iterable[str] = (),
        *,
        roles: Sequence[str] = (),
        attributes: Sequence[str] = (),
        flags: Mapping[str, Sequence[bool]] | None = None,
        sizes_file: Path | None = None,
        folders: Iterable[Path] = (),
    ) -> Truth:
        """Returns the boxes as ground truth, with classes in alphabetical order and ids from 1.

        Parameters
        ----------
        classes : declared names, which may have no object
        roles, attributes : names of flags and numbers to read
        flags : further flags of all boxes, by name
        sizes_file, folders : see `complete_sizes`
        """
        sizes = self.complete_sizes(sizes_file, folders)
        read, numbers = named_values(self.values, roles, attributes, self.place)
        read |= {role: np.array(given, dtype=bool) for role, given in (flags or {}).items()}
        declared = list(classes)
        image_names.require_visible(self.files, lambda i: f"{self.source}: images[{i}]")
        image_names.require_visible(self.classes, self.place)
        image_names.require_visible(declared, lambda i: f"{self.source}: classes[{i}]")
        images, order = image_names.table(self.source, self.files, sizes)
        back = np.argsort(order).tolist()
        images = replace(images, files=tuple(self.files[i] for i in back))
        names = sorted({*self.classes, *declared})
        if len(names) > MOST_CLASSES:
            what = f"{len(names)} classes, the limit is {MOST_CLASSES}"
            raise DataError(self.source, what, "check the class names")
        label_of = {name: label for label, name in enumerate(names)}
        image = order[np.array(self.image, dtype=np.int64)]
        boxes, table_format = self._table_boxes((images.width[image], images.height[image]))
        return Truth(
            images,
            Categories(np.arange(1, len(names) + 1), tuple(names)),
            image=image,
            label=np.array([label_of[name] for name in self.classes], dtype=np.int32),
            boxes=boxes,
            roles=read,
            attributes={**numbers, "area": box_conventions.areas(boxes, table_format)},
            box_format=table_format,
            family="coco",
            source=self.source,
            notes=self._notes(),
            named=True,
        )

    def detections(self, truth: Truth, policy: Policy) -> Detections:
        """Returns the boxes as detections, joined by image name and class name; each needs a
        score.
        """
        if None in self.scores:
            fix = "give the file of a detector, whose boxes have a score"
            raise DataError(self.place(self.scores.index(None)), "no confidence", fix)
        self.complete_sizes()
        names = [self.files[i] for i in self.image]
        image, joins = join.images_named(truth, names, self.place, self.source)
        score = np.array(self.scores, dtype=np.float64)
        if (row := first_true(~np.isfinite(score))) is not None:
            raise DataError(self.place(row), "no finite score", "give every detection a score")
        boxes, table_format = self._table_boxes(box_conventions.sizes_of(truth, image))
        return join.joined(
            truth,
            image,
            join.classes_by_id(truth, self.classes, self.source, policy),
            boxes,
            score,
            box_format=table_format,
            origin=join.Origin(self.source, self.place, names, self.classes),
            policy=policy,
            notes=(*self._notes(), *joins),
        )

    def array(self) -> NDArray[np.float64]:
        """Returns (n, 4) numbers of the boxes as written."""
        return np.array(self.boxes, dtype=np.float64).reshape(-1, 4)

    def _table_boxes(self, sizes: image_sizes.Sizes) -> tuple[NDArray[np.float64], BoxFormat]:
        return box_conventions.table_boxes(
            self.array(), self.box_format, sizes=sizes, place=self.place
        )

    def _notes(self) -> tuple[Note, ...]:
        place = {code: i for i, code in enumerate(self.texts)}
        kinds = sorted(self.counts, key=lambda kind: (place.get(kind[0], len(place)), kind))
        counted = []
        for code, text in kinds:
            names = self.counts[code, text]
            listed = listed_names(filter(None, names))
            counted.append(Note(code, text, names.total(), self.source, listed))
        return (*counted, *self.unread)


# --- flags and numbers ----------------------------------------------------------------------------


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


# --- images and classes ---------------------------------------------------------------------------


def with_class_ids(truth: Truth, names: Sequence[str], ids: NDArray[Any] | None = None) -> Truth:
    """Returns the ground truth with classes in this order; ids count from 0 by default.

    Raises `DataError` if a name occurs twice.
    """
    if (row := first_repeated(names)) is not None:
        what = f"class {names[row]!r} occurs twice"
        raise DataError(truth.source, what, "give each class one name")
    place = {name: i for i, name in enumerate(names)}
    order = np.array([place[name] for name in truth.categories.names], dtype=np.int32)
    ids = np.arange(len(names)) if ids is None else ids
    label = order[truth.label] if len(order) else truth.label
    return replace(truth, categories=Categories(ids, tuple(names)), label=label, named=False)


def with_image_ids(truth: Truth, ids: NDArray[np.int64]) -> Truth:
    """Returns the ground truth with these image ids, one per image in its order."""
    old = truth.images
    images, place = image_names.ordered(ids, old.stems, (old.width, old.height), old.files)
    return replace(truth, images=images, image=place[truth.image])


def around(points: Sequence[Sequence[float]], where: str, least: int = 2) -> Corners:
    """Returns left, top, right and bottom of points. Raises `DataError` for too few or others."""
    if len(points) < least or any(len(point) < 2 for point in points):
        what = f"{len(points)} points, or points without x and y"
        raise DataError(where, what, f"write at least {least} points of x and y")
    x, y = [point[0] for point in points], [point[1] for point in points]
    return min(x), min(y), max(x), max(y)


def entries(
    given: Mapping[str, msgspec.Raw], kind: type[Record], where: str, shape: str
) -> Iterator[tuple[str, str, Record]]:
    """Yields key, place and typed value of each entry of a JSON object.

    Parameters
    ----------
    given : the entries
    kind : the type of a value, of msgspec's structs
    where : the object, for messages
    shape : the type in words

    Raises `DataError` for values of other types.
    """
    for key, value in given.items():
        place = f"{where}[{key!r:.200}]"
        try:
            yield key, place, msgspec.json.decode(value, type=kind)
        except msgspec.ValidationError as error:
            raise typed_json.invalid(place, error, shape) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DataError(place, f"not JSON: {error}", shape) from None
