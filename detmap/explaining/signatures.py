"""A signature against a result: which of the rules, the data and the versions are others."""

from __future__ import annotations

from dataclasses import dataclass

from detmap.errors import DataError, ProtocolError
from detmap.explaining.switches import changed
from detmap.protocol import Protocol, load
from detmap.result import Result
from detmap.signature import protocol_digest


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a signature beside that of a result."""

    name: str
    theirs: str
    ours: str
    remark: str = ""

    @property
    def same(self) -> bool:
        """Whether both agree."""
        return self.theirs == self.ours


def compared(text: str, result: Result) -> tuple[Part, ...]:
    """The parts of a signature beside those of a result, and the keys in which the rules differ.

    Raises
    ------
    DataError : no signature
    """
    theirs, ours = _read(text), _read(result.signature)
    rules = _rules(theirs)
    found = [Part(name, theirs[name], ours[name]) for name in ("protocol", "changes")]
    remark = ""
    if theirs["proto"] != ours["proto"] and (
        rules is None or protocol_digest(rules) != theirs["proto"]
    ):
        remark = "rules that this version does not ship, or not so any more"
    found.append(Part("proto", theirs["proto"], ours["proto"], remark))
    if rules is not None:
        for each in changed(rules, result.protocol):
            found += [Part(key, a, b, each.switch.title) for key, a, b in each.keys]
    data = (
        "" if theirs["data"] == ours["data"] else "another truth, other detections or their order"
    )
    found.append(Part("data", theirs["data"], ours["data"], data))
    found.append(Part("detmap", theirs["detmap"], ours["detmap"]))
    return tuple(found)


def _read(text: str) -> dict[str, str]:
    """The parts of a signature by name."""
    parts = text.strip().split("|")
    named = dict(part.split(":", 1) for part in parts[2:] if ":" in part)
    if len(parts) < 5 or {"proto", "data", "detmap"} - named.keys():
        raise DataError(
            "signature",
            f"{text[:60]!r} is none",
            "give the line under a result, such as voc2012.2|stock|proto:..|data:..|detmap:..",
        )
    return {"protocol": parts[0], "changes": "|".join(parts[1:-3]), **named}


def _rules(parts: dict[str, str]) -> Protocol | None:
    """The protocol that a signature names, where it can be made again."""
    name, _, _ = parts["protocol"].rpartition(".")
    try:
        rules = load(name)
        if parts["changes"] in ("stock", "custom"):
            return rules if parts["changes"] == "stock" else None
        pairs = (each.partition("=") for each in parts["changes"].split(";"))
        return rules.override({key: value for key, _, value in pairs})
    except ProtocolError:
        return None
