"""Protocols: every rule that differs between benchmarks, as data.

A protocol is a tree of frozen dataclasses, read from a TOML file in ``configs/``. Code never tests
the name of a protocol: a variant of a rule is another value of a key. This package checks all keys.
"""

from detmap.core.base.grids import Grid
from detmap.core.protocol.averaging_rules import AveragePrecision, Limits
from detmap.core.protocol.key_checks import (
    MAX_SUBSETS,
    MAX_THRESHOLDS,
    REGIONS,
    Group,
    Range,
    Subset,
)
from detmap.core.protocol.keys import LATER, KeyRow, describe, keys, table
from detmap.core.protocol.load_toml import NEWEST, from_dict, from_file, load, names, shipped, tools
from detmap.core.protocol.metric_rows import NO_LIMIT, MetricRow
from detmap.core.protocol.tree import Protocol

__all__ = [
    "LATER",
    "MAX_SUBSETS",
    "MAX_THRESHOLDS",
    "NEWEST",
    "NO_LIMIT",
    "REGIONS",
    "AveragePrecision",
    "Grid",
    "Group",
    "KeyRow",
    "Limits",
    "MetricRow",
    "Protocol",
    "Range",
    "Subset",
    "describe",
    "from_dict",
    "from_file",
    "keys",
    "load",
    "names",
    "shipped",
    "table",
    "tools",
]
