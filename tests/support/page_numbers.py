"""The numbers of README and docs/: what stands in prose and tables, by page and heading."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

# versions and values with a decimal point, shares, times and sizes; counts are not looked at
NUMBER = re.compile(r"(?<![\w.:-])((?:\d[\d,]*)?\.?\d+)( ?%| ?[mµ]?s\b| ?[kMG]B\b)?")
RUN = r"^ *```(?:bash|python|py|example)$.*?^ *```$"
"""A block that a test runs."""
GENERATED = (  # what a tool writes and a test compares, or a block that tests/test_blocks.py runs
    RUN,
    r"<!-- battery -->.*?<!-- end of battery -->",
    r"<!-- ([\w/.]+): ?begin -->.*?<!-- \1: ?end -->",
    r"<!-- (?:keys|features): made from .*?(?=^#|\Z)",
    r"<!-- made by tools/format_table.py -->.*?(?=^#|\Z)",
)
NO_NUMBERS = r"`[^`]*`", r"\]\([^)]*\)", r"https?://\S+"


def values(text: str) -> set[str]:
    """The numbers of a text as they are compared: 0.50, .5 and 50 % are one."""
    found = set()
    for digits, unit in NUMBER.findall(text):
        number = float(digits.replace(",", ""))
        found.add(f"{number:.10g}")
        if "%" in unit:
            found.add(f"{number / 100:.10g}")
    return found


def stated(text: str) -> dict[str, set[str]]:
    """The numbers that a page states, as written, under each of its headings."""
    for pattern in GENERATED:
        text = re.sub(pattern, "", text, flags=re.DOTALL | re.MULTILINE)
    for pattern in NO_NUMBERS:
        text = re.sub(pattern, "", text)
    found: dict[str, set[str]] = {}
    for part in re.split(r"^(?=#+ )", text, flags=re.MULTILINE):
        numbers = {digits + unit for digits, unit in NUMBER.findall(part) if "." in digits or unit}
        if numbers:
            found.setdefault(part.splitlines()[0].strip("# "), set()).update(numbers)
    return found
