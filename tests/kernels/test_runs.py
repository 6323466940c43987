"""Run lengths, boxes, pixels and overlaps of awkward masks: as pycocotools has them, in every bit,
and as their pixels have them."""

from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from pycocotools import mask

from detmap.core.overlaps import masks
from detmap.core.overlaps.ragged_runs import packed as entries_of
from detmap.core.overlaps.ragged_runs import unpacked
from detmap.kernels import mask_pairs, pairs
from detmap.kernels.cells import Cells, ObjectColumns
from detmap.kernels.runs import Runs
from detmap.kernels.scanning.mask_scan import read_texts
from tests.reference import masks as twin
from tests.support.drawing import SEEDS, pick
from tests.support.tier import drawn

KINDS = ("empty", "full", "pixel", "edge", "noise", "block", "block", "near", "near")


def draw_image(rng: np.random.Generator, shape: tuple[int, int], before: list[Any]) -> Any:
    kind = pick(rng, KINDS)
    image = np.zeros(shape, dtype=bool)
    y, x = (int(rng.integers(side)) for side in shape)
    few = min(1, 500 / image.size)  # of large images, whose runs are long
    if kind == "full":
        image[:] = True
    elif kind == "pixel":
        image[y, x] = True
    elif kind == "edge":
        image[pick(rng, (0, -1)), :] = True
        image[:, pick(rng, (0, -1))] ^= bool(rng.random() < 0.7)
    elif kind == "noise":
        image = rng.random(shape) < rng.random() * few
    elif kind == "block":
        image[y : y + int(rng.integers(1, 20)), x : x + int(rng.integers(1, 20))] = True
    elif kind == "near" and before:
        image = pick(rng, before) ^ (rng.random(shape) < 0.03 * few)
    return image


def draw_runs(rng: np.random.Generator, image: Any) -> list[int]:
    """The runs of an image, now and then with some of no pixels between."""
    flat = image.T.ravel()
    starts = np.flatnonzero(np.diff(flat, prepend=False))
    runs: list[int] = np.diff([0, *starts, flat.size]).tolist()
    if rng.random() < 0.4:
        for _ in range(int(rng.integers(1, 4))):
            at = int(rng.integers(len(runs)))
            split = int(pick(rng, (0, runs[at], runs[at] // 2)))
            runs[at : at + 1] = [split, 0, runs[at] - split]
    if rng.random() < 0.1:
        runs.append(0)
    return runs


def draw_masks(seed: int) -> tuple[tuple[int, int], list[list[int]], list[dict[str, Any]]]:
    """A shape, runs of masks, and the masks as pycocotools packs them."""
    rng = np.random.default_rng(seed)
    shape = pick(rng, ((1, 1), (1, 7), (9, 1), (13, 17), (40, 30), (300, 230)))
    images: list[Any] = []
    for _ in range(12):
        images.append(draw_image(rng, shape, images))
    runs = [draw_runs(rng, image) for image in images]
    packed = [mask.frPyObjects({"size": shape, "counts": each}, *shape) for each in runs]
    return shape, runs, packed


def read(packed: list[dict[str, Any]]) -> masks.Masks:
    sizes = np.array([each["size"] for each in packed], dtype=float)
    texts = [{**each, "counts": each["counts"].decode()} for each in packed]
    return masks.read([{**each, "size": list(each["size"])} for each in texts], sizes, str)


def overlaps(found: Runs, truth: Runs, crowd: Any, lowest: float = 0.0) -> Any:
    """All pairs of one cell, -2 where there is none."""
    n, m = len(found.pixels), len(truth.pixels)
    absorb = np.where(crowd, ~np.uint64(0), np.uint64(0))
    objects = ObjectColumns(
        np.array([0, m]),
        np.arange(m, dtype=np.int32),
        np.zeros(m, np.int32),
        ~absorb,
        absorb,
        np.full(m, np.inf),
    )
    cells = Cells(np.arange(n, dtype=np.int32), np.array([[0, n, 0, m]]))
    position = np.arange(n, dtype=np.int32)
    table = np.full((n, m), -2.0)
    cursor = np.zeros(2, dtype=np.int64)
    buffer = pairs.buffer(5, 2 * m + 3)
    while cursor[0] < 1:
        k = mask_pairs.pair_masks(1, cells, found, truth, position, objects, lowest, cursor, buffer)
        for i in range(k):
            at = slice(buffer.off[i], buffer.off[i + 1])
            table[buffer.detection[i], buffer.object[at]] = buffer.overlap[at]
            assert (buffer.absorbing[at] == crowd[buffer.object[at]]).all()
    return table


@settings(max_examples=drawn(80))
@given(SEEDS)
def test_runs_boxes_and_pixels(seed: int) -> None:
    shape, runs, packed = draw_masks(seed)
    found = read(packed).runs
    off, counts = unpacked(found.off, found.counts)
    assert np.split(counts, off[1:-1])[-1].tolist() == runs[-1]
    assert counts.tolist() == list(chain.from_iterable(runs))
    for i, (each, text) in enumerate(zip(runs, packed, strict=True)):
        assert twin.numbers(text["counts"]) == each
        assert found.boxes[i].tolist() == mask.toBbox(text).tolist()
        assert found.pixels[i] == mask.area(text)
        pixels = twin.image(each, *shape)
        assert found.pixels[i] == pixels.sum()
        if pixels.any():
            assert found.boxes[i].tolist() == twin.box(pixels)


def test_long_runs_have_three_entries() -> None:
    runs = [0, 65534, 65535, 65536, 131071, 2**31 - 1, 7]
    off, entries = entries_of((np.array([0, 3, 7]), np.array(runs, dtype=np.uint32)))
    assert entries.dtype == np.uint16
    assert off.tolist() == [0, 5, 15]
    again_off, again = unpacked(off, entries)
    assert again.tolist() == runs
    assert again_off.tolist() == [0, 3, 7]
    short = np.array(runs[:2], dtype=np.uint32)
    assert entries_of((np.array([0, 2]), short))[1].tolist() == runs[:2]
    with pytest.raises(ValueError, match="row 1 is cut off"):
        unpacked(np.array([0, 1, 3]), np.array([4, 65535, 1], dtype=np.uint16))


@settings(max_examples=drawn(80))
@given(SEEDS)
def test_overlaps_of_runs_are_those_of_pixels(seed: int) -> None:
    shape, runs, packed = draw_masks(seed)
    crowd = np.random.default_rng(seed).random(6) < 0.4
    found, truth = read(packed[:6]).runs, read(packed[6:]).runs
    table = overlaps(found, truth, crowd)
    official = mask.iou(packed[:6], packed[6:], crowd.astype(np.uint8).tolist())
    assert (table == official).all()
    some = overlaps(found, truth, crowd, 0.5)
    assert (some == np.where(official >= 0.5, official, -2)).all()
    pixels = [twin.image(each, *shape) for each in runs]
    for i in range(6):
        for j in range(6):
            if not (found.hollow[i] and truth.hollow[j]):
                assert table[i, j] == twin.overlap(pixels[i], pixels[6 + j], crowd[j])


def test_runs_of_no_pixels_in_both_end_the_count_as_in_pycocotools() -> None:
    one = {"size": [4, 5], "counts": [2, 3, 0, 0, 15]}
    packed = [mask.frPyObjects(one, 4, 5)]
    assert mask.iou(packed, packed, [0]).item() == 1.0
    two = {"size": [4, 5], "counts": [2, 0, 0, 3, 15]}
    packed = [mask.frPyObjects(two, 4, 5)]
    assert mask.iou(packed, packed, [0]).item() == 0.0
    assert overlaps(read(packed).runs, read(packed).runs, np.array([False])).item() == 0.0


def sides() -> list[dict[str, Any]]:
    """Full masks of two sizes."""
    return [mask.frPyObjects({"size": s, "counts": [0, 20]}, *s) for s in ([4, 5], [5, 4])]


def test_masks_of_other_sizes_overlap_by_less_than_nothing() -> None:
    packed = sides()
    assert mask.iou(packed[:1], packed[1:], [0]).item() == -1.0
    found, truth = (read([each]).runs for each in packed)
    assert overlaps(found, truth, np.array([False]), -1.0).item() == -1.0
    assert overlaps(found, truth, np.array([False])).item() == -2.0


def first_bad(*texts: bytes) -> int:
    """The first that does not fill 12 pixels."""
    off = np.cumsum([0, *(len(text) + 1 for text in texts)])
    joined = np.frombuffer(b"".join(text + b'"' for text in texts), dtype=np.uint8)
    counts = np.zeros(3 * len(joined), dtype=np.uint16)
    return read_texts(joined, off, np.full(len(texts), 12), np.empty_like(off), counts)


@pytest.mark.parametrize(
    "text", [b"", b"X", b"oo", b"\x01", b"o" * 9, b"O", b"3333", b"p", b'4"4', b"\\"]
)
def test_the_first_text_that_does_not_fill_its_mask_is_named(text: bytes) -> None:
    assert first_bad(b"<", b"444L", b"444") == -1
    assert first_bad(b"<", text, b"<", text) == 1
    assert first_bad(text) == 0
