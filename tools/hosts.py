"""Runs detmap's integrations with the real hosts, each in a virtual environment of its own.

python tools/hosts.py supervision sahi        # installs pinned versions, tests, prints rows
python tools/hosts.py ultralytics --keep DIR  # keeps the environment for the next run

Hosts marked with * need several gigabytes (torch). detectron2 and torchvision's references are not
on the package index: give their folder, --source DIR. --shared uses one environment for all.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEST = (
    "pytest",
    "pytest-xdist",
    "hypothesis",
    "ml_dtypes",
    "pycocotools==2.0.11",
    "jinja2",
    "pandas",
)
TORCH = ("torch==2.13.0",)
TORCHVISION = "torchvision==0.28.0"  # the hosts that import it themselves


@dataclass(frozen=True)
class Host:
    packages: tuple[str, ...]
    tests: str
    equal: str
    select: str = ""

    @property
    def large(self) -> bool:
        return TORCH[0] in self.packages


HOSTS = {
    "torchmetrics": Host(
        ("torchmetrics==1.9.0", *TORCH), "test_torchmetrics.py", "every key, value and type"
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
    ),
    "lightly-train": Host(
        ("lightly-train==0.18.0", "torchmetrics==1.9.0", "faster-coco-eval", *TORCH, TORCHVISION),
        "test_torchmetrics_users.py",
        "every value",
        "lightly",
    ),
    "ultralytics": Host(
        ("ultralytics==8.4.190", *TORCH, TORCHVISION),
        "test_ultralytics.py",
        "val's numbers to 1e-14; the callback's AP is that of predictions.json",
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
        "(metric and not trainer) or (bad_input and evaluate)",
    ),
    "huggingface_hub": Host(("huggingface_hub",), "test_hugging_face.py", "AP", "card"),
    "transformers": Host(
        ("transformers==5.23.0", *TORCH, "pillow"),
        "test_hugging_face.py",
        "AP to 1e-6",
        "trainer or transformers",
    ),
    "mmengine": Host(("mmengine==0.10.7", *TORCH), "test_coco_hosts.py", "AP", "mmengine"),
    "detectron2": Host(
        ("fvcore", *TORCH, "iopath", "omegaconf", "yacs", "tabulate", "cloudpickle", "matplotlib"),
        "test_coco_hosts.py",
        "AP, AP per class",
        "detectron2",
    ),
    "torchvision": Host(
        ("pycocotools==2.0.11", *TORCH), "test_coco_hosts.py", "12 stats", "torchvision"
    ),
    "supervision": Host(
        ("supervision==0.31.2",), "test_supervision.py", "map50_95, map50, map75; AP of the files"
    ),
    "sahi": Host(("sahi==0.12.8",), "test_sahi.py", "the whole dict, with classwise"),
    "fiftyone": Host(("fiftyone==1.22.1",), "test_fiftyone.py", "matches; AP of the files"),
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
    "challenges": Host((), "test_challenges.py", "scores"),
}


def environment(place: Path, host: Host) -> Path:
    """Makes an environment with the host and detmap; returns its Python."""
    python = place / "bin" / "python"
    if not python.exists():
        venv.create(place, with_pip=True)
    install = [str(python), "-m", "pip", "install", "-q"]
    subprocess.run([*install, *host.packages, *TEST, f"{ROOT}[images,yolo]"], check=True)
    return python


def installed(python: Path, host: Host) -> str:
    """Returns the version of the host in an environment."""
    if not host.packages:
        return "-"
    package = re.split(r"[\[=]", host.packages[0])[0]
    words = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([str(python), "-c", words], capture_output=True, text=True).stdout.strip()


def run(name: str, place: Path, source: Path | None) -> bool:
    """Tests a host and prints its row."""
    host = HOSTS[name]
    python = environment(place, host)
    words = ["-m", "pytest", "-q", "-rs", "-o", "addopts=", "-p", "no:cacheprovider"]
    words += [f"tests/integrations/{each}" for each in (host.tests, "test_bad_input.py")]
    words += ["-k", host.select or name]
    paths = [str(ROOT), *([str(source)] if source else [])]
    start = time.perf_counter()
    done = subprocess.run(
        [str(python), *words],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
    )
    seconds = time.perf_counter() - start
    passed = done.returncode == 0 and " passed" in done.stdout and "SKIPPED" not in done.stdout
    if not passed:
        sys.stderr.write(done.stdout[-6000:] + done.stderr[-2000:])
    last = done.stdout.strip().rpartition("\n")[2]
    version = installed(python, host)
    print(
        f"| {name} | {version} | {last} | {host.equal if passed else 'FAILED'} | {seconds:.0f} s |"
    )
    return passed


def main() -> int:
    command = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    shown = ", ".join(f"{name}*" if host.large else name for name, host in HOSTS.items())
    command.add_argument("hosts", nargs="+", choices=HOSTS, metavar="HOST", help=shown)
    command.add_argument("--keep", type=Path, help="Keep the environments in this folder.")
    command.add_argument("--source", type=Path, help="Add a checkout of the host to the path.")
    command.add_argument("--shared", action="store_true", help="Use one environment for all hosts.")
    given = command.parse_args()
    passed = []
    with tempfile.TemporaryDirectory() as folder:
        for name in given.hosts:
            place = (given.keep or Path(folder)) / ("shared" if given.shared else name)
            passed.append(run(name, place, given.source))
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
