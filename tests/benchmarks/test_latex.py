"""Every benchmark has a row for a paper's table."""

import math

import pytest

import detmap
from detmap.core.output import formats
from tests.benchmarks import goldens

FILES = {
    "openimages-v2": ("openimages", "boxes.csv", "predictions.csv"),
    "openimages-challenge": ("openimages", "boxes.csv", "predictions.csv"),
    "widerface": ("widerface", "gt", "pred"),
    "crowdhuman": ("crowdhuman", "annotation.odgt", "results.odgt"),
    "citypersons": ("citypersons", "truth.json", "dets.json"),
    "caltech": ("caltech", "annotations", "results"),
    "kitti": ("kitti", "label_2", "results"),
    "visdrone": ("visdrone", "annotations", "results"),
    "uavdt": ("uavdt", ".", "."),
    "dota": ("dota", "labelTxt", "results"),
    "dota-1.5": ("dota15", "labelTxt", "merged"),
    "dior-r": ("mmrotate", "truth.csv", "dets.csv"),
    "hrsc2016": ("mmrotate", "truth.csv", "dets.csv"),
    "ultralytics-obb": ("ultralytics-obb", "truth.csv", "dets.csv"),
    "imagenet-det": ("imagenet-det", "xml", "predictions.txt"),
    "imagenet-vid": ("imagenet-vid", "Annotations", "dets.txt"),
    "bdd100k": ("bdd100k", "truth.json", "predictions.json"),
    "lvis": ("lvis-fixed-ap", "truth.json", "dets.json"),
    "lvis-fixed": ("lvis-fixed-ap", "truth.json", "dets.json"),
    "aitod": ("aitod", "truth.json", "dets.json"),
    "sodad": ("sodad", "truth.json", "dets.json"),
    "tinyperson": ("tinyperson", "truth.json", "dets.json"),
    "crowdpose": ("crowdpose", "truth.json", "dets.json"),
    "wholebody": ("coco-wholebody", "truth.json", "dets.json"),
    "ov-coco": ("ov-coco", "truth.json", "dets.json"),
    "froc-luna16": ("luna16-froc", "annotations.csv", "results.csv"),
    "froc-boxes": ("deeplesion-froc", "truth.json", "dets.json"),
    "cgf1": ("cgf1", "truth_1.json", "dets.json"),
}
"""Folder of the goldens, truth and detections, by protocol."""


@pytest.mark.parametrize("protocol", FILES)
def test_latex_has_every_metric_and_the_row_of_a_paper(protocol: str) -> None:
    name, truth, found = FILES[protocol]
    place = goldens.folder(name) / "1"
    result = detmap.evaluate(place / truth, place / found, protocol)
    text = formats.latex(result.tables(per_class=True))
    shown = ["-" if math.isnan(v) else f"{v:.4f}" for v in result.metrics.values()]
    for metric, value in zip(result.metrics, shown, strict=True):
        metric = metric.replace("_", "\\_")
        assert any(
            line.startswith(f"{metric} &") and line.endswith(f"& {value} \\\\")
            for line in text.splitlines()
        ), metric
    if len(shown) <= formats.WIDEST_ROW:
        assert " & ".join(shown) in text
    else:  # too wide for one row: a row per class
        assert len(result.classes()) > 0
