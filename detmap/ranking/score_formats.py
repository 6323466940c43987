"""Files of image-level classifiers: the formats, a row each, and the choice among them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from detmap.core.adapters import readable, registry
from detmap.core.base.open_files import shown
from detmap.errors import DataError
from detmap.ranking import csv_scores, voc_scores
from detmap.ranking.samples import Classified


@dataclass(frozen=True, slots=True)
class ScoreFormat:
    """A format of image-level classifiers: truth and scores, which are read together."""

    name: str
    place: registry.Place
    looks: registry.Looks
    read: Callable[..., Classified]
    options: tuple[str, ...] = ()


FORMATS: tuple[ScoreFormat, ...] = (
    ScoreFormat("csv", "a file", lambda path: int(not path.is_dir()), csv_scores.read),
    ScoreFormat(
        "voc", "a folder", lambda path: int(path.is_dir()), voc_scores.read, options=("split",)
    ),
)


def read(truth: str | Path, scores: str | Path, *, split: str | None = None) -> Classified:
    """What an image-level classifier is judged by, from files.

    Parameters
    ----------
    truth, scores : two CSV files; or a VOC folder (``VOCdevkit/VOC2007``) and a folder of
        ``comp1_cls_<split>_<class>.txt``
    split : of a VOC folder; ``test`` where present, else ``val``, when left out

    Raises
    ------
    DataError : what is wrong, in which file, line and column, and how to fix it
    """
    truth, scores = registry.checked_path(truth), registry.checked_path(scores)
    with readable(truth):
        row, _ = registry.choose_noted(FORMATS, truth, lambda row: row.looks)
        if truth.is_dir() != scores.is_dir():
            raise DataError(
                shown(scores),
                f"not {row.place}, while {shown(truth)} is one",
                "give two CSV files, or two folders of the VOC kind",
            )
        return row.read(truth, scores, **registry.told(row.name, row.options, truth, split=split))
