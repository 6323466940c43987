"""The pytest fixture `detection_gate`: a test fails if a detector becomes worse.

pytest loads this module in every run where detmap is installed, so it imports nothing heavy.
"""

import math
import numbers
from collections.abc import Callable, Mapping
from typing import Any

import pytest


@pytest.fixture
def detection_gate(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Returns ``gate(truth, detections, baseline=None, ...)``, which returns a `detmap.Result`.

    Parameters of the function
    --------------------------
    truth, detections : as for `detmap.evaluate`; or a `detmap.Result` alone
    baseline : detections to compare with, or their `detmap.Result`; without `max_drop` no
        significant drop of the first metric is allowed
    at_least : lowest fractions, ``{"AP": 0.4, "AP50/person": 0.6}``
    at_most : highest values of metrics for which lower is better, ``{"MR": 0.5}``
    max_drop : allowed drops as fractions, ``{"AP": 0.005}``; a drop fails if it is significant
    protocol : rules

    Without a limit and without a baseline the test fails: the gate would check nothing. The
    signature is added to the test's properties, which junit.xml keeps.
    """

    def gate(
        truth: Any,
        detections: Any = None,
        baseline: Any = None,
        *,
        at_least: Mapping[str, float] | None = None,
        at_most: Mapping[str, float] | None = None,
        max_drop: Mapping[str, float] | None = None,
        protocol: Any = None,
    ) -> Any:
        import detmap

        try:
            limits = {"at_least": at_least, "at_most": at_most, "max_drop": max_drop}
            _require_limits(limits, baseline is not None)
            if isinstance(truth, detmap.Result) and detections is None:
                truth, detections = None, truth
            result = (
                detections
                if isinstance(detections, detmap.Result)
                else detmap.evaluate(truth, detections, protocol)
            )
            if result is detections and truth is None and result.matched is not None:
                truth = result.matched[0]
            failed = _beyond(result, "at_least", at_least or {})
            failed += _beyond(result, "at_most", at_most or {})
            if baseline is not None:
                drops = max_drop or {"": 0.0}
                failed += _dropped(truth, baseline, detections, result.protocol, drops)
        except detmap.DetmapError as error:
            message = f"detmap: {error}"
            raise pytest.fail.Exception(message, pytrace=False) from None
        request.node.user_properties.append(("detmap_signature", result.signature))
        if failed:
            pytest.fail("\n".join([*failed, result.signature]), pytrace=False)
        return result

    return gate


def _require_limits(limits: Mapping[str, Any], with_baseline: bool) -> None:
    """Raises `DataError` for limits that are not numbers by name, and if nothing is compared."""
    from detmap.errors import DataError

    for argument, given in limits.items():
        if given is not None and not isinstance(given, Mapping):
            raise DataError(argument, f"{given!r:.80}", 'give a dict such as {"AP": 0.5}')
        for name, limit in (given or {}).items():
            real = isinstance(limit, numbers.Real) and not isinstance(limit, bool)
            if not real or not math.isfinite(limit):
                raise DataError(f"{argument}[{name!r}]", f"{limit!r:.80}", "give a number")
            if argument == "max_drop":
                _gate(name, limit)
    if limits["max_drop"] is not None and not with_baseline:
        fix = "give baseline=, or use at_least="
        raise DataError("detection_gate", "max_drop without baseline", fix)
    if not with_baseline and not any(limits.values()):
        fix = "give at_least=, at_most= or baseline="
        raise DataError("detection_gate", "no limit, so the test would always pass", fix)


def _beyond(result: Any, argument: str, limits: Mapping[str, float]) -> list[str]:
    """Returns a line for each value beyond its limit. An undefined value is beyond any limit."""
    from detmap.core.base.suggestions import did_you_mean_value, same_name
    from detmap.core.protocol.metric_rows import METRICS
    from detmap.errors import DataError

    counted = tuple(metric.name for metric in METRICS if metric.unit != "fraction")
    lines, lower = [], argument == "at_most"
    values = dict(result.metrics)
    for row in result.per_class:
        values |= {f"{key}/{row['name']}": row[key] for key in row if key not in ("name", "id")}
    classes = [row["name"] for row in result.per_class]
    for name, limit in limits.items():
        of = name.partition("/")[2]
        if classes.count(of) > 1:
            raise same_name(argument, of, classes.count(of))
        if name not in values:
            fix = did_you_mean_value(name, result.metrics, classes)
            raise DataError(argument, f"there is no {name!r}", fix)
        if (name.partition("/")[0] in result.lower_is_better) != lower:
            better, other = ("higher", "at_least") if lower else ("lower", "at_most")
            raise DataError(argument, f"{better} {name} is better", f"use {other}=")
        metric = name.partition("/")[0]
        shown = metric in result.metrics or f"m{metric}" in result.metrics
        if shown and limit > 1 >= values[name] and not metric.startswith(counted):
            what = f"{limit:g} is not from 0 to 1"
            raise DataError(f"{argument}[{name!r}]", what, f"give a fraction: {limit / 100:g}")
        if not (values[name] <= limit if lower else values[name] >= limit):
            side = "above" if lower else "below"
            lines.append(f"FAIL: {name} {values[name]:.4f} is {side} {limit:g}")
    return lines


def _gate(name: str, limit: float) -> Any:
    """The gate of a drop."""
    from detmap.core.statistics import gate

    return gate.read("fail-if-drop", f"{name}={limit}", f"max_drop[{name!r}]")


def _dropped(
    truth: Any, baseline: Any, detections: Any, protocol: Any, drops: Mapping[str, float]
) -> list[str]:
    import detmap
    from detmap.core.statistics import gate

    comparison = detmap.compare(truth, baseline, detections, protocol=protocol)
    verdicts = []
    for name, limit in drops.items():
        verdicts.append(gate.judge(comparison, _gate(name, limit), 0.05))
    return [each.line for each in verdicts if not each.passed]
