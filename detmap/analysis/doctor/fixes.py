"""Applies fixes by name. The usual reader joins the fixed rows, and notes report the fixes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.doctor import examine, fix_chain, loose_readers
from detmap.analysis.doctor.hypothesis_names import FIXES
from detmap.analysis.doctor.raw_rows import Raw, readable
from detmap.analysis.doctor.repair import Repair
from detmap.analysis.doctor.shaped_rows import shapes_of
from detmap.analysis.doctor.trial import trial_of
from detmap.analysis.doctor.wide_reading import Reading
from detmap.core.adapters.joining import join as joining
from detmap.core.adapters.joining.unknown_policy import policy
from detmap.core.base.suggestions import did_you_mean
from detmap.core.protocol import Protocol
from detmap.core.tables import FIXED, Detections, Note, Truth
from detmap.errors import DataError, few

SPOILED = 0.1  # share of boxes that a fix may leave unreadable


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
    """Detections with some repairs made, in the order of `fix_chain.ordered`.

    Parameters
    ----------
    truth : of the detections
    raw : their rows
    names : of findings; what a repair has to guess is guessed anew
    protocol : whose rules AP50 is computed by
    unknown : "error" or "drop", of what the ground truth lacks even then

    Raises
    ------
    DataError : no such repair, one that fits nothing in these rows, or rows that still name
        images that the ground truth lacks
    """
    for name in names:
        if name not in FIXES:
            raise DataError(f"--fix {name}", "no such fix", _nearest(name))
    given = raw
    try:
        trial = trial_of(truth, protocol)
        made, left = fix_chain.chain(trial, raw, names, examine.attempts)
    finally:
        examine.forget()
    if left:
        fix = f"remove --fix {left[0]}; without a finding of this name it changes nothing"
        raise DataError(f"--fix {left[0]}", f"fits nothing in {raw.source}", fix)
    raw = made.rows[-1]
    _check_boxes(given, raw, names)
    image, label = raw.places(truth)
    _check_images(given, raw, image, names, unknown)
    shapes = shapes_of(raw, truth)
    origin = joining.Origin(
        raw.source,
        lambda row: f"{raw.source}: row {row}",
        np.array(raw.image_names or raw.images, dtype=object)[raw.image],
        np.array(raw.class_names or raw.classes, dtype=object)[raw.label],
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
        Note(
            FIXED + each.name,
            f"detections were fixed: {each.sentence}",
            len(raw),
            raw.source,
            (each.guess,) if each.guess else (),
        )
        for each in made.repairs
    )
    return Repaired(replace(table, notes=(*notes, *table.notes)), list(made.repairs))


def _nearest(name: str) -> str:
    """The fix of an unknown name: the one that is meant, and where all are listed."""
    hint = did_you_mean("fix", name, FIXES) or did_you_mean("fix", f"boxes-{name}", FIXES)
    return f"{hint}`detmap doctor` names the fixes that help"


def _check_images(
    given: Raw, made: Raw, image: NDArray[np.int32], names: Sequence[str], unknown: str
) -> None:
    """Refuse images that are unknown after their names were fixed: the file's own names would
    mislead.
    """
    moved = [name for name in names if name.startswith("images-")]
    lost = np.unique(made.image[image < 0])
    if moved and len(lost) and unknown == "error":
        written = made.image_names or given.images
        what = (
            f"{(image < 0).sum():,} of {len(made):,} detections are on images that the ground "
            f"truth lacks after the fix: {few(repr(written[code]) for code in lost.tolist())}"
        )
        fix = 'add --unknown drop (in Python unknown="drop") to leave these detections out'
        raise DataError(f"--fix {moved[0]}", what, fix)


def _check_boxes(given: Raw, made: Raw, names: Sequence[str]) -> None:
    """Refuse a fix that makes boxes of a negative size of right ones."""
    moved = [name for name in names if name.startswith("boxes-")]
    bad = ~readable(made)
    if moved and len(made) and bad.mean() > SPOILED and readable(given).mean() > bad.mean():
        what = f"{bad.sum():,} of {len(made):,} boxes then have a negative width or height"
        fix = f"remove --fix {moved[0]}: these boxes do not have that mistake"
        raise DataError(f"--fix {moved[0]}", what, fix)


def fixed_given(
    detections: Any, truth: Truth, rules: Protocol, names: Sequence[str], how: Mapping[str, Any]
) -> Detections:
    """Reads the detections of a call and makes repairs; see `repaired`.

    how : options of `detmap.read_detections`
    """
    from detmap.core.adapters import options_of

    names = [name.removeprefix("--fix").strip() for name in names]
    raw = loose_readers.read(Reading(detections, {**how, **options_of(rules)}), truth)
    return repaired(truth, raw, names, rules, unknown=how["unknown"]).detections
