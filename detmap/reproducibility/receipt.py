"""Receipts: a result with everything needed to verify it later.

A receipt is canonical JSON: sorted keys and full precision, so equal runs give equal bytes.
Its `digest` covers all other parts, so any edit is detected.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from detmap.core import protocol as protocols
from detmap.core.base.open_files import looking, opened, shown, unreadable_folder
from detmap.core.base.sums import add_integers
from detmap.core.output.cell_text import or_none
from detmap.core.protocol import Protocol
from detmap.core.results.result import Result
from detmap.core.results.signature import current, environment
from detmap.errors import DataError, ProtocolError

PIECE = 1 << 20  # bytes
FORMAT = 2
MAX_BYTES = 1 << 26
MAX_MEMBERS = 10_000
"""A folder with at most this many files lists a digest per file."""
MEMBER_DIGITS = 16
MAX_NUMBER = 10**18
READ = (
    *(".json", ".jsonl", ".gz", ".xml", ".txt", ".csv", ".yaml", ".yml", ".parquet", ".toml"),
    *(".mat", ".odgt"),
)
"""Suffixes of the files in a folder that affect metrics; images do not."""

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


LATER: Mapping[str, Any] = {"contents": {}, "digest": ""}
"""Parts that early receipts lack, and their default values."""
FORMATS = 1, FORMAT
"""Formats that are read; the first has no digest of the whole receipt."""
ROLES = ("truth", "detections", "image_sizes", "class_names", "images")
INPUT_KEYS = ("name", "files", "bytes", "sha256", "members")
OPTIONS = (
    "split",
    "truth_format",
    "truth_box_format",
    "detections_format",
    "detections_box_format",
    "unknown",
    "image_key",
    "class_key",
    "classes",
    "fix",
)
"""Reader options: they select and interpret the inputs."""


def _is_digest(value: Any, digits: int) -> bool:
    return isinstance(value, str) and re.fullmatch(f"[0-9a-f]{{{digits}}}", value) is not None


def _is_input(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    members = value.get("members", {})
    return (
        isinstance(value.get("name"), str)
        and _is_digest(value.get("sha256"), 64)
        and all(_is_count(value.get(key, 0)) for key in ("files", "bytes"))
        and isinstance(members, dict)
        and all(_is_digest(each, MEMBER_DIGITS) for each in members.values())
    )


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_NUMBER


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= MAX_NUMBER


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


PARTS: Mapping[str, Callable[[Any], bool]] = {
    "command": lambda value: isinstance(value, str),
    "inputs": _is_input,
    "options": lambda value: value is None or isinstance(value, str) or _is_texts(value),
    "metrics": lambda value: value is None or _is_number(value),
    "counts": _is_count,
    "environment": lambda value: isinstance(value, str),
    "contents": lambda value: _is_digest(value, 12),
    "changes": lambda value: _is_texts(value) and len(value) == 2,
    "notes": lambda value: (
        isinstance(value, list) and [type(each) for each in value] == [str, str, int]
    ),
}
"""Checks of each value of a part."""
DIGITS = {"data": 12, "per_class": 64}
"""Lengths of the parts that are digests."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """A receipt.

    Parameters
    ----------
    content : the JSON tree; its keys are those of `WHOLE`
    protocol : the protocol in it
    """

    content: Mapping[str, Any]
    protocol: Protocol

    def to_bytes(self) -> bytes:
        """Returns the file: JSON with sorted keys and a final newline.

        The main subset of the protocol comes before the others, because its place is its meaning.
        """
        tree = json.loads(json.dumps(self.content, sort_keys=True, allow_nan=False))
        subsets = tree["protocol"].get("subsets", {})
        first = [each.name for each in self.protocol.subsets[:1]]
        tree["protocol"]["subsets"] = {
            name: subsets[name] for name in dict.fromkeys([*first, *subsets])
        }
        return (json.dumps(tree, indent=1, allow_nan=False) + "\n").encode()


def make(
    result: Result,
    contents: tuple[str, str],
    inputs: Mapping[str, str | Path | None],
    options: Mapping[str, Any],
    command: Sequence[str],
) -> Receipt:
    """Creates the receipt of a result.

    Parameters
    ----------
    contents : digests of the content of truth and detections (`receipt_files.content_digests`)
    inputs : paths by role; None if not given
    options : reader options
    command : the words of the command line
    """
    rules = result.protocol
    content = {
        "receipt": FORMAT,
        "signature": result.signature,
        "short": short(result.signature),
        "command": list(command),
        "inputs": {role: digest_of(path) for role, path in inputs.items() if path is not None},
        "contents": dict(zip(("truth", "detections"), contents, strict=True)),
        "options": dict(options),
        "protocol": rules.to_dict(),
        "changes": [list(change) for change in rules.changes],
        "stock": rules.stock,
        **numbers(result),
        "notes": [[note.code, note.text, note.count] for note in result.notes],
        "environment": environment(),
    }
    return Receipt(sealed(json.loads(json.dumps(content))), rules)


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the content with `digest`, the SHA-256 of all other parts."""
    rest = {name: value for name, value in content.items() if name != "digest"}
    text = json.dumps(rest, sort_keys=True)
    return {**content, "digest": hashlib.sha256(text.encode()).hexdigest()}


def numbers(result: Result) -> dict[str, Any]:
    """Returns what is verified bit by bit: data digest, metrics, counts, class digest."""
    rows = [{key: or_none(value) for key, value in row.items()} for row in result.classes()]
    table = json.dumps(rows, sort_keys=True, allow_nan=False)
    return {
        "data": result.data_digest,
        "metrics": {name: or_none(value) for name, value in result.metrics.items()},
        "counts": {name: value for name, value in result.counts().items() if name != "iou"},
        "per_class": hashlib.sha256(table.encode()).hexdigest(),
    }


def parse(data: bytes, where: str) -> Receipt:
    """Reads a receipt from the bytes of its file.

    Raises
    ------
    DataError : not a receipt, a later format, duplicate keys or a malformed part
    """
    fix = "give a file that `detmap eval --receipt` wrote"
    try:
        content = json.loads(data, parse_constant=_refuse, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise DataError(where, f"not a receipt: {str(error)[:80]}", fix) from None
    if not isinstance(content, dict) or "receipt" not in content:
        raise DataError(where, "not a receipt", fix)
    if content["receipt"] not in FORMATS:
        what = f"format {content['receipt']!r:.20}"
        raise DataError(f"{where}: receipt", what, f"this detmap reads formats {FORMATS}")
    content = {**LATER, **content}
    for name, kind in {**WHOLE, **{name: type(value) for name, value in LATER.items()}}.items():
        if type(content.get(name)) is not kind:
            what = "missing" if name not in content else "malformed"
            raise DataError(f"{where}: {name}", what, fix)
    for name, is_good in PARTS.items():
        values = content[name].values() if isinstance(content[name], dict) else content[name]
        if not all(map(is_good, values)):
            raise DataError(f"{where}: {name}", "malformed", fix)
    for name, digits in DIGITS.items():
        if not _is_digest(content[name], digits):
            raise DataError(f"{where}: {name}", f"not {digits} hexadecimal digits", fix)
    lacking = [name for name in ("images", "objects", "classes") if name not in content["counts"]]
    if lacking:
        raise DataError(f"{where}: counts", f"no {', '.join(lacking)}", fix)
    try:
        rules = protocols.from_dict(content["protocol"], where=f"{where}: protocol")
        rules = protocols.from_file(
            rules, [tuple(change) for change in content["changes"]], content["stock"]
        )
    except ProtocolError:
        raise
    except Exception as error:  # a forged tree fails in many ways
        raise DataError(f"{where}: protocol", str(error)[:100], fix) from None
    return Receipt(content, rules)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not valid JSON")


def unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Returns a JSON object as a dict; raises ValueError on duplicate keys."""
    tree: dict[str, Any] = {}
    for name, value in pairs:
        if name in tree:
            raise ValueError(f"the key {name!r:.40} occurs twice")
        tree[name] = value
    return tree


def digest_of(path: str | Path) -> dict[str, Any]:
    """Returns name, size and SHA-256 of a file, or of the files in a folder that affect metrics.

    Raises
    ------
    DataError : it cannot be read
    """
    place = Path(path)
    if not place.is_dir():
        digest, size = _sha256(place)
        return {"name": place.name, "files": 1, "bytes": size, "sha256": digest.hexdigest()}
    hashed, total, members = hashlib.sha256(), 0, {}
    for name, file in sorted(_files(place)):
        own, size = _sha256(file)
        total += size
        hashed.update(name.encode("utf-8", "surrogateescape") + b"\0" + own.digest())
        members[shown(name)] = own.hexdigest()[:MEMBER_DIGITS]
    return {
        "name": place.resolve().name,
        "files": len(members),
        "bytes": total,
        "sha256": hashed.hexdigest(),
        **({"members": members} if len(members) <= MAX_MEMBERS else {}),
    }


def _sha256(file: Path) -> tuple[Any, int]:
    hashed = hashlib.sha256()
    with looking(), opened(file) as stream:  # older outputs in a folder are hashed, but not read
        for at in range(0, stream.size, PIECE):
            hashed.update(stream.read(at, PIECE))
        return hashed, stream.size


def _files(place: Path) -> Iterator[tuple[str, Path]]:
    """The files of a folder that affect metrics, with relative names; follows each link once."""

    def refuse(error: OSError) -> None:
        raise unreadable_folder(error.filename or place, error)

    seen = {str(each) for each in place.resolve().parents}  # a link to a parent leaves the folder
    for folder, inner, names in os.walk(place, onerror=refuse, followlinks=True):
        seen.add(os.path.realpath(folder))
        for each in sorted(inner):
            real = os.path.realpath(os.path.join(folder, each))
            if real in seen:
                inner.remove(each)
            seen.add(real)
        for name in names:
            file = Path(folder, name)
            if file.suffix.lower() in READ:
                yield file.relative_to(place).as_posix(), file


def is_same(path: str | Path, known: Mapping[str, Any]) -> bool:
    """Returns whether a file or folder has a digest; does not read files of other sizes."""
    place = Path(path)
    files = [file for _, file in _files(place)] if place.is_dir() else [place]
    sizes = add_integers(file.stat().st_size for file in files)
    if (len(files), sizes) != (known.get("files"), known.get("bytes")):
        return False
    return bool(digest_of(path)["sha256"] == known["sha256"])


def short(signature: str) -> str:
    """Returns a short signature: protocol, version, changes, first digits of both digests."""
    name, state, *rest = current(signature).split("|")
    parts = dict(part.split(":", 1) for part in rest if ":" in part)
    state = "" if state == "default" else f" ({state})"
    digests = "/".join(parts.get(key, "")[:6] for key in ("proto", "data"))
    return f"{name}{state} {digests}"
