"""Reads text files of two metric tools, one file per image: Cartucho's mAP and rafaelpadilla's.

A ground truth line is ``class a b c d``, a detection line ``class score a b c d``. Cartucho's
numbers are left, top, right and bottom, last pixel included; a ground truth line may end with
``difficult``.
rafaelpadilla's convention is a command-line option there (``-gtformat``, ``-detformat``,
``-gtcoords``, ``-detcoords``) and here.

Source: Cartucho/mAP main.py (3605865); rafaelpadilla/Object-Detection-Metrics pascalvoc.py and
lib/BoundingBox.py (dcb285e). That tool rounds relative boxes to whole pixels; detmap does not.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from detmap.core.adapters import box_conventions, folder_files
from detmap.core.adapters.joining import image_sizes, join
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.adapters.text_per_image import column_layouts, label_files
from detmap.core.base.open_files import shown
from detmap.core.tables import Categories, Detections, Images, Note, Truth
from detmap.errors import DataError

SIDES = ("number 1 of the box", "number 2 of the box", "number 3 of the box", "number 4 of the box")
DIFFICULT = "difficult"
INCLUSIVE = {"xywh": "voc xywh", "xyxy": "voc"}
"""Box formats in continuous pixels, and what the tools mean by these names."""
SCORE_LAST = "it looks like class a b c d score: write class score a b c d, the score in column 2"
TRACK_IDS = (
    "column 2 looks like track ids (class id a b c d): write the confidence in its place, "
    "class score a b c d"
)


@dataclass(frozen=True, slots=True)
class Tool:
    """The differences between the tools.

    Parameters
    ----------
    name : of the format
    folders : its names for the folders of truth and of detections, today's first
    box_format : of its lines; None if the caller must specify it
    """

    name: str
    folders: tuple[tuple[str, ...], tuple[str, ...]]
    box_format: str | None

    def truth_looks(self, path: Path) -> int:
        """See `detmap.core.adapters.format_rows.Looks`."""
        return self._looks(path, 0)

    def detections_look(self, path: Path) -> int:
        """See `detmap.core.adapters.format_rows.Looks`."""
        return self._looks(path, 1)

    def _looks(self, path: Path, kind: int) -> int:
        """Scores a folder by its lines; its name distinguishes the tools."""
        if not path.is_dir() or any("_det_" in name for name in folder_files.names(path, ".txt")):
            return 0
        rows = label_files.look(path)
        if not rows or not all(_fits(words, kind) for words in rows):
            return 0
        name = path.resolve().name
        marks = [DIFFICULT for words in rows if kind == 0 and words[-1] == DIFFICULT]
        if name in self.folders[kind] or (marks and self is CARTUCHO):
            return 2
        other = any(name in tool.folders[kind] for tool in (CARTUCHO, RAFAELPADILLA))
        numbers = all(label_files.are_numbers(words) for words in rows)  # ids: of another format
        return 0 if marks else 1 if other or numbers else 2

    def read_truth(
        self, path: Path, box_format: str | None = None, image_sizes: Path | None = None
    ) -> Truth:
        """Reads a folder of truth. Raises `DataError` for invalid lines or a missing box format."""
        box_format = self._box_format(path, box_format)
        notes = self._convention(path, box_format, "truth")
        files = label_files.required(path)
        lines = label_files.read(files)
        difficult = lines.count == 6
        difficult[difficult] = [
            word == DIFFICULT for word in lines.take(np.flatnonzero(difficult)).column(5)
        ]
        fix = "a line is: class a b c d (difficult may follow); a class is one word"
        lines.refuse(lines.count != 5 + difficult, fix)
        stems = [file.stem for file in files]
        width, height = _sizes(stems, image_sizes)
        boxes, table_format = box_conventions.table_boxes(
            lines.numbers(SIDES, 1),
            box_format,
            sizes=(width[lines.file], height[lines.file]),
            place=lines.place,
        )
        names = lines.column(0)
        known = sorted(names.names)
        return Truth(
            Images(np.array(stems, dtype=str), tuple(stems), width, height),
            Categories(np.arange(1, len(known) + 1, dtype=np.int64), tuple(known)),
            image=lines.file,
            label=names.positions({name: label for label, name in enumerate(known)}),
            boxes=boxes,
            roles={"difficult": difficult},
            attributes={"area": box_conventions.areas(boxes, table_format)},
            box_format=table_format,
            family="voc",
            source=shown(path),
            notes=(*notes, *label_files.unread(path)),
        )

    def read_detections(
        self, path: Path, truth: Truth, box_format: str | None = None, policy: Policy = STRICT
    ) -> Detections:
        """Reads a folder of detections; see `read_truth`."""
        box_format = self._box_format(path, box_format)
        lines = label_files.read(label_files.required(path, label_files.NO_DETECTIONS))
        fix = "a line is: class score a b c d (6 words); a class is one word"
        lines.refuse(lines.count != 6, fix)
        stems, names = lines.stems(), lines.column(0)
        image = join.images_by_stem(truth, stems, shown(path), policy.file_key)
        numbers = lines.numbers(("score", *SIDES), 1)
        score = np.ascontiguousarray(numbers[:, 0])
        column_layouts.require_score_first(score, numbers[:, 4], lines.place, SCORE_LAST)
        column_layouts.require_confidences(score, lines.file, lines.place, TRACK_IDS)
        boxes, table_format = box_conventions.table_boxes(
            numbers[:, 1:],
            box_format,
            sizes=box_conventions.sizes_of(truth, image),
            place=lines.place,
        )
        return join.joined(
            truth,
            image,
            join.classes_by_id(truth, names, shown(path), policy),
            boxes,
            score,
            box_format=table_format,
            origin=join.Origin(shown(path), lines.place, stems, names),
            policy=policy,
            notes=(
                *self._convention(path, box_format, "detections"),
                *column_layouts.equal_scores(score, shown(path)),
                *label_files.unread(path),
            ),
        )

    def _convention(self, path: Path, box_format: str, kind: str) -> tuple[Note, ...]:
        """Returns a note on boxes that are read without the last pixel, which the tool counts."""
        if box_format not in INCLUSIVE:
            return ()
        own = INCLUSIVE[box_format]
        text = f"boxes are read as {box_format}, in continuous pixels; this tool counts the last "
        text += f"pixel as part of the box: for its numbers use --{kind}-box-format '{own}'"
        return (Note("box-convention", text, 1, shown(path)),)

    def _box_format(self, path: Path, given: str | None) -> str:
        if given is None and self.box_format is None:
            raise DataError(
                shown(path),
                "the box format is an option of this tool and is missing here",
                "choose it with --truth-box-format, --detections-box-format or box_format=, "
                f"one of: {', '.join(box_conventions.FORMATS)}; -gtformat xyrb is voc, "
                "xywh is voc xywh, and relative is normalized cxcywh",
            )
        return box_conventions.require(given or self.box_format)


CARTUCHO = Tool("cartucho", (("ground-truth",), ("detection-results", "predicted")), "voc")
RAFAELPADILLA = Tool("rafaelpadilla", (("groundtruths",), ("detections",)), None)


def _sizes(stems: list[str], path: Path | None) -> image_sizes.Sizes:
    if path is None:
        return box_conventions.unknown_sizes(len(stems))
    return image_sizes.from_path(path, [(stem,) for stem in stems])


def _fits(words: list[str], kind: int) -> bool:
    if kind == 0 and len(words) == 6 and words[-1] == DIFFICULT:
        words = words[:-1]
    return len(words) == 5 + kind and label_files.are_numbers(words[1:])
