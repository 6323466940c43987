"""PASCAL VOC classification: a devkit folder (truth) and comp1/comp2 text (scores).

Source: the VOC devkit, VOCcode/VOCevalcls.m. A class's truth is its list
``ImageSets/Main/<class>_<split>.txt``, lines ``image flag``: 1 shows the class, -1 does not, 0
shows it only as difficult objects, and the image is left out. Where there is no list the flags
are made from the XML. An image that a result file does not name ranks last.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters import text_fields as text
from detmap.core.adapters.voc import devkit as voc
from detmap.core.base.open_files import shown
from detmap.core.tables import Note
from detmap.errors import DataError, few
from detmap.ranking.samples import Classified

FLAGS = {"1": 1, "+1": 1, "0": 0, "-1": -1}


def read(path: Path, results: Path, split: str | None = None) -> Classified:
    """A VOC folder and a folder of ``comp1_cls_<split>_<class>.txt`` or ``comp2_...`` files, lines
    ``image score``.

    The classes are those that have a list, in alphabetical order; without any list, those of the
    XML's objects. Each needs a result file. A result file without a list takes its truth from the
    XML.

    Raises
    ------
    DataError : a folder, list or file that is missing or broken, classes that differ, images that
        the ground truth lacks or a file names twice
    """
    root = voc.folder_with(
        path, "ImageSets/Main", "name a VOC folder such as VOCdevkit/VOC2007, or CSV files"
    )
    split = split or _default_split(root)
    files = _result_files(results, split)
    images, flags = _truth(root, split, files)
    classes = sorted(flags)
    _same_classes(root, results, classes, files)
    score = np.column_stack([_scores(files[name], images, root) for name in classes])
    flag = np.column_stack([flags[name] for name in classes])
    difficult, unscored = int((flag == 0).sum()), int(np.isneginf(score[flag != 0]).sum())
    notes = (
        Note(
            "difficult",
            "labels are difficult: the image is left out of the class",
            difficult,
            shown(root),
        ),
        Note(
            "without-score",
            "labels have no score: the image ranks last in the class",
            unscored,
            shown(results),
        ),
    )
    year = re.fullmatch(r"VOC([0-9]{4})", root.name)
    return Classified(
        tuple(images),
        tuple(classes),
        flag == 1,
        score,
        counted=flag != 0 if difficult else None,
        family="voc",
        year=int(year[1]) if year else 0,
        split=split,
        source=shown(root),
        notes=tuple(note for note in notes if note.count),
    )


# --- truth ----------------------------------------------------------------------------------------


def _default_split(root: Path) -> str:
    main = root / "ImageSets" / "Main"
    for split in ("test", "val"):
        if (main / f"{split}.txt").is_file() or any(main.glob(f"*_{split}.txt")):
            return split
    raise DataError(str(main), "no list of test or val", "name the split")


def _truth(
    root: Path, split: str, files: dict[str, Path]
) -> tuple[list[str], dict[str, NDArray[np.int8]]]:
    """Images in order of the lists, and each class's flags 1, 0, -1."""
    lists = sorted((root / "ImageSets" / "Main").glob(f"*_{split}.txt"))
    listed = {file.name.removesuffix(f"_{split}.txt"): _list(file) for file in lists}
    flags = {name: np.array(list(marks.values()), dtype=np.int8) for name, marks in listed.items()}
    images = list(next(iter(listed.values()))) if listed else []
    for file, (name, marks) in zip(lists, listed.items(), strict=True):
        if list(marks) != images:
            if marks.keys() != set(images):
                raise DataError(
                    str(file),
                    f"lists {len(marks)} images, not the {len(images)} of {lists[0].name}",
                    "every class of a split lists the same images",
                )
            flags[name] = np.array([marks[image] for image in images], dtype=np.int8)
    if not listed or files.keys() - listed.keys():
        drawn, flags_drawn = _from_xml(root, split)
        images = images or drawn
        place = {image: i for i, image in enumerate(drawn)}
        if place.keys() != set(images):
            raise DataError(
                str(lists[0]),
                f"lists {len(images)} images, not the {len(drawn)} of {split}.txt",
                "every class of a split lists the same images",
            )
        order = [place[image] for image in images]
        wanted = files.keys() if listed else flags_drawn.keys()
        flags |= {
            name: flags_drawn[name][order] for name in wanted - listed.keys() if name in flags_drawn
        }
    return images, flags


def _list(file: Path) -> dict[str, int]:
    """Image to flag, in file order."""
    marks: dict[str, int] = {}
    for line, (image, mark) in _pairs(file, "image flag"):
        if mark not in FLAGS:
            raise DataError(
                f"{file}: line {line}",
                f"flag {mark!r}",
                "1: shows the class; 0: difficult; -1: does not",
            )
        if image in marks:
            raise DataError(
                f"{file}: line {line}",
                f"image {image} for the second time",
                "list every image once",
            )
        marks[image] = FLAGS[mark]
    return marks


def _from_xml(root: Path, split: str) -> tuple[list[str], dict[str, NDArray[np.int8]]]:
    """The same flags from the objects: 1 for an ordinary
    one, else 0 for a difficult one, else -1.
    """
    truth = voc.read_truth(root, split)
    flag = np.full((len(truth.images), len(truth.categories)), -1, dtype=np.int8)
    flag[truth.image[truth.difficult], truth.label[truth.difficult]] = 0
    flag[truth.image[~truth.difficult], truth.label[~truth.difficult]] = 1
    drawn = np.unique(truth.label)  # a class that has only a list is not in the XML
    return list(truth.images.stems), {truth.categories.names[k]: flag[:, k] for k in drawn}


# --- results --------------------------------------------------------------------------------------


def _result_files(results: Path, split: str) -> dict[str, Path]:
    """Class to result file."""
    files = sorted(results.glob("comp*_cls_*.txt"))
    by_class: dict[str, Path] = {}
    for file in files:
        name = re.fullmatch(rf"comp[0-9]+(?:_.+)?_cls_{re.escape(split)}_(.+)\.txt", file.name)
        if not name:
            continue
        if name[1] in by_class:
            raise DataError(
                str(file),
                f"a second file for class {name[1]}, beside {by_class[name[1]].name}",
                "keep the files of one classifier in a folder",
            )
        by_class[name[1]] = file
    if not by_class:
        there = f"; there is {files[0].name}" if files else ""
        raise DataError(
            shown(results),
            f"no files such as comp1_cls_{split}_cat.txt{there}",
            "a folder of VOC classification results has one text file a class of the split",
        )
    return by_class


def _same_classes(root: Path, results: Path, classes: list[str], files: dict[str, Path]) -> None:
    missing, extra = sorted(set(classes) - files.keys()), sorted(files.keys() - set(classes))
    if missing or extra:
        sides = [f"no results of {few(missing)}"] if missing else []
        sides += [f"results of {few(extra)}, not in {root}"] if extra else []
        raise DataError(str(results), "; ".join(sides), f"one file for each of {few(classes)}")


def _scores(file: Path, images: list[str], root: Path) -> NDArray[np.float64]:
    """(N,) the score of each image, -inf where the file has none."""
    place = {image: i for i, image in enumerate(images)}
    score = np.full(len(images), np.nan)
    for line, (image, word) in _pairs(file, "image score"):
        where = f"{file}: line {line}"
        if image not in place:
            raise DataError(where, f"no image {image!r} in {root}", "give the results of one split")
        value = text.number(word)
        if value is None or not value < np.inf:
            raise DataError(
                where,
                f"{text.short(word)} is not a score",
                "write a number, or -inf for no prediction",
            )
        if not np.isnan(score[place[image]]):
            raise DataError(where, f"image {image} for the second time", "give one score an image")
        score[place[image]] = value
    return np.where(np.isnan(score), -np.inf, score)


def _pairs(file: Path, legal: str) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and the two words of each line that is not empty."""
    for line, words in text.lines(file):
        if len(words) != 2:
            raise DataError(
                f"{file}: line {line}",
                f"{len(words)} columns: {' '.join(words)[:60]!r}",
                f"a line is: {legal}",
            )
        yield line, words
