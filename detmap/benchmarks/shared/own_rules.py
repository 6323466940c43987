"""Evaluates under the rules and metrics of single benchmarks, which `benchmark_rules` lists."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from numpy.typing import ArrayLike

from detmap import wings
from detmap.benchmarks.shared.benchmark_result import BenchmarkResult, Numbers
from detmap.core.protocol import Protocol
from detmap.core.protocol.benchmark_rules import EXTRA, RULES
from detmap.core.tables import Detections, Truth, require_truth_of, selection
from detmap.errors import ProtocolError, few


def evaluate(
    truth: Truth,
    detections: Detections,
    protocol: Protocol,
    inputs: tuple[Any, Any, Protocol, Mapping[str, Any]] | None = None,
) -> BenchmarkResult:
    """Evaluates under ``evaluation.rule``; `inputs` as in `detmap.core.results.result.Result`."""
    require_truth_of(detections, truth)
    place = RULES[protocol.evaluation.rule].place
    module, _, name = place.partition(":")
    reads = wings.load(f"{module}:READS")
    reads = reads[name] if isinstance(reads, Mapping) else reads
    _refuse_unread(protocol, reads)
    numbers: Numbers = wings.load(place)(truth, detections, protocol)
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


def extra_metrics(
    truth: Truth, detections: Detections, protocol: Protocol
) -> tuple[dict[str, float], Callable[[ArrayLike], dict[str, float]]]:
    """Returns the metrics of ``evaluation.extra``, and a function that returns those of some
    images, given by id.
    """
    tables = truth, detections, protocol
    return _extra(*tables), partial(_extra_part, tables)


def _extra_part(
    tables: tuple[Truth, Detections, Protocol], image_ids: ArrayLike
) -> dict[str, float]:
    truth, detections, protocol = tables
    return _extra(*selection.part(truth, detections, image_ids, None), protocol)


def _extra(truth: Truth, detections: Detections, protocol: Protocol) -> dict[str, float]:
    metrics: dict[str, float] = {}
    for name in protocol.evaluation.extra:
        metrics |= wings.load(EXTRA[name].place)(truth, detections, protocol)
    return metrics
