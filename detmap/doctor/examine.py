"""The examination: try every hypothesis, keep what gains clearly, the likeliest first."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from detmap.doctor import box_hypotheses as boxes
from detmap.doctor import class_hypotheses as classes
from detmap.doctor import image_hypotheses as images
from detmap.doctor import missing_coverage as coverage
from detmap.doctor import score_hypotheses as scores
from detmap.doctor import truth_facts as about_truth
from detmap.doctor.findings import Finding, Repair
from detmap.doctor.raw_rows import Raw
from detmap.doctor.trial import Outcome, Sample, Trial, sample

GROUPS = ("images", "boxes", "classes", "scores", "duplicates")
"""What repairs are of, and what their names begin with."""

ROUNDS = 3  # repairs on top of each other
GAIN, TIMES = 0.02, 1.25  # of AP50 that a repair has to add, and to multiply it by
DEVIATIONS = 3.0  # of the count of found objects, by which it has to rise,
LEAST_MORE = 10  # or objects more, where AP50 rises much
ALIKE = 0.02  # two repairs whose AP50 differs by less are told apart by their weight
DOUBTFUL = 0.1  # AP50 under which two repairs are tried together


class Tried(NamedTuple):
    """A repair, the rows as it leaves them, and what came of it on the sample."""

    repair: Repair
    rows: Raw
    outcome: Outcome


class Chosen(NamedTuple):
    """Repairs that gain clearly together, the rows with them made, and what came of all rows."""

    repairs: list[Repair]
    rows: Raw
    after: Outcome


def examined(trial: Trial, raw: Raw) -> tuple[list[Finding], Raw]:
    """All findings, most likely first, and the rows with the repairs made."""
    findings: list[Finding] = []
    now = trial.outcome(raw)
    for repair in images.repairs(raw, trial.truth):
        if repair.sure:  # the truth knows them by no other name
            raw = repair.apply(raw, trial.truth)
            before, now = now, trial.outcome(raw)
            findings.append(_found(repair, before, now))
            break
    for _ in range(ROUNDS):
        done = {group_of(finding.name) for finding in findings}
        chosen = best(trial, raw, now, [group for group in GROUPS if group not in done])
        if chosen is None:
            break
        repairs, raw, after = chosen
        findings += [_found(repair, now, after) for repair in repairs]
        now = after
    part = sample(trial, raw)
    hardly_shown = (*boxes.turned(raw), *boxes.pixels(part), *scores.repairs(part))  # by AP50
    for repair in hardly_shown:
        if repair.sure and not any(repair.name == each.name for each in findings):
            raw = repair.apply(raw, trial.truth)
            findings.append(_found(repair, now, trial.outcome(raw)))
    findings += images.strangers(raw, trial.truth)
    findings += coverage.facts(trial, raw, now.ap50)
    findings += scores.facts(sample(trial, raw), now.ap50)
    findings += about_truth.facts(trial)
    return findings, raw


def _found(repair: Repair, before: Outcome, after: Outcome) -> Finding:
    flag = f"--fix {repair.name}"
    return Finding(repair.name, repair.sentence, before.ap50, after.ap50, flag)


def best(trial: Trial, raw: Raw, now: Outcome, groups: Collection[str]) -> Chosen | None:
    """The repair of some groups that gains most; two, where only both together gain; none."""
    part = sample(trial, raw)
    base = part.trial.outcome(part.rows)
    tried = list(attempts(trial, part, groups))
    for each in ranked(tried, base):
        rows = each.repair.apply(raw, trial.truth)
        after = trial.outcome(rows)
        if clear(each.repair, now, after):
            return Chosen([each.repair], rows, after)
    if now.ap50 >= DOUBTFUL or len(groups) < len(GROUPS) - 1:
        return None
    return _together(trial, part, now)


def attempts(trial: Trial, part: Sample, groups: Collection[str] = GROUPS) -> Iterator[Tried]:
    """Every repair of some groups on the sample."""
    for repair in candidates(trial, part, groups):
        whole = repair.name.startswith("images-")
        rows = repair.apply(part.raw if whole else part.rows, part.truth)
        yield Tried(repair, rows, part.trial.outcome(rows))


def candidates(trial: Trial, part: Sample, groups: Collection[str]) -> Iterator[Repair]:
    """Every repair of some groups that the rows make possible."""
    if "images" in groups:
        yield from images.repairs(part.raw, trial.truth)
    if "boxes" in groups:
        yield from boxes.repairs(part)
        yield from boxes.pixels(part)
        yield from boxes.turned(part.raw)
    if "classes" in groups:
        yield from classes.repairs(part)
    if "scores" in groups:
        yield from scores.repairs(part)
    if "duplicates" in groups:
        yield from scores.duplicates(part)


def group_of(name: str) -> str:
    """The group of a hypothesis: what stands before its first dash."""
    return name.partition("-")[0]


def ranked(tried: list[Tried], base: Outcome) -> list[Tried]:
    """Those that gain clearly; of the best ones the simplest first."""
    good = [each for each in tried if clear(each.repair, base, each.outcome)]
    most = max((each.outcome.ap50 for each in good), default=0.0)
    return sorted(
        good,
        key=lambda each: (
            each.outcome.ap50 < most * (1 - ALIKE) - 0.005,
            each.repair.weight if each.outcome.ap50 >= most * (1 - ALIKE) - 0.005 else 0,
            -each.outcome.ap50,
        ),
    )


def clear(repair: Repair, before: Outcome, after: Outcome) -> bool:
    """Whether a gain is no accident."""
    if repair.sure and before.ap50 < 0.005:
        return after.ap50 > max(GAIN, 2 * before.ap50)
    if repair.name in ("duplicates", "scores-negated"):  # the rows themselves show them
        return after.ap50 >= before.ap50 + GAIN / 2
    more = after.found - before.found
    if repair.name == "classes-permuted":  # held to other images; two of many classes cost little
        return after.ap50 >= before.ap50 + GAIN and more >= LEAST_MORE
    if after.ap50 < max(before.ap50 + GAIN, before.ap50 * TIMES):
        return False
    if more >= LEAST_MORE and after.ap50 >= max(2 * before.ap50, before.ap50 + 5 * GAIN):
        return True
    return bool(more > DEVIATIONS * (after.found + before.found) ** 0.5)


def _together(trial: Trial, part: Sample, now: Outcome) -> Chosen | None:
    """Boxes or images that are right but for their classes, with the repair of these."""
    view = part.agnostic
    outcomes = []
    for repair in (*images.repairs(part.raw, trial.truth), *boxes.repairs(view)):
        whole = repair.name.startswith("images-")
        rows = repair.apply(part.raw if whole else part.rows, part.truth)
        of_one = replace(rows, classes=(1,), label=np.zeros_like(rows.label))
        outcomes.append(Tried(repair, rows, view.trial.outcome(of_one)))
    for each in ranked(outcomes, view.trial.outcome(view.rows))[:2]:
        repaired = Sample(part.trial, each.rows, part.positions)
        more = [
            Tried(repair, rows, part.trial.outcome(rows))
            for repair in classes.repairs(repaired)
            for rows in [repair.apply(repaired.rows, part.truth)]
        ]
        for other in ranked(more, part.trial.outcome(part.rows)):
            both = other.repair.apply(each.repair.apply(part.raw, trial.truth), trial.truth)
            after = trial.outcome(both)
            if clear(other.repair, now, after):
                return Chosen([each.repair, other.repair], both, after)
    return None
