"""The official programs of benchmarks, each run on files, from a checkout that the user has.

    python tools/official/programs.py NAME FOLDER CHECKOUT

prints the program's numbers under detmap's names, as JSON. A program runs as it is, except that
names which NumPy 2 lacks come back, and that packages which it imports and does not use are empty.
"""

import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import lesion_programs
import matlab_programs
import numpy as np
import rotated_programs
from stand_ins import Numbers, package

AITOD = "aitodpycocotools"


def lvis(folder: Path, checkout: Path) -> Numbers:
    """lvis-api; an installed `lvis` serves too."""
    sys.path.insert(0, str(checkout))
    from lvis import LVIS, LVISEval, LVISResults

    truth = LVIS(str(folder / "truth.json"))
    run = LVISEval(truth, LVISResults(truth, str(folder / "dets.json")), "bbox")
    run.run()
    return {name: float(run.results[name]) for name in ("AP", "AP50", "AP75", "APr", "APc", "APf")}


def crowdhuman(folder: Path, checkout: Path) -> Numbers:
    """CrowdDet."""
    sys.path[:0] = [str(checkout / "lib"), str(checkout)]
    from evaluate import compute_JI
    from evaluate.compute_APMR import compute_APMR

    results = str(folder / "results.odgt")
    ap, miss_rate = compute_APMR(results, str(folder / "annotation.odgt"), "box")
    return {"AP": ap, "MR-2": miss_rate, "JI": float(compute_JI.evaluation_all(results, "box")[1])}


def citypersons(folder: Path, checkout: Path) -> Numbers:
    """CityPersons, whose Python 2 is translated."""
    code = checkout / "evaluation" / "eval_script"
    for name in ("coco", "eval_MR_multisetup"):
        text = (code / f"{name}.py").read_text()
        text = re.sub(r"^(\s*)print (.*)$", r"\1print(\2)", text, flags=re.MULTILINE)
        text = text.replace("from . import mask", "from pycocotools import mask")
        text = text.replace("np.round((1.00 - .0) / .01) + 1", "101")
        text = text.replace("unicode", "str")
        module = sys.modules[name] = ModuleType(name)
        exec(compile(text, f"{name}.py", "exec"), module.__dict__)
    metrics = {}
    for place, setup in enumerate(("", "-Reasonable_small", "-Reasonable_occ-heavy", "-All")):
        truth = sys.modules["coco"].COCO(str(folder / "truth.json"))
        found = truth.loadRes(str(folder / "dets.json"))
        run = sys.modules["eval_MR_multisetup"].COCOeval(truth, found, "bbox")
        run.params.imgIds = sorted(truth.getImgIds())
        run.evaluate(place)
        run.accumulate()
        miss = 1 - run.eval["TP"][0, :, 0, 0]
        metrics[f"MR{setup}"] = float(np.exp(np.mean(np.log(miss))))
    return metrics


def aitod(folder: Path, checkout: Path) -> Numbers:
    """cocoapi-aitod, with the masks of pycocotools."""
    import pycocotools.mask
    from pycocotools.coco import COCO

    package(AITOD, checkout / AITOD / AITOD, checkout / AITOD, mask=pycocotools.mask)
    sys.modules[f"{AITOD}.mask"] = pycocotools.mask
    from aitodpycocotools.cocoeval import COCOeval

    truth = COCO(str(folder / "truth.json"))
    run = COCOeval(truth, truth.loadRes(str(folder / "dets.json")), "bbox")
    run.evaluate()
    run.accumulate()
    run.summarize()
    return {"AP": float(run.stats[0])}


def crowdpose(folder: Path, checkout: Path) -> Numbers:
    """xtcocoapi, with the masks of pycocotools."""
    xtcocotools(checkout)
    from xtcocotools.coco import COCO
    from xtcocotools.cocoeval import COCOeval

    pairs = (0.079, 0.072, 0.062, 0.107, 0.087, 0.089, 0.079)
    truth = COCO(str(folder / "truth.json"))
    found = truth.loadRes(str(folder / "dets.json"))
    sigmas = np.repeat(pairs, 2)
    run = COCOeval(truth, found, "keypoints_crowd", sigmas, use_area=False)
    run.evaluate()
    run.accumulate()
    run.summarize()
    names = ("AP", "AP50", "AP75", "AR", "AR50", "AR75")
    return dict(zip(names, map(float, run.stats), strict=False))


def wholebody(folder: Path, checkout: Path) -> Numbers:
    """xtcocoapi, as its demo of COCO-WholeBody, with the masks of pycocotools."""
    xtcocotools(checkout)
    from xtcocotools.coco import COCO
    from xtcocotools.cocoeval import COCOeval

    demo = (checkout / "demos" / "demo_coco_wholebody.py").read_text()
    sigmas: dict[str, Any] = {}
    exec(demo[demo.index("sigmas_body") : demo.index("cocoGt")], sigmas)
    names = ("AP", "AP50", "AP75", "APm", "APl", "AR", "AR50", "AR75", "ARm", "ARl")
    numbers = {}
    for part in ("body", "foot", "face", "lefthand", "righthand", "wholebody"):
        truth = COCO(str(folder / "truth.json"))
        found = truth.loadRes(str(folder / "dets.json"))
        own = np.array(sigmas[f"sigmas_{part}"])
        run = COCOeval(truth, found, f"keypoints_{part}", own, use_area=True)
        run.evaluate()
        run.accumulate()
        run.summarize()
        called = part.replace("wholebody", "all")
        numbers |= {f"{n}-{called}": float(x) for n, x in zip(names, run.stats, strict=True)}
    return numbers


def xtcocotools(checkout: Path) -> None:
    """Makes xtcocotools importable."""
    import pycocotools.mask

    package("xtcocotools", checkout / "xtcocotools", mask=pycocotools.mask)
    for name in ("mask", "_mask"):
        sys.modules[f"xtcocotools.{name}"] = pycocotools.mask


def ov_coco(folder: Path, checkout: Path) -> Numbers:
    """Mmdetection 3's OVCocoMetric, which gets the detections as a file; needs mmengine.

    CHECKOUT is a folder with the package `mmdet`.
    """
    root = checkout / "mmdet"
    package("mmdet", root)
    package("mmdet.datasets", root / "datasets")
    package("mmdet.structures")
    package("mmdet.structures.mask", encode_mask_results=None)
    package("mmdet.evaluation")
    package("mmdet.evaluation.functional", eval_recalls=None)
    package("mmdet.evaluation.metrics", root / "evaluation" / "metrics")
    from mmdet.evaluation.metrics.ov_coco_metric import OVCocoMetric

    run = OVCocoMetric(ann_file=str(folder / "truth.json"), metric="bbox")
    names = [one["name"] for one in run._coco_api.dataset["categories"]]
    groups = {"base_classes": names[:48], "novel_classes": names[48:]}
    run.dataset_meta = {"classes": names, **groups}
    run.results2json = lambda found, prefix: {"bbox": str(folder / "dets.json")}
    numbers = run.compute_metrics([({}, {})])
    keys = {"AP-base": "base_ap", "AP-novel": "novel_ap"}
    keys |= {"AP50-base": "base_ap50", "AP50-novel": "novel_ap50"}
    return {name: float(numbers[key]) for name, key in keys.items()}


def cgf1(folder: Path, checkout: Path) -> Numbers:
    """sam3."""
    for name in ("sam3", "sam3/eval"):
        package(name.replace("/", "."), checkout / name)
    from sam3.eval.cgf1_eval import CGF1Evaluator

    truth = [str(folder / "truth.json")]
    run = CGF1Evaluator(gt_path=truth, verbose=False, iou_type="bbox")
    numbers = run.evaluate(str(folder / "dets.json"))
    return {name.removeprefix("cgF1_eval_bbox_"): float(x) for name, x in numbers.items()}


def openimages(folder: Path, checkout: Path) -> Numbers:
    """TensorFlow's object_detection: its expansion script, and its Challenge evaluator.

    The evaluator imports TensorFlow and protos for functions that are not called here.
    """
    root = checkout / "research" / "object_detection"
    for name in ("tensorflow", "tensorflow.compat"):
        package(name)
    package("tensorflow.compat.v1")
    package("object_detection", root)
    for name in ("utils", "core", "metrics"):
        package(f"object_detection.{name}", root / name)
    proto = ModuleType("string_int_label_map_pb2")
    package("object_detection.protos", string_int_label_map_pb2=proto)
    import pandas as pd
    from object_detection.metrics import oid_challenge_evaluation_utils as utils
    from object_detection.utils.object_detection_evaluation import OpenImagesChallengeEvaluator

    script = root / "dataset_tools" / "oid_hierarchical_labels_expansion.py"
    for kind, name in ((1, "boxes"), (2, "labels")):
        words = [f"--json_hierarchy_file={folder / 'hierarchy.json'}", f"--annotation_type={kind}"]
        words += [f"--input_annotations={folder / f'{name}.csv'}"]
        words += [f"--output_annotations={folder / f'expanded_{name}.csv'}"]
        subprocess.run([sys.executable, str(script), *words], check=True)
    items = re.findall(r'name: "([^"]+)"\s+id: (\d+)', (folder / "labelmap.pbtxt").read_text())
    known = {name: int(i) for name, i in items}
    boxes = pd.read_csv(folder / "expanded_boxes.csv").assign(ConfidenceImageLabel=1)
    labels = pd.read_csv(folder / "expanded_labels.csv")
    labels = labels.rename(columns={"Confidence": "ConfidenceImageLabel"})
    found = pd.read_csv(folder / "predictions.csv")
    of_image = dict(tuple(found.groupby("ImageID")))
    classes = [{"id": i, "name": name} for name, i in known.items()]
    run = OpenImagesChallengeEvaluator(classes, evaluate_masks=False)
    for image, rows in pd.concat([boxes, labels]).groupby("ImageID"):
        objects = utils.build_groundtruth_dictionary(rows, known)
        dets = utils.build_predictions_dictionary(of_image.get(image, found.iloc[:0]), known)
        run.add_single_ground_truth_image_info(image, writable(objects))
        run.add_single_detected_image_info(image, writable(dets))
    return {"mAP": next(float(x) for name, x in run.evaluate().items() if "mAP" in name)}


def writable(columns: dict[str, Any]) -> dict[str, Any]:
    """Copies of the columns, since those of pandas 3 cannot be changed in place."""
    return {name: np.array(column) for name, column in columns.items()}


PROGRAMS: dict[str, Callable[[Path, Path], Numbers]] = {
    "lvis": lvis,
    "crowdhuman": crowdhuman,
    "citypersons": citypersons,
    "aitod": aitod,
    "crowdpose": crowdpose,
    "wholebody": wholebody,
    "cgf1": cgf1,
    "ov-coco": ov_coco,
    "openimages": openimages,
    "luna16": lesion_programs.luna16,
    "deeplesion": lesion_programs.deeplesion,
    "hrsc2016": rotated_programs.hrsc2016,
    "dior-r": rotated_programs.dior_r,
    "ultralytics-obb": rotated_programs.ultralytics_obb,
    "visdrone": matlab_programs.visdrone,
    "uavdt": matlab_programs.uavdt,
    "caltech": matlab_programs.caltech,
    "imagenet-det": matlab_programs.imagenet_det,
    "widerface-matlab": matlab_programs.widerface_matlab,
}


if __name__ == "__main__":
    np.float, np.int = float, int
    with contextlib.redirect_stdout(sys.stderr):
        numbers = PROGRAMS[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
    print(json.dumps(numbers))
