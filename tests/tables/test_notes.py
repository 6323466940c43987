"""The English of notes: one record, and many."""

import ast
import re

import pytest

from detmap.core.tables import Note
from detmap.errors import singular
from tests.support.package_source import MODULES, nodes

TEXTS = {
    "detections of classes that are not in the ground truth were dropped": (
        "1 detection of classes that are not in the ground truth was dropped"
    ),
    "annotations are on images that are not in the file: dropped": (
        "1 annotation is on images that are not in the file: dropped"
    ),
    "images have no file, which stops the reference: they have no detections": (
        "1 image has no file, which stops the reference: it has no detections"
    ),
    "boxes have reversed corners: they overlap nothing": (
        "1 box has reversed corners: it overlaps nothing"
    ),
    "detections have tied scores within their class; ties are ordered by image id": (
        "1 detection has tied scores within its class; ties are ordered by image id"
    ),
    "detections identify their image by stem": "1 detection identifies its image by stem",
    "objects do not have the role crowd": "1 object does not have the role crowd",
    "lines of fewer than 9 words were skipped": "1 line of fewer than 9 words was skipped",
    "ground-truth objects are excluded": "1 ground-truth object is excluded",
    "objects that are twice in the file are dropped": (
        "1 object that is twice in the file is dropped"
    ),
    "of the 12 images have no result file: they have no detections": (
        "1 of the 12 images has no result file: it has no detections"
    ),
    "result files without detections are empty": "1 result file without detections is empty",
    "class lists of X are missing beside xml": "1 class list of X is missing beside xml",
    "data sets are left out": "1 data set is left out",
    "files match nothing": "1 file matches nothing",
}


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:30])
def test_the_text_of_one_record_is_singular(text: str) -> None:
    assert str(Note("code", text, 1)) == TEXTS[text]
    assert str(Note("code", text, 2)) == f"2 {text}"


def note_texts() -> set[str]:
    """Literal texts of notes in the package: what begins as a clause about several records."""
    begins = re.compile(r"(ground-truth )?[a-z-]+s (have|are|were|do) ")
    found = set()
    for path in MODULES:
        for node in nodes(path):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            words = [each.value if isinstance(each, ast.Constant) else "X" for each in parts]
            if all(isinstance(word, str) for word in words) and begins.match("".join(words)):
                found.add("".join(words))
    return found


@pytest.mark.slow
def test_every_note_of_the_package_has_a_singular() -> None:
    texts = note_texts()
    assert len(texts) > 50
    for text in texts:
        one = singular(text)
        assert not re.search(r"\b(they|their)\b", one), one
        assert not re.match(r"(ground-truth )?[\w-]+ (have|are|were|do)\b", one), one
        assert not re.search(r"\b(all )?[a-z]+[^sui]s (?(1)|(which|that) )(is|has|was)\b", one), one
