"""An ordinary evaluation imports what it uses, and nothing else: its time is mostly imports."""

import os
import subprocess
import sys

import pytest

from detmap.core.base.resources import folder
from detmap.kernels import native

SAMPLE = folder("datasets") / "shapes"
PATHS = [str(SAMPLE / "instances_test.json"), str(SAMPLE / "detections" / "contours.json")]
ELSEWHERE = (
    *(f"detmap.{name}" for name in ("compat", "ranking", "warmup")),
    *(f"detmap.analysis.{name}" for name in ("diagnosis", "html_report")),
    *(f"detmap.analysis.commands.{name}" for name in ("diagnose", "doctor", "report")),
    "detmap.analysis.commands.doctor_consultation",
    *(f"detmap.analysis.doctor.{name}" for name in ("examine", "fixes")),
    "detmap.annotation_tools.cvat",
    *(f"detmap.benchmarks.{name}" for name in ("overlaps", "suites", "warmup")),
    "detmap.benchmarks.bdd100k.files",
    "detmap.benchmarks.crowdhuman.files",
    "detmap.benchmarks.kitti.rules",
    "detmap.benchmarks.sa_co.files",
    *(f"detmap.benchmarks.shared.{name}" for name in ("image_pairs", "own_rules")),
    "detmap.cli.commands.compare",
    "detmap.core.streaming",
    *(f"detmap.core.adapters.{name}" for name in ("in_memory", "tabular", "text_per_image")),
    *(f"detmap.core.adapters.{name}" for name in ("voc", "pieces", "text_fields")),
    *(f"detmap.core.adapters.coco.{name}" for name in ("named_columns", "records")),
    *(f"detmap.core.adapters.joining.{name}" for name in ("additions", "image_sizes")),
    *(f"detmap.core.base.{name}" for name in ("npz_archive", "unique_keys")),
    *(f"detmap.core.bounded.{name}" for name in ("evaluation", "spill")),
    "detmap.core.curves.operating_points",
    *(f"detmap.core.matching.{name}" for name in ("selected_classes", "assignments")),
    *(f"detmap.core.matching.{name}" for name in ("matches_file", "matches_header")),
    *(f"detmap.core.output.{name}" for name in ("data_frames", "plots")),
    *(f"detmap.core.overlaps.{name}" for name in ("shape_records", "dense_pairs", "keypoints")),
    *(f"detmap.core.overlaps.{name}" for name in ("masks", "mask_errors", "mask_reader")),
    *(f"detmap.core.overlaps.{name}" for name in ("polygons", "ragged_runs", "rotated_boxes")),
    *(f"detmap.core.results.{name}" for name in ("json_content", "slices")),
    *(f"detmap.core.statistics.{name}" for name in ("comparison", "intervals")),
    "detmap.core.tables.regions",
    *(f"detmap.reproducibility.{name}" for name in ("explaining", "parity", "reproducing")),
    "detmap.reproducibility.receipt_files",
)
"""Parts of detmap that other commands, options and formats use."""
SHOWN = (
    "detmap.core.matching.matches_overview",
    "detmap.core.output.formats",
    "detmap.core.results.result_tables",
)
"""Parts that show a result."""
DOCTOR, RAW_ROWS = "detmap.analysis.doctor", "detmap.analysis.doctor.raw_rows"
PACKAGES = (
    *("IPython", "PIL", "cv2", "jinja2", "llvmlite", "matplotlib", "numba", "pandas", "polars"),
    *("pyarrow", "pycocotools", "pytest", "rich", "shtab", "torch", "xml", "yaml"),
    *("concurrent.futures", "csv", "difflib", "html", "logging", "numpy.ma", "unicodedata"),
    *("_hashlib", "random", "tempfile"),  # _hashlib loads OpenSSL: 3.5 MB
)
NUMBAS = (
    *("numpy.ma", "html", "csv", "difflib", "unicodedata", "xml", "yaml", "IPython", "pytest"),
    *("concurrent.futures", "logging", "_hashlib", "random", "tempfile"),
)
"""What numba imports, where there is no library of the kernels."""
COMMAND = f"from detmap.cli import main; main(['eval', *{PATHS}])"
CALL = f"import detmap; print(detmap.evaluate(*{PATHS}))"
METRICS = f"import detmap; print(detmap.evaluate(*{PATHS}).metrics)"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "more"),
    [(COMMAND, (RAW_ROWS,)), (CALL, (DOCTOR,)), (METRICS, (DOCTOR, *SHOWN))],
    ids=["command", "call", "metrics"],
)
def test_an_evaluation_imports_what_it_uses(code: str, more: tuple[str, ...]) -> None:
    code = f"{code}; import sys; print(*sys.modules, file=sys.stderr)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "AP50" in ran.stdout
    imported = set(ran.stderr.splitlines()[-1].split())
    assert "detmap.core.matching.engine" in imported
    unused = {*PACKAGES, *ELSEWHERE, *more}
    if native.library().opened is None or native.library().changed:
        unused -= {"numba", "llvmlite", *NUMBAS}
    assert sorted(unused & imported) == []


def test_the_command_line_keeps_openblas_to_one_thread_before_numpy_is_imported() -> None:
    code = (
        "import os, sys; from detmap.cli import process; process.begin();"
        "print(os.environ['OPENBLAS_NUM_THREADS'], 'numpy' in sys.modules)"
    )
    for given, wanted in ({}, "1 False"), ({"OPENBLAS_NUM_THREADS": "3"}, "3 False"):
        kept = {name: value for name, value in os.environ.items() if "_NUM_THREADS" not in name}
        ran = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=kept | given
        )
        assert ran.stdout.strip() == wanted


def test_the_names_are_those_of_modules() -> None:
    from importlib.util import find_spec

    names = (*ELSEWHERE, *SHOWN, RAW_ROWS)
    assert [name for name in names if find_spec(name) is None] == []
