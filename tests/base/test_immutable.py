"""Nobody can change what the kernels follow: memory of tables, shapes, and what matching made."""

import copy
import mmap
import pickle
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, asdict, dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import detmap
from detmap.core.base import immutable
from detmap.core.base.immutable import Value, blank, own
from detmap.core.matching.matches import Matches
from detmap.core.overlaps.keypoints import Keypoints
from detmap.core.overlaps.masks import Masks, read
from detmap.core.protocol import load
from detmap.errors import DataError, ProtocolError
from tests.support.drawing import SEEDS, draw_coco
from tests.support.drawn_tables import read_coco
from tests.support.tier import drawn

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def arrays_of(value: Any) -> Iterator[np.ndarray]:
    """All arrays that a table holds, however deep."""
    if isinstance(value, np.ndarray):
        yield value
    elif is_dataclass(value):
        for field in fields(value):
            yield from arrays_of(getattr(value, field.name))
    elif isinstance(value, tuple):
        for each in value:
            yield from arrays_of(each)
    elif hasattr(value, "values"):
        for each in value.values():
            yield from arrays_of(each)


@pytest.fixture(params=["bytes", "pages"])
def memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What holds large arrays; pages from 4,096 bytes. Those of fewer than 64 are copied."""
    monkeypatch.setattr(immutable, "FEW", 64)
    if request.param == "pages":
        if not hasattr(mmap, "MADV_HUGEPAGE"):
            pytest.skip("this system has no large pages")
        monkeypatch.setattr(immutable, "LARGE_PAGE", 4096)
    return str(request.param)


def holder(array: np.ndarray) -> Any:
    """What owns the memory of an array; nothing on the way to it can be written to."""
    owner: Any = array
    while isinstance(owner, np.ndarray):
        assert not owner.flags.writeable
        owner = owner.base
    return owner


@pytest.mark.parametrize("dtype", [np.int32, np.float64, np.uint16, np.bool_])
@pytest.mark.parametrize("shape", [(0,), (1,), (3,), (5, 4), (0, 4), (1000, 3), (4096, 4)])
def test_memory_that_was_written_to_is_not_copied(shape: Any, dtype: Any, memory: str) -> None:
    array = blank(shape, dtype)
    assert array.shape == shape
    assert array.dtype == dtype
    assert not array.any()
    array[...] = 1
    mine = own(array)
    assert (mine == 1).all()
    assert mine.shape == shape
    if mine.size:
        assert np.shares_memory(mine, array) == (mine.size >= immutable.FEW)
    if mine.size >= immutable.FEW:
        assert np.shares_memory(own(array[-1:]), array[-1:])
    assert (own(array[::2]) == array[::2]).all()
    with pytest.raises(ValueError, match="WRITEABLE"):
        mine.flags.writeable = True
    large = memory == "pages" and mine.nbytes >= 4096
    assert type(holder(mine)) is (memoryview if large else bytes)
    assert own(mine) is mine
    copied = own(np.ones(shape, dtype))
    assert (copied == mine).all()
    assert type(holder(copied)) is type(holder(mine))
    assert bytes(1) == b"\0"  # which is one object in all of Python
    assert bytes(0) == b""


def refuse(*_: Any, **__: Any) -> Any:
    raise OSError(22, "Invalid argument")


@pytest.mark.parametrize("without", ["large pages", "advice", "memory"])
def test_large_arrays_without_large_pages(without: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(immutable, "FEW", 64)
    monkeypatch.setattr(immutable, "LARGE_PAGE", 4096)
    if without == "large pages":
        monkeypatch.delattr(mmap, "MADV_HUGEPAGE", raising=False)
    elif without == "advice":
        monkeypatch.setattr(immutable.Pages, "madvise", refuse, raising=False)
    else:
        monkeypatch.setattr(immutable, "Pages", refuse)
    array = own(blank(9000, np.uint8))
    assert not array.any()
    assert type(holder(array)) is bytes


def test_read_only_views_of_what_others_can_write_to_are_copied() -> None:
    theirs = bytearray(64)
    for buffer in (memoryview(theirs).toreadonly(), mmap.mmap(-1, 64), immutable.Pages(-1, 64)):
        array = np.frombuffer(buffer, np.uint8)
        array.flags.writeable = False
        mine = own(array)
        assert not np.shares_memory(mine, array)
        assert type(holder(mine)) is bytes


@pytest.mark.parametrize("taken", [False, True])
def test_nothing_that_matching_made_can_be_changed(taken: bool, memory: str) -> None:
    tables = read_coco(*draw_coco(np.random.default_rng(5), n_images=4, n_classes=3))
    matches = detmap.match(*tables, load("coco-bbox"), taken=taken)
    columns = list(arrays_of(matches)) + list(arrays_of(tables))
    assert len(columns) > 25
    for column in columns:
        with pytest.raises(ValueError, match="WRITEABLE"):
            column.flags.writeable = True
        assert type(holder(column)) is bytes or column.nbytes >= 4096


BOX_PROTOCOLS = ["coco-bbox", "voc2007", "voc2012", "lvis"]


@settings(relaxed, max_examples=drawn(60))
@given(SEEDS, st.sampled_from(BOX_PROTOCOLS), st.booleans())
def test_what_matching_makes_unchecked_would_pass(seed: int, protocol: str, taken: bool) -> None:
    tables = read_coco(*draw_coco(np.random.default_rng(seed)))
    try:
        matches = detmap.match(*tables, load(protocol), taken=taken)
    except (DataError, ProtocolError):
        return
    looked_at = replace(matches)
    for one, other in zip(arrays_of(looked_at), arrays_of(matches), strict=True):
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()
    assert all(hasattr(matches, field.name) for field in fields(Matches))


def some_masks() -> Masks:
    """Of 2 by 3 pixels: the left column, all, none."""
    runs = [[0, 2, 4], [0, 6], [6]]
    given = [{"size": [2, 3], "counts": each} for each in runs]
    return read(given, np.full((3, 2), (2.0, 3.0)), lambda i: f"row {i}")


def with_runs(**changes: Any) -> Callable[[Masks], Masks]:
    def forge(masks: Masks) -> Masks:
        made = {name: change(getattr(masks.runs, name)) for name, change in changes.items()}
        return replace(masks, runs=masks.runs._replace(**made))

    return forge


FORGED_MASKS: dict[str, Callable[[Masks], Masks]] = {
    "offsets beyond": with_runs(off=lambda x: x * 10**6),
    "offsets that go back": with_runs(off=lambda x: np.array([0, 5, 2, 6])),
    "offsets of 32 bits": with_runs(off=lambda x: x.astype(np.int32)),
    "counts cut": with_runs(counts=lambda x: x[:-1]),
    "counts that do not fill": with_runs(counts=lambda x: x + 1),
    "a last run without its halves": with_runs(
        counts=lambda x: np.append(x[:-1], x.dtype.type(65535))
    ),
    "counts of 32 bits": with_runs(counts=lambda x: x.astype(np.uint32)),
    "counts as a list": with_runs(counts=lambda x: x.tolist()),
    "sizes of nothing": with_runs(size=lambda x: x * 0),
    "sizes below nothing": with_runs(size=lambda x: -x),
    "sizes that overflow": with_runs(size=lambda x: x * 2**40),
    "one size": with_runs(size=lambda x: x[:1]),
    "other boxes": with_runs(boxes=lambda x: x + 1),
    "boxes NaN": with_runs(boxes=lambda x: x * np.nan),
    "other pixels": with_runs(pixels=lambda x: x * 10**9),
    "hollow": with_runs(hollow=lambda x: ~x),
    "more runs": with_runs(n_runs=lambda x: x + 1),
    "no runs": lambda masks: replace(masks, runs=None),
    "area NaN": lambda masks: replace(masks, area=masks.area * np.nan),
    "area of fewer": lambda masks: replace(masks, area=masks.area[:1]),
    "area in words": lambda masks: replace(masks, area="abc"),
}


@pytest.mark.parametrize("name", FORGED_MASKS)
def test_masks_cannot_be_forged(name: str) -> None:
    """Their run lengths went to the kernels as they were."""
    with pytest.raises(DataError, match=r"Masks\."):
        FORGED_MASKS[name](some_masks())


@pytest.mark.parametrize("name", ["size", "off", "counts", "boxes", "pixels", "hollow", "n_runs"])
def test_run_lengths_that_were_kept_elsewhere_do_not_reach_the_kernels(name: str) -> None:
    masks = some_masks()
    mine = {each: getattr(masks.runs, each).copy() for each in masks.runs._fields}
    again = replace(masks, runs=type(masks.runs)(**mine))
    before = again.digest().tolist()
    mine[name][...] = 1
    assert again.digest().tolist() == before
    for made in (masks, again, masks.take(np.array([2, 0])), copy.deepcopy(masks)):
        with pytest.raises(ValueError, match="WRITEABLE"):
            getattr(made.runs, name).flags.writeable = True
    sent = pickle.loads(pickle.dumps(masks))
    assert sent.digest().tolist() == before
    with pytest.raises(ValueError, match="WRITEABLE"):
        getattr(sent.runs, name).flags.writeable = True


def test_rows_of_masks_count_from_either_end() -> None:
    masks = some_masks()
    assert masks.take(np.array([-1, 0])).area.tolist() == [0, 2]
    assert masks.take(np.array([True, False, True])).area.tolist() == [2, 0]
    with pytest.raises(IndexError):
        masks.take(np.array([3]))


FORGED_KEYPOINTS: dict[str, tuple[Any, Any]] = {
    "NaN": (np.full((1, 2, 3), np.nan), np.ones(1)),
    "infinite": (np.full((1, 2, 3), np.inf), np.ones(1)),
    "two numbers a point": (np.zeros((1, 3, 2)), np.ones(1)),
    "flat": (np.zeros((1, 6)), np.ones(1)),
    "of 32 bits": (np.zeros((1, 2, 3), np.float32), np.ones(1)),
    "area NaN": (np.zeros((1, 2, 3)), np.full(1, np.nan)),
    "fewer areas": (np.zeros((2, 2, 3)), np.ones(1)),
    "none": (None, None),
}


@pytest.mark.parametrize("name", FORGED_KEYPOINTS)
def test_keypoints_cannot_be_forged(name: str) -> None:
    with pytest.raises(DataError, match=r"Keypoints\."):
        Keypoints(*FORGED_KEYPOINTS[name])


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy])
def test_a_table_that_was_copied_is_the_table(again: Callable[[Any], Any]) -> None:
    masks = some_masks()
    assert again(masks) is masks


@dataclass(frozen=True)
class _Generated:
    low: float
    name: str = "a"


@dataclass(slots=True, eq=False, repr=False)
class _Plain(Value):
    low: float
    name: str = "a"


_Plain.__qualname__ = _Generated.__qualname__


@pytest.mark.parametrize("one", [(1.0,), (2, "b"), (float("nan"), "it's")])
@pytest.mark.parametrize("other", [(1,), (2.0, "b"), (1.0, "b")])
def test_a_value_is_compared_and_printed_as_a_generated_dataclass(
    one: tuple[Any, ...], other: tuple[Any, ...]
) -> None:
    generated, plain = _Generated(*one), _Plain(*one)
    assert repr(plain) == repr(generated)
    assert (plain == _Plain(*other)) == (generated == _Generated(*other))
    assert (hash(plain) == hash(_Plain(*one))) == (hash(generated) == hash(_Generated(*one)))
    assert asdict(plain) == asdict(generated)
    assert replace(plain, name="z") == _Plain(one[0], "z")
    assert plain != generated
    assert plain != one
    for same in (plain, copy.copy(plain), copy.deepcopy(plain)):
        assert repr(same) == repr(plain)
        for name in ("low", "name", "other"):
            with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
                setattr(same, name, 0.0)
        with pytest.raises(FrozenInstanceError, match="cannot delete field 'low'"):
            del same.low


def test_parts_of_a_protocol_are_compared_hashed_printed_and_pickled() -> None:
    coco, voc = load("coco-bbox"), load("voc2007")
    for part in fields(coco):
        one, other = getattr(coco, part.name), getattr(voc, part.name)
        if is_dataclass(one):
            again = pickle.loads(pickle.dumps(one, protocol=0))
            assert again == pickle.loads(pickle.dumps(one)) == one
            for each in fields(one):
                with pytest.raises(FrozenInstanceError):
                    setattr(again, each.name, getattr(other, each.name))
            assert hash(again) == hash(one)
            assert (one == other) == (asdict(one) == asdict(other))  # type: ignore[call-overload]
            shown = ", ".join(f"{each.name}={getattr(one, each.name)!r}" for each in fields(one))
            assert repr(one) == f"{type(one).__name__}({shown})"
    assert coco != voc
    assert coco == replace(load("voc2007"), **{x.name: getattr(coco, x.name) for x in fields(coco)})


def test_notes_are_sorted_by_their_fields() -> None:
    columns = [("b", "x", 1, ""), ("a", "y", 2, "f"), ("a", "y", 2, "e"), ("a", "x", 9, "")]
    notes = [detmap.Note(*each) for each in columns]
    assert sorted(notes) == [detmap.Note(*each) for each in sorted(columns)]
    assert notes[1] > notes[2] >= notes[2] > notes[3] <= notes[3]
    with pytest.raises(TypeError):
        notes[0] < columns[0]  # noqa: B015
