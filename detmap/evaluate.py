"""Evaluation: files or tables in, a Result out."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap import wings
from detmap.core.adapters import ClassNames, options_of, read_detections, read_truth, read_truth_for
from detmap.core.base import arguments
from detmap.core.base import memory as sizes
from detmap.core.base.suggestions import proposes_arguments
from detmap.core.curves import image_weights
from detmap.core.curves.scores import scores
from detmap.core.matching import engine
from detmap.core.matching.matches import Matches
from detmap.core.protocol import Protocol
from detmap.core.protocol.default_protocol import choose_protocol, prepare
from detmap.core.results.result import Result
from detmap.core.tables import Detections, Truth
from detmap.core.tables.extension import extended, with_class_names
from detmap.errors import DataError


@proposes_arguments
def evaluate(
    truth: Any,
    detections: Any,
    protocol: Protocol | str | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    images: ArrayLike | None = None,
    classes: Sequence[str | int] | None = None,
    threads: int | None = None,
    unknown: str = "error",
    class_names: ClassNames | None = None,
    image_key: str | None = None,
    class_key: str | None = None,
    box_format: str | None = None,
    fix: str | Sequence[str] | None = None,
    memory: int | str | None = None,
) -> Result:
    """Evaluates detections under a protocol.

    >>> import detmap
    >>> target = [{"boxes": [[0, 0, 9, 9]], "labels": ["cat"]}]
    >>> round(detmap.evaluate(target, [{**target[0], "scores": [0.9]}])["AP50"], 4)
    1.0

    Parameters
    ----------
    truth : a table from `read_truth`, the path of a file or folder, or a Python object: a COCO
        dict, `pycocotools.coco.COCO`, a list of one dict per image (torchmetrics, torchvision,
        Hugging Face), a data frame, an open file (docs/formats.md)
    detections : the same: a table, a path, a list of COCO results, a list of one dict per image
    protocol : a protocol, the name of one, or the path of a TOML file (default: by the ground
        truth)
    settings : keys of the protocol to change, ``{"limits.max_dets": [1, 10, 300]}``
    images : ids of the images to evaluate (default: all)
    classes : names or ids of the classes to evaluate (default: all)
    threads : number of threads (default: all processors); has no effect on the result
    unknown, class_names, image_key, class_key : as in `read_detections`, if `detections` is a path:
        handling of unknown images and classes, names of class ids, and what columns name images and
        classes by; `class_key` is that of `classes`, too
    box_format : of the boxes of lists, arrays and data frames, such as ``xywh`` (default: ``xyxy``)
    fix : names of fixes to apply to the detections, as `detmap.doctor` proposes them: what
        ``--fix NAME`` does
    memory : bytes of memory that this process may use (``3_000_000_000``, ``"3GB"``). The
        detections, a path, are then read in pieces and matched in parts (docs/scale.md), with the
        same bits; the result has no match rows. Default: all of it in memory, or in parts if that
        would not fit

    A protocol whose ``evaluation.rule`` is not ``matching`` gives a
    `detmap.benchmarks.shared.benchmark_result.BenchmarkResult`.

    Raises
    ------
    DataError : invalid input
    ProtocolError : an unknown protocol, key or value
    """
    how: dict[str, Any] = {"unknown": unknown, "class_names": class_names}
    how |= {"image_key": image_key, "class_key": class_key}
    for name, chosen in (("images", images), ("classes", classes)):
        if _is_empty(chosen):
            raise DataError(f"evaluate: {name}", "is empty", f"select {name}, or leave it out")
    truth, detections = held(truth), held(detections)
    truth, protocol, settings = _read_boxes(truth, protocol, settings, how, box_format)
    whole = images is None and classes is None
    if memory is not None and not whole:
        what = "images and classes are selected in memory"
        raise DataError("evaluate: memory", what, "give a ground truth of these alone")
    if fix is not None and memory is not None:
        raise DataError("evaluate: memory", "fixes need all detections", "leave memory= out")
    if memory is not None or (whole and isinstance(detections, str | Path) and fix is None):
        _refuse_swapped(truth, detections)
        truth, protocol = read_truth_and_protocol(truth, protocol, settings)
        settings = None
        bounded = _evaluate_parts(truth, detections, protocol, memory, how, threads)
        if bounded is not None:
            return bounded
    if fix is not None:
        truth, protocol = read_truth_and_protocol(truth, protocol, settings)
        names = [fix] if isinstance(fix, str) else list(fix)
        fixed = wings.required_hook("fixed_given")
        detections, settings = fixed(detections, truth, protocol, names, how), None
        how = {"unknown": "error", "class_names": None, "image_key": None, "class_key": class_key}
    tables = _read(truth, detections, protocol, settings, images, classes, how)
    inputs = (truth, detections, tables[2], how)
    if tables[2].evaluation.rule != "matching":
        own: Result = wings.required_hook("evaluate_by_rule")(*tables, inputs=inputs)
        return own
    matches = engine.match(*tables, threads=threads, digested=False)
    result = replace(summarize(matches, threads=threads), matched=tables[:2], inputs=inputs)
    if not tables[2].evaluation.extra:
        return result
    extra, part = wings.required_hook("extra_metrics")(*tables)
    return replace(result, extra=extra, extra_part=part)


def _is_empty(chosen: Any) -> bool:
    if isinstance(chosen, np.ndarray):
        return bool(chosen.shape == (0,))
    return isinstance(chosen, Sequence) and len(chosen) == 0


def _evaluate_parts(
    truth: Truth,
    detections: Detections | str | Path,
    rules: Protocol,
    memory: int | str | None,
    how: Mapping[str, Any],
    threads: int | None,
) -> Result | None:
    """The result in bounded memory; None if no bound is given and everything fits."""
    from detmap.core.bounded.memory_plan import automatic

    if isinstance(detections, Detections):
        what = "the detections are in memory already"
        raise DataError("evaluate: memory", what, "give the path of their file")
    where = "evaluate: memory"
    bound = automatic(detections, rules) if memory is None else sizes.parse_size(where, memory)
    if bound is None:
        return None
    from detmap.core.adapters import pieces
    from detmap.core.bounded import evaluation

    rules.require("bounded memory")
    source = pieces.source(detections, truth, **how, **options_of(rules))
    return evaluation.evaluate(source, rules, bound, threads=threads)


@proposes_arguments
def match(
    truth: Any,
    detections: Any,
    protocol: Protocol | str | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    images: ArrayLike | None = None,
    classes: Sequence[str | int] | None = None,
    threads: int | None = None,
    taken: bool = False,
    unknown: str = "error",
    class_names: ClassNames | None = None,
    image_key: str | None = None,
    class_key: str | None = None,
    box_format: str | None = None,
) -> Matches:
    """Matches every detection in every subset and at every threshold; pass it to `summarize`.

    >>> import detmap
    >>> matches = detmap.match("shapes", "shapes/detections/contours", "coco-bbox")
    >>> round(detmap.summarize(matches)["AP50"], 4)
    0.606

    Parameters
    ----------
    truth, detections, protocol, settings, images, classes, threads, unknown, class_names,
        image_key, class_key, box_format : as in `evaluate`
    taken : whether to keep the assignments, `Matches.taken`

    Raises
    ------
    DataError : invalid input; a missing attribute or image size; boxes with an IoU of 0/0
    ProtocolError : an unknown protocol, key or value
    """
    how: dict[str, Any] = {"unknown": unknown, "class_names": class_names}
    how |= {"image_key": image_key, "class_key": class_key}
    truth, detections = held(truth), held(detections)
    truth, protocol, settings = _read_boxes(truth, protocol, settings, how, box_format)
    tables = _read(truth, detections, protocol, settings, None, classes, how)
    if images is None:
        return engine.match(*tables, threads=threads, taken=taken)
    from detmap.core.tables import selection

    table, found, rules = tables
    places = selection.image_places(table, images)
    return engine.match_images(table, found, rules, places, threads=threads, taken=taken)


def _read(
    truth: Any,
    detections: Any,
    protocol: Protocol | str | None,
    settings: Mapping[str, Any] | None,
    images: ArrayLike | None,
    classes: Sequence[str | int] | None,
    how: Mapping[str, Any],
) -> tuple[Truth, Detections, Protocol]:
    """The tables and the protocol; parameters as in `evaluate`."""
    _refuse_swapped(truth, detections)
    truth, rules = read_truth_and_protocol(truth, protocol, settings)
    if not isinstance(detections, Detections):
        with _advising(truth, detections, rules, how):
            detections = read_detections(detections, truth, **how, **options_of(rules))
        truth = extended(truth, detections)
    elif any(how[name] is not None for name in how if name not in ("unknown", "class_key")) or (
        how["unknown"] != "error"
    ):
        what = "has no effect: the detections have been read already"
        raise DataError("evaluate: unknown, class_names", what, "pass it to `read_detections`")
    truth, detections = rules.classes.rename(with_class_names(truth, detections), detections)
    if images is not None or classes is not None:
        from detmap.core.matching import selected_classes

        tables = truth, detections, rules
        return selected_classes.select(tables, images, classes, how["class_key"])
    return truth, detections, rules


def held(given: Any) -> Any:
    """Returns what an iterator yields as a list, since it can be read once; others as they are."""
    return list(given) if isinstance(given, Iterator) and not hasattr(given, "read") else given


@contextmanager
def _advising(
    truth: Truth, detections: Any, rules: Protocol, how: Mapping[str, Any]
) -> Iterator[None]:
    """Replaces the advice of an error about unknown names by the fix of what the doctor finds."""
    try:
        yield
    except DataError as error:
        advised = wings.hook("advised")
        if advised is None or isinstance(detections, Detections):
            raise
        raise advised(error, truth, detections, rules, how) from None


def _read_boxes(
    truth: Any,
    protocol: Protocol | str | None,
    settings: Mapping[str, Any] | None,
    how: dict[str, Any],
    box_format: str | None,
) -> tuple[Any, Protocol | str | None, Mapping[str, Any] | None]:
    """Ground truth, protocol and settings as given; read, if lists have another box format, which
    becomes an option of the detections.
    """
    if box_format is None:
        return truth, protocol, settings
    from detmap.core.adapters.in_memory import python_objects

    how["box_format"] = box_format
    known = python_objects.OWN_OPTIONS.get(python_objects.kind_of(truth), ())
    options = {"box_format": box_format} if "box_format" in known else {}
    return *read_truth_and_protocol(truth, protocol, settings, **options), None


def _refuse_swapped(truth: Any, detections: Any) -> None:
    if isinstance(truth, Detections) or isinstance(detections, Truth):
        fix = "give the ground truth first"
        raise DataError("evaluate", "truth and detections are swapped", fix)


def read_truth_and_protocol(
    truth: Any,
    wanted: Protocol | str | None,
    settings: Mapping[str, Any] | None = None,
    **options: Any,
) -> tuple[Truth, Protocol]:
    """Reads the ground truth with the attributes of the protocol; `options` are of `read_truth`."""
    if isinstance(truth, Truth):
        return truth, choose_protocol(wanted, truth, settings)
    if wanted is not None:
        rules = prepare(wanted, settings)
        return read_truth_for(truth, rules, **options), rules
    table = read_truth(truth, **options)
    rules = choose_protocol(None, table, settings)
    if settings:  # they may need more attributes
        table = read_truth_for(truth, rules, **options)
    return table, rules


LEAST_WEIGHT = 1e-3  # above 0: epsilon of AP, 2.2e-16, is then no part of a class's counts


def summarize(
    matches: Matches, *, weights: ArrayLike | None = None, threads: int | None = None
) -> Result:
    """Computes the result of matches.

    >>> import detmap
    >>> sample = ("shapes", "shapes/detections/contours")
    >>> parts = [detmap.match(*sample, images=some) for some in (["000001"], ["000002", "000003"])]
    >>> round(detmap.summarize(parts[0].merge(parts[1]))["mAP"], 4)
    0.8056

    Parameters
    ----------
    matches : from `match`, `merge` or `Matches.load`
    weights : (I,) weight of each of `matches.image_ids`, 0 or from 0.001 to 1e6 (default: 1)
    threads : number of threads (default: all processors)

    Raises
    ------
    DataError : no matches; weights of another number or range, or all 0; weights that are not whole
        under a rule that reads every rank; any under a protocol that orders all tied scores
        together
    """
    if not isinstance(matches, Matches):
        what = f"a {type(matches).__name__}, not Matches"
        raise DataError("summarize", what, "give what `match`, `merge` or `Matches.load` returned")
    if weights is not None:
        weights = arguments.weights("weights", weights, matches.n_images)
        _require_counting(weights)
        image_weights.require_order(matches)
    return Result(matches, scores(matches, weights=weights, threads=threads), weights)


def _require_counting(weights: NDArray[np.float64]) -> None:
    """Raises `DataError` if all weights are 0, or one above 0 is below `LEAST_WEIGHT`."""
    if len(weights) and not weights.any():
        raise DataError("weights", "are all 0", "give an image a weight above 0")
    small = (weights > 0) & (weights < LEAST_WEIGHT)
    if small.any():
        i = int(np.argmax(small))
        what = f"{weights[i]:g} is too small: rules such as COCO's add 2.2e-16 to counts"
        fix = f"multiply all by one number, so that each is 0 or at least {LEAST_WEIGHT:g}"
        raise DataError(f"weights[{i}]", what, fix)
