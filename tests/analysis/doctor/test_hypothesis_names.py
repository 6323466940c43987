"""The table of hypotheses is that of the page, and names everything that can be found."""

import re
from pathlib import Path

import detmap
from detmap.analysis.doctor import hypothesis_names as hypotheses

ROOT = Path(__file__).resolve().parents[3]
NAMES = [each.name for each in hypotheses.HYPOTHESES]
KINDS = "boxes|classes|images|masks|rows|scores|shapes|truth"


def test_the_page_has_the_table() -> None:
    assert hypotheses.table() in (ROOT / "docs" / "doctor.md").read_text()


def test_the_table_names_what_the_code_finds() -> None:
    folder = Path(detmap.__file__).parent / "analysis" / "doctor"
    source = "".join(file.read_text() for file in sorted(folder.glob("*.py")))
    found = set(re.findall(rf'"((?:{KINDS})-[a-z-]*[a-z])"', source)) | {
        "duplicates",
        "unexplained",
    }
    layouts = {"boxes-xyxy", "boxes-xywh", "boxes-cxcywh"}  # put together from the layout
    assert found | layouts == set(NAMES)
    assert len(NAMES) == len(set(NAMES))
