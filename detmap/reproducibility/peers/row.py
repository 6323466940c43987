"""The columns of the table of peers."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

BOXES, MASKS, KEYPOINTS = "bbox", "segm", "keypoints"
COCO = {BOXES: "coco-bbox", MASKS: "coco-segm", KEYPOINTS: "coco-keypoints"}

Classes = dict[str, dict[Any, float]]


class Settings(NamedTuple):
    """Settings of tools with pycocotools' parameters."""

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
    version : the tested one
    call : how it is called and how its threads are set, for readers of the table
    module : to import
    truth : path of a COCO file -> the ground truth for `run`; not timed with arrays
    run : (truth, path or detections, threads, kind, settings or None) -> the tool's own result
    stats : own result -> its numbers, in the order of the metrics of its protocol
    arrays : (own result, number of classes) -> its ``precision``, ``recall``, ``scores``, as in
        pycocotools
    classes : own result -> column of detmap's table of classes -> class id or name -> value
    detections : (D, 7) float64 ``image_id, x, y, w, h, score, category_id`` -> detections for
        `run`;
        not timed
    protocols : supported IoU types, each with the protocol that restates it
    paths : faster with both paths at once
    takes_files : reads COCO files; others get files that detmap writes
    settable : whether it has the parameters of pycocotools
    streams : whether it takes batches
    slow : excluded from the large workloads by default
    tolerance : allowed difference from its protocol
    why : the reason for the tolerance
    deviations : known differences on valid data, by keys of `tests/reproducibility/test_peers.py`
    distribution : its name, if it differs
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
        """Whether it is part of detmap."""
        return self.name.split(".")[0] == "detmap"

    @property
    def kinds(self) -> tuple[str, ...]:
        """The supported IoU types."""
        return tuple(self.protocols)

    @property
    def is_coco(self) -> bool:
        """Whether it gives the numbers of pycocotools."""
        return self.protocols[BOXES] == COCO[BOXES]

    def results(self, truth: Any, found: Any, threads: int, kind: str = BOXES) -> list[float]:
        """Its numbers, -1 where undefined."""
        return numbers(self.stats(self.run(truth, found, threads, kind, None)))

    def files(self, truth: str, detections: str, threads: int, kind: str = BOXES) -> list[float]:
        """The numbers of two COCO files, -1 where undefined."""
        given = truth if self.paths else self.truth(truth)
        return self.results(given, detections, threads, kind)

    def installed(self) -> str | None:
        """The installed version, or None."""
        import importlib.metadata  # takes longer to import than some tools

        try:
            return importlib.metadata.version(self.distribution or self.name)
        except importlib.metadata.PackageNotFoundError:
            return None


def numbers(values: Iterable[float]) -> list[float]:
    """Replaces NaN by -1, as in pycocotools."""
    return [-1.0 if value != value else float(value) for value in values]


def same(path: str) -> str:
    """Returns the path, for tools that read files themselves."""
    return path
