"""`detmap.compare`: detectors on one truth, from files, tables, matches or results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from detmap.adapters import read_detections
from detmap.adapters.registry import checked_path
from detmap.curves import scores as curves
from detmap.errors import DataError
from detmap.evaluate import match, read_truth_and_protocol
from detmap.matching.matches import Matches
from detmap.protocol import Protocol
from detmap.results.result import Result
from detmap.results.signature import signature
from detmap.statistics import comparison as statistics
from detmap.statistics import replicates as drawing
from detmap.statistics.comparison import Comparison, Maker
from detmap.statistics.paired_differences import pair_up, require_comparable
from detmap.statistics.sampling_units import units
from detmap.tables import Detections, Truth

Given = Detections | Matches | Result | str | Path
SAVED = ".npz"


def compare(
    truth: Truth | Given | None,
    *detections: Given,
    protocol: Protocol | str | None = None,
    settings: Mapping[str, Any] | None = None,
    names: Sequence[str] | None = None,
    alpha: float = 0.05,
    replicates: int = 1000,
    seed: int = 0,
    groups: Mapping[Any, Any] | str | Path | None = None,
    adjust: str = "holm",
    test: str = "z",
    threads: int | None = None,
    progress: drawing.Progress | None = None,
) -> Comparison:
    """Compare detectors on the same images: every metric and class of every pair.

    Parameters
    ----------
    truth : a table or a path; where everything is saved `Matches` it may be None, or the first of
        them
    detections : two or more: tables, paths, results, matches, or files of saved matches
    protocol, settings : as in `evaluate`; saved matches and results bring their own
    names : of the detectors; by their paths when left out
    alpha : level of intervals and groups
    replicates, seed, groups : as in `Result.intervals`
    adjust : of p-values, over pairs or classes: ``holm``, ``bh``, ``maxt`` or ``none``
    test : ``z``; ``permutation``, studentised, of the metrics; ``plain-permutation``
    threads : how many to use; no result depends on it
    progress : called with the number of steps that are done, and of all

    Raises
    ------
    DataError : other protocol, classes, images or truth, by name; fewer than two detectors
    """
    statistics.check(alpha, adjust, test)
    drawing.check(replicates, seed)
    given = list(detections)
    if isinstance(truth, Matches | Result) or is_saved(truth):
        given, truth = [truth, *given], None  # type: ignore[list-item]
    if len(given) < 2:
        raise DataError("compare", f"{len(given)} detectors", "give two or more")
    matches = _judged(truth, given, protocol, settings, threads)
    called = _names(given, names)
    require_comparable(called, matches)
    return compare_matches(
        called,
        matches,
        alpha=alpha,
        replicates=replicates,
        seed=seed,
        groups=groups,
        adjust=adjust,
        test=test,
        threads=threads,
        progress=progress,
    )


def compare_matches(
    names: Sequence[str],
    matches: Sequence[Matches],
    *,
    alpha: float,
    replicates: int,
    seed: int,
    groups: Mapping[Any, Any] | str | Path | None,
    adjust: str,
    test: str,
    threads: int | None,
    progress: drawing.Progress | None,
) -> Comparison:
    """As `compare`, of matches that were found to be comparable."""
    first, progress = matches[0], progress or drawing.silent
    drawn = units(first.image_ids, groups)
    if drawn.n < 2:
        raise DataError("compare", f"{drawn.n} {drawn.noun}", "two or more are needed")
    scored = [(each, curves.scores(each, threads=threads)) for each in matches]
    paired = pair_up(scored, drawn, replicates, seed, threads=threads, progress=progress)
    maker = Maker(names, paired, alpha, adjust, test)
    p = None if test == "z" else maker.permutation_p_values(replicates, seed, threads, progress)
    pairs = maker.pairs(p)
    data = "+".join(each.data_digest() for each in matches)
    return Comparison(
        tuple(names),
        {
            row.name: tuple(paired.values[:, q].tolist())
            for q, row in enumerate(paired.plans[0].metrics)
        },
        tuple(pairs),
        tuple(maker.classes()),
        tuple(maker.images()),
        tuple(maker.leaderboard(pairs)),
        alpha,
        test,
        adjust,
        replicates,
        seed,
        drawn,
        maker.signature(signature(first.protocol, data), replicates, seed),
        maker.notes(),
    )


def _judged(
    truth: Any,
    given: Sequence[Any],
    protocol: Protocol | str | None,
    settings: Mapping[str, Any] | None,
    threads: int | None,
) -> list[Matches]:
    """The verdicts of each detector; the truth is read where one of them needs it."""
    ready: list[Matches | None] = [
        each.matches
        if isinstance(each, Result)
        else each
        if isinstance(each, Matches)
        else Matches.load(each)
        if is_saved(each)
        else None
        for each in given
    ]
    if None not in ready:
        return [each for each in ready if each is not None]
    if truth is None:
        what = "no truth, and not only saved matches"
        raise DataError("compare", what, "give the truth first")
    known = next((each.protocol for each in ready if each is not None), None)
    wanted = protocol if protocol is not None or settings else known
    table, rules = read_truth_and_protocol(truth, wanted, settings)
    judged = []
    for each, own in zip(given, ready, strict=True):
        if own is None:
            if not isinstance(each, Detections):
                each = read_detections(check_file(checked_path(each)), table)
            own = match(table, each, rules, threads=threads)
        judged.append(own)
    return judged


def is_saved(given: object) -> bool:
    """Whether it is the path of saved matches."""
    return isinstance(given, str | Path) and Path(given).suffix.lower() == SAVED


def check_file(path: str | Path) -> str | Path:
    """The path; a `DataError` where it is a result, which has numbers and no verdicts."""
    file = Path(path)
    if file.suffix.lower() == ".json" and file.is_file():
        with file.open("rb") as stream:
            head = stream.read(64).lstrip()
        if head.startswith(b"{") and head[1:].lstrip().startswith(b'"metrics"'):
            raise DataError(
                str(path),
                "is the result of an evaluation: numbers without the verdicts that a paired "
                "comparison needs",
                "give the detections, or save the verdicts with `detmap match ... -o FILE.npz`",
            )
    return path


def _names(given: Sequence[Given], names: Sequence[str] | None) -> list[str]:
    if names is None:
        return names_of(given)
    if len(names) != len(given) or len(set(names)) != len(names):
        what = f"{list(names)} for {len(given)} detectors"
        raise DataError("names", what, "give each detector a name of its own")
    return list(names)


def names_of(given: Sequence[Given]) -> list[str]:
    """Names by paths and places, each once."""
    names: list[str] = []
    for i, each in enumerate(given):
        name = Path(each).stem if isinstance(each, str | Path) else f"detector {i + 1}"
        if name in names or not name:
            name = str(each) if isinstance(each, str | Path) else name
        while name in names:
            name += "'"
        names.append(name)
    return names
