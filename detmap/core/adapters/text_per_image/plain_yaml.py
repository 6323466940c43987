"""Reads YAML as plain texts, lists and dicts, with limits enforced while parsing.

Scalars stay text: ``yes`` is "yes", ``1:30`` is "1:30". Tags are rejected and nothing is executed.
Only the parser's events are used: PyYAML's constructors recurse, expand merge keys and convert
numbers without a limit.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from detmap.core.base import open_files
from detmap.core.base.open_files import shown
from detmap.core.base.sums import add_integers
from detmap.errors import DataError

MOST_BYTES = 1 << 22
MOST_DEPTH = 32
MOST_NODES = 100_000
"""Scalars, lists and dicts, those behind aliases counted at each alias. Some 2 s of parsing."""
PLAIN = ("str", "int", "float", "bool", "null", "seq", "map")
TAGS = (None, "!", *(f"tag:yaml.org,2002:{name}" for name in PLAIN))
FIX = "write the keys val and names"


@dataclass(slots=True)
class _Node:
    """A value, its node count, and for an open collection its anchor and pending key."""

    value: Any
    size: int = 1
    anchor: str | None = None
    key: str | None = None


@dataclass(slots=True)
class _Reader:
    """The open collections and the anchored nodes."""

    open: list[_Node] = field(default_factory=list)
    anchors: dict[str, _Node] = field(default_factory=dict)
    root: Any = None

    def begin(self, node: _Node) -> None:
        if len(self.open) >= MOST_DEPTH:
            raise ValueError(f"nested more than {MOST_DEPTH} levels deep")
        self.open.append(node)

    def end(self, node: _Node) -> None:
        """Adds a complete node to its parent."""
        if node.anchor is not None:
            self.anchors[node.anchor] = node
        if not self.open:
            self.root = node.value
            return
        parent = self.open[-1]
        parent.size += node.size
        if add_integers(each.size for each in self.open) > MOST_NODES:
            raise ValueError(f"more than {MOST_NODES:,} values, aliases of aliases included")
        if isinstance(parent.value, list):
            parent.value.append(node.value)
        elif parent.key is not None:
            parent.value[parent.key] = node.value
            parent.key = None
        elif not isinstance(node.value, str):
            raise ValueError("a key that is a list or a dict")
        elif node.value in parent.value:
            raise ValueError(f"the key {node.value!r:.60} occurs twice")
        elif node.value == "<<":
            raise ValueError("a merge key (<<), which is not supported")
        else:
            parent.key = node.value


def load(path: Path) -> dict[str, Any]:
    """Returns the mapping of a YAML file.

    Raises `DataError` for invalid YAML, exceeded limits, tags, merge keys, repeated keys, recursive
    aliases, and if PyYAML is missing.
    """
    try:
        import yaml
    except ImportError:
        raise DataError(
            shown(path),
            "YAML is read by PyYAML, which is not installed",
            "pip install 'detmap-eval[yolo]', or give the folder of the labels",
        ) from None
    data = open_files.read_bytes(path, most=MOST_BYTES)
    reader, line = _Reader(), 0
    try:
        # Python's own parser: that of libyaml is not in every build
        for event in yaml.parse(data.decode("utf-8-sig"), Loader=yaml.SafeLoader):
            line = event.start_mark.line if event.start_mark else line
            _take(yaml, reader, event)
    except Exception as error:  # of YAML, of text
        mark = getattr(error, "problem_mark", None)
        line = mark.line if mark is not None else line
        what = " ".join(str(error).split())[:200] or type(error).__name__
        raise DataError(f"{shown(path)}: line {line + 1}", f"not plain YAML: {what}", FIX) from None
    if not isinstance(reader.root, dict):
        raise DataError(shown(path), "a list or text instead of keys", FIX)
    return reader.root


def _take(yaml: Any, reader: _Reader, event: Any) -> None:
    """Processes an event."""
    if isinstance(event, yaml.AliasEvent):
        known = reader.anchors.get(event.anchor)
        if known is None:
            raise ValueError(f"the alias {event.anchor!r:.60} has no complete value before it")
        reader.end(_Node(known.value, known.size))
    elif isinstance(event, yaml.NodeEvent):
        if event.tag not in TAGS:
            raise ValueError(f"the tag {event.tag!r:.60}, which is not supported")
        if isinstance(event, yaml.ScalarEvent):
            reader.end(_Node(event.value, anchor=event.anchor))
        else:
            empty: Any = [] if isinstance(event, yaml.SequenceStartEvent) else {}
            reader.begin(_Node(empty, anchor=event.anchor))
    elif isinstance(event, yaml.CollectionEndEvent):
        reader.end(reader.open.pop())
    elif isinstance(event, yaml.DocumentStartEvent) and reader.root is not None:
        raise ValueError("a second document")
