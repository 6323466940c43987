"""`detmap.verify`: evaluates the inputs of a receipt again and compares every part."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from detmap.core.base.suggestions import proposes_arguments
from detmap.core.protocol.metric_rows import BY_NAME
from detmap.core.results.result import Result
from detmap.errors import counted
from detmap.reproducibility import receipt_files
from detmap.reproducibility.commands import replay
from detmap.reproducibility.explaining import record_changes
from detmap.reproducibility.explaining.record_changes import Part
from detmap.reproducibility.receipt import Receipt


@dataclass(frozen=True, slots=True)
class Verification:
    """The comparison of a receipt with the result of its inputs.

    Parameters
    ----------
    result : of the inputs, evaluated again
    parts : every part of the receipt with both values
    cause : why they differ; "" if they are identical
    sentence : what was verified, or what differs
    """

    result: Result
    parts: tuple[Part, ...]
    cause: str
    sentence: str

    @property
    def identical(self) -> bool:
        """Whether the receipt's result was reproduced in every bit."""
        return not self.cause

    def __bool__(self) -> bool:
        return self.identical

    def __str__(self) -> str:
        return self.sentence


@proposes_arguments
def verify(
    receipt: str | Path,
    truth: str | Path | None = None,
    detections: str | Path | None = None,
    *,
    image_sizes: str | Path | None = None,
    class_names: str | Path | None = None,
    images: str | Path | None = None,
    threads: int | None = None,
) -> Verification:
    """Verifies a receipt of ``detmap eval --receipt``.

    >>> import detmap
    >>> detmap.verify("run.json").identical  # written by: detmap eval ... --receipt run.json
    True

    Parameters
    ----------
    receipt : its path
    truth, detections, image_sizes, class_names, images : paths of its inputs (default: the paths in
        the receipt)
    threads : number of threads

    Raises
    ------
    DataError : not a receipt, or an input that is not found or cannot be read
    """
    places = {"truth": truth, "detections": detections, "image_sizes": image_sizes}
    places |= {"class_names": class_names, "images": images}
    given = {name: None if place is None else str(place) for name, place in places.items()}
    arguments = argparse.Namespace(receipt=str(receipt), threads=threads, **given)
    return verified(receipt_files.read(str(receipt)), arguments)


def verified(known: Receipt, arguments: argparse.Namespace) -> Verification:
    """Does `verify` for a receipt that was read."""
    result, parts = replay.compared(known, arguments)
    cause = record_changes.cause(parts)
    return Verification(result, parts, cause, _sentence(known, result, cause))


def _sentence(known: Receipt, result: Result, cause: str) -> str:
    metrics = result.metrics
    name = next(iter(metrics), "")
    images = counted(int(result.counts()["images"]), "image")
    now = _shown(name, metrics[name])
    if not cause:
        return f"verified: {name} {now} on {images}, recomputed from the files, identical"
    before = known.content["metrics"].get(name)
    same = before == metrics[name]
    change = f"{name} is {now} in both" if same else f"{name} {_shown(name, before)} is now {now}"
    return f"different: {change}, on {images}: {cause}"


def _shown(name: str, value: float | None) -> str:
    """A metric in percent; a quantity as it is."""
    if value is None or value != value:
        return "undefined"
    metric = BY_NAME.get(name)
    return (
        f"{value:.4g}" if metric is not None and metric.unit != "fraction" else f"{100 * value:.2f}"
    )
