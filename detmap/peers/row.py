"""What a row of the table of peers says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

BOXES, MASKS, KEYPOINTS = "bbox", "segm", "keypoints"
COCO = {BOXES: "coco-bbox", MASKS: "coco-segm", KEYPOINTS: "coco-keypoints"}

Classes = dict[str, dict[Any, float]]


class Settings(NamedTuple):
    """What tools with the parameters of pycocotools can be told, in their words."""

    iou_thrs: Any
    rec_thrs: Any
    max_dets: list[int]
    areas: dict[str, list[float]]


def _stats(run: Any) -> Iterable[float]:
    return run.stats  # type: ignore[no-any-return]


def _no_arrays(run: Any, n_classes: int) -> dict[str, Any]:
    return {}


def _no_classes(run: Any) -> Classes:
    return {}


class Peer(NamedTuple):
    """One evaluator.

    Parameters
    ----------
    name : of its distribution, or of detmap's drop-in
    version : that was compared
    call : how it is called and how its threads are set, for the reader of the table
    module : what is imported
    truth : path of a COCO file -> what `run` wants as truth; not timed when arrays are measured
    run : (truth, path or detections, threads, kind, settings or None) -> the tool's own result
    stats : own result -> its numbers, in the order of the metrics of its protocol
    arrays : (own result, number of classes) -> ``precision``, ``recall``, ``scores`` as
        pycocotools has them, those that it gives
    classes : own result -> column of detmap's table of classes -> class id or name -> value
    detections : (D, 7) float64 ``image_id, x, y, w, h, score, category_id`` -> what `run` wants
        for boxes in memory; not timed
    protocols : the overlaps that it evaluates, each with the protocol that restates it
    paths : faster where it gets both paths at once
    takes_files : COCO files as they are; else what detmap has read of them, as COCO files
    settable : whether it has the parameters of pycocotools
    streams : whether it takes batches as they come
    slow : leave it out of the large workloads unless asked
    tolerance : within which its numbers are those of its protocol
    why : what makes a difference within the tolerance
    deviations : known ones on data that are legal, each by a key of `tests/parity/test_peers.py`
    distribution : that holds it, where its name is another
    """

    name: str
    version: str
    call: str
    module: str
    truth: Callable[[str], Any]
    run: Callable[[Any, Any, int, str, Settings | None], Any]
    stats: Callable[[Any], Iterable[float]] = _stats
    arrays: Callable[[Any, int], dict[str, Any]] = _no_arrays
    classes: Callable[[Any], Classes] = _no_classes
    detections: Callable[[Any], Any] = lambda table: table
    protocols: Mapping[str, str] = COCO
    takes_files: bool = True
    paths: bool = False
    settable: bool = False
    streams: bool = False
    slow: bool = False
    tolerance: float = 0.0
    why: str = ""
    deviations: Mapping[str, str] = {}
    distribution: str = ""

    @property
    def is_own(self) -> bool:
        """Part of detmap."""
        return self.name.split(".")[0] == "detmap"

    @property
    def kinds(self) -> tuple[str, ...]:
        """What overlaps that it evaluates."""
        return tuple(self.protocols)

    @property
    def is_coco(self) -> bool:
        """Gives the numbers of pycocotools."""
        return self.protocols[BOXES] == COCO[BOXES]

    def results(self, truth: Any, found: Any, threads: int, kind: str = BOXES) -> list[float]:
        """Its numbers, -1 where nothing is defined."""
        return numbers(self.stats(self.run(truth, found, threads, kind, None)))

    def files(self, truth: str, detections: str, threads: int, kind: str = BOXES) -> list[float]:
        """The numbers of two COCO files, -1 where nothing is defined."""
        given = truth if self.paths else self.truth(truth)
        return self.results(given, detections, threads, kind)

    def installed(self) -> str | None:
        """The version that is here; None where there is none."""
        import importlib.metadata  # takes longer to import than some tools

        try:
            return importlib.metadata.version(self.distribution or self.name)
        except importlib.metadata.PackageNotFoundError:
            return None


def numbers(values: Iterable[float]) -> list[float]:
    """As pycocotools has them: -1 for NaN."""
    return [-1.0 if value != value else float(value) for value in values]


def same(path: str) -> str:
    """The path is what the tool wants."""
    return path
