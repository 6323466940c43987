"""The fast lanes read what the reference lanes read, to the bit, or nothing."""

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detmap.core.adapters.coco import scan_json as coco_scan
from detmap.core.adapters.voc import scan_voc as voc_scan
from detmap.kernels import kernel
from detmap.kernels.scanning.decimal import nearest_double
from detmap.kernels.scanning.json_scan import read_number
from tests.support.lanes import LANES, always_scan, taken, write_mutated
from tests.support.mutation import FILES
from tests.support.tier import drawn


@pytest.fixture(autouse=True)
def settings_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, names in (
        (coco_scan, ("LEAST_SIZE", "PIECE", "SHAPES_PIECE", "NEAR", "OVERLAP")),
        (voc_scan, ("LEAST_FILES", "LEAST_SIZE")),
    ):
        for name in names:
            monkeypatch.setattr(module, name, getattr(module, name))


@pytest.mark.slow
@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in range(300, 1500, 300))]
)
@pytest.mark.parametrize("kind", LANES)
def test_both_lanes_agree_on_mutated_files(kind: str, first: int, tmp_path: Path) -> None:
    file = tmp_path / "file"
    accepted = 0
    for seed in range(first, first + 300):
        write_mutated(kind, seed, file)
        accepted += taken(kind, file)
    assert accepted >= 30  # the fast lane is not a lane that nothing takes


@pytest.mark.slow
@pytest.mark.parametrize("kind", LANES)
def test_both_lanes_agree_on_files_cut_short_anywhere(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_mutated(kind, 1, file)
    whole = FILES[kind](random.Random(3))
    for size in random.Random(4).sample(range(len(whole)), drawn(len(whole))):
        file.write_bytes(whole[:size])
        taken(kind, file)


@kernel
def to_doubles(digits: np.ndarray, exponent: np.ndarray, value: np.ndarray) -> None:
    """`nearest_double` of many numbers."""
    for i in range(digits.size):
        value[i] = nearest_double(digits[i], exponent[i])


halfway = st.builds(lambda m: 2 * m + 1, st.integers(2**52, 2**53 - 1))  # between two doubles


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(
            st.one_of(st.integers(0, 10**19 - 1), halfway, st.integers(0, 10**6)),
            st.integers(-40, 40),
        ),
        max_size=50,
    )
)
def test_decimals_are_read_as_float_reads_them(numbers: list[tuple[int, int]]) -> None:
    digits = np.array([d for d, _ in numbers], dtype=np.uint64)
    exponent = np.array([e for _, e in numbers], dtype=np.int64)
    value = np.empty(len(numbers))
    to_doubles(digits, exponent, value)
    assert value.tolist() == [float(f"{d}e{e}") for d, e in numbers]


@kernel
def to_double(text: np.ndarray, value: np.ndarray) -> int:
    """`read_number` of a text."""
    number, at = read_number(text, 0)
    value[0] = number
    return at


digits = st.text("0123456789", min_size=1, max_size=22)
spelled = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    digits.map(lambda whole: whole.lstrip("0") or "0"),
    st.builds(lambda whole, rest: f"{whole.lstrip('0') or '0'}.{rest}", digits, digits),
    st.builds(lambda zeros, rest: f"0.{'0' * zeros}{rest}", st.integers(0, 25), digits),
    st.builds(
        lambda whole, power: f"-{whole.lstrip('0') or '0'}e{power}", digits, st.integers(-60, 60)
    ),
)


@pytest.mark.slow
@given(spelled)
def test_a_number_is_read_as_float_reads_it_or_not_at_all(text: str) -> None:
    value = np.empty(1)
    at = to_double(np.frombuffer(text.encode(), dtype=np.uint8), value)
    assert at == -1 or (at == len(text) and value[0] == float(text))
    if len(text.strip("-0.")) <= 17 and 1e-60 < abs(float(text)) < 1e60:
        assert at == len(text)


def test_groups_are_parted_by_commas_only(tmp_path: Path) -> None:
    """Found by the fuzzer: a brace between two groups was taken for a comma."""
    always_scan(random.Random(0))
    file = tmp_path / "file"
    whole = b'{"images": [{"id": 1}], "annotations": [], "categories": [{"id": 1}]}'
    file.write_bytes(whole)
    assert taken("instances", file)
    for wrong in (b"{", b"}", b":", b" ", b",,"):
        file.write_bytes(whole.replace(b'], "categories"', b"]" + wrong + b'"categories"'))
        assert not taken("instances", file)
