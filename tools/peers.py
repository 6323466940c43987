"""The evaluators that detmap is held against, one row each: what they can do, how they are called,
and where their numbers differ from pycocotools'.

`bench.py` measures them and `tests/test_peers.py` runs them on drawn data: to add a peer, add a
row. A row calls its tool in the way that is fastest for it and still gives pycocotools' numbers.
This file imports nothing that a tool might not need: what a process measures includes its
imports.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

BOXES, MASKS, KEYPOINTS = "bbox", "segm", "keypoints"
ZERO_UNION = "boxes whose union rounds to zero: no overlap here, an infinite one in pycocotools"


class Peer(NamedTuple):
    """One evaluator.

    Parameters
    ----------
    name : of its distribution, or of detmap's drop-in
    version : that was compared
    call : how it is called and how its threads are set, for the reader of the table
    truth : truth path -> what `results` wants as truth; not timed when arrays are measured
    results : (truth, path or detections, threads, kind) -> the numbers that COCO prints
    detections : (D, 7) float64 ``image_id, x, y, w, h, score, category_id`` -> what `results`
        wants for boxes in memory; not timed
    kinds : of overlaps that it evaluates
    streams : whether it takes batches as they come
    slow : leave it out of the large workloads unless asked
    tolerance : within which its numbers are pycocotools'
    deviations : known ones on data that are legal, each by a key of `tests/test_peers.py`
    distribution : that holds it, where its name is another
    """

    name: str
    version: str
    call: str
    truth: Callable[[str], Any]
    results: Callable[[Any, Any, int, str], Iterable[float]]
    detections: Callable[[Any], Any] = lambda table: table
    kinds: tuple[str, ...] = (BOXES, MASKS, KEYPOINTS)
    streams: bool = False
    slow: bool = False
    tolerance: float = 0.0
    deviations: dict[str, str] = {}
    distribution: str = ""

    @property
    def is_own(self) -> bool:
        """Part of detmap."""
        return self.name.split(".")[0] == "detmap"

    def files(self, truth: str, detections: str, threads: int, kind: str = BOXES) -> list[float]:
        """The numbers of two COCO files, -1 where nothing is defined."""
        return numbers(self.results(self.truth(truth), detections, threads, kind))

    def installed(self) -> str | None:
        """The version that is here; None where there is none."""
        try:
            return importlib.metadata.version(self.distribution or self.name)
        except importlib.metadata.PackageNotFoundError:
            return None


def numbers(values: Iterable[float]) -> list[float]:
    """As pycocotools has them: -1 for NaN."""
    return [-1.0 if value != value else float(value) for value in values]


# --- detmap ---------------------------------------------------------------------------------------


def detmap_results(truth: Any, found: Any, threads: int, kind: str) -> Iterable[float]:
    """Two paths, or a table and columns, into `evaluate`."""
    import detmap

    if isinstance(found, tuple):
        found = detmap.detections_from_arrays(truth, *found)
    elif isinstance(found, str):  # the peers leave out what the truth does not list
        shapes = {"bbox": "boxes", "segm": "masks"}.get(kind, kind)
        truth = detmap.read_truth(truth, shapes=shapes)
        found = detmap.read_detections(found, truth, unknown="drop")
    return detmap.evaluate(truth, found, f"coco-{kind}", threads=threads).metrics.values()


def detmap_columns(table: Any) -> Any:
    """Image ids, category ids, boxes, scores, each contiguous."""
    import numpy as np

    ids = table[:, [0, 6]].astype(np.int64).T.copy()
    return ids[0], ids[1], table[:, 1:5].copy(), table[:, 5].copy()


def detmap_table(path: str) -> Any:
    """A truth table."""
    import detmap

    return detmap.read_truth(path)


# --- tools with the classes of pycocotools --------------------------------------------------------


def three_calls(truth: Any, found: Any, kind: str, evaluation: Any) -> Iterable[float]:
    """Results into a COCOeval; evaluate, accumulate, summarize."""
    run = evaluation(truth, truth.loadRes(found), kind)
    run.evaluate()
    run.accumulate()
    run.summarize()
    return run.stats


def pycocotools_truth(path: str) -> Any:
    from pycocotools.coco import COCO

    return COCO(path)


def pycocotools_results(truth: Any, found: Any, threads: int, kind: str) -> Iterable[float]:
    """One thread: it has no other."""
    from pycocotools.cocoeval import COCOeval

    return three_calls(truth, found, kind, COCOeval)


def compat_truth(path: str) -> Any:
    from detmap.compat import COCO

    return COCO(path)


def compat_results(truth: Any, found: Any, threads: int, kind: str) -> Iterable[float]:
    """The threads are those that the process is bound to."""
    from detmap.compat import COCOeval

    return three_calls(truth, found, kind, COCOeval)


def faster_truth(path: str) -> Any:
    from faster_coco_eval import COCO

    return COCO(path)


def faster_results(truth: Any, found: Any, threads: int, kind: str) -> Iterable[float]:
    """Evaluation and accumulation in one C++ call, which is its default."""
    from faster_coco_eval import COCOeval_faster

    return three_calls(truth, found, kind, COCOeval_faster)


def hotcoco_truth(path: str) -> Any:
    from hotcoco import COCO

    return COCO(path)


def hotcoco_results(truth: Any, found: Any, threads: int, kind: str) -> Iterable[float]:
    """As its documentation begins: load_res and run."""
    from hotcoco import COCOeval

    run = COCOeval(truth, truth.load_res(found), kind)
    run.run()
    return run.stats


def ultrafast_truth(path: str) -> Any:
    """A COCO object that keeps compact columns."""
    from ultrafast_pycocotools import COCO

    return COCO(path, verbose=False)


def ultrafast_results(truth: Any, found: Any, threads: int, kind: str) -> Iterable[float]:
    """As its documentation begins: loadRes and run."""
    from ultrafast_pycocotools import COCOeval

    run = COCOeval(truth, truth.loadRes(found), kind)
    run.run()
    return run.stats


# --- vernier --------------------------------------------------------------------------------------


def vernier_truth(path: str) -> Any:
    """A handle, whose derived tables are kept from one call to the next."""
    from vernier.instance import CocoDataset

    return CocoDataset.from_json(Path(path).read_bytes())


def vernier_results(truth: Any, found: Any, threads: int, kind: str) -> Iterable[float]:
    """The evaluator of its own API, in the mode that promises pycocotools' numbers; of two paths,
    the bytes of both files, as nothing is kept for a second evaluation.
    """
    from vernier import instance

    overlap = {BOXES: "Bbox", MASKS: "Segm", KEYPOINTS: "Keypoints"}[kind]
    evaluator = instance.Evaluator(iou=getattr(instance, overlap)(), parity_mode="strict")
    truth = Path(truth).read_bytes() if isinstance(truth, str) else truth
    found = Path(found).read_bytes() if isinstance(found, str) else found
    return evaluator.evaluate(truth, found, num_threads=threads).stats


def same(path: str) -> str:
    """The path is what the tool wants."""
    return path


class OfPaths(Peer):
    """A tool that is fastest when it gets both paths at once."""

    __slots__ = ()

    def files(self, truth: str, detections: str, threads: int, kind: str = BOXES) -> list[float]:
        """The numbers of two COCO files."""
        return numbers(self.results(truth, detections, threads, kind))


PEERS = (
    OfPaths(
        "detmap",
        "0.1.0",
        "evaluate(path, path, threads=N); detections_from_arrays + evaluate",
        detmap_table,
        detmap_results,
        detmap_columns,
        streams=True,
    ),
    Peer(
        "detmap.compat",
        "0.1.0",
        "the drop-in: COCO(path), loadRes(path or (D, 7) array), COCOeval and its three calls",
        compat_truth,
        compat_results,
        distribution="detmap",
    ),
    Peer(
        "ultrafast-pycocotools",
        "0.1.14",
        "COCO(path), loadRes(path or (D, 7) array), COCOeval.run(); RAYON_NUM_THREADS=N",
        ultrafast_truth,
        ultrafast_results,
    ),
    Peer(
        "hotcoco",
        "1.3.0",
        "COCO(path), load_res(path or (D, 7) array), COCOeval.run(); RAYON_NUM_THREADS=N",
        hotcoco_truth,
        hotcoco_results,
        streams=True,
        deviations={"zero union": ZERO_UNION},
    ),
    OfPaths(
        "vernier",
        "0.5.4",
        "Evaluator(Bbox(), parity_mode='strict').evaluate(bytes or CocoDataset, bytes or (D, 7)"
        " array, num_threads=N)",
        vernier_truth,
        vernier_results,
        kinds=(BOXES,),  # of masks and keypoints it wants boxes too, which change areas
        streams=True,
        deviations={"zero union": ZERO_UNION},
    ),
    Peer(
        "faster-coco-eval",
        "1.8.0",
        "COCO(path), loadRes(path or (D, 7) array), COCOeval_faster; bound to N processors",
        faster_truth,
        faster_results,
        slow=True,
        tolerance=1e-12,
        deviations={"no spacing": "precision without np.spacing(1): a perfect first hit is 1.0"},
    ),
    Peer(
        "pycocotools",
        "2.0.11",
        "COCO(path), loadRes(path or (D, 7) array), COCOeval; one thread",
        pycocotools_truth,
        pycocotools_results,
        slow=True,
    ),
)
BY_NAME = {peer.name: peer for peer in PEERS}
