"""Pairs that are listed once for many protocols: none is missing, and sharing changes no match."""

from dataclasses import fields, replace

import numpy as np
import pytest

from detmap.core.base.last_values import LastValues
from detmap.core.matching import general_engine
from detmap.core.matching.engine import match
from detmap.core.matching.matches import Matches
from detmap.core.overlaps import likely_pairs
from detmap.core.overlaps.box_edges import edges, overlaps
from detmap.core.protocol import load, tools
from detmap.core.tables import BoxFormat, Detections, Truth
from tests.support.drawing import draw_coco
from tests.support.drawn_tables import read_coco
from tests.support.tier import some

RULES = [name for name in tools() if load(name).iou.of == "boxes"]


Tables = tuple[Truth, Detections]


def drawn_tables(seed: int) -> Tables:
    """Tables of all kinds of boxes, reversed and huge ones too; some objects are crowds."""
    sizes = {"n_images": 2, "n_classes": 2, "max_objects": 40, "max_detections": 60}
    return read_coco(*draw_coco(np.random.default_rng(seed), **sizes))


def small_boxes(tables: Tables, seed: int, native: BoxFormat = "xywh") -> Tables:
    """The tables with boxes of 0 to 12 pixels beside each other, in which a pixel changes the IoU
    most.
    """
    rng, changed = np.random.default_rng(seed), []
    for table in tables:
        boxes = np.hstack([rng.uniform(0, 9, (len(table), 2)), rng.uniform(0, 12, (len(table), 2))])
        boxes = boxes.round(int(rng.integers(0, 3)))
        boxes[:, 2:] += boxes[:, :2] * (native == "voc")
        changed.append(replace(table, boxes=boxes, box_format=native))
    return changed[0], changed[1]


def same(first: Matches, second: Matches) -> bool:
    """Whether all columns and notes are equal."""
    return first.notes == second.notes and all(
        np.array_equal(getattr(first, each.name), getattr(second, each.name))
        for each in fields(Matches)
        if isinstance(getattr(first, each.name), np.ndarray)
    )


def matched(tables: Tables, name: str, shared: LastValues | None) -> object:
    """The matches under a tool's rules; the error if it has no number."""
    try:
        return match(*tables, load(name), shared=shared)
    except Exception as error:
        return str(error)


@pytest.mark.parametrize("case", some([(0, False), (0, True), (1, True), (1, False)], 2))
def test_sharing_and_the_list_change_no_match(
    case: tuple[int, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    seed, small = case
    tables, shared = drawn_tables(seed), LastValues()
    if small:
        tables = small_boxes(tables, seed)
    names = np.random.default_rng(seed).permutation(RULES).tolist()
    together = [matched(tables, name, shared) for name in names]
    alone = [matched(tables, name, None) for name in names]
    monkeypatch.setattr(general_engine, "list_pairs", lambda *_: None)
    without = [matched(tables, name, None) for name in names]
    assert sum(isinstance(each, Matches) for each in together) > len(names) // 2
    for first, second, third in zip(together, alone, without, strict=True):
        if isinstance(first, Matches):
            assert isinstance(second, Matches)
            assert isinstance(third, Matches)
            assert same(first, second)
            assert same(first, third)
        else:
            assert first == second == third


@pytest.mark.parametrize("seed", range(1, 6))  # seed 0 has one detection
@pytest.mark.parametrize("native", ["xywh", "voc"])
def test_no_pair_above_the_threshold_is_missing(seed: int, native: BoxFormat) -> None:
    truth, detections = small_boxes(drawn_tables(seed), seed, native)
    listed = likely_pairs.list_pairs(truth, detections)
    d = np.repeat(np.arange(len(detections)), np.diff(listed.off))
    known = set(zip(d.tolist(), listed.object.tolist(), strict=True))
    places = np.indices((len(detections), len(truth))).reshape(2, -1)
    cells = detections.image[places[0]] == truth.image[places[1]]
    cells &= detections.label[places[0]] == truth.label[places[1]]
    d, g = places[:, cells]
    n_found = 0
    for name in RULES:
        protocol = load(name)
        sides = (edges(table, protocol, truth.box_format) for table in (detections, truth))
        reached = overlaps(*sides, d, g, protocol) >= likely_pairs.LOWEST
        assert set(zip(d[reached].tolist(), g[reached].tolist(), strict=True)) <= known
        n_found += int(reached.sum())
    assert n_found > 0
    assert len(known) <= len(d)


def test_a_selection_has_the_pairs_of_its_rows() -> None:
    truth, detections = small_boxes(drawn_tables(1), 1)
    objects = np.arange(0, len(truth), 2, dtype=np.int32)
    rows = np.arange(0, len(detections), 3, dtype=np.int32)
    whole = likely_pairs.list_pairs(truth, detections)
    own = likely_pairs.list_pairs(truth.take(objects), detections.take(rows))
    some = whole.select(objects, rows)
    assert np.array_equal(some.off, own.off)
    assert np.array_equal(some.object, own.object)
    assert np.array_equal(some.regional, own.regional)


def test_reversed_large_and_very_many_pairs_have_no_list(monkeypatch: pytest.MonkeyPatch) -> None:
    truth, detections = small_boxes(drawn_tables(2), 2)
    assert likely_pairs.list_pairs(truth, detections) is not None
    for change in ([2e5, 0, 0, 0], [0, -2e5, 0, 0], [0, 0, 0, 2e5], [0, 0, -1e4, 0]):
        changed = replace(detections, boxes=detections.boxes + change)
        assert likely_pairs.list_pairs(truth, changed) is None
    monkeypatch.setattr(likely_pairs, "MOST_PAIRS", 1)
    assert likely_pairs.list_pairs(truth, detections) is None


def test_the_last_value_is_kept() -> None:
    values, made = LastValues(), []

    def get(table: object, key: int) -> int:
        return values.get("a", (table,), key, lambda: made.append(key) or len(made))

    one, other = [1], [1]
    found = [get(one, 1), get(one, 1), get(other, 1), get(other, 2), get(one, 1)]
    assert found == [1, 1, 2, 3, 4]
