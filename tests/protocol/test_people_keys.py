"""The keys of benchmarks of faces and people: the smallest data that each changes, by hand."""

import math
from typing import Any

import numpy as np
import pytest

import detmap
from tests.protocol.test_keys import FAR, PLAIN, TWO, A, B, Data, data

SAMPLED = {"ap.integrator": "score_samples", "ap.samples": 2}  # scores 0.5 and 0
TWO_OF_THREE = data([A, B], [A, FAR, B], [0.95, 0.9, 0.85])
LATE = data([A], [FAR, A])  # no rank with less than one false positive
MR = {"metrics": ["MR"], "miss_rate.references": [0.5]}
AT_0 = MR | {"miss_rate.references": [0]}

NUMBERS: dict[str, tuple[Data, dict[str, Any], dict[str, float]]] = {
    # All ranks: recall 1/2 at precision 1, 1 at 2/3. The last rank alone: 1 at 2/3.
    "ap.samples": (TWO_OF_THREE, SAMPLED, {"1000": 0.5 + 0.5 * 2 / 3, "2": 2 / 3}),
    # At a score of 1/2 nothing is found, or the first detection alone.
    "detections.score_scale": (
        data([A], [A, FAR], [0.4, 0.2]),
        SAMPLED,
        {"no": 0.5, "min_max": 1.0},
    ),
    "detections.score_order": (
        data([A], [FAR, A], [0.5, 0.9]),
        {"ap.integrator": "all_points"},
        {"score": 1.0, "input": 0.5},
    ),
    # An object of 10 x 10 as 4.1 x 10 around its center is the detection.
    "boxes.aspect": (data([A], [(2.95, 0, 4.1, 10)]), {}, {"0": 0.0, "0.41": 1.0}),
    # A detection of 1 x 10 around the center of the object becomes 4.1 x 10 too.
    "boxes.aspect_of": (
        data([A], [(4.5, 0, 1, 10)]),
        {"boxes.aspect": 0.41},
        {"objects": 0.0, "both": 1.0},
    ),
    # The false positive of 10 x 12 before the true one is dropped, or not.
    "detections.margins": (
        data([A], [(50, 0, 10, 12), A]),
        {
            "subsets": {"all": {"area": [0, 110]}},
            "detections.outside": "drop",
            "ap.integrator": "all_points",
        },
        {"{}": 1.0, "{all=2.0}": 0.5},
    ),
    "miss_rate.references": (TWO_OF_THREE, MR, {"[0.5]": 0.5, "[0.5, 0.9]": 0.5, "[1.0]": 0.0}),
    "miss_rate.lookup": (
        data([A, B], [A, B, FAR]),
        AT_0,
        {"last_within": 0.0, "first_reached": 0.5},
    ),
    "miss_rate.before": (LATE, MR, {"zero": 1.0, "last": 0.0}),
}


def result(tables: Data, settings: dict[str, Any]) -> detmap.Result:
    return detmap.evaluate(*tables, "coco-bbox", settings=PLAIN | settings)


@pytest.mark.parametrize("key", NUMBERS)
def test_a_key_moves_a_number(key: str) -> None:
    tables, settings, expected = NUMBERS[key]
    for value, number in expected.items():
        (found, *_) = result(tables, settings | {key: value}).metrics.values()
        assert found == pytest.approx(number, abs=1e-5), value
    assert len(set(expected.values())) > 1


def test_straight_lines_from_rank_to_rank() -> None:
    """Recall 1/2, 1/2, 1 and precision 1, 1/2, 2/3: no area before the first rank."""
    found = result(TWO_OF_THREE, {"ap.integrator": "between_ranks"}).metrics["AP"]
    assert found == pytest.approx(0.5 * (1 / 2 + 2 / 3) / 2)
    assert result(data([A], [A]), {"ap.integrator": "between_ranks"}).metrics["AP"] == 0
    assert result(data([A], []), {"ap.integrator": "between_ranks"}).metrics["AP"] == 0


def test_the_miss_rate_is_a_geometric_mean_over_references_and_classes() -> None:
    tables = data(
        [A, B, FAR, A],
        [A, FAR],
        object_class=[1, 1, 1, 2],
        label=[1, 2],
        categories={1: "cat", 2: "dog", 3: "cow"},
    )
    rules = {"metrics": ["MR"], "miss_rate.references": [0.5, 1.0]}
    for undefined in ("skip", "one"):  # a class without objects has no miss rate
        found = result(tables, rules | {"mean.undefined": undefined})
        assert found.metrics["MR"] == pytest.approx(math.sqrt(2 / 3))
        assert [row["MR"] for row in found.per_class] == pytest.approx(
            [2 / 3, 1, math.nan], nan_ok=True
        )


def test_miss_rates_at_the_ends() -> None:
    """All objects found: 0. None found: 1. No objects: undefined. No detections: 1, but undefined
    where CrowdDet has no rank to read.
    """
    for tables, expected in (
        (data([A], [A]), 0.0),
        (data([A], [FAR]), 1.0),
        (data([A], []), 1.0),
        (data([], [A]), math.nan),
    ):
        for lookup in ("last_within", "first_reached"):
            found = result(tables, {"metrics": ["MR", "MR50"], "miss_rate.lookup": lookup})
            ranks = len(tables[1]) or lookup == "last_within"
            wanted = [expected if ranks else math.nan] * 2
            assert list(found.metrics.values()) == pytest.approx(wanted, nan_ok=True)


def test_false_positives_are_counted_per_image_and_by_weight() -> None:
    """One in two images, 1/2; with the first image three times, 3/4."""
    tables = data([A, A], [FAR, A], images=[1, 2], object_image=[1, 2], image=[1, 2])
    settings = {"metrics": ["MR"], "miss_rate.references": [0.6]}
    found = result(tables, settings)
    assert found.metrics["MR"] == 0.5
    assert detmap.summarize(found.matches, weights=[3.0, 1.0]).metrics["MR"] == 1.0


def test_merged_parts_have_the_miss_rate_of_the_whole() -> None:
    tables = data([A, A], [FAR, A], images=[1, 2], object_image=[1, 2], image=[1, 2])
    aspect = {"metrics": ["MR"], "boxes.aspect": 1.0}
    for settings in ({"metrics": ["MR"]}, aspect):
        whole = result(tables, settings).matches
        parts = [whole.select([2]), whole.select([1])]
        merged = detmap.summarize(parts[0].merge(parts[1]))
        assert merged.metrics == detmap.summarize(whole).metrics


@pytest.mark.parametrize("row", ["MR@max_dets", "MRx", "MR@9"])
def test_rows_that_are_no_miss_rates(row: str) -> None:
    with pytest.raises(detmap.ProtocolError, match=r"metrics"):
        result(data([A], [A]), {"metrics": [row], "limits.max_dets": [9, 100]})


def test_objects_outside_a_subset_keep_their_width() -> None:
    """The object is too low for `high`: there its own box absorbs the detection."""
    settings: dict[str, Any] = {
        "boxes.aspect": 0.41,
        "matching.outside": "absorb",
        "detections.outside": "count",
        "subsets": {"all": {}, "high": {"height": [50, 1e5]}},
    }
    found = result(data([A, (200, 0, 41, 100)], [(0, 0, 3, 10)]), settings).matches
    assert [found.tp[0].tolist(), found.ignored[0].tolist()] == [[0, 0], [0, 1]]
    with pytest.raises(detmap.ProtocolError, match="assignments are not available"):
        detmap.match(*data([A], [A]), found.protocol, taken=True)
    with pytest.raises(detmap.ProtocolError, match="no subset 'low'"):
        result(data([A], [A]), {"detections.margins": {"low": 2.0}})


def test_an_unsorted_image_is_counted_in_a_note() -> None:
    two = {"images": [1, 2], "object_image": [1, 2], **TWO}
    tables = data([A, A], [FAR, A, A], [0.5, 0.9, 0.8], image=[1, 1, 2], **two)
    notes = result(tables, {"detections.score_order": "input"}).notes
    assert [note.count for note in notes if note.code == "score-unsorted"] == [1]
    assert "score-unsorted" not in [note.code for note in result(tables, {}).notes]


@pytest.mark.parametrize("score", [[0.5, 0.5], [-1e308, 1e308]])
def test_scores_that_have_no_scale(score: list[float]) -> None:
    with pytest.raises(detmap.DataError, match=r"cannot be scaled to 0 to 1 \(min_max\)"):
        result(data([A], [A, B], score), {"detections.score_scale": "min_max"})
    assert result(data([A], []), {"detections.score_scale": "min_max"}).metrics["AP"] == 0


def test_what_miss_rates_and_scaled_scores_do_not_have() -> None:
    tables = data([A, A], [A, A], [0.9, 0.5], images=[1, 2], object_image=[1, 2], image=[1, 2])
    for settings, name in (
        ({"metrics": ["AP", "MR"]}, "MR"),
        ({"boxes.aspect": 0.41}, r"boxes\.aspect"),
        ({"detections.score_scale": "min_max"}, r"detections\.score_scale"),
    ):
        found = result(tables, settings)
        assert found.intervals().metrics["AP"].value == found.metrics["AP"]
        with pytest.raises(detmap.ProtocolError, match=f"not .*{name}"):
            found.ties()
    scaled = result(tables, {"detections.score_scale": "min_max"}).matches
    assert scaled.score.tolist() == [1.0, 0.0]
    with pytest.raises(detmap.MergeError, match="match all images at once"):
        scaled.select([1]).merge(scaled.select([2]))


def test_the_highest_score_from_a_row_on() -> None:
    rng = np.random.default_rng(0)
    image, label = rng.integers(1, 4, 40).tolist(), rng.integers(1, 3, 40).tolist()
    score = rng.integers(0, 9, 40) / 10
    boxes = [(20.0 * i, 0, 9, 9) for i in range(40)]
    tables = data([A], boxes, score.tolist(), image=image, label=label, images=[1, 2, 3], **TWO)
    found = result(tables, {"detections.score_order": "input", "limits.max_dets": []}).matches
    rows = zip(found.position.tolist(), found.score.tolist(), strict=True)
    for row, value in rows:
        mine = [
            score[i] for i in range(row, 40) if (image[i], label[i]) == (image[row], label[row])
        ]
        assert value == max(mine)
