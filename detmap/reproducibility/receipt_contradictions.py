"""Contradictions within a receipt, which show that it was edited."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from detmap.core import protocol as protocols
from detmap.core.protocol import Protocol
from detmap.core.results.signature import current, environment, signature
from detmap.reproducibility.receipt import (
    FORMAT,
    INPUT_KEYS,
    LATER,
    MAX_MEMBERS,
    OPTIONS,
    ROLES,
    WHOLE,
    Receipt,
    sealed,
    short,
)
from detmap.version import __version__


def contradictions(receipt: Receipt) -> list[tuple[str, str, str]]:
    """Lists the inconsistent parts of an edited receipt: part, stated value, computed value."""
    content, rules = receipt.content, receipt.protocol
    version = content["environment"].get("detmap", "absent")
    whole = signature(rules, content["data"]).removesuffix(__version__) + version
    stated, computed = current(content["signature"]).split("|"), whole.split("|")
    parts = {"protocol": "", "state": "", "proto": "proto:", "data": "data:"}
    parts |= {"environment.detmap": "detmap:"}
    if len(stated) == len(computed) == len(parts):
        found = [
            (name, x.removeprefix(begin), y.removeprefix(begin))
            for (name, begin), x, y in zip(parts.items(), computed, stated, strict=True)
        ]
    else:
        found = [("signature", content["signature"], whole)]
    if len(stated) >= len(parts):
        found.append(("short", content["short"], short(content["signature"])))
    if content["digest"] or content["receipt"] == FORMAT:
        found.append(("digest", content["digest"], sealed(content)["digest"]))
    changes = [list(each) for each in rules.changes]
    found.append(("changes", str(content["changes"]), str(changes)))
    if rules.stock and version == __version__:  # other versions may have other texts
        shipped, changed = protocols.load(rules.name), {key for key, _ in rules.changes}
        for key in {"summary", "source"} - changed if shipped.version == rules.version else ():
            found.append((f"protocol.{key}", getattr(rules, key), getattr(shipped, key)))
    if version == __version__:  # a value that is read as another one, such as limits out of order
        found += _respelled(content["protocol"], json.loads(json.dumps(rules.to_dict())))
    known = {"": {*WHOLE, *LATER}, "inputs": set(ROLES)}
    known |= {f"inputs.{role}": set(INPUT_KEYS) for role in content["inputs"]}
    trees = {"": content, "inputs": content["inputs"]}
    trees |= {f"inputs.{role}": tree for role, tree in content["inputs"].items()}
    extra = [f"{at}.{key}".lstrip(".") for at in trees for key in trees[at].keys() - known[at]]
    found += [(name, "present", "no part of a receipt") for name in extra]
    found += [(name, "missing", "a part of every receipt") for name in _lacking(content, rules)]
    return sorted(each for each in found if each[1] != each[2])


def _respelled(
    stated: Any, written: Any, place: str = "protocol"
) -> Iterator[tuple[str, str, str]]:
    """Yields the values that detmap would write otherwise; see `contradictions`."""
    if isinstance(stated, dict) and isinstance(written, dict):
        for key in stated.keys() & written.keys():
            yield from _respelled(stated[key], written[key], f"{place}.{key}")
    elif (one := json.dumps(stated)) != (other := json.dumps(written)):
        yield place, one, other


def _lacking(content: Mapping[str, Any], rules: Protocol) -> list[str]:
    """Lists the fields that every receipt of its format and version has, and this one lacks."""
    if content["receipt"] != FORMAT:
        return []
    whole: dict[str, Any] = {
        "contents": dict.fromkeys(("truth", "detections")),
        "inputs": {role: dict.fromkeys(_input_keys(of)) for role, of in content["inputs"].items()},
    }
    if content["environment"].get("detmap") in (None, __version__):
        known = {"environment": environment(), "protocol": rules.to_dict()}
        whole |= known | {"options": dict.fromkeys(OPTIONS)}
    return list(_absent(whole, content))


def _input_keys(known: Mapping[str, Any]) -> tuple[str, ...]:
    """The keys of an input; a folder of few files lists them, but one of one file looks like it."""
    listed = known.get("files", 1) != 1 and known.get("files", 1) <= MAX_MEMBERS
    return INPUT_KEYS if listed else INPUT_KEYS[:-1]


def _absent(whole: Mapping[str, Any], tree: Mapping[str, Any], place: str = "") -> Iterator[str]:
    """Yields the places of the keys of a tree that another lacks."""
    for name, inner in whole.items():
        if name not in tree:
            yield f"{place}{name}"
        elif isinstance(inner, dict) and isinstance(tree[name], dict):
            yield from _absent(inner, tree[name], f"{place}{name}.")
