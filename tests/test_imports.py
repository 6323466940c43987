"""An ordinary evaluation imports what it uses, and nothing else: its time is mostly imports."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from detmap.base.resources import folder
from detmap.kernels import native

SAMPLE = folder("datasets") / "shapes"
PATHS = [str(SAMPLE / "instances_test.json"), str(SAMPLE / "detections" / "contours.json")]
ELSEWHERE = (
    *(
        "compat",
        "diagnosis",
        "doctor.examine",
        "doctor.fixes",
        "explaining",
        "html_report",
        "parity",
        "ranking",
    ),
    *("reproducing", "statistics", "streaming", "warmup", "base.npz_archive"),
    *("base.unique_keys", "bounded.limits", "bounded.spill", "tables.regions"),
    *(f"benchmarks.{name}" for name in ("image_pairs", "kitti", "warmup")),
    *("curves.operating_points", "results.json_content"),
    *(f"matching.{name}" for name in ("assignments", "matches_file", "matches_header")),
    *("results.curve_plots", "results.receipt", "results.slices"),
    *(f"adapters.{name}" for name in ("in_memory", "people", "tabular", "text_per_image", "voc")),
    *(f"adapters.{name}" for name in ("pieces", "scalabel", "text_fields")),
    *(f"adapters.coco.{name}" for name in ("named_columns", "records", "sa_co")),
    *(f"adapters.joining.{name}" for name in ("additions", "image_sizes")),
    *(f"overlaps.{name}" for name in ("dense_pairs", "keypoints", "masks", "mask_errors")),
    *(f"overlaps.{name}" for name in ("mask_reader", "polygon_iou", "polygons", "probiou")),
    *(f"overlaps.{name}" for name in ("ragged_runs", "rotated_boxes", "rotated_pairs")),
    "overlaps.shape_records",
    *(f"cli.commands.{name}" for name in ("compare", "diagnose", "doctor", "report")),
    "cli.receipt_files",
    *(f"output.{name}" for name in ("data_frames", "plot_panels", "plots")),
)
"""Parts of detmap that other commands, options and formats use."""
SHOWN = ("matching.matches_overview", "output", "results.result_tables")
"""Parts that show a result."""
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
    [(COMMAND, ("doctor.raw_rows",)), (CALL, ("doctor",)), (METRICS, ("doctor", *SHOWN))],
    ids=["command", "call", "metrics"],
)
def test_an_evaluation_imports_what_it_uses(code: str, more: tuple[str, ...]) -> None:
    code = f"{code}; import sys; print(*sys.modules, file=sys.stderr)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "AP50" in ran.stdout
    imported = set(ran.stderr.splitlines()[-1].split())
    assert "detmap.matching.engine" in imported
    unused = {*PACKAGES, *(f"detmap.{name}" for name in (*ELSEWHERE, *more))}
    if native.library()[0] is None:
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

    names = (*ELSEWHERE, *SHOWN, "doctor.raw_rows")
    assert [name for name in names if find_spec(f"detmap.{name}") is None] == []
