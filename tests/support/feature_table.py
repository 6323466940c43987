"""The table of docs/protocols.md, section 11: what works together.

python -m tests.support.feature_table
"""

from detmap.core.protocol.benchmark_rules import RULES
from detmap.core.protocol.features import DEFAULTS, FEATURES, REFUSED
from detmap.core.protocol.keys import shown

TEXTS = {
    "ap.integrator": "`ap.integrator` without a compiled kernel",
    "matching.neutral": "`region_to_find` in `matching.neutral`, with `ranking.ignored=leave` and "
    "`ranking.ties=input`",
    "metrics": "`metrics` that COCO and VOC lack (P, R, F1, MR), or AP at a lower limit",
    "operating": "`metrics` at one score threshold of all classes (P, R, F1)",
}
"""Conditions that are not a list of values, in words."""


def describe() -> str:
    """Returns the tables of what works together, in Markdown."""
    columns: dict[tuple[str, ...], list[str]] = {}
    for name, each in FEATURES.items():
        columns.setdefault(each.keys, []).append(name)
    del columns[()]
    lines = [f"| not supported | {' | '.join(map(', '.join, columns.values()))} |"]
    lines.append(f"|---|{'---|' * len(columns)}")
    for name in sorted({key for keys in columns for key in keys}):
        cells = ("no" if name in keys else "" for keys in columns)
        lines.append(f"| {_values(name)} | {' | '.join(cells)} |")
    header = "| feature | options that need all rows in memory: not with `--memory` |"
    lines += ["", header, "|---|---|"]
    for name, each in FEATURES.items():
        options = ", ".join(f"`--{option.replace('_', '-')}`" for option in each.options)
        lines += [f"| {name} | {options} |"] if options else []
    lines += ["", "| `evaluation.rule` | classes that `--classes` does not select |", "|---|---|"]
    lines += [f"| `{name}` | {rule.unselected} |" for name, rule in RULES.items()]
    return "\n".join(lines)


def _values(name: str) -> str:
    """The refused values of a key, for the table."""
    if name in TEXTS:
        return TEXTS[name]
    if name in REFUSED:
        return ", ".join(f"`{name}={value}`" for value in REFUSED[name])
    return f"`{name}`" if "=" in name else f"`{name}` other than `{shown(DEFAULTS[name])}`"


if __name__ == "__main__":
    print(describe())  # noqa: T201
