"""How known evaluation code calls pycocotools, written anew: every number that it reads is the same
with the patch applied before it is imported, and after it has loaded its truth.

A client is a generator: what it imports, defines and loads; a yield; its evaluation, whose outcome
it yields.
"""

import contextlib
import copy
import io
import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pycocotools import coco, cocoeval

from detmap.compat import patch_pycocotools
from tests.compat.both import OFFICIAL, run, same
from tests.compat.test_cocoeval import masks_and_keypoints
from tests.reference import official
from tests.support.drawing import draw_coco

pytestmark = [
    pytest.mark.filterwarnings("ignore::detmap.compat.PycocotoolsQuirk"),
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
]
Client = Callable[[Path], Iterator[Any]]
CLIENTS: dict[str, Client] = {}


def client(function: Client) -> Client:
    CLIENTS[function.__name__] = function
    return function


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ground truth, detections as a list in a file, and others with masks."""
    folder = tmp_path_factory.mktemp("client")
    instances, results = draw_coco(
        np.random.default_rng(11), n_images=7, n_classes=4, max_objects=10, max_detections=25
    )
    instances["info"] = {"description": "drawn"}
    (folder / "truth.json").write_text(json.dumps(official.complete(instances)))
    (folder / "results.json").write_text(json.dumps(results))
    with_masks, found_masks, _ = masks_and_keypoints()
    (folder / "truth_masks.json").write_text(json.dumps(with_masks))
    (folder / "results_masks.json").write_text(json.dumps(found_masks))
    return folder


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def by_image(results: list[dict[str, Any]], ids: list[Any]) -> list[dict[str, Any]]:
    return [dict(result) for result in results if result["image_id"] in ids]


def merged(parts: list[tuple[list[Any], Any]]) -> tuple[Any, list[Any]]:
    """Image ids and results of several processes, each image once."""
    ids = np.concatenate([np.array(image_ids) for image_ids, _ in parts])
    cells = np.concatenate([part for _, part in parts], axis=2)
    ids, first = np.unique(ids, return_index=True)
    return ids, list(cells[..., first].flatten())


def finish(made: Any) -> list[Any]:
    made.accumulate()
    made.summarize()
    return [made.stats, *(made.eval[name] for name in ("precision", "recall", "scores", "counts"))]


@client
def torchvision_references(folder: Path) -> Iterator[Any]:
    """One evaluation for all batches; its cells are taken out of each, sent, and put together."""
    truth = coco.COCO(str(folder / "truth.json"))
    yield
    made = cocoeval.COCOeval(copy.deepcopy(truth), iouType="bbox")
    results, parts = read(folder / "results.json"), []
    image_ids = truth.getImgIds()
    for batch in (image_ids[:2], image_ids[2:5], image_ids[4:]):
        found = by_image(results, batch)
        with contextlib.redirect_stdout(io.StringIO()):
            made.cocoDt = made.cocoGt.loadRes(found) if found else coco.COCO()
        made.params.imgIds = list(batch)
        with contextlib.redirect_stdout(io.StringIO()):
            made.evaluate()
        shape = -1, len(made.params.areaRng), len(made.params.imgIds)
        parts.append((made.params.imgIds, np.asarray(made.evalImgs).reshape(shape)))
    ids, cells = merged(pickle.loads(pickle.dumps(parts)))
    made.evalImgs, made.params.imgIds = cells, list(ids)
    made._paramsEval = copy.deepcopy(made.params)
    yield [finish(made), cells]


@client
def detr(folder: Path) -> Iterator[Any]:
    """The steps of ``evaluate`` called one by one, without the prints."""
    truth = coco.COCO(str(folder / "truth.json"))

    def evaluate(made: Any) -> Any:
        p = made.params
        if p.useSegm is not None:
            p.iouType = "segm" if p.useSegm == 1 else "bbox"
        p.imgIds = list(np.unique(p.imgIds))
        if p.useCats:
            p.catIds = list(np.unique(p.catIds))
        p.maxDets = sorted(p.maxDets)
        made.params = p
        made._prepare()
        category_ids = p.catIds if p.useCats else [-1]
        compute = made.computeIoU if p.iouType in ("segm", "bbox") else made.computeOks
        made.ious = {(i, k): compute(i, k) for i in p.imgIds for k in category_ids}
        cells = [
            made.evaluateImg(i, k, bounds, p.maxDets[-1])
            for k in category_ids
            for bounds in p.areaRng
            for i in p.imgIds
        ]
        made._paramsEval = copy.deepcopy(made.params)
        shape = len(category_ids), len(p.areaRng), len(p.imgIds)
        return p.imgIds, np.asarray(cells).reshape(shape)

    yield
    made = cocoeval.COCOeval(truth, iouType="bbox")
    results, parts = read(folder / "results.json"), []
    image_ids = truth.getImgIds()
    for batch in (image_ids[:3], image_ids[3:]):
        made.cocoDt = truth.loadRes(by_image(results, batch))
        made.params.imgIds = list(batch)
        parts.append(evaluate(made))
    ids, cells = merged(parts)
    made.evalImgs, made.params.imgIds = cells, list(ids)
    made._paramsEval = copy.deepcopy(made.params)
    yield [finish(made), cells]


@client
def yolox(folder: Path) -> Iterator[Any]:
    """Results by way of a file; tables of each class; the summary caught."""
    truth = coco.COCO(str(folder / "truth.json"))
    yield
    (folder / "yolox.json").write_text(json.dumps(read(folder / "results.json")))
    found = truth.loadRes(str(folder / "yolox.json"))
    made = cocoeval.COCOeval(truth, found, "bbox")
    made.evaluate()
    made.accumulate()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        made.summarize()
    names = [each["name"] for each in truth.loadCats(sorted(truth.getCatIds()))]
    precision = {}
    for k, name in enumerate(names):
        of_class = made.eval["precision"][:, :, k, 0, -1]
        precision[name] = np.mean(of_class[of_class > -1]) if (of_class > -1).any() else -1
    recall = made.eval["recall"][:, :, 0, -1]
    yield [printed.getvalue(), precision, recall, made.stats[0], made.stats[1]]


@client
def detectron2(folder: Path) -> Iterator[Any]:
    """A summary of its own for other limits; results of each category."""

    class MaxDets(cocoeval.COCOeval):  # type: ignore[misc, name-defined]
        def summarize(self) -> None:
            recall, precision = self.eval["recall"], self.eval["precision"]
            limit = self.params.maxDets.index(self.params.maxDets[2])
            stats = np.zeros(2)
            for n, array in enumerate((precision, recall)):
                cells = array[..., 0, limit]
                stats[n] = np.mean(cells[cells > -1])
            self.stats = stats

        def __str__(self) -> str:
            self.summarize()
            return ""

    truth = coco.COCO(str(folder / "truth.json"))
    yield
    results = copy.deepcopy(read(folder / "results.json"))
    outcome = []
    for kind in (cocoeval.COCOeval, MaxDets):
        made = kind(truth, truth.loadRes(copy.deepcopy(results)), "bbox")
        made.params.maxDets = [1, 10, 100]
        made.params.imgIds = truth.getImgIds()[1:]
        made.evaluate()
        outcome += finish(made)
        outcome.append(
            [np.mean(made.eval["precision"][:, :, k, 0, -1]) for k in range(len(truth.getCatIds()))]
        )
    yield outcome


@client
def detectron2_fast(folder: Path) -> Iterator[Any]:
    """A subclass whose ``evaluate`` and ``accumulate`` take the inside of pycocotools apart."""

    class Fast(cocoeval.COCOeval):  # type: ignore[misc, name-defined]
        def evaluate(self) -> None:
            p = self.params
            p.imgIds, p.catIds = list(np.unique(p.imgIds)), list(np.unique(p.catIds))
            p.maxDets = sorted(p.maxDets)
            self._prepare()
            self.ious = {(i, k): self.computeIoU(i, k) for i in p.imgIds for k in p.catIds}
            truth = [[self._gts[i, k] for k in p.catIds] for i in p.imgIds]
            found = [[self._dts[i, k] for k in p.catIds] for i in p.imgIds]
            self.seen = [
                [(len(g), [d["score"] for d in dt]) for g, dt in zip(gs, dts, strict=True)]
                for gs, dts in zip(truth, found, strict=True)
            ]
            self._evalImgs_cpp = [
                self.evaluateImg(i, k, bounds, p.maxDets[-1])
                for k in p.catIds
                for bounds in p.areaRng
                for i in p.imgIds
            ]
            self._paramsEval = copy.deepcopy(self.params)

        def accumulate(self, p: Any = None) -> None:
            self.evalImgs = self._evalImgs_cpp
            super().accumulate(p)

    truth = coco.COCO(str(folder / "truth.json"))
    yield
    made = Fast(truth, truth.loadRes(str(folder / "results.json")), "bbox")
    made.evaluate()
    yield [finish(made), made.seen, made.ious, made.evalImgs]


@client
def mmdet(folder: Path) -> Iterator[Any]:
    """Subclasses with names in another style, proposals without categories, numbers by name."""

    class Truth(coco.COCO):  # type: ignore[misc, name-defined]
        def __init__(self, annotation_file: Any = None) -> None:
            super().__init__(annotation_file=annotation_file)
            self.img_ann_map = self.imgToAnns
            self.cat_img_map = self.catToImgs

        def get_ann_ids(self, img_ids: Any = [], cat_ids: Any = []) -> Any:  # noqa: B006
            return self.getAnnIds(img_ids, cat_ids, [], None)

        def get_cat_ids(self, cat_names: Any = []) -> Any:  # noqa: B006
            return self.getCatIds(cat_names, [], [])

    class Evaluation(cocoeval.COCOeval):  # type: ignore[misc, name-defined]
        def __init__(self, truth: Any = None, found: Any = None, iou_type: str = "segm") -> None:
            super().__init__(truth, found, iouType=iou_type)

    truth = Truth(str(folder / "truth.json"))
    yield
    names = [each["name"] for each in truth.dataset["categories"]]
    outcome: list[Any] = [truth.get_ann_ids(truth.getImgIds()[:1]), truth.get_cat_ids(names[:2])]
    for useCats in (1, 0):  # noqa: N806
        found = truth.loadRes(read(folder / "results.json"))
        made = Evaluation(truth, found, "bbox")
        made.params.catIds = truth.get_cat_ids(names)
        made.params.imgIds = truth.getImgIds()
        made.params.maxDets = [100, 300, 1000]
        made.params.iouThrs = np.linspace(0.5, 0.95, 10)
        made.params.useCats = useCats
        made.evaluate()
        outcome.append(finish(made))
    yield outcome


@client
def tensorflow_models(folder: Path) -> Iterator[Any]:
    """Wrappers that call the class by its name in the module."""

    class Truth(coco.COCO):  # type: ignore[misc, name-defined]
        def __init__(self, dataset: Any, kind: str = "bbox") -> None:
            coco.COCO.__init__(self)
            self._kind, self.dataset = kind, dataset
            self.createIndex()

        def LoadAnnotations(self, annotations: Any) -> Any:  # noqa: N802
            results = coco.COCO()
            results.dataset["images"] = list(self.dataset["images"])
            results.dataset["categories"] = copy.deepcopy(self.dataset["categories"])
            for number, row in enumerate(annotations):
                x, y, w, h = row["bbox"]
                corners = [x, y, x, y + h, x + w, y + h, x + w, y]
                row.update(id=number + 1, area=w * h, iscrowd=0, segmentation=[corners])
            results.dataset["annotations"] = annotations
            results.createIndex()
            return results

    class Evaluation(cocoeval.COCOeval):  # type: ignore[misc, name-defined]
        def __init__(self, truth: Any, found: Any, agnostic: bool) -> None:
            cocoeval.COCOeval.__init__(self, truth, found, iouType="bbox")
            if agnostic:
                self.params.useCats = 0

        def ComputeMetrics(self) -> Any:  # noqa: N802
            self.evaluate()
            self.accumulate()
            self.summarize()
            names = [self.cocoGt.cats[k]["name"] for k in self.params.catIds if k != -1]
            return [list(self.stats), names, self.params.catIds]

    truth = Truth(read(folder / "truth.json"))
    yield
    yield [
        Evaluation(
            truth, truth.LoadAnnotations(read(folder / "results.json")), agnostic
        ).ComputeMetrics()
        for agnostic in (False, True)
    ]


@client
def masks_by_default(folder: Path) -> Iterator[Any]:
    """Boxes, then masks, of one truth: the default iouType is segm."""
    truth = coco.COCO(str(folder / "truth_masks.json"))
    yield
    outcome = []
    for iou_type in ("bbox", "segm"):
        found = truth.loadRes(str(folder / "results_masks.json"))
        made = cocoeval.COCOeval(truth, found, iou_type)
        made.evaluate()
        outcome += [finish(made), made.evalImgs, made.ious]
    yield outcome


@client
def an_epoch_after_the_other(folder: Path) -> Iterator[Any]:
    """A training loop: one truth, results overwritten in place each time, all kept."""
    truth = coco.COCO(str(folder / "truth.json"))
    kept = []
    yield
    for epoch in range(3):
        rows = read(folder / "results.json")[epoch::2]
        (folder / "epoch.json").write_text(json.dumps(rows))
        found = truth.loadRes(str(folder / "epoch.json"))
        made = cocoeval.COCOeval(truth, found, "bbox")
        made.evaluate()
        kept.append((finish(made), found))
    yield [[outcome, list(found.anns.values())] for outcome, found in kept]


def outcome(name: str, folder: Path, when: str) -> Any:
    """What a client yields, and what it printed."""

    def both_halves(_: Any) -> Any:
        patch = patch_pycocotools() if when == "first" else None
        try:
            steps = CLIENTS[name](folder)
            next(steps)
            if when == "last":
                patch = patch_pycocotools()
            return next(steps)
        finally:
            if patch:
                patch.restore()

    return run(both_halves, OFFICIAL)


@pytest.mark.slow
@pytest.mark.parametrize("name", CLIENTS)
def test_equal_with_the_patch_first_and_last(name: str, folder: Path) -> None:
    never = outcome(name, folder, "never")
    assert not never.error
    for when in ("first", "last"):
        found = outcome(name, folder, when)
        assert found.error == ""
        assert found.text == never.text
        assert same(never.value, found.value), when
