"""Checks labels and scores of any array type: the input of every ranking metric."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.core.base.reprs import outlined
from detmap.core.curves.scores import NO_WEIGHT, Lists
from detmap.core.tables import MAX_ROWS
from detmap.errors import DataError, few
from detmap.ranking.samples import Classified

BLOCK = 1 << 17  # cells of a matrix per job of row-wise work


@outlined
@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """N samples with labels and scores for K classes.

    Parameters
    ----------
    positive : (N, K) bool
    score : (N, K) of a real dtype, finite or -inf (no prediction)
    weight : (N,) float64, above 0; None for weights of 1
    counted : (N, K) bool, False if a sample is left out of a class; None if none is
    single : the labels were (N,) and binary: a metric is a number, not one per class
    """

    positive: NDArray[np.bool_]
    score: NDArray[Any]
    weight: NDArray[np.float64] | None = None
    counted: NDArray[np.bool_] | None = None
    single: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """N and K."""
        n_samples, n_classes = self.score.shape
        return n_samples, n_classes

    def totals(self, cells: NDArray[np.bool_]) -> NDArray[Any]:
        """(K,) the weight of the true cells (N, K) of each class: a count without weights.

        Added in the order of the samples: the sums of BLAS depend on its number of threads.
        """
        if self.weight is None:
            return np.asarray(cells.sum(axis=0))
        return np.asarray(np.einsum("i,ij->j", self.weight, np.ascontiguousarray(cells)))

    def class_samples(self, k: int) -> Lists:
        """The samples of class `k` as one list."""
        keep = slice(None) if self.counted is None else np.flatnonzero(self.counted[:, k])
        weight = NO_WEIGHT if self.weight is None else self.weight[keep]
        return _lists(self.score[keep, k], self.positive[keep, k], weight)

    def pooled(self) -> Lists:
        """Every (sample, class) as one list."""
        keep = slice(None) if self.counted is None else self.counted.ravel()
        weight = NO_WEIGHT if self.weight is None else np.repeat(self.weight, self.shape[1])[keep]
        return _lists(self.score.ravel()[keep], self.positive.ravel()[keep], weight)

    def rows(self, block: slice) -> Lists:
        """Each sample of a block as a list of its classes; without sample weights."""
        score, positive = self.score[block], self.positive[block]
        if self.counted is None:
            return _lists(
                score.ravel(), positive.ravel(), NO_WEIGHT, np.full(len(score), self.shape[1])
            )
        counted = self.counted[block]
        return _lists(score[counted], positive[counted], NO_WEIGHT, counted.sum(axis=1))

    def blocks(self) -> Iterator[slice]:
        """The rows in blocks of moderate size."""
        n_samples, n_classes = self.shape
        step = max(1, BLOCK // n_classes)
        return (slice(begin, min(begin + step, n_samples)) for begin in range(0, n_samples, step))


def _lists(
    score: NDArray[Any],
    positive: NDArray[np.bool_],
    weight: NDArray[np.float64],
    sizes: ArrayLike | None = None,
) -> Lists:
    off = np.concatenate(([0], np.cumsum([len(score)] if sizes is None else sizes))).astype(
        np.int64
    )
    return Lists(
        _fresh(score, np.float64), _fresh(positive, np.bool_), _fresh(weight, np.float64), off
    )


def _fresh(column: NDArray[Any], dtype: type) -> NDArray[Any]:
    """Convert to the array type of the kernels; the same array if it already has this type."""
    return np.require(column, dtype, ["C", "A"])


def samples(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> Samples:
    """Check labels, scores and weights.

    Parameters
    ----------
    y_true : (N,) or (N, K) of 0/1 or bool; or (N,) of class indices 0 to K - 1 with (N, K) scores,
        which are one-hot encoded
    y_score : (N,) or (N, K) of any real dtype; higher means more confident; -inf means "no
        prediction" and ranks last
    pos_label : the positive value of `y_true`, all others are negative; default: 1 or True, and
        then the others must be 0 or False
    sample_weight : (N,) finite and not negative; samples of weight 0 are left out

    Raises
    ------
    DataError : labels that are not 0/1, scores that are NaN, inf or not real numbers, different
        shapes
    """
    score, labels = _scores(y_score), _array("y_true", y_true)
    single = labels.ndim == 1 and score.ndim == 1
    if labels.ndim == 1 and score.ndim == 2 and score.shape[1] > 1 and len(labels) == len(score):
        positive = _one_hot(labels, score.shape[1], pos_label)
    elif labels.shape != score.shape or score.ndim not in (1, 2):
        raise DataError(
            "y_true, y_score",
            f"shapes {labels.shape} and {score.shape} do not fit each other",
            "both (N,), both (N, K), or (N,) class indices with (N, K) scores",
        )
    else:
        positive = _positive(labels, pos_label)
    if single:
        positive, score = positive[:, None], score[:, None]
    if score.shape[1] == 0 or score.size > MAX_ROWS:
        raise DataError(
            "y_score", f"shape {score.shape}", f"at least one class, and at most {MAX_ROWS} scores"
        )
    if sample_weight is None:
        return Samples(positive, score, single=single)
    weight = _weights(sample_weight, len(score))
    kept = weight > 0
    if kept.all():
        return Samples(positive, score, weight, single=single)
    return Samples(positive[kept], score[kept], weight[kept], single=single)


def samples_of(table: Classified) -> Samples:
    """The samples of a checked table."""
    return Samples(table.positive, table.score, None, table.counted)


def choice(name: str, value: Any, legal: tuple[Any, ...]) -> None:
    """Raise `DataError` for an unknown option."""
    if not isinstance(value, str | None) or value not in legal:
        raise DataError(
            name, f"{value!r:.60} is unknown", f"one of {', '.join(str(each) for each in legal)}"
        )


def _array(name: str, values: ArrayLike) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except Exception as error:  # the conversion of a foreign object can raise anything
        raise DataError(
            name, f"cannot be read as an array: {error}", "give numbers in rows of equal length"
        ) from None


def _scores(values: ArrayLike) -> NDArray[Any]:
    score = _array("y_score", values)
    if score.dtype.kind == "O" or score.size == 0:
        try:
            score = score.astype(np.float64)
        except (ValueError, TypeError):
            raise DataError("y_score", "not an array of numbers", "give real numbers") from None
    if score.dtype.kind not in "biuf":
        raise DataError("y_score", f"dtype {score.dtype}", "give real numbers")
    if score.dtype.kind == "f":
        largest = (
            score.max() if score.size else 0.0
        )  # one pass: the maximum is NaN or inf if either occurs
        if not largest < math.inf:
            row = _first(~(score < math.inf))
            raise DataError(
                f"y_score{_place(row)}",
                f"{score[row]}",
                "a score is a number, or -inf for no prediction",
            )
    elif score.size and max(int(score.max()), -int(score.min())) > 2**53:
        row = _first(np.abs(score.astype(np.float64)) >= 2.0**53)
        raise DataError(
            f"y_score{_place(row)}",
            f"{score[row]} may not fit a double exactly",
            "give ranks or scaled scores",
        )
    return score


def _positive(labels: NDArray[Any], pos_label: Any) -> NDArray[np.bool_]:
    """Which labels are positive."""
    if pos_label is not None:
        if np.ndim(_array("pos_label", pos_label)):
            raise DataError("pos_label", f"{pos_label!r:.60}", "give one label")
        positive = np.broadcast_to(np.asarray(labels == pos_label, dtype=np.bool_), labels.shape)
        others = [] if positive.any() else list(dict.fromkeys(labels.ravel().tolist()))
        if len(others) > 1:
            raise DataError(
                "pos_label",
                f"{pos_label!r} is not a label of y_true",
                f"its labels are {few(map(repr, others))}",
            )
        return positive
    if labels.dtype.kind == "b":
        return labels
    if labels.dtype.kind not in "iufO":
        raise DataError(
            "y_true",
            f"dtype {labels.dtype}",
            "give 0/1 or bool, or name the positive label in pos_label",
        )
    positive = np.asarray(labels == 1, dtype=np.bool_)
    other = positive | (labels == 0)
    if not other.all():
        row = _first(~np.asarray(other, dtype=np.bool_))
        raise DataError(
            f"y_true{_place(row)}",
            f"{labels[row]!s} is neither 0 nor 1",
            "give 0/1 or bool, or name pos_label, or give class indices with scores (N, K)",
        )
    return positive


def _one_hot(labels: NDArray[Any], n_classes: int, pos_label: Any) -> NDArray[np.bool_]:
    """(N, K) from class indices."""
    if pos_label is not None:
        raise DataError(
            "pos_label",
            f"{pos_label!r} given with class indices",
            "each class is positive in its own column",
        )
    whole = labels.dtype.kind in "iu" or (
        labels.dtype.kind == "f" and np.asarray(labels == np.floor(labels)).all()
    )
    if not whole and labels.size:
        raise DataError(
            "y_true",
            f"{labels.dtype} labels for scores of {n_classes} classes",
            "give class indices from 0",
        )
    outside = (labels < 0) | (labels >= n_classes)
    if outside.any():
        row = _first(outside)
        raise DataError(
            f"y_true{_place(row)}",
            f"class {labels[row]} of {n_classes} columns in y_score",
            f"class indices run from 0 to {n_classes - 1}",
        )
    positive = np.zeros((len(labels), n_classes), dtype=np.bool_)
    positive[np.arange(len(labels)), labels.astype(np.int64)] = True
    return positive


def _weights(values: ArrayLike, n_samples: int) -> NDArray[np.float64]:
    given = _array("sample_weight", values)
    if given.shape != (n_samples,):
        raise DataError(
            "sample_weight",
            f"shape {given.shape} for {n_samples} samples",
            f"give shape ({n_samples},)",
        )
    try:
        weight = given.astype(np.float64)
    except (ValueError, TypeError):
        raise DataError("sample_weight", f"dtype {given.dtype}", "give real numbers") from None
    bad = ~(np.isfinite(weight) & (weight >= 0))
    if bad.any():
        row = _first(bad)
        raise DataError(
            f"sample_weight{_place(row)}", f"{weight[row]}", "a weight is finite and not negative"
        )
    return weight


def _first(bad: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))


def _place(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]"


def from_arrays(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    classes: Sequence[str] | None = None,
    ids: Sequence[str] | None = None,
    pos_label: Any = None,
) -> Classified:
    """A table from labels and scores in memory.

    Parameters
    ----------
    y_true, y_score, pos_label : see `detmap.ranking.label_inputs.samples`
    classes, ids : names of the K columns and N rows; their numbers from 0 when left out

    Raises
    ------
    DataError : labels that are not 0/1, scores that are NaN, shapes that differ, a wrong number
        of names
    """
    checked = samples(y_true, y_score, pos_label=pos_label)
    n_samples, n_classes = checked.shape
    return Classified(
        _names("ids", ids, n_samples),
        _names("classes", classes, n_classes),
        checked.positive,
        np.ascontiguousarray(checked.score, dtype=np.float64),
        source="arrays",
    )


def _names(what: str, given: Sequence[str] | None, n_names: int) -> tuple[str, ...]:
    if not isinstance(given, Iterable | None):
        raise DataError(what, f"a {type(given).__name__}", "give a list of names")
    names = tuple(map(str, range(n_names) if given is None else given))
    if len(set(names)) != n_names or len(names) != n_names:
        raise DataError(
            what, f"{len(names)} names, {len(set(names))} different, for {n_names}", "one name each"
        )
    return names
