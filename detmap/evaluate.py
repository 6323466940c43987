"""The stages strung together: files or tables in, a Result out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from detmap.adapters import ClassNames, read_detections, read_truth, read_truth_for
from detmap.base import arguments as given
from detmap.curves import scores as curves
from detmap.errors import DataError
from detmap.matching import engine as matching
from detmap.matching.matches import Matches
from detmap.protocol import Protocol
from detmap.protocol.default_protocol import choose_protocol, prepare
from detmap.results.result import Result
from detmap.tables import Detections, Truth


def evaluate(
    truth: Truth | str | Path,
    detections: Detections | str | Path,
    protocol: Protocol | str | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    images: ArrayLike | None = None,
    classes: Sequence[str | int] | None = None,
    threads: int | None = None,
    unknown: str = "error",
    class_names: ClassNames | None = None,
) -> Result:
    """Evaluate a detector's output under a protocol.

    Parameters
    ----------
    truth : a table from `read_truth`, or the path of a file or folder that it reads
    detections : a table from `read_detections`, or the path of a file or folder that it reads
    protocol : a protocol, the name of one, or the path of a TOML file; by the kind of truth when
        left out
    settings : keys of the protocol to change, ``{"limits.max_dets": [1, 10, 300]}``
    images : ids of the images to evaluate, as if there were no others; all when left out
    classes : names or ids of the classes to evaluate, as if no others were annotated or predicted
    threads : how many to use; all processors when left out. The result does not depend on it.
    unknown, class_names : where `detections` is a path, as in `read_detections`: what becomes of
        images and classes that the truth lacks, and what class ids stand for

    Raises
    ------
    DataError : the input is not what it should be
    ProtocolError : an unknown protocol, key or value
    """
    tables = _read(truth, detections, protocol, settings, images, classes, unknown, class_names)
    matches = matching.match(*tables, threads=threads)
    how = {"unknown": unknown, "class_names": class_names}
    result = summarize(matches, threads=threads)
    return replace(result, matched=tables[:2], inputs=(truth, detections, result.protocol, how))


def match(
    truth: Truth | str | Path,
    detections: Detections | str | Path,
    protocol: Protocol | str | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    images: ArrayLike | None = None,
    classes: Sequence[str | int] | None = None,
    threads: int | None = None,
    taken: bool = False,
    unknown: str = "error",
    class_names: ClassNames | None = None,
) -> Matches:
    """Judge every detection in every subset and at every threshold of a protocol; `summarize`
    makes the result.

    Parameters
    ----------
    truth, detections, protocol, settings, images, classes, threads, unknown, class_names : as in
        `evaluate`
    taken : whether to keep who took what, `Matches.taken`

    Raises
    ------
    DataError : the input is not what it should be; an attribute or image size that the protocol
        asks for and the truth lacks; boxes so small that their overlap is 0/0
    ProtocolError : an unknown protocol, key or value
    """
    tables = _read(truth, detections, protocol, settings, images, classes, unknown, class_names)
    return matching.match(*tables, threads=threads, taken=taken)


def _read(
    truth: Truth | str | Path,
    detections: Detections | str | Path,
    protocol: Protocol | str | None,
    settings: Mapping[str, Any] | None,
    images: ArrayLike | None,
    classes: Sequence[str | int] | None,
    unknown: str,
    class_names: ClassNames | None,
) -> tuple[Truth, Detections, Protocol]:
    """What is matched: parameters as in `evaluate`."""
    if isinstance(truth, Detections) or isinstance(detections, Truth):
        raise DataError("evaluate", "truth and detections are swapped", "give the truth first")
    truth, rules = read_truth_and_protocol(truth, protocol, settings)
    if not isinstance(detections, Detections):
        detections = read_detections(detections, truth, unknown=unknown, class_names=class_names)
    elif class_names is not None or unknown != "error":
        what = "given for detections that have been read"
        raise DataError("evaluate: unknown, class_names", what, "give them to `read_detections`")
    if images is not None or classes is not None:
        from detmap.tables import selection

        truth, detections = selection.part(truth, detections, images, classes)
    return truth, detections, rules


def read_truth_and_protocol(
    truth: Truth | str | Path,
    wanted: Protocol | str | None,
    settings: Mapping[str, Any] | None = None,
    **options: Any,
) -> tuple[Truth, Protocol]:
    """The truth with what the protocol looks at, and the protocol, by the kind of truth where none
    is wanted; `options` are those of `read_truth`.
    """
    if isinstance(truth, Truth):
        return truth, choose_protocol(wanted, truth, settings)
    if wanted is not None:
        rules = prepare(wanted, settings)
        return read_truth_for(truth, rules, **options), rules
    table = read_truth(truth, **options)
    rules = choose_protocol(None, table, settings)
    if settings:  # they may look at more than the boxes
        table = read_truth_for(truth, rules, **options)
    return table, rules


def summarize(
    matches: Matches, *, weights: ArrayLike | None = None, threads: int | None = None
) -> Result:
    """The result of matches that were made, merged or loaded.

    Parameters
    ----------
    matches : of one protocol
    weights : (I,) how often each of `matches.image_ids` counts, whole numbers or not; once when
        left out
    threads : how many to use; all processors when left out
    """
    if not isinstance(matches, Matches):
        what = f"a {type(matches).__name__} where matches are needed"
        raise DataError("summarize", what, "give what `match`, `merge` or `Matches.load` returned")
    if weights is None:
        return Result(matches, curves.scores(matches, threads=threads))
    weight = given.weights("weights", weights, matches.n_images)
    return Result(matches, curves.scores(matches, weights=weight, threads=threads), weight)
