"""`detmap.compare`: compares detectors on one truth, from files, tables, matches or results."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from detmap.core.adapters import ClassNames, options_of, read_detections
from detmap.core.adapters.tabular import csv_parquet
from detmap.core.base.display_names import detector_names
from detmap.core.base.suggestions import proposes_arguments
from detmap.core.curves.scores import scores
from detmap.core.matching.matches import Matches
from detmap.core.matching.row_order import TOGETHER, depends_on_other_images
from detmap.core.protocol import Protocol
from detmap.core.results import result_notes
from detmap.core.results.result import Result
from detmap.core.results.signature import signature
from detmap.core.statistics import intervals
from detmap.core.statistics.comparison import TEST, Comparison, Maker, check, require_comparable
from detmap.core.statistics.subsets import Progress, silent
from detmap.core.tables import Detections, Note, Truth
from detmap.core.tables.extension import extended, extended_by_all
from detmap.errors import DataError, counted
from detmap.evaluate import match, read_truth_and_protocol

Detector = Any
"""A path, `Detections`, `Matches`, a `Result`, or an object that `detmap.read_detections` reads."""
SAVED = ".npz"


@proposes_arguments
def compare(
    truth: Any,
    *detections: Detector,
    protocol: Protocol | str | None = None,
    settings: Mapping[str, Any] | None = None,
    names: Sequence[str] | None = None,
    alpha: float = 0.05,
    seed: int = 0,
    groups: Mapping[Any, Any] | str | Path | None = None,
    adjust: str = "holm",
    threads: int | None = None,
    progress: Progress | None = None,
    class_names: ClassNames | None = None,
) -> Comparison:
    """Compares detectors on the same images: every metric and class of every pair.

    >>> import detmap
    >>> models = {"base": "shapes/detections/template", "new": "shapes/detections/contours"}
    >>> row = detmap.compare("shapes", models, protocol="coco-bbox").pairs[0]
    >>> row.metric, round(row.difference, 2), round(row.low, 1), round(row.high, 1)
    ('AP', 0.26, 0.2, 0.3)

    Parameters
    ----------
    truth : a table, a path or an object as in `detmap.evaluate`; may be None or the first detector
        if all are results or saved `Matches`
    detections : two or more tables, paths, objects, results, matches, or files of saved matches;
        or one dict from name to these: ``{"base": "a.json", "new": "b.json"}``; or one list of
        paths, tables and results
    protocol, settings : as in `evaluate`; saved matches and results bring their own
    names : names of the detectors (default: from their paths)
    alpha : significance level of intervals and groups, at most 0.5
    seed, groups : as in `Result.intervals`
    adjust : p-value adjustment over pairs or classes: ``holm``, ``bh`` or ``none``
    threads : number of threads; has no effect on the result
    progress : called with the numbers of finished steps and of all steps
    class_names : as in `read_detections`, of detectors that are paths or objects

    Raises
    ------
    DataError : different protocols, classes, images or truth; fewer than two detectors
    """
    check(alpha, adjust)
    detectors = list(detections)
    if not detectors and type(truth) is list and are_detectors(truth):
        truth, detectors = None, truth  # results and saved matches alone
    if len(detectors) == 1 and type(detectors[0]) is dict and names is None:
        names, detectors = list(map(str, detectors[0])), list(detectors[0].values())
    elif len(detectors) == 1 and type(detectors[0]) is list and are_detectors(detectors[0]):
        detectors = detectors[0]
    if isinstance(truth, Matches | Result) or is_saved(truth):
        detectors, truth = [truth, *detectors], None
    if len(detectors) < 2:
        fix = "give two or more: compare(truth, a, b)"
        raise DataError("compare", counted(len(detectors), "detector"), fix)
    labels = names_of(detectors, names)
    matches, table, notes = match_all(
        truth, detectors, labels, protocol, settings, threads, class_names
    )
    require_comparable(labels, matches)
    comparison = compare_matches(
        labels,
        matches,
        table,
        alpha=alpha,
        seed=seed,
        groups=groups,
        adjust=adjust,
        threads=threads,
        progress=progress,
        known={
            id(each.matches): replace(each, extra={})
            for each in detectors
            if isinstance(each, Result) and each.weights is None
        },
    )
    return replace(comparison, notes=(*comparison.notes, *notes))


def compare_matches(
    names: Sequence[str],
    matches: Sequence[Matches],
    truth: Truth | None,
    *,
    alpha: float,
    seed: int,
    groups: Mapping[Any, Any] | str | Path | None,
    adjust: str,
    threads: int | None,
    progress: Progress | None,
    known: Mapping[int, Result] | None = None,
) -> Comparison:
    """Does `compare` for matches that passed `require_comparable`; `known` has the results of some,
    by `id`.
    """
    first, known, told = matches[0], known or {}, progress or silent
    dealt = intervals.sample(first.image_ids, truth, seed=seed, groups=groups, progress=progress)
    if dealt.units.n < 2:
        what = dealt.units.counted()
        raise DataError("compare", what, "two or more are needed")
    evaluated = []
    for i, each in enumerate(matches):
        result = known.get(id(each)) or Result(each, scores(each, threads=threads))
        if result.matched is None and depends_on_other_images(each):
            what = f"{first.protocol.name} {TOGETHER}, so match rows give no numbers of subsets"
            fix = "compare by rules that order each image alone, such as -p coco-bbox"
            raise DataError("compare", what, fix)

        def step(done: int, of: int, i: int = i) -> None:
            told(i * of + done, len(matches) * of)

        evaluated.append(result.evaluate_subsets(dealt, threads=threads, progress=step))
    maker = Maker(names, evaluated, first.categories, alpha, adjust)
    pairs = maker.pairs()
    data = "+".join(each.data_digest() for each in matches)
    method = f"{intervals.signature(seed, dealt.units)}|{TEST}+{adjust}"
    left_out = result_notes.extra_left_out(first.protocol, "metrics are not compared")
    return Comparison(
        tuple(names),
        maker.values(),
        maker.intervals(),
        tuple(pairs),
        tuple(maker.classes()),
        tuple(maker.leaderboard(pairs)),
        alpha,
        TEST,
        adjust,
        seed,
        dealt.units,
        f"{signature(first.protocol, data)}|{method}",
        (*maker.notes(), *left_out),
    )


def match_all(
    truth: Any,
    detectors: Sequence[Any],
    labels: Sequence[str],
    protocol: Protocol | str | None,
    settings: Mapping[str, Any] | None,
    threads: int | None,
    class_names: ClassNames | None,
) -> tuple[list[Matches], Truth | None, list[Note]]:
    """The matches of each detector, the ground truth if it is needed, and notes on classes that
    only some detectors name.
    """
    ready: list[Matches | None] = [
        each.matches
        if isinstance(each, Result)
        else each
        if isinstance(each, Matches)
        else Matches.load(each)
        if is_saved(each)
        else None
        for each in detectors
    ]
    if None not in ready:
        return [each for each in ready if each is not None], None, []
    if truth is None:
        what = "no truth, and not all detectors are saved matches"
        raise DataError("compare", what, "give the ground truth first")
    known = next((each.protocol for each in ready if each is not None), None)
    wanted = protocol if protocol is not None or settings else known
    table, rules = read_truth_and_protocol(truth, wanted, settings)
    given, seen = list(detectors), table
    for i, each in enumerate(given):  # all before the first is matched: they name the images
        if rules.scope.unknown != "error" and ready[i] is None:
            given[i] = _read(each, seen, rules, class_names)
            seen = extended(seen, given[i])
    tables = {
        name: each for name, each in zip(labels, given, strict=True) if isinstance(each, Detections)
    }
    every, notes = extended_by_all(table, tables)
    matches = [
        match(
            every, extended(_read(each, every, rules, class_names), every), rules, threads=threads
        )
        if own is None
        else own
        for each, own in zip(given, ready, strict=True)
    ]
    return matches, every, notes


def are_detectors(values: list[Any]) -> bool:
    """Whether a list is one of detectors; a list of dicts is the output of one, and so is one of
    lists with `score`, `label` and `box`, from a pipeline of Hugging Face.
    """
    kinds = str | Path | Detections | Matches | Result
    return len(values) > 1 and (
        all(isinstance(each, kinds) or _is_frame(each) for each in values)
        or all(isinstance(each, list) and bool(each) and _is_output(each) for each in values)
    )


def _is_frame(thing: Any) -> bool:
    return csv_parquet.is_table(thing) and not isinstance(thing, Mapping)


def _is_output(rows: list[Any]) -> bool:
    """Whether a list is the output of a detector, of one dict per image or detection."""
    return all(isinstance(each, Mapping) and "box" not in each for each in rows)


def _read(
    detector: Any, truth: Truth, rules: Protocol, class_names: ClassNames | None
) -> Detections:
    """The detections of a path; others as they are."""
    if isinstance(detector, str | Path):
        check_file(detector)
    if isinstance(detector, Detections):
        return detector
    return read_detections(detector, truth, class_names=class_names, **options_of(rules))


def is_saved(value: object) -> bool:
    """Returns whether a value is the path of saved matches."""
    return isinstance(value, str | Path) and Path(value).suffix.lower() == SAVED


def check_file(path: str | Path) -> str | Path:
    """Returns the path; raises `DataError` for a result file, which has no match results."""
    file = Path(path)
    if file.suffix.lower() == ".json" and file.is_file():
        with file.open("rb") as stream:
            head = b"".join(stream.read(64).split())
        if head.startswith((b'{"schema":"detmap-', b'{"metrics"')):
            raise DataError(
                str(path),
                "is a result: it has metrics, but no match results for a paired comparison",
                "give the detections, or save matches with `detmap match ... -o FILE.npz`",
            )
    return path


def names_of(detectors: Sequence[Detector], names: Sequence[str] | None) -> list[str]:
    """The given names, or those of the paths; raises `DataError` unless each has its own."""
    if names is None:
        return detector_names(detectors)
    if len(names) != len(detectors) or len(set(names)) != len(names):
        what = f"{list(names)} for {len(detectors)} detectors"
        raise DataError("names", what, "give each detector a unique name")
    return list(names)
