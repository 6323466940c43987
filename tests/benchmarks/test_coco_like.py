"""LVIS fixed AP, AI-TOD, SODA-D, TinyPerson, CrowdPose and COCO-WholeBody: the numbers of their own
code to the last bit, the rules by which they differ from COCO, and files without what they need.
"""

import doctest
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.core.curves import terms
from detmap.core.curves.lower_limits import within
from detmap.core.curves.scores import join, scores
from detmap.core.results.result import Result
from tests.benchmarks.goldens import CASES, folder, of_case
from tests.protocol.test_keys import TWO, A, B, data
from tests.support.numpy_sums import equal

ROOT_OF_DOCS = Path(__file__).resolve().parents[2] / "docs" / "benchmarks"
cases = pytest.mark.parametrize("case", CASES)


def evaluated(name: str, case: str, protocol: str, **settings: Any) -> Any:
    files = folder(name) / case / "truth.json", folder(name) / case / "dets.json"
    return detmap.evaluate(*files, protocol, settings=settings or None)


def same(value: float, wanted: float | None) -> bool:
    """Equal bits; -1 and null are NaN."""
    return bool(np.isnan(value)) if wanted in (None, -1) else equal(value, wanted)


def of_row(result: Any, row: str) -> float:
    """The metric of a golden such as ``AP 0.50:0.95 tiny 1500``."""
    kind, iou, area, limit = row.split()
    at = None if ":" in iou else float(iou)
    key = (kind, at, area, int(limit))
    named = {(r.kind, r.iou, r.subset, r.max_dets): r.name for r in named_rows(result)}
    return float(result.metrics[named[key]])


# ---- goldens


@cases
@pytest.mark.parametrize("limit", ["10000", "60", "15"])
def test_lvis_fixed(case: str, limit: str) -> None:
    settings = {"limits.max_dets": [int(limit)]}
    result = evaluated("lvis-fixed-ap", case, "lvis-fixed", **settings)
    wanted = of_case("lvis-fixed-ap", case)[f"topk={limit}"]
    kept = wanted.pop("detections kept")
    assert all(same(result.metrics[name.removesuffix("@-1")], x) for name, x in wanted.items())
    assert len(wanted) == len(result.metrics)
    read = len(json.loads((folder("lvis-fixed-ap") / case / "dets.json").read_text()))
    assert read - kept == int(result.matches.beyond.sum())


@cases
@pytest.mark.parametrize("name", ["aitod", "sodad"])
def test_sizes_of_tiny_objects(name: str, case: str) -> None:
    result, wanted = evaluated(name, case, name), of_case(name, case)
    wanted.pop("AP 0.25 all 1500", None)  # the original never computes it
    errors = {"oLRP": "", "Localisation": "-Loc", "false_positive": "-FP", "false_negative": "-FN"}
    for row, value in wanted.items():
        kind = row.removeprefix("oLRP_")
        own = result.metrics[f"oLRP{errors[kind]}"] if kind in errors else of_row(result, row)
        assert same(own, value), row
    assert len(wanted) == len(result.metrics)


WITHOUT = {"ignore": "ignore", "crowd": "absorb", "difficult": "absorb"}
FLAGS: dict[str, dict[str, Any]] = {
    "official: ignore_uncertain, use_iod_for_ignore": {},
    "ignore_uncertain only": {"matching.neutral": {**WITHOUT, "uncertain": "ignore"}},
    "neither": {"matching.neutral": WITHOUT},
}


@cases
@pytest.mark.parametrize("flags", FLAGS)
def test_tinyperson(flags: str, case: str) -> None:
    settings = FLAGS[flags]
    if settings:
        settings = settings | {"matching.outside": "ignore", "iou.absorb_from": "boxes"}
    result = evaluated("tinyperson", case, "tinyperson", **settings)
    wanted = of_case("tinyperson", case)[f"tiny; {flags}"]
    assert all(same(of_row(result, row), value) for row, value in wanted.items())
    assert len(wanted) == len(result.metrics) == 42


def named_rows(result: Any) -> Any:
    """The rows of the metrics, those of a rule of its own too."""
    return result.protocol.override({"evaluation.rule": "matching"}).rows()[0]


@cases
def test_crowdpose(case: str) -> None:
    result = evaluated("crowdpose", case, "crowdpose")
    for wanted in of_case("crowdpose", case).values():
        for row, value in wanted.items():
            degree = row.split()[2]
            own = of_row(result, row) if degree == "all" else result.metrics[f"AP-{degree}"]
            assert same(own, value), row
        assert len(wanted) == len(result.metrics)


@cases
def test_wholebody(case: str) -> None:
    result = evaluated("coco-wholebody", case, "wholebody")
    wanted = of_case("coco-wholebody", case)
    rows = {(r.kind, r.iou, r.subset): r.name for r in named_rows(result)}
    for part, table in wanted.items():
        kind = "all" if part == "wholebody" else part
        for row, value in table.items():
            letters, iou, area, _ = row.split()
            name = rows[(letters, None if ":" in iou else float(iou), area)]
            assert same(result.metrics[f"{name}-{kind}"], value), (part, row)
    assert len(result.metrics) == sum(map(len, wanted.values()))
    (person,) = result.per_class
    assert person["AP-face"] == result.metrics["AP-face"]


# ---- a limit of the whole data set


def test_of_equal_scores_the_earlier_of_the_file_are_kept() -> None:
    """Whatever the image: the order of the file and not that of image ids."""
    tables = data([A, A], [A, A], [0.5, 0.5], object_image=[1, 2], image=[2, 1], images=[1, 2])
    settings = {"limits.scope": "dataset", "limits.max_dets": [1]}
    assert detmap.evaluate(*tables, "coco-bbox", settings=settings).matches.position.tolist() == [0]


def test_both_engines_keep_the_same() -> None:
    tables = data(
        [A, B, A],
        [A, B, A, A],
        [0.5, 0.9, 0.5, 0.7],
        object_class=[1, 2, 1],
        label=[1, 2, 1, 1],
        object_image=[1, 1, 2],
        image=[1, 1, 2, 2],
        images=[1, 2],
        **TWO,
    )
    for m in (1, 2):
        settings = {"limits.scope": "dataset", "limits.max_dets": [m]}
        fast = detmap.evaluate(*tables, "coco-bbox", settings=settings)
        general = settings | {"iou.absorb_from": "iou"}
        slow = detmap.evaluate(*tables, "coco-bbox", settings=general)
        assert fast.metrics == slow.metrics
        assert fast.matches.rank.tolist() == slow.matches.rank.tolist()
        assert fast.matches.beyond.tolist() == slow.matches.beyond.tolist()


def test_the_limit_comes_before_the_federation() -> None:
    """A class that is not annotated on an image takes the place of one that is."""
    tables = data(
        [A], [B, A], [0.9, 0.5], object_image=[1], image=[2, 1], images=[1, 2], categories={1: "c"}
    )
    truth = tables[0]
    scope = detmap.core.tables.Scope(
        np.array([0, 0, 0]), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.uint8)
    )
    tables = (replace(truth, scope=scope), tables[1])
    found = {
        m: detmap.evaluate(*tables, "lvis-fixed", settings={"limits.max_dets": [m]}).counts()
        for m in (1, 2)
    }
    assert [found[m]["tp"] for m in (1, 2)] == [0, 1]


def test_parts_of_a_limit_of_the_data_set_are_refused() -> None:
    tables = data([A, A], [A, A], object_image=[1, 2], image=[1, 2], images=[1, 2])
    matches = detmap.match(*tables, "lvis-fixed")
    with pytest.raises(detmap.MergeError, match=r"limits\.scope"):
        matches.select([1]).merge(matches.select([2]))
    refused = r"limits\.scope: Evaluator is not available with limits\.scope=dataset"
    with pytest.raises(detmap.ProtocolError, match=refused):
        detmap.Evaluator("lvis-fixed", classes=["cat"])
    cut = detmap.evaluate(*tables, "lvis-fixed", settings={"limits.max_dets": [1]})
    assert [cut.select([i]).counts()["tp"] for i in (1, 2)] == [1, 1]  # each within its own limit
    kept = detmap.summarize(cut.matches)
    with pytest.raises(detmap.DetmapError, match=r"lvis-fixed orders .* limits\.scope"):
        kept.select([2])  # the second image lost its detection


# ---- AP within a lower limit


def test_ap_at_a_lower_limit_is_that_of_the_limit_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with ``limits.max_dets`` of that limit, in every subset, at every threshold, by class,
    with weights, under any interpolation and in blocks of classes.
    """
    tables = data(
        [A, B, A, B],
        [(0, 0, 10, 8), A, B, (80, 80, 9, 9), B, (20, 0, 10, 7)],
        [0.9, 0.8, 0.7, 0.6, 0.5, 0.5],
        object_class=[1, 1, 2, 2],
        label=[1, 1, 1, 2, 2, 2],
        object_image=[1, 2, 1, 2],
        image=[1, 1, 2, 1, 2, 2],
        images=[1, 2],
        **TWO,
    )
    rows = ["AP", "AP50", "AP@subset", "AP@1", "AP50@1", "AP@subset@1", "AR@limit"]
    for rule in ("grid_envelope", "all_points", "trapezoid"):
        both = {"metrics": rows, "limits.max_dets": [1, 3], "ap.integrator": rule}
        result = detmap.evaluate(*tables, "coco-bbox", settings=both)
        for m, suffix in ((1, "@1"), (3, "")):
            one = both | {"limits.max_dets": [m], "metrics": ["AP", "AP50", "AP@subset"]}
            alone = detmap.evaluate(*tables, "coco-bbox", settings=one)
            own = {name: result.metrics[f"{name}{suffix}"] for name in alone.metrics}
            np.testing.assert_equal(own, alone.metrics)
            for ours, theirs in zip(result.per_class, alone.per_class, strict=True):
                np.testing.assert_equal(ours[f"AP{suffix}"], theirs["AP"])
        weighted = detmap.summarize(result.matches, weights=[2.0, 1.0])
        part = detmap.summarize(within(result.matches, 1), weights=[2.0, 1.0])
        assert weighted.metrics["AP@1"] == part.metrics["AP@1"]
        assert result.metrics["AP@1"] != result.metrics["AP"]
        classes = [np.array([k]) for k in (0, 1)]
        joined = join([scores(result.matches.select_classes(k)) for k in classes], classes)
        monkeypatch.setattr(terms, "MOST_KEPT", 0)
        for other in (joined, scores(result.matches)):
            np.testing.assert_equal(Result(result.matches, other).metrics, result.metrics)
        monkeypatch.undo()
        parts = [result.matches.select([i]) for i in (1, 2)]
        np.testing.assert_equal(detmap.summarize(parts[1].merge(parts[0])).metrics, result.metrics)


def test_ties_at_a_lower_limit_are_refused_by_name() -> None:
    tables = data([A, A], [A, A], object_image=[1, 2], image=[1, 2], images=[1, 2])
    result = detmap.evaluate(*tables, "coco-bbox", settings={"metrics": ["AP", "AP@10"]})
    with pytest.raises(detmap.DetmapError, match="AP@10"):
        result.ties()
    assert result.intervals().metrics["AP@10"].value == result.metrics["AP@10"]


# ---- areas and overlaps of regions


def test_a_region_that_nothing_overlaps_takes_no_box_without_area() -> None:
    tables = data([A], [(50, 50, 0, 0), A], roles={"crowd": [True]})
    for source in ("boxes", "iou"):
        found = detmap.evaluate(*tables, "coco-bbox", settings={"iou.absorb_from": source})
        assert found.counts()["ignored"] == 1
        assert found.counts()["fp"] == 1


def test_keys_of_boxes_are_refused_for_masks() -> None:
    with pytest.raises(detmap.ProtocolError, match="absorb_from"):
        detmap.load_protocol("coco-segm").override({"iou.absorb_from": "iou"})


# ---- files without what a benchmark needs

PERSON: dict[str, Any] = {"image_id": 1, "category_id": 1, "bbox": [0, 0, 50, 50], "area": 1500.0}
PARTS = {"keypoints": 17, "foot_kpts": 6, "face_kpts": 68}
PARTS |= {"lefthand_kpts": 21, "righthand_kpts": 21}


def whole_body(folder: Path, **changes: Any) -> tuple[Path, Path]:
    """A person with all points, found as it is; `changes` are of both records, None for no key."""
    person = PERSON | {field: [1.0, 2.0, 2] * n for field, n in PARTS.items()}
    person = {key: x for key, x in (person | changes).items() if x is not None}
    truth, found = folder / "truth.json", folder / "dets.json"
    image = {"id": 1, "width": 100, "height": 100}
    tree = {"images": [image], "categories": [{"id": 1, "name": "person"}]}
    truth.write_text(json.dumps(tree | {"annotations": [{**person, "id": 1}]}))
    del person["bbox"], person["area"]
    found.write_text(json.dumps([{**person, "score": 0.5}]))
    return truth, found


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"face_kpts": None}, r"annotations\[0\]\.face_kpts: not a list of x, y and visibility"),
        ({"foot_kpts": [1, 2, 2]}, r"foot_kpts: 1 points, where COCO-WholeBody has 6"),
        ({"keypoints": [1, 2, 2] * 14}, r"keypoints: 14 points, where COCO-WholeBody has 17"),
    ],
)
def test_persons_without_a_part(changes: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(detmap.DataError, match=says):
        detmap.evaluate(*whole_body(tmp_path, **changes), "wholebody")


def test_scores_of_parts(tmp_path: Path) -> None:
    truth, found = whole_body(tmp_path)
    record = json.loads(found.read_text())[0]
    apart = [{**record, "score": 0.9, "face_kpts": [90.0, 90.0, 1] * 68, "face_score": 0.1}, record]
    found.write_text(json.dumps(apart))
    metrics = detmap.evaluate(truth, found, "wholebody").metrics
    assert [round(metrics[name], 9) for name in ("AP-body", "AP-face")] == [1, 1]  # .5 before .1
    found.write_text(json.dumps([{**apart[0], "face_score": 0.6}, record]))
    assert round(detmap.evaluate(truth, found, "wholebody").metrics["AP-face"], 9) == 0.5
    found.write_text(json.dumps([{**record, "face_score": "high"}]))
    with pytest.raises(detmap.DataError, match=r"dets\.json\[0\]\.face_score: is not a finite"):
        detmap.evaluate(truth, found, "wholebody")


def test_a_point_that_is_labelled_but_hidden_makes_an_object(tmp_path: Path) -> None:
    truth, found = whole_body(tmp_path, foot_kpts=[1.0, 2.0, 1] * 6)
    assert round(detmap.evaluate(truth, found, "wholebody").metrics["AP-foot"], 9) == 1


def test_a_part_without_points_is_neither_an_object_nor_a_detection(tmp_path: Path) -> None:
    truth, found = whole_body(tmp_path, foot_kpts=[0, 0, 0] * 6)
    result = detmap.evaluate(truth, found, "wholebody")
    assert np.isnan(result.metrics["AP-foot"])
    assert round(result.metrics["AP-body"], 9) == round(result.metrics["AP-all"], 9) == 1
    assert [note.count for note in result.notes if note.code == "part-empty"] == [1]


def test_tables_of_another_format_are_refused(tmp_path: Path) -> None:
    files = whole_body(tmp_path)
    body = detmap.read_truth(files[0], shapes="keypoints")
    assert body.shapes.points.shape == (1, 17, 3)  # the ordinary reader is what it was
    with pytest.raises(detmap.DataError, match="has not the 133 keypoints"):
        detmap.evaluate(body, files[1], "wholebody", settings={"files.detections": "coco"})
    with pytest.raises(detmap.DataError, match="truth does not have the 133 keypoints"):
        detmap.evaluate(body, files[1], "wholebody")


def crowd_pose(folder: Path, *crowding: float | None) -> tuple[Path, Path]:
    """A person on each image, found as it is; the image's crowdIndex, None for no key."""
    ids = range(1, len(crowding) + 1)
    images = [
        {"id": i} | ({} if x is None else {"crowdIndex": x})
        for i, x in zip(ids, crowding, strict=True)
    ]
    person: dict[str, Any] = {"category_id": 1, "keypoints": [1.0, 2.0, 2] * 14}
    objects = [
        {**person, "id": i, "image_id": i, "bbox": [0, 0, 9, 9], "num_keypoints": 14} for i in ids
    ]
    tree = {"images": images, "categories": [{"id": 1, "name": "person"}], "annotations": objects}
    truth, found = folder / "truth.json", folder / "dets.json"
    truth.write_text(json.dumps(tree))
    found.write_text(json.dumps([{**person, "image_id": i, "score": 0.5} for i in ids]))
    return truth, found


def test_images_by_crowding(tmp_path: Path) -> None:
    result = detmap.evaluate(*crowd_pose(tmp_path, 0.1, 0.2, 0.5), "crowdpose")
    assert (result.metrics["AP-easy"], result.metrics["AP-medium"]) == (1.0, 1.0)
    assert np.isnan(result.metrics["AP-hard"])
    assert "area-missing" not in {note.code for note in result.notes}
    other = detmap.evaluate(*crowd_pose(tmp_path, 0.1, 0.2, 0.6), "crowdpose")
    assert other.signature != result.signature


@pytest.mark.parametrize(("crowding", "degree"), [(0.2, "medium"), (0.8, "hard")])
def test_degrees_of_crowding_begin_at_their_low_end(
    tmp_path: Path, crowding: float, degree: str
) -> None:
    metrics = detmap.evaluate(*crowd_pose(tmp_path, crowding), "crowdpose").metrics
    defined = [name for name in ("easy", "medium", "hard") if metrics[f"AP-{name}"] == 1]
    assert defined == [degree]


@pytest.mark.parametrize("crowding", [(None,), (0.5, None)])
def test_an_image_without_crowding(crowding: tuple[float | None, ...], tmp_path: Path) -> None:
    files = crowd_pose(tmp_path, *crowding)
    with pytest.raises(detmap.DataError, match=r"image \d has no crowdIndex"):
        detmap.evaluate(*files, "crowdpose")
    rest = detmap.evaluate(*files, "crowdpose", settings={"evaluation.extra": []})
    assert round(rest.metrics["AP"], 9) == 1


def test_a_crowding_that_is_no_number_is_an_error(tmp_path: Path) -> None:
    truth, found = crowd_pose(tmp_path, 0.5)
    truth.write_text(truth.read_text().replace('"crowdIndex": 0.5', '"crowdIndex": "much"'))
    with pytest.raises(detmap.DataError, match=r"images\[0\]\.crowdIndex"):
        detmap.evaluate(truth, found, "crowdpose")


def test_the_oLRP_of_a_class_without_a_true_positive_is_one() -> None:  # noqa: N802
    nothing = data([A], [(80, 80, 10, 10)])
    metrics = detmap.evaluate(*nothing, "aitod").metrics
    assert (metrics["oLRP"], metrics["oLRP-FN"]) == (1.0, 1.0)
    assert np.isnan([metrics["oLRP-Loc"], metrics["oLRP-FP"]]).all()
    none = data([A], [A], roles={"crowd": [True]})
    assert np.isnan(detmap.evaluate(*none, "aitod").metrics["oLRP"])


def test_ignored_detections_are_no_false_positives_of_olrp() -> None:
    """Two inside a crowd, and one on it before the true positive."""
    crowd, inside = (50, 50, 30, 30), [(50, 50, 9, 9), (60, 60, 9, 9)]
    alone = detmap.evaluate(*data([A], [A, (0, 90, 9, 9)]), "aitod").metrics
    assert alone["oLRP-FP"] == 0
    tables = data([A, crowd], [*inside, A, (0, 90, 9, 9)], roles={"crowd": [False, True]})
    found = detmap.evaluate(*tables, "aitod").metrics
    errors = [name for name in alone if name.startswith("oLRP")]
    assert {name: found[name] for name in errors} == {name: alone[name] for name in errors}


@pytest.mark.parametrize("first", [True, False])
def test_olrp_measures_the_object_that_the_detection_matches(first: bool) -> None:
    """Among tiny objects the detection would match the other one, which overlaps less."""
    exact, tiny = (0, 0, 20, 13), (0, 0, 20, 12.5)  # areas on both sides of 16 x 16
    objects = [exact, tiny] if first else [tiny, exact]
    metrics = detmap.evaluate(*data(objects, [exact]), "aitod").metrics
    assert (metrics["oLRP-Loc"], metrics["oLRP-FN"]) == (0, 0.5)


# ---- pages


@pytest.mark.parametrize("page", ["lvis-fixed", "tiny-objects", "keypoints"])
def test_the_examples_of_a_page(page: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT_OF_DOCS / f"{page}.md").read_text()
    example = doctest.DocTestParser().get_doctest(text, {}, page, None, None)
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0
