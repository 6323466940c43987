"""VisDrone: recall of the first detections of an image in file order, matched anew per limit.

Source: VisDrone2018-DET-toolkit calcAccuracy.m.
"""

from dataclasses import replace

from detmap.core.curves.aggregation import mean
from detmap.core.curves.scores import scores
from detmap.core.matching import engine
from detmap.core.protocol import Protocol
from detmap.core.tables import Detections, Truth

LIMITS = (1, 10, 100)
"""Beside the protocol's own limit: with ``limits.order = "input"`` a protocol has only one."""


def first_recalls(truth: Truth, detections: Detections, protocol: Protocol) -> dict[str, float]:
    """Returns AR1, AR10 and AR100."""
    metrics = {}
    for limit in LIMITS:
        rules = replace(
            protocol,
            limits=replace(protocol.limits, max_dets=(limit,)),
            metrics=("AR@max_dets",),
            evaluation=replace(protocol.evaluation, extra=()),
        )
        found = scores(engine.match(truth, detections, rules))
        for row in rules.rows()[0]:
            metrics[row.name] = mean(found, row, rules, truth.categories)
    return metrics
