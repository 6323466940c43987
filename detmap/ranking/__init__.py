"""Ranking metrics for image-level classifiers and retrieval, with the curves and AP interpolations
of detection.

Defaults are scikit-learn's where it has the metric: tied samples share a threshold, AP is the step
sum, AUC counts ties half, arrays of curves have the same order and end points. Differences:

- ``roc_curve`` returns every distinct score, as with ``drop_intermediate=False``
- without positives recall is NaN, not 1, and AP is NaN, not 0; a mean leaves such classes out;
  ``undefined="zero"`` counts them as 0, as scikit-learn does (an undefined AUC makes its mean NaN)
- precision at a threshold that no sample reaches is NaN (0/0); in a mean ``undefined`` decides,
  as ``zero_division`` does there
- labels are 0/1 or bool, or `pos_label` is the positive one; {-1, 1} needs it
- a score of -inf means "no prediction" and ranks last; NaN and inf are errors

>>> from detmap import ranking
>>> float(ranking.average_precision([0, 0, 1, 1], [0.4, 0.1, 0.8, 0.35]))  # doctest: +ELLIPSIS
0.8333...
"""

from detmap.ranking.label_inputs import from_arrays
from detmap.ranking.metrics import (
    AVERAGES,
    INTEGRATORS,
    TIES,
    UNDEFINED,
    PrecisionRecall,
    Roc,
    auc,
    average_precision,
    precision_recall_curve,
    roc_curve,
)
from detmap.ranking.ranking_result import RankingResult, evaluate
from detmap.ranking.ranking_rules import PROTOCOLS, Rules
from detmap.ranking.retrieval import (
    average_precision_at_k,
    mean_average_precision_at_k,
    precision_at_k,
    recall_at_k,
)
from detmap.ranking.score_formats import read
from detmap.ranking.thresholds import (
    AtThreshold,
    Confusion,
    OperatingPoint,
    best_f_beta,
    confusion,
    operating_point,
    threshold_for_precision,
    threshold_for_recall,
)

__all__ = [
    "AVERAGES",
    "INTEGRATORS",
    "PROTOCOLS",
    "TIES",
    "UNDEFINED",
    "AtThreshold",
    "Confusion",
    "OperatingPoint",
    "PrecisionRecall",
    "RankingResult",
    "Roc",
    "Rules",
    "auc",
    "average_precision",
    "average_precision_at_k",
    "best_f_beta",
    "confusion",
    "evaluate",
    "from_arrays",
    "mean_average_precision_at_k",
    "operating_point",
    "precision_at_k",
    "precision_recall_curve",
    "read",
    "recall_at_k",
    "roc_curve",
    "threshold_for_precision",
    "threshold_for_recall",
]
