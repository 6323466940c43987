"""Stable orders against NumPy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from detmap.kernels import cells, grouping

scores = arrays(
    np.float64,
    st.one_of(st.integers(0, 60), st.integers(60, 150)),  # both ways of sorting
    elements=st.one_of(
        st.sampled_from([0.0, -0.0, 0.5, 0.25, 1.0, -1.5, 1e-300]),
        st.floats(allow_nan=False, allow_infinity=False),
    ),
)


@pytest.mark.slow
@given(scores, st.randoms())
def test_ranks_as_a_stable_sort_of_minus_score(score: np.ndarray, random: object) -> None:
    start = np.arange(len(score), dtype=np.int32)
    random.shuffle(start)  # type: ignore[attr-defined]
    order = start.copy()
    grouping.rank_by_score(score.view(np.uint64), order, grouping.sorter(len(score)))
    assert (order == start[np.argsort(-score[start], kind="stable")]).all()


@given(st.lists(st.integers(0, 5), max_size=50))
def test_groups_as_a_stable_sort_of_the_key(keys: list[int]) -> None:
    key = np.array(keys, dtype=np.int32)
    rows, off = np.empty(len(key), dtype=np.int32), np.empty(7, dtype=np.int64)
    grouping.group(key, np.arange(len(key), dtype=np.int32), rows, off)
    assert (rows == np.argsort(key, kind="stable")).all()
    assert off.tolist() == [int((key < k).sum()) for k in range(7)]


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=40).map(sorted),
    st.integers(1, 5),
)
def test_cuts_every_image_of_a_class_to_the_limit(drawn: list[tuple[int, int]], limit: int) -> None:
    label, image = (np.array([cell[i] for cell in drawn], dtype=np.int32) for i in range(2))
    off = np.searchsorted(label, np.arange(4)).astype(np.int64)
    kept = np.empty(3, dtype=np.int64)
    rows, cut = np.arange(len(drawn), dtype=np.int32), np.ones(4, dtype=np.int32)
    cells.count_within(image, rows, off, limit, kept, cut)
    counts = [[drawn.count((k, i)) for i in range(4)] for k in range(3)]
    assert kept.tolist() == [sum(min(n, limit) for n in each) for each in counts]
    assert cut.tolist() == [
        1 + sum(max(n - limit, 0) for n in each) for each in zip(*counts, strict=True)
    ]
