"""Checks that the columns of text without a header are those of its format.

All rows of a folder are judged together. A folder that fits another layout better is an error that
names it.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from detmap.core.tables import Note
from detmap.errors import DataError

SLACK = 0.01  # of an image: rounding moves a side by less
SHARE = 0.05  # of the boxes that leave their image in the layout of the format

LAST_TRACK_IDS = "the last column looks like track ids: write the confidence in its place"


def require_confidences(
    score: NDArray[np.float64], image: NDArray[np.int32], place: Callable[[int], str], fix: str
) -> None:
    """Raises `DataError` for scores that are track ids: whole numbers, each once per image.

    Parameters
    ----------
    score, image : (n,) of each row
    place : the place of row i, for messages
    fix : the layout that this looks like, and how to get the right one; percent are named too
    """
    if not len(score) or score.max() < 2 or (score != np.floor(score)).any() or score.min() < 0:
        return
    pairs = np.unique(np.stack([image.astype(np.float64), score]), axis=1).shape[1]
    if pairs < len(score):
        return
    row = int(np.argmax(score >= 2))
    what = f"{score[row]:g} in place of a confidence, and all {len(score)} are whole numbers"
    percent = "; if these are confidences in percent, divide them by 100" * int(score.max() <= 100)
    raise DataError(place(row), what, f"{fix}{percent}")


def require_score_first(
    score: NDArray[np.float64], last: NDArray[np.float64], place: Callable[[int], str], fix: str
) -> None:
    """Raises `DataError` for rows whose last number is the score, and the first a pixel.

    Parameters
    ----------
    last : (n,) the last number of each row
    """
    if is_score_first(score, last):
        return
    row = int(np.argmax(score > 1))
    what = f"the score is {score[row]:g}, and the last of the four numbers is {last[row]:g}"
    raise DataError(place(row), what, fix)


def is_score_first(score: NDArray[np.float64], last: NDArray[np.float64]) -> bool:
    """Checks that the last numbers of rows are no scores, or the first ones are."""
    if not len(score) or score.max() <= 1 or last.min() < 0 or last.max() > 1:
        return True
    return bool((last == np.floor(last)).all())


def require_centers(
    fractions: NDArray[np.float64], score: NDArray[np.float64], place: Callable[[int], str]
) -> None:
    """Raises `DataError` for YOLO rows whose second column is the confidence.

    Parameters
    ----------
    fractions : (n, 4) center and size of each row, by the layout of the format
    score : (n,) the last column
    """
    leaving = ~_inside(
        fractions[:, :2] - fractions[:, 2:] / 2, fractions[:, :2] + fractions[:, 2:] / 2
    )
    if leaving.sum() <= SHARE * len(leaving):
        return
    later = np.column_stack([fractions[:, 1:], score])  # the four numbers after the second column
    half = later[:, 2:] / 2
    if (later >= 0).all() and _inside(later[:, :2] - half, later[:, :2] + half).all():
        layout = "class confidence x_center y_center width height"
    elif _inside(later[:, :2], later[:, 2:]).all() and (later[:, :2] < later[:, 2:]).all():
        layout = "class confidence x1 y1 x2 y2"
    else:
        return
    n = int(leaving.sum())
    what = f"{n} of {len(leaving)} boxes leave their image; the columns look like: {layout}"
    fix = "write class x_center y_center width height confidence"
    raise DataError(place(int(np.argmax(leaving))), what, fix)


def _inside(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray(((low >= -SLACK) & (high <= 1 + SLACK)).all(axis=1))


def equal_scores(score: NDArray[np.float64], source: str) -> tuple[Note, ...]:
    """Returns a note on scores that are all 0 or 1: no confidence is."""
    if len(score) < 2 or not ((score == 0) | (score == 1)).all():
        return ()
    text = "scores are all 0 or 1, so they order little; check that the column is the confidence"
    return (Note("score-two-values", text, len(score), source),)
