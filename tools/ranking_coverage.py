"""Simulates how often intervals of rankings contain the true number, as tools/coverage.py does for
detectors.

    python -m tools.ranking_coverage run --state coverage/
    python -m tools.ranking_coverage table --state coverage/ --docs docs/coverage.md
"""

import argparse
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from detmap import ranking
from detmap.core.statistics.estimates import Interval
from detmap.core.statistics.evaluations import Evaluated
from detmap.core.statistics.random_words import random_words
from detmap.core.statistics.sampling_units import units
from detmap.core.statistics.subsets import Subsets, subsets
from detmap.ranking.samples import Classified
from tools import coverage

SIZES = (200, 1000)
THRESHOLD, RANKS = 0.5, 3
INTEGRATORS = {"all-point": "all_points", "11-point": "eleven_point", "101-point": "grid_envelope"}
NAMES = ("VOC", "uneven", "tied", "binary", "nearly perfect")
BY_RULES = ("VOC", "binary", "nearly perfect")  # evaluated by all AP interpolations
MARKS = "<!-- tools/ranking_coverage.py: begin -->", "<!-- tools/ranking_coverage.py: end -->"


def populations(data: Path) -> dict[str, Classified]:
    """By name."""
    truth, _ = coverage.of_voc(data)[0]
    shape, simple = (len(truth.images), len(truth.categories)), ~truth.difficult
    shown, left_out = np.zeros(shape, bool), np.zeros(shape, bool)
    shown[truth.image[simple], truth.label[simple]] = True
    left_out[truth.image[~simple], truth.label[~simple]] = True
    rng = np.random.default_rng(7)

    def labels(*frequency: float) -> NDArray[np.bool_]:
        return rng.random((5000, len(frequency))) < np.array(frequency)

    tied = scored(labels(0.5, 0.4, 0.3, 0.2, 0.1), 2.5, 1.5, 10)
    return {
        "VOC": replace(scored(shown, 3.5, 1.5, 9), counted=shown | ~left_out),
        "uneven": scored(labels(*0.6 / np.arange(1, 21)), 3.5, 1.5, 11),
        "binary": scored(labels(0.3), 2, 2, 12),
        "nearly perfect": scored(labels(0.2), 4, 4, 13),
        "tied": replace(tied, score=tied.score.round(1)),
    }


def scored(positive: NDArray[np.bool_], first: float, last: float, seed: int) -> Classified:
    """Probabilities by a normal signal. Its distance between positives and negatives changes from
    the first to the last class, and some samples are hard in all classes.
    """
    rng, (n, k) = np.random.default_rng(seed), positive.shape
    apart, share = np.linspace(first, last, k), positive.mean(axis=0)
    noise = 0.9 * rng.standard_normal((n, k)) + 0.4 * rng.standard_normal((n, 1))
    logit = apart * (apart * positive + noise) - apart**2 / 2 + np.log(share / (1 - share))
    return ranking.from_arrays(positive, 1 / (1 + np.exp(-logit)))


def drawn(whole: Classified, n: int, b: int, seed: int) -> Classified:
    """Sample b of n rows, each copy a sample of its own."""
    words = random_words(seed + n, coverage.DRAWN, b, (1, n))[0] >> np.uint64(32)
    rows = ((words * np.uint64(len(whole))) >> np.uint64(32)).astype(np.int64)
    return replace(
        whole,
        ids=tuple(map(str, range(n))),
        positive=whole.positive[rows],
        score=whole.score[rows],
        counted=None if whole.counted is None else whole.counted[rows],
    )


def evaluated(table: Classified, dealt: Subsets, *, by_rules: bool) -> dict[str, Interval]:
    """The intervals of the metrics and classes, by the default rules and by other averages, then of
    AP by other interpolations.
    """
    several = len(table.classes) > 1
    result = ranking.evaluate(table, k=[RANKS] * several, threshold=THRESHOLD, threads=1)
    found = named(result.evaluate_subsets(dealt))
    for name in ranking.AVERAGES[1:] if several else ():
        settings = {"average": name}
        result = ranking.evaluate(table, settings=settings, threshold=THRESHOLD, threads=1)
        found |= named(result.evaluate_subsets(dealt, classes=False), f", {name}")
    for title, name in INTEGRATORS.items() if by_rules else ():
        result = ranking.evaluate(table, settings={"integrator": name}, threads=1)
        made = named(result.evaluate_subsets(dealt), f", {title}")
        found |= {key: one for key, one in made.items() if re.match("m?AP", key)}
    return found


def named(found: Evaluated, more: str = "") -> dict[str, Interval]:
    """The intervals by name; after the bar is the class."""
    metrics = [
        re.sub("@[0-9]$", "@k", metric.removesuffix(f"@{THRESHOLD}")) for metric in found.metrics
    ]
    names = {"AP": "mAP"} if more else {}
    keys = [
        *(f"{names.get(metric, metric)}{more}" for metric in metrics),
        *(f"{row} of classes{more}|{k}" for k, row in found.cells),
    ]
    return dict(zip(keys, found.estimates.intervals(coverage.LEVEL), strict=True))


def one_sample(
    whole: Classified,
    of: Callable[[Classified, Subsets], dict[str, Interval]],
    true: dict[str, float],
    n: int,
    b: int,
    seed: int,
) -> coverage.Outcomes:
    """Which intervals of sample b hold."""
    table, found = drawn(whole, n, b, seed), coverage.Outcomes()
    coverage.held(found, of(table, subsets(units(np.array(table.ids)), b)), true)
    return found


def run(arguments: argparse.Namespace) -> None:
    """Add samples, a few of each population and size in turn."""
    arguments.state.mkdir(parents=True, exist_ok=True)
    for name, whole in populations(arguments.data).items():
        nothing = Subsets(units(np.array(whole.ids)), 0, np.empty((0, len(whole)), bool))
        of = partial(evaluated, by_rules=name in BY_RULES)
        true = {key: one.value for key, one in of(whole, nothing).items()}
        for n in SIZES:
            path = coverage.cell(arguments.state, f"ranking {name}", n)
            one = partial(one_sample, whole, of, true, n, seed=arguments.seed)
            coverage.add_samples(path, range(arguments.samples), one)


def table(arguments: argparse.Namespace) -> None:
    """Print the table in Markdown, or write it between the marks of a page."""
    found, samples = {}, []
    for name in NAMES:
        for n in SIZES:
            done = list(coverage.lines(coverage.cell(arguments.state, f"ranking {name}", n)))
            found[name, n] = coverage.shares(done)
            samples.append(str(len(done)))
    longest = sorted(found.values(), key=len, reverse=True)  # some lack a kind
    kinds = dict.fromkeys(kind for of in longest for kind in of)
    rows = [[kind, *(str(of.get(kind, coverage.NONE)) for of in found.values())] for kind in kinds]
    header = ["number", *(f"{name} {n}" for name, n in found)]
    text = coverage.markdown(header, [["samples", *samples], *rows])
    coverage.write(f"{text}\n\n{coverage.outside(found)}", arguments.docs, MARKS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--data", type=Path, default=coverage.DATA, help="VOC 2007 test")
    parser.add_argument("--state", type=Path, default=Path("coverage"))
    parser.add_argument("--docs", type=Path, help="page that the table is written into")
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    {"run": run, "table": table}[arguments.what](arguments)


if __name__ == "__main__":
    main()
