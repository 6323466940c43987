"""The simulation of the coverage of rankings, on small samples, and the page that it writes."""

import argparse
import re
from pathlib import Path

import numpy as np
import pytest

from tests.tools.test_coverage import require_shares
from tools import coverage, ranking_coverage


def test_a_sample_has_copies_of_rows() -> None:
    positive = np.arange(20)[:, None] % [2, 3] == 0
    whole = ranking_coverage.scored(positive, 3, 1, 0)
    some = ranking_coverage.drawn(whole, 40, 0, 1)
    place = {row.tobytes(): k for k, row in enumerate(whole.score)}
    rows = [place[row.tobytes()] for row in some.score]
    assert len(set(rows)) < len(rows) == 40
    np.testing.assert_array_equal(some.positive, positive[rows])
    assert len(set(some.ids)) == 40
    other = ranking_coverage.drawn(whole, 40, 1, 1)
    assert not np.array_equal(other.score, some.score)


@pytest.mark.slow
def test_a_run_and_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    positive = np.random.default_rng(0).random((300, 4)) < 0.5
    whole = {"tied": ranking_coverage.scored(positive, 2, 1, 0)}
    whole["VOC"] = ranking_coverage.scored(positive[:, :1], 2, 1, 0)
    for name, value in (("SIZES", (60,)), ("NAMES", (*whole,)), ("populations", lambda _: whole)):
        monkeypatch.setattr(ranking_coverage, name, value)
    page = tmp_path / "page.md"
    page.write_text("before\n{}\nold\n{}\nafter\n".format(*ranking_coverage.MARKS))
    given = {"state": tmp_path, "data": None, "docs": page, "samples": 15, "seed": 1}
    ranking_coverage.run(argparse.Namespace(**given))
    done = list(coverage.lines(tmp_path / "ranking-tied-60.jsonl"))
    assert [line["b"] for line in done] == [*range(15)]
    assert {"mAP", "AUC", "mAP, micro", "P@k", "F1, samples", "AP of classes"} < {*done[0]}
    assert len(done[0]["AUC of classes"]) == 4
    single = next(coverage.lines(tmp_path / "ranking-VOC-60.jsonl"))
    assert {"mAP", "mAP, 101-point", "AP of classes, all-point"} < {*single}
    assert not any("P@k" in kind or "micro" in kind for kind in single)
    ranking_coverage.table(argparse.Namespace(**given))
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert re.search(r"\| accuracy of classes \| [\d.]+ \|", text)
    assert "Of " in text
    assert "old" not in text


def test_the_page_prints_what_holds() -> None:
    """Nearly all shares of intervals are within 92 and 98 %; none is far below."""
    require_shares(ranking_coverage.MARKS[0])
