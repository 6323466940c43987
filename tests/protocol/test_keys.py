"""Every key of a protocol moves a number: one small example each, both values worked out by
hand.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.core import protocol
from detmap.core.protocol import keys as known_keys
from detmap.core.protocol.protocol_digest import protocol_digest
from detmap.core.tables import ABSENT, NOT_EXHAUSTIVE, Categories, Scope

Boxes = list[tuple[float, float, float, float]]
Data = tuple[detmap.Truth, detmap.Detections]

PLAIN = {"iou.thresholds": [0.5], "limits.max_dets": [100], "subsets": {"all": {}}}
"""coco-bbox at one threshold, without areas: what the examples start from."""


def data(objects: Boxes, found: Boxes, score: list[float] | None = None, **more: Any) -> Data:
    """Objects and detections of class 1 on image 1, unless told; detections best first."""
    truth = detmap.truth_from_arrays(
        more.pop("object_image", [1] * len(objects)),
        more.pop("object_class", [1] * len(objects)),
        objects,
        images=more.pop("images", [1]),
        categories=more.pop("categories", {1: "cat"}),
    )
    roles = {name: np.array(flags, dtype=bool) for name, flags in more.pop("roles", {}).items()}
    attributes = {name: np.array(x, dtype=float) for name, x in more.pop("attributes", {}).items()}
    truth = replace(truth, roles=roles, attributes={**truth.attributes, **attributes})
    if "size" in more:
        width, height = (np.full(len(truth.images), float(x)) for x in more.pop("size"))
        truth = replace(truth, images=replace(truth.images, width=width, height=height))
    if "scope" in more:  # of a single image
        pairs = more.pop("scope")
        truth = replace(
            truth,
            scope=Scope(
                np.array([0, len(pairs)]),
                np.array([label for label, _ in pairs], dtype=np.int32),
                np.array([kind for _, kind in pairs], dtype=np.uint8),
            ),
        )
    if "groups" in more:
        known = truth.categories
        truth = replace(truth, categories=Categories(known.ids, known.names, more.pop("groups")))
    detections = detmap.detections_from_arrays(
        truth,
        more.pop("image", [1] * len(found)),
        more.pop("label", [1] * len(found)),
        found,
        score or np.linspace(0.9, 0.5, len(found)).tolist(),
    )
    assert not more
    return truth, detections


def verdicts(tables: Data, **settings: Any) -> str:
    """``TP FP ignored missed`` in the main subset, all classes together."""
    counts = detmap.evaluate(*tables, "coco-bbox", settings=PLAIN | settings).counts()
    return " ".join(str(counts[name]) for name in ("tp", "fp", "ignored", "missed"))


def number(tables: Data, name: str = "AP", **settings: Any) -> float:
    """One metric, to six digits."""
    result = detmap.evaluate(*tables, "coco-bbox", settings=PLAIN | settings)
    return round(result.metrics[name], 6)


A, B, FAR = (0, 0, 10, 10), (20, 0, 10, 10), (80, 80, 10, 10)
HALF, TALL = (0, 0, 10, 5), (0, 0, 10, 20)  # overlap A by 1/2
SIX_TENTHS = (0, 0, 10, 6)
NEIGHBOUR = (4, 0, 10, 10)
BETWEEN = (1, 0, 10, 10)  # overlaps A by 9/11, its neighbour by 7/13
HUGE = (0, 0, 100, 100)
SMALL = {"subsets": {"all": {"area": [0, 100]}}}
TWO = {"categories": {1: "cat", 2: "dog"}}

VERDICTS: dict[str, tuple[Data, dict[str, Any], dict[Any, str]]] = {
    "boxes.empty": (data([A], [A, (5, 5, 0, 4)]), {}, {"keep": "1 1 0 0", "drop": "1 0 0 0"}),
    # Of 50 x 10 the image holds 20 x 10.
    "boxes.clip": (
        data([(80, 0, 50, 10)], [(80, 0, 20, 10)], size=(100, 100)),
        {},
        {"no": "0 1 0 1", "crowdhuman": "1 0 0 0"},
    ),
    "iou.thresholds": (data([A], [SIX_TENTHS]), {}, {"[0.5]": "1 0 0 0", "[0.75]": "0 1 0 1"}),
    "iou.comparison": (data([A], [HALF]), {}, {">=": "1 0 0 0", ">": "0 1 0 1"}),
    "iou.cap": (
        data([A], [SIX_TENTHS]),
        {"iou.thresholds": [0.9]},
        {"1.0": "0 1 0 1", "0.6": "1 0 0 0"},
    ),
    # 1 / 2, and 1 / (2 + 1).
    "iou.epsilon": (data([(0, 0, 2, 1)], [(0, 0, 1, 1)]), {}, {"0": "1 0 0 0", "1": "0 1 0 1"}),
    "iou.classes": (
        data([A], [SIX_TENTHS]),
        {},
        {"{}": "1 0 0 0", "{cat=0.7}": "0 1 0 1", "{cat=0.6}": "1 0 0 0"},
    ),
    # 10 x 10 against 20 x 20: an overlap of .3 is more than 1/4.
    "iou.tolerance": (data([A], [(0, 0, 10, 3)]), {}, {"0": "0 1 0 1", "10": "1 0 0 0"}),
    # The dog becomes a cat.
    "classes.renamed": (
        data([A, B], [A, B], object_class=[1, 2], label=[1, 1], **TWO),
        {},
        {"{}": "1 1 0 1", "{dog='cat'}": "2 0 0 0"},
    ),
    # The dog becomes a region to ignore, also for the second detection of it.
    "classes.ignored_as": (
        data([A, B], [A, B, B], object_class=[1, 2], label=[1, 1, 2], **TWO),
        {},
        {"{}": "2 1 0 0", "{dog='cat'}": "1 0 2 0"},
    ),
    "matching.rule": (
        data([A, NEIGHBOUR], [A, BETWEEN]),
        {},
        {"best_free": "2 0 0 0", "best_any": "1 1 0 1"},
    ),
    # The first detection overlaps both by 1/2; the second is the first object.
    "matching.equal": (
        data([A, (10, 0, 10, 10)], [(0, 0, 20, 10), A]),
        {},
        {"last": "2 0 0 0", "first": "1 1 0 1"},
    ),
    "matching.neutral": (
        data([HUGE], [A, FAR], roles={"crowd": [True]}),
        {},
        {
            "{crowd='absorb'}": "0 0 2 0",
            "{crowd='ignore'}": "0 2 0 0",
            "{crowd='count'}": "0 2 0 1",
            "{other='absorb'}": "0 2 0 1",
        },
    ),
    "matching.outside": (data([HUGE], [A]), SMALL, {"ignore": "0 1 0 0", "absorb": "0 0 1 0"}),
    "detections.outside": (
        data([A], [TALL, (50, 0, 10, 20)]),
        SMALL,
        {"neutral": "1 0 1 0", "drop": "0 0 2 1", "count": "1 1 0 0"},
    ),
    "detections.margin": (data([A], [A, (50, 0, 10, 20)]), SMALL, {"1": "1 0 1 0", "2": "1 1 0 0"}),
    # Dogs are known to be absent; of sheep nothing is known.
    "scope.unlisted": (
        data(
            [A],
            [A, FAR, FAR],
            label=[1, 2, 3],
            categories={1: "cat", 2: "dog", 3: "sheep"},
            scope=[(1, ABSENT)],
        ),
        {},
        {"judge": "1 2 0 0", "drop": "1 1 0 0", "positive": "1 0 0 0"},
    ),
    "scope.not_exhaustive": (
        data([A], [A, FAR], scope=[(0, NOT_EXHAUSTIVE)]),
        {},
        {"judge": "1 1 0 0", "neutral": "1 0 1 0"},
    ),
    "limits.max_dets": (data([A, B], [A, B]), {}, {"[1]": "1 0 0 1", "[2]": "2 0 0 0"}),
    # A cat on each of three images, and a dog on the first.
    "limits.scope": (
        data(
            [A, B, A, A],
            [A, B, A, A],
            object_class=[1, 2, 1, 1],
            label=[1, 2, 1, 1],
            object_image=[1, 1, 2, 3],
            image=[1, 1, 2, 3],
            images=[1, 2, 3],
            **TWO,
        ),
        {"limits.max_dets": [1]},
        {"class": "4 0 0 0", "image": "3 0 0 1", "dataset": "2 0 0 2"},
    ),
    # An area of 100, or of 53.
    "boxes.area": (
        data([A], [A]),
        {"subsets": {"all": {"area": [0, 60]}}},
        {"0": "0 0 1 0", "0.53": "1 0 0 0"},
    ),
    # Half of the detection is on a crowd of 10 x 10, whose area is told to be 50: an IoU of 1/3 is
    # 1/4 of the sum of both areas, and 3/8 of the detection's.
    "iou.absorb_from": (
        data([A], [(5, 0, 10, 10)], roles={"crowd": [True]}, attributes={"area": [50]}),
        {},
        {"boxes": "0 0 1 0", "iou": "0 1 0 0"},
    ),
    "limits.order": (
        data([A], [FAR, A], score=[0.2, 0.9]),
        {"limits.max_dets": [1]},
        {"score": "1 0 0 0", "input": "0 1 0 1"},
    ),
    "subsets": (
        data([A, HUGE], [], attributes={"visibility": [0.3, 0.9]}),
        {},
        {
            "{all={}}": "0 0 0 2",
            "{all={area=[0, 100]}}": "0 0 0 1",
            "{all={width=[0, 10], height=[20, inf]}}": "0 0 0 0",
            "{all={visibility=[0.2, 0.9]}}": "0 0 0 2",
        },
    ),
}

# Image 2 comes first in the input; the scores are equal.
TIED = data([A], [A, A], [0.5, 0.5], image=[2, 1], images=[1, 2])
ONE_OF_TWO = data([A, B], [FAR, A])  # precision 1/2 at recall 1/2
# Cats on two images, all found; a dog on one, missed.
TWO_IMAGES = {"object_image": [1, 2, 1], "image": [1, 2], "images": [1, 2]}
UNEQUAL = data([A, A, A], [A, A], object_class=[1, 1, 2], **TWO_IMAGES, **TWO)

NUMBERS: dict[str, tuple[Data, dict[str, Any], str, dict[Any, float]]] = {
    "ranking.ties": (TIED, {}, "AP", {"image": 1.0, "input": 0.5}),
    # 51 of 101 recall points at 1/2; 6 of 11; half of the area.
    "ap.integrator": (
        ONE_OF_TWO,
        {},
        "AP",
        {
            "grid_envelope": round(51 * 0.5 / 101, 6),
            "eleven_point": round(6 * 0.5 / 11, 6),
            "all_points": 0.25,
            "step": 0.25,
        },
    ),
    "ap.grid": (ONE_OF_TWO, {}, "AP", {"[0, 0.5]": 0.5, "[0, 1]": 0.25}),
    "ap.eleven": (
        ONE_OF_TWO,
        {"ap.integrator": "eleven_point"},
        "AP",
        {"[0, 0.5]": 0.5, "[0, 1]": 0.25},
    ),
    # 1 / (1 + epsilon) in the seventh digit: a million times, to see it.
    "ap.epsilon": (data([A], [A]), {}, "AP", {"0": 1.0, "1e-6": 0.999999}),
    "ap.recall_over": (
        data([A, B], [A], roles={"crowd": [False, True]}),
        {"ap.integrator": "all_points"},
        "AP",
        {"counted": 1.0, "all": 0.5},
    ),
    "mean.undefined": (data([A], [A], **TWO), {}, "AP", {"skip": 1.0, "zero": 0.5, "one": 1.0}),
    "mean.weights": (UNEQUAL, {}, "AP", {"equal": 0.5, "images": round(2 / 3, 6)}),
}


@pytest.mark.parametrize("key", VERDICTS)
def test_a_key_moves_verdicts(key: str) -> None:
    tables, settings, expected = VERDICTS[key]
    found = {value: verdicts(tables, **settings | {key: value}) for value in expected}
    assert found == expected
    assert len(set(expected.values())) > 1


@pytest.mark.parametrize("key", NUMBERS)
def test_a_key_moves_a_number(key: str) -> None:
    tables, settings, name, expected = NUMBERS[key]
    found = {value: number(tables, name, **settings | {key: value}) for value in expected}
    assert found == expected
    assert len(set(expected.values())) > 1


def test_extents_differ_in_the_last_bits() -> None:
    """Boxes are converted, so what is left of ``boxes.extent`` is the order of the roundings."""
    tables = data([(0.1, 0.1, 1.0, 0.8)], [(0.1, 0.1, 1.0, 0.4)])
    found = {
        extent: verdicts(tables, **{"boxes.extent": extent})
        for extent in ("continuous", "inclusive")
    }
    assert found == {"continuous": "0 1 0 1", "inclusive": "1 0 0 0"}


def test_groups_and_metric_rows() -> None:
    three = {"categories": {1: "cat", 2: "dog", 3: "car"}, "groups": ("r", "c", "r")}
    tables = data([A, B, FAR], [A, B], object_class=[1, 2, 3], label=[1, 2], **three)
    settings: dict[str, Any] = {
        "metrics": ["AP", "AP@group", "AR@limit"],
        "groups": {"r": "labelled", "f": "labelled", "pets": ["dog", "cat"]},
    }
    found = detmap.evaluate(*tables, "coco-bbox", settings=PLAIN | settings).metrics
    assert list(found) == ["AP", "APr", "APf", "AP-pets", "AR@100"]
    values = [found[name] for name in ("AP", "APr", "AP-pets")]
    assert values == pytest.approx([2 / 3, 0.5, 1.0], abs=1e-6)
    assert np.isnan(found["APf"])  # no class is labelled f
    with pytest.raises(detmap.ProtocolError, match=r"groups\.pets: no .*class cow"):
        _ = detmap.evaluate(
            *tables, "coco-bbox", settings=PLAIN | settings | {"groups.pets": ["cow"]}
        ).metrics


ELSEWHERE: dict[str, Any] = {
    "iou.of": "masks",  # overlaps/test_shapes.py
    "iou.sigmas": [0.1],
    "iou.dilation": 0.005,  # benchmarks/test_boundary.py
    "boxes.reversed": "refuse",  # adapters/test_voc_reversed.py
    "scope.unknown": "add",  # benchmarks/test_rotated_files.py
    "groups": {"pets": ["cat", "dog"]},
    "metrics": ["AP"],
    "name": "other",
    "version": 3,
}
"""Another value of each key whose example is in another file."""
UNSIGNED = {"summary", "source", "files.truth", "files.detections"}
BENCHMARKS = {"evaluation.rule", "evaluation.extra"}
BENCHMARKS |= {key for key in known_keys() if key.startswith(("kitti.", "froc.", "cgf1."))}
"""Their examples, and their part in the digest, are in tests/benchmarks/test_own_rules.py."""


def test_every_key_has_an_example_and_is_in_the_digest() -> None:
    from tests.protocol import test_people_keys as people
    from tests.protocol import test_tool_keys as tools

    tree = detmap.load_protocol("coco-bbox").override({"limits.max_dets": [100]}).to_dict()
    digests = {protocol_digest(protocol.from_dict(tree, "test"))}
    for key, value in ELSEWHERE.items():
        *path, last = key.split(".")
        changed = {name: dict(it) if isinstance(it, dict) else it for name, it in tree.items()}
        (changed[path[0]] if path else changed)[last] = value
        digests.add(protocol_digest(protocol.from_dict(changed, "test")))
    assert len(digests) == len(ELSEWHERE) + 1
    known = {*ELSEWHERE, *UNSIGNED, *BENCHMARKS}
    for row in (VERDICTS, NUMBERS, people.NUMBERS, tools.VERDICTS, tools.NUMBERS, tools.POINTS):
        for key, example in row.items():
            settings, values = (part for part in example if isinstance(part, dict))
            assert len({digest(settings, key, value) for value in values}) == len(values), key
            known.add(key)
    for key, (settings, values) in (tools.OVERLAPS | tools.OTHERS).items():
        assert len({digest(settings, key, value) for value in values}) == len(values), key
        known.add(key)
    assert set(known_keys()) == known


def digest(settings: dict[str, Any], key: str, value: Any) -> str:
    rules = detmap.load_protocol("coco-bbox").override(PLAIN | settings | {key: value})
    return protocol_digest(rules)


def test_an_attribute_that_the_truth_lacks_is_an_error_that_names_it() -> None:
    with pytest.raises(detmap.DataError, match="attribute 'visibility'"):
        verdicts(data([A], [A]), **{"subsets.all.visibility": [0, 1]})


def test_an_object_without_the_attribute_is_outside() -> None:
    tables = data([A, B], [], attributes={"visibility": [np.nan, 0.5]})
    assert verdicts(tables, **{"subsets.all.visibility": [0, 1]}) == "0 0 0 1"
    assert verdicts(tables, **{"subsets.all.area": [0, 200]}) == "0 0 0 2"


def test_a_dropped_detection_at_the_upper_end() -> None:
    """CityPersons: height < high x 1.25; COCO includes both ends."""
    tables = data([A], [(50, 0, 10, 20)])
    settings = {**SMALL, "detections.margin": 2}
    assert verdicts(tables, **settings) == "0 1 0 1"
    assert verdicts(tables, **settings, **{"detections.outside": "drop"}) == "0 0 1 1"


def test_clipping_needs_the_size_of_the_images() -> None:
    with pytest.raises(detmap.DataError, match=r"no size.*boxes\.clip"):
        verdicts(data([A], [A]), **{"boxes.clip": "crowdhuman"})


@pytest.mark.slow
def test_subsets_up_to_the_64th() -> None:
    names = {f"s{i}": {"area": [0, 99 + i]} for i in range(64)}
    tables = data([A], [])
    result = detmap.evaluate(
        *tables, "coco-bbox", settings=PLAIN | {"subsets": names, "metrics": ["AR@subset"]}
    )
    assert result.scores.n_objects[0].tolist() == [0] + [1] * 63
    with pytest.raises(detmap.ProtocolError, match="1 to 64"):
        detmap.load_protocol("coco-bbox").override({"subsets": names | {"more": {}}})


def test_settings_are_left_as_they_are() -> None:
    settings: dict[str, Any] = {"subsets": {"all": {}}, "subsets.all.area": [0, 9]}
    detmap.load_protocol("coco-bbox").override(settings)
    assert settings["subsets"] == {"all": {}}
