"""The documentation site: its search finds each job, its navigation is short, the API is whole."""

import importlib.util
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(importlib.util.find_spec(name) for name in ("mkdocs", "material", "mkdocstrings")),
        reason="needs pip install 'detmap-eval[docs]'",
    ),
]

JOBS = {
    "evaluate-predictions-coco-map-ap-and-ap50": [
        "evaluate predictions",
        "compute mAP",
        "COCO AP50",
    ],
    "ap-of-each-class": ["per-class AP", "AP of each class", "class precision recall table"],
    "compare-two-models-is-the-difference-significant": [
        "compare two models",
        "is the difference significant",
        "is model B better than A",
        "p-value",
    ],
    "confidence-interval-of-ap": ["confidence interval", "error bars mAP", "uncertainty of AP"],
    "pr-curve": ["PR curve", "precision-recall curve", "plot F1 curve"],
    "best-confidence-threshold": [
        "best confidence threshold",
        "which score threshold",
        "F1 at a confidence",
    ],
    "confusion-matrix": ["confusion matrix", "classes confused", "confused with the background"],
    "tide-without-segmentation": [
        "TIDE without segmentation",
        "error analysis",
        "localization duplicates background missed",
    ],
    "ap-by-object-size-in-yolo": ["AP by object size YOLO", "small objects YOLO", "APs APm APl"],
    "why-does-my-map-differ-between-ultralytics-pycocotools-and-other-tools": [
        "why does my mAP differ",
        "Ultralytics val and pycocotools different",
        "two tools different numbers",
    ],
    "why-is-my-ap-so-low": ["AP so low", "mAP is 0", "wrong box format"],
    "table-for-a-paper": ["LaTeX table", "table for paper", "Markdown table best bold"],
    "dataframe": ["dataframe", "pandas", "results as pandas tables"],
    "fail-ci-if-ap-drops": ["fail CI", "regression test", "quality gate"],
    "worst-images-and-label-errors": ["worst images", "label errors", "HTML report"],
    "evaluate-some-images-or-classes": ["some images or classes", "slices", "day and night"],
    "evaluate-in-a-training-loop": ["training loop", "torchmetrics", "validation step"],
    "make-a-number-that-others-can-check": ["receipt", "reproducible results", "citation"],
}
"""Section of How-to -> phrases that people search for."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "-q", "--strict"]
    done = subprocess.run(
        [*command, "-f", str(ROOT / "docs" / "site" / "mkdocs.yml"), "-d", str(place)],
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return place


@pytest.fixture(scope="module")
def index(site: Path) -> list[dict[str, Any]]:
    docs = json.loads((site / "search" / "search_index.json").read_text())["docs"]
    for doc in docs:
        doc["words"] = {key: words(doc[key]) for key in ("title", "text")}
    return docs


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", re.sub(r"<[^>]+>", " ", text).lower())


def found(index: list[dict[str, Any]], phrase: str) -> list[str]:
    """Sections by rank: words and their beginnings, rare ones and those of titles count more."""
    score = [0.0] * len(index)
    for wanted in words(phrase):
        title, text = (
            [sum(word.startswith(wanted) for word in doc["words"][part]) for doc in index]
            for part in ("title", "text")
        )
        rarity = math.log(len(index) / (1 + sum(map(bool, map(max, title, text)))))
        for i, doc in enumerate(index):
            length = 1 + len(doc["words"]["text"]) / 100
            score[i] += rarity * (3 * bool(title[i]) + text[i] / (text[i] + length))
    score = [each * doc.get("boost", 1) for each, doc in zip(score, index, strict=True)]
    order = sorted(range(len(index)), key=lambda i: -score[i])
    return [index[i]["location"] for i in order]


@pytest.mark.parametrize("job", JOBS)
def test_the_search_finds_a_job_by_three_phrases(index: list[dict[str, Any]], job: str) -> None:
    assert len(JOBS[job]) >= 3
    for phrase in JOBS[job]:
        assert f"how-to/#{job}" in found(index, phrase)[:5], (phrase, found(index, phrase)[:5])


def test_at_most_twelve_entries_are_open() -> None:
    """The sections are folded: open are the first level and the section of the page."""
    yaml = pytest.importorskip("yaml")
    text = (ROOT / "docs" / "site" / "mkdocs.yml").read_text()
    assert "navigation.sections" not in text
    assert "navigation.expand" not in text
    nav = yaml.safe_load(text)["nav"]
    sections = [next(iter(each.values())) for each in nav]
    longest = max(len(each) for each in sections if isinstance(each, list))
    assert len(nav) + longest <= 12


def test_the_api_has_no_prompts_and_every_name(site: Path) -> None:
    import detmap

    pages = {page: page.read_text() for page in (site / "api").rglob("index.html")}
    assert not [page for page, text in pages.items() if re.search("&gt;&gt;&gt;|# doctest", text)]
    listed = re.sub(r"<[^>]+>", "", pages[site / "api" / "index.html"])
    assert not [name for name in detmap.__all__ if name not in listed and name[0] != "_"]


def test_the_repository_is_linked_if_its_address_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("pages", ROOT / "docs" / "site" / "pages.py")
    assert spec is not None
    assert spec.loader is not None
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    for address in ("git@example.org:o/r.git", "https://example.org/o/r.git"):
        monkeypatch.setenv("DETMAP_REPOSITORY", address)
        assert pages.repository() == "https://example.org/o/r"
    monkeypatch.setenv("DETMAP_REPOSITORY", "/srv/git/r")
    assert pages.repository() is None
