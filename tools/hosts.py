"""Runs detmap's integrations with the real hosts, each in a virtual environment of its own.

It runs detmap's tests of the integration, and the host's own tests with detmap in the place of what
they evaluate with.

    python tools/hosts.py supervision sahi        # installs pinned versions, tests, prints rows
    python tools/hosts.py ultralytics --keep DIR  # keeps the environment for the next run
    python tools/hosts.py torchmetrics --sources DIR --docs docs/integrations/backend.md

Hosts marked with * need several gigabytes (torch). --over DIR uses an environment that has torch,
torchvision and detmap. The package index has neither the own tests of most hosts nor detectron2:
DIR/HOST of --sources is a checkout of the host, at the tag of its version. --docs writes the rows
of the hosts that ran, between marks of a page.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("DETMAP_DATA", ROOT.parent / "shared" / "data"))
TEST = (
    "pytest",
    "pytest-xdist",
    "hypothesis",
    "ml_dtypes",
    "pycocotools==2.0.11",
    "jinja2",
    "pandas",
)
TORCH = ("torch==2.14.1",)
TORCHVISION = "torchvision==0.29.1"  # the hosts that import it themselves
MARKS = "<!-- tools/hosts.py: begin -->", "<!-- tools/hosts.py: end -->"
HEADER = """\
| host | version | detmap's tests of the integration | the host's own tests, with detmap |
|---|---|---|---|"""


@dataclass(frozen=True)
class Own:
    """The own tests of a host.

    Parameters
    ----------
    tests : files below the checkout of the host
    place : what detmap replaces, a key of `detmap_in_place.PLACES`
    packages : what the tests need besides the host
    version : of the tests, if another one than the host's
    path : the folder of the checkout from which the tests are imported
    data : files of the data beside the repository, and the folder where the tests expect them
    fails : how many fail with detmap, and why
    """

    tests: tuple[str, ...]
    place: str
    packages: tuple[str, ...] = ()
    version: str = ""
    path: str = ""
    data: tuple[str, str] | None = None
    fails: tuple[int, str] = (0, "")


@dataclass(frozen=True)
class Host:
    """A host of an integration.

    Parameters
    ----------
    packages : the host and what its tests need; the first one gives the version
    tests, select : the file of detmap's tests, and which of them
    equal : what detmap's tests compare
    own : the own tests of the host, or why they are not run
    version : of a host that is not on the package index
    """

    packages: tuple[str, ...]
    tests: str
    equal: str
    select: str = ""
    own: Own | str = "do not evaluate detections"
    version: str = ""

    @property
    def large(self) -> bool:
        return TORCH[0] in self.packages


HOSTS = {
    "torchmetrics": Host(
        ("torchmetrics==1.9.0", "faster-coco-eval==1.8.0", *TORCH, TORCHVISION),
        "test_torchmetrics.py",
        "every key, value and type",
        own=Own(
            ("tests/unittests/detection/test_map.py",),
            "torchmetrics",
            ("cachier", "pytest-rerunfailures", "pytest-timeout", "scikit-learn", "scikit-image"),
            path="tests",
            data=("coco-val2014-100", "tests/_data/detection"),
        ),
    ),
    "lightning": Host(
        ("lightning==2.6.6", "torchmetrics==1.9.0", *TORCH), "test_lightning.py", "every number"
    ),
    "rf-detr": Host(
        (
            *("rfdetr==1.11.2", "hotcoco==1.0.1", "vernier", "ultrafast-pycocotools"),
            *("torchmetrics==1.9.0", "faster-coco-eval", "pytorch_lightning"),
            *("peft", "simplejpeg", *TORCH, TORCHVISION),
        ),
        "test_torchmetrics_users.py",
        "every value",
        "rf_detr",
        own="not run: not in its package, and no repository of this version was at hand",
    ),
    "lightly-train": Host(
        ("lightly-train==0.18.0", "torchmetrics==1.9.0", "faster-coco-eval", *TORCH, TORCHVISION),
        "test_torchmetrics_users.py",
        "every value",
        "lightly",
        own=Own(
            (
                "tests/_metrics/test_mean_average_precision.py",
                "tests/_metrics/detection",
                "tests/_metrics/instance_segmentation",
            ),
            "torchmetrics",
            ("pytest-mock",),
        ),
    ),
    "ultralytics": Host(
        ("ultralytics==8.4.190", *TORCH, TORCHVISION),
        "test_ultralytics.py",
        "val's numbers to 1e-14; the callback's AP is that of predictions.json",
        own="not run: need weights and images from the network",
    ),
    "mlflow": Host(("mlflow==3.17.2",), "test_trackers.py", "all numbers", "mlflow"),
    "wandb": Host(("wandb==0.31.0",), "test_trackers.py", "all numbers", "wandb"),
    "tensorboard": Host(
        ("tensorboard==2.21.0", *TORCH), "test_trackers.py", "all numbers as float32", "tensorb"
    ),
    "evaluate": Host(
        ("evaluate==0.4.6", "datasets==5.2.0"),
        "test_hugging_face.py",
        "all metrics and classes",
        "(metric and not trainer and not torchmetrics) or (bad_images and evaluate)",
    ),
    "huggingface_hub": Host(("huggingface_hub",), "test_hugging_face.py", "AP", "card"),
    "transformers": Host(
        ("transformers==5.23.0", *TORCH, TORCHVISION, "pillow"),
        "test_hugging_face.py",
        "AP to 1e-6",
        "trainer or transformers",
    ),
    "mmengine": Host(("mmengine==0.10.7", *TORCH), "test_coco_hosts.py", "AP", "mmengine"),
    "mmdet": Host((), "", "", own="not run: needs mmcv, whose operators would have to be compiled"),
    "detectron2": Host(
        ("fvcore", *TORCH, "iopath", "omegaconf", "yacs", "tabulate", "cloudpickle", "matplotlib"),
        "test_coco_hosts.py",
        "AP, AP per class",
        "detectron2",
        own="not run: both tests fail with pycocotools 2.0.11 without detmap, too",
        version="02b5c4e2, June 2026",
    ),
    "torchvision": Host(
        ("pycocotools==2.0.11", *TORCH),
        "test_coco_hosts.py",
        "12 stats",
        "torchvision",
        own="not run: its references are not on the package index",
        version="references",
    ),
    "supervision": Host(
        ("supervision==0.31.2",),
        "test_supervision.py",
        "map50_95, map50, map75; AP of the files",
        own=Own(
            (
                "test/metrics/test_mean_average_precision.py",
                "test/metrics/test_mean_average_precision_area.py",
            ),
            "supervision",
            version="0.27.0",
            fails=(5, "call a private method of its metric"),
        ),
    ),
    "sahi": Host(
        ("sahi==0.12.8",),
        "test_sahi.py",
        "the whole dict, with classwise",
        own=Own(("tests/test_coco_evaluation.py",), "pycocotools", ("ultrafast-pycocotools",)),
    ),
    "fiftyone": Host(
        ("fiftyone==1.22.1",),
        "test_fiftyone.py",
        "matches; AP of the files",
        own="not run: need MongoDB",
    ),
    "pytest": Host(("pytest",), "test_pytest_plugin.py", "gates", "pytest_plugin"),
    "pre-commit": Host(
        ("pre-commit==4.7.0",), "test_pre_commit.py", "findings and exit codes", "hooks"
    ),
    "ray": Host(
        ("ray[data]==2.60.0", "pyarrow"), "test_clusters.py", "every number, signature", "ray"
    ),
    "spark": Host(
        ("pyspark==4.3.0", "pyarrow"), "test_clusters.py", "every number, signature", "spark"
    ),
    "dask": Host(
        ("dask==2026.8.0", "distributed==2026.8.0", "pyarrow"),
        "test_clusters.py",
        "every number, signature",
        "dask",
    ),
    "challenges": Host((), "test_challenges.py", "scores", version="no package"),
}


class Ran(NamedTuple):
    """Counts of a run of pytest, and whether it was as it should be."""

    passed: int
    failed: int
    skipped: int
    output: str


def environment(place: Path, packages: Sequence[str], over: Path | None) -> Path:
    """Makes an environment with packages and detmap, or above one that has detmap; returns its
    Python.
    """
    python = place / "bin" / "python"
    if not python.exists():
        venv.create(place, with_pip=over is None)
        if over is not None:
            (site,) = place.glob("lib/python*/site-packages")
            below = over.resolve() / site.relative_to(place)
            (site / "over.pth").write_text(f"{below}\n")
    needed = [*packages, *TEST, *([] if over else [f"{ROOT}[images,yolo]"])]
    subprocess.run([str(python), "-m", "pip", "install", "-q", *needed], check=True)
    return python


def installed(python: Path, host: Host) -> str:
    """Returns the version of the host in an environment."""
    if host.version:
        return host.version
    package = re.split(r"[\[=]", host.packages[0])[0]
    words = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([str(python), "-c", words], capture_output=True, text=True).stdout.strip()


def run_tests(python: Path, tests: Sequence[str], folder: Path, paths: Sequence[Path]) -> Ran:
    """Runs pytest in a folder."""
    words = ["-m", "pytest", "-q", "-rfEs", "-o", "addopts=", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(
        [str(python), *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths)), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
    )
    last = re.findall(
        r"(\d+) (passed|failed|skipped|error)", done.stdout.strip().rpartition("\n")[2]
    )
    counts = dict.fromkeys(("passed", "failed", "skipped", "error"), 0)
    counts |= {kind: int(number) for number, kind in last}
    broken = done.returncode not in (0, 1)
    failed = counts["failed"] + counts["error"] + broken
    output = done.stdout + done.stderr
    return Ran(counts["passed"], failed, counts["skipped"], output)


def own_tests(own: Own, python: Path, source: Path) -> tuple[str, bool]:
    """Runs the own tests of a host; returns the cell of the table, and whether it is as known."""
    if own.data is not None:
        name, place = own.data
        shutil.copytree(DATA / name, source / place, dirs_exist_ok=True)
    paths = [ROOT, ROOT / "tools" / "hosting", source / own.path]
    os.environ["DETMAP_IN_PLACE_OF"] = own.place
    ran = run_tests(python, ["-p", "detmap_in_place", *own.tests], source, paths)
    used = re.search(r"detmap ran ([1-9]\d*) kernels", ran.output)
    as_known = bool(used) and ran.passed > 0 and ran.failed == own.fails[0]
    if not as_known:
        sys.stderr.write(ran.output[-6000:])
    cell = f"{ran.passed} of {ran.passed + ran.failed} pass"
    cell += f"; {ran.failed} {own.fails[1] if as_known else 'FAILED'}" * bool(ran.failed)
    cell += f"; {ran.skipped} skipped" * bool(ran.skipped)
    cell += f" (tests of {own.version})" * bool(own.version)
    return f"{cell}, in place of {own.place}", as_known


def run(name: str, place: Path, sources: Path | None, over: Path | None) -> tuple[str, bool]:
    """Tests a host; returns its row, and whether all is as known."""
    host, own = HOSTS[name], HOSTS[name].own
    source = sources / name if sources and (sources / name).exists() else None
    packages = (*host.packages, *(own.packages if isinstance(own, Own) else ()))
    start = time.perf_counter()
    python = environment(place, packages, over)
    files = [f"tests/integrations/{each}" for each in (host.tests, "test_bad_input.py")]
    paths = [ROOT, *([source] if source else [])]
    ran = run_tests(python, [*files, "-m", "", "-k", host.select or name], ROOT, paths)
    passed = ran.passed > 0 and not ran.failed and not ran.skipped
    if not passed:
        sys.stderr.write(ran.output[-6000:])
    cell = f"{ran.passed} pass: {host.equal}" if passed else "FAILED"
    if isinstance(own, str):
        theirs, as_known = own, True
    elif source is None:
        theirs, as_known = "not run: give --sources", False
    else:
        theirs, as_known = own_tests(own, python, source)
    print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    return f"| {name} | {installed(python, host)} | {cell} | {theirs} |", passed and as_known


def written(page: str, rows: Mapping[str, str]) -> str:
    """Returns the page with these rows; other hosts keep theirs, those without any say so."""
    before, old, after = re.split("|".join(map(re.escape, MARKS)), page)
    ran = (
        line for line in old.splitlines() if line.startswith("| ") and " | not run |" not in line
    )
    kept = {line.split(" | ")[0][2:]: line for line in ran}
    none = {
        name: f"| {name} | - | not run | {host.own if isinstance(host.own, str) else 'not run'} |"
        for name, host in HOSTS.items()
    }
    lines = [(none | kept | rows)[name] for name in HOSTS]
    return f"{before}{MARKS[0]}\n{HEADER}\n" + "\n".join(lines) + f"\n{MARKS[1]}{after}"


def main() -> int:
    command = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    shown = ", ".join(f"{name}*" if host.large else name for name, host in HOSTS.items())
    command.add_argument("hosts", nargs="+", choices=HOSTS, metavar="HOST", help=shown)
    command.add_argument("--keep", type=Path, help="Keep the environments in this folder.")
    command.add_argument("--sources", type=Path, help="Folder with checkouts of hosts by name.")
    command.add_argument("--over", type=Path, help="Use the packages of this environment, too.")
    command.add_argument("--docs", type=Path, help="Write the rows to this page.")
    given = command.parse_args()
    as_known = []
    with tempfile.TemporaryDirectory() as folder:
        for name in given.hosts:
            row, good = run(name, (given.keep or Path(folder)) / name, given.sources, given.over)
            print(row, flush=True)
            as_known.append(good)
            if given.docs is not None and good:
                page = written(given.docs.read_text(encoding="utf-8"), {name: row})
                given.docs.write_text(page, encoding="utf-8")
    return 0 if all(as_known) else 1


if __name__ == "__main__":
    sys.exit(main())
