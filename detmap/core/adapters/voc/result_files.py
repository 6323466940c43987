"""Finds VOC detection files and their classes: ``comp4_det_<split>_<class>.txt``,
``det_<split>_<class>.txt``, or ``<class>.txt``.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from detmap.core.adapters import folder_files, text_fields
from detmap.core.adapters.joining import unknown_policy
from detmap.core.adapters.joining.unknown_policy import Policy
from detmap.core.adapters.text_per_image import label_files
from detmap.core.adapters.voc.folder_layout import readable
from detmap.core.base.open_files import shown
from detmap.core.tables import Note, Truth
from detmap.core.tables.notes import listed_names
from detmap.errors import DataError, few

_BEFORE = re.compile(r"^(?:comp[0-9]+(?:[-_].+?)?_)?det_")  # a dash: py-faster-rcnn's salt
DETECTION_FILE = re.compile(rf"{_BEFORE.pattern}(?P<split>.+?)_(?P<name>.+)\.(?i:txt)")
TEXT = ".txt"
NUMBERS = 5  # of a line, after the image: score and box
MOST_FRACTION = 2.0  # of a box in fractions of the image, which may lie outside of it


def looks(path: Path) -> int:
    """Scores a folder: 1 a folder, 3 a file has a devkit name."""
    return 3 if any(map(DETECTION_FILE.fullmatch, folder_files.names(path, TEXT))) else 1


def find(
    path: Path, truth: Truth, policy: Policy
) -> tuple[list[tuple[Path, int]], tuple[Note, ...]]:
    """Returns the detection files of the ground truth's split with their class (-1: to drop), and
    a note if they are of another split.
    """
    files = [file for file in _files(path) if DETECTION_FILE.fullmatch(file.name)]
    nested = folder_files.unread(path, TEXT)
    classes = policy.names_of_classes(truth)
    if not files and _are_named_by_classes(path, truth, classes):
        return _class_files(path, truth, policy), nested
    if not files:
        raise DataError(
            str(path),
            "no files such as comp4_det_test_aeroplane.txt",
            "a folder of VOC detections has one text file per class: name them "
            "comp4_det_test_CLASS.txt",
        )
    listed: list[tuple[Path, str, str]] = []
    strange: list[tuple[Path, str]] = []
    for file in files:
        tail = _BEFORE.sub("", file.stem, count=1)
        fitting = [name for name in classes if tail.endswith(f"_{name}")]
        if fitting:
            cuts = [(tail.removesuffix(f"_{name}"), name) for name in fitting]
            best = max(cuts, key=lambda cut: (cut[0] == truth.split, -len(cut[0])))
            listed.append((file, *best))
            continue
        own = truth.split and tail.startswith(f"{truth.split}_")
        split = truth.split if own else tail.partition("_")[0]
        listed.append((file, split, tail.removeprefix(f"{split}_")))
        strange.append((file, listed[-1][-1]))
    splits = sorted({split for _, split, _ in listed})
    wanted = truth.split if truth.split in splits or len(splits) > 1 else splits[0]
    named = [(file, name) for file, split, name in listed if split == wanted]
    chosen = [(file, classes.get(name, -1)) for file, name in named]
    if strange and policy.unknown == "error":
        raise _unknown_class(strange, truth)
    if not chosen:
        lacking = f", not of {truth.split}" if truth.split else ""
        raise DataError(
            str(path),
            f"holds detections of the splits {', '.join(splits)}{lacking}",
            "give a folder with the files of the ground truth's split only",
        )
    seen: dict[str, Path] = {}
    for file, name in named:
        if name in seen and name in classes:
            raise DataError(
                str(file),
                f"a second file for class {name}, beside {seen[name].name}",
                "keep only the files of one detector in a folder",
            )
        seen[name] = file
    if truth.split and wanted != truth.split:
        text = f"files are of the split {wanted}, and the ground truth is {truth.split}"
        names = listed_names(label for _, label in chosen)
        note = Note("split-other", text, len(chosen), shown(path), names, adding="names")
        return chosen, (note, *nested)
    return chosen, nested


def are_of_classes(path: Path, truth: Truth, policy: Policy) -> bool:
    """Checks if text files are named by classes and their lines begin with images.

    Raises `DataError` if they may as well be named by images, with lines that begin with classes.
    """
    classes = policy.names_of_classes(truth)
    if not _are_named_by_classes(path, truth, classes):
        return False
    stems, images = _stems(path), set(truth.images.stems)
    rows = label_files.look(path)
    names = {" ".join(words[:-NUMBERS]) for words in rows}
    if not rows or not (names & images or stems.isdisjoint(images)):
        return not rows
    if "" in names or not any(_is_pixel(word) for words in rows for word in words[-4:]):
        return False  # rows of fractions are YOLO's
    if stems | names <= images & classes.keys():
        what = "the format is ambiguous: voc, a file per class, and cartucho, a file per image"
        fix = "choose the format: --detections-format voc or cartucho"
        raise DataError(shown(path), f"{what}; classes and images have the same names", fix)
    return True


def _is_pixel(word: str) -> bool:
    number = text_fields.number(word)
    return number is not None and abs(number) > MOST_FRACTION


def _stems(path: Path) -> set[str]:
    return {name[: -len(TEXT)] for name in folder_files.names(path, TEXT)}


def _are_named_by_classes(path: Path, truth: Truth, classes: Mapping[str, int]) -> bool:
    """Checks that most text files are named by classes, and no other by an image."""
    stems = _stems(path)
    known = stems & classes.keys()
    return 2 * len(known) > len(stems) and not (stems - known) & set(truth.images.stems)


def _class_files(path: Path, truth: Truth, policy: Policy) -> list[tuple[Path, int]]:
    """Returns the files ``<class>.txt``."""
    label = policy.names_of_classes(truth)
    files = _files(path)
    strange = [(file, file.stem) for file in files if file.stem not in label]
    if strange and policy.unknown == "error":
        raise _unknown_class(strange, truth)
    return [(file, label.get(file.stem, -1)) for file in files]


def _files(path: Path) -> list[Path]:
    return sorted(map(readable, folder_files.listed(path, TEXT)))


def _unknown_class(strange: list[tuple[Path, str]], truth: Truth) -> DataError:
    """Returns the error for files of unknown classes."""
    file, name = strange[0]
    n = len(strange)
    others = f"; in all {n} files are of classes that it lacks: " if n > 1 else ""
    return DataError(
        str(file),
        f"class {name!r} is not in {truth.source}"
        f"{others}{few(name for _, name in strange) if n > 1 else ''}",
        f"{unknown_policy.nearest(name, truth.categories.names)}the classes are "
        f"{few(truth.categories.names)}; remove the file, list the class in "
        f"ImageSets/Main/<class>_<split>.txt, or {unknown_policy.FLAG}",
    )
