"""PASCAL VOC: a devkit folder (truth) and comp3/comp4 text (detections).

Boxes stay as they are written: x1, y1, x2, y2 of the first and last pixel, counted from 1.
"""

from __future__ import annotations

import difflib
import re
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap import opening
from detmap.adapters import joining, text, voc_scan
from detmap.errors import DataError
from detmap.parallel import in_order
from detmap.tables import Categories, Detections, Images, Note, Truth

DETECTION_FILE = re.compile(r"comp\d+(?:_.+)?_det_(?P<split>.+?)_(?P<name>.+)\.txt")


class _Object(NamedTuple):
    name: str
    box: tuple[float, float, float, float]
    difficult: bool | None


class _Page(NamedTuple):
    """One annotation file."""

    folder: str
    width: float
    height: float
    objects: list[_Object]


def read_truth(path: Path, split: str | None = None) -> Truth:
    """A VOC folder: ``Annotations/*.xml`` of the images that ``ImageSets/Main/<split>.txt`` lists.

    Source: the VOC devkit's annotation format. The classes are those of the split's objects and of
    the lists ``ImageSets/Main/<class>_<split>.txt``, in alphabetical order with ids from 1. An
    object's area is that of its box.

    Raises
    ------
    DataError : a folder, list or file that is missing or broken, an object without a box, a
        negative size
    """
    root = folder_with(path, "Annotations")
    split = split or _default_split(root)
    stems = _stems(root, split)
    files = [root / "Annotations" / f"{stem}.xml" for stem in stems]
    objects, year = scan_pages(root, files) or decode_pages(root, files)
    names = sorted({*objects.name, *_listed_classes(root, split)})
    label_of = {name: label for label, name in enumerate(names)}
    unflagged = int((objects.difficult < 0).sum())
    notes = (
        Note(
            "difficult-missing",
            "objects do not say whether they are difficult: read as 0",
            unflagged,
            str(root),
        ),
    )
    width, height = np.ascontiguousarray(objects.size.T)
    x1, y1, x2, y2 = objects.boxes.T
    return Truth(
        Images(np.array(stems, dtype=str), tuple(stems), width, height),
        Categories(np.arange(1, len(names) + 1, dtype=np.int64), tuple(names)),
        image=objects.page,
        label=np.array([label_of[name] for name in objects.name], dtype=np.int32),
        boxes=objects.boxes,
        roles={"difficult": objects.difficult > 0},
        attributes={"area": (x2 - x1 + 1) * (y2 - y1 + 1)},
        box_format="voc",
        family="voc",
        year=year,
        split=split,
        source=str(root),
        notes=notes if unflagged else (),
    )


def read_detections(path: Path, truth: Truth) -> Detections:
    """A folder of ``comp3_det_<split>_<class>.txt`` or ``comp4_...`` files, lines ``image score x1
    y1 x2 y2``.

    Source: the VOC devkit's detection results format. Files are read in order of their names; equal
    scores of a class keep the order of their lines.

    Raises
    ------
    DataError : no such files, a class that the truth does not have, a line that is not six columns,
        images that the truth lacks
    """
    files = _detection_files(path, truth)
    detections = scan_files(path, files, truth) or decode_files(path, files, truth)
    given = {label for _, label in files}
    missing = [name for label, name in enumerate(truth.categories.names) if label not in given]
    if not missing:
        return detections
    text = f"classes have no file, so no detections: {', '.join(missing)}"
    return replace(
        detections, notes=(*detections.notes, Note("file-missing", text, len(missing), str(path)))
    )


# --- two lanes ------------------------------------------------------------------------------------


def scan_pages(root: Path, files: list[Path]) -> tuple[voc_scan.Objects, int] | None:
    """The fast lane of annotation files: their objects and the year; None where a file is not
    plain.
    """
    objects = voc_scan.scan_pages(files)
    if objects is None:
        return None
    return objects, _year(root, _page(files[0]).folder)


def decode_pages(root: Path, files: list[Path]) -> tuple[voc_scan.Objects, int]:
    """The reference lane of annotation files: every legal file, and every error."""
    pages = [_page(file) for file in files]
    objects = [(p, obj) for p, page in enumerate(pages) for obj in page.objects]
    return voc_scan.Objects(
        np.array([(page.width, page.height) for page in pages]),
        np.array([p for p, _ in objects], dtype=np.int32),
        [obj.name for _, obj in objects],
        np.array([obj.box for _, obj in objects], dtype=np.float64).reshape(-1, 4),
        np.array(
            [-1 if obj.difficult is None else obj.difficult for _, obj in objects], dtype=np.int8
        ),
    ), _year(root, pages[0].folder)


def scan_files(path: Path, files: list[tuple[Path, int]], truth: Truth) -> Detections | None:
    """The fast lane of detection files: None where they are small, or one is not plain."""
    if truth.family != "voc" or sum(file.stat().st_size for file, _ in files) < voc_scan.LEAST_SIZE:
        return None
    stems = voc_scan.stems_table(truth.images.stems)
    columns = []
    for (_, label), rows in zip(
        files, in_order(lambda each: voc_scan.scan_lines(each[0], stems), files), strict=True
    ):
        if rows is None:
            return None
        columns.append((np.full(len(rows[0]), label, dtype=np.int32), *rows))
    labels, image, score, boxes = (np.concatenate(column) for column in zip(*columns, strict=True))
    return joining.joined(
        truth, image, labels, boxes, score, box_format="voc", origin=joining.Origin(str(path), str)
    )


def decode_files(path: Path, files: list[tuple[Path, int]], truth: Truth) -> Detections:
    """The reference lane of detection files: every legal file, and every error."""
    columns, places = [], []
    for file, label in files:
        lines, names, numbers = _lines(file)
        columns.append((names, np.full(len(names), label, dtype=np.int32), numbers))
        places.append((file, lines))
    named = [name for names, _, _ in columns for name in names]
    labels = np.concatenate([label for _, label, _ in columns])
    numbers = np.concatenate([values for _, _, values in columns])

    def place(row: int) -> str:
        file, line = [(file, line) for file, lines in places for line in lines][row]
        return f"{file}: line {line}, image"

    image = joining.images_by_stem(truth, named, str(path))
    return joining.joined(
        truth,
        image,
        labels,
        np.ascontiguousarray(numbers[:, 1:]),
        np.ascontiguousarray(numbers[:, 0]),
        box_format="voc",
        origin=joining.Origin(str(path), place, named),
    )


# --- truth ----------------------------------------------------------------------------------------


def folder_with(
    path: Path, content: str, fix: str = "name a VOC folder such as VOCdevkit/VOC2007"
) -> Path:
    """The folder that holds `content`: the given one, or the only year inside a VOCdevkit
    folder.
    """
    if (path / content).is_dir():
        return path
    years = sorted(inner for inner in path.iterdir() if (inner / content).is_dir())
    if len(years) == 1:
        return years[0]
    if years:
        raise DataError(
            str(path),
            f"holds {len(years)} data sets: {', '.join(inner.name for inner in years)}",
            f"name one, such as {years[0]}",
        )
    raise DataError(str(path), f"no folder {content}", fix)


def _default_split(root: Path) -> str:
    present = _splits(root)
    for split in ("test", "val"):
        if split in present:
            return split
    raise DataError(
        str(root / "ImageSets" / "Main"),
        "neither test.txt nor val.txt",
        f"name the split; there are {', '.join(present) or 'no lists at all'}",
    )


def _splits(root: Path) -> list[str]:
    return sorted(
        file.stem for file in (root / "ImageSets" / "Main").glob("*.txt") if "_" not in file.stem
    )


def _stems(root: Path, split: str) -> list[str]:
    """The split's image stems, ascending."""
    file = root / "ImageSets" / "Main" / f"{split}.txt"
    if not file.is_file():
        raise DataError(
            str(file), "no such split", f"there are {', '.join(_splits(root)) or 'no lists at all'}"
        )
    line_of: dict[str, int] = {}
    for line, words in text.lines(file):
        if words[0] in line_of:
            raise DataError(
                f"{file}: line {line}",
                f"image {words[0]} is listed twice, first in line {line_of[words[0]]}",
                "list every image once",
            )
        line_of[words[0]] = line
    if not line_of:
        raise DataError(str(file), "lists no image", "a split has one file stem a line")
    return sorted(line_of)


def _listed_classes(root: Path, split: str) -> set[str]:
    return {
        file.stem.removesuffix(f"_{split}")
        for file in (root / "ImageSets" / "Main").glob(f"*_{split}.txt")
    }


def _page(file: Path) -> _Page:
    try:
        data = opening.read_bytes(file)
        if b"<!ENTITY" in data:
            raise DataError(
                str(file),
                "defines XML entities, which no annotation needs",
                "write it without a DOCTYPE",
            )
        root = ElementTree.fromstring(data)
    except opening.MissingFileError:
        raise DataError(
            str(file), "missing, though the split lists it", "add the file or take it off the list"
        ) from None
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise DataError(str(file), f"not XML: {error}", "write or copy the file again") from None
    if root.tag != "annotation":
        raise DataError(
            str(file), f"the top element is <{root.tag}>, not <annotation>", "give VOC annotations"
        )
    size = root.find("size")
    width, height = (
        _number(file, f"size.{side}", size, side, np.nan) for side in ("width", "height")
    )
    objects = [_object(file, f"object[{i}]", node) for i, node in enumerate(root.findall("object"))]
    return _Page((root.findtext("folder") or "").strip(), width, height, objects)


def _object(file: Path, where: str, node: ElementTree.Element) -> _Object:
    name = (node.findtext("name") or "").strip()
    if not name:
        raise DataError(f"{file}: {where}.name", "missing", "every object names its class")
    box = node.find("bndbox")
    if box is None:
        raise DataError(
            f"{file}: {where}.bndbox",
            "missing",
            "every object has a bndbox with xmin, ymin, xmax, ymax",
        )
    corners = [
        _number(file, f"{where}.bndbox.{side}", box, side)
        for side in ("xmin", "ymin", "xmax", "ymax")
    ]
    x1, y1, x2, y2 = corners
    if x2 - x1 + 1 < 0 or y2 - y1 + 1 < 0:
        raise DataError(
            f"{file}: {where}.bndbox",
            f"{x1:g} {y1:g} {x2:g} {y2:g} has a negative width or height",
            "xmax and ymax are the last pixel, not less than xmin and ymin",
        )
    flag = (node.findtext("difficult") or "").strip()
    if flag not in ("", "0", "1"):
        raise DataError(
            f"{file}: {where}.difficult",
            f"{flag!r} is neither 0 nor 1",
            "write 0 or 1, or leave it out",
        )
    return _Object(name, (x1, y1, x2, y2), None if flag == "" else flag == "1")


def _number(
    file: Path,
    where: str,
    parent: ElementTree.Element | None,
    tag: str,
    default: float | None = None,
) -> float:
    text = None if parent is None else parent.findtext(tag)
    if text is None or not text.strip():
        if default is not None:
            return default
        raise DataError(f"{file}: {where}", "missing", "a bndbox has xmin, ymin, xmax and ymax")
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if not abs(number) <= joining.MAX_PIXEL:
        raise DataError(
            f"{file}: {where}",
            f"{text.strip()!r} is not a finite number",
            "write pixels as plain numbers",
        )
    return number


def _year(root: Path, folder: str) -> int:
    """The year in the folder's name, or in the annotations' own folder field; 0 where neither
    says.
    """
    for name in (root.absolute().name, root.resolve().name, folder):
        found = re.fullmatch(r"VOC(\d{4})", name)
        if found:
            return int(found.group(1))
    return 0


# --- detections -----------------------------------------------------------------------------------


def _detection_files(path: Path, truth: Truth) -> list[tuple[Path, int]]:
    """The detection files of the truth's split, with the class that each is about."""
    files = sorted(file for file in path.iterdir() if DETECTION_FILE.fullmatch(file.name))
    if not files:
        raise DataError(
            str(path),
            "no files such as comp4_det_test_aeroplane.txt",
            "a folder of VOC detections has one text file a class",
        )
    found: list[tuple[Path, str, int]] = []
    for file in files:
        tail = file.name.split("_det_", 1)[1].removesuffix(".txt")
        fitting = [i for i, name in enumerate(truth.categories.names) if tail.endswith(f"_{name}")]
        if not fitting:
            raise _unknown_class(file, truth)
        cuts = [(tail.removesuffix(f"_{truth.categories.names[i]}"), i) for i in fitting]
        found.append((file, *max(cuts, key=lambda cut: (cut[0] == truth.split, -len(cut[0])))))
    splits = sorted({split for _, split, _ in found})
    wanted = truth.split if truth.split in splits or len(splits) > 1 else splits[0]
    chosen = [(file, label) for file, split, label in found if split == wanted]
    if not chosen:
        lacking = f", not of {truth.split}" if truth.split else ""
        raise DataError(
            str(path),
            f"holds detections of the splits {', '.join(splits)}{lacking}",
            "give a folder with the files of the truth's split only",
        )
    seen: dict[int, Path] = {}
    for file, label in chosen:
        if label in seen:
            raise DataError(
                str(file),
                f"a second file for class {truth.categories.names[label]}, beside {seen[label].name}",
                "keep the files of one detector in a folder",
            )
        seen[label] = file
    return chosen


def _unknown_class(file: Path, truth: Truth) -> DataError:
    matched = DETECTION_FILE.fullmatch(file.name)
    name = matched["name"] if matched else file.stem
    close = difflib.get_close_matches(name, truth.categories.names, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return DataError(
        str(file),
        f"class {name!r} is not in {truth.source}",
        f"{hint}the classes are {', '.join(truth.categories.names)}; remove the file or list the class in "
        "ImageSets/Main/<class>_<split>.txt",
    )


def _lines(file: Path) -> tuple[list[int], list[str], NDArray[np.float64]]:
    """Line numbers, image names and (n, 5) score, x1, y1, x2, y2 of one file."""
    rows = list(text.lines(file))
    for line, words in rows:
        if len(words) != 6:
            raise DataError(
                f"{file}: line {line}",
                f"{len(words)} columns: {' '.join(words)[:60]!r}",
                "a line is: image score x1 y1 x2 y2",
            )
    try:
        found = [text.numbers(words[1:]) for _, words in rows]
    except ValueError:
        raise _not_a_number(file, rows) from None
    numbers = np.array(found, dtype=np.float64).reshape(-1, 5)
    if not ((np.abs(numbers[:, 1:]) <= joining.MAX_PIXEL).all() and np.isfinite(numbers).all()):
        raise _not_a_number(file, rows)
    negative = (numbers[:, 3:] - numbers[:, 1:3] + 1 < 0).any(axis=1)
    if negative.any():
        line, words = rows[int(np.argmax(negative))]
        raise DataError(
            f"{file}: line {line}",
            f"box {' '.join(words[2:])} has a negative width or height",
            "boxes are x1 y1 x2 y2, the last pixel not before the first",
        )
    return [line for line, _ in rows], [words[0] for _, words in rows], numbers


def _not_a_number(file: Path, rows: list[tuple[int, list[str]]]) -> DataError:
    for line, words in rows:
        for column, word in zip(("score", "x1", "y1", "x2", "y2"), words[1:], strict=True):
            number = text.number(word)
            most = sys.float_info.max if column == "score" else joining.MAX_PIXEL
            if number is None or not abs(number) <= most:
                return DataError(
                    f"{file}: line {line}, {column}",
                    f"{word!r} is not a finite number",
                    "write a plain number",
                )
    raise AssertionError("called for a file whose numbers are all finite")
