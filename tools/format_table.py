"""The table of formats in docs/formats.md, made from a run over `tests.support.format_samples`.

    python tools/format_table.py            # print it
    python tools/format_table.py --write    # write it into docs/formats.md, between its two marks

All samples hold the same boxes, so each row shows the same AP.
"""

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import detmap  # noqa: E402
from detmap.core.adapters import registry  # noqa: E402
from detmap.core.base import atomic_files  # noqa: E402
from tests.support.format_samples import SAMPLES  # noqa: E402

DOCS = ROOT / "docs" / "formats.md"
BEGIN, END = "<!-- made by tools/format_table.py -->\n", "<!-- end of the table -->\n"


def table() -> str:
    """Runs every sample and returns the table as Markdown."""
    rows = {row.name: row for row in registry.FORMATS}
    lines = ["| format | sample | ground truth | detections | objects | detections read | AP |"]
    lines.append("|---|---|---|---|---:|---:|---:|")
    for name, write in SAMPLES.items():
        with tempfile.TemporaryDirectory() as place:
            paths = write(Path(place))
            truth = detmap.read_truth(paths[0])
            found = detmap.read_detections(paths[1], truth)
            value = detmap.evaluate(truth, found, "coco-bbox").metrics["AP"]
            shown = [_shown(path, Path(place)) for path in paths]
        what = rows[name].what if name in rows else ""
        cells = [f"`{name}`", what, *shown, len(truth), len(found), f"{value:.4f}"]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def _shown(path: Path, folder: Path) -> str:
    place = path.relative_to(folder).as_posix()
    return f"`{place if place != '.' else 'a folder'}{'/' * (path.is_dir() and place != '.')}`"


def main() -> int:
    """Prints or writes the table."""
    text = table()
    if "--write" not in sys.argv[1:]:
        print(text, end="")
        return 0
    before, _, rest = DOCS.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    atomic_files.write_text(DOCS, f"{before}{BEGIN}{text}{END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
