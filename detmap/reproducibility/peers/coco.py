"""Calls of the tools that read COCO files: those with pycocotools' classes, and vernier."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from .row import BOXES, KEYPOINTS, MASKS, Classes, Settings


def _evaluated(run: Any, settings: Settings | None) -> Any:
    """Runs evaluate, accumulate and, with default settings, summarize."""
    if settings is not None:
        run.params.iouThrs, run.params.recThrs = settings.iou_thrs, settings.rec_thrs
        run.params.maxDets = settings.max_dets
        run.params.areaRng = list(settings.areas.values())
        run.params.areaRngLbl = list(settings.areas)
    run.evaluate()
    run.accumulate()
    if settings is None:
        run.summarize()
    return run


def _loaded(truth: Any, found: Any) -> Any:
    """``loadRes``, which fails on empty results."""
    if not isinstance(found, str) or Path(found).stat().st_size > 2:
        return truth.loadRes(found)
    empty = type(truth)()
    of = ("images", "categories")
    empty.dataset = {**{key: truth.dataset[key] for key in of}, "annotations": []}
    empty.createIndex()
    return empty


def arrays(run: Any, n_classes: int) -> dict[str, Any]:
    """Precision and scores (T, R, K, A, M), recall (T, K, A, M)."""
    return {name: run.eval[name] for name in ("precision", "recall", "scores")}


def pycocotools_truth(path: str) -> Any:
    from pycocotools.coco import COCO

    return COCO(path)


def pycocotools_run(truth: Any, found: Any, threads: int, kind: str, settings: Any) -> Any:
    """It has one thread only."""
    from pycocotools.cocoeval import COCOeval

    return _evaluated(COCOeval(truth, _loaded(truth, found), kind), settings)


def faster_truth(path: str) -> Any:
    from faster_coco_eval import COCO

    return COCO(path)


def faster_run(truth: Any, found: Any, threads: int, kind: str, settings: Any) -> Any:
    """Evaluation and accumulation in one C++ call, its default."""
    from faster_coco_eval import COCOeval_faster

    return _evaluated(COCOeval_faster(truth, _loaded(truth, found), kind), settings)


def faster_classes(run: Any) -> Classes:
    """By category id; ids replace names, which may repeat. The last row is that of all classes."""
    for number, category in run.cocoGt.cats.items():
        category["name"] = number
    rows = run.extended_metrics["class_map"][:-1]
    names = {"AP": "map@50:95", "AP50": "map@50"}
    return {name: {row["class"]: row[key] for row in rows} for name, key in names.items()}


def hotcoco_truth(path: str) -> Any:
    from hotcoco import COCO

    return COCO(path)


def hotcoco_run(truth: Any, found: Any, threads: int, kind: str, settings: Any) -> Any:
    """The calls at the start of its documentation: load_res and the three steps."""
    from hotcoco import COCOeval

    return _evaluated(COCOeval(truth, truth.load_res(found), kind), settings)


def hotcoco_classes(run: Any) -> Classes:
    found = run.get_results(per_class=True)
    return {"AP": {key[3:]: found[key] for key in found if key.startswith("AP/")}}


def ultrafast_truth(path: str) -> Any:
    """A COCO object that keeps compact columns."""
    from ultrafast_pycocotools import COCO

    return COCO(path, verbose=False)


def ultrafast_run(truth: Any, found: Any, threads: int, kind: str, settings: Any) -> Any:
    """The calls at the start of its documentation: loadRes and the three steps."""
    from ultrafast_pycocotools import COCOeval

    return _evaluated(COCOeval(truth, truth.loadRes(found), kind), settings)


def ultrafast_classes(run: Any) -> Classes:
    """By category id."""
    found = run.per_category_stats()
    names = {"AP": "AP", "AP50": "AP_50", "AP75": "AP_75"}
    return {name: {k: row[key] for k, row in found.items()} for name, key in names.items()}


# --- vernier --------------------------------------------------------------------------------------


def vernier_truth(path: str) -> Any:
    """A dataset that keeps derived tables for further calls."""
    from vernier.instance import CocoDataset

    return CocoDataset.from_json(Path(path).read_bytes())


def vernier_run(truth: Any, found: Any, threads: int, kind: str, settings: Any) -> Any:
    """Its own evaluator in pycocotools mode; paths are read as bytes, since nothing is reused."""
    from vernier import instance

    overlap = {BOXES: "Bbox", MASKS: "Segm", KEYPOINTS: "Keypoints"}[kind]
    evaluator = instance.Evaluator(iou=getattr(instance, overlap)(), parity_mode="strict")
    truth = Path(truth).read_bytes() if isinstance(truth, str) else truth
    found = Path(found).read_bytes() if isinstance(found, str) else found
    summary = evaluator.evaluate(truth, found, num_threads=threads)
    return Summary(
        summary.stats, lambda: evaluator.evaluate(truth, found, tables=("per_class",)).per_class
    )


class Summary(NamedTuple):
    """The stats of vernier, and a function that computes its table of classes."""

    stats: Any
    per_class: Callable[[], Any]


def vernier_classes(run: Any) -> Classes:
    """By category id; none without polars, which its tables need."""
    try:
        rows = [next(iter(row.values())) for row in run.per_class().to_dicts()]
    except ImportError:
        return {}
    names = {"AP": "ap", "AP50": "ap50", "AP75": "ap75"}
    return {name: {row["category_id"]: row[key] for row in rows} for name, key in names.items()}
