"""`detmap.report`: the report of one detector or two, as a file."""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from detmap.analysis import html_report
from detmap.analysis.browse import writer
from detmap.analysis.browse.pictures import LARGEST, SIDE, SMALLEST, Count, Wanted
from detmap.analysis.diagnosis.analysis import require_protocol
from detmap.analysis.html_report.image_folders import find_folder
from detmap.compare import are_detectors
from detmap.core.base import atomic_files
from detmap.core.base.display_names import detector_names
from detmap.core.protocol import Protocol
from detmap.core.results.result import Result
from detmap.core.tables import Detections, Truth
from detmap.core.tables.extension import extended
from detmap.errors import DataError, DetmapError, few
from detmap.evaluate import read_truth_and_protocol
from detmap.files import detections_of, takes_reading, truth_options

FORMATS = ("html", "md", "pdf", "png", "folder")
Say = Callable[[str], None]


@takes_reading
def report(
    truth: Any,
    detections: Any,
    other: Any = None,
    protocol: Protocol | str | None = None,
    *,
    output: str | Path = "report.html",
    title: str | None = None,
    images: str | Path | None = None,
    link: bool = False,
    image_size: int | None = None,
    format: str | None = None,
    figure: str | Path | None = None,
    column: str = "single",
    settings: Mapping[str, Any] | None = None,
    threads: int | None = None,
    **reading: Any,
) -> Path:
    """Writes a report about one detector, or a comparison of two.

    >>> import detmap
    >>> path = detmap.report("shapes", "shapes/detections/contours", output="report.md")
    >>> path.read_text()[:12]
    '**mAP 60.4 ('

    Parameters
    ----------
    truth : as in `detmap.evaluate`
    detections : as in `detmap.evaluate`; or a dict from name to one or two of these, or a list
    other : a second detector
    protocol, settings, threads : as in `detmap.evaluate`
    output : the file to write, or a folder (a path without suffix), that also shows every image
    title : of the page (default: names of the inputs)
    images : folder of the images (default: found beside the ground truth)
    link : whether a folder links to the images instead of copying them
    image_size : longest side of the copies in a folder, in pixels (default: 480)
    format : ``html``, ``md``, ``pdf``, ``png`` or ``folder`` (default: by the suffix of `output`)
    figure : also write a figure of the classes for a paper (.pdf, .svg, .png, .eps)
    column : width of the figure, ``single`` or ``double``
    reading : options of ``detmap report``: ``split``, ``truth_format``, ``unknown`` ...

    Returns
    -------
    the path of the report

    Raises
    ------
    DetmapError : invalid input, a missing package, or the write fails
    """
    if type(detections) is list and other is None and are_detectors(detections):
        detections, other = _one_or_two(detections)
    _require_named(protocol if _is_output(protocol) else other)
    kind = kind_of_file(output, format)
    check_folder(Path(output), kind, link, image_size)
    table, rules = read_truth_and_protocol(truth, protocol, settings, **truth_options(reading))
    require_protocol(rules)
    seen, tables = table, {}
    for name, each in _detectors(detections, other).items():
        tables[name] = detections_of(each, seen, rules, reading)
        seen = extended(seen, tables[name])
    folder, _ = images_of(table, truth, images, reading.get("split"))
    _, notes = write(
        Path(output),
        table,
        tables,
        rules,
        kind=kind,
        title=title,
        wanted=Wanted(folder, link, image_size or SIDE),
        threads=threads,
        figure=None if figure is None else (Path(figure), column),
    )
    for note in notes if images is not None else ():
        warnings.warn(note, stacklevel=3)
    return Path(output)


def _one_or_two(detectors: list[Any]) -> tuple[Any, Any]:
    if len(detectors) > 2:
        raise DataError("report", f"{len(detectors)} detectors", "give one, or two")
    return detectors[0], detectors[1] if len(detectors) == 2 else None


def _require_named(given: Any) -> None:
    """Refuses an output that is given by position."""
    if _is_output(given):
        what = f"{str(given)!r} is given as a detector or a protocol, and does not exist"
        raise DataError("report", what, f"write output={str(given)!r}")


def _is_output(given: Any) -> bool:
    """Checks for a path to write, given by position as a detector or a protocol."""
    text = str(given) if isinstance(given, str | Path) else ""
    known = text.endswith(("/", os.sep)) or Path(text).suffix.lstrip(".") in FORMATS
    return known and not Path(text).exists()


def _detectors(detections: Any, other: Any) -> dict[str, Any]:
    """The detectors by name."""
    if type(detections) is dict and other is None and not _is_data(detections):
        return {str(name): each for name, each in detections.items()}
    given = [detections] if other is None else [detections, other]
    return dict(zip(detector_names(given), given, strict=True))


def _is_data(thing: Mapping[str, Any]) -> bool:
    """Checks if a dict is detections, not a dict of detectors."""
    from detmap.core.adapters.in_memory import python_objects

    if python_objects.kind_of(thing) != "json":
        return True
    return "annotations" in thing or "images" in thing


def kind_of_file(output: str | Path, format: str | None) -> str:
    """Returns the format of a report: the given one, or by the suffix; a path without suffix or
    of a folder is a folder.

    Raises
    ------
    DataError : an unknown format or suffix
    """
    path = Path(output)
    suffix = path.suffix.lower().lstrip(".")
    is_folder = not suffix or path.is_dir() or str(output).endswith(("/", os.sep))
    named = "folder" if is_folder else {"htm": "html", "markdown": "md"}.get(suffix, suffix)
    kind = format or named
    if kind not in FORMATS:
        what = f"no format {kind!r}"
        raise DataError(f"report: {output}", what, f"the formats are {', '.join(FORMATS)}")
    return kind


def check_folder(output: Path, kind: str, link: bool, image_size: int | None) -> None:
    """Raises `DetmapError` if a report folder would replace something else, or for an option of
    folders that has no effect.
    """
    given = {"--link": link, "--image-size": image_size is not None}
    if kind != "folder":
        for name in (name for name, is_given in given.items() if is_given):
            fix = "name a folder with -o, such as -o report/"
            raise DetmapError("report", f"{name} needs a report folder", fix)
        return
    writer.require_place(output)
    if all(given.values()):
        what, fix = "--image-size has no effect with --link", "leave out one of them"
        raise DetmapError("report", what, fix)
    if image_size is not None and not SMALLEST <= image_size <= LARGEST:
        what = f"{image_size} pixels as the longest side of a copy"
        raise DetmapError("report: image_size", what, f"give a number from {SMALLEST} to {LARGEST}")


def images_of(
    truth: Truth, source: Any, images: str | Path | None, split: str | None
) -> tuple[Path | None, str]:
    """Returns the folder of the images, and a sentence about it; "" if the user gives it.

    Without the packages that read images no folder is looked for.
    """
    if images is not None:
        return Path(images), ""
    if any(find_spec(name) is None for name in ("cv2", "PIL")):
        return None, ""
    folder, tried = find_folder(truth.images, source, split)
    if folder is not None:
        return folder, f"images are read from {folder}"
    where = f": looked in {few(tried)}" if tried else ""
    return None, f"no images were found{where}; --images DIR names their folder"


def write(
    output: Path,
    truth: Truth,
    tables: Mapping[str, Detections],
    rules: Protocol,
    *,
    kind: str,
    title: str | None,
    wanted: Wanted,
    threads: int | None,
    figure: tuple[Path, str] | None,
    receipt_of: Callable[[Detections, Result], Any] | None = None,
    findings: Sequence[Any] = (),
    progress: Say | None = None,
    count: Count | None = None,
) -> tuple[int, list[str]]:
    """Writes a report in one of `FORMATS`; parameters as in `html_report.report`. Returns its size
    in bytes, and notes on the pictures of a folder.

    wanted : the folder of the images, and how a folder shows them

    Raises
    ------
    DetmapError : a missing package or program, or the write fails
    """
    from detmap.analysis import chromium

    if not tables:
        raise DetmapError("report", "no detectors", "give one, or two to compare")
    if kind in ("pdf", "png"):
        chromium.find()
    analyzing: dict[str, Any] = {"title": title, "threads": threads, "figure": figure}
    showing: dict[str, Any] = {"receipt_of": receipt_of, "findings": findings}
    showing |= {"images": wanted.folder, "progress": progress}
    say = progress or (lambda step: None)
    if kind == "folder":
        html_report.require(pictures=wanted.folder is not None)
        seen = html_report.analyze(truth, tables, rules, progress=progress, **analyzing)
        index = html_report.render(seen, linked=True, **showing)
        detectors = {run.name: (run.diagnosis, run.points[0].score) for run in seen.runs}
        say("writing the page of all images")
        return writer.write(
            output,
            index,
            detectors,
            title=seen.title,
            wanted=wanted,
            say=say,
            count=count or (lambda done, of: None),
        )
    page = "md" if kind == "md" else "html"
    content = html_report.report(truth, tables, rules, kind=page, **analyzing, **showing)
    if kind in ("pdf", "png"):
        say(f"printing to {kind.upper()}")
        content = chromium.pdf(content) if kind == "pdf" else chromium.png(content)
    atomic_files.write_bytes(output, content)
    return len(content), []
