"""Samples and their scores: what an image classifier is judged by."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.reprs import outlined
from detmap.core.tables import Note


@outlined
@dataclass(frozen=True, slots=True, eq=False)
class Classified:
    """Truth and scores of N samples in K classes: what an image classifier is judged by.

    Parameters
    ----------
    ids : N sample names, in the order of the ground truth
    classes : K class names, in the order of the ground truth
    positive : (N, K) bool, whether the sample shows the class
    score : (N, K) float64, finite or -inf (no prediction); higher means more confident
    counted : (N, K) bool, False where the ground truth leaves the sample out of the class (VOC:
        difficult); None where nothing is
    family : "csv" or "voc", the kind of files it came from
    year : of a VOC tree, 0 where unknown
    split : of a VOC tree, "" elsewhere
    source : the path of the ground truth, for messages
    notes : what the reader of the numbers should know about these data
    """

    ids: tuple[str, ...]
    classes: tuple[str, ...]
    positive: NDArray[np.bool_]
    score: NDArray[np.float64]
    counted: NDArray[np.bool_] | None = None
    family: Literal["csv", "voc"] = "csv"
    year: int = 0
    split: str = ""
    source: str = "truth"
    notes: tuple[Note, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)
