"""Render the page: every table and chart, then the template."""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from detmap.analysis.diagnosis import sections as diagnosed
from detmap.analysis.html_report import figures, gallery, report_tables, row_figures, suspects
from detmap.analysis.html_report.confusion_figures import confused
from detmap.analysis.html_report.gather import Run
from detmap.analysis.html_report.image_files import Pictures
from detmap.analysis.html_report.verdict import better, decide
from detmap.analysis.html_report.what_changed import changed
from detmap.core.base.printable import shown
from detmap.core.results.findings import Finding
from detmap.core.tables import Note
from detmap.errors import counted
from detmap.version import __version__

HERE = Path(__file__).parent
TEXT_COLUMNS = (
    *("range", "meaning", "true", "predicted", "instead", "image", "class", "kind", "metric"),
    *("label", "detected", "reason", "detector"),
)
SECTIONS = (
    ("summary", "Summary"),
    ("classes", "Classes"),
    ("costs", "Errors"),
    ("slices", "Subsets"),
    ("curves", "Curves"),
    ("confusion", "Confusion"),
    ("mistakes", "Mistakes"),
    ("images", "Images"),
    ("data", "Labels"),
    *((each.name, each.title) for each in diagnosed.SECTIONS if each.title),
    ("method", "Method"),
)
CONTROLS = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
"""Control characters, of the direction of text too: a name with them could disguise others."""
FEW_CLASSES, MANY_CLASSES = 12, 30


def html(
    runs: Sequence[Run],
    *,
    title: str,
    inputs: Sequence[tuple[str, str]],
    pictures: Pictures,
    receipts: Mapping[str, Any],
    findings: Sequence[Finding] = (),
    remarks: Sequence[Note] = (),
    linked: bool = False,
) -> str:
    """Render the page.

    Parameters
    ----------
    runs : one detector, or two on the same truth
    inputs : names and values for the section on method
    pictures : where the images are
    receipts : of each detector, by its name
    findings : of the doctor
    remarks : on the comparison, shown below the verdict
    linked : whether numbers and pictures link to the page of all images beside it
    """
    # Over 60 lines: one line per value of the template.
    style, script = ((HERE / name).read_text("utf-8") for name in ("style.css", "script.js"))
    first, two = runs[0], len(runs) == 2
    counts = first.result.counts()
    made = _template().render(
        title=title,
        findings=findings,
        remarks=[str(each) for each in remarks],
        policy=policy(style, script),
        style=Markup(style),
        script=Markup(script),
        protocol=first.result.protocol.title,
        counts=", ".join(
            counted(counts[key], noun)
            for key, noun in (("images", "image"), ("objects", "object"), ("classes", "class"))
        ),
        two=two,
        linked=linked,
        runs=runs,
        sections=SECTIONS,
        text_columns=TEXT_COLUMNS,
        overlap=first.diagnosis.overlap_name,
        iou=f"{first.diagnosis.iou:g}",
        verdict=decide(runs),
        changed=changed(*runs) if two else [],
        shares=figures.shares(runs[0], runs[1], linked) if two else "",
        interval_text=report_tables.interval_text(runs),
        metrics=report_tables.metrics(runs),
        class_rows=row_figures.classes(runs, linked),
        classes=report_tables.classes(runs),
        unlisted_classes=report_tables.unlisted_classes(runs),
        undefined_classes=report_tables.undefined_classes(runs),
        many=len(first.diagnosis.truth.categories) > MANY_CLASSES,
        few=len(first.diagnosis.truth.categories) <= FEW_CLASSES,
        multiples=figures.multiples(runs),
        n_curves=sum(row["objects"] > 0 for row in first.result.per_class),
        cost_rows=row_figures.costs(runs, linked),
        costs=report_tables.costs(runs),
        slice_rows=row_figures.slices(runs),
        sliced=report_tables.sliced(runs),
        mean=figures.mean(runs),
        panels=[each for each in (figures.reliability(runs), figures.scores(runs)) if each],
        localized=figures.localized(runs),
        over_iou=figures.over_iou(runs),
        operating=[figures.operating(run, two) for run in runs],
        calibration=report_tables.calibrated(runs),
        best=report_tables.best(runs),
        lrp=report_tables.lrp(runs),
        confused=confused(runs, linked),
        pairs=report_tables.confused(runs),
        **_pictured(runs, pictures),
        added=[each for each in diagnosed.SECTIONS if each.title],
        method=report_tables.method(runs, inputs, receipts),
        receipts=[(name, each.to_bytes().decode()) for name, each in receipts.items()],
        notes=[str(note) for note in report_tables.notes(runs)] + pictures.notes(),
        version=__version__,
    )
    return CONTROLS.sub(lambda sign: shown(sign[0]), made)


def _pictured(runs: Sequence[Run], pictures: Pictures) -> dict[str, Any]:
    """Return the template's values on single images: mistakes, and labels of the better run."""
    reviewed = better(runs)
    return {
        "pictures": pictures.folder is not None,
        "mistakes": gallery.mistakes(runs, pictures),
        "image_table": report_tables.images(runs),
        "reviewed": reviewed.name,
        "suspected": gallery.suspected(reviewed, pictures, "ab"[list(runs).index(reviewed)]),
        "suspects": suspects.table(reviewed),
        "exports": suspects.exports(reviewed),
    }


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=False)
    environment.filters["safe_script"] = _inside_script
    return environment.from_string((HERE / "report.html.j2").read_text("utf-8"))


def _inside_script(text: str) -> Markup:
    """JSON or XML that cannot end its script element, with control characters as references."""
    if text[0] in "[{":
        return Markup(CONTROLS.sub(_json_reference, text.replace("<", "\\u003c")))
    return Markup(CONTROLS.sub(lambda sign: f"&#x{ord(sign[0]):x};", text))


def _json_reference(sign: re.Match[str]) -> str:
    return f"\\u{ord(sign[0]):04x}"


def policy(style: str, script: str) -> str:
    """Return a content security policy that allows only this style and script."""
    digests = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (style, script)
    ]
    return (
        f"default-src 'none'; img-src data:; style-src 'sha256-{digests[0]}'; "
        f"script-src 'sha256-{digests[1]}'; base-uri 'none'; form-action 'none'"
    )
