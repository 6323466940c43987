"""Reasons why a number has no interval, by hand."""

import re
from typing import Any

import numpy as np
import pytest

from detmap.core.statistics.refusals import (
    REASONS,
    reason,
    refuse_class,
    refuse_mean,
    refuse_uneven,
)
from detmap.core.statistics.sampling_units import Units, units


def of(n: int, grouped: bool = False) -> Units:
    return units(np.arange(n), {i: i for i in range(n)} if grouped else None)


def test_every_reason_is_a_sentence_with_all_its_numbers() -> None:
    numbers: dict[str, Any] = {"m": 5, "rare": 1, "k": 3, "n": 1, "of": 57}
    numbers |= {"lacking": 0.1, "varying": 0.05}
    numbers |= {"low": 0.1, "high": 1, "limit": 10, "step": 0.01, "option": "--integrator"}
    for key in REASONS:
        text = reason(key, of(60, grouped=True), **numbers)
        assert not re.search(r"[{}]", text)
        assert "image" not in text


def test_a_class_needs_21_images_of_50() -> None:
    assert refuse_class(21, of(50)) == ""
    assert refuse_class(20, of(50)).startswith("a single class on 20 images: coverage is too low")
    assert refuse_class(1, of(50)).startswith("a single class on 1 image: coverage")
    assert refuse_class(1, of(50, grouped=True)).startswith("a single class on 1 group: ")
    assert refuse_class(30, of(49)) == "fewer than 50 images; more images would help"


@pytest.mark.parametrize(
    ("m", "why"),
    [
        ([50, 50], ""),
        ([100] * 20, ""),
        ([100] * 19 + [3], ""),  # lacks .0025, varies by .011
        ([100] * 19 + [1], ""),  # .018, .0305
        ([100] * 9 + [1], "1 of 10 classes are on 1 to 3 images: a sample like this lacks 3.7%"),
        ([100] * 2 + [3], "1 of 3 classes are on 1 to 3 images: a sample like this lacks 1.6%"),
        ([100] * 2 + [3, 0], "1 of 3 classes"),
        ([0, 0], ""),
        ([1, 2, 3, 100], "3 of 4 classes"),
    ],
)
def test_a_mean_lacks_few_classes_in_another_sample(m: list[int], why: str) -> None:
    found = refuse_mean(np.ones(len(m)), np.array(m), of(100))
    assert found.startswith(why)
    assert bool(found) == bool(why)


def test_the_shares_count() -> None:
    m = np.array([100, 100, 1])
    assert refuse_mean(np.ones(3), m, of(100))
    assert refuse_mean(np.array([100.0, 100, 1]), m, of(100)) == ""
    assert refuse_mean(np.ones(3), np.array([49] * 3), of(49)).startswith("fewer than 50 images")


def test_recall_at_a_limit_needs_evenly_spread_objects() -> None:
    assert refuse_uneven(0.6, 10, of(100)) == refuse_uneven(0.51, 10, of(10_000)) == ""
    assert refuse_uneven(0.59, 10, of(100)).startswith("few images have many of the objects")
    assert "the limit of 10 detections" in refuse_uneven(0.59, 10, of(100))
