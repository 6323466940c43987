"""Receipts: a result with everything that is needed to check it later.

A receipt is JSON of one spelling, keys in order, all digits: runs that agree give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from detmap import protocol as protocols
from detmap.errors import DataError, ProtocolError
from detmap.opening import read_bytes
from detmap.protocol import Protocol
from detmap.report.cells import or_none
from detmap.result import Result
from detmap.signature import environment

FORMAT = 1
READ = (".json", ".jsonl", ".gz", ".xml", ".txt", ".csv", ".yaml", ".yml", ".parquet", ".toml")
"""Files of a folder that make a number; pictures do not."""

WHOLE = {
    "receipt": int,
    "signature": str,
    "short": str,
    "command": list,
    "inputs": dict,
    "options": dict,
    "protocol": dict,
    "changes": list,
    "stock": bool,
    "data": str,
    "metrics": dict,
    "counts": dict,
    "per_class": str,
    "notes": list,
    "environment": dict,
}


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


PARTS: Mapping[str, Callable[[Any], bool]] = {
    "command": lambda value: isinstance(value, str),
    "inputs": lambda value: (
        isinstance(value, dict) and {str} == {type(value.get(key)) for key in ("name", "sha256")}
    ),
    "options": lambda value: value is None or isinstance(value, str) or _is_texts(value),
    "metrics": lambda value: value is None or type(value) in (int, float),
    "counts": lambda value: type(value) is int,
    "environment": lambda value: isinstance(value, str),
}
"""What each value of a part has to be."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a receipt says.

    Parameters
    ----------
    content : the tree; its keys are those of `WHOLE`
    protocol : the rules in it
    """

    content: Mapping[str, Any]
    protocol: Protocol

    def to_bytes(self) -> bytes:
        """The file: JSON with keys in order and a line break at the end."""
        text = json.dumps(self.content, sort_keys=True, indent=1, allow_nan=False)
        return (text + "\n").encode()


def make(
    result: Result,
    inputs: Mapping[str, str | Path | None],
    options: Mapping[str, Any],
    command: Sequence[str],
) -> Receipt:
    """The receipt of a result.

    Parameters
    ----------
    inputs : paths by their role; None for one that was not given
    options : how they were read
    command : the words
    """
    rules = result.protocol
    content = {
        "receipt": FORMAT,
        "signature": result.signature,
        "short": short(result.signature),
        "command": list(command),
        "inputs": {role: digest_of(path) for role, path in inputs.items() if path is not None},
        "options": dict(options),
        "protocol": rules.as_dict(),
        "changes": [list(change) for change in rules.changes],
        "stock": rules.stock,
        **numbers(result),
        "notes": [[note.code, note.text, note.count] for note in result.notes],
        "environment": environment(),
    }
    return Receipt(json.loads(json.dumps(content)), rules)


def numbers(result: Result) -> dict[str, Any]:
    """What is compared bit by bit: digest of the data, metrics, counts, digest of the classes."""
    rows = [{key: or_none(value) for key, value in row.items()} for row in result.classes()]
    table = json.dumps(rows, sort_keys=True, allow_nan=False)
    return {
        "data": result.overview.digest,
        "metrics": {name: or_none(value) for name, value in result.metrics.items()},
        "counts": {name: value for name, value in result.counts().items() if name != "iou"},
        "per_class": hashlib.sha256(table.encode()).hexdigest(),
    }


def parse(data: bytes, where: str) -> Receipt:
    """A receipt from its file.

    Raises
    ------
    DataError : it is none, or of a later format; the message names the part
    """
    fix = "give a file that `detmap eval --receipt` wrote"
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DataError(where, f"no JSON: {str(error)[:80]}", fix) from None
    if not isinstance(content, dict) or "receipt" not in content:
        raise DataError(where, "no receipt", fix)
    if content["receipt"] != FORMAT:
        what = f"format {content['receipt']!r:.20}"
        raise DataError(f"{where}: receipt", what, f"this detmap reads format {FORMAT}")
    for name, kind in WHOLE.items():
        if type(content.get(name)) is not kind:
            what = "missing" if name not in content else "malformed"
            raise DataError(f"{where}: {name}", what, fix)
    for name, is_good in PARTS.items():
        values = content[name].values() if isinstance(content[name], dict) else content[name]
        if not all(map(is_good, values)):
            raise DataError(f"{where}: {name}", "malformed", fix)
    lacking = [name for name in ("images", "objects", "classes") if name not in content["counts"]]
    if lacking:
        raise DataError(f"{where}: counts", f"no {', '.join(lacking)}", fix)
    try:
        rules = protocols.from_dict(content["protocol"], where=f"{where}: protocol")
        rules = protocols.as_told(
            rules, [tuple(change) for change in content["changes"]], content["stock"]
        )
    except ProtocolError:
        raise
    except Exception as error:  # a forged tree fails in many ways
        raise DataError(f"{where}: protocol", str(error)[:100], fix) from None
    return Receipt(content, rules)


def differences(receipt: Receipt, result: Result) -> list[str]:
    """What is not as the receipt says, a sentence each; nothing where all bits are the same."""
    found, now = [], numbers(result)
    before = receipt.content
    if now["data"] != before["data"]:
        found.append(f"the content of the data: {before['data']} then, {now['data']} now")
    for name, value in (("signature", result.signature), ("short", short(result.signature))):
        if _without_version(before[name]) != _without_version(value):
            found.append(f"{name}: {before[name]} then, {value} now")
    for name in sorted({*before["metrics"], *now["metrics"]}):
        then, value = (each["metrics"].get(name, "absent") for each in (before, now))
        if then != value:
            found.append(f"{name}: {_shown(then)} then, {_shown(value)} now")
    for name in sorted({*before["counts"], *now["counts"]}):
        then, value = (each["counts"].get(name, "absent") for each in (before, now))
        if then != value:
            found.append(f"{name}: {then} then, {value} now")
    if now["per_class"] != before["per_class"]:
        found.append("the table of classes has other numbers")
    return found


def _without_version(signature: str) -> list[str]:
    """The parts of a signature that the next release has to find again."""
    return [part for part in signature.split("|") if not part.startswith("detmap:")]


def digest_of(path: str | Path) -> dict[str, Any]:
    """Name, size and SHA-256 of a file; of a folder, over the files in it that can make a number.

    Raises
    ------
    DataError : it cannot be read
    """
    place = Path(path)
    if not place.is_dir():
        data = read_bytes(place)
        digest = hashlib.sha256(data).hexdigest()
        return {"name": place.name, "files": 1, "bytes": len(data), "sha256": digest}
    hashed, total, files = hashlib.sha256(), 0, []
    for folder, _, names in os.walk(place):
        files += [Path(folder, name) for name in names if Path(name).suffix.lower() in READ]
    for file in sorted(files, key=lambda each: each.relative_to(place).as_posix()):
        data = read_bytes(file)
        total += len(data)
        hashed.update(file.relative_to(place).as_posix().encode("utf-8", "surrogateescape"))
        hashed.update(b"\0" + hashlib.sha256(data).digest())
    return {
        "name": place.resolve().name,
        "files": len(files),
        "bytes": total,
        "sha256": hashed.hexdigest(),
    }


def short(signature: str) -> str:
    """A signature for a caption: protocol and version, what was changed, and both digests' first
    digits.
    """
    name, state, *rest = signature.split("|")
    parts = dict(part.split(":", 1) for part in rest if ":" in part)
    state = "" if state == "stock" else f" ({state})"
    digests = "/".join(parts.get(key, "")[:6] for key in ("proto", "data"))
    return f"{name}{state} {digests}"


def _shown(value: Any) -> str:
    return f"{value!r}" if isinstance(value, float) else str(value)
