"""The lines of text files are the same however much of a text is looked at together."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detmap.core.adapters.text_per_image import label_files
from detmap.errors import DataError

TEXTS = st.lists(st.text(st.sampled_from("ab \t\n\r1.-"), max_size=12), min_size=1, max_size=3)


@given(TEXTS, st.integers(1, 9))
def test_a_text_in_parts_has_the_same_lines(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], size: int
) -> None:
    folder = tmp_path_factory.mktemp("texts")
    files = [folder / f"{i}.txt" for i in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(label_files, "BYTES_AT_ONCE", size)
        lines = label_files.read(files)
    plain = [
        (i, number, line.split())
        for i, text in enumerate(texts)
        for number, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1)
        if line.split()
    ]
    found = [
        (lines.file[row], lines.number[row], lines.text(row).split()) for row in range(len(lines))
    ]
    assert found == plain


def test_letters_in_unread_words_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("x 1 2e-3 .5\nx y 3 4\nx 1 2 nan\nx 1 2 -3\n")
    lines = label_files.read([file])
    assert lines.n_unreadable(1, 3) == 2
    assert lines.n_unreadable(2, 2) == 1
    assert lines.take(np.array([], dtype=np.int64)).n_unreadable(1, 3) == 0


@pytest.mark.parametrize(
    ("word", "what"),
    [
        ("1_000", "'1_000' is not a number"),
        ("\u0661", "'\u0661' is not a number"),
        ("nan", "'nan' is not a finite number"),
        ("1e999", "'1e999' is not a finite number"),
        ("1e300", "'1e300' is too large"),
    ],
)
@pytest.mark.parametrize("separator", [" ", ","])
def test_words_that_are_no_numbers(tmp_path: Path, word: str, what: str, separator: str) -> None:
    file = tmp_path / "a.txt"
    file.write_text(separator.join(["1", word]), encoding="utf-8")
    lines = label_files.read([file], separator.encode())
    by = "spaces" if separator == " " else "commas"
    with pytest.raises(DataError, match=f"line 1, y: {what}.*separated by {by}"):
        lines.numbers(("x", "y"))
