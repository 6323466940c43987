"""Records that are alike are read in two stages: to the bit as record by record, or not at all."""

import random

import numpy as np
import pytest

from detmap.kernels import kernel
from detmap.kernels.scanning.words import (
    BLOCK,
    find_separators,
    leading_zeros,
    load_word,
    multiply,
    trailing_zeros,
)
from tests.support.alike_lists import ODD, accepted, draw, scanned

ROW = '{"image_id": 7, "category_id": 3, "bbox": [1.5, 2.25, 30.125, 4.0], "score": 0.5}'
PADDED = " " * 100  # the last bytes of a text are read record by record


def listed(*rows: str) -> bytes:
    return f"[{', '.join(rows)}]{PADDED}".encode()


def test_lists_are_read_as_record_by_record_and_as_python_reads_them() -> None:
    rng = random.Random(1)
    read = [accepted(draw(rng), rng.choice([64, 1 << 15])) for _ in range(300)]
    assert 60 < sum(read) < 300


@pytest.mark.slow
def test_lists_cut_anywhere() -> None:
    rng = random.Random(2)
    for _ in range(6):
        data = draw(rng, most=5)
        for size in range(1, len(data)):
            accepted(data[:size])


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("field", ["7", "3", "1.5", "4.0", "0.5"])
def test_an_odd_number_among_alike_records(field: str, odd: str) -> None:
    accepted(listed(ROW, ROW, ROW.replace(field, odd, 1), ROW))


@pytest.mark.parametrize("text", ["5.99e-05", "5.99E-5", "1.5e3", "123456789.5e-1", "2e-7"])
def test_an_exponent_behind_a_fraction_counts(text: str) -> None:
    found = scanned(listed(ROW, ROW.replace("0.5", text), ROW), full=False)
    assert found[5].tolist() == [0.5, float(text), 0.5]


@pytest.mark.parametrize("size", range(1, 20))
def test_numbers_of_any_length(size: int) -> None:
    for point in range(size):
        whole = "123456789012345678901"[: size - point] or "0"
        text = f"{whole}.{'987650432109876504321'[:point]}" if point else whole
        rows = [ROW, ROW.replace("1.5", f"-{text}"), ROW.replace("0.5", text)]
        found = scanned(listed(*rows), full=False)
        assert found is None or found[4][:, 0].tolist() == [1.5, -float(text), 1.5]
        assert found is None or found[5].tolist() == [0.5, 0.5, float(text)]
        assert found is not None or len(text) > 18
        accepted(listed(*rows))


@pytest.mark.parametrize("gap", range(70))
def test_records_at_any_place_of_a_block(gap: int) -> None:
    assert accepted(f"[{ROW},{' ' * gap}{ROW},{' ' * gap}{ROW}]{' ' * gap}".encode(), 64)


def test_a_text_that_is_longer_than_the_list_of_separators() -> None:
    long = ROW.replace('"score"', f'"note": "{"a, " * 500}", "score"')
    assert accepted(listed(*[long] * 5), 64)
    assert accepted(listed(*[long] * 5))


def test_spaces_between_records_may_differ() -> None:
    """Found by the fuzz test: after a record without a space, the next one was sought too early."""
    text = listed(ROW, ROW).replace(b"}, {", b"},{").replace(b"}]", f"}}, {ROW}, {ROW}]".encode())
    assert accepted(text)


def test_many_records_that_differ_are_read_in_full() -> None:
    other = '{"score": 0.25, "image_id": 1, "category_id": 3, "bbox": [1, 2, 3, 4]}'
    assert accepted(listed(*[ROW, other] * 200))
    assert accepted(listed(*[ROW] * 100, *[other] * 100))


@kernel
def all_words(text: np.ndarray, numbers: np.ndarray, out: np.ndarray) -> None:
    """Every kernel of `words`, at each place and of each number."""
    for i in range(text.size - BLOCK + 1):
        out[i, 0] = load_word(text, i)
        out[i, 1] = find_separators(text, i)
    for i in range(numbers.size):
        out[i, 2] = trailing_zeros(numbers[i])
        out[i, 3] = leading_zeros(numbers[i])
        out[i, 4], out[i, 5] = multiply(numbers[i], numbers[numbers.size - 1 - i])


@pytest.mark.slow
def test_instructions_do_what_their_definition_does() -> None:
    rng = np.random.default_rng(3)
    text = rng.choice(np.frombuffer(b",]}[{:1\x00\xff\x7f\xac|", np.uint8), 300)
    numbers = rng.integers(0, 2**64, 200, dtype=np.uint64, endpoint=False)
    numbers[:66] = [0, 2**64 - 1, *(1 << i for i in range(64))]
    out = np.zeros((2, 300, 6), dtype=np.uint64)
    all_words(text, numbers, out[0])
    for i in range(text.size - BLOCK + 1):
        out[1, i, 0] = load_word.function(text, i)
        out[1, i, 1] = find_separators.function(text, i)
    for i, number in enumerate(numbers):
        out[1, i, 2] = trailing_zeros.function(number)
        out[1, i, 3] = leading_zeros.function(number)
        out[1, i, 4:] = multiply.function(number, numbers[numbers.size - 1 - i])
    assert np.array_equal(out[0], out[1])
