"""The notebook docs/tour.ipynb runs, and prints what it shows."""

import json

import pytest

from tests.support import notebook
from tests.support.builders import ROOT

TOUR = ROOT / "docs" / "tour.ipynb"


@pytest.mark.slow
def test_the_tour_prints_what_it_shows() -> None:
    """After a change: python -m tests.support.notebook docs/tour.ipynb."""
    pytest.importorskip("matplotlib")
    stored = json.loads(TOUR.read_text(encoding="utf-8"))
    assert notebook.texts(notebook.run(TOUR)) == notebook.texts(stored)


def test_the_tour_is_small_and_shows_no_path() -> None:
    text = TOUR.read_text(encoding="utf-8")
    assert len(text) < 100_000
    assert "/datasets/shapes" not in text
    counts = [cell.get("execution_count") for cell in json.loads(text)["cells"]]
    assert [each for each in counts if each] == list(range(1, 1 + sum(map(bool, counts))))
