"""Render the page: every table and chart, then the template."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from detmap.errors import counted
from detmap.html_report import figures, report_tables
from detmap.html_report.gallery import Pictures, gallery
from detmap.html_report.gather import Run
from detmap.html_report.what_changed import changed
from detmap.output import tiles
from detmap.results.receipt import Receipt
from detmap.version import __version__

HERE = Path(__file__).parent
TEXT_COLUMNS = ("range", "meaning", "true", "predicted", "instead", "image", "class", "kind")
SECTIONS = (
    ("summary", "Summary"),
    ("costs", "Error analysis"),
    ("classes", "Classes"),
    ("curves", "Curves"),
    ("scores", "Scores"),
    ("confusion", "Confusion"),
    ("localization", "Localization"),
    ("slices", "Subsets"),
    ("images", "Images"),
    ("mistakes", "Mistakes"),
    ("data", "Data"),
    ("method", "Method"),
)
MANY_CLASSES = 30
COLLAPSED = 200  # classes above which their table is collapsed


def html(
    runs: Sequence[Run],
    *,
    title: str,
    inputs: Sequence[tuple[str, str]],
    pictures: Pictures,
    receipts: Mapping[str, Receipt],
    findings: Sequence[str] = (),
) -> str:
    """Render the page.

    Parameters
    ----------
    runs : one detector, or two on the same truth
    inputs : names and values for the section on method
    pictures : where the images are
    receipts : of each detector, by its name
    """
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=False)
    template = environment.from_string((HERE / "report.html.j2").read_text("utf-8"))
    style, script = ((HERE / name).read_text("utf-8") for name in ("style.css", "script.js"))
    first = runs[0]
    counts = first.result.counts()
    shown = gallery(runs, pictures)
    return template.render(
        title=title,
        findings=findings,
        policy=policy(style, script),
        style=Markup(style),
        script=Markup(script),
        protocol=first.result.protocol.title,
        counts=", ".join(
            counted(counts[key], noun)
            for key, noun in (("images", "image"), ("objects", "object"), ("classes", "class"))
        ),
        two=len(runs) == 2,
        runs=runs,
        sections=SECTIONS,
        text_columns=TEXT_COLUMNS,
        iou=f"{first.diagnosis.iou:g}",
        tiles=Markup(tiles.tiles(report_tables.tiles(runs), pair=len(runs) == 2)),
        changed=Markup(tiles.sentences(changed(*runs))) if len(runs) == 2 else "",
        sentences=lambda texts: Markup(tiles.sentences(texts)),
        interval_text=report_tables.interval_text(runs),
        charts={
            "costs": figures.costs(runs),
            "mean": figures.mean(runs),
            "overlap": figures.over_iou(runs),
        },
        costs=report_tables.costs(runs),
        classes=report_tables.classes(runs),
        many=len(first.diagnosis.truth.categories) > MANY_CLASSES,
        few_shown=len(first.diagnosis.truth.categories) <= COLLAPSED,
        multiples=figures.multiples(runs),
        operating=[figures.operating(run, len(runs) == 2) for run in runs],
        calibrated=[each for run in runs for each in figures.calibrated(run, len(runs) == 2)],
        calibration=report_tables.calibrated(runs),
        best=report_tables.best(runs),
        confused=[
            {**figures.confused(run, len(runs) == 2), "pairs": report_tables.confused(run)}
            for run in runs
        ],
        localized=[figures.localized(run, len(runs) == 2) for run in runs],
        lrp=report_tables.lrp(runs),
        sliced=report_tables.sliced(runs),
        image_table=report_tables.images(runs),
        pictures=pictures.folder is not None,
        gallery=shown,
        suspected=[report_tables.suspected(run, len(runs) == 2) for run in runs],
        method=report_tables.method(runs, inputs, receipts),
        receipts=[(name, each.to_bytes().decode()) for name, each in receipts.items()],
        notes=[str(note) for note in report_tables.notes(runs)] + pictures.notes(),
        version=__version__,
    )


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
