"""PASCAL VOC 2007 test and a real detector, written in the formats of other tools and read back:
the numbers of the files that they were made of.

Detections of equal score are in the order of images there, and in that of lines in VOC's own files:
VOC's numbers are compared after the detections were put into the order of images.
"""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import detmap
from tests.support import writers

pytestmark = pytest.mark.slow
PROTOCOLS = ("coco-bbox", "voc2007", "voc2012")
Tables = tuple[detmap.Truth, detmap.Detections]


@pytest.fixture(scope="module")
def tables(voc2007: Path) -> Tables:
    truth = detmap.read_truth(voc2007 / "VOCdevkit")
    found = detmap.read_detections(voc2007 / "detector-8603", truth)
    return truth, found.take(np.argsort(found.image, kind="stable"))


@pytest.fixture(scope="module")
def wanted(tables: Tables) -> dict[str, dict[str, float]]:
    return {name: detmap.evaluate(*tables, name).metrics for name in PROTOCOLS}


def cartucho(tables: Tables, folder: Path) -> Tables:
    files = writers.cartucho(*tables, folder)
    truth = detmap.read_truth(files[0])
    return truth, detmap.read_detections(files[1], truth)


def csv(tables: Tables, folder: Path) -> Tables:
    names = "image class xmin ymin xmax ymax"
    files = [
        writers.csv(writers.columns(table, names, "voc"), folder / f"{stem}.csv")
        for stem, table in zip(("truth", "found"), tables, strict=True)
    ]
    truth = detmap.read_truth(files[0], box_format="voc")
    return truth, detmap.read_detections(files[1], truth, box_format="voc")


def parquet(tables: Tables, folder: Path) -> Tables:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    files = [folder / "truth.parquet", folder / "found.parquet"]
    for file, table in zip(files, tables, strict=True):
        write_table(pyarrow.table(writers.columns(table, "image class x y w h", "xywh")), file)
    truth = detmap.read_truth(files[0])
    return truth, detmap.read_detections(files[1], truth)


@pytest.mark.parametrize("way", [cartucho, csv, parquet])
def test_formats_that_keep_every_digit(
    tables: Tables,
    wanted: dict[str, dict[str, float]],
    tmp_path: Path,
    way: Callable[[Tables, Path], Tables],
) -> None:
    read = way(tables, tmp_path)
    for name in PROTOCOLS:
        assert detmap.evaluate(*read, name).metrics == wanted[name], name


def test_rafaelpadilla_counts_difficult_objects(tables: Tables, tmp_path: Path) -> None:
    """mAP of the tool itself on these files, percent: tools/goldens.json of the data."""
    truth, found = writers.rafaelpadilla(*tables, tmp_path, "voc xywh")
    read = detmap.read_truth(truth, box_format="voc xywh")
    result = detmap.evaluate(
        read, detmap.read_detections(found, read, box_format="voc xywh"), "voc2012"
    )
    assert 100 * result.metrics["mAP"] == pytest.approx(86.58359, abs=1e-3)


def test_yolo_rounds_to_fractions(tables: Tables, tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    sizes = writers.image_sizes(tables[0], tmp_path / "sizes.csv")
    data, run = writers.yolo(*tables, tmp_path, lambda file, size: None)
    truth = detmap.read_truth(data, image_sizes=sizes)
    found = detmap.read_detections(run, truth)
    assert (len(truth), len(found), len(truth.images)) == (14976, 14178, 4952)
    plain = dataclasses.replace(tables[0], roles={})  # YOLO's rows know no difficult objects
    expected = detmap.evaluate(plain, tables[1], "coco-bbox").metrics
    assert detmap.evaluate(truth, found, "coco-bbox").metrics == pytest.approx(expected, abs=1e-9)
