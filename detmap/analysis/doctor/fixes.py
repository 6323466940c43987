"""Applies a fix by its name. The usual reader joins the fixed rows, and a note reports the fix."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from detmap.analysis.doctor import examine, loose_readers
from detmap.analysis.doctor.hypothesis_names import FIXES
from detmap.analysis.doctor.raw_rows import Raw
from detmap.analysis.doctor.repair import Repair
from detmap.analysis.doctor.shaped_rows import shapes_of
from detmap.analysis.doctor.trial import sample, trial_of
from detmap.analysis.doctor.wide_reading import widely_with
from detmap.core.adapters.joining import join as joining
from detmap.core.adapters.joining.unknown_policy import policy
from detmap.core.protocol import Protocol
from detmap.core.tables import FIXED, Detections, Note, Truth
from detmap.errors import DataError


class Repaired(NamedTuple):
    """Detections after repairs, and these."""

    detections: Detections
    repairs: list[Repair]


def repaired(
    truth: Truth,
    raw: Raw,
    names: Sequence[str],
    protocol: Protocol | str | None = None,
    *,
    unknown: str = "error",
) -> Repaired:
    """Detections with some repairs made, in this order.

    Parameters
    ----------
    truth : of the detections
    raw : their rows
    names : of findings; what a repair has to guess is guessed anew
    protocol : whose rules AP50 is computed by
    unknown : "error" or "drop", of what the ground truth lacks even then

    Raises
    ------
    DataError : no such repair, one that makes no sense of these rows, or rows that still name
        images that the ground truth lacks
    """
    rules, made = trial_of(truth, protocol), []
    for name in names:
        if name not in FIXES:
            raise DataError(
                f"--fix {name}", "no such repair", f"the repairs are {', '.join(FIXES)}"
            )
        part = sample(rules, raw)
        attempts = examine.attempts(rules, part, [examine.group_of(name)])
        tried = [each for each in attempts if each.repair.name == name]
        if not tried:
            fix = "run `detmap doctor` on these files"
            raise DataError(f"--fix {name}", f"makes no sense of {raw.source}", fix)
        best = max(tried, key=lambda each: (each.outcome.ap50, -each.repair.weight))
        raw = best.repair.apply(raw, truth)
        made.append(best.repair)
    image, label = raw.places(truth)
    shapes = shapes_of(raw, truth)
    origin = joining.Origin(
        raw.source,
        lambda row: f"{raw.source}: row {row}",
        np.array(raw.images, dtype=object)[raw.image],
        np.array(raw.classes, dtype=object)[raw.label],
    )
    table = joining.joined(
        truth,
        image,
        label,
        np.ascontiguousarray(raw.boxes),
        np.ascontiguousarray(raw.score),
        box_format=raw.box_format,
        origin=origin,
        policy=policy(unknown),
        shapes=shapes,
    )
    notes = tuple(
        Note(FIXED + each.name, f"detections were fixed: {each.sentence}", len(raw), raw.source)
        for each in made
    )
    return Repaired(replace(table, notes=(*notes, *table.notes)), made)


def fixed_given(
    detections: Any, truth: Truth, rules: Protocol, names: Sequence[str], how: Mapping[str, Any]
) -> Detections:
    """Reads the detections of a call and makes repairs; see `repaired`.

    how : options of `detmap.read_detections`
    """
    from detmap.core.adapters import options_of, read_detections

    names = [name.removeprefix("--fix").strip() for name in names]

    options = {**how, **options_of(rules)}

    def strictly() -> Detections:
        return read_detections(detections, truth, **options)

    widely = widely_with(detections, options)
    raw = loose_readers.read(detections, truth, strictly, widely, how["class_names"])
    return repaired(truth, raw, names, rules, unknown=how["unknown"]).detections
