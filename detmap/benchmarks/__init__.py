"""Rules of benchmarks that the keys of a protocol cannot express, one module per rule.

To add a rule: a module here, a row in `RULES` or `EXTRA`, its name in
`detmap.protocol.benchmark_rules`, and a protocol that uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from importlib import import_module
from typing import TYPE_CHECKING, Any

from detmap.errors import ProtocolError, few

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from detmap.benchmarks.benchmark_result import BenchmarkResult, Numbers
    from detmap.protocol import Protocol
    from detmap.tables import Detections, Truth

    Rule = Callable[[Truth, Detections, Protocol], Numbers]
    Extra = Callable[[Truth, Detections, Protocol], Mapping[str, float]]

RULES: dict[str, str] = {
    "kitti": "kitti.evaluate",
    "froc_spheres": "froc.evaluate_spheres",
    "froc_boxes": "froc.evaluate_boxes",
    "cgf1": "cgf1.evaluate",
    "scoreless": "scoreless.evaluate",
    "wholebody": "wholebody.evaluate",
    "motion": "motion.evaluate",
}
"""``evaluation.rule`` -> ``module.function`` of this folder, called with truth, detections and
protocol; it returns `Numbers`. The module's `READS` lists the keys that the rule reads, or has such
a list per function: with ``metrics`` among them it gives what they ask for, else they choose among
its numbers by name."""
EXTRA: dict[str, str] = {
    "olrp": "olrp.olrp",
    "crowd_index": "crowd_index.crowd_index_metrics",
    "as_given": "open_images.given_mean",
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
    place = RULES[protocol.evaluation.rule]
    module, name = place.split(".")
    reads = _function(f"{module}.READS")
    reads = reads[name] if isinstance(reads, Mapping) else reads
    _refuse_unread(protocol, reads)
    numbers = _function(place)(truth, detections, protocol)
    if "metrics" not in reads:
        numbers = replace(numbers, metrics=_chosen(numbers.metrics, protocol))
    return BenchmarkResult(truth, detections, protocol, numbers, inputs)


def _refuse_unread(protocol: Protocol, reads: tuple[str, ...]) -> None:
    """Raises `ProtocolError` for changes of keys that the rule does not read."""
    rule = protocol.evaluation.rule
    reads = tuple(dict.fromkeys(("metrics", "files", "evaluation", *reads)))
    for key, _ in protocol.changes:
        if not any(f"{key}.".startswith(f"{each}.") for each in reads):
            raise ProtocolError(
                f"protocol {protocol.name}",
                f"the rule {rule} does not read {key}",
                f"it reads {', '.join(reads)}",
            )


def _chosen(metrics: Mapping[str, float], protocol: Protocol) -> dict[str, float]:
    """Returns the metrics that the protocol names, in its order; ``*`` stands for any text."""
    chosen: dict[str, float] = {}
    for wanted in protocol.metrics:
        found = {name: value for name, value in metrics.items() if fnmatchcase(name, wanted)}
        if not found:
            fix = f"there are {few(metrics)}"
            raise ProtocolError(f"protocol {protocol.name}", f"no metric {wanted!r}", fix)
        chosen |= found
    return chosen


def extra_part(
    tables: tuple[Truth, Detections, Protocol], image_ids: ArrayLike
) -> dict[str, float]:
    """Returns the metrics of ``evaluation.extra`` of some images, given by id."""
    from detmap.tables import selection

    truth, detections, protocol = tables
    return extra(*selection.part(truth, detections, image_ids, None), protocol)


def extra(truth: Truth, detections: Detections, protocol: Protocol) -> dict[str, float]:
    """Returns the metrics of ``evaluation.extra``, by name."""
    metrics: dict[str, float] = {}
    for name in protocol.evaluation.extra:
        metrics |= _function(EXTRA[name])(truth, detections, protocol)
    return metrics
