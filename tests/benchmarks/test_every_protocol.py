"""Every use of every protocol gives the numbers of the whole evaluation, or is refused by name."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.analysis.diagnosis.tide import tide
from detmap.analysis.html_report import report
from detmap.core.overlaps import kind_of
from detmap.core.overlaps.keypoints import Keypoints
from detmap.core.overlaps.rotated_boxes import RotatedBoxes
from detmap.core.protocol import names
from detmap.core.tables import Detections, Truth
from tests.benchmarks import test_froc
from tests.support.empty_axes import batch
from tests.support.small_pages import few_subsets

IMAGES = np.arange(1, 7)
FIRST, REST = IMAGES[:2], IMAGES[2:]
Metrics = dict[str, float]


class Case:
    """The small data of a protocol, and its result."""

    def __init__(self, name: str, truth: Truth, detections: Detections) -> None:
        self.name, self.protocol = name, detmap.load_protocol(name)
        self.truth, self.detections = truth, detections
        self.whole: Any = detmap.evaluate(truth, detections, name)

    def part(self, ids: Any) -> tuple[Truth, Detections]:
        """The tables of some images."""
        at = np.flatnonzero(np.isin(self.truth.images.ids, ids))
        return self.truth.select_images(at), self.detections.select_images(at)

    def of_images(self, ids: Any) -> Any:
        return detmap.evaluate(self.truth, self.detections, self.name, images=ids)


def boxes(rng: np.random.Generator, n: int) -> Any:
    sides = rng.choice([6.0, 14, 30, 60, 110], (n, 2))
    return np.hstack([rng.integers(0, 6, (n, 2)) * 20.0, sides])


def tables(name: str) -> tuple[Truth, Detections]:
    """Objects with every role and attribute that a protocol reads, and detections near them."""
    rng = np.random.default_rng(0)
    n, m = 30, 80
    labels, image, own = rng.integers(1, 4, n), rng.integers(1, 7, n), boxes(rng, n)
    source = rng.integers(0, n, m)
    source = source[np.argsort(image[source], kind="stable")]  # so file order is that of ids
    found = own[source] + rng.normal(0, 2, (m, 4))
    found[:, 2:] = np.maximum(found[:, 2:], 5)
    known = ("person", "dog", "cat") if name == "ov-coco" else ("Car", "Pedestrian", "Van")
    columns = {each: rng.random(n) for each in ("vis_ratio", "visible", "truncated", "motion_iou")}
    flags = ("occluded", "listed_easy", "listed_medium", "listed_hard")
    columns |= {each: rng.integers(0, 2, n).astype(float) for each in flags}
    columns |= {"left": own[:, 0] + 9, "top": own[:, 1] + 9, "alpha": rng.normal(size=n)}
    columns |= {"right": own[:, 0] + own[:, 2], "bottom": own[:, 1] + own[:, 3]}
    roles = ("ignore", "uncertain", "unscored", "group_of")
    truth = detmap.truth_from_arrays(
        image, labels, own, images=IMAGES, categories=dict(enumerate(known, 1)),
        attributes=columns, roles={each: rng.random(n) < 0.1 for each in roles},
        crowd=rng.random(n) < 0.1,
    )  # fmt: skip
    size, index = np.full(len(IMAGES), 400.0), {"crowdIndex": np.linspace(0, 1, len(IMAGES))}
    images = replace(truth.images, width=size, height=size, attributes=index)
    truth = replace(truth, images=images)
    other = np.where(rng.random(m) < 0.8, labels[source], 1)
    rows = image[source], other, found, rng.random(m).round(2)
    detections = detmap.detections_from_arrays(truth, *rows)
    detections = replace(detections, attributes={"alpha": rng.normal(size=m)})
    return with_shapes(name, truth, detections, rng)


def with_shapes(
    name: str, truth: Truth, detections: Detections, rng: np.random.Generator
) -> tuple[Truth, Detections]:
    """The tables with the shapes that the protocol compares."""
    kind, given = detmap.load_protocol(name).iou.of, []
    k = len(detmap.load_protocol(name).iou.sigmas)
    places = rng.random((1, k, 2))
    for table in (truth, detections):
        shapes: Any = None
        box, n = table.boxes, len(table)
        if kind == "keypoints":
            points = np.ones((n, k, 3))
            points[:, :, :2] = box[:, None, :2] + places * box[:, None, 2:]
            shapes = Keypoints(points, box[:, 2] * box[:, 3])
        elif kind in ("polygons", "rotated", "probiou"):
            center = box[:, :2] + box[:, 2:] / 2
            shapes = RotatedBoxes(np.column_stack([center, box[:, 2:], np.full(n, 0.1)]))
        given.append(replace(table, shapes=shapes))
    return given[0], given[1]


def masks(folder: Path) -> tuple[Truth, Detections]:
    """The boxes as polygons, read from files."""
    truth, detections = tables("coco-bbox")

    def rows(table: Any) -> list[dict[str, Any]]:
        columns = table.images.ids[table.image], table.categories.ids[table.label], table.boxes
        return [
            {"image_id": int(i), "category_id": int(k), "bbox": [x, y, w, h], "area": w * h,
             "segmentation": [[x, y, x + w, y, x + w, y + h, x, y + h]]}
            for i, k, (x, y, w, h) in zip(*(c.tolist() for c in columns), strict=True)
        ]  # fmt: skip

    objects = [{**row, "id": i, "iscrowd": 0} for i, row in enumerate(rows(truth), 1)]
    scores = detections.score.tolist()
    found = [{**row, "score": s} for row, s in zip(rows(detections), scores, strict=True)]
    classes = [{"id": i, "name": each} for i, each in enumerate(truth.categories.names, 1)]
    images = [{"id": i, "width": 400, "height": 400} for i in IMAGES.tolist()]
    tree = {"images": images, "annotations": objects, "categories": classes}
    (folder / "truth.json").write_text(json.dumps(tree))
    (folder / "dets.json").write_text(json.dumps(found))
    read = detmap.read_truth(folder / "truth.json", shapes="masks")
    return read, detmap.read_detections(folder / "dets.json", read)


@cache
def case(name: str, folder: Path) -> Case:
    if name == "froc-luna16":
        test_froc.spheres(1, folder)
        read = detmap.read_truth(folder / "annotations.csv", format="luna16")
        found = detmap.read_detections(folder / "results.csv", read, format="luna16")
        return Case(name, read, found)
    of_masks = kind_of(detmap.load_protocol(name).iou.of).reader is kind_of("masks").reader
    return Case(name, *(masks(folder) if of_masks else tables(name)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


# ---- uses: each returns metrics, and those of the whole evaluation that they must be


def halves(given: Case) -> tuple[Any, Any]:
    ids = given.truth.images.ids
    return ids[: len(ids) // 2], ids[len(ids) // 2 :]


def merged(given: Case) -> tuple[Metrics, Metrics]:
    parts = [
        detmap.match(given.truth, given.detections, given.name, images=ids) for ids in halves(given)
    ]
    return detmap.summarize(parts[1].merge(parts[0])).metrics, given.whole.metrics


def streamed(given: Case) -> tuple[Metrics, Metrics]:
    evaluator = detmap.Evaluator(given.name, truth=given.truth, box_format="xywh")
    for at in reversed(range(len(given.truth.images))):
        evaluator.update([batch(given.truth, given.detections, at)])
    return evaluator.compute().metrics, given.whole.metrics


def weighted(given: Case) -> tuple[Metrics, Metrics]:
    """Weight 0 leaves an image out, and weight 1 keeps it."""
    matches = detmap.match(given.truth, given.detections, given.name)
    rest = halves(given)[1]
    weights = np.isin(matches.image_ids, rest).astype(float)
    return detmap.summarize(matches, weights=weights).metrics, given.of_images(rest).metrics


def selected(given: Case) -> tuple[Metrics, Metrics]:
    rest = halves(given)[1]
    return given.whole.select(rest).metrics, given.of_images(rest).metrics


def sliced(given: Case) -> tuple[Metrics, Metrics]:
    first, rest = halves(given)
    slices = given.whole.slices({"first": first, "rest": rest})
    return slices["first"].metrics, given.of_images(first).metrics


def intervals(given: Case) -> tuple[Metrics, Metrics]:
    made = given.whole.intervals().metrics
    return {name: each.value for name, each in made.items()}, given.whole.metrics


def compared(given: Case) -> tuple[Metrics, Metrics]:
    other = given.detections.take(np.arange(0, len(given.detections), 2))
    values = detmap.compare(given.truth, given.detections, other, protocol=given.name).values
    second = detmap.evaluate(given.truth, other, given.name).metrics
    assert all(same(pair[1], second[name]) for name, pair in values.items())
    return {name: pair[0] for name, pair in values.items()}, given.whole.metrics


def diagnosed(given: Case) -> tuple[Metrics, Metrics]:
    found = tide(detmap.diagnose(given.truth, given.detections, given.name)).ap
    half = given.protocol.override({"iou.thresholds": [0.5], "metrics": ["AP"]})
    whole = detmap.evaluate(given.truth, given.detections, half).metrics
    return {"AP": round(found / 100, 12)}, {"AP": round(whole["AP"], 12)}


def reported(given: Case) -> tuple[Metrics, Metrics]:
    with few_subsets():
        made = report(given.truth, {"one": given.detections}, given.protocol, kind="md")
    page = made.decode()
    shown = dict(re.findall(r"^\| ([^|]+) \| ([0-9.]+)", page, re.MULTILINE))
    known = {name: x for name, x in given.whole.metrics.items() if name in shown}
    assert known
    wrong = [name for name, x in known.items() if abs(100 * x - float(shown[name])) > 0.5 + 1e-9]
    return {"wrong": float(len(wrong))}, {"wrong": 0.0}


USES: dict[str, Callable[[Case], tuple[Metrics, Metrics]]] = {
    each.__name__: each
    for each in (merged, streamed, weighted, selected, sliced, intervals, compared)
}
USES |= {"diagnosed": diagnosed, "reported": reported}


def same(a: float, b: float) -> bool:
    return a == b or (np.isnan(a) and np.isnan(b))


def is_named(given: Case, error: detmap.DetmapError) -> bool:
    """Whether an error says the protocol's name, its rule, or a key or a metric of it."""
    text = str(error)
    tree = given.protocol.to_dict()
    keys = {f"{table}.{key}" for table, own in tree.items() if isinstance(own, dict) for key in own}
    words = {given.name, given.protocol.evaluation.rule, *keys} - {"matching"}
    return any(word in text for word in words)


@pytest.mark.slow
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", names())
def test_the_same_numbers_or_a_refusal_by_name(name: str, use: str, folder: Path) -> None:
    given = case(name, folder)
    assert not all(map(np.isnan, given.whole.metrics.values()))
    try:
        found, wanted = USES[use](given)
    except detmap.DetmapError as error:
        assert is_named(given, error), error  # noqa: PT017  # both ends are right
        return
    assert found
    for metric, value in found.items():
        assert same(value, wanted[metric]), metric


@pytest.mark.slow
def test_what_every_protocol_takes(folder: Path) -> None:
    """COCO's and VOC's rules are refused nowhere; slices and intervals serve all."""
    for name in ("coco-bbox", "voc2012"):
        for use in USES.values():
            use(case(name, folder))
    for name in ("kitti", "froc-luna16", "openimages-v2"):
        for use in (selected, sliced, intervals):
            use(case(name, folder))


def test_parts_keep_file_order_and_weight_0_leaves_an_image_out(folder: Path) -> None:
    for name, use in (("voc2007", merged), ("crowdhuman", weighted)):
        found, wanted = use(case(name, folder))
        assert found
        assert all(same(value, wanted[metric]) for metric, value in found.items()), name


# ---- Dask


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of sockets that the cluster leaves to the collector
def test_dask_gives_the_same_numbers_or_a_refusal_by_name(folder: Path) -> None:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        evaluated = sum(dask_agrees(name, folder, client) for name in names())
    assert evaluated > len(names()) // 2


def dask_agrees(name: str, folder: Path, client: Any) -> bool:
    """Checks one protocol; False if it is refused by name."""
    from detmap.integrations.distributed import evaluate

    given = case(name, folder)
    shards = [partial(given.part, ids) for ids in halves(given)]
    try:
        found = evaluate(shards, name, client).metrics
    except detmap.DetmapError as error:
        assert is_named(given, error), (name, error)  # noqa: PT017  # both ends are right
        return False
    assert found, name
    assert all(same(value, given.whole.metrics[metric]) for metric, value in found.items()), name
    return True
