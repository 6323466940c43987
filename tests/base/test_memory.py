"""What does not fit is refused before it is tried."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.core.adapters.coco import scan_json as coco_scan
from detmap.core.base import memory
from detmap.core.matching import engine
from tests.support.running import python, run

SAMPLE = Path(__file__).resolve().parents[2] / "datasets" / "shapes"


@pytest.fixture
def nothing_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "SPARE", 0)
    monkeypatch.setattr(memory, "available", lambda: 1000)


@pytest.mark.parametrize("least", [1 << 20, 0], ids=["decoded", "scanned"])
def test_a_large_file(nothing_left: None, monkeypatch: pytest.MonkeyPatch, least: int) -> None:
    monkeypatch.setattr(coco_scan, "LEAST_SIZE", least)
    outcome = run("eval", SAMPLE / "instances_test.json", SAMPLE / "detections" / "contours.json")
    assert outcome.code == 2
    assert "instances_test.json" in outcome.err
    assert "GiB of memory" in outcome.err
    assert "detmap match --images" in outcome.err


def test_memory_is_given_back_or_the_c_library_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    class Library:
        def malloc_trim(self, pad: Any) -> None:
            asked.append(pad.value)

    monkeypatch.setattr(memory.os, "name", "posix")
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda _: Library())
    monkeypatch.setattr(memory, "_GIVEN_BACK", set())
    memory.give_back("matching")
    memory.give_back("matching")
    assert asked == [0], "a step gives back once, other steps for themselves"
    memory.give_back("reading")
    assert asked == [0, 0]
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda _: object())
    memory.give_back("a library that cannot")
    monkeypatch.setattr(memory.os, "name", "nt")
    monkeypatch.setattr(memory.ctypes, "CDLL", None)
    memory.give_back("a system that cannot")
    assert asked == [0, 0]


def test_large_batches_give_back_and_match_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(memory, "give_back", asked.append)
    paths = SAMPLE / "instances_test.json", SAMPLE / "detections" / "contours.json"
    expected = detmap.match(*paths)
    assert not asked
    monkeypatch.setattr(engine, "LARGE", 0)
    found = detmap.match(*paths)
    assert set(asked) == {"preparation", "largest class", "matching"}
    assert (found.tp == expected.tp).all()
    assert (found.ignored == expected.ignored).all()


@pytest.mark.parametrize("n", [3, 4])
def test_many_detections_give_memory_back(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(memory, "give_back", asked.append)
    monkeypatch.setattr(engine, "LARGE", 3)
    truth = detmap.truth_from_arrays([1], [1], [[0, 0, 9, 9]])
    boxes = [[0, 0, 9, 9]] * n
    detmap.match(truth, detmap.detections_from_arrays(truth, [1] * n, [1] * n, boxes, [0.5] * n))
    assert asked == (["preparation", "largest class", "matching"] if n > 3 else [])


def test_matches_that_do_not_fit(nothing_left: None) -> None:
    truth = detmap.truth_from_arrays([1], [1], [[0, 0, 9, 9]])
    n = 1000
    detections = detmap.detections_from_arrays(
        truth, np.ones(n), np.ones(n), np.ones((n, 4)), np.ones(n)
    )
    with pytest.raises(detmap.DataError, match="matching 100 detections"):
        detmap.evaluate(truth, detections)


def test_what_is_available_is_known_here() -> None:
    free = memory.available()
    assert free is None or free > 1 << 20
    memory.require(1 << 10, "here", "nothing much")


# ---- what counts as free


def container(folder: Path, limit: str, usage: str, version: int) -> Path:
    """The files of a container's limit, 7 of 10 MB of whose use caches files."""
    inner = folder if version == 2 else folder / "memory"
    inner.mkdir(exist_ok=True)
    names = ("memory.max", "memory.current") if version == 2 else V1
    for name, value in zip(names, (limit, usage), strict=True):
        (inner / name).write_text(f"{value}\n")
    prefix = "" if version == 2 else "total_"
    rows = ("anon 3000000", f"{prefix}inactive_file 5000000", f"{prefix}active_file 2000000")
    (inner / "memory.stat").write_text("\n".join(rows))
    return folder


V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes")


@pytest.mark.parametrize("version", [1, 2])
def test_pages_that_cache_files_count_as_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "none")
    monkeypatch.setattr(memory, "CGROUP", container(tmp_path, "12000000", "10000000", version))
    assert memory.available() == 9_000_000


def test_containers_without_limit_and_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    assert memory.available() is None
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable: 7 kB\n")
    assert memory.available() == 7 * 1024
    container(tmp_path, "max", "10000000", 2)
    assert memory.available() == 7 * 1024


# ---- many classes

MANY = """
import numpy as np
import detmap
n = 100_000
ids = np.arange(n)
truth = detmap.truth_from_arrays(
    np.arange(10),
    ids[:10] * 7,
    np.tile([0.0, 0, 10, 10], (10, 1)),
    categories={k: str(k) for k in ids.tolist()},
)
found = detmap.detections_from_arrays(
    truth, np.arange(10), ids[:10] * 7, np.tile([0.0, 0, 10, 9], (10, 1)), np.ones(10)
)
print(detmap.evaluate(truth, found).metrics["AP50"])
with open("/proc/self/status") as status:  # ru_maxrss has the memory of who started the process
    print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux says it")
def test_classes_without_objects_cost_next_to_nothing() -> None:
    """100,000 classes of 10 objects took 6 GB: terms of AP of every class."""
    python("-c", MANY)  # compiling takes a gigabyte of its own
    outcome = python("-c", MANY)
    ap, kilobytes = outcome.out.split()
    assert float(ap) == pytest.approx(1)
    assert int(kilobytes) < 1_000_000


def test_curves_that_do_not_fit_name_a_way_out_that_helps(nothing_left: None) -> None:
    truth = detmap.truth_from_arrays([1, 1], [1, 2], [[0, 0, 9, 9]] * 2)
    found = detmap.detections_from_arrays(truth, [1], [1], [[0, 0, 9, 9]], [0.5])
    matches = detmap.match(truth, found, detmap.load_protocol("coco-bbox"))
    what = "the curves of 2 classes with objects in 40 area ranges and thresholds"
    with pytest.raises(detmap.DataError, match=what) as caught:
        detmap.summarize(matches)
    assert "merge" not in caught.value.fix
    assert "--set ap.integrator=all_points" in caught.value.fix


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 kB"), (20_000, "20 kB"), (3e8, "300 MB"), (1.25e9, "1.2 GB")]
)
def test_sizes_are_shown_in_a_unit_that_fits(size: float, text: str) -> None:
    assert memory.shown(size) == text
