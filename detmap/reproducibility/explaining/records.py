"""Records of results: the known parts of receipts, JSON results and signatures."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from detmap.core.protocol import Protocol, from_dict, load
from detmap.core.protocol.protocol_digest import protocol_digest
from detmap.core.results.signature import current
from detmap.errors import DataError, ProtocolError
from detmap.reproducibility.receipt import Receipt
from detmap.reproducibility.receipt_contradictions import contradictions


@dataclass(frozen=True, slots=True)
class Record:
    """The known content of a result.

    Parameters
    ----------
    name : shown to users
    content : parts of a receipt
    rules : the whole protocol; None if unknown
    contradictions : of a receipt, as `detmap.reproducibility.receipt_contradictions`
    """

    name: str
    content: Mapping[str, Any]
    rules: Protocol | None
    contradictions: tuple[tuple[str, str, str], ...] = ()

    @property
    def number(self) -> float | None:
        """The first metric of the protocol; None if undefined or unknown."""
        if self.rules is None:
            return None
        rows, _ = self.rules.rows()
        value = self.content.get("metrics", {}).get(rows[0].name) if rows else None
        return None if value is None else float(value)


def receipt_record(receipt: Receipt, name: str) -> Record:
    """The record of a receipt."""
    content = {**receipt.content, **_signed(receipt.content["signature"], name)}
    return Record(name, content, receipt.protocol, tuple(contradictions(receipt)))


def signature_record(text: str) -> Record:
    """The record of a signature, with its protocol if it can be restored.

    Raises
    ------
    DataError : not a signature
    """
    parts = _signed(text, "signature")
    return Record("the signature", {"signature": text.strip(), **parts}, _rules(parts))


def json_record(tree: Any, name: str) -> Record:
    """The record of a JSON result.

    Raises
    ------
    DataError : not a result
    """
    fix = "give what `detmap eval --format json` or `--receipt` wrote"
    kinds = {"metrics": dict, "counts": dict, "protocol": dict, "signature": str, "notes": list}
    known = tree if isinstance(tree, dict) else {}
    for key, kind in {**kinds, "environment": dict}.items():
        if type(known.get(key)) is not kind:
            raise DataError(f"{name}: {key}", "missing or malformed: not a result", fix)
    rules = {key: value for key, value in known["protocol"].items() if key != "changes"}
    try:
        notes = [[str(each[key]) for key in ("code", "text", "count")] for each in known["notes"]]
        numbers = {
            kind: {str(key): value for key, value in known[kind].items() if key != "iou"}
            for kind in ("metrics", "counts")
        }
        for value in [*numbers["metrics"].values(), *numbers["counts"].values()]:
            float(value or 0)
        protocol = from_dict(rules, where=f"{name}: protocol")
    except ProtocolError:
        raise
    except Exception as error:  # a forged tree fails in many ways
        raise DataError(name, f"malformed: {str(error)[:80]}", fix) from None
    content = {
        "signature": known["signature"],
        **numbers,
        "notes": notes,
        "environment": {str(key): str(value) for key, value in known["environment"].items()},
    }
    return Record(name, {**content, **_signed(known["signature"], name)}, protocol)


def is_signature(text: str) -> bool:
    """Whether a text is a signature and not a path."""
    return "|proto:" in text and "|data:" in text


def _signed(text: str, where: str) -> dict[str, str]:
    """The parts of a signature by name."""
    parts = current(text.strip()).split("|")
    named = dict(part.split(":", 1) for part in parts[2:] if ":" in part)
    if len(parts) < 5 or {"proto", "data", "detmap"} - named.keys():
        raise DataError(
            where,
            f"{text[:60]!r} is not a signature",
            "give the signature line of a result, such as voc2012.3|default|proto:..|data:..",
        )
    state = [part for part in parts[1:] if not part.startswith(("proto:", "data:", "detmap:"))]
    return {
        "named": parts[0],
        "state": "|".join(state),
        **{key: named[key] for key in ("proto", "data", "detmap")},
    }


def _rules(parts: Mapping[str, str]) -> Protocol | None:
    """The protocol of a signature; None if it cannot be restored."""
    name, _, _ = parts["named"].rpartition(".")
    try:
        rules = load(name)
        if parts["state"] == "custom":
            return None
        if parts["state"] != "default":
            pairs = (each.partition("=") for each in parts["state"].split(";"))
            rules = rules.override({key: value for key, _, value in pairs})
    except ProtocolError:
        return None
    return rules if protocol_digest(rules) == parts["proto"] else None
