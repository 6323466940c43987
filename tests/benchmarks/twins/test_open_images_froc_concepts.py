"""Open Images, FROC of boxes and cgF1 against their slow twins, on any small data."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import detmap
from tests.reference import open_images, own_rules
from tests.reference.open_images import Row
from tests.support.tier import drawn

relaxed = settings(max_examples=drawn(40))
places = st.integers(0, 7)
boxes = st.tuples(places, places, st.integers(1, 8), st.integers(1, 8)).map(
    lambda b: (b[0], b[1], b[0] + b[2], b[1] + b[3])
)
PARENT = {"/m/cat": "/m/animal", "/m/lynx": "/m/cat", "/m/dog": "/m/animal"}
IMAGES, NAMES = ("a", "b", "c"), ("/m/animal", "/m/cat", "/m/dog", "/m/lynx", "/m/sofa")
TREE = {
    "LabelName": "/m/root",
    "Subcategory": [
        {
            "LabelName": "/m/animal",
            "Subcategory": [
                {"LabelName": "/m/cat", "Subcategory": [{"LabelName": "/m/lynx"}]},
                {"LabelName": "/m/dog"},
            ],
        },
        {"LabelName": "/m/sofa"},
    ],
}
rows = st.builds(Row, st.sampled_from(IMAGES), st.sampled_from(NAMES), boxes, st.booleans())


def write(folder: Path, objects: list[Row], found: list[Row], labels: Any) -> None:
    """The files of Open Images; coordinates are sixteenths of the image."""
    (folder / "hierarchy.json").write_text(json.dumps(TREE))
    items = [f'item {{ name: "{name}" id: {k} }}' for k, name in enumerate(NAMES, 1)]
    (folder / "labelmap.pbtxt").write_text("\n".join(items))
    lines = [f"{image},{name},{value}" for (image, name), value in labels.items()]
    head = "ImageID,LabelName,Confidence"
    (folder / "labels.csv").write_text("\n".join([head, *lines]) + "\n")
    sides = "XMin,YMin,XMax,YMax"
    for name, column, some in (
        ("boxes", "IsGroupOf", [(row, int(row.group)) for row in objects]),
        ("found", "Score", [(row, row.score) for row in found]),
    ):
        lines = [
            f"{row.image},{row.name},{value},{','.join(str(v / 16) for v in row.box)}"
            for row, value in some
        ]
        text = "\n".join([f"ImageID,LabelName,{column},{sides}", *lines])
        (folder / f"{name}.csv").write_text(text + "\n")


@relaxed
@given(
    st.lists(rows, max_size=12),
    st.lists(rows, max_size=16),
    st.dictionaries(st.tuples(st.sampled_from(IMAGES), st.sampled_from(NAMES)), st.integers(0, 1)),
)
def test_open_images(
    tmp_path_factory: pytest.TempPathFactory,
    objects: list[Row],
    found: list[Row],
    labels: dict[tuple[str, str], int],
) -> None:
    folder = tmp_path_factory.mktemp("files")
    labels |= {(image, "/m/sofa"): 1 for image in IMAGES}  # every image is listed
    # Positive scores do not tie: the tool's sort is unstable. All others are in no list of a rank.
    found = [row._replace(score=max(0.99 - k / 12, 0.0)) for k, row in enumerate(found)]
    write(folder, objects, found, labels)
    for protocol, weight in (("openimages-v2", 0), ("openimages-challenge", 1)):
        result = detmap.evaluate(folder / "boxes.csv", folder / "found.csv", protocol)
        want = open_images.mean_ap(objects, found, labels, PARENT, weight)
        given = open_images.mean_ap(objects, found, labels, {}, weight)
        for name, value in (("mAP", want), ("mAP-as-given", given)):
            if name in result.metrics:
                value = math.nan if value is None else value
                assert result.metrics[name] == pytest.approx(value, abs=1e-12, nan_ok=True)


def tables(images: Any, **more: Any) -> tuple[detmap.Truth, detmap.Detections]:
    """Tables of boxes (x1, y1, x2, y2) and detections, which are a box and its score."""

    def columns(side: int) -> tuple[list[int], list[int], Any, list[float]]:
        rows = [(i, *each) for i, image in enumerate(images) for each in image[side]]
        corners = np.array([box for _, box, *_ in rows], dtype=float).reshape(-1, 4)
        sides = np.hstack([corners[:, :2], corners[:, 2:] - corners[:, :2]])
        return [i for i, *_ in rows], [1] * len(rows), sides, [float(row[2]) for row in rows]

    *objects, _ = columns(0)
    known = {"images": range(len(images)), "categories": {1: "a"}} | more
    truth = detmap.truth_from_arrays(*objects, **known)
    return truth, detmap.detections_from_arrays(truth, *columns(1))


@relaxed
@given(
    st.lists(
        st.tuples(
            st.lists(st.tuples(boxes, st.booleans()), max_size=5), st.lists(boxes, max_size=6)
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(["last", "first"]),
)
def test_froc_of_boxes(images: Any, lookup: str) -> None:
    score = iter(np.random.default_rng(len(images)).permutation(100) // 3 / 33)  # some are tied
    scored = [(each, [(box, float(next(score))) for box in found]) for each, found in images]
    ignored = [flag for each, _ in images for _, flag in each]
    data = tables(scored, crowd=ignored)
    result = detmap.evaluate(*data, "froc-boxes", settings={"froc.lookup": lookup})
    curve = own_rules.froc_curve(scored)
    rates, n_objects = (0.5, 1, 2, 4, 8, 16), ignored.count(False)
    if n_objects and curve:
        points = [(rate, found / n_objects) for rate, found in curve]
        want = [own_rules.froc_read(points, rate, lookup) for rate in rates]
    else:
        want = [0.0 if n_objects else math.nan] * len(rates)
    want = [sum(want[:4]) / 4, *want]
    assert list(result.metrics.values()) == pytest.approx(want, abs=1e-12, nan_ok=True)


@relaxed
@given(
    st.lists(
        st.tuples(
            st.lists(st.lists(boxes, max_size=3), min_size=2, max_size=2),
            st.lists(boxes, max_size=4),
            st.integers(0, 9),
        ),
        min_size=1,
        max_size=5,
    ),
    st.integers(0, 1000),
)
def test_concepts(pairs: Any, seed: int) -> None:
    """Boxes are moved a little: of two assignments with equal sums either may be taken."""
    rng = np.random.default_rng(seed)

    def moved(some: Any) -> list[Any]:
        return [tuple((np.array(box) + rng.uniform(0, 0.3, 4)).tolist()) for box in some]

    concepts: list[own_rules.Concept] = []
    images = []
    for whose, found, kind in pairs:
        each, there = [moved(own) for own in whose], moved(found)
        rows = [(box, k, False) for k, own in enumerate(each) for box in own]
        if kind == 0:  # the first annotator did not box all
            rows.append(((0, 0, 0, 0), 0, True))
        images.append((rows, [(box, 0.9) for box in there]))
        concepts.append(([None if kind == 0 else each[0], each[1]], there))
    rows = [row for objects, _ in images for row in objects]
    roles = {f"annotator {k + 1}": [own == k for _, own, _ in rows] for k in (0, 1)}
    roles["not_exhaustive"] = [partial for *_, partial in rows]
    result = detmap.evaluate(*tables(images, roles=roles), "cgf1")
    want = own_rules.concept_scores(concepts)
    assert result.metrics.keys() == want.keys()
    for name, value in want.items():
        assert result.metrics[name] == pytest.approx(value, abs=1e-9, nan_ok=True), name
