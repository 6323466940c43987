"""Simulates how often intervals contain the true number, and how often tests reject.

    python tools/coverage.py run --state coverage/
    python tools/coverage.py table --state coverage/ --docs docs/coverage.md

A data set counts as the whole population (docs/coverage.md lists them). Each sample has n images
(or groups) with replacement; each copy is an image of its own. Every printed interval of a sample
is compared with the population's number, and every difference of two detectors with the
population's difference. For an equal pair a coin assigns the detections of each image to the one
or the other of two detectors. The limit of a gate is the true drop: it should fail, or pass, in 5 %
of the samples. A sample depends on the seed and its number alone. The state folder has one line of
JSON per sample, and a stopped run continues. `table` writes two tables between marks of a page.
"""

if __name__ == "coverage":  # numba looks for the package of this name, in a tool's folder first
    raise ImportError("a script, not the package coverage")

import argparse
import json
import math
import re
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import detmap
from detmap.analysis.diagnosis import breakdowns
from detmap.analysis.diagnosis.diagnosis_intervals import uncertainty
from detmap.analysis.diagnosis.summary import parts
from detmap.core.curves.scores import scores
from detmap.core.matching.matches import Matches
from detmap.core.statistics.comparison import Comparison, Maker
from detmap.core.statistics.estimates import Difference, Interval
from detmap.core.statistics.evaluations import Evaluated, evaluate_matches
from detmap.core.statistics.formulas.quantiles import incomplete_beta
from detmap.core.statistics.gate import Gate, judge
from detmap.core.statistics.random_words import random_words
from detmap.core.statistics.refusals import LEAST_OF_TEST
from detmap.core.statistics.sampling_units import units
from detmap.core.statistics.subsets import Subsets, subsets
from detmap.core.tables import Categories, Detections, Truth, selection
from detmap.core.tables.grouping import labels, offsets

Tables = tuple[Truth, Detections]

LEVEL = 0.95
FEWEST = 60  # intervals that a share is computed of
NONE = "-"
COCO = ("AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100")
SHOWN = (*COCO, "AP of classes")
TESTS = ("difference", "equal rejected", "fail-if-drop", "require-within", "power")
MARKS = "<!-- tools/coverage.py: begin -->", "<!-- tools/coverage.py: end -->"
DRAWN, COIN, LOST = 1, 2, 3  # tags of the random words
DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "voc2007-test"
FIXED = 0.5  # score of precision, recall and F1 at a fixed threshold


@dataclass(frozen=True, slots=True)
class World:
    """Detectors on one population under one protocol.

    Parameters
    ----------
    rule : the protocol
    detectors : their names
    sizes : images (or groups) of the samples
    group : images per group
    by : what is sampled: ``matches``, or ``tables``, which are matched anew, or ``diagnosis``
    classes : the classes; None for all
    """

    rule: str
    detectors: tuple[str, ...]
    sizes: tuple[int, ...]
    group: int = 1
    by: str = "matches"
    classes: tuple[str, ...] | None = None


VOC = ("yolov2-voc", "tiny-yolov2-voc", "detector-8603")
WEAKER = {
    "W1-weak": ("W1", 0.45, 0),
    "W1-15": ("W1", 0.15, 0),
    "W1-19.5": ("W1", 0.195, 0),
    "W1-19.5-other": ("W1", 0.195, 1),
    "yolov2-voc-10": ("yolov2-voc", 0.1, 0),
    "yolov2-voc-15": ("yolov2-voc", 0.15, 1),
}
"""Detector to another that loses this share of its true positives, and which random ones."""
QUALITY = {"strong": (0.97, 9.0, 0.3), "medium": (0.8, 5.0, 2.0), "perfect": (0.9995, 25.0, 0.1)}
"""Generated detectors: rate of found objects, shape of their overlaps, false positives an image."""
BOTH = ("strong", "medium")
WORLDS = {
    "VOC all-point": World("voc2012", VOC[::2], (200, 500, 1000)),
    "VOC 11-point": World("voc2007", VOC[::2], (200, 500, 1000)),
    "VOC as COCO": World("coco-bbox", VOC, (200, 500, 1000)),
    "W1": World("coco-bbox", ("W1",), (500, 1000)),
    "W1 weak": World("coco-bbox", ("W1-weak",), (500, 1000)),
    "W1 pair": World("coco-bbox", ("W1-15", "W1-19.5"), (500,)),
    "W1 close": World("coco-bbox", ("W1-15", "W1-19.5-other"), (500,)),
    "W1 far": World("coco-bbox", ("W1", "W1-weak"), (500,)),
    "VOC close": World("coco-bbox", ("yolov2-voc-10", "yolov2-voc-15"), (200, 500)),
    "one": World("coco-bbox", BOTH, (100, 300, 1000)),
    "one, AP50 .98": World("coco-bbox", ("perfect",), (100, 300, 1000)),
    "three": World("coco-bbox", BOTH, (60,)),
    "zipf": World("coco-bbox", BOTH, (500,)),
    "own": World("coco-bbox", BOTH, (100, 200), group=4),
    "heavy": World("coco-bbox", BOTH, (100, 300)),
    "ties": World("coco-bbox", BOTH, (100, 300)),
    "Open Images": World("openimages-v2", VOC[::2], (200,), by="tables"),
    "Ultralytics": World("ultralytics-8.4", VOC[::2], (200,), by="tables"),
    "CrowdHuman": World("crowdhuman", VOC[::2], (200,), by="tables", classes=("person",)),
    "FROC": World("froc-boxes", VOC[::2], (200,), by="tables"),
    "darknet": World("darknet-25", VOC[::2], (200, 500)),
    "VOC diagnosis": World("coco-bbox", VOC[:1], (200, 500), by="diagnosis"),
    "heavy diagnosis": World("coco-bbox", BOTH, (100, 300), by="diagnosis"),
}
N_CLASSES = {"one": 1, "zipf": 40, "own": 8}


# --- populations ----------------------------------------------------------------------------------


def population(name: str, arguments: argparse.Namespace) -> list[Any]:
    """The detectors of a world on the whole population: `Matches`, or tables."""
    world = WORLDS[name]
    whole = [WEAKER.get(each, (each, 0.0, 0))[0] for each in world.detectors]
    if whole[0] in VOC:
        tables = [of_voc(arguments.data)[VOC.index(each)] for each in whole]
    elif whole[0] == "W1":
        tables = [of_w1(arguments.workloads)] * len(world.detectors)
    else:
        base = re.split(r"\W", name)[0]
        tables = [generated(base, each, world.group) for each in world.detectors]
    tables = [selection.part(*each, None, world.classes) for each in tables]
    if world.by != "matches":
        return tables
    found = []
    for detector, each in zip(world.detectors, tables, strict=True):
        matches = detmap.match(*each, world.rule)
        _, share, stream = WEAKER.get(detector, ("", 0.0, 0))
        lost = random_words(0, LOST, stream, (1, len(matches)))[0] < int(share * 2**64)
        found.append(replace(matches, tp=np.where(lost[:, None], 0, matches.tp).astype(np.uint16)))
    return found


@cache
def of_voc(data: Path) -> list[Tables]:
    """The three detectors on VOC 2007 test."""
    with tempfile.TemporaryDirectory() as folder:
        for archive in sorted(data.glob("*.tar.xz")):
            with tarfile.open(archive) as file:
                file.extractall(folder, filter="data")
        truth = detmap.read_truth(Path(folder, "VOCdevkit"))
        return [(truth, detmap.read_detections(Path(folder, each), truth)) for each in VOC]


@cache
def of_w1(folder: Path) -> Tables:
    """The workload W1 of tools/workloads.py, which was made before."""
    truth = detmap.read_truth(folder / "W1" / "instances.json")
    return truth, detmap.read_detections(folder / "W1" / "results.json", truth)


def generated(name: str, detector: str, group: int = 1) -> Tables:
    """A population of 4,000 images; all detectors see the same objects.

    The objects of an image stand apart in a row. A detection that found one lies inside of it, so
    that their overlap is the quotient of the widths; the others lie in another row.
    """
    rng, n_images, n_classes = np.random.default_rng(7), 4000, N_CLASSES.get(name, 3)
    share = 1 / np.arange(1, n_classes + 1) if name == "zipf" else np.ones(n_classes)
    rate = np.minimum(1.5, 3 * share / share.sum() * (2 if n_classes == 1 else 1))
    tail = rng.pareto(1.5, n_images) if name == "heavy" else rng.gamma(1.5, 0.7, n_images)
    hard = np.repeat(rng.beta(4, 1, n_images // group), group)  # images of a group are alike
    n_objects = np.minimum(rng.poisson(tail[:, None] * rate), 60)
    image, label = (np.repeat(each, n_objects.ravel()) for each in np.indices(n_objects.shape))
    image, label = np.repeat(image.ravel(), 1), np.repeat(label.ravel(), 1)
    side = np.exp(rng.normal(3.75, 0.75, len(image)))

    def boxes(x: Any, y: float, width: Any, height: Any) -> NDArray[np.float64]:
        return np.column_stack([2e3 * x, np.full(len(width), y), width, height])

    apart = np.arange(len(image))
    truth = detmap.truth_from_arrays(
        image,
        label,
        boxes(apart, 0, side, side),
        images=np.arange(n_images),
        categories={k: f"c{k}" for k in range(n_classes)},
    )
    found, good, n_false = QUALITY[detector]
    rng = np.random.default_rng(8 + list(QUALITY).index(detector))
    hit = rng.random(len(image)) < found ** (0.8 / np.maximum(hard[image], 0.2))
    hit = np.repeat(np.flatnonzero(hit), 1 + (rng.random(hit.sum()) < 0.02))  # some twice
    overlap = rng.beta(good, 1.5, len(hit))
    score = overlap + 0.15 * rng.standard_normal(len(overlap))
    named = np.where(rng.random(len(hit)) < 0.97, label[hit], rng.integers(0, n_classes, len(hit)))
    false = np.repeat(np.arange(n_images), rng.poisson(n_false, n_images))
    other = rng.choice(n_classes, len(false), p=share / share.sum())
    false_score = 0.35 + 0.25 * rng.standard_normal(len(false))
    width = np.exp(rng.normal(3.75, 0.75, len(false)))
    every = np.clip(np.append(score, false_score) / 1.5, 0, 1)
    found_boxes = boxes(apart[hit], 0, side[hit] * overlap, side[hit])
    return truth, detmap.detections_from_arrays(
        truth,
        np.append(image[hit], false),
        np.append(named, other),
        np.vstack([found_boxes, boxes(np.arange(len(false)), 5e3, width, width)]),
        every.round(1 if name == "ties" else 9),
    )


# --- samples --------------------------------------------------------------------------------------


class Copies:
    """The rows of drawn images, each copy an image of its own."""

    def __init__(self, drawn: NDArray[np.int64], n_images: int) -> None:
        self.order = np.argsort(drawn, kind="stable")
        self.begins = np.searchsorted(drawn[self.order], np.arange(n_images + 1))

    def rows(self, image: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The rows of images, and their new images."""
        times = self.begins[image + 1] - self.begins[image]
        rows = np.repeat(np.arange(len(image)), times)
        first = np.concatenate([[0], np.cumsum(times)])[:-1]
        which = np.arange(len(rows)) - np.repeat(first, times)
        return rows, self.order[self.begins[image[rows]] + which].astype(np.int32)


def sampled(matches: Matches, drawn: NDArray[np.int64]) -> Matches:
    """The images that were drawn, each copy an image of its own; rows stay ranked by score."""
    n, n_classes, copies = len(drawn), len(matches.categories), Copies(drawn, matches.n_images)
    rows, image = copies.rows(matches.image)
    obj_rows, obj_image = copies.rows(matches.obj_image)
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


def sampled_tables(truth: Truth, found: Detections, drawn: NDArray[np.int64]) -> Tables:
    """The same of tables; rows are sorted by image."""
    images = replace(
        truth.images,
        ids=np.arange(1, len(drawn) + 1),
        stems=tuple(map(str, range(1, len(drawn) + 1))),
        width=truth.images.width[drawn],
        height=truth.images.height[drawn],
        attributes={name: column[drawn] for name, column in truth.images.attributes.items()},
    )
    copies = Copies(drawn, len(truth.images))

    def part(table: Any) -> Any:
        rows, image = copies.rows(table.image)
        order = np.argsort(image, kind="stable")
        return replace(table.take(rows[order]), image=image[order], images=images)

    return part(truth), part(found)


def exchanged(a: Matches, b: Matches, coin: NDArray[np.bool_]) -> tuple[Matches, Matches]:
    """The detectors with their detections of some images exchanged."""
    both = []
    for own, other in ((a, b), (b, a)):
        parts = own.select_where(~coin), other.select_where(coin)
        both.append(parts[0].merge(parts[1]))
    return both[0], both[1]


def evaluate(detector: Any, rule: str, dealt: Subsets) -> Evaluated:
    """Every number on every subset."""
    if isinstance(detector, Matches):
        return detmap.summarize(detector, threads=1).evaluate_subsets(dealt, threads=1)
    found: Any = detmap.evaluate(*detector, rule, threads=1)
    evaluated: Evaluated = found.evaluate_subsets(dealt)
    return evaluated


def numbers(found: Evaluated) -> dict[str, Interval]:
    """The intervals of the metrics, and of the first number of each class."""
    first = found.cells[0][1] if found.cells else ""
    keys = [*found.metrics, *(f"{row} of classes|{k}" for k, row in found.cells)]
    every = dict(zip(keys, found.estimates.intervals(LEVEL), strict=True))
    return {key: one for key, one in every.items() if "|" not in key or key.startswith(f"{first} ")}


def diagnosed(truth: Truth, found: Detections, seed: int) -> dict[str, Interval]:
    """The intervals of a diagnosis."""
    seen = detmap.diagnose(truth, found, "coco-bbox", threads=1)
    made = uncertainty(seen, parts(seen), np.array([FIXED]), seed=seed, threads=1)
    rates = ("precision", "recall", "F1")
    mean = [made.classes.intervals[k] for k in made.rates(made.rates(0)[1] - 1)]
    rows = [
        (f"gain of {kind}" if kind else "AP50", each.intervals[0])
        for kind, each in made.gain.items()
    ]
    rows += [
        (f"{rate} {at}", one)
        for at, each in (
            (f"at {FIXED}", made.curve.intervals),
            ("at the best F1", made.best.intervals),
            ("at the best F1, mean of classes", mean),
        )
        for rate, one in zip(rates, each, strict=True)
    ]
    if made.calibration is not None:
        names = ("ECE", "largest deviation", "mean deviation", "D-ECE")
        rows += zip(names, made.calibration.intervals, strict=True)
    rows += zip(("oLRP", "oLRP-Loc", "oLRP-FP", "oLRP-FN"), made.olrp.intervals, strict=True)
    rows.append(("mean IoU", made.overlap.intervals[0]))
    for (by, place, _), recall, ap in zip(
        breakdowns.lists(seen), made.slice_recall.intervals, made.slice_ap.intervals, strict=True
    ):
        if by != "objects of the class":  # their ranges depend on the size of the data set
            key = f"of subsets|{by} {place}"
            rows += [(f"recall {key}", recall), (f"AP {key}", ap)]
    return dict(rows)


Outcomes = dict[str, list[bool]]


def one_sample(
    whole: Sequence[Any], true: Sequence[dict[str, float]], world: World, n: int, b: int, seed: int
) -> Outcomes:
    """Sample b of n images or groups: which intervals hold, what tests and gates say."""
    found: Outcomes = {}
    first = whole[0]
    n_images = first.n_images if isinstance(first, Matches) else len(first[0].images)
    words = random_words(seed + n, DRAWN, b, (1, n))[0] >> np.uint64(32)
    drawn = ((words * np.uint64(n_images // world.group)) >> np.uint64(32)).astype(np.int64)
    drawn = (drawn[:, None] * world.group + np.arange(world.group)).ravel()
    if isinstance(first, Matches):
        samples: list[Any] = [sampled(each, drawn) for each in whole]
    else:
        samples = [sampled_tables(*each, drawn) for each in whole]
    if world.by == "diagnosis":
        for sample, values in zip(samples, true, strict=True):
            held(found, diagnosed(*sample, b), values)
        return found
    ids = np.arange(1, len(drawn) + 1) if world.by == "tables" else samples[0].image_ids
    of = units(ids, {i: i // world.group for i in ids.tolist()} if world.group > 1 else None)
    dealt = subsets(of, b)
    made = [evaluate(each, world.rule, dealt) for each in samples]
    for each, values in zip(made, true, strict=True):
        held(found, numbers(each), values)
    metric = made[0].metrics[0]
    for i, j in combinations(range(len(samples)), 2):
        drop = true[i][metric] - true[j][metric]
        pair = (i, j) if drop > 0 else (j, i)
        compared(found, [made[k] for k in pair], abs(drop))
    if len(samples) > 1 and world.by == "matches" and of.n >= LEAST_OF_TEST:
        coin = (random_words(seed + n, COIN, b, (1, of.n))[0] >> np.uint64(63)).astype(bool)
        equal = exchanged(samples[0], samples[1], coin[of.of_image])
        found["equal rejected"] = [first_of(*equal, dealt).p < 1 - LEVEL]
    return found


def first_of(a: Matches, b: Matches, dealt: Subsets) -> Difference:
    """The difference in the first metric."""
    rows = a.protocol.rows()[0][:1]
    before, after = (
        evaluate_matches(each, scores(each), dealt, rows=rows, classes=False, threads=1)
        for each in (a, b)
    )
    return after.estimates.differences(before.estimates, 1 - LEVEL)[0]


def held(found: Outcomes, made: dict[str, Interval], true: dict[str, float]) -> None:
    """Add whether the printed intervals contain the true numbers; some keys share a name."""
    for key, one in made.items():
        if one.low == one.low and key in true:
            found.setdefault(key.partition("|")[0], []).append(one.low <= true[key] <= one.high)


def compared(found: Outcomes, pair: list[Evaluated], drop: float) -> None:
    """Add what is said of the second detector's true drop in the first metric."""
    maker = Maker("ab", pair, Categories(np.empty(0, np.int64), ()), 1 - LEVEL, "none")
    one, of = maker.pairs()[0], maker.units
    if one.why_not:
        return
    found.setdefault("difference", []).append(one.low <= -drop <= one.high)
    if of.n < LEAST_OF_TEST:
        return
    found.setdefault("power", []).append(one.p < 1 - LEVEL)
    comparison = Comparison(
        ("a", "b"), {}, {}, (one,), (), (), 1 - LEVEL, "t", "none", 0, of, "", ()
    )
    for kind, passes in (("fail-if-drop", False), ("require-within", True)):
        verdict = judge(comparison, Gate(kind, 100 * drop), 1 - LEVEL)
        found.setdefault(kind, []).append(verdict.passed == passes)


def run(arguments: argparse.Namespace) -> None:
    """Add samples, a few of each cell in turn, until each has as many as asked for."""
    arguments.state.mkdir(parents=True, exist_ok=True)
    whole = {name: population(name, arguments) for name in arguments.worlds}
    true = {name: truths(name, found, arguments.state) for name, found in whole.items()}
    for first in range(0, arguments.samples, arguments.step):
        for name, found in whole.items():
            for n in WORLDS[name].sizes:
                one = partial(one_sample, found, true[name], WORLDS[name], n, seed=arguments.seed)
                wanted = range(first, min(first + arguments.step, arguments.samples))
                add_samples(cell(arguments.state, name, n), wanted, one)


def add_samples(path: Path, wanted: range, one: Callable[[int], Outcomes]) -> None:
    """Add those that the file of a cell lacks."""
    kept = {line["b"]: line for line in lines(path)}
    path.write_text("".join(json.dumps(line) + "\n" for line in kept.values()))
    with path.open("a") as file:
        for b in wanted:
            if b not in kept:
                file.write(json.dumps({"b": b, **one(b)}) + "\n")
                file.flush()


def truths(name: str, whole: Sequence[Any], state: Path) -> list[dict[str, float]]:
    """The numbers of the whole population, by detector; kept in the state folder."""
    path, world = state / f"true-{slug(name)}.json", WORLDS[name]
    if not path.exists():
        found = []
        for each in whole:
            if world.by == "diagnosis":
                made = diagnosed(*each, 0)
            else:
                ids = each.image_ids if isinstance(each, Matches) else each[0].images.ids
                none = Subsets(units(ids), 0, np.empty((0, len(ids)), bool))
                made = numbers(evaluate(each, world.rule, none))
            found.append({key: one.value for key, one in made.items()})
        path.write_text(json.dumps(found))
    listed: list[dict[str, float]] = json.loads(path.read_text())
    return listed


def cell(state: Path, name: str, n: int) -> Path:
    """The file of the samples of one size."""
    return state / f"{slug(name)}-{n}.jsonl"


def slug(name: str) -> str:
    """A name for a file."""
    return name.replace(" ", "-").replace(",", "")


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """What is done; half a line at the end is not."""
    if path.exists():
        for line in path.read_text().splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue


# --- tables ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Share:
    """A percentage of intervals or tests.

    Parameters
    ----------
    percent : rounded as it is printed
    n : independent ones that would have the same standard error: those of a sample depend on
        each other
    """

    percent: float
    n: int

    def __str__(self) -> str:
        return f"{self.percent:.1f}"


Shares = dict[tuple[str, int], dict[str, Share]]


def table(arguments: argparse.Namespace) -> None:
    """Print the tables in Markdown, or write them between the marks of a page."""
    found: Shares = {}
    samples: dict[tuple[str, int], str] = {}
    for name, world in WORLDS.items():
        for n in world.sizes:
            done = list(lines(cell(arguments.state, name, n)))
            if done:
                found[name, n] = shares(done)
                samples[name, n] = str(len(done))
    diagnoses = {key: of for key, of in found.items() if WORLDS[key[0]].by == "diagnosis"}
    plain = {key for key in found if WORLDS[key[0]].rule in ("coco-bbox", "voc2007", "voc2012")}
    numbers = {key: of for key, of in found.items() if key in plain and key not in diagnoses}
    others = {key: of for key, of in found.items() if key not in plain}
    tested = {key: of for key, of in found.items() if "power" in of}
    names = ["number", *(f"{name.split()[0]} {n}" for name, n in diagnoses)]
    kinds = dict.fromkeys(kind for of in diagnoses.values() for kind in of)
    by_kind = [["samples", *(samples[key] for key in diagnoses)]]
    by_kind += [[kind, *(str(of.get(kind, NONE)) for of in diagnoses.values())] for kind in kinds]
    listed = []
    for (name, n), of in others.items():
        each = ", ".join(f"{kind} {share}" for kind, share in of.items() if kind not in TESTS)
        listed.append([name, str(n), samples[name, n], each])
    text = "\n\n".join(
        (
            markdown(["population", "n", "samples", *SHOWN], by_cell(numbers, SHOWN, samples)),
            markdown(["population", "n", "samples", *TESTS], by_cell(tested, TESTS, samples)),
            markdown(["protocol", "n", "samples", "held"], listed),
            markdown(names, by_kind),
            outside(found),
            levels(found),
        )
    )
    write(text, arguments.docs, MARKS)


def write(text: str, path: Path | None, marks: tuple[str, str]) -> None:
    """Print a text, or write it between the marks of a page."""
    if path is None:
        print(text)
        return
    page = path.read_text(encoding="utf-8")
    before, rest = page.split(marks[0])
    page = f"{before}{marks[0]}\n{text}\n{marks[1]}{rest.split(marks[1])[1]}"
    path.write_text(page, encoding="utf-8")


def shares(done: list[dict[str, Any]]) -> dict[str, Share]:
    """The percentage of each kind of outcome; that of few intervals is left out."""
    found = {}
    for kind in dict.fromkeys(kind for line in done for kind in line if kind != "b"):
        by_sample = [np.array(line[kind]) for line in done if line.get(kind)]
        total = sum(map(len, by_sample))
        if total >= FEWEST:
            p = float(np.concatenate(by_sample).mean())
            variance = sum(float((each - p).sum()) ** 2 for each in by_sample) / total**2
            n = round(p * (1 - p) / variance) if variance else total
            n = min(max(n, len(by_sample)), total)
            found[re.sub("^m(?=AP)", "", kind)] = Share(round(100 * p, 1), n)
    return found


def by_chance(
    listed: Sequence[Share], asked: float, low: float, high: float
) -> tuple[float, float]:
    """How many of so many shares chance alone puts below and above limits, if each has the asked
    probability; in percent.
    """
    below = above = 0.0
    for n in (each.n for each in listed):
        most, least = math.ceil(low * n / 100) - 1, math.floor(high * n / 100) + 1
        below += 1 - incomplete_beta(most + 1, n - most, asked / 100)
        above += incomplete_beta(least, n - least + 1, asked / 100)
    return below, above


def outside(found: Shares) -> str:
    """The shares of intervals below 92 % and above 98 %, in a sentence each."""
    listed = [
        (share, f"{name} {n} {kind} {share}")
        for (name, n), of in found.items()
        for kind, share in of.items()
        if kind not in TESTS or kind == "difference"
    ]
    listed.sort(key=lambda each: (each[0].percent, each[1]))
    low = [text for share, text in listed if share.percent < 92]
    high = [text for share, text in listed if share.percent > 98]
    below, above = by_chance([share for share, _ in listed], 100 * LEVEL, 92, 98)
    return (
        f"Of {len(listed)} shares {len(low)} are below 92 % and {len(high)} above 98 %. If each "
        f"interval held with a probability of 95 %, chance alone would put about {below:.0f} below "
        f"and {above:.0f} above.\n\n"
        f"Below: {'; '.join(low) or 'none'}.\n\nAbove: {'; '.join(high) or 'none'}."
    )


def levels(found: Shares) -> str:
    """The levels of tests that are far from 5 %, in a sentence each."""
    told = []
    for kinds, low, high in (("equal rejected",), 3, 7), (("fail-if-drop", "require-within"), 2, 8):
        listed = [of[kind] for of in found.values() for kind in kinds if kind in of]
        if listed:
            below, above = by_chance(listed, 100 * (1 - LEVEL), low, high)
            mean = sum(share.percent for share in listed) / len(listed)
            told.append(
                f"{' and '.join(kinds)}: mean {mean:.1f} %; of {len(listed)} levels "
                f"{sum(share.percent < low for share in listed)} are below {low} % and "
                f"{sum(share.percent > high for share in listed)} above {high} %, by chance alone "
                f"{below:.0f} and {above:.0f}."
            )
    return "\n\n".join(told)


def by_cell(
    found: Shares, kinds: Sequence[str], samples: dict[tuple[str, int], str]
) -> list[list[str]]:
    """A row per population and size."""
    return [
        [name, str(n), samples[name, n], *(str(of.get(kind, NONE)) for kind in kinds)]
        for (name, n), of in found.items()
    ]


def markdown(header: Sequence[str], rows: list[list[str]]) -> str:
    """A table whose columns but the first are aligned to the right."""
    rule = ["---", *("--:" for _ in header[1:])]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--data", type=Path, default=DATA, help="VOC 2007 test and detectors")
    workloads = Path.home() / ".cache" / "detmap-bench"
    parser.add_argument("--workloads", type=Path, default=workloads, help="folder of W1")
    parser.add_argument("--state", type=Path, default=Path("coverage"))
    parser.add_argument("--docs", type=Path, help="page that the tables are written into")
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS))
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--step", type=int, default=10, help="samples of a cell at a time")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    {"run": run, "table": table}[arguments.what](arguments)


if __name__ == "__main__":
    main()
