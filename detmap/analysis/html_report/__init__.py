"""The HTML report: one file, rendered from a template, charts and pictures.

Raises, where an optional package is missing, a `DetmapError` that names what to install.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from detmap.core.base.display_names import data_set_name
from detmap.core.protocol import Protocol
from detmap.core.results.findings import Finding
from detmap.core.results.receipt import Receipt
from detmap.core.results.result import Result
from detmap.core.tables import Detections, Truth
from detmap.core.tables.extension import extended, extended_by_all
from detmap.errors import DetmapError

if TYPE_CHECKING:  # it imports an optional package
    from detmap.analysis.html_report.gather import Run

KINDS = ("html", "md")


def require(*, pictures: bool) -> None:
    """A `DetmapError` where what the report needs is not installed."""
    needed = {"jinja2": True, "cv2": pictures, "PIL": pictures}
    for module, is_needed in needed.items():
        if is_needed and find_spec(module) is None:
            raise DetmapError("report", f"needs {module}", "pip install 'detmap-eval[report]'")


def report(
    truth: Truth,
    detections: Mapping[str, Detections],
    protocol: Protocol,
    *,
    title: str | None = None,
    images: Path | None = None,
    kind: str = "html",
    receipt_of: Callable[[Detections, Result], Receipt] | None = None,
    threads: int | None = None,
    findings: Sequence[Finding] = (),
    progress: Callable[[str], None] | None = None,
    figure: tuple[Path, str] | None = None,
) -> bytes:
    """The report of one detector, or of two on the same truth.

    Parameters
    ----------
    truth : the ground truth
    detections : by the detector's name, one or two
    protocol : the rules of its numbers
    title : of the page
    images : folder of the images, for crops of the worst mistakes
    kind : ``html``; or ``md``, for a comment
    receipt_of : makes the receipt of a detector's result, for the section on method
    findings : of the doctor, shown at the top
    progress : called with each step as it begins
    figure : file and column (``single``, ``double``) of a picture of the classes to write as well

    Raises
    ------
    DetmapError : a package that is needed is not there; more than two detectors; another kind
    """
    if kind not in KINDS:
        raise DetmapError("report: kind", repr(kind), f"the kinds are {', '.join(KINDS)}")
    from detmap.analysis.diagnosis.analysis import require_protocol

    require_protocol(protocol)
    require(pictures=images is not None)
    from detmap.analysis.html_report import markdown
    from detmap.analysis.html_report.gather import gather

    if len(detections) not in (1, 2):
        raise DetmapError("report", f"{len(detections)} detectors", "give one, or two to compare")
    say = progress or (lambda step: None)
    every, notes = extended_by_all(truth, detections)
    tables = {name: extended(table, every) for name, table in detections.items()}
    runs = [
        gather(name, every, table, protocol, threads=threads, progress=say)
        for name, table in tables.items()
    ]
    name = title or f"{' and '.join(detections)} on {data_set_name(truth.source)}"
    if figure is not None:
        _write_figure(runs, *figure)
    if kind == "md":
        return markdown.text(runs, name, findings, notes).encode()
    from detmap.analysis.html_report import page
    from detmap.analysis.html_report.image_files import Pictures

    say("comparing and drawing" if len(runs) == 2 else "drawing")
    inputs = [("truth", Path(truth.source).name)]
    inputs += [(f"detections, {key}", Path(t.source).name) for key, t in detections.items()]
    receipts = {}
    if receipt_of is not None:
        receipts = {run.name: receipt_of(detections[run.name], run.result) for run in runs}
    return page.html(
        runs,
        title=name,
        inputs=inputs,
        pictures=Pictures(images),
        receipts=receipts,
        findings=findings,
        remarks=notes,
    ).encode()


def _write_figure(runs: Sequence[Run], path: Path, column: str) -> None:
    from detmap.analysis.html_report.paper_figure import picture
    from detmap.core.base import atomic_files

    atomic_files.write_bytes(path, picture(runs, path.suffix.lower().lstrip("."), column))
