"""The simulation of coverage, on small samples, and the page that it writes."""

import argparse
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

import detmap
from detmap.core.base.resources import folder
from tools import coverage

PAGE = Path(__file__).resolve().parents[2] / "docs" / "coverage.md"


def arguments(state: Path, **more: object) -> argparse.Namespace:
    given = {"state": state, "worlds": ["three", "ties"], "samples": 2, "step": 1, "seed": 1}
    return argparse.Namespace(**given | {"docs": None, "data": None, "workloads": None} | more)


def test_copies_of_an_image_have_its_rows() -> None:
    sample = folder("datasets") / "shapes"
    truth = detmap.read_truth(sample)
    found = detmap.read_detections(sample / "detections" / "contours", truth)
    drawn = np.array([5, 2, 5, 0, 5])
    for table, copies in zip(
        (truth, found), coverage.sampled_tables(truth, found, drawn), strict=True
    ):
        for copy, image in enumerate(drawn):
            own, its = table.boxes[table.image == image], copies.boxes[copies.image == copy]
            np.testing.assert_array_equal(own, its)
    whole = detmap.match(truth, found, "coco-bbox")
    again = detmap.match(*coverage.sampled_tables(truth, found, drawn), "coco-bbox")
    rows = detmap.summarize(coverage.sampled(whole, drawn))
    assert rows.metrics == pytest.approx(detmap.summarize(again).metrics, nan_ok=True)


@pytest.mark.slow
def test_a_stopped_run_goes_on_and_makes_the_same_samples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    coverage.run(arguments(tmp_path / "a"))
    file = tmp_path / "a" / "ties-100.jsonl"
    lines = file.read_text().splitlines()
    assert [json.loads(line)["b"] for line in lines] == [0, 1]
    found = json.loads(lines[0])
    assert {"AP", "AP of classes", "difference", "power", "equal rejected"} < {*found}
    assert len(found["AP"]) == len(found["fail-if-drop"]) * 2 == 2  # detectors, pairs
    file.write_text(f"{lines[0]}\n{lines[1][:20]}")
    coverage.run(arguments(tmp_path / "a"))
    assert file.read_text().splitlines()[-1] == lines[1]
    page = tmp_path / "page.md"
    page.write_text("before\n{}\nold\n{}\nafter\n".format(*coverage.MARKS))
    coverage.table(arguments(tmp_path / "a", docs=page))
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "| three | 60 | 2 |" in text
    assert "old" not in text


def require_shares(mark: str) -> str:
    """The part of the page from a mark on, whose shares of intervals hold."""
    text = PAGE.read_text().split(mark)[1]
    n, low = map(int, re.findall(r"Of (\d+) shares (\d+) are below 92 %", text)[0])
    assert n > 200
    assert low <= 0.03 * n
    below = re.findall(r"Below: (.*)", text)[0]
    assert min((float(share) for share in re.findall(r"(\d+\.\d)[;.]", below)), default=92) >= 89
    return text


def test_the_page_prints_what_holds() -> None:
    """Nearly all shares of intervals are within 92 and 98 %; none is far below."""
    text = require_shares(coverage.MARKS[0])
    tests = text.split("\n\n")[1].splitlines()
    columns = [dict(zip(coverage.TESTS, row.split(" | ")[3:], strict=True)) for row in tests[2:]]
    for row in columns:
        for kind in ("equal rejected", "fail-if-drop", "require-within"):
            assert row[kind] == coverage.NONE or float(row[kind].strip(" |")) <= 11


def test_what_chance_alone_puts_outside() -> None:
    """Against sums of binomial probabilities."""
    for n in (100, 160, 1001):
        p = [math.comb(n, k) * 0.95**k * 0.05 ** (n - k) for k in range(n + 1)]
        wanted = (
            sum(each for k, each in enumerate(p) if 100 * k < 92 * n),
            sum(each for k, each in enumerate(p) if 100 * k > 98 * n),
        )
        share = coverage.Share(95.0, n)
        assert coverage.by_chance([share], 95, 92, 98) == pytest.approx(wanted)
        both = coverage.by_chance([share, share], 95, 92, 98)
        assert both == pytest.approx((2 * wanted[0], 2 * wanted[1]))


def test_intervals_of_one_sample_are_not_independent() -> None:
    alike = coverage.shares([{"b": b, "AP": [b % 10 > 0] * 4} for b in range(100)])["AP"]
    assert (alike.percent, alike.n) == (90.0, 100)
    apart = coverage.shares([{"b": b, "AP": [b % 10 > 0]} for b in range(400)])["AP"]
    assert (apart.percent, apart.n) == (90.0, 400)
    assert coverage.shares([{"b": b, "AP": [True] * 4} for b in range(100)])["AP"].n == 400
