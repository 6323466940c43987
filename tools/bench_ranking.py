"""Measure `detmap.ranking` beside scikit-learn: AP, AUC and both curves, in one process, on the
same arrays.

    pip install -e '.[test]' python tools/bench_ranking.py python tools/bench_ranking.py --runs 7
    --demand 2       # exit 1 where detmap is not twice as fast

Both take turns within every run and the median of the runs is shown. A time counts only if the
results are equal to 1e-12, whole curves included. scikit-learn's metrics use one thread; detmap
is shown with one and with its default. Its kernels are compiled before the first measurement.
scikit-learn's ROC curve is asked for with ``drop_intermediate=False``, the same points as
detmap's; its curves of many classes are a loop over the classes, for it has no other.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sklearn
from sklearn.metrics import (
    average_precision_score,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)

import detmap
from detmap import ranking
from detmap.parallel import default_threads

TOLERANCE = 1e-12


def workloads(scale: float) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Name to labels and scores; a tenth of the labels positive, the scores somewhat right."""
    rng = np.random.default_rng(0)
    n, rows = round(1_000_000 * scale), round(100_000 * scale)
    truth, many = (rng.random(shape) < 0.1 for shape in (n, (rows, 80)))
    score, scores = (
        1 / (1 + np.exp(-(rng.normal(size=each.shape) + 1.5 * each))) for each in (truth, many)
    )
    labels, matrix = truth.astype(np.int64), many.astype(np.int64)
    return {
        f"{n:,} binary, float64": (labels, score),
        f"{n:,} binary, float32": (labels, score.astype(np.float32)),
        f"{n:,} binary, 3 decimals (ties)": (labels, score.round(3)),
        f"{rows:,} x 80, float64": (matrix, scores),
        f"{rows:,} x 80, float32": (matrix, scores.astype(np.float32)),
    }


def per_class(curve: Callable[..., Any]) -> Callable[..., Any]:
    """A curve of scikit-learn for every class."""

    def curves(truth: np.ndarray, score: np.ndarray) -> Any:
        if truth.ndim == 1:
            return curve(truth, score)
        return [curve(truth[:, k], score[:, k]) for k in range(truth.shape[1])]

    return curves


MEASURES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "AP": (average_precision_score, ranking.average_precision),
    "AUC": (roc_auc_score, ranking.auc),
    "PR curve": (per_class(precision_recall_curve), ranking.precision_recall_curve),
    "ROC curve": (
        per_class(lambda t, s: roc_curve(t, s, drop_intermediate=False)),
        ranking.roc_curve,
    ),
}


def assert_equal(theirs: Any, mine: Any, where: str) -> None:
    """Numbers, arrays, curves, lists of curves."""
    if isinstance(theirs, (tuple, list)):
        assert len(theirs) == len(mine), where
        for a, b in zip(theirs, mine, strict=True):
            assert_equal(a, b, where)
        return
    np.testing.assert_allclose(mine, theirs, rtol=0, atol=TOLERANCE, err_msg=where)


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds and result."""
    begin = time.perf_counter()
    result = call()
    return time.perf_counter() - begin, result


def measure(name: str, truth: np.ndarray, score: np.ndarray, runs: int, where: str) -> list[float]:
    """Median seconds of scikit-learn, of detmap with one thread, and with its default."""
    theirs, mine = MEASURES[name]
    calls = [
        lambda: theirs(truth, score),
        lambda: mine(truth, score, threads=1),
        lambda: mine(truth, score),
    ]
    seconds: list[list[float]] = [[], [], []]
    for _ in range(runs):
        results = []
        for each, call in zip(seconds, calls, strict=True):
            took, result = timed(call)
            each.append(took)
            results.append(result)
        for result in results[1:]:
            assert_equal(results[0], result, where)
    return [statistics.median(each) for each in seconds]


def main(argv: Sequence[str] | None = None) -> int:
    """Print a Markdown table; exit 1 where the demand is not met."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5, help="of each measurement (default: 5)")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="size of the workloads (default: 1)"
    )
    parser.add_argument(
        "--demand",
        type=float,
        default=0.0,
        metavar="X",
        help="how many times as fast every row must be",
    )
    options = parser.parse_args(argv)
    warm = np.array([[1, 0], [0, 1]]), np.array([[0.9, 0.1], [0.4, 0.2]])
    for _, mine in MEASURES.values():
        mine(*warm)
    threads = default_threads()
    versions = {
        "scikit-learn": sklearn.__version__,
        "detmap": detmap.__version__,
        "NumPy": np.__version__,
        "Python": platform.python_version(),
    }
    print(", ".join(f"{name} {version}" for name, version in versions.items()), end="")
    print(f"; {threads} processors; medians of {options.runs} runs, taken in turns\n")
    print(
        f"| workload | metric | scikit-learn, ms | detmap, 1 thread, ms | times | {threads} threads, ms | times |"
    )
    print("|---|---|---:|---:|---:|---:|---:|")
    slow = []
    for workload, (truth, score) in workloads(options.scale).items():
        for name in MEASURES:
            theirs, one, more = measure(name, truth, score, options.runs, f"{workload}, {name}")
            print(
                f"| {workload} | {name} | {theirs * 1e3:.0f} | {one * 1e3:.0f} | {theirs / one:.1f} | {more * 1e3:.0f} | "
                f"{theirs / more:.1f} |",
                flush=True,
            )
            if theirs < options.demand * max(one, more):
                slow.append(f"{workload}, {name}")
    if slow:
        print(f"\nless than {options.demand:g} times as fast: {'; '.join(slow)}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
