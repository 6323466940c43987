"""Simulates how often intervals contain the true number and how often tests reject.

    python tools/coverage.py run --state coverage/
    python tools/coverage.py table --state coverage/ --docs docs/statistics.md

A data set counts as the whole population: VOC 2007 test with three real detectors, the workload
W1 of tools/workloads.py (made before), and generated populations: `one` (one class), `zipf` (40
classes, most of them rare), `own` (8 classes on groups of 4 images), `heavy` (numbers of objects
with a heavy tail) and `ties` (scores with one decimal). Each sample has n images (or groups) with
replacement; each copy is an image of its own. Every printed interval of a sample is compared with
the population's number, and every difference of two detectors with the population's difference.
For an equal pair a coin assigns the detections of each image to the one or the other of two
detectors. A sample depends on the seed and its number alone. The state folder has one line of JSON
per sample, and a stopped run continues. `table` writes a table between two marks of a page.
"""

if __name__ == "coverage":  # numba looks for the package of this name, in a tool's folder first
    raise ImportError("a script, not the package coverage")

import argparse
import json
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
from detmap.core.matching.matches import Matches
from detmap.core.statistics.evaluations import Evaluated
from detmap.core.statistics.random_words import random_words
from detmap.core.statistics.sampling_units import Units, units
from detmap.core.statistics.subsets import subsets
from detmap.core.tables.grouping import labels, offsets, ranked

VOC = ("yolov2-voc", "tiny-yolov2-voc", "detector-8603")
LEVEL = 0.95
SHOWN = ("mAP", "AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100")
EXTRA = ("AP of classes", "difference", "equal")
FEWEST = 30  # intervals that a share is computed of
WEAK = 0.45  # of the true positives that a weak detector misses
MARKS = "<!-- tools/coverage.py: begin -->", "<!-- tools/coverage.py: end -->"
DRAWN, COIN = 1, 2  # tags of the random words


@dataclass(frozen=True, slots=True)
class World:
    """Detectors on one population under one protocol, the sizes of the samples, images per group,
    and the size at which equal detectors are compared.
    """

    rule: str
    detectors: tuple[str, ...]
    sizes: tuple[int, ...]
    group: int = 1
    equal: int = 0


GENERATED = ("strong", "medium")
WORLDS = {
    "VOC all-point": World("voc2012", VOC, (200, 500), equal=200),
    "VOC 11-point": World("voc2007", VOC, (200, 500), equal=200),
    "VOC as COCO": World("coco-bbox", VOC, (200, 500), equal=200),
    "W1": World("coco-bbox", ("W1",), (500,)),
    "W1 weak": World("coco-bbox", ("W1-weak",), (500,)),
    "one": World("coco-bbox", GENERATED, (100, 300, 1000), equal=300),
    "zipf": World("coco-bbox", GENERATED, (500,), equal=500),
    "own": World("coco-bbox", GENERATED, (100, 200), group=4, equal=100),
    "heavy": World("coco-bbox", GENERATED, (100, 300), equal=300),
    "ties": World("coco-bbox", GENERATED, (100, 300), equal=300),
}
N_CLASSES = {"one": 1, "zipf": 40, "own": 8, "heavy": 3, "ties": 3}


# --- populations ----------------------------------------------------------------------------------


def population(name: str, arguments: argparse.Namespace) -> list[Matches]:
    """The detectors of a world matched on the whole population; kept in the state folder."""
    rule, detectors = WORLDS[name].rule, WORLDS[name].detectors
    if detectors == GENERATED:
        return [generated(name, each) for each in detectors]
    paths = [arguments.state / f"population-{rule}-{each}.npz" for each in detectors]
    if not all(path.exists() for path in paths):
        if detectors == VOC:
            of_voc(arguments.data, rule, paths)
        else:
            of_workload(detectors[0], arguments, paths[0])
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
            detmap.match(truth, detections, detmap.load_protocol(rule)).save(path)


def of_workload(name: str, arguments: argparse.Namespace, path: Path) -> None:
    """Match a made-up workload; a weak one loses some of what it found."""
    folder = arguments.workloads / name.removesuffix("-weak")
    truth = detmap.read_truth(folder / "instances.json")
    detections = detmap.read_detections(folder / "results.json", truth)
    matches = detmap.match(truth, detections, "coco-bbox")
    if name.endswith("-weak"):
        lost = random_words(0, 1, 0, (1, len(matches)))[0] < int(WEAK * 2**64)
        matches = replace(matches, tp=np.where(lost[:, None], 0, matches.tp).astype(np.uint16))
    matches.save(path)


def generated(name: str, detector: str) -> Matches:
    """A population of 4,000 images; both detectors see the same objects."""
    rng, n_images, n_classes = np.random.default_rng(7), 4000, N_CLASSES[name]
    share = 1 / np.arange(1, n_classes + 1) if name == "zipf" else np.ones(n_classes)
    rate = np.minimum(1.5, 3 * share / share.sum() * (2 if n_classes == 1 else 1))
    tail = rng.pareto(1.5, n_images) if name == "heavy" else rng.gamma(1.5, 0.7, n_images)
    hard = rng.beta(4, 1, n_images)
    if WORLDS[name].group > 1:  # images of a group are alike
        hard = np.repeat(hard[:: WORLDS[name].group], WORLDS[name].group)
    n_objects = np.minimum(rng.poisson(tail[:, None] * rate), 60)
    image, label = (np.repeat(each, n_objects.ravel()) for each in np.indices(n_objects.shape))
    image, label = image.ravel().astype(np.int32), label.ravel().astype(np.int32)
    area = np.exp(rng.normal(7.5, 1.5, len(image)))
    found, good, n_false = (0.97, 9, 0.3) if detector == "strong" else (0.8, 5, 2.0)
    rng = np.random.default_rng(8 + GENERATED.index(detector))
    hit = rng.random(len(image)) < found ** (0.8 / np.maximum(hard[image], 0.2))
    overlap = np.where(hit, rng.beta(good, 1.5, len(image)), 0.0)[hit]
    score = overlap + 0.15 * rng.standard_normal(len(overlap))
    n_false = rng.poisson(n_false, n_images)
    false_image = np.repeat(np.arange(n_images), n_false).astype(np.int32)
    false_label = rng.choice(n_classes, len(false_image), p=share / share.sum()).astype(np.int32)
    false_score = 0.35 + 0.25 * rng.standard_normal(len(false_image))
    false_area = np.exp(rng.normal(7.5, 1.5, len(false_image)))
    return matched(
        (image, label, area),
        np.append(image[hit], false_image),
        np.append(label[hit], false_label),
        np.append(score, false_score).round(1 if name == "ties" else 9),
        np.append(overlap, np.zeros(len(false_image))),
        np.append(area[hit], false_area),
        n_images,
        n_classes,
    )


def matched(
    objects: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]],
    image: NDArray[np.int32],
    label: NDArray[np.int32],
    score: NDArray[np.float64],
    overlap: NDArray[np.float64],
    area: NDArray[np.float64],
    n_images: int,
    n_classes: int,
) -> Matches:
    """Match rows of detections with a known overlap with an object of its own; 0 for none."""
    rules = detmap.load_protocol("coco-bbox")
    order, off = ranked(image, label, score, None, (n_images, n_classes))
    thresholds = np.array(rules.thresholds())
    ranges = [(0, 1e10), (0, 1024), (1024, 9216), (9216, 1e10)]
    hits = (overlap[:, None] >= thresholds) @ (1 << np.arange(len(thresholds)))
    inside = np.stack([(low <= area) & (area <= high) for low, high in ranges], axis=1)
    all_bits = (1 << len(thresholds)) - 1
    tp = np.where(inside, hits[:, None], 0)[order]
    ignored = np.where(inside, 0, all_bits)[order]
    key = label[order].astype(np.int64) * n_images + image[order]
    by_key = np.argsort(key, kind="stable")
    first = np.searchsorted(key[by_key], key[by_key])
    rank = np.empty(len(order), np.int32)
    rank[by_key] = np.arange(len(order)) - first
    obj_image, obj_label, obj_area = objects
    obj_order = np.lexsort((obj_image, obj_label))
    categories = detmap.Categories(np.arange(n_classes), tuple(f"c{k}" for k in range(n_classes)))
    nothing = np.zeros(n_images, np.int32)
    return replace(
        Matches.empty(rules, categories),
        image_ids=np.arange(n_images),
        digest=np.zeros((n_images, 2), np.uint64),
        beyond=nothing,
        unjudged=nothing,
        off=off,
        image=image[order],
        rank=rank,
        position=order,
        score=score[order],
        tp=tp.astype(np.uint16),
        ignored=ignored.astype(np.uint16),
        obj_off=offsets(obj_label[obj_order], n_classes),
        obj_image=obj_image[obj_order],
        counted=np.stack([(a <= obj_area) & (obj_area <= b) for a, b in ranges], axis=1)[obj_order],
    )


# --- samples --------------------------------------------------------------------------------------


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


def exchanged(a: Matches, b: Matches, coin: NDArray[np.bool_]) -> tuple[Matches, Matches]:
    """The detectors with their detections of some images exchanged."""
    both = []
    for own, other in ((a, b), (b, a)):
        parts = own.select_where(~coin), other.select_where(coin)
        both.append(parts[0].merge(parts[1]))
    return both[0], both[1]


def evaluate(matches: Matches, of: Units, seed: int) -> Evaluated:
    """Every number on every subset."""
    return detmap.summarize(matches, threads=1).evaluate_subsets(subsets(of, seed), threads=1)


def one_sample(
    whole: list[Matches], world: World, n: int, b: int, seed: int
) -> dict[str, list[list[Any]]]:
    """Sample b of n images or groups: printed intervals, differences, and those of equal pairs."""
    words = random_words(seed + n, DRAWN, b, (1, n))[0] >> np.uint64(32)
    size = np.uint64(whole[0].n_images // world.group)
    drawn = ((words * size) >> np.uint64(32)).astype(np.int64)
    drawn = (drawn[:, None] * world.group + np.arange(world.group)).ravel()
    samples = [sampled(matches, drawn) for matches in whole]
    groups = {i: i // world.group for i in range(len(drawn))} if world.group > 1 else None
    of = units(samples[0].image_ids, groups)
    made = [evaluate(each, of, b) for each in samples]
    kept: dict[str, list[list[Any]]] = {"intervals": [], "classes": [], "pairs": [], "null": []}
    for each in made:
        every = each.estimates.intervals(LEVEL)
        kept["intervals"].append([[one.low, one.high] for one in every[: len(each.metrics)]])
        cells = zip(each.cells, every[len(each.metrics) :], strict=True)
        first = each.cells[0][1] if each.cells else ""
        kept["classes"].append([[k, i.low, i.high] for (k, row), i in cells if row == first])
    for i, j in combinations(range(len(samples)), 2):
        one = made[j].estimates.differences(made[i].estimates)[0]
        kept["pairs"].append([one.low, one.high])
    if n == world.equal:
        coin = (random_words(seed + n, COIN, b, (1, of.n))[0] >> np.uint64(63)).astype(bool)
        equal = exchanged(samples[0], samples[1], coin[of.of_image])
        before, after = (evaluate(each, of, b).estimates for each in equal)
        one = after.differences(before)[0]
        kept["null"].append([one.low, one.high])
    return kept


def run(arguments: argparse.Namespace) -> None:
    """Add samples, a few of each cell in turn, until each has as many as asked for."""
    arguments.state.mkdir(parents=True, exist_ok=True)
    whole = {name: population(name, arguments) for name in arguments.worlds}
    for first in range(0, arguments.samples, arguments.step):
        for name, found in whole.items():
            for n in WORLDS[name].sizes:
                path = cell(arguments.state, name, n)
                done = {line["b"] for line in lines(path)}
                with path.open("a") as file:
                    for b in range(first, min(first + arguments.step, arguments.samples)):
                        if b not in done:
                            kept = one_sample(found, WORLDS[name], n, b, arguments.seed)
                            file.write(json.dumps({"b": b, **kept}) + "\n")
                            file.flush()


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


# --- table ----------------------------------------------------------------------------------------


def table(arguments: argparse.Namespace) -> None:
    """Print the table in Markdown, or write it into a page: a row per population and size."""
    header = ("population", "n", "samples", *(each.removeprefix("m") for each in SHOWN[1:]))
    rows = [(*header, *EXTRA), ("---", *("--:" for _ in (*header[1:], *EXTRA)))]
    for name in arguments.worlds:
        for n in WORLDS[name].sizes:
            done = list(lines(cell(arguments.state, name, n)))
            if done:
                whole = [detmap.summarize(each) for each in population(name, arguments)]
                held = hits(done, whole)
                shares = (share(held.get(number, [])) for number in rows[0][3:])
                rows.append((name, str(n), str(len(done)), *shares))
    text = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    if arguments.docs is None:
        print(text)
        return
    page = arguments.docs.read_text(encoding="utf-8")
    before, rest = page.split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    page = f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{after}"
    arguments.docs.write_text(page, encoding="utf-8")


def share(held: list[bool]) -> str:
    """A percentage; that of few intervals is left out."""
    return f"{100 * sum(held) / len(held):.1f}" if len(held) >= FEWEST else "-"


def hits(done: list[dict[str, Any]], whole: list[Any]) -> dict[str, list[bool]]:
    """Which intervals hold, by number; of all detectors together."""
    found: dict[str, list[bool]] = {}

    def add(number: str, low: float, high: float, true: float) -> None:
        if low == low:
            found.setdefault(number, []).append(low <= true <= high)

    first = next(iter(whole[0].metrics))
    row = first.removeprefix("m")
    for line in done:
        for d, result in enumerate(whole):
            for (metric, true), (low, high) in zip(
                result.metrics.items(), line["intervals"][d], strict=True
            ):
                add(metric.removeprefix("m"), low, high, true)
            for k, low, high in line["classes"][d] if len(result.per_class) > 1 else ():
                add(EXTRA[0], low, high, result.per_class[k][row])
        for p, (i, j) in enumerate(combinations(range(len(whole)), 2)):
            true = whole[j].metrics[first] - whole[i].metrics[first]
            add(EXTRA[1], *line["pairs"][p], true)
        for low, high in line["null"]:
            add(EXTRA[2], low, high, 0.0)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("what", choices=("run", "table"))
    here = Path(__file__).resolve().parents[2] / "shared" / "data" / "voc2007-test"
    parser.add_argument("--data", type=Path, default=here, help="VOC 2007 test and detectors")
    workloads = Path.home() / ".cache" / "detmap-bench"
    parser.add_argument("--workloads", type=Path, default=workloads, help="folder of W1")
    parser.add_argument("--state", type=Path, default=Path("coverage"))
    parser.add_argument("--docs", type=Path, help="page that the table is written into")
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS))
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--step", type=int, default=10, help="samples of a cell at a time")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    {"run": run, "table": table}[arguments.what](arguments)


if __name__ == "__main__":
    main()
