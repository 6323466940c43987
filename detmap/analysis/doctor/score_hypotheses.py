"""Hypotheses about scores and the choice of detections: their scale and order, duplicates, cuts."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.doctor.duplicates import SAME_OBJECT, doubled, suppressed
from detmap.analysis.doctor.quick_checks import (
    BEYOND,
    DOUBLES,
    LEAST_ROWS,
    TURNED,
    is_cut,
    order_of,
)
from detmap.analysis.doctor.raw_rows import Raw
from detmap.analysis.doctor.repair import Repair
from detmap.analysis.doctor.trial import Sample
from detmap.analysis.doctor.uneven_parts import Counts, wrong_images
from detmap.core.results.findings import Finding
from detmap.core.tables import Truth

PERCENT = 15.0  # a highest score from here to 100 is in percent; logits hardly get there
MIXED = 0.01  # of AP50, by which percent in some images alone has to be better
ROUNDED = 101  # different scores at most, of rounded ones
LEAST_ROUNDED = 500  # rows, and 5 a score
LUCK = 0.02  # of AP50, on the order of equal scores
SUPPRESSED = 0.65  # overlap above which suppression takes the worse box
LEAST_CUT = 100  # rows, from which equal numbers per image are no accident
RIGHT = 0.5  # share of the last detections of images that are right: more would come


def _ends(score: NDArray[np.float64]) -> tuple[float, float]:
    """The lowest and the highest score; 0 of none."""
    return (float(score.min()), float(score.max())) if len(score) else (0.0, 0.0)


def repairs(sample: Sample) -> Iterator[Repair]:
    """Scores of another scale or order."""
    low, high = _ends(sample.raw.score)
    order = order_of(sample.rows.score, sample.right) if high > low else 0.5
    negative = -1 <= low < 0 and high <= 0 and order < 1 - TURNED
    if low >= 0 and PERCENT <= high <= 100:
        text = f"scores go up to {high:.6g}: they are in percent"
        n_fractions, n = len(_fraction_rows(sample.rows)), len(np.unique(sample.rows.image))
        if n_fractions and _is_mixed(sample):
            text += (
                f"; in {n_fractions} of {n} images no score is above 1: these are left as they are"
            )
            yield Repair("scores-percent", text, _partly_divided, 2, True)
            return
        yield Repair("scores-percent", text, _divided, 1, True)
    elif (low < 0 or BEYOND < high < PERCENT) and low < high and not negative:
        text = f"scores go from {low:.6g} to {high:.6g}: they are logits, not probabilities"
        yield Repair("scores-logits", text, _squashed, 2, True)
    if negative or order < TURNED:
        yield Repair(
            "scores-negated", "the lowest score is the most confident", _negated, 1, negative
        )


def _divided(raw: Raw, _: Truth) -> Raw:
    return replace(raw, score=raw.score / 100)


def _is_mixed(sample: Sample) -> bool:
    """Whether percent in some images alone is clearly better than in all."""
    some, every = (
        sample.trial.whole(divide(sample.rows, sample.truth))
        for divide in (_partly_divided, _divided)
    )
    return some > every + MIXED


def _fraction_rows(raw: Raw) -> NDArray[np.int64]:
    """Codes of images without scores above 1, where that is no accident."""
    n = np.bincount(raw.image)
    wrong = wrong_images(Counts(n, np.bincount(raw.image[raw.score > BEYOND], minlength=len(n))))
    return np.array(wrong, dtype=np.int64)


def _partly_divided(raw: Raw, _: Truth) -> Raw:
    high = np.isin(raw.image, raw.image[raw.score > BEYOND])
    return replace(raw, score=np.where(high, raw.score / 100, raw.score))


def _squashed(raw: Raw, _: Truth) -> Raw:
    tail = np.exp(-np.abs(raw.score))
    return replace(raw, score=np.where(raw.score < 0, tail, 1.0) / (1 + tail))


def _negated(raw: Raw, _: Truth) -> Raw:
    """The order turned round; scores that were fractions stay so."""
    low, high = _ends(raw.score)
    if low >= -1 and high <= 0:
        return replace(raw, score=-raw.score)
    return replace(raw, score=(1.0 if low >= 0 and high <= BEYOND else 0.0) - raw.score)


def facts(sample: Sample, ap50: float) -> Iterator[Finding]:
    """Problems of scores that cannot be fixed."""
    raw = sample.raw
    low, high = _ends(raw.score)
    few_rows = raw.score if len(raw) <= 20_000 else raw.score[:: len(raw) // 10_000]
    n_different = len(np.unique(few_rows))
    if len(raw) >= LEAST_ROWS and low == high:
        yield Finding(
            "scores-equal",
            f"all {len(raw):,} detections have the score {low:g}: their order is that of the file, "
            "and AP means nothing",
            ap50,
        )
        return
    if n_different <= ROUNDED and len(raw) >= max(LEAST_ROUNDED, 5 * n_different):
        change = _luck(sample)
        if change > LUCK:
            yield Finding(
                "scores-rounded",
                f"{len(raw):,} detections have only {len(np.unique(raw.score))} different scores: "
                f"the order of equal ones changes AP50 by {change:.3f}",
                ap50,
            )
    yield from _cuts(sample, ap50)


def _luck(sample: Sample) -> float:
    """How much of AP50 hangs on the order of equal scores: the right ones first, or last."""
    rows, right = sample.rows, sample.right
    least = np.diff(np.unique(rows.score)).min(initial=1.0) / 4
    first, last = (replace(rows, score=rows.score + sign * least * right) for sign in (1, -1))
    return sample.trial.whole(first) - sample.trial.whole(last)


def _cuts(sample: Sample, ap50: float) -> Iterator[Finding]:
    """Detections that were thrown away while most of their like were right."""
    rows, met, right = sample.rows, sample.met, sample.right
    recall = len(np.unique(met.place[right[met.row]])) / max(1, len(sample.truth))
    cut = is_cut(rows.score, right, recall)
    if cut is not None:
        yield Finding(
            "scores-cut",
            f"no detection has a score below {cut[0]:.3g}, and {cut[1]:.0%} of the lowest ones are "
            f"correct: a score threshold was applied; recall ends at {recall:.2f}",
            ap50,
        )
    if len(rows) < LEAST_CUT:
        return
    image, _ = rows.places(sample.truth)
    count = np.bincount(image, minlength=len(sample.truth.images))
    most = int(count.max())
    full = count == most
    if most < 20 and full.sum() > 0.5 * (count > 0).sum() and full.sum() >= 20:
        order = np.lexsort((rows.score, image))
        last = order[np.unique(image[order], return_index=True)[1]]
        last = last[full[image[last]]]
        objects = np.bincount(sample.truth.image, minlength=len(count))
        if right[last].mean() > RIGHT and (objects[full] >= most).mean() > 0.2:
            yield Finding(
                "scores-top-k",
                f"most images have exactly {most} detections, and {right[last].mean():.0%} of the "
                f"last ones match an object: only the top {most} per image were kept",
                ap50,
            )


# --- duplicates -----------------------------------------------------------------------------------


def duplicates(sample: Sample) -> Iterator[Repair]:
    """Suppresses duplicates if many boxes overlap a higher-scoring box of their class."""
    share = doubled(sample.rows)
    if share >= DOUBLES:
        text = (
            f"{share:.0%} of the detections overlap a higher-scoring one of their class (IoU above "
            f"{SAME_OBJECT:g}): duplicates were not suppressed"
        )
        yield Repair("duplicates", text, _suppressed, 2)


def _suppressed(raw: Raw, _: Truth) -> Raw:
    return raw.take(np.flatnonzero(suppressed(raw, SUPPRESSED)))
