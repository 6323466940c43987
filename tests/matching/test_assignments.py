"""Who took what travels with the matches: merged, selected, saved, and refused where it cannot
be.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import detmap
from detmap.core.matching.assignments import ARRAYS, Assignments
from detmap.core.matching.engine import match
from detmap.core.matching.matches import Matches
from detmap.errors import DataError
from tests.reference import coco
from tests.support.drawing import SEEDS, draw_coco
from tests.support.drawn_tables import read_coco
from tests.support.tier import drawn

relaxed = settings(max_examples=drawn(60))
COCO = detmap.load_protocol("coco-bbox")


def drawn(seed: int) -> Matches:
    data = draw_coco(np.random.default_rng(seed), n_images=4)
    return match(*read_coco(*data), COCO, threads=1, taken=True)


def assert_same(a: Assignments | None, b: Assignments | None) -> None:
    for name in ARRAYS:
        assert np.array_equal(getattr(a, name), getattr(b, name)), name


@relaxed
@given(SEEDS)
def test_the_overlap_is_that_of_the_object_which_was_taken(seed: int) -> None:
    truth, detections = read_coco(*draw_coco(np.random.default_rng(seed)))
    matches = match(truth, detections, COCO, threads=1, taken=True)
    taken = matches.taken
    rows = taken.detection()
    for i, d in enumerate(rows.tolist()):
        label = int(np.searchsorted(matches.off, d, side="right")) - 1
        image = matches.image[d]
        of_cell = np.flatnonzero((truth.image == image) & (truth.label == label))
        g = of_cell[taken.object[i]]
        box = tuple(detections.boxes[matches.position[d]].tolist())
        obj = coco.Object(tuple(truth.boxes[g].tolist()), 0, bool(truth.crowd[g]))
        assert taken.overlap[i] == coco.overlap(coco.Detection(box, 0, 0), obj)
    assert not taken.fault(matches.tp, matches.ignored, np.full(len(matches), 99))


@relaxed
@given(SEEDS)
def test_asking_who_took_what_changes_no_verdict(seed: int) -> None:
    tables = read_coco(*draw_coco(np.random.default_rng(seed)))
    asked, silent = (match(*tables, COCO, threads=1, taken=taken) for taken in (True, False))
    assert silent.taken is None
    for name in ("tp", "ignored", "position", "digest"):
        assert np.array_equal(getattr(asked, name), getattr(silent, name)), name
    assert asked.data_digest() == silent.data_digest()


@relaxed
@given(SEEDS)
def test_parts_merge_to_the_whole_and_the_whole_has_the_parts(seed: int) -> None:
    whole = drawn(seed)
    parts = [whole.select([i]) for i in whole.image_ids]
    assert_same(parts[0].merge(*parts[1:]).taken, whole.taken)
    assert_same(parts[-1].merge(*parts[:-1]).taken, whole.taken)
    assert_same(Matches.empty(COCO, whole.categories).merge(whole).taken, whole.taken)
    classes = list(range(len(whole.categories)))
    assert_same(whole.select_classes(classes).taken, whole.taken)


def test_a_merge_with_a_part_that_does_not_know_does_not_know() -> None:
    whole = drawn(3)
    first, *others = (whole.select([i]) for i in whole.image_ids)
    assert replace(first, taken=None).merge(*others).taken is None


def test_the_file_keeps_who_took_what(tmp_path: Path) -> None:
    whole = drawn(3)
    whole.save(tmp_path / "matches.npz")
    assert_same(Matches.load(tmp_path / "matches.npz").taken, whole.taken)


FORGERIES: dict[str, Callable[[Assignments], Assignments]] = {
    "no such object": lambda taken: replace(taken, object=taken.object + np.int32(99)),
    "negative object": lambda taken: replace(taken, object=taken.object - np.int32(99)),
    "falling offsets": lambda taken: replace(taken, off=taken.off[::-1].copy()),
    "short offsets": lambda taken: replace(taken, off=taken.off[1:].copy()),
    "other verdicts": lambda taken: replace(taken, words=~taken.words),
    "no verdicts": lambda taken: replace(taken, words=taken.words * 0),
    "other types": lambda taken: replace(taken, words=taken.words.astype(np.uint64)),
    "an overlap that is NaN": lambda taken: replace(taken, overlap=taken.overlap * np.nan),
    "columns of other lengths": lambda taken: replace(taken, overlap=taken.overlap[1:].copy()),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_matches_that_contradict_themselves_are_refused(name: str, tmp_path: Path) -> None:
    whole = drawn(3)
    assert len(whole.taken) > 1
    forged = FORGERIES[name](whole.taken)
    with pytest.raises(DataError):
        replace(whole, taken=forged)
    object.__setattr__(whole, "taken", forged)
    whole.save(tmp_path / "forged.npz")
    with pytest.raises(DataError):
        Matches.load(tmp_path / "forged.npz")
