"""Damaged files of benchmarks that `samples` lacks: an error with place and fix, or numbers."""

import json
import math
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np

import detmap
from detmap.errors import DetmapError
from tests.benchmarks.small_cases import CASES, written
from tests.benchmarks.test_coco_like import crowd_pose, whole_body
from tests.benchmarks.test_rotated_files import BOX, DIOR, FAR, HRSC, dota, results
from tests.support import builders as make
from tests.support.mat import array, cells, mat, text
from tools.fuzzing._files import damage_one, empty_folder, judge_refusal

Files = tuple[Path, Path]
"""Ground truth and detections."""
SPHERES = "seriesuid,coordX,coordY,coordZ,"


def crowdhuman(folder: Path) -> Files:
    """The files of two images."""
    truth, found = folder / "t.odgt", folder / "d.odgt"
    gt = {"tag": "person", "fbox": [1, 2, 30, 40], "extra": {"ignore": 0}}
    dt = {"box": [1, 2, 30, 41], "score": 0.5, "tag": 1}
    truth.write_text("".join(json.dumps({"ID": i, "gtboxes": [gt, gt]}) + "\n" for i in "ab"))
    size = {"width": 99, "height": 98}
    found.write_text("".join(json.dumps({"ID": i, **size, "dtboxes": [dt]}) + "\n" for i in "ab"))
    return truth, found


def widerface(folder: Path, *, packed: bool = False) -> Files:
    """The folders of one event with two images."""
    truth, found = folder / "gt", folder / "d"
    (found / "0--P").mkdir(parents=True)
    truth.mkdir()
    names = ["one", "two"]
    boxes = [array("", np.array([[1.0, 2, 30, 40], [50, 2, 30, 40]])), array("", np.zeros((0, 0)))]
    main = {"event_list": text("", "0--P"), "file_list": cells("", [text("", x) for x in names])}
    main["face_bbx_list"] = cells("", boxes)
    parts = [cells(name, [content]) for name, content in main.items()]
    (truth / "wider_face_val.mat").write_bytes(mat(*parts, packed=packed))
    for subset in ("easy", "medium", "hard"):
        listed = cells("", [array("", np.array([[1.0], [2.0]])), array("", np.zeros((0, 0)))])
        content = mat(cells("gt_list", [listed]), packed=packed)
        (truth / f"wider_{subset}_val.mat").write_bytes(content)
    for name in names:
        (found / "0--P" / f"{name}.txt").write_text(f"{name}\n2\n1 2 30 41 0.9\n50 2 30 4 0.5\n")
    return truth, found


def caltech(folder: Path) -> Files:
    """The folders of two images."""
    truth, found = folder / "gt", folder / "d"
    for each in (truth, found):
        each.mkdir()
    for i in range(2):
        line = "person 100 120 30 80 1 100 120 30 60 0 0\n"
        (truth / f"I0000{i}.txt").write_text("% bbGt version=3\n" + line * 2)
        (found / f"I0000{i}.txt").write_text("100 120 30 81 0.5\n100 20 30 81 0.25\n")
    return truth, found


def luna16(folder: Path) -> Files:
    """Nodules, excluded findings, scans and results."""
    for name, content in (
        ("annotations.csv", f"{SPHERES}diameter_mm\ns.2,1,2,3,4\ns.1,1,2,3,4.5\n"),
        ("annotations_excluded.csv", f"{SPHERES}diameter_mm\ns.1,5,6,7,-1\n"),
        ("seriesuids.csv", "s.2\ns.1\n"),
        ("results.csv", f"{SPHERES}probability\ns.1,1,2,3,.5\ns.2,-4.5,5,6,.25\n"),
    ):
        (folder / name).write_text(content)
    return folder / "annotations.csv", folder / "results.csv"


def sa_co(folder: Path) -> Files:
    """Pairs of image and phrase of two annotators, and results."""
    images = [
        {"id": i, "file_name": f"{i}.jpg", "width": 64, "height": 32, "text_input": "a cat"}
        | {"is_instance_exhaustive": i % 2}
        for i in (1, 2)
    ]
    boxes = [{"image_id": i, "category_id": 1, "bbox": [0, 0, 0.5, 0.25 * i]} for i in (1, 2)]
    objects = [box | {"id": i, "area": 0.1, "iscrowd": 0} for i, box in enumerate(boxes, 1)]
    names = [{"id": 1, "name": "object"}]
    for annotator in (1, 2):
        tree = {"images": images, "annotations": objects, "categories": names}
        (folder / f"gold_{annotator}.json").write_text(json.dumps(tree))
    (folder / "found.json").write_text(json.dumps([box | {"score": 0.5} for box in boxes]))
    return folder / "gold_1.json", folder / "found.json"


def rotated(folder: Path, page: str = "", stem: str = "a") -> Files:
    """Two images of DOTA, or a page of XML, and results on whole images or patches."""
    truth = dota(folder, a=f"{BOX} ship 0\n{FAR} ship 1\n", b=f"{BOX} plane 0\n")
    if page:
        truth = make.write(folder / "xml" / "a.xml", page).parent
    return truth, results(folder, ship=f"{stem} .9 {BOX}\n{stem} .8 {FAR}\n")


WRITERS: dict[str, Callable[[Path], Files]] = {
    **{kind: lambda folder, kind=kind: written(folder, kind)[:2] for kind in CASES},
    "crowdpose": lambda folder: crowd_pose(folder, 0.1, 0.5, 0.9),
    "wholebody": whole_body,
    "crowdhuman": crowdhuman,
    "widerface": widerface,
    "widerface packed": lambda folder: widerface(folder, packed=True),
    "caltech": caltech,
    "froc-luna16": luna16,
    "cgf1": sa_co,
    "dota": rotated,
    "dota patches": lambda folder: rotated(folder, stem="a__0.5__100___0"),
    "hrsc2016": lambda folder: rotated(folder, HRSC),
    "dior-r": lambda folder: rotated(folder, DIOR),
}
KINDS = tuple(WRITERS)
COUNTS = {f"{kind} {how}": 0 for kind in KINDS for how in ("read", "refused")}


def case(seed: int) -> str | None:
    """What is wrong with how the files of a benchmark, perhaps a damaged one, are read."""
    rng = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    folder = empty_folder("benchmark")
    truth, found = WRITERS[kind](folder)
    whole = not damage_one(rng, folder.rglob("*"))
    try:
        metrics = detmap.evaluate(truth, found, kind.split()[0]).metrics
    except DetmapError as error:
        return judge_refusal(COUNTS, kind, error, whole=whole)
    COUNTS[f"{kind} read"] += 1
    wrong = {name: x for name, x in metrics.items() if math.isinf(x)}
    return f"{kind}: {wrong}" if wrong else None
