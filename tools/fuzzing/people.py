"""Files of CrowdHuman, WIDER FACE and Caltech with mutated bytes: numbers or an error, no crash."""

import json
import random
import shutil
import tempfile
from pathlib import Path

import numpy as np

import detmap
from detmap.errors import DetmapError
from tests.support.mat import array, cells, mat, text

KINDS = ("crowdhuman", "widerface", "caltech")
COUNTS = {"read": 0, "refused": 0}
BYTES = b"0123456789-+.eE,:;{}[]\"' \t\n\r\0\xff%IDnaif"


def crowdhuman(folder: Path) -> tuple[Path, Path]:
    """The files of two images."""
    truth, found = folder / "t.odgt", folder / "d.odgt"
    gt = {"tag": "person", "fbox": [1, 2, 30, 40], "extra": {"ignore": 0}}
    dt = {"box": [1, 2, 30, 41], "score": 0.5, "tag": 1}
    truth.write_text("".join(json.dumps({"ID": i, "gtboxes": [gt, gt]}) + "\n" for i in "ab"))
    size = {"width": 99, "height": 98}
    found.write_text("".join(json.dumps({"ID": i, **size, "dtboxes": [dt]}) + "\n" for i in "ab"))
    return truth, found


def widerface(folder: Path) -> tuple[Path, Path]:
    """The folders of one event with two images; a MAT file is packed by chance."""
    truth, found = folder / "gt", folder / "d"
    (found / "0--P").mkdir(parents=True)
    truth.mkdir()
    names = ["one", "two"]
    boxes = [array("", np.array([[1.0, 2, 30, 40], [50, 2, 30, 40]])), array("", np.zeros((0, 0)))]
    main = {"event_list": text("", "0--P"), "file_list": cells("", [text("", x) for x in names])}
    main["face_bbx_list"] = cells("", boxes)
    packed = random.random() < 0.5
    parts = [cells(name, [content]) for name, content in main.items()]
    (truth / "wider_face_val.mat").write_bytes(mat(*parts, packed=packed))
    for subset in ("easy", "medium", "hard"):
        listed = cells("", [array("", np.array([[1.0], [2.0]])), array("", np.zeros((0, 0)))])
        content = mat(cells("gt_list", [listed]), packed=packed)
        (truth / f"wider_{subset}_val.mat").write_bytes(content)
    for name in names:
        (found / "0--P" / f"{name}.txt").write_text(f"{name}\n2\n1 2 30 41 0.9\n50 2 30 4 0.5\n")
    return truth, found


def caltech(folder: Path) -> tuple[Path, Path]:
    """The folders of two images."""
    truth, found = folder / "gt", folder / "d"
    for each in (truth, found):
        each.mkdir()
    for i in range(2):
        line = "person 100 120 30 80 1 100 120 30 60 0 0\n"
        (truth / f"I0000{i}.txt").write_text("% bbGt version=3\n" + line * 2)
        (found / f"I0000{i}.txt").write_text("100 120 30 81 0.5\n100 20 30 81 0.25\n")
    return truth, found


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Digits exchanged, or some bytes changed, cut, doubled or inserted."""
    content = bytearray(data)
    if rng.random() < 0.5:
        digits = [i for i, byte in enumerate(content) if byte in b"0123456789"]
        for at in rng.sample(digits, min(len(digits), 3)):
            content[at] = rng.choice(b"0123456789")
        return bytes(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(content) + 1)
        what = rng.randrange(5)
        if what == 0:
            content[at : at + 1] = bytes([rng.randrange(256)])
        elif what == 1:
            content[at:at] = bytes([rng.choice(BYTES)])
        elif what == 2:
            del content[at : at + rng.randint(1, 9)]
        elif what == 3:
            content[at:at] = content[at : at + rng.randint(1, 40)]
        elif rng.random() < 0.2:
            del content[at:]
        else:
            content[at : at + 1] = bytes([rng.choice(BYTES)])
    return bytes(content)


def case(seed: int) -> str | None:
    """What is wrong with the numbers of files of which one was mutated."""
    rng = random.Random(seed)
    random.seed(seed)
    name = KINDS[seed % len(KINDS)]
    folder = Path(tempfile.mkdtemp())
    try:
        truth, found = globals()[name](folder)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        path = rng.choice(files)
        path.write_bytes(mutated(path.read_bytes(), rng))
        try:
            metrics = detmap.evaluate(truth, found, name).metrics
        except DetmapError:
            COUNTS["refused"] += 1
            return None
        COUNTS["read"] += 1
        wrong = {key: x for key, x in metrics.items() if not (np.isnan(x) or 0 <= x <= 1)}
        return f"{wrong}" if wrong else None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
