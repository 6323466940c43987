"""Random subsets of the images: parts, halves, groups."""

import numpy as np
import pytest

import detmap
from detmap.core.statistics.intervals import sample
from detmap.core.statistics.random_words import random_words
from detmap.core.statistics.sampling_units import units
from detmap.core.statistics.subsets import EVALUATIONS, PARTS, SPLITS, subsets


def dealt(n: int, seed: int = 0, groups: dict[int, int] | None = None) -> np.ndarray:
    return subsets(units(np.arange(n), groups), seed).keep


@pytest.mark.parametrize("n", [2, 3, 24, 25, 26, 60, 101])
def test_parts_and_halves_cover_all_images_once(n: int) -> None:
    made = subsets(units(np.arange(n)), 5)
    assert made.n_parts == min(PARTS, n)
    assert len(made) == made.n_parts + 2 * SPLITS
    without, halves = made.keep[: made.n_parts], made.keep[made.n_parts :]
    assert ((~without).sum(axis=0) == 1).all()
    sizes = (~without).sum(axis=1)
    assert sizes.max() - sizes.min() <= 1
    for one, other in zip(halves[::2], halves[1::2], strict=True):
        assert (one != other).all()
        assert abs(int(one.sum()) - int(other.sum())) <= 1
    ids = made.ids(np.arange(100, 100 + n))
    assert [len(each) for each in ids] == made.keep.sum(axis=1).tolist()


def test_subsets_depend_on_the_seed_alone() -> None:
    np.testing.assert_array_equal(dealt(60, 3), dealt(60, 3))
    assert (dealt(60, 3) != dealt(60, 4)).any()
    assert len({each.tobytes() for each in dealt(60)}) == EVALUATIONS
    assert random_words(0, 3, 0, (1, 4)).tolist() != random_words(0, 2, 0, (1, 4)).tolist()


def test_no_group_is_divided() -> None:
    groups = {image: image % 7 for image in range(60)}
    keep = dealt(60, 1, groups)
    assert len(keep) == 7 + 2 * SPLITS
    for each in keep:
        for group in range(7):
            assert len(set(each[group::7].tolist())) == 1


@pytest.mark.parametrize("n", [0, 1])
def test_a_single_image_has_no_subsets(n: int) -> None:
    assert dealt(n).shape == (0, n)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"level": 1.0}, "level: 1.0"),
        ({"level": 0.4}, "level: 0.4"),
        ({"level": float("nan")}, "level: nan"),
        ({"seed": -1}, "seed: -1"),
        ({"seed": 2**64}, "seed"),
        ({"seed": 1.5}, "seed: 1.5"),
        ({"seed": True}, "seed: True"),
        ({"method": "x"}, "method: 'x'"),
        ({"progress": 3}, "progress: a int"),
        ({"groups": {0: 1}}, "no group"),
    ],
)
def test_options_that_are_refused(options: dict[str, object], what: str) -> None:
    with pytest.raises(detmap.DataError, match=what):
        sample(np.arange(60), **options)  # type: ignore[arg-type]


def test_options_at_their_edges() -> None:
    for options in ({"level": 0.5}, {"level": 0.999}, {"seed": 2**64 - 1}, {"seed": np.int64(1)}):
        assert len(sample(np.arange(60), **options)) == EVALUATIONS  # type: ignore[arg-type]
