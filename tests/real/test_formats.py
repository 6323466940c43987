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
from tests.support import varied_writers as texts
from tests.support import writers
from tests.support.varied_exports import sizes_csv

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
    made = texts.cartucho(writers.case(*tables), folder, "difficult")
    truth = detmap.read_truth(made.truth)
    return truth, detmap.read_detections(made.found, truth)


def csv(tables: Tables, folder: Path) -> Tables:
    case, names = writers.case(*tables), "image class xmin ymin xmax ymax"
    files = [
        writers.csv(texts.columns(case, names, "voc", scored=scored), folder / f"{scored}.csv")
        for scored in (False, True)
    ]
    truth = detmap.read_truth(files[0], box_format="voc")
    return truth, detmap.read_detections(files[1], truth, box_format="voc")


def parquet(tables: Tables, folder: Path) -> Tables:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    files = [folder / "truth.parquet", folder / "found.parquet"]
    case, names = writers.case(*tables), "image class x y w h"
    for scored, file in enumerate(files):
        write_table(pyarrow.table(texts.columns(case, names, "xywh", scored=bool(scored))), file)
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
    made = texts.rafaelpadilla(writers.case(*tables), tmp_path, "voc xywh")
    read = detmap.read_truth(made.truth, box_format="voc xywh")
    found = detmap.read_detections(made.found, read, box_format="voc xywh")
    result = detmap.evaluate(read, found, "voc2012")
    assert 100 * result.metrics["mAP"] == pytest.approx(86.58359, abs=1e-3)


def test_yolo_rounds_to_fractions(tables: Tables, tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    case = writers.case(*tables)
    made = texts.yolo_yaml(case, tmp_path, pictured=False)
    truth = detmap.read_truth(made.truth, image_sizes=sizes_csv(case, tmp_path))
    found = detmap.read_detections(made.found, truth)
    assert (len(truth), len(found), len(truth.images)) == (14976, 14178, 4952)
    plain = dataclasses.replace(tables[0], roles={})  # YOLO's rows know no difficult objects
    expected = detmap.evaluate(plain, tables[1], "coco-bbox").metrics
    assert detmap.evaluate(truth, found, "coco-bbox").metrics == pytest.approx(expected, abs=1e-9)
