"""Precision, recall and F1 of one batch at a score."""

import math
from dataclasses import replace

from detmap.core.adapters.in_memory.batch_join import Batch, Joiner
from detmap.core.curves.aggregation import threshold_of
from detmap.core.curves.operating_points import require_score
from detmap.core.matching.counting import (
    count_at,
    count_boxes,
    counts_boxes,
    lower_scores_change_nothing,
)
from detmap.core.output.named_values import NamedValues
from detmap.core.protocol import Protocol


def rates(
    reader: Joiner, batch: Batch, protocol: Protocol, score: float, iou: float | None
) -> NamedValues:
    """Returns the row ``Result.at(score).micro`` of a batch; see `Evaluator.batch_metrics`."""
    scores = batch.found.more["scores"]
    score, t = require_score("score", score, scores), threshold_of(protocol, iou)
    point = score, protocol.subset(), t
    boxes = reader.views(batch) if counts_boxes(protocol) else None
    counts = boxes and count_boxes(*boxes, protocol, point)
    tp, found, n = counts or _rule_counts(reader, batch, protocol, point)
    none = 0.0 if n else math.nan  # where nothing reaches the score
    precision, recall, f1 = tp / found if found else math.nan, none, none
    if found and n:
        recall, f1 = tp / n, 2 * tp / (n + found)
    rows = {"threshold": score, "precision": precision, "recall": recall, "f1": f1}
    return NamedValues({**rows, "tp": tp, "fp": found - tp, "missed": n - tp})


def _rule_counts(
    reader: Joiner, batch: Batch, protocol: Protocol, point: tuple[float, int, int]
) -> tuple[int, int, int]:
    if highest := lower_scores_change_nothing(protocol):
        batch = replace(batch, found=batch.found.take(batch.found.more["scores"] >= point[0]))
    return count_at(*reader.tables(batch), protocol, point, highest=highest)
