"""The table of commands in docs/benchmarks.md is what the commands do on golden cases.

A row that differs is printed as it must be in the page.
"""

import contextlib
import io
import json
import re
import tempfile
from pathlib import Path

import pytest

from detmap.cli.dispatch import dispatch
from detmap.core.protocol import names
from detmap.evaluate import read_truth_and_protocol
from tests.benchmarks.goldens import folder
from tests.support.tier import some

ROOT = Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- benchmark_commands: begin -->", "<!-- benchmark_commands: end -->"
JSON = ("truth.json", "dets.json")
CASES = {
    "openimages-v2": ("openimages", "boxes.csv", "predictions.csv"),
    "openimages-challenge": ("openimages", "boxes.csv", "predictions.csv"),
    "widerface": ("widerface", "gt", "pred"),
    "crowdhuman": ("crowdhuman", "annotation.odgt", "results.odgt"),
    "citypersons": ("citypersons", *JSON),
    "caltech": ("caltech", "annotations", "results"),
    "kitti": ("kitti", "label_2", "results"),
    "visdrone": ("visdrone", "annotations", "results"),
    "uavdt": ("uavdt", ".", "."),
    "bdd100k": ("bdd100k", "truth.json", "predictions.json"),
    "imagenet-det": ("imagenet-det", "xml", "predictions.txt"),
    "imagenet-vid": ("imagenet-vid", "Annotations", "dets.txt"),
    "dota": ("dota", "labelTxt", "results"),
    "dota-1.5": ("dota15", "labelTxt", "merged"),
    "hrsc2016": ("mmrotate", "truth.csv", "dets.csv"),
    "hrsc2016-12": ("mmrotate", "truth.csv", "dets.csv"),
    "dior-r": ("mmrotate", "truth.csv", "dets.csv"),
    "ultralytics-obb": ("ultralytics-obb", "truth.csv", "dets.csv"),
    "lvis-fixed": ("lvis-fixed-ap", *JSON),
    "aitod": ("aitod", *JSON),
    "sodad": ("sodad", *JSON),
    "tinyperson": ("tinyperson", *JSON),
    "crowdpose": ("crowdpose", *JSON),
    "wholebody": ("coco-wholebody", *JSON),
    "ov-coco": ("ov-coco", *JSON),
    "objects365": ("ov-coco", *JSON),
    "cityscapes": ("ov-coco", *JSON),
    "froc-luna16": ("luna16-froc", "annotations.csv", "results.csv"),
    "froc-boxes": ("deeplesion-froc", *JSON),
    "cgf1": ("cgf1", "truth_1.json", "dets.json"),
    "scoreless": ("sodad", *JSON),
}
"""Protocol -> folder of the goldens, truth and detections of case 1."""
NEAR = {"crowdpose": "coco-keypoints", "dota": "dota-1.5", "dota-1.5": "dota"}
NEAR |= {"hrsc2016": "dior-r", "hrsc2016-12": "dior-r", "dior-r": "hrsc2016"}
NEAR |= {"ultralytics-obb": "dior-r"}
"""The protocol that `explain` is asked to go to, instead of coco-bbox."""


def row(protocol: str) -> tuple[str, ...]:
    """The cells of a protocol: "yes", "no", or what is left out."""
    name, truth, detections = CASES[protocol]
    files = [str(folder(name).resolve() / "1" / each) for each in (truth, detections)]
    rules = [*files, "-p", protocol]
    both = [files[0], files[1], files[1], "-p", protocol, "--names", "a,b"]
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        Path("slices.csv").write_text(one_slice(rules))
        readers = [["eval", *rules], ["inspect", files[0], "-p", protocol], ["doctor", *rules]]
        inputs = ["--truth", files[0], "--detections", files[1]]
        receipt = [["eval", *rules, "--receipt", "r.json"], ["verify", "r.json", *inputs]]
        return (
            f"`{protocol}`",
            read_by(*readers),
            interval_method(rules),
            tried(*receipt),
            tried(["eval", *rules, "--slices", "slices.csv"]),
            tried(["compare", *both]),
            tried(["diagnose", *rules]),
            tried(["explain", *files, "--from", protocol, "--to", NEAR.get(protocol, "coco-bbox")]),
            tried(["report", *rules, "-o", "report.html"]),
            merged(rules),
        )


def run(words: list[str]) -> tuple[int, str, str]:
    """Exit code and both outputs of a command."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = dispatch(words)
    return code, out.getvalue(), err.getvalue()


def tried(*commands: list[str]) -> str:
    left_out = ""
    for words in commands:
        code, _, err = run(words)
        if code and not (words[0] == "doctor" and code == 1):  # 1: findings
            return "no"
        found = re.search(r"(?:not report(?:ed| them)|not compared)[^:\n]*: (.*)", err)
        left_out = f"without {found[1]}" if found else left_out
    return left_out or "yes"


def read_by(*commands: list[str]) -> str:
    """Which commands that read the files work."""
    refused = [words[0] for words in commands if tried(words) == "no"]
    return f"no {', '.join(refused)}" if refused else "yes"


def interval_method(rules: list[str]) -> str:
    code, out, _ = run(["eval", *rules, "--ci"])
    found = re.search(r"\|ci:(\w+)", out)
    return found[1] if found and not code else "no"


def merged(rules: list[str]) -> str:
    """What merging two parts gives; raises an error if a metric is not that of the whole."""
    truth, _ = read_truth_and_protocol(rules[0], rules[3])
    ids = list(map(str, truth.images.ids.tolist()))
    commands = []
    for part, chosen in (("a", ids[::2]), ("b", ids[1::2])):
        Path(f"{part}.txt").write_text("\n".join(chosen) + "\n")
        commands.append(["match", *rules, "--images", f"{part}.txt", "-o", f"{part}.npz"])
    merge = ["merge", "a.npz", "b.npz", "--format", "json"]
    found = tried(*commands, merge)
    if found != "no":
        whole, merged = (
            json.loads(run(words)[1])["metrics"]
            for words in (["eval", *rules, "--format", "json"], merge)
        )
        if any(whole[name] != value for name, value in merged.items()):
            raise AssertionError(f"{rules[3]}: merged parts give other numbers")
    return found


def one_slice(rules: list[str]) -> str:
    """A list of slices with the first image."""
    truth, _ = read_truth_and_protocol(rules[0], rules[3])
    return f"image,slice\n{truth.images.ids[0]},first\n"


OTHERS = {name for name in names() if name.startswith(("coco-", "voc"))}
OTHERS |= {"lvis", "lvis-boundary"}
"""COCO, VOC and LVIS, and their variants."""


def lines() -> dict[str, str]:
    """The rows of the page by protocol."""
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    rows = page.partition(BEGIN)[2].partition(END)[0].strip().splitlines()[2:]
    return {row.split("`")[1]: row for row in rows}


def test_every_protocol_of_a_benchmark_has_a_row() -> None:
    assert set(lines()) == set(CASES) == set(names()) - OTHERS


@pytest.mark.slow
@pytest.mark.parametrize("protocol", some(CASES, 10))
def test_the_row_is_what_the_commands_do(protocol: str) -> None:
    assert f"| {' | '.join(row(protocol))} |" == lines()[protocol]
