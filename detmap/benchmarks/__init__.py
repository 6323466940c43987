"""Rules of benchmarks that the keys of a protocol cannot express, one module per rule.

To add a rule: a module here, a row in `RULES` or `EXTRA`, its name in
`detmap.protocol.benchmark_rules`, and a protocol that uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from detmap.benchmarks.benchmark_result import BenchmarkResult, Numbers
    from detmap.protocol import Protocol
    from detmap.tables import Detections, Truth

    Rule = Callable[[Truth, Detections, Protocol], Numbers]
    Extra = Callable[[Truth, Detections, Protocol], Mapping[str, float]]

RULES: dict[str, str] = {"wholebody": "wholebody.evaluate", "motion": "motion.evaluate"}
"""``evaluation.rule`` -> ``module.function`` of this folder, called with truth, detections and
protocol; it returns `Numbers`."""
EXTRA: dict[str, str] = {
    "olrp": "olrp.olrp",
    "crowd_index": "crowd_index.by_crowd_index",
    "as_given": "open_images.as_given",
    "first_recalls": "visdrone.first_recalls",
    "JI": "jaccard_index.best",
}
"""An entry of ``evaluation.extra`` -> ``module.function``, called alike; it returns metrics by
name."""


def _function(place: str) -> Any:
    module, name = place.split(".")
    return getattr(import_module(f"detmap.benchmarks.{module}"), name)


def evaluate(
    truth: Truth,
    detections: Detections,
    protocol: Protocol,
    inputs: tuple[Any, Any, Protocol, Mapping[str, Any]] | None = None,
) -> BenchmarkResult:
    """Evaluates under ``evaluation.rule``; `inputs` as in `detmap.results.result.Result`."""
    from detmap.benchmarks.benchmark_result import BenchmarkResult
    from detmap.tables import require_truth_of

    require_truth_of(detections, truth)
    numbers = _function(RULES[protocol.evaluation.rule])(truth, detections, protocol)
    return BenchmarkResult(truth, detections, protocol, numbers, inputs)


def extra(truth: Truth, detections: Detections, protocol: Protocol) -> dict[str, float]:
    """Returns the metrics of ``evaluation.extra``, by name."""
    metrics: dict[str, float] = {}
    for name in protocol.evaluation.extra:
        metrics |= _function(EXTRA[name])(truth, detections, protocol)
    return metrics
