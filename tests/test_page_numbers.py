"""Every number of README and docs/ comes from a block that a test runs, from a generated table, or
from a file named in tests/support/page_numbers.toml; what a test cannot hold has its reason there.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.support.page_numbers import PAGES, ROOT, RUN, stated, values

TABLE = tomllib.loads((ROOT / "tests/support/page_numbers.toml").read_text())
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
KINDS = {"from", "read_by", "measured"}


def held(page: str, file: str) -> set[str]:
    """The numbers in a source: a file, or the page's own blocks."""
    text = (ROOT / (page if file == "block" else file)).read_text()
    if file == "block":
        text = "\n".join(re.findall(RUN, text, re.DOTALL | re.MULTILINE))
    found = re.findall(r"(?<![\w])(?:\d[\d,_]*)?\.?\d+(?: ?%)?", text)
    return set().union(*(values(each.replace("_", "")) for each in found))


def faults(page: str, numbers: dict[str, set[str]], rows: dict[str, Any]) -> list[str]:
    """What is wrong with the table's rows of a page; `numbers` are those that it states."""
    found = [f"{page}: no heading {head!r} with numbers" for head in rows.keys() - numbers.keys()]
    for head, written in numbers.items():
        row = rows.get(head)
        if row is None or not row or set(row) - KINDS:
            found.append(f"{page}, {head!r}: say where its numbers come from: {sorted(written)}")
            continue
        left = dict.fromkeys(written)
        for file in row.get("from", ()):
            there = held(page, file) if file == "block" or (ROOT / file).is_file() else set()
            known = {number for number in written if values(number) & there}
            if not known:
                found.append(f"{page}, {head!r}: {file} holds none of its numbers")
            left = {number: None for number in left if number not in known}
        if "read_by" in row and Path(page).name not in (ROOT / row["read_by"]).read_text():
            found.append(f"{page}, {head!r}: {row['read_by']} does not read the page")
        if "measured" in row and not left:
            found.append(f"{page}, {head!r}: nothing is left for its `measured`")
        if left and "read_by" not in row and not row.get("measured"):
            found.append(f"{page}, {head!r}: no source has {sorted(left)}")
    return found


@pytest.mark.parametrize("page", NAMES)
def test_every_number_has_its_source_or_its_reason(page: str) -> None:
    assert not faults(page, stated((ROOT / page).read_text()), TABLE.get(page, {}))


def test_the_table_names_pages_that_are_there() -> None:
    assert set(TABLE) <= set(NAMES)


@pytest.mark.parametrize(
    ("text", "rows", "word"),
    [
        ("# A\n\nAP is 0.123.\n", {}, "say where"),
        ("# A\n\nAP is 0.123.\n", {"A": {"from": ["pyproject.toml"]}}, "holds none"),
        ("# A\n\n3.11 and 0.123.\n", {"A": {"from": ["pyproject.toml"]}}, "no source has"),
        ("# A\n\nAP is 0.123.\n", {"B": {"measured": "once"}}, "no heading 'B'"),
        ("# A\n\n3.11\n", {"A": {"from": ["pyproject.toml"], "measured": "once"}}, "is left"),
        ("# A\n\nAP is 12 %.\n", {"A": {"read_by": "tests/test_docs.py"}}, "does not read"),
    ],
)
def test_a_number_without_a_source_is_noticed(text: str, rows: dict[str, Any], word: str) -> None:
    assert word in " ".join(faults("docs/glossary.md", stated(text), rows))


def test_spellings_of_a_number_are_one() -> None:
    assert values("0.50") == values(".5") < values("50 %")
    assert stated("# A\n`0.5` 3 [x](1.5.md) 12 images, 20 %\n```\n0.7\n```\n") == {"A": {"20 %"}}
