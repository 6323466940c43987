"""Every protocol of a benchmark has what the page promises: sources, a section, goldens or the
reason for none, a slow twin, a LaTeX row, a fuzz target, and the official time or why not.
"""

import importlib
import inspect
import re
from pathlib import Path

import pytest

from detmap.core.protocol import load, names
from tests.benchmarks.test_command_table import CASES, OTHERS
from tests.support.real_data import data_path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "benchmarks.md").read_text()
PROTOCOLS = sorted(set(names()) - OTHERS)
COCO = {"bdd100k", "objects365", "cityscapes"}
"""COCO's rule under another name: its twin and its goldens are pycocotools, in tests/parity."""
NO_GOLDENS = {"hrsc2016-12", "objects365", "cityscapes", "scoreless"}
"""Those of hrsc2016 with another interpolation; COCO's rule; a protocol of detmap's own."""
CONCEPTS, ROTATED = "twins.test_open_images_froc_concepts", "twins.test_rotated"
TWINS = {
    "openimages-v2": (CONCEPTS, "test_open_images"),
    "openimages-challenge": (CONCEPTS, "test_open_images"),
    "froc-boxes": (CONCEPTS, "test_froc_of_boxes"),
    "cgf1": (CONCEPTS, "test_concepts"),
    "froc-luna16": ("test_froc", "test_any_spheres_as_restated"),
    "widerface": ("test_people", "test_faces_like_the_reference_implementation"),
    "crowdhuman": ("test_people", "test_crowds_like_the_reference_implementation"),
    "citypersons": ("twins.test_coco_family", "test_people_in_every_setup"),
    "caltech": ("twins.test_coco_family", "test_people_in_every_setup"),
    "imagenet-det": ("twins.test_coco_family", "test_imagenet_det"),
    "tinyperson": ("twins.test_coco_family", "test_tinyperson"),
    "aitod": ("twins.test_coco_family", "test_sizes_of_tiny_objects"),
    "sodad": ("twins.test_coco_family", "test_sizes_of_tiny_objects"),
    "lvis-fixed": ("twins.test_coco_family", "test_lvis_fixed"),
    "ov-coco": ("twins.test_coco_family", "test_ov_coco"),
    "kitti": ("test_kitti", "test_any_data_as_restated"),
    "visdrone": ("twins.test_video", "test_visdrone_with_regions"),
    "uavdt": ("twins.test_video", "test_uavdt_by_the_same_twin"),
    "imagenet-vid": ("twins.test_video", "test_vid_by_motion_and_area"),
    "crowdpose": ("twins.test_keypoints", "test_crowdpose"),
    "wholebody": ("twins.test_keypoints", "test_wholebody"),
    "scoreless": ("twins.test_scoreless", "test_counts_and_every_order"),
    "ultralytics-obb": (ROTATED, "test_the_best_unmatched_object_by_probiou"),
}
BEST_ANY = "test_the_best_object_matched_or_not"
BY_BEST_ANY = ("dota", "dota-1.5", "dior-r", "hrsc2016", "hrsc2016-12")
TWINS |= dict.fromkeys(BY_BEST_ANY, (ROTATED, BEST_ANY))
FUZZED = {"kitti": "samples", "coco": "lanes"}
"""The target of `tools/fuzz.py` for a format that a protocol names, beside `benchmarks`."""
TITLES = {
    "openimages": "Open Images", "widerface": "WIDER FACE", "crowdhuman": "CrowdHuman",
    "citypersons": "CityPersons", "caltech": "Caltech", "kitti": "KITTI", "visdrone": "VisDrone",
    "uavdt": "UAVDT", "bdd100k": "BDD100K", "imagenet-det": "ImageNet DET",
    "imagenet-vid": "ImageNet VID", "dota": "DOTA", "hrsc2016": "HRSC2016", "dior-r": "DIOR-R",
    "ultralytics-obb": "Ultralytics OBB", "lvis-fixed": "LVIS", "aitod": "AI-TOD",
    "sodad": "SODA-D", "tinyperson": "TinyPerson", "crowdpose": "CrowdPose",
    "wholebody": "COCO-WholeBody", "ov-coco": "OV-COCO", "froc-luna16": "LUNA16",
    "froc-boxes": "DeepLesion", "cgf1": "SA-Co", "objects365": "COCO boxes",
    "cityscapes": "COCO boxes", "scoreless": "without scores",
}  # fmt: skip


def page_of(protocol: str) -> Path:
    """The page that the first table of docs/benchmarks.md links to beside the protocol."""
    rows = [row for row in PAGE.splitlines() if row.startswith("|") and f"`{protocol}`" in row]
    link = re.search(r"\]\((benchmarks/[\w-]+\.md)\)", rows[0]) if rows else None
    if protocol == "scoreless":
        return ROOT / "docs" / "scoreless.md"
    if protocol in ("objects365", "cityscapes"):
        return ROOT / "docs" / "benchmarks" / "aerial-video.md"
    assert link is not None, f"docs/benchmarks.md: no row with a link has `{protocol}`"
    return ROOT / "docs" / link[1]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_page_and_sources(protocol: str) -> None:
    page = page_of(protocol).read_text()
    assert re.search(rf"(`|-p ){re.escape(protocol)}\b", page)
    assert "```" in page
    assert load(protocol).source


@pytest.mark.parametrize("protocol", sorted(set(PROTOCOLS) - COCO))
def test_twin(protocol: str) -> None:
    """A test that compares with a module of tests/reference."""
    name, test = TWINS[protocol]
    module = importlib.import_module(f"tests.benchmarks.{name}")
    assert "from tests.reference" in inspect.getsource(module)
    assert callable(getattr(module, test))


@pytest.mark.parametrize("protocol", sorted(set(PROTOCOLS) - NO_GOLDENS))
def test_goldens_and_latex(protocol: str) -> None:
    folder, truth, _ = CASES[protocol]
    place = data_path("benchmarks") / folder
    assert list(place.glob("goldens*.json"))
    assert (place / "1" / truth).exists()
    tests = (path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert sum(f'"{folder}"' in text for text in tests) > 1  # beside test_command_table.py


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_fuzz_target_of_its_files(protocol: str) -> None:
    from tools.fuzzing.benchmarks import KINDS

    damaged = {form for kind in KINDS for form in formats(kind.split()[0])}
    for form in formats(protocol) - damaged:
        assert (ROOT / "tools" / "fuzzing" / f"{FUZZED[form]}.py").is_file()


def formats(protocol: str) -> set[str]:
    """The formats that a protocol names."""
    files = load(protocol).files
    return {files.truth, files.detections} - {""}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_official_time_or_the_reason_for_none(protocol: str) -> None:
    times = PAGE.partition("## Time")[2].partition("## Commands")[0]
    title = next(title for name, title in TITLES.items() if protocol.startswith(name))
    assert title in times
