"""PASCAL VOC: a devkit folder (truth) and comp3/comp4 text (detections).

Boxes stay as they are written: x1, y1, x2, y2 of the first and last pixel, counted from 1.
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath

import numpy as np
from numpy.typing import NDArray

from detmap.adapters import joining, text, unknown, voc_scan, voc_xml
from detmap.adapters.unknown import STRICT, Policy
from detmap.errors import DataError, few
from detmap.opening import shown
from detmap.parallel import in_order
from detmap.tables import Categories, Detections, Images, Note, Truth

DETECTION_FILE = re.compile(r"comp[0-9]+(?:_.+)?_det_(?P<split>.+?)_(?P<name>.+)\.txt")


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
    odd = ~(objects.size > 0) & ~np.isnan(objects.size)
    width, height = np.ascontiguousarray(np.where(odd, np.nan, objects.size).T)
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
        source=shown(root),
        notes=_truth_notes(root, objects, int(odd.any(axis=1).sum())),
    )


def _truth_notes(root: Path, objects: voc_scan.Objects, odd_sizes: int) -> tuple[Note, ...]:
    found = [
        (
            "difficult-missing",
            "objects do not say whether they are difficult: read as 0",
            int((objects.difficult < 0).sum()),
        ),
        (
            "image-size-odd",
            "images give a width or height that is not above 0: taken as not given",
            odd_sizes,
        ),
        ("element-repeated", "XML elements are there again with the same content", objects.repeats),
    ]
    return tuple(Note(code, text, count, shown(root)) for code, text, count in found if count)


def read_detections(path: Path, truth: Truth, policy: Policy = STRICT) -> Detections:
    """A folder of ``comp3_det_<split>_<class>.txt`` or ``comp4_...`` files, lines ``image score x1
    y1 x2 y2``.

    Source: the VOC devkit's detection results format. Files are read in order of their names; equal
    scores of a class keep the order of their lines.

    Raises
    ------
    DataError : no such files, a class that the truth does not have, a line that is not six columns,
        images that the truth lacks
    """
    policy.refuse_class_names(shown(path))
    files = _detection_files(path, truth, policy)
    detections = scan_files(path, files, truth) or decode_files(path, files, truth, policy)
    given = {label for _, label in files}
    missing = [name for label, name in enumerate(truth.categories.names) if label not in given]
    if not missing:
        return detections
    text = f"classes have no file, so no detections: {few(missing)}"
    return replace(
        detections, notes=(*detections.notes, Note("file-missing", text, len(missing), shown(path)))
    )


# --- two lanes ------------------------------------------------------------------------------------


def scan_pages(root: Path, files: list[Path]) -> tuple[voc_scan.Objects, int] | None:
    """The fast lane of annotation files: their objects and the year; None where a file is
    handed back.
    """
    objects = voc_scan.scan_pages(files)
    if objects is None:
        return None
    return objects, _year(root, voc_xml.read_page(files[0]).folder)


def decode_pages(root: Path, files: list[Path]) -> tuple[voc_scan.Objects, int]:
    """The reference lane of annotation files: every legal file, and every error."""
    pages = [voc_xml.read_page(file) for file in files]
    objects = [(p, obj) for p, page in enumerate(pages) for obj in page.objects]
    return voc_scan.Objects(
        np.array([(page.width, page.height) for page in pages]),
        np.array([p for p, _ in objects], dtype=np.int32),
        [obj.name for _, obj in objects],
        np.array([obj.box for _, obj in objects], dtype=np.float64).reshape(-1, 4),
        np.array(
            [-1 if obj.difficult is None else obj.difficult for _, obj in objects], dtype=np.int8
        ),
        sum(page.repeats for page in pages),
    ), _year(root, pages[0].folder)


def scan_files(path: Path, files: list[tuple[Path, int]], truth: Truth) -> Detections | None:
    """The fast lane of detection files: None where they are small, or one is handed back."""
    size = sum(file.stat().st_size for file, _ in files)
    strange = any(label < 0 for _, label in files)
    if truth.family != "voc" or size < voc_scan.LEAST_SIZE or strange:
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
        truth,
        image,
        labels,
        boxes,
        score,
        box_format="voc",
        origin=joining.Origin(shown(path), str),
    )


def decode_files(
    path: Path, files: list[tuple[Path, int]], truth: Truth, policy: Policy = STRICT
) -> Detections:
    """The reference lane of detection files: every legal file, and every error."""
    columns, places, classes = [], [], []
    for file, label in files:
        lines, names, numbers = _lines(file)
        columns.append((names, np.full(len(names), label, dtype=np.int32), numbers))
        places.append((file, lines))
        classes += [file.name] * len(names)
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
        origin=joining.Origin(shown(path), place, named, classes),
        policy=policy,
    )


# --- truth ----------------------------------------------------------------------------------------


def folder_with(
    path: Path, content: str, fix: str = "name a VOC folder such as VOCdevkit/VOC2007"
) -> Path:
    """The folder that holds `content`: the given one,
    or the only year inside a VOCdevkit folder.
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
    if not file.exists():
        raise DataError(
            str(file), "no such split", f"there are {', '.join(_splits(root)) or 'no lists at all'}"
        )
    line_of: dict[str, int] = {}
    for line, words in text.lines(file):
        if not _is_inside(words[0]):
            raise DataError(
                f"{file}: line {line}",
                f"image {words[0]!r} is not the name of a file in Annotations",
                "name images by file stem, such as 000001",
            )
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


def _is_inside(stem: str) -> bool:
    """Whether a stem names a file in its folder, or in one below, on every system."""
    paths = PurePosixPath(stem), PureWindowsPath(stem)
    named = all(not path.anchor and ".." not in path.parts for path in paths)
    return named and all(character >= " " and character != "\x7f" for character in stem)


def _listed_classes(root: Path, split: str) -> set[str]:
    files = (root / "ImageSets" / "Main").glob(f"*_{split}.txt")
    return {_readable(file).stem.removesuffix(f"_{split}") for file in files}


def _readable(file: Path) -> Path:
    """The same file, whose name holds the name of a class."""
    if shown(file.name) != file.name:
        raise DataError(shown(file), "a class name that is not UTF-8", "rename the file")
    return file


def _year(root: Path, folder: str) -> int:
    """The year in the folder's name, or in the
    annotations' own folder field; 0 where neither says.
    """
    for name in (root.absolute().name, root.resolve().name, folder):
        found = re.fullmatch(r"VOC([0-9]{4})", name)
        if found:
            return int(found.group(1))
    return 0


# --- detections -----------------------------------------------------------------------------------


def _detection_files(path: Path, truth: Truth, policy: Policy = STRICT) -> list[tuple[Path, int]]:
    """The detection files of the truth's split, with the class that each is about; -1 where the
    truth lacks it and it shall be dropped.
    """
    files = sorted(
        _readable(file) for file in path.iterdir() if DETECTION_FILE.fullmatch(file.name)
    )
    if not files:
        raise DataError(
            str(path),
            "no files such as comp4_det_test_aeroplane.txt",
            "a folder of VOC detections has one text file a class",
        )
    found: list[tuple[Path, str, int]] = []
    strange: list[tuple[Path, str]] = []
    for file in files:
        tail = file.name.split("_det_", 1)[1].removesuffix(".txt")
        fitting = [i for i, name in enumerate(truth.categories.names) if tail.endswith(f"_{name}")]
        if fitting:
            cuts = [(tail.removesuffix(f"_{truth.categories.names[i]}"), i) for i in fitting]
            best = max(cuts, key=lambda cut: (cut[0] == truth.split, -len(cut[0])))
            found.append((file, *best))
            continue
        own = truth.split and tail.startswith(f"{truth.split}_")
        split = truth.split if own else tail.partition("_")[0]
        found.append((file, split, -1))
        strange.append((file, tail.removeprefix(f"{split}_")))
    splits = sorted({split for _, split, _ in found})
    wanted = truth.split if truth.split in splits or len(splits) > 1 else splits[0]
    chosen = [(file, label) for file, split, label in found if split == wanted]
    if strange and policy.unknown == "error":
        raise _unknown_class(strange, truth)
    if not chosen:
        lacking = f", not of {truth.split}" if truth.split else ""
        raise DataError(
            str(path),
            f"holds detections of the splits {', '.join(splits)}{lacking}",
            "give a folder with the files of the truth's split only",
        )
    seen: dict[int, Path] = {}
    for file, label in chosen:
        if label in seen and label >= 0:
            raise DataError(
                str(file),
                f"a second file for class {truth.categories.names[label]}, "
                f"beside {seen[label].name}",
                "keep the files of one detector in a folder",
            )
        seen[label] = file
    return chosen


def _unknown_class(strange: list[tuple[Path, str]], truth: Truth) -> DataError:
    """The error on files of classes that the truth lacks."""
    file, name = strange[0]
    n = len(strange)
    others = f"; in all {n} files are of classes that it lacks: " if n > 1 else ""
    return DataError(
        str(file),
        f"class {name!r} is not in {truth.source}"
        f"{others}{few(name for _, name in strange) if n > 1 else ''}",
        f"{unknown.nearest(name, truth.categories.names)}the classes are "
        f"{few(truth.categories.names)}; remove the file, list the class in "
        f"ImageSets/Main/<class>_<split>.txt, or {unknown.FLAG}",
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
                    f"{text.short(word)} is not a finite number",
                    "write a plain number",
                )
    raise AssertionError("called for a file whose numbers are all finite")
