"""How often the intervals and tests of detmap hold what they promise, by simulation.

    python tools/coverage.py run --state coverage/
    python tools/coverage.py null --state coverage/
    python tools/coverage.py table --state coverage/ --docs docs/statistics.md
    python tools/coverage.py pooled --state coverage/ --docs docs/statistics.md

A split is taken as the whole population: VOC 2007 test with three real detectors, and 80 classes
of which most are rare (W1 and W3 of tools/workloads.py, which have to be made before; W3 has the
real boxes of COCO val2017). Samples of n images are drawn from it, each drawn copy an image of its
own; every interval of every sample is held against the population's value, and every pair of
detectors against the population's difference; `null` makes pairs of equal detectors: each image's
detections by the one or the other, as a coin falls. Samples are numbered, each depends on the seed
and its number alone, and what is done is kept in the state folder, a line of JSON a sample: a run
that was stopped goes on where it was. `table` writes what is known so far between two marks of the
page of documentation; `pooled` writes a shorter table, of all sizes and detectors together. Worlds,
samples and tables are one simulation, so one file of a little over 400 lines.
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
from detmap.core.curves import aggregation
from detmap.core.curves import scores as curves
from detmap.core.matching.matches import Matches
from detmap.core.statistics import intervals as made
from detmap.core.statistics import permutation
from detmap.core.statistics import replicates as drawing
from detmap.core.statistics.bias import MOST_HALVES, Bias, bias, total_error
from detmap.core.statistics.class_terms import Plan, plan
from detmap.core.statistics.formulas.quantiles import NORMAL, normal, student
from detmap.core.statistics.influence import Influence, influence, variance
from detmap.core.statistics.sampling_units import Units, units
from detmap.core.tables.grouping import labels, offsets

VOC = ("yolov2-voc", "tiny-yolov2-voc", "detector-8603")
RULES = {"all-point": "voc2012", "COCO": "coco-bbox"}
LEVEL = 0.95
STRATA = ((3, 7), (8, 20), (21, 80), (81, 10**9))
SHOWN = ("mAP", "AP", "AP50", "APs", "APm", "APl", "AR100", "ARs")
FEWEST = 20  # intervals that a share is taken of
WEAK = 0.45  # of the true positives, which a weak detector misses
MARKS = "<!-- tools/coverage.py {}: begin -->", "<!-- tools/coverage.py {}: end -->"


@dataclass(frozen=True, slots=True)
class World:
    """Detectors on one split under one rule, and the sizes of the samples."""

    rule: str
    detectors: tuple[str, ...]
    sizes: tuple[int, ...]


WORLDS = {
    "VOC all-point": World("all-point", VOC, (50, 200, 1000)),
    "VOC as COCO": World("COCO", VOC, (50, 200, 1000)),
    "W1": World("COCO", ("W1",), (200, 500, 1000)),
    "W3": World("COCO", ("W3",), (200, 500, 1000)),
    "W1 weak": World("COCO", ("W1-weak",), (200, 500, 1000)),
}


# --- samples --------------------------------------------------------------------------------------


def population(name: str, arguments: argparse.Namespace) -> list[Matches]:
    """The detectors of a world matched on the whole split; kept in the state folder."""
    rule, detectors = WORLDS[name].rule, WORLDS[name].detectors
    paths = [arguments.state / f"population-{rule}-{each}.npz" for each in detectors]
    if not all(path.exists() for path in paths):
        if rule == "COCO" and detectors != VOC:
            of_workload(detectors[0], arguments, paths[0])
        else:
            of_voc(arguments.data, rule, paths)
    return [Matches.load(path) for path in paths]


def of_voc(data: Path, rule: str, paths: list[Path]) -> None:
    """Match the three detectors on VOC 2007 test."""
    with tempfile.TemporaryDirectory() as folder:
        for archive in sorted(data.glob("*.tar.xz")):
            with tarfile.open(archive) as file:
                file.extractall(folder, filter="data")
        truth = detmap.read_truth(Path(folder, "VOCdevkit"))
        for detector, path in zip(VOC, paths, strict=True):
            detections = detmap.read_detections(Path(folder, detector), truth)
            detmap.match(truth, detections, detmap.load_protocol(RULES[rule])).save(path)


def of_workload(name: str, arguments: argparse.Namespace, path: Path) -> None:
    """Match a made-up workload; a weak one loses some of what it found."""
    folder = arguments.workloads / name.removesuffix("-weak")
    truth = detmap.read_truth(folder / "instances.json")
    detections = detmap.read_detections(folder / "results.json", truth)
    matches = detmap.match(truth, detections, "coco-bbox")
    if name.endswith("-weak"):
        lost = drawing.random_words(0, 1, 0, (1, len(matches)))[0] < int(WEAK * 2**64)
        matches = replace(matches, tp=np.where(lost[:, None], 0, matches.tp).astype(np.uint16))
    matches.save(path)


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
    """One detector on one sample: its numbers, their influence, replicates and bias."""

    planned: Plan
    values: list[float]
    per_class: NDArray[np.float64]
    moved: Influence
    sample: drawing.Replicates
    off: Bias
    drawn: Units


def measure(matches: Matches, seed: int) -> Made:
    """All that intervals and comparisons need."""
    protocol = matches.protocol
    rows, of_class = protocol.rows()[0], aggregation.class_rows(protocol)
    planned, drawn = plan(matches, rows, of_class), units(matches.image_ids)
    scores, moved = curves.scores(matches, threads=1), influence(planned, drawn, 1)
    return Made(
        planned,
        [aggregation.mean(scores, row, protocol, matches.categories) for row in rows],
        aggregation.per_class(scores, of_class[0], protocol),
        moved,
        drawing.replicates(planned, drawn, drawing.LANES, seed, threads=1),
        bias(planned, drawn, moved.n_units, MOST_HALVES, seed, 1),
        drawn,
    )


def outcome(detectors: list[Made]) -> dict[str, Any]:
    """What is kept of a sample: intervals of metrics as they are printed, what those of classes are
    made of, and the paired differences: value, standard error, bias.
    """
    kept: dict[str, Any] = {"intervals": [], "classes": [], "pairs": []}
    for each in detectors:
        maker = made.Maker(
            each.planned, each.moved, each.sample, each.off, each.drawn, LEVEL, "influence"
        )
        found = [maker.metric_interval(q, value) for q, value in enumerate(each.values)]
        kept["intervals"].append([[i.low, i.high] for i in found])
        of_class = [maker.class_interval(0, k, value) for k, value in enumerate(each.per_class)]
        n_units = each.moved.n_units[each.planned.of_class[0]].tolist()
        rows = zip(of_class, n_units, strict=True)
        kept["classes"].append([[float(i.value), i.se, i.bias, m] for i, m in rows])
    for a, b in combinations(detectors, 2):
        delta = b.values[0] - a.values[0]
        se = math.sqrt(variance(b.moved.corrected[0] - a.moved.corrected[0]))
        kept["pairs"].append([delta, *corrected(se, a.off, b.off)])
    return kept


def corrected(se: float, a: Bias, b: Bias) -> tuple[float, float]:
    """The standard error of a difference of AP minus its bias, and the bias."""
    of_bias = float(b.errors_of_difference(a)[0])
    return total_error(se, of_bias, is_ap=True), float(b.metrics[0] - a.metrics[0])


def equals(samples: list[Matches], b: int) -> dict[str, Any]:
    """The same of each pair after a coin an image."""
    found = []
    for first, second in combinations(samples, 2):
        rows = first.protocol.rows()[0][:1]
        plans = [plan(each, rows, rows) for each in (first, second)]
        exchange, drawn = permutation.Exchange(*plans), units(first.image_ids)
        coins = drawing.swaps(b, 0, drawn.n)
        values = exchange.values(coins[None])[:, 0, 0]
        both = exchange.exchanged(coins)
        a, c = (influence(each, drawn, 1) for each in both)
        se = math.sqrt(variance(c.corrected[0] - a.corrected[0]))
        off = [bias(each, drawn, a.n_units, MOST_HALVES, b, 1) for each in both]
        found.append([values[1] - values[0], *corrected(se, *off)])
    return {"pairs": found}


def null(arguments: argparse.Namespace) -> None:
    """As `run`, of pairs of equal detectors."""
    run(arguments, "null-")


def run(arguments: argparse.Namespace, kind: str = "") -> None:
    """Add samples, a few of each cell in turn, until each has as many as asked for."""
    arguments.state.mkdir(parents=True, exist_ok=True)
    whole = {name: population(name, arguments) for name in arguments.worlds}
    for first in range(0, arguments.samples, arguments.step):
        for name, found in whole.items():
            for n in WORLDS[name].sizes:
                path = cell(arguments.state, kind + name, n)
                done = {line["b"] for line in lines(path)}
                with path.open("a") as file:
                    for b in range(first, min(first + arguments.step, arguments.samples)):
                        if b not in done:
                            kept = one_sample(found, n, b, arguments, kind)
                            file.write(json.dumps({"b": b, **kept}) + "\n")
                            file.flush()


def one_sample(
    whole: list[Matches], n: int, b: int, arguments: argparse.Namespace, kind: str
) -> dict[str, Any]:
    """Draw sample b of n images, and measure all detectors on it."""
    words = drawing.random_words(arguments.seed + n, 1, b, (1, n))[0]
    size = np.uint64(whole[0].n_images)
    drawn = ((words >> np.uint64(32)) * size >> np.uint64(32)).astype(np.int64)
    samples = [sampled(matches, drawn) for matches in whole]
    if kind:
        return equals(samples, b)
    return outcome([measure(one, b) for one in samples])


def cell(state: Path, name: str, n: int) -> Path:
    """The file of the samples of one size."""
    return state / f"{name.replace(' ', '-')}-{n}.jsonl"


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
    """A percentage and its standard error, by Agresti and Coull's estimate: never 0."""
    if not hits:
        return "-"
    n, k = len(hits), sum(hits)
    p = (k + 2) / (n + 4)
    return f"{100 * k / n:.1f} ± {100 * math.sqrt(p * (1 - p) / (n + 4)):.1f}"


def table(arguments: argparse.Namespace) -> None:
    """Print the tables in Markdown, or write them into a page."""
    whole = {name: population(name, arguments) for name in arguments.worlds}
    real = {name: [detmap.summarize(each) for each in found] for name, found in whole.items()}
    if arguments.what == "pooled":
        parts: tuple[list[str], ...] = (pooled(arguments.state, real),)
    else:
        parts = tuple(each(arguments.state, real) for each in (metrics, classes, pairs))
    text = "\n\n".join("\n".join(rows) for rows in parts)
    if arguments.docs is None:
        print(text)
        return
    begin, end = (mark.format(arguments.what) for mark in MARKS)
    page = arguments.docs.read_text(encoding="utf-8")
    before, rest = page.split(begin)
    after = rest.split(end)[1]
    arguments.docs.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def pooled(state: Path, real: dict[str, list[Any]]) -> list[str]:
    """How many of the printed intervals of all sizes and detectors hold."""
    rows = ["| population, metric | samples | intervals | held % |", "|---|--:|--:|--:|"]
    for name, results in real.items():
        cells = [list(lines(cell(state, name, n))) for n in WORLDS[name].sizes]
        for q, metric in enumerate(results[0].metrics):
            own = [
                low <= result.metrics[metric] <= high
                for done in cells
                for line in done
                for d, result in enumerate(results)
                for low, high in [line["intervals"][d][q]]
                if low == low
            ]
            if metric in SHOWN and len(own) >= FEWEST:
                n = sum(map(len, cells))
                rows.append(f"| {name}, {metric} | {n} | {len(own)} | {100 * np.mean(own):.1f} |")
    return rows


def metrics(state: Path, real: dict[str, list[Any]]) -> list[str]:
    """How many intervals of metrics are printed, and how many of these hold."""
    rows = [
        "| population, metric | n | samples | printed % | held % of these |",
        "|---|--:|--:|--:|--:|",
    ]
    for name, results in real.items():
        for q, metric in enumerate(results[0].metrics):
            for n in () if metric not in SHOWN else WORLDS[name].sizes:
                done = list(lines(cell(state, name, n)))
                for d, result in enumerate(results):
                    value, who = result.metrics[metric], WORLDS[name].detectors[d]
                    found = [line["intervals"][d][q] for line in done]
                    own = [low <= value <= high for low, high in found if low == low]
                    printed = f"{100 * len(own) / max(1, len(done)):.0f}"
                    held = share(own) if len(own) >= FEWEST else "-"
                    label = f"{name}, {who}, {metric}" if len(results) > 1 else f"{name}, {metric}"
                    cells = (label, n, len(done), printed, held)
                    rows.append(f"| {' | '.join(map(str, cells))} |")
    return rows


def pairs(state: Path, real: dict[str, list[Any]]) -> list[str]:
    """What intervals and tests of differences hold (they agree), and the errors of gates."""
    rows = [
        "| first metric | n | samples | interval held % | equal pair rejected % | "
        "gate fails at its bound % | gate passes at its bound % | power: seen % | foreseen |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, results in real.items():
        for p, (a, b) in enumerate(combinations(range(len(results)), 2)):
            for n in WORLDS[name].sizes:
                done = [line["pairs"][p] for line in lines(cell(state, name, n))]
                equal = [line["pairs"][p] for line in lines(cell(state, "null-" + name, n))]
                metric = next(iter(results[0].metrics))
                true = results[b].metrics[metric] - results[a].metrics[metric]
                z, one = normal((1 + LEVEL) / 2), normal(LEVEL)
                power = [NORMAL.cdf(abs(true) / se - z) for _, se, _ in done]
                who = WORLDS[name].detectors
                cells = (
                    f"{name}, {who[b]} minus {who[a]}",
                    n,
                    len(done),
                    share([abs(delta - off - true) <= z * se for delta, se, off in done]),
                    share([abs(delta - off) > z * se for delta, se, off in equal]),
                    share([delta - off - true < -one * se for delta, se, off in done]),
                    share([delta - off - true > one * se for delta, se, off in done]),
                    share([abs(delta - off) > z * se for delta, se, off in done]),
                    f"{100 * np.mean(power or [0]):.0f}",
                )
                rows.append(f"| {' | '.join(map(str, cells))} |")
    return rows


def classes(state: Path, real: dict[str, list[Any]]) -> list[str]:
    """What intervals of classes hold by the images that they are on, also where none is printed."""
    bounds = (f"{low} to {high}" if high < 10**6 else f"{low} or more" for low, high in STRATA)
    rows = [
        "| AP of a class, by its images | " + " | ".join(bounds) + " |",
        "|---|" + "--:|" * len(STRATA),
    ]
    for name, results in real.items():
        for d, result in enumerate(results):
            hits = class_hits(state, name, d, result)
            label = f"{name}, {WORLDS[name].detectors[d]}"
            rows.append(f"| {label} | " + " | ".join(share(hits[s]) for s in STRATA) + " |")
    return rows


def class_hits(state: Path, name: str, d: int, result: Any) -> dict[tuple[int, int], list[bool]]:
    """Whether the interval of each class holds, by stratum."""
    hits: dict[tuple[int, int], list[bool]] = {s: [] for s in STRATA}
    real = [row[next(iter(k for k in row if k.startswith("AP")))] for row in result.per_class]
    for n in WORLDS[name].sizes:
        for line in lines(cell(state, name, n)):
            for k, (value, se, off, m) in enumerate(line["classes"][d]):
                stratum = next((s for s in STRATA if s[0] <= m <= s[1]), None)
                if stratum is None or value is None or value != value:
                    continue
                if value in (0.0, 1.0):
                    edge = ((1 - LEVEL) / 2) ** (1 / m)
                    low, high = (edge, 1.0) if value == 1.0 else (0.0, 1 - edge)
                elif se > 0 and off == off:
                    q = student((1 + LEVEL) / 2, float(max(1, m - 1)))
                    error = total_error(se, off, is_ap=True)
                    low, high = made.logit_interval(value, error, off, q)
                    lowest, highest = made.edge_interval(value, error, LEVEL)
                    low, high = min(low, lowest), max(high, highest)
                else:
                    continue
                hits[stratum].append(low <= real[k] <= high)
    return hits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("what", choices=("run", "null", "table", "pooled"))
    here = Path(__file__).resolve().parents[2] / "shared" / "data" / "voc2007-test"
    parser.add_argument("--data", type=Path, default=here, help="VOC 2007 test and detectors")
    workloads = Path.home() / ".cache" / "detmap-bench"
    parser.add_argument("--workloads", type=Path, default=workloads, help="W1 and W3")
    parser.add_argument("--state", type=Path, default=Path("coverage"))
    parser.add_argument("--docs", type=Path, help="page that the tables are written into")
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS))
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--step", type=int, default=10, help="samples of a cell at a time")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    {"run": run, "null": null, "table": table, "pooled": table}[arguments.what](arguments)


if __name__ == "__main__":
    main()
