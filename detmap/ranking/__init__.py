"""Ranking metrics for image-level classifiers and
retrieval, on the curves and integrators of detection.

Defaults are scikit-learn's wherever it has an answer: samples of equal score enter a threshold
together, AP is the step sum, AUC counts equal scores half, arrays of curves have its order and its
end points. The differences:

- ``roc_curve`` gives every distinct score, as with ``drop_intermediate=False``
- without positives recall is NaN, not 1, and AP is NaN, not 0; a mean leaves such classes out, and
  with ``undefined="zero"`` counts them as 0 as there (an undefined AUC makes the mean NaN there)
- precision at a threshold that nothing reaches is NaN (0/0); in a mean it obeys ``undefined``, as
  ``zero_division`` there
- labels are 0/1 or bool, or `pos_label` names the positive one; {-1, 1} needs it
- a score of -inf is "no prediction" and ranks last; NaN and inf are refused

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
