"""The lines of text files are the same however much of a text is looked at together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detmap.adapters.text_per_image import label_files

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
