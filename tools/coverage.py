"""How often the intervals and tests of detmap hold what they promise, by simulation on real data.

    python tools/coverage.py run --data ../shared/data/voc2007-test --state coverage/
    python tools/coverage.py null --data ../shared/data/voc2007-test --state coverage/
    python tools/coverage.py table --state coverage/

VOC 2007 test is taken as the whole population. Samples of n images are drawn from it, each drawn
copy an image of its own; every interval of every sample is held against the population's value,
and every pair of detectors against the population's difference; `null` makes pairs of equal
detectors: each image's detections by the one or the other, as a coin falls. Samples are numbered,
each depends on the seed and its number alone, and what is done is kept in the state folder, a line
of JSON a sample: a run that was stopped goes on where it was.
"""

from __future__ import annotations

if __name__ == "coverage":  # numba looks for the package of this name, in a tool's folder first
    raise ImportError("a script, not the package coverage")

import argparse
import json
import math
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import detmap
from detmap.curves import aggregation
from detmap.curves import scores as curves
from detmap.matching.matches import Matches
from detmap.statistics import intervals as made
from detmap.statistics import permutation
from detmap.statistics import replicates as drawing
from detmap.statistics.class_terms import Plan, plan
from detmap.statistics.influence import Influence, influence, variance
from detmap.statistics.quantiles import normal, student
from detmap.statistics.sampling_units import Units, units
from detmap.tables.grouping import labels, offsets

DETECTORS = ("yolov2-voc", "tiny-yolov2-voc", "detector-8603")
RULES = {"all-point": "voc2012", "11-point": "voc2007", "COCO": "coco-bbox"}
SIZES = (100, 250, 1000)
LEVEL = 0.95
STRATA = ((3, 7), (8, 20), (21, 80), (81, 10**9))


# --- samples --------------------------------------------------------------------------------------


def populations(data: Path, place: Path) -> dict[str, list[Matches]]:
    """The detectors matched on the whole split, by rule; kept in the state folder."""
    found = {
        rule: [place / f"population-{rule}-{detector}.npz" for detector in DETECTORS]
        for rule in RULES
    }
    if not all(path.exists() for paths in found.values() for path in paths):
        with tempfile.TemporaryDirectory() as folder:
            for archive in sorted(data.glob("*.tar.xz")):
                with tarfile.open(archive) as file:
                    file.extractall(folder, filter="data")
            truth = detmap.read_truth(Path(folder, "VOCdevkit"))
            for d, detector in enumerate(DETECTORS):
                detections = detmap.read_detections(Path(folder, detector), truth)
                for rule, protocol in RULES.items():
                    rules = detmap.load_protocol(protocol)
                    detmap.match(truth, detections, rules).save(found[rule][d])
    return {rule: [Matches.load(path) for path in paths] for rule, paths in found.items()}


def sampled(matches: Matches, drawn: NDArray[np.int64]) -> Matches:
    """The images that were drawn, each copy an image of its own; rows stay ranked by score."""
    n, n_classes = len(drawn), len(matches.categories)
    order = np.argsort(drawn, kind="stable")
    begins = np.searchsorted(drawn[order], np.arange(matches.n_images + 1))

    def copies(image: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        times = begins[image + 1] - begins[image]
        rows = np.repeat(np.arange(len(image)), times)
        first = np.concatenate([[0], np.cumsum(times)])[:-1]
        which = np.arange(len(rows)) - np.repeat(first, times)
        return rows, order[begins[image[rows]] + which].astype(np.int32)

    rows, image = copies(matches.image)
    obj_rows, obj_image = copies(matches.obj_image)
    sorted_ = np.lexsort((obj_image, labels(matches.obj_off)[obj_rows]))
    obj_rows, obj_image = obj_rows[sorted_], obj_image[sorted_]
    return replace(
        matches,
        image_ids=np.arange(n),
        digest=matches.digest[drawn],
        beyond=matches.beyond[drawn],
        unjudged=matches.unjudged[drawn],
        off=offsets(labels(matches.off)[rows], n_classes),
        image=image,
        rank=matches.rank[rows],
        position=matches.position[rows],
        score=matches.score[rows],
        tp=matches.tp[rows],
        ignored=matches.ignored[rows],
        obj_off=offsets(labels(matches.obj_off)[obj_rows], n_classes),
        obj_image=obj_image,
        counted=matches.counted[obj_rows],
    )


@dataclass(frozen=True, slots=True)
class Made:
    """One detector on one sample: its numbers, their influence and replicates."""

    planned: Plan
    values: list[float]
    per_class: NDArray[np.float64]
    moved: Influence
    sample: drawing.Replicates
    drawn: Units


def measure(matches: Matches, n_replicates: int, seed: int) -> Made:
    """All that intervals and comparisons need."""
    protocol = matches.protocol
    rows, of_class = protocol.rows()[0], aggregation.class_rows(protocol)
    planned, drawn = plan(matches, rows, of_class), units(matches.image_ids)
    scores = curves.scores(matches, threads=1)
    return Made(
        planned,
        [aggregation.mean(scores, row, protocol, matches.categories) for row in rows],
        aggregation.per_class(scores, of_class[0], protocol),
        influence(planned, drawn, 1),
        drawing.replicates(planned, drawn, n_replicates, seed, threads=1),
        drawn,
    )


def outcome(detectors: list[Made]) -> dict[str, Any]:
    """What is kept of a sample: intervals of metrics, what those of classes are made of, and the
    paired differences of metrics: value, standard error, bias.
    """
    kept: dict[str, Any] = {"intervals": [], "percentile": [], "classes": [], "pairs": []}
    for each in detectors:
        one = made._Maker(each.planned, each.moved, each.sample, each.drawn, LEVEL, "influence")
        two = made._Maker(each.planned, each.moved, each.sample, each.drawn, LEVEL, "percentile")
        for name, maker in (("intervals", one), ("percentile", two)):
            found = [maker.of_metric(q, value) for q, value in enumerate(each.values)]
            kept[name].append([[i.value, i.se, i.low, i.high, i.bias] for i in found])
        s = each.planned.of_class[0]
        of_class = []
        for k, value in enumerate(each.per_class.tolist()):
            i = one.of_class(0, k, value)
            m = int(each.moved.n_units[s, k])
            draws = each.sample.classes[:, 0, k]
            lost = int(np.isnan(draws).sum())
            of_class.append([value, i.se, i.bias, m, lost])
        kept["classes"].append(of_class)
    for a, b in combinations(detectors, 2):
        rows = []
        for q in range(len(a.values)):
            apart = b.moved.corrected[q] - a.moved.corrected[q]
            draws = b.sample.metrics[:, q] - a.sample.metrics[:, q]
            delta = b.values[q] - a.values[q]
            se = math.sqrt(variance(apart))
            if a.planned.protocol.ap.integrator == "eleven_point":
                se = made.spread(draws[~np.isnan(draws)])
            rows.append([delta, se, float(np.nanmean(draws)) - delta])
        kept["pairs"].append(rows)
    return kept


def equals(samples: list[Matches], b: int) -> dict[str, Any]:
    """Difference and standard error of the first metric, of each pair after a coin an image."""
    found = []
    for first, second in combinations(samples, 2):
        rows = first.protocol.rows()[0]
        plans = [plan(each, rows, rows) for each in (first, second)]
        exchange, drawn = permutation.Exchange(*plans), units(first.image_ids)
        coins = drawing.swaps(b, 0, drawn.n)
        values = exchange.values(coins[None])[:, 0, 0]
        a, c = (influence(each, drawn, 1).corrected[0] for each in exchange.exchanged(coins))
        found.append([values[1] - values[0], math.sqrt(variance(c - a))])
    return {"pairs": found}


def null(arguments: argparse.Namespace) -> None:
    """As `run`, of pairs of equal detectors."""
    run(arguments, "null-")


def run(arguments: argparse.Namespace, kind: str = "") -> None:
    """Add samples until each cell has as many as asked for."""
    arguments.state.mkdir(parents=True, exist_ok=True)
    whole = populations(arguments.data, arguments.state)
    wanted = [(rule, n) for rule in arguments.rules for n in arguments.sizes]
    for first in range(0, arguments.samples, arguments.step):
        for rule, n in wanted:
            path = arguments.state / f"{kind}{rule}-{n}.jsonl"
            done = {line["b"] for line in lines(path)}
            with path.open("a") as file:
                for b in range(first, min(first + arguments.step, arguments.samples)):
                    if b in done:
                        continue
                    words = drawing.random_words(arguments.seed + n, 1, b, (1, n))[0]
                    size = np.uint64(whole[rule][0].n_images)
                    drawn = ((words >> np.uint64(32)) * size >> np.uint64(32)).astype(np.int64)
                    samples = [sampled(matches, drawn) for matches in whole[rule]]
                    if kind:
                        found = equals(samples, b)
                    else:
                        each = [measure(one, arguments.replicates, b) for one in samples]
                        found = outcome(each)
                    file.write(json.dumps({"b": b, **found}) + "\n")
                    file.flush()


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """What is done; half a line at the end is not."""
    if path.exists():
        for line in path.read_text().splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue


# --- tables ---------------------------------------------------------------------------------------


def share(hits: list[bool]) -> str:
    """A percentage and its standard error."""
    if not hits:
        return "-"
    p = sum(hits) / len(hits)
    return f"{100 * p:.1f} +- {100 * math.sqrt(p * (1 - p) / len(hits)):.1f}"


def table(arguments: argparse.Namespace) -> None:
    """Print the tables in Markdown."""
    whole = populations(arguments.data, arguments.state)
    truth: dict[str, list[Any]] = {
        rule: [detmap.summarize(matches) for matches in found] for rule, found in whole.items()
    }
    metrics(arguments.state, truth)
    print()
    bounds = (f"{low} to {high}" if high < 10**6 else f"{low} or more" for low, high in STRATA)
    print("| rule, AP of a class | detector | " + " | ".join(bounds) + " |")
    print("|---|---|" + "--:|" * len(STRATA))
    for rule in RULES:
        for d, detector in enumerate(DETECTORS):
            hits = class_hits(arguments.state, rule, d, truth[rule][d])
            print(f"| {rule} | {detector} | " + " | ".join(share(hits[s]) for s in STRATA) + " |")
    print()
    pairs(arguments.state, truth)


def metrics(state: Path, truth: dict[str, list[Any]]) -> None:
    """What intervals of metrics hold; beside it the percentile bootstrap."""
    print("| rule, metric | n | samples | " + " | ".join(DETECTORS) + " | percentile |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for rule in RULES:
        for q, name in enumerate(truth[rule][0].metrics):
            for n in SIZES:
                done = list(lines(state / f"{rule}-{n}.jsonl"))
                hits: dict[str, list[list[bool]]] = {"intervals": [], "percentile": []}
                for d, result in enumerate(truth[rule]):
                    real = result.metrics[name]
                    for kind, found in hits.items():
                        rows = [line[kind][d][q] for line in done]
                        found.append(
                            [low <= real <= high for _, _, low, high, _ in rows if low == low]
                        )
                cells = " | ".join(share(each) for each in hits["intervals"])
                old = [100 * np.mean(each or [0]) for each in hits["percentile"]]
                span = f"{min(old):.0f} to {max(old):.0f}"
                print(f"| {rule}, {name} | {n} | {len(done)} | {cells} | {span} |")


def pairs(state: Path, truth: dict[str, list[Any]]) -> None:
    """What intervals of differences hold, and the errors of tests and gates."""
    print(
        "| rule, pair | n | interval of the difference | two-sided test: real pair | equal pair | "
        "gate fails at its bound | gate passes at its bound | power: seen | foreseen |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for rule in RULES:
        for p, (a, b) in enumerate(combinations(range(len(DETECTORS)), 2)):
            for n in SIZES:
                done = list(lines(state / f"{rule}-{n}.jsonl"))
                name = next(iter(truth[rule][0].metrics))
                real = truth[rule][b].metrics[name] - truth[rule][a].metrics[name]
                rows = [line["pairs"][p][0] for line in done]
                equal = [line["pairs"][p] for line in lines(state / f"null-{rule}-{n}.jsonl")]
                z, one = normal((1 + LEVEL) / 2), normal(LEVEL)
                power = np.mean([1 - phi(z - abs(real) / se) for _, se, _ in rows] or 0)
                cells = (
                    f"{rule}, {DETECTORS[b]} less {DETECTORS[a]}",
                    n,
                    share([abs(delta - bias - real) <= z * se for delta, se, bias in rows]),
                    share([abs(delta - real) > z * se for delta, se, _ in rows]),
                    share([abs(delta) > z * se for delta, se in equal]),
                    share([delta - real < -one * se for delta, se, _ in rows]),
                    share([delta - real > one * se for delta, se, _ in rows]),
                    share([abs(delta) > z * se for delta, se, _ in rows]),
                    f"{100 * power:.1f}",
                )
                print(f"| {' | '.join(map(str, cells))} |")


def phi(z: float) -> float:
    """The normal distribution function."""
    return math.erfc(-z / math.sqrt(2)) / 2


def class_hits(state: Path, rule: str, d: int, result: Any) -> dict[tuple[int, int], list[bool]]:
    """Whether the logit interval of each class holds, by the images that it is on; also where
    detmap prints none.
    """
    hits: dict[tuple[int, int], list[bool]] = {s: [] for s in STRATA}
    real = [row[next(iter(k for k in row if k.startswith("AP")))] for row in result.per_class]
    for n in SIZES:
        for line in lines(state / f"{rule}-{n}.jsonl"):
            for k, (value, se, bias, m, _) in enumerate(line["classes"][d]):
                stratum = next((s for s in STRATA if s[0] <= m <= s[1]), None)
                if stratum is None or value is None or value != value:
                    continue
                if value in (0.0, 1.0):
                    edge = ((1 - LEVEL) / 2) ** (1 / m)
                    low, high = (edge, 1.0) if value == 1.0 else (0.0, 1 - edge)
                elif se > 0 and bias == bias:
                    q = student((1 + LEVEL) / 2, float(max(1, m - 1)))
                    low, high = made.logit_interval(value, se, bias, q)
                else:
                    continue
                hits[stratum].append(low <= real[k] <= high)
    return hits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("what", choices=("run", "null", "table"))
    here = Path(__file__).resolve().parents[2] / "shared" / "data" / "voc2007-test"
    parser.add_argument("--data", type=Path, default=here)
    parser.add_argument("--state", type=Path, default=Path("coverage"))
    parser.add_argument("--rules", nargs="+", choices=RULES, default=list(RULES))
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--step", type=int, default=50, help="samples of a cell at a time")
    parser.add_argument("--replicates", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    {"run": run, "null": null, "table": table}[arguments.what](arguments)


if __name__ == "__main__":
    main()
