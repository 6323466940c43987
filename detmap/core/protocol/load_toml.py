"""Loads protocols from TOML files, and applies settings to protocols."""

import json
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from detmap.core.base import open_files as opening
from detmap.core.base.immutable import vouched
from detmap.core.base.resources import folder
from detmap.core.protocol import bounded_toml as toml
from detmap.core.protocol.key_checks import IllegalPartError, Key
from detmap.core.protocol.keys import declared, keys
from detmap.core.protocol.tree import Protocol, spelled
from detmap.errors import DataError, ProtocolError

RENAMED = {
    "areas": "subsets",
    "matching.crowd": "matching.neutral.crowd",
    "matching.difficult": "matching.neutral.difficult",
}
"""Keys of earlier versions, and their replacements."""
OPEN = (
    "subsets",
    "matching.neutral",
    "groups",
    "iou.classes",
    "kitti.neighbors",
    "classes.renamed",
    "classes.ignored_as",
)  # tables whose keys are chosen by the user
BASE = "based_on"
"""The key for the shipped protocol that a file changes."""
MOST_BASES = 8  # of bases that are based on others
LONG = 120  # characters of a bad value that a message shows


TOOLS = "tools"
"""The folder of ``configs`` with the rules of named tools."""


def names() -> list[str]:
    """The protocols of benchmarks that detmap ships."""
    return list(_stems(""))


def tools() -> list[str]:
    """The protocols of named tools that detmap ships."""
    return list(_stems(TOOLS))


@cache  # the package does not change while it runs
def _stems(inside: str) -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in (folder("configs") / inside).glob("*.toml")))


@cache
def shipped(name: str) -> Path | None:
    """The file of a shipped protocol, of a benchmark or of a tool; None if there is none."""
    places = (folder("configs"), folder("configs") / TOOLS)
    known = "/" not in name and name not in (".", "..")
    files = [place / f"{name}.toml" for place in places if known]
    return next((path for path in files if path.is_file()), None)


NEWEST = {"ultralytics": "ultralytics-8.4", "coco": "coco-bbox", "voc": "voc2012"}
"""Names of families, and the protocol that each stands for."""

MOST_SHOWN = 40  # keys in a message


def load(name_or_path: str | Path) -> Protocol:
    """Loads a protocol by its name, or your own by the path of its TOML file.

    >>> import detmap
    >>> detmap.load_protocol("coco-bbox").limits.max_dets
    (1, 10, 100)

    The name of a family is its newest version (`NEWEST`); capitals mean nothing.

    Raises
    ------
    ProtocolError : unknown protocol, invalid TOML, unknown keys, or values out of range
    """
    if not isinstance(name_or_path, str | Path):
        raise ProtocolError(
            "protocol",
            f"{_shown(name_or_path)} is no protocol",
            "give a name or the path of a file",
        )
    text, known = str(name_or_path), [*NEWEST, *names(), *tools()]
    folded = text.lower()  # VOC2007 is voc2007
    if folded in known:
        path = shipped(NEWEST.get(folded, folded))
        assert path is not None
        return _shipped_protocol(path)
    own = Path(name_or_path)
    if "/" not in text and own.suffix != ".toml":
        from detmap.core.base.suggestions import did_you_mean  # for messages alone

        hint = did_you_mean("protocol", text, known)
        if "ultralytics-8.3" in hint:
            hint += "Ultralytics 8.0 to 8.2 have the AP of 8.3, 8.4 has another; "
        raise ProtocolError(
            "protocol",
            f"no protocol {text[:LONG]!r}",
            f"{hint}`detmap show` lists all"
            if hint
            else f"there are {', '.join(names())}, and {len(tools())} tools: see `detmap show`",
        )
    return replace(_from_path(own), stock=False)


def _from_path(path: Path) -> Protocol:
    """Load the protocol of a file."""
    return from_dict(_tree(path), where=str(path))


_shipped_protocol = cache(_from_path)
"""Shipped protocols are loaded once: a protocol is immutable."""


def _tree(path: Path, depth: int = 0) -> dict[str, Any]:
    """The plain values of a protocol's file, on top of those of its `based_on`."""
    try:
        text = opening.read_bytes(path, most=toml.MOST_BYTES).decode("utf-8-sig")
    except (DataError, UnicodeDecodeError) as error:
        what = error.what if isinstance(error, DataError) else str(error)
        what = what.removeprefix("cannot be read: ")
        raise ProtocolError(
            str(path), f"cannot be read: {what}", "name a shipped protocol or a TOML file"
        ) from None
    try:
        tree = toml.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: not TOML, or 5,000 digits
        raise ProtocolError(
            str(path), f"not TOML: {error}", "see `detmap show coco-bbox` for an example"
        ) from None
    if BASE not in tree:
        return tree
    name = tree.pop(BASE)
    base = shipped(name) if isinstance(name, str) else None
    if base is None or depth > MOST_BASES:
        known = ", ".join(names())
        raise ProtocolError(f"{path}: {BASE}", f"no protocol {_shown(name)}", f"there are {known}")
    return _over(_tree(base, depth + 1), tree)


def _over(base: dict[str, Any], tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Merge the values of a tree into a base; subsets and groups are replaced as a whole."""
    merged = dict(base)
    for name, value in tree.items():
        inner = merged.get(name)
        whole = f"{prefix}{name}" in ("subsets", "groups")
        if isinstance(value, Mapping) and isinstance(inner, Mapping) and not whole:
            merged[name] = _over(dict(inner), value, f"{prefix}{name}.")
        else:
            merged[name] = value
    return merged


def from_dict(tree: Mapping[str, Any], where: str) -> Protocol:
    """Build a protocol from plain values (`Protocol.to_dict`); errors start with `where`."""
    protocol: Protocol = _node(Protocol, tree, where, prefix="")
    return protocol


def check(protocol: Protocol) -> None:
    """Check a protocol built in Python: it must equal what loading its file would give.

    Raises
    ------
    ProtocolError : a value out of range, or of another type than loading gives
    """
    _check_node(protocol, Protocol, "")
    if protocol.limits.order == "input" and len(protocol.limits.max_dets) > 1:
        raise ProtocolError(
            "limits.order",
            "each limit would select other detections",
            "give one limit in limits.max_dets, and evaluate once for each",
        )
    if protocol.iou.classes and protocol.iou.tolerance:
        raise ProtocolError(
            "iou.classes",
            "an object cannot have the threshold of its class and that of iou.tolerance",
            "set iou.tolerance to 0",
        )
    if protocol.iou.of != "boxes" and not protocol.supports("masks, keypoints"):
        from detmap.core.protocol.features import unsupported

        box_only = ", ".join(unsupported(protocol, "masks, keypoints").values())
        raise ProtocolError(
            "iou.of",
            f"compares {protocol.iou.of}, but {box_only} is for boxes only",
            "leave such keys as they are in coco-segm and coco-keypoints, or compare boxes",
        )
    if protocol.evaluation.rule == "matching":
        protocol.rows()  # refuse unknown metrics before any work


def _check_node(node: Any, kind: type, prefix: str) -> None:
    """Check that parsing the TOML of each value gives the value."""
    if not isinstance(node, kind):
        raise ProtocolError(
            prefix.rstrip("."), f"a {type(node).__name__}", f"give a {kind.__name__}"
        )
    for name, key in declared(kind).items():
        value = getattr(node, name)
        if not isinstance(key, Key):
            _check_node(value, key, f"{prefix}{name}.")
            continue
        try:
            legal = bool(key.check.read(spelled(node, name)) == value)
        except (ValueError, TypeError, OverflowError, AttributeError):
            legal = False
        if not legal:
            raise ProtocolError(
                prefix + name, f"{_shown(value)} is not legal", f"{key.check.legal}; use override()"
            )


def override(protocol: Protocol, settings: Mapping[str, Any]) -> Protocol:
    """See `Protocol.override`."""
    if not isinstance(settings, Mapping):
        raise ProtocolError(
            "settings",
            f"{_shown(settings)} is no table of settings",
            'give a dict of keys and values, {"limits.max_dets": [1, 10, 300]}',
        )
    tree = protocol.to_dict()
    for key, value in settings.items():
        if key in ("name", "version", "summary", "source"):
            raise ProtocolError(
                f"settings: {key}",
                "identifies the protocol and is not a rule",
                "write a TOML file of your own",
            )
        _put(tree, str(key), deepcopy(_from_text(value)))
    changed = from_dict(tree, where="settings")
    stock = load(protocol.name) if protocol.stock and protocol.changes else None
    known = stock is not None and stock.version == protocol.version
    changes = _differences(stock if known and stock is not None else protocol, changed)
    if not known:  # keep earlier changes
        changes = (*(c for c in protocol.changes if c[0] not in dict(changes)), *changes)
    columns = {each.name: getattr(changed, each.name) for each in fields(changed)}
    columns |= {"changes": changes, "stock": protocol.stock}
    return vouched(Protocol, **columns)  # the values are checked already


def _differences(stock: Protocol, changed: Protocol) -> tuple[tuple[str, str], ...]:
    """The dotted keys with changed values, and these values."""
    before, now = dict(_flat(stock.to_dict())), dict(_flat(changed.to_dict()))
    filled = {key.rpartition(".")[0] for key in now}  # tables that were empty before
    gone = [key for key in before if key not in now and key not in filled]
    return tuple(
        (key, canonical(now.get(key))) for key in (*now, *gone) if now.get(key) != before.get(key)
    )


def from_file(protocol: Protocol, changes: Sequence[tuple[str, Any]], stock: bool) -> Protocol:
    """Restore a protocol from a saved file. Its changes are checked against the shipped protocol of
    the same name and version.

    Raises
    ------
    ProtocolError : changes that contradict the values
    """
    now = dict(_flat(protocol.to_dict()))
    for key, value in changes:
        if value != canonical(now.get(key)):
            raise ProtocolError("changes", f"{_shown(key)} is not {_shown(value)}")
    known = load(protocol.name) if stock and shipped(protocol.name) is not None else None
    if (
        known is not None and known.version != protocol.version
    ):  # another version of detmap: cannot be checked
        return replace(protocol, changes=tuple(map(tuple, changes)), stock=True)
    if known is not None:
        prose = ("summary", "source")
        differences = _differences(known, protocol)
        return replace(
            protocol, changes=tuple(each for each in differences if each[0] not in prose)
        )
    return replace(protocol, changes=tuple(map(tuple, changes)), stock=False)


def _node(node: type, tree: Mapping[str, Any], where: str, prefix: str) -> Any:
    known = declared(node)
    for name in tree:
        if name not in known:
            raise _unknown(f"{where}: {prefix}{name}", prefix + name, [prefix + n for n in known])
    values = {}
    for name, kind in known.items():
        key = prefix + name
        if isinstance(kind, Key):
            values[name] = _value(kind, tree, name, f"{where}: {key}")
        elif isinstance(inner := tree.get(name, {}), Mapping):
            values[name] = _node(kind, inner, where, prefix=f"{key}.")
        else:
            raise ProtocolError(
                f"{where}: {key}",
                f"{_shown(inner)} is not a table",
                f"set one of its keys, {key}.…",
            )
    try:
        return node(**values)
    except ProtocolError as error:
        raise ProtocolError(f"{where}: {error.where}", error.what, error.fix) from None


def _value(key: Key, tree: Mapping[str, Any], name: str, where: str) -> Any:
    if name not in tree and key.default is None:
        raise ProtocolError(where, "missing", "add this key; see `detmap show coco-bbox`")
    value = tree.get(name, key.default)
    try:
        return key.check.read(value)
    except IllegalPartError as error:
        where = f"{where}.{error.name}"
        raise ProtocolError(where, f"{_shown(error.value)} is not legal", key.check.legal) from None
    except (ValueError, TypeError, OverflowError):
        raise ProtocolError(where, f"{_shown(value)} is not legal", key.check.legal) from None


def _unknown(where: str, key: str, legal: Iterable[str]) -> ProtocolError:
    for old, new in RENAMED.items():
        if key == old or key.startswith(f"{old}."):
            moved = new + key[len(old) :] + (".area" if old == "areas" and key != old else "")
            return ProtocolError(where, f"{old} is now {new}", f"write {moved}")
    from detmap.core.base.suggestions import did_you_mean  # for messages alone

    hint = did_you_mean("key", key, keys())
    legal = list(legal)
    if len(legal) > MOST_SHOWN:
        legal = [
            f"{table}.KEY" for table in dict.fromkeys(k.split(".")[0] for k in legal if "." in k)
        ]
        legal.append("metrics, groups; `detmap show --keys` lists them all")
    where = where if len(where) <= 4 * LONG else f"{where[: 4 * LONG]}…"
    return ProtocolError(where, "unknown key", f"{hint}legal: {', '.join(legal)}")


def _put(tree: dict[str, Any], dotted: str, value: Any) -> None:
    """Set one dotted key in a tree of plain values."""
    *path, last = dotted.split(".")
    node: Any = tree
    for depth, part in enumerate(path):
        inside = ".".join(path[:depth]).startswith(OPEN)
        node = (
            node.setdefault(part, {})
            if inside and isinstance(node, dict)
            else (node.get(part) if isinstance(node, dict) else None)
        )
    if not isinstance(node, dict) or (node is tree and last not in tree):
        raise _unknown(f"settings: {dotted}", dotted, [*keys(), "subsets.NAME.ATTRIBUTE"])
    node[last] = value


def _from_text(value: Any) -> Any:
    """Parse a value from the command line: as TOML if it is valid TOML, else as text."""
    if isinstance(value, tuple):
        return list(value)
    if not isinstance(value, str):
        return value
    try:
        tree = toml.loads(f"value = {value}")
        return tree["value"] if len(tree) == 1 else value  # a line break could start another key
    except (ValueError, RecursionError):  # ValueError: not TOML, or an integer of 5,000 digits
        return value


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def canonical(value: Any) -> str:
    """The canonical text of a value: compact JSON, whole floats without the trailing zero."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    if isinstance(value, list):
        return "[" + ",".join(canonical(x) for x in value) + "]"
    return json.dumps(value, ensure_ascii=False, default=str)


def _shown(value: Any) -> str:
    """A short form of an invalid value, for messages."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str, separators=(",", ":"))
    except (ValueError, RecursionError):  # an integer of 5,000 digits, or a recursive list
        return "a value of absurd size"
    return text if len(text) <= LONG else f"{text[:LONG]}… ({len(text)} characters)"
