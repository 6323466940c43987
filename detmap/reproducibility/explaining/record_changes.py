"""Compares two results by their records. What one record lacks is not compared."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from detmap.core.results.signature import current
from detmap.errors import few
from detmap.reproducibility.explaining.records import Record
from detmap.reproducibility.explaining.switches import changed

ITSELF = "itself: "
"""Prefix of the name of a part that a receipt contains twice."""
EDITED_LIST = "the lists of files are equal: one record was changed"
EDITED_FILE = "the same file: one record was changed later"
OF_THE_PLACE = ("path-moved", "folder-above", "images-unannotated")
"""Notes on where files are, or on pictures, which the next reader may not have."""
_NUMBER = re.compile(r"(?<![\w./\\-])[0-9]+(?:\.[0-9]+)?(?![\w/\\-]|\.\w)")
"""A number in a text, not the digits of a name or a path."""


@dataclass(frozen=True, slots=True)
class Members:
    """Files of a folder that differ."""

    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = (("changed", self.changed), ("added", self.added), ("removed", self.removed))
        return "; ".join(f"{len(each)} {what}: {few(each)}" for what, each in parts if each)


@dataclass(frozen=True, slots=True)
class Part:
    """One entry of both records.

    Parameters
    ----------
    name : such as ``ap.integrator`` or ``truth file``
    theirs, ours : values of the first and of the other result
    remark : shown to users
    decides : False for entries that may differ between identical results
    members : of a folder, the files that differ
    """

    name: str
    theirs: str
    ours: str
    remark: str = ""
    decides: bool = True
    members: Members = field(default_factory=Members)

    @property
    def same(self) -> bool:
        """Whether both values are equal."""
        return self.theirs == self.ours

    def __str__(self) -> str:
        remark = f" ({self.remark})" if self.remark else ""
        return f"{self.name}: {self.theirs} then, {self.ours} now{remark}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        kinds = ("changed", "added", "removed")
        members = {kind: list(getattr(self.members, kind)) for kind in kinds}
        return {
            "part": self.name,
            "first": self.theirs,
            "other": self.ours,
            "same": self.same,
            "decides": self.decides,
            "remark": self.remark,
            **({"members": members} if any(members.values()) else {}),
        }


def compared(one: Record, other: Record) -> tuple[Part, ...]:
    """Compares what both records hold: rules, data, files, options, numbers, notes, versions."""
    odd = (
        Part(f"{ITSELF}{name}", said, follows, f"both are said by {record.name}")
        for record in (one, other)
        for name, said, follows in record.contradictions
    )
    return (
        *_rule_changes(one, other),
        *_data_changes(one, other),
        *_number_changes(one, other),
        *odd,
    )


def _rule_changes(one: Record, other: Record) -> Iterator[Part]:
    a, b = one.content, other.content
    unknown = "this version does not ship these rules, or has changed them"
    yield Part("protocol", a["named"], b["named"])
    yield Part("changes", a["state"], b["state"])
    differ = a["proto"] != b["proto"]
    lost = differ and (one.rules is None or other.rules is None)
    yield Part("proto", a["proto"], b["proto"], unknown if lost else "")
    if one.rules is not None and other.rules is not None:
        for each in changed(one.rules, other.rules):
            for key, x, y in each.keys:
                yield Part(key, x, y, each.switch.title)


def _data_changes(one: Record, other: Record) -> Iterator[Part]:
    a, b = one.content, other.content
    contents = [each.get("contents", {}) for each in (a, b)]
    told = [role for role in ("truth", "detections") if all(role in each for each in contents)]
    for role in told:
        yield Part(role, contents[0][role], contents[1][role], f"content of the {role}")
    remark = "" if told or a["data"] == b["data"] else "different ground truth, detections or order"
    if a["data"] != b["data"] and told and contents[0] == contents[1]:
        odd = any(name == "data" for each in (one, other) for name, *_ in each.contradictions)
        otherwise = "different order, or dropped detections"
        remark = f"the same rows; {'a digest was changed' if odd else otherwise}"
    yield Part("data", a["data"], b["data"], remark)
    if "inputs" in a and "inputs" in b:
        for role in sorted({*a["inputs"], *b["inputs"]}):
            yield _file_changes(role, a["inputs"].get(role), b["inputs"].get(role))
    if "options" in a and "options" in b:
        for name in sorted({*a["options"], *b["options"]}):
            x, y = (option_text(each["options"].get(name)) for each in (a, b))
            if x != y:
                yield Part(f"--{name.replace('_', '-')}", x, y, "how the inputs are read")


def option_text(value: Any) -> str:
    """Returns the value of an option for messages."""
    if value is None or value == []:
        return "none"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _file_changes(role: str, one: Any, other: Any) -> Part:
    """Compares a file or folder by its digest."""
    option = role not in ("truth", "detections")
    name = f"--{role.replace('_', '-')} file" if option else f"{role} file"
    digests = _abbreviated(*(each["sha256"] if each else "" for each in (one, other)))
    x, y = (f"sha256 {digest}" if digest else "none" for digest in digests)
    remark, members = "", Members()
    if one and other and x != y:
        remark = f"{one['name']} and {other['name']}"
        lists = [each.get("members") for each in (one, other)]
        if lists[0] is not None and lists[1] is not None:
            members = _members(lists[0], lists[1])
            remark = str(members) or EDITED_LIST
        elif any(each.get("files", 1) != 1 for each in (one, other)):
            counts = [f"{each.get('files', 1)} files" for each in (one, other)]
            remark = f"{' and '.join(counts)}, and one of the lists is missing"
    elif one and other:
        told = [(one[key], other[key]) for key in one.keys() & other.keys() - {"name"}]
        if any(a != b for a, b in told):
            x, y = (f"{x} as {_whole(each)}" for each in (one, other))
            return Part(name, x, y, EDITED_FILE)
    return Part(name, x, y, remark, decides=remark == EDITED_LIST, members=members)


def _abbreviated(one: str, other: str) -> tuple[str, str]:
    """The first digits of two digests; all digits if the first ones are equal."""
    return (one[:12], other[:12]) if one[:12] != other[:12] else (one, other)


def _whole(digest: Any) -> str:
    """A short digest of all values about a file."""
    text = json.dumps({**digest, "name": ""}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _members(one: Mapping[str, str], other: Mapping[str, str]) -> Members:
    return Members(
        tuple(sorted(name for name in one.keys() & other.keys() if one[name] != other[name])),
        tuple(sorted(other.keys() - one.keys())),
        tuple(sorted(one.keys() - other.keys())),
    )


def _number_changes(one: Record, other: Record) -> Iterator[Part]:
    a, b = one.content, other.content
    for kind in ("metrics", "counts"):
        if kind in a and kind in b:
            for name in {**a[kind], **b[kind]}:
                x, y = (_shown(each[kind].get(name, "absent")) for each in (a, b))
                if x != y:  # "detections" alone is the digest of their content
                    yield Part(name if kind == "metrics" else f"number of {name}", x, y)
    if "per_class" in a and "per_class" in b and a["per_class"] != b["per_class"]:
        x, y = _abbreviated(a["per_class"], b["per_class"])
        yield Part("per class", x, y, "the class table has different numbers")
    if "short" in a and "short" in b:
        for name in ("signature", "short"):
            if _unversioned(a[name]) != _unversioned(b[name]):
                yield Part(name, a[name], b[name])
    yield from _note_changes(a, b)
    yield Part("detmap", a["detmap"], b["detmap"], decides=False)
    if "environment" in a and "environment" in b:
        for name in sorted({*a["environment"], *b["environment"]} - {"detmap"}):
            x, y = (each["environment"].get(name, "unknown") for each in (a, b))
            if x != y:
                yield Part(name, x, y, "of the environment", decides=False)


def _note_changes(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Part]:
    """Compares notes; codes, counts and the numbers in texts decide if files, rules and version are
    equal, wording does not.
    """
    if "notes" not in a or "notes" not in b:
        return
    files = [
        {role: each["sha256"] for role, each in content.get("inputs", {}).items()}
        for content in (a, b)
    ]
    same = bool(files[0]) and files[0] == files[1] and a["detmap"] == b["detmap"]
    same = same and a.get("receipt") == b.get("receipt")  # other formats come with other notes
    known = [_group_notes(each["notes"]) for each in (a, b)]
    for code in {**known[0], **known[1]}:
        x, y = (each.get(code, []) for each in known)
        if x != y:
            counts = [", ".join(count for count, _ in each) or "absent" for each in (x, y)]
            texts = ["; ".join(text for _, text in each) for each in (x, y)]
            worded = counts[0] == counts[1]
            first, other = texts if worded else counts
            edited = worded and _NUMBER.findall(texts[0]) != _NUMBER.findall(texts[1])
            remark = "different wording" if worded else texts[1] or texts[0]
            remark = "different numbers" if edited else remark
            decides = same and (edited or not worded) and code not in OF_THE_PLACE
            yield Part(f"note {code}", first, other, remark, decides)


def _group_notes(notes: Any) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for code, text, count in notes:
        found.setdefault(code, []).append((str(count), text))
    return found


def _unversioned(signature: str) -> list[str]:
    """The parts of a signature without detmap's version."""
    return [part for part in current(signature).split("|") if not part.startswith("detmap:")]


def _shown(value: Any) -> str:
    return (
        "undefined" if value is None else f"{value!r}" if isinstance(value, float) else str(value)
    )


def cause(parts: tuple[Part, ...]) -> str:
    """Why two numbers differ, in one sentence; "" if nothing that decides differs."""
    if all(part.same for part in parts if part.decides):
        return ""
    differ = {part.name: part for part in parts if not part.same}
    same = {part.name for part in parts if part.same}
    found = [
        f"{word} {role}"
        for word, role in (("another", "truth"), ("other", "detections"))
        if role in differ and f"{role} file" not in same
    ]
    if found:
        found = [" and ".join(found)]
    elif "data" in differ and not {"truth file", "detections file"} <= same:
        found.append("other data")
    if "proto" in differ:
        found.append("other rules")
    if any(
        part.decides or "data" in differ for part in differ.values() if part.name.startswith("--")
    ):
        found.append("inputs that are read otherwise")
    odd = [name.removeprefix(ITSELF) for name in differ if name.startswith(ITSELF)]
    found += [f"a receipt that contradicts itself in {few(odd)}"] if odd else []
    if found:
        return ", ".join(found)
    if "detmap" in differ:
        return "another version of detmap, on the same data by the same rules"
    if any(part.remark == "of the environment" for part in differ.values()):
        return "another environment, on the same data by the same rules"
    return "an edit: of the same data and rules, one of the two was changed after it was written"
