"""Laws of the mergeable state: empty is neutral, merging is commutative and associative bit for
bit, and guarded."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import detmap
from detmap.core.base.resources import folder
from detmap.core.matching.engine import match
from detmap.core.matching.matches import Matches
from detmap.core.matching.part import Part
from detmap.core.protocol import load
from detmap.core.tables.notes import summed
from detmap.errors import DataError, MergeError
from tests.support.drawing import CocoData, coco_data, draw_coco, voc_data
from tests.support.drawn_tables import read_coco, voc_tables
from tests.support.tier import drawn


def assert_same(a: Matches, b: Matches, *, but: tuple[str, ...] = ()) -> None:
    for field in dataclasses.fields(Matches):
        if field.name in but:
            continue
        x, y = getattr(a, field.name), getattr(b, field.name)
        if isinstance(x, np.ndarray):
            assert x.dtype == y.dtype or not x.size, field.name
            assert x.shape == y.shape, field.name
            assert (x == y).all(), field.name
        elif field.name == "notes":
            assert summed(x) == summed(y)
        else:
            assert x == y, field.name


def shuffled_parts(whole: Matches, seed: int) -> list[Matches]:
    rng = np.random.default_rng(seed)
    part_of = rng.integers(0, 4, len(whole.image_ids))
    return [whole.select(whole.image_ids[part_of == p]) for p in rng.permutation(4)]


@settings(max_examples=drawn(60))
@given(coco_data(), st.integers(0, 2**32 - 1), st.sampled_from(["coco-bbox", "voc2012"]))
def test_any_split_merges_to_the_whole(data: CocoData, seed: int, protocol: str) -> None:
    whole = match(*read_coco(*data), load(protocol))
    parts = shuffled_parts(whole, seed)
    assert_same(parts[0].merge(*parts[1:]), whole)
    assert_same(parts[0].merge(parts[1]).merge(parts[2].merge(parts[3])), whole)
    assert_same(parts[3].merge(parts[0].merge(parts[2]), parts[1]), whole)
    merged = detmap.summarize(parts[2].merge(parts[0], parts[3], parts[1]))
    direct = detmap.summarize(whole)
    assert np.array_equal(
        list(merged.metrics.values()), list(direct.metrics.values()), equal_nan=True
    )
    assert merged.signature == direct.signature


@settings(max_examples=drawn(40))
@given(voc_data(), st.integers(0, 2**32 - 1))
def test_ties_in_input_order_survive_a_split(data: tuple, seed: int) -> None:
    whole = match(*voc_tables(*data), load("voc2007"))
    parts = shuffled_parts(whole, seed)
    assert_same(parts[0].merge(*parts[1:]), whole)


@settings(max_examples=drawn(40))
@given(coco_data())
def test_shards_read_and_matched_on_their_own_merge_to_the_whole(data: CocoData) -> None:
    """Only `position`, which counts the records of the shard's own file, is another."""
    instances, results = data
    whole = match(*read_coco(instances, results), load("coco-bbox"))
    parts = []
    for image in instances["images"]:
        only = {
            **instances,
            "images": [image],
            "annotations": [a for a in instances["annotations"] if a["image_id"] == image["id"]],
        }
        parts.append(
            match(
                *read_coco(only, [r for r in results if r["image_id"] == image["id"]]),
                load("coco-bbox"),
            )
        )
    assert_same(parts[-1].merge(*parts[:-1]), whole, but=("position", "notes"))


@settings(max_examples=drawn(30))
@given(coco_data())
def test_empty_is_neutral(data: CocoData) -> None:
    whole = match(*read_coco(*data), load("coco-bbox"))
    empty = Matches.empty(whole.protocol, whole.categories)
    assert_same(whole.merge(empty), whole)
    assert_same(empty.merge(whole), whole)
    assert_same(empty.merge(empty), empty)
    assert np.isnan(list(detmap.summarize(empty).metrics.values())).all()


@settings(max_examples=drawn(30))
@given(coco_data(), st.sampled_from(["coco-bbox", "voc2007"]))
def test_threads_never_show(data: CocoData, protocol: str) -> None:
    tables = read_coco(*data)
    one = match(*tables, load(protocol), threads=1)
    for threads in (2, 4):
        assert_same(match(*tables, load(protocol), threads=threads), one)
        for name in ("terms", "recall", "n_tp", "n_fp", "n_ignored"):
            a, b = (getattr(detmap.summarize(one, threads=n).scores, name) for n in (1, threads))
            assert np.array_equal(a, b, equal_nan=name in ("terms", "recall"))


@pytest.fixture
def whole() -> Matches:
    return match(
        *read_coco(*draw_coco(np.random.default_rng(5), n_images=4, n_classes=3)), load("coco-bbox")
    )


@pytest.mark.parametrize(
    "changes", [{}, {"limits.max_dets": [1, 3]}, {"iou.thresholds": "0.02:0.02:1"}]
)
def test_saved_and_loaded_is_the_same(tmp_path: Path, changes: dict) -> None:
    tables = read_coco(*draw_coco(np.random.default_rng(5), n_images=4, n_classes=3))
    before = match(*tables, load("coco-bbox").override(changes))
    before.save(tmp_path / "part.npz")
    after = Matches.load(tmp_path / "part.npz")
    assert_same(after, before)
    assert detmap.summarize(after).signature == detmap.summarize(before).signature


def test_damaged_files_are_refused(tmp_path: Path, whole: Matches) -> None:
    path = tmp_path / "part.npz"
    whole.save(path)
    data = path.read_bytes()
    for name, content in {
        "cut": data[: len(data) // 2],
        "text": b"not a zip",
        "empty": b"",
        "flipped": data[:200] + bytes([data[200] ^ 255]) + data[201:],
    }.items():
        damaged = tmp_path / f"{name}.npz"
        damaged.write_bytes(content)
        with pytest.raises(DataError, match=r"damaged|not a readable"):
            Matches.load(damaged)
    with pytest.raises(DataError, match=r"no such|not a readable"):
        Matches.load(tmp_path / "absent.npz")


def test_an_image_in_two_parts_is_refused(whole: Matches) -> None:
    with pytest.raises(MergeError, match="in more than one part"):
        whole.merge(whole.select(whole.image_ids[:1]))


def test_another_protocol_is_refused(whole: Matches) -> None:
    other = Matches.empty(
        load("coco-bbox").override({"limits.max_dets": [1, 10, 300]}), whole.categories
    )
    with pytest.raises(MergeError, match=r"limits\.max_dets.*\[1,10,300\]"):
        whole.merge(other)


def test_other_classes_are_refused(whole: Matches) -> None:
    strange = detmap.Categories(np.array([1]), ("zebra",))
    with pytest.raises(MergeError, match="zebra"):
        whole.merge(Matches.empty(whole.protocol, strange))


def test_numbers_and_strings_as_ids_do_not_mix(whole: Matches) -> None:
    renamed = dataclasses.replace(
        whole, image_ids=np.array([f"image {i:09}" for i in whole.image_ids])
    )
    with pytest.raises(MergeError, match="numbers in one part and strings in another"):
        whole.merge(renamed)


def test_select_of_an_unknown_image_is_refused(whole: Matches) -> None:
    with pytest.raises(DataError, match="123456"):
        whole.select([123456])


@pytest.mark.parametrize("zeros", [(), ("position",)])
def test_a_part_is_the_match_of_its_images(zeros: tuple[str, ...]) -> None:
    """Columns are taken when they are read, in any order, also those of zeros alone."""
    tables = read_coco(*draw_coco(np.random.default_rng(8), n_images=6, n_classes=3))
    whole = match(*tables, load("coco-bbox"))
    for name in zeros:
        whole = dataclasses.replace(whole, **{name: np.zeros_like(getattr(whole, name))})
    places = np.array([1, 2, 5])
    alone = match(*(each.select_images(places) for each in tables), load("coco-bbox"))
    part = Part.on(whole, np.isin(np.arange(6), places))
    assert_same(dataclasses.replace(part, notes=()), alone, but=("position", "notes"))
    assert len(part) == len(alone) > 0
    assert_same(part, alone, but=("position", "notes"))
    assert_same(whole.select(whole.image_ids[places]), part)
    assert part.position.any() == (not zeros)
    with pytest.raises(AttributeError, match="size"):
        part.size  # type: ignore[attr-defined]  # noqa: B018


def test_position_leads_back_to_the_record() -> None:
    instances, results = draw_coco(np.random.default_rng(8), n_images=3, n_classes=2)
    truth, detections = read_coco(instances, results)
    found = match(truth, detections, load("coco-bbox"))
    assert (detections.score[found.position] == found.score).all()
    assert (detections.image[found.position] == found.image).all()


def test_match_takes_paths_and_names_as_evaluate_does() -> None:
    sample = folder("datasets") / "shapes"
    truth = detmap.read_truth(sample)
    found = detmap.read_detections(sample / "detections" / "contours", truth)
    tables = detmap.match(truth, found, detmap.load_protocol("coco-bbox"))
    files = detmap.match(sample, str(sample / "detections" / "contours"), "coco-bbox")
    assert_same(files, tables)
    changed = detmap.match(sample, found, settings={"iou.thresholds": [0.5]}, taken=True)
    assert changed.protocol.name.startswith("voc")
    assert changed.taken is not None
