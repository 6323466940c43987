"""The core works without its wings: each is deleted from a copy, and all of them together."""

from pathlib import Path

import pytest

from detmap import wings
from tests.support.package_source import copy_without
from tests.support.running import python, run

WINGS = {
    "analysis": ("analysis", "doctor"),
    "annotation_tools": ("annotation_tools", "convert"),
    "benchmarks": ("benchmarks", "suite"),
    "compat": ("compat", ""),
    "integrations": ("integrations", ""),
    "ranking": ("ranking", "rank"),
    "reproducibility": ("reproducibility", "explain"),
}
SAMPLE = Path("datasets") / "shapes"
TRUTH, FOUND = SAMPLE / "instances_test.json", SAMPLE / "detections" / "contours.json"
MEMORY = """
import detmap
truth = detmap.truth_from_arrays([1], [1], [[0, 0, 9, 9]])
found = detmap.detections_from_arrays(truth, [1], [1], [[0, 0, 9, 9]], [.5])
print(detmap.evaluate(truth, found), list(detmap.evaluate(truth, found).findings))
"""

ABSENT = """
import detmap
try:
    detmap.convert
except AttributeError as error:
    print(error)
"""


def ran(folder: Path, *words: object) -> tuple[int, str]:
    """Exit code and output of Python in the folder."""
    return python(*words, cwd=folder, PYTHONPATH=folder)[:2]


def outcomes(folder: Path) -> dict[str, tuple[int, str]]:
    """What the commands of the core print."""
    detmap = ("-m", "detmap")
    half, parts = "half.txt", "part.npz"  # as the outputs name them
    (folder / half).write_text("1\n2\n3\n")
    voc = (SAMPLE, SAMPLE / "detections" / "contours", "-p", "voc2007", "--format", "json")
    other = SAMPLE / "detections" / "template.json"
    commands = {
        "coco": ("eval", TRUTH, FOUND, "--per-class"),
        "voc": ("eval", *voc),
        "intervals": ("eval", TRUTH, FOUND, "--ci", "--ties", "--format", "json"),
        "match": ("match", TRUTH, FOUND, "-p", "coco-bbox", "--images", half, "-o", parts),
        "merge": ("merge", parts),
        "compare": ("compare", TRUTH, FOUND, other, "-p", "coco-bbox"),
    }
    return {
        **{name: ran(folder, *detmap, *words) for name, words in commands.items()},
        "memory": ran(folder, "-c", MEMORY),
        "help": (ran(folder, *detmap, "--help")[0], ""),
    }


@pytest.mark.parametrize("output", ["plot", "errors", "receipt"])
def test_an_output_of_a_missing_wing_is_refused_first(
    output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wings, "is_installed", lambda place: ".cli" in place)
    done = run("eval", "no file", FOUND, f"--{output}", tmp_path / "x.png")
    assert (done.code, "this part of detmap is not installed" in done.err) == (2, True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    return outcomes(copy_without(tmp_path_factory.mktemp("whole")))


@pytest.mark.slow
@pytest.mark.parametrize("wing", [*WINGS, "all"])
def test_a_wing_can_be_taken_off(
    wing: str, tmp_path: Path, whole: dict[str, tuple[int, str]]
) -> None:
    assert all(code == 0 for code, _ in whole.values())
    wings = [*WINGS] if wing == "all" else [wing]
    folder = copy_without(tmp_path, *wings)
    assert outcomes(folder) == whole
    for command in [WINGS[each][1] for each in wings if WINGS[each][1]]:
        assert ran(folder, "-m", "detmap", command, "--help")[0] == 2
    if wing == "all":
        assert "not installed" in ran(folder, "-c", ABSENT)[1]
