"""Compares detmap with a tool on the same files: all common numbers, and the time.

The tools are the rows of `detmap.reproducibility.peers`; each is compared with the protocol that
restates it.
"""

import math
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from detmap.core import protocol as protocols
from detmap.core.adapters import ClassNames, options_of, read_detections, read_truth_for
from detmap.core.base import open_files
from detmap.core.curves.scores import coco_arrays
from detmap.core.protocol import Protocol
from detmap.core.protocol.default_protocol import prepare
from detmap.core.protocol.protocol_digest import protocol_digest
from detmap.core.results.result import Result
from detmap.core.tables import Categories, Detections, Truth
from detmap.errors import DataError, DetmapError, ProtocolError, few
from detmap.evaluate import evaluate
from detmap.reproducibility.parity.restated_tools import limit_crowds
from detmap.reproducibility.parity.run_tool import Found, StoppedError, coco_files, imported, run
from detmap.reproducibility.parity.tool_comparison import Array, Number, Parity, tables
from detmap.reproducibility.peers import BOXES, BY_NAME, KEYPOINTS, MASKS, Peer, Settings

__all__ = ["Array", "Number", "Parity", "beside", "compare", "find", "rules_of", "tables"]

SETTABLE = ("iou.thresholds", "ap.grid", "limits.max_dets", "subsets")
KINDS = {"boxes": BOXES, "masks": MASKS, "keypoints": KEYPOINTS}
"""By what overlaps: the word that tools have for it."""

Files = tuple[str, str]


def compare(
    truth_path: str | Path,
    detections_path: str | Path,
    *,
    tool: str = "pycocotools",
    protocol: Protocol | str | None = None,
    split: str | None = None,
    settings: Mapping[str, Any] | None = None,
    unknown: str = "error",
    class_names: ClassNames | None = None,
) -> Parity:
    """Runs detmap and a tool on the same files and compares their numbers.

    A tool that reads COCO files gets the files unchanged. If it cannot read them, or for another
    format, it gets the same boxes as COCO files with ids from 1, as do tools that take boxes. If
    annotation ids make a tool wrong, a second run with ids from 1 shows that nothing else differs.
    Masks and keypoints have no second run.

    Parameters
    ----------
    truth_path, detections_path, split, unknown, class_names : as in `read_truth` and
        `read_detections`
    tool : a name of `detmap.reproducibility.peers`
    protocol : one that restates the tool; by default the one for boxes
    settings : changed keys, for tools with pycocotools' parameters

    Raises
    ------
    DetmapError : bad input, an unsupported setting, or a tool that is missing or fails
    """
    peer = find(tool)
    rules = rules_of(peer, protocol, settings)

    begin = time.perf_counter()
    truth = read_truth_for(truth_path, rules, split=split)
    how = options_of(rules) | {"unknown": unknown, "class_names": class_names}
    detections = read_detections(detections_path, truth, **how)
    seconds = time.perf_counter() - begin
    given = None if class_names is not None else (str(truth_path), str(detections_path))
    return beside(peer, rules, truth, detections, given, seconds)


def find(name: str) -> Peer:
    """The row of a tool.

    Raises
    ------
    ProtocolError : an unknown tool
    """
    if name not in BY_NAME:
        what = f"detmap does not know how to run {name!r}"
        raise ProtocolError("--with", what, f"it runs {', '.join(BY_NAME)}")
    return BY_NAME[name]


def rules_of(
    peer: Peer, wanted: Protocol | str | None, settings: Mapping[str, Any] | None = None
) -> Protocol:
    """The protocol that a tool is compared with, with `settings` applied.

    Raises
    ------
    ProtocolError : the tool has other rules or lacks the setting
    """
    rules = prepare(peer.protocols[BOXES] if wanted is None else wanted, settings)
    kind = KINDS.get(rules.iou.of, "")
    restating = protocols.load(peer.protocols.get(kind, peer.protocols[BOXES]))
    for key, value in rules.changes:
        restating = restating.override({key: value})
    if protocol_digest(replace(restating, name=rules.name)) != protocol_digest(rules):
        names = ", ".join(peer.protocols.values())
        what = f"{peer.name} has other rules"
        raise ProtocolError(f"protocol {rules.name}", what, f"compare under {names}")
    if not rules.changes:
        return rules
    settable = SETTABLE if peer.settable else ()
    attributes = {r.attribute for subset in rules.subsets for r in subset.ranges}
    if settable and (
        attributes != {"area"} or any(len(subset.ranges) != 1 for subset in rules.subsets)
    ):
        what = f"{peer.name} knows ranges of area only"
        raise ProtocolError("settings: subsets", what, "give each subset one area")
    for key, value in rules.changes:
        if not settable or not key.startswith(settable):
            what = f"{peer.name} has no setting for {value}"
            it_has = ", ".join(settable) or "none that detmap tells it"
            raise ProtocolError(f"settings: {key}", what, f"it has {it_has}")
    return rules


def beside(
    peer: Peer,
    rules: Protocol,
    truth: Truth,
    detections: Detections,
    given: Files | None = None,
    reading: float = 0.0,
) -> Parity:
    """Compares a tool with its protocol.

    Parameters
    ----------
    peer, rules : from `find` and `rules_of`
    truth, detections : the tables
    given : their files, for tools that read COCO files; None if read options apply
    reading : seconds of reading

    Raises
    ------
    DetmapError : as `compare`
    """
    version = imported(peer)
    limit_crowds("parity", truth, detections)
    begin = time.perf_counter()
    result = evaluate(truth, detections, rules)
    values = list(result.metrics.values())
    seconds = reading + time.perf_counter() - begin
    if not peer.takes_files or truth.family != "coco" or given is None or not _numbered(given[1]):
        given = None
    remarks: list[str] = []
    theirs = None
    if given is not None:
        try:
            theirs = _run(peer, given, truth, rules)
        except StoppedError as stop:
            what = f"{peer.name} cannot read these files ({stop})"
            if truth.shapes is not None:
                raise DataError(truth.source, what, "write them as COCO does") from None
            remarks.append(
                f"{what}; it was given the same boxes with iscrowd and area filled in and numbers "
                "for ids"
            )
    as_given = theirs is not None
    if theirs is None:
        theirs = _run_written(peer, truth, detections, rules)
    ids = truth.categories.ids.tolist() if as_given else None
    known = _compared(peer, version, result, values, theirs, ids)
    several = _several(theirs, truth.categories)
    if several:
        what = f"several classes have the name {few(several)}"
        remarks.append(f"{what}: what {peer.name} gives by name is not compared for them")
    odd_ids = [note for note in truth.notes if note.code in ("id-zero", "id-twice")]
    if not known.equal and as_given and odd_ids:
        remarks += [str(note) for note in odd_ids]
        if truth.shapes is None:
            again = _run_written(peer, truth, detections, rules)
            renumbered = _compared(peer, version, result, values, again, None)
            bits = "the same bits as detmap" if renumbered.identical else "detmap's numbers"
            remarks.append(
                f"explained: with annotation ids counted from 1 {peer.name} gives "
                f"{bits if renumbered.equal else 'still other numbers'}"
            )
    elif not known.equal and peer.deviations:
        remarks.append(f"{peer.name} is known to differ on {'; '.join(peer.deviations.values())}")
    if not known.equal and version != peer.version:
        remarks.append(f"detmap's row of {peer.name} was checked with {peer.version}")
    return replace(known, seconds=(seconds, theirs.seconds), remarks=remarks)


def _numbered(detections: str) -> bool:
    """Whether classes and images are numbers in a file of detections, as in COCO."""
    if not Path(detections).is_file():
        return False
    names = re.search(rb'"(category|image)_id"\s*:\s*"', open_files.read_bytes(detections))
    return names is None


def _run(peer: Peer, files: Files, truth: Truth, rules: Protocol) -> Found:
    return run(peer, files, KINDS[rules.iou.of], len(truth.categories), _settings(rules))


def _run_written(peer: Peer, truth: Truth, detections: Detections, rules: Protocol) -> Found:
    """Runs a tool on files that detmap writes."""
    with coco_files(truth, detections) as files:
        try:
            return _run(peer, files, truth, rules)
        except StoppedError as stop:
            what = f"stops on these files ({stop})"
            fix = f"detmap's number is that of `detmap eval -p {rules.name}`"
            raise DataError(peer.name, what, fix) from None


def _settings(rules: Protocol) -> Settings | None:
    if not rules.changes:
        return None
    return Settings(
        rules.thresholds(),
        rules.ap.grid.values(),
        list(rules.max_dets()),
        {s.name: [s.ranges[0].low, s.ranges[0].high] for s in rules.subsets},
    )


def _compared(
    peer: Peer,
    version: str,
    result: Result,
    values: list[float],
    theirs: Found,
    ids: list[int] | None,
) -> Parity:
    """Compares number by number; `ids` of the classes, if the tool did not get them from 1."""
    found = []
    if theirs.stats:
        if len(theirs.stats) != len(values):
            what = f"gives {len(theirs.stats)} numbers where {len(values)} are known"
            raise DetmapError(peer.name, what, f"detmap knows {peer.name} {peer.version}")
        pairs = zip(result.metrics, values, theirs.stats, strict=True)
        found = [Number(name, ours, _nan(value)) for name, ours, value in pairs]
    found += _class_numbers(result, theirs, ids)
    arrays = []
    if theirs.arrays:
        ours = coco_arrays(result.matches)
        arrays = [_array(name, ours[name], each) for name, each in theirs.arrays.items()]
    protocol = result.matches.protocol.name
    return Parity(peer, version, protocol, tuple(found), tuple(arrays), (0.0, theirs.seconds))


def _nan(value: float | None) -> float:
    return math.nan if value is None or value == -1 else float(value)


def _class_numbers(result: Result, theirs: Found, ids: list[int] | None) -> list[Number]:
    if not theirs.classes:
        return []
    rows, classes = result.per_class, result.verdicts.categories
    return [
        Number(name, rows[k][name], _nan(value), classes.names[k])
        for name, column in theirs.classes.items()
        for key, value in column.items()
        if (k := _place(key, classes, ids)) is not None
    ]


def _place(key: str | int, classes: Categories, ids: list[int] | None) -> int | None:
    """The position of a tool's class; None if unknown or if several classes share the name."""
    known: Any = classes.names if isinstance(key, str) else ids
    if known is None:
        return int(key) - 1
    return known.index(key) if known.count(key) == 1 else None


def _several(theirs: Found, classes: Categories) -> list[str]:
    """Names that a tool uses for several classes."""
    said = {key for column in theirs.classes.values() for key in column if isinstance(key, str)}
    return sorted(name for name in said if classes.names.count(name) > 1)


def _array(name: str, ours: Any, theirs: Any) -> Array:
    theirs = np.asarray(theirs, dtype=float)
    if ours.shape != theirs.shape:
        return Array(f"{name} {ours.shape} / {theirs.shape}", ours.size, ours.size, math.inf)
    apart = np.abs(ours - theirs)
    return Array(name, ours.size, int((ours != theirs).sum()), float(apart.max(initial=0.0)))
