"""Open Images: the mean of the ground truth as given, before the class hierarchy expands it."""

from dataclasses import replace

import numpy as np

from detmap.core.curves.aggregation import mean
from detmap.core.curves.scores import scores
from detmap.core.matching import engine
from detmap.core.protocol import Protocol
from detmap.core.tables import DERIVED, Detections, Scope, Truth


def given_mean(truth: Truth, detections: Detections, protocol: Protocol) -> dict[str, float]:
    """Returns ``mAP-as-given``: of the objects and verified classes that the files list."""
    given = replace(truth.take(~truth.role("derived")), scope=_written(truth.scope))
    matches = engine.match(given, detections, protocol)
    found = scores(matches)
    row = protocol.rows()[0][0]
    return {f"{row.name}-as-given": mean(found, row, protocol, truth.categories)}


def _written(scope: Scope | None) -> Scope | None:
    """Returns the scope without derived pairs."""
    if scope is None:
        return None
    keep = scope.kind != DERIVED
    keep[:-1] &= keep[1:]  # a derived pair has a row of each kind, one after the other
    off = np.concatenate([[0], np.cumsum(keep)])[scope.off]
    return Scope(off.astype(np.int64), scope.label[keep], scope.kind[keep])
