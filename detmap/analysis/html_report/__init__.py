"""The HTML report: one file, rendered from a template, charts and pictures.

Raises, where an optional package is missing, a `DetmapError` that names what to install.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from detmap.core.protocol import Protocol
from detmap.core.results.findings import Finding
from detmap.core.results.result import Result
from detmap.core.tables import Detections, Note, Truth
from detmap.core.tables.extension import extended, extended_by_all
from detmap.errors import DetmapError

if TYPE_CHECKING:  # it imports an optional package
    from detmap.analysis.html_report.gather import Run

KINDS = ("html", "md")
GENERAL = (
    *("data", "dataset", "annotations", "_annotations.coco", "instances", "labels", "truth", "gt"),
    *("ground_truth", "groundtruth", "val", "valid", "test", "train", "Annotations"),
)
"""Names of files and folders that do not name a data set."""


def require(*, pictures: bool) -> None:
    """A `DetmapError` where what the report needs is not installed."""
    needed = {"jinja2": True, "cv2": pictures, "PIL": pictures}
    for module, is_needed in needed.items():
        if is_needed and find_spec(module) is None:
            raise DetmapError("report", f"needs {module}", "pip install 'detmap-eval[report]'")


@dataclass(frozen=True, slots=True, eq=False)
class Analyzed:
    """What a report shows, before it is written.

    Parameters
    ----------
    runs : one detector, or two
    title : of the page
    inputs : names of the files, for the section on method
    detections : of each detector as they were given
    notes : on the comparison
    """

    runs: list[Run]
    title: str
    inputs: list[tuple[str, str]]
    detections: Mapping[str, Detections]
    notes: Sequence[Note]


def report(
    truth: Truth,
    detections: Mapping[str, Detections],
    protocol: Protocol,
    *,
    title: str | None = None,
    images: Path | None = None,
    kind: str = "html",
    receipt_of: Callable[[Detections, Result], Any] | None = None,
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
    seen = analyze(
        truth, detections, protocol, title=title, threads=threads, progress=progress, figure=figure
    )
    if kind == "md":
        from detmap.analysis.html_report import markdown

        return markdown.text(seen.runs, seen.title, findings, seen.notes).encode()
    return render(seen, images=images, receipt_of=receipt_of, findings=findings, progress=progress)


def analyze(
    truth: Truth,
    detections: Mapping[str, Detections],
    protocol: Protocol,
    *,
    title: str | None = None,
    threads: int | None = None,
    progress: Callable[[str], None] | None = None,
    figure: tuple[Path, str] | None = None,
) -> Analyzed:
    """Evaluates and diagnoses one detector, or two; parameters as of `report`.

    Raises
    ------
    DetmapError : as of `report`
    """
    from detmap.analysis.diagnosis.analysis import require_protocol

    require_protocol(protocol)
    require(pictures=False)
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
    if figure is not None:
        _write_figure(runs, *figure)
    inputs = [("truth", Path(truth.source).name)]
    inputs += [(f"detections, {key}", Path(t.source).name) for key, t in detections.items()]
    name = title or f"{' and '.join(detections)} on {data_set_name(truth.source)}"
    return Analyzed(runs, name, inputs, detections, notes)


def render(
    seen: Analyzed,
    *,
    images: Path | None = None,
    receipt_of: Callable[[Detections, Result], Any] | None = None,
    findings: Sequence[Finding] = (),
    progress: Callable[[str], None] | None = None,
    linked: bool = False,
) -> bytes:
    """The page of a report; parameters as of `report`.

    linked : whether its numbers and pictures link to the page of all images beside it
    """
    from detmap.analysis.html_report import page
    from detmap.analysis.html_report.image_files import Pictures

    if progress is not None:
        progress("comparing and drawing" if len(seen.runs) == 2 else "drawing")
    receipts = {}
    if receipt_of is not None:
        receipts = {
            run.name: receipt_of(seen.detections[run.name], run.result) for run in seen.runs
        }
    return page.html(
        seen.runs,
        title=seen.title,
        inputs=seen.inputs,
        pictures=Pictures(images, linked),
        receipts=receipts,
        findings=findings,
        remarks=seen.notes,
        linked=linked,
    ).encode()


def _write_figure(runs: Sequence[Run], path: Path, column: str) -> None:
    from detmap.analysis.html_report.paper_figure import picture
    from detmap.core.base import atomic_files

    atomic_files.write_bytes(path, picture(runs, path.suffix.lower().lstrip("."), column))


def data_set_name(path: str) -> str:
    """Returns the name of a data set: of a file or folder with a general name, its folder's.

    >>> data_set_name("boats/data.yaml"), data_set_name("coco/annotations/instances_val2017.json")
    ('boats', 'instances_val2017')
    """
    place = Path(path)
    own = place.stem if place.suffix else place.name
    for each in (own, *reversed(place.parts[:-1])):
        if each and each not in GENERAL and each not in (".", "..", place.anchor):
            return each
    return own or str(path)
