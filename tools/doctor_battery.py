"""Print Markdown tables: which mistakes the doctor finds first, whether the fix gives the right
number, and false alarms on right sets.

Run: python tools/doctor_battery.py [--write] [--sets N] [--right N] [--data FOLDER] [--voc FOLDER];
--write changes docs/doctor.md. FOLDER is ../shared/data, and the unpacked archives of VOC 2007.
"""

import argparse
import contextlib
import io
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

import detmap
from detmap.cli import main as detmap_command
from tools.doctor_kinds import KINDS
from tools.doctor_sets import PROTOCOLS, Set, generated, real, right

PAGE = Path(__file__).resolve().parents[1] / "docs" / "doctor.md"
UNCHANGED = 0.01  # of AP50: no mistake then
N_SETS, N_RIGHT = 5, 400  # generated sets per kind of shapes, and sets without a mistake
BEGIN, END = "<!-- battery -->", "<!-- end of battery -->"

Tables = tuple[detmap.Truth, detmap.Detections]
Make = Callable[[detmap.Truth, detmap.Detections, float], Tables]


def _boxes(make: Callable[[np.ndarray, float], np.ndarray]) -> Make:
    return lambda truth, right, by: (
        truth,
        replace(right, boxes=np.ascontiguousarray(make(right.boxes, by))),
    )


def _scores(make: Callable[[np.ndarray, float], np.ndarray]) -> Make:
    return lambda truth, right, by: (truth, replace(right, score=make(right.score, by)))


def _cut(truth: detmap.Truth, right: detmap.Detections, by: float) -> Tables:
    return truth, right.take(np.flatnonzero(right.score >= by))


def _shuffled(truth: detmap.Truth, right: detmap.Detections, by: float) -> Tables:
    rng = np.random.default_rng(1)
    image = np.arange(len(truth.images), dtype=np.int32)
    order = rng.permutation(np.flatnonzero(rng.random(len(image)) < by))
    image[order] = np.roll(order, 1)
    return truth, replace(right, image=image[right.image])


def _permuted(truth: detmap.Truth, right: detmap.Detections, by: float) -> Tables:
    label = np.arange(len(truth.categories), dtype=np.int32)
    label[: int(by)] = np.roll(label[: int(by)], 1)
    return truth, replace(right, label=label[right.label])


def _part(truth: detmap.Truth, right: detmap.Detections, by: float) -> Tables:
    return truth, right.take(np.flatnonzero(right.image >= by * len(truth.images)))


def _unlabeled(truth: detmap.Truth, right: detmap.Detections, by: float) -> Tables:
    return truth.take(np.flatnonzero(truth.image >= by * len(truth.images))), right


MISTAKES: dict[str, tuple[Make, tuple[str, ...]]] = {
    "cut": (_cut, ("scores-cut",)),
    "shift": (_boxes(lambda b, by: np.add(b, [by, by, 0, 0])), ("boxes-shifted",)),
    "scale": (_boxes(lambda b, by: b * by), ("boxes-resized",)),
    "corners": (
        _boxes(lambda b, by: b + np.column_stack([0 * b[:, :2], by * b[:, :2]])),
        ("boxes-xyxy",),
    ),
    "width": (_boxes(lambda b, by: np.add(b, [0, 0, by, 0])), ("boxes-narrow-by-one",)),
    "permuted": (_permuted, ("classes-permuted",)),
    "shuffled": (_shuffled, ("images-shuffled", "unexplained")),
    "half": (_part, ("images-without-detections",)),
    "labels": (_unlabeled, ("truth-labels-missing",)),
    "percent": (_scores(lambda s, by: s * by), ("scores-percent",)),
    "negated": (_scores(lambda s, by: s * by), ("scores-negated",)),
}
"""How each is made at a strength, and the findings that name it; boxes are x, y, width, height."""


# --- kinds x sets ---------------------------------------------------------------------------------


class Tried(NamedTuple):
    """What came of a kind of mistake on a set.

    Parameters
    ----------
    kind, shape, name : of the mistake and the set
    first : whether the first finding names it
    others : findings that do not
    fixed : whether the number after the fix is the right one; None where there is no fix, or the
        cause was not found
    """

    kind: str
    shape: str
    name: str
    first: bool
    others: tuple[str, ...]
    fixed: bool | None


def run(*argv: object) -> tuple[int, str]:
    """``detmap ARGV`` in this process: exit code and output."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        try:
            code = detmap_command([str(word) for word in argv])
        except SystemExit as stop:
            code = int(stop.code or 0)
    return code, out.getvalue()


def written(place: Path, given: Set) -> tuple[object, ...]:
    """The words of a command for a set, whose files are written."""
    for name, content in (("truth.json", given.truth), ("found.json", given.rows)):
        (place / name).write_bytes(msgspec.json.encode(content, enc_hook=float))
    return place / "truth.json", place / "found.json", "-p", PROTOCOLS[given.shape]


def ap50(place: Path, given: Set, *more: str) -> float:
    """AP50 of a set; NaN where it cannot be read."""
    code, out = run("eval", *written(place, given), "--format", "json", *more)
    return float(msgspec.json.decode(out)["metrics"]["AP50"]) if code == 0 else np.nan


@cache
def base_set(name: str, data: Path, voc: Path | None) -> Set:
    """A set by its name: of `real`, or kind of shapes and seed."""
    sets = real(data, voc)
    if name in sets:
        return sets[name]()
    shape, _, seed = name.partition(" ")
    return generated(int(seed), shape)


def try_kind(kind: str, name: str, data: Path, voc: Path | None) -> Tried | None:
    """Make a mistake, ask the doctor, follow it; None for a set that cannot have the mistake."""
    how, base = KINDS[kind], base_set(name, data, voc).copy()
    drawn_scores = name.startswith("coco-") and kind == "lowest is best"  # no order is right
    if base.shape not in how.shapes or drawn_scores:
        return None
    with tempfile.TemporaryDirectory() as folder_name:
        place = Path(folder_name)
        if how.right is not None:
            how.right(base)
        wanted = np.nan if how.close is None else ap50(place, base)
        changed = base.copy()
        changed = how.make(changed, np.random.default_rng(5)) or changed
        if changed == base:  # ids that have no gaps, for example
            return None
        boxes = how.wanted[0].startswith("boxes-")
        if boxes and abs(ap50(place, changed) - wanted) < UNCHANGED:
            return None  # COCO's images are 640 pixels long already
        code, out = run("doctor", *written(place, changed), "--format", "json")
        found = msgspec.json.decode(out)["findings"] if code < 2 else []
        names = [each["name"] for each in found]
        others = tuple(each for each in names if each not in how.wanted)
        first = bool(names) and names[0] in how.wanted
        fixed = None
        if first and how.close is not None:
            flag = (found[0]["fix"] or "").split()
            after = ap50(place, changed, *flag) if flag else found[0]["ap50_after"]
            fixed = after is not None and bool(abs(after - wanted) <= how.close)
        return Tried(kind, base.shape, name, first, others, fixed)


def try_right(seed: int) -> tuple[int, tuple[str, ...]]:
    """The findings on a set without a mistake."""
    with tempfile.TemporaryDirectory() as folder_name:
        code, out = run("doctor", *written(Path(folder_name), right(seed)), "--format", "json")
        return code, tuple(each["name"] for each in msgspec.json.decode(out)["findings"])


def _everything(arguments: argparse.Namespace) -> Iterator[tuple[str, str, Path, Path | None]]:
    names = [f"{shape} {seed}" for shape in PROTOCOLS for seed in range(arguments.sets)]
    for name in (*names, *real(arguments.data, arguments.voc)):
        for kind in KINDS:
            yield kind, name, arguments.data, arguments.voc


def share(n: int, of: int) -> str:
    """A share in percent with both numbers."""
    return f"{100 * n / of:.1f} % ({n:,} of {of:,})" if of else "-"


def kinds_table(tried: list[Tried]) -> str:
    """The table of kinds: counts for generated sets by shapes, for real ones, and fixes."""
    lines = [
        "| mistake | finding | boxes | masks | keypoints | real | fix right |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for kind, how in KINDS.items():
        rows = [each for each in tried if each.kind == kind]
        cells = []
        for column in (*PROTOCOLS, "real"):
            some = [
                each
                for each in rows
                if (each.shape == column and " " in each.name)
                or (column == "real" and " " not in each.name)
            ]
            cells.append(f"{sum(each.first for each in some)} of {len(some)}" if some else "")
        fixed = [each.fixed for each in rows if each.fixed is not None]
        cells.append(f"{sum(fixed)} of {len(fixed)}" if fixed else "")
        wanted = " or ".join(f"`{name}`" for name in how.wanted)
        lines.append(f"| {kind} | {wanted} | {' | '.join(cells)} |")
    fixed = [each.fixed for each in tried if each.fixed is not None]
    first = share(sum(each.first for each in tried), len(tried))
    wrong = share(sum(bool(each.others) and not each.first for each in tried), len(tried))
    alone = Counter(name for each in tried for name in each.others)
    more = ", ".join(f"`{name}` {count}" for name, count in alone.most_common())
    text = (
        f"The right cause is first in {first}; its fix gives the right number in "
        f"{share(sum(fixed), len(fixed))}; another cause is stated instead in {wrong}. Findings "
        f"beside the right ones: {more or 'none'}."
    )
    return "\n".join([*lines, "", text, ""])


def false_alarms(found: list[tuple[int, tuple[str, ...]]]) -> str:
    """A sentence on sets without a mistake."""
    names = Counter(name for _, some in found for name in some)
    bad = sum(code != 0 for code, _ in found)
    shown = ", ".join(f"`{name}` {count}" for name, count in names.items())
    return (
        f"False alarms: {bad} of {len(found):,} generated sets without a mistake have a finding"
        f"{f' ({shown})' if shown else ''}. Half of them have confused classes, crowded images, a "
        "weak detector, few images, one class or frames of a video.\n"
    )


def main() -> None:
    """Print the tables, or write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--sets", type=int, default=N_SETS)
    parser.add_argument("--right", type=int, default=N_RIGHT)
    parser.add_argument("--data", type=Path, default=PAGE.parents[2] / "shared" / "data")
    parser.add_argument("--voc", type=Path)
    arguments = parser.parse_args()
    with ProcessPoolExecutor(2) as pool:
        done = []
        for each in pool.map(try_kind, *zip(*_everything(arguments), strict=True), chunksize=8):
            done += [] if each is None else [each]
            if each is not None and (not each.first or each.fixed is False):
                print(len(done), each, file=sys.stderr, flush=True)
        good = list(pool.map(try_right, range(arguments.right), chunksize=8))
    made = f"{arguments.sets} generated sets of each kind of shapes, {len(done):,} mistakes:\n\n"
    made += f"{kinds_table(done)}\n{false_alarms(good)}\n"
    if not arguments.write:
        sys.stdout.write(made)
        return
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{made}{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
