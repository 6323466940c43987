"""Boundary AP: the authors' goldens, and a reference by pixels on drawn masks."""

import contextlib
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pycocotools import mask

import detmap
from detmap.benchmarks.overlaps import boundary_iou
from detmap.compat import COCO, COCOeval
from detmap.core.curves.scores import coco_arrays
from detmap.core.overlaps import masks
from detmap.core.results.result import Result
from tests.reference import boundary as reference
from tests.reference.masks import image
from tests.support import builders as make
from tests.support.drawing import CocoData
from tests.support.drawing_shapes import draw_outlined, packed
from tests.support.real_data import data_path
from tests.support.tier import drawn

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation")  # of pycocotools
COCO_RULES, LVIS = "coco-boundary", "lvis-boundary"


def files(folder: Path, data: CocoData) -> tuple[Path, Path]:
    return make.write(folder / "gt.json", data[0]), make.write(folder / "dt.json", data[1])


def stats(result: Result) -> list[float]:
    return [-1.0 if math.isnan(value) else value for value in result.metrics.values()]


@pytest.mark.parametrize("ratio", [0.02, 0.005])
@pytest.mark.parametrize("case", ["1", "2"])
def test_the_goldens_of_the_authors(case: str, ratio: float) -> None:
    place = data_path("benchmarks", "boundary", case)
    wanted = json.loads((place / "expected.json").read_text())[f"dilation {ratio}"]
    paths, settings = (place / "truth.json", place / "dets.json"), {"iou.dilation": ratio}
    result = detmap.evaluate(*paths, COCO_RULES, settings=settings)
    assert list(result.metrics) == list(wanted)
    assert stats(result) == list(wanted.values())
    assert drop_in(*map(str, paths), dilation_ratio=ratio).stats.tolist() == list(wanted.values())


def drop_in(truth: Any, found: Any, **options: Any) -> Any:
    with contextlib.redirect_stdout(io.StringIO()):
        objects = COCO(truth)
        run = COCOeval(objects, objects.loadRes(found), iouType="boundary", **options)
        run.evaluate()
        run.accumulate()
        run.summarize()
    return run


def assert_arrays(found: Any, expected: Any) -> None:
    for name in ("precision", "recall"):
        assert np.array_equal(found[name], expected[name]), name


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(drawn(200)))
def test_drawn_masks_give_the_arrays_of_the_reference(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boundary_iou, "AT_ONCE", [1, 60, 1 << 21][seed % 3])
    data = draw_outlined(np.random.default_rng(seed))
    ratio = (0.02, 0.005, 0.1, 0.0, 1.0)[seed % 5]
    paths, settings = files(tmp_path, data), {"iou.dilation": ratio}
    result = detmap.evaluate(*paths, COCO_RULES, settings=settings, threads=1)
    expected = reference.run(data, ratio)
    assert_arrays(coco_arrays(result.matches), expected.eval)
    assert stats(result) == expected.stats.tolist()
    run = drop_in(data[0], data[1], dilation_ratio=ratio)
    assert_arrays(run.eval, expected.eval)
    assert run.stats.tolist() == expected.stats.tolist()
    assert run.ious.keys() == expected.ious.keys()
    for key, matrix in run.ious.items():
        assert np.array_equal(matrix, expected.ious[key]), key


def listed(rng: np.random.Generator, data: CocoData) -> CocoData:
    """The data with lists of classes on images and frequencies, as LVIS has them; no crowds."""
    for each in data[0]["images"]:
        for key in ("neg_category_ids", "not_exhaustive_category_ids"):
            each[key] = [k["id"] for k in data[0]["categories"] if rng.random() < 0.4]
    for each in data[0]["categories"]:
        each["frequency"] = "rc"[each["id"] % 2]
    for each in data[0]["annotations"]:
        each["iscrowd"] = 0
        each["ignore"] = int(rng.random() < 0.2)
    return data


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(drawn(60)))
def test_drawn_masks_of_lvis(seed: int, tmp_path: Path) -> None:
    pytest.importorskip("lvis", reason="lvis-api is not installed (pip install lvis)")
    rng = np.random.default_rng(seed)
    data = listed(rng, draw_outlined(rng))
    if not data[1]:
        return
    result = detmap.evaluate(*files(tmp_path, data), LVIS, threads=1)
    expected = reference.run_lvis(data)
    for name in ("precision", "recall"):
        assert np.array_equal(coco_arrays(result.matches)[name][..., 0], expected.eval[name])
    found = {name: -1.0 if math.isnan(x) else x for name, x in result.metrics.items()}
    assert found == dict(expected.results)


@pytest.mark.parametrize("seed", range(drawn(20)))
def test_lvis_reads_crowds_as_coco_does(seed: int, tmp_path: Path) -> None:
    """Where every class is listed, LVIS differs in its limit and the upper end of areas."""
    data = draw_outlined(np.random.default_rng(seed))
    for each in data[0]["images"]:
        each |= {"neg_category_ids": [1, 18], "not_exhaustive_category_ids": []}
    for each in data[0]["annotations"]:
        each["area"] = max(each["area"], 1)
    data[1][:] = [each for each in data[1] if mask.area(each["segmentation"])]
    result = detmap.evaluate(*files(tmp_path, data), LVIS, threads=1)
    areas = [[low, np.nextafter(high, 0)] for low, high in reference.HALF_OPEN]
    expected = reference.run(data, maxDets=[300], areaRng=areas)
    assert_arrays(coco_arrays(result.matches), expected.eval)


@pytest.mark.parametrize("seed", range(drawn(60)))
def test_boundaries_of_any_run_lengths(seed: int) -> None:
    """Runs without pixels too, which other tools write."""
    rng = np.random.default_rng(seed)
    h, w = (int(x) for x in rng.integers(1, [140, 40]))
    ends = np.sort(rng.integers(0, h * w + 1, int(rng.integers(0, 30))))
    counts = np.diff([0, *ends, h * w]).tolist()
    runs = masks.read([{"size": [h, w], "counts": counts}], np.array([[h, w]], float), str).runs
    ratio = float(rng.choice([0, 0.02, 0.1, 1]))
    maps = boundary_iou.draw(runs, np.zeros(1, np.int64), ratio)
    left, columns, first, words = maps.spans[0].tolist()
    bits = np.unpackbits(maps.words.view(np.uint8), bitorder="little").reshape(columns, 64 * words)
    found = np.zeros((h, w), np.uint8)
    high = min(64 * words, h - 64 * first)
    found[64 * first :][:high, left : left + columns] = bits.T[:high]
    expected = reference.boundary(image(counts, h, w).astype(np.uint8), ratio)
    assert np.array_equal(found, expected)
    assert maps.pixels.tolist() == [expected.sum()]


def one(height: int, width: int, counts: list[int]) -> CocoData:
    """An object and a detection with the same mask."""
    shared = {"image_id": 1, "category_id": 1}
    shared["segmentation"] = {"size": [height, width], "counts": counts}  # type: ignore[assignment]
    images = [{"id": 1, "height": height, "width": width}]
    objects = [{**shared, "id": 1, "bbox": [0, 0, 1, 1], "area": 1, "iscrowd": 0}]
    classes = [{"id": 1, "name": "a"}]
    truth = {"images": images, "annotations": objects, "categories": classes}
    return truth, [{**shared, "score": 0.5}]


@pytest.mark.parametrize("size", [(1, 1), (1, 200), (200, 1), (2**24, 1)])
def test_images_of_a_row_or_a_column(size: tuple[int, int]) -> None:
    data = one(*size, [0, size[0] * size[1]])
    assert detmap.evaluate(*data, COCO_RULES)["AP"] == pytest.approx(1)
    data[0]["images"] = [{"id": 1}]  # then the size is that of the mask
    assert detmap.evaluate(*data, COCO_RULES)["AP"] == pytest.approx(1)


def test_a_mask_of_too_many_columns_is_an_error() -> None:
    data = one(1, 2**31 - 1, [0, 2**31 - 1])
    with pytest.raises(detmap.DataError, match="a mask has more than 67108864 columns"):
        detmap.evaluate(*data, COCO_RULES)


def test_masks_without_pixels_match_nothing() -> None:
    assert detmap.evaluate(*one(4, 4, [16]), COCO_RULES)["AP"] == 0


def test_the_drop_in_refuses_what_only_pycocotools_evaluates() -> None:
    truth, found = one(4, 4, [0, 16])
    area = truth["annotations"][0].pop("area")
    found[0]["segmentation"] = packed(np.ones((4, 4), np.uint8))
    with pytest.raises(detmap.DataError, match="such as area"):
        drop_in(truth, [dict(found[0])])
    truth["annotations"][0]["area"] = area
    assert drop_in(truth, found).stats[0] == pytest.approx(1)


@pytest.mark.parametrize("ratio", [math.nan, -1, 2, "x", None])
def test_the_drop_in_refuses_a_width_that_is_none(ratio: Any) -> None:
    truth, found = one(4, 4, [0, 16])
    found[0]["segmentation"] = packed(np.ones((4, 4), np.uint8))
    with pytest.raises(detmap.DataError, match="dilation_ratio"):
        drop_in(truth, found, dilation_ratio=ratio)
