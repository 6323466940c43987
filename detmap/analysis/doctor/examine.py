"""The examination: try every hypothesis, keep what gains clearly, the likeliest first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np

from detmap.analysis.doctor import box_hypotheses as boxes
from detmap.analysis.doctor import class_hypotheses as classes
from detmap.analysis.doctor import (
    fix_chain,
    repeated_rows,
    shaped_rows,
    truth_choice,
    truth_polygons,
    turned_images,
    unexplained,
)
from detmap.analysis.doctor import image_hypotheses as images
from detmap.analysis.doctor import missing_coverage as coverage
from detmap.analysis.doctor import score_hypotheses as scores
from detmap.analysis.doctor import truth_facts as about_truth
from detmap.analysis.doctor.clock import OutOfTimeError
from detmap.analysis.doctor.explanation import (
    CLEARLY,
    MUCH,
    best_ious,
    explains,
    is_closer,
    is_wanted,
    measure,
)
from detmap.analysis.doctor.raw_rows import Raw, image_places
from detmap.analysis.doctor.repair import Repair, group_of
from detmap.analysis.doctor.trial import Outcome, Sample, Trial, around_points, sample
from detmap.core.results.findings import Finding

ROUNDS = 3  # repairs on top of each other
GAIN, TIMES = 0.02, 1.25  # of AP50 that a repair has to add, and to multiply it by
DEVIATIONS = 3.0  # of the count of found objects, by which it has to rise,
LEAST_MORE = 10  # or objects more, where AP50 rises much
ALIKE = 0.02  # two repairs whose AP50 differs by less are told apart by their weight,
CLOSER = 2.5  # or by the overlap of objects, that differs by so many errors of the mean
KEPT_PROMISE = 0.02  # of AP50 by which fixes by name may reach less than was found
SHOWN = ("images", "rows", "scores")  # fixes that the rows show without AP50
LEAST_SHOWN = 0.00005  # AP50 after a fix that is stated
SHAPES_EXPLAINED = {"masks-xy-swapped", "truth-shapes", "truth-keypoints", "truth-area"}
"""What makes shapes wrong beside right boxes."""
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


class Examination:
    """Findings, most likely first, and the rows with the fixes made. Stages that do not end within
    the trial's time are left out, and listed by its clock.
    """

    def __init__(self, trial: Trial, raw: Raw) -> None:
        self.trial, self.rows, self.given = trial, raw, raw
        self.asked = raw
        self.findings: list[Finding] = []
        self.steps: list[tuple[int, Raw, Raw]] = []
        self.now = Outcome(0.0, 0)
        try:
            for name, stage in self.STAGES.items():
                try:
                    with np.errstate(all="ignore"):  # boxes near the limit of a float
                        stage(self)
                except OutOfTimeError:
                    trial.clock.left_out.append(name)
        finally:
            forget()
        if not trial.is_own_rule:
            self.findings = [each.without_ap50() for each in self.findings]

    @property
    def left_out(self) -> list[str]:
        """What was not tried, or not to its end."""
        return list(dict.fromkeys(self.trial.clock.left_out))

    @property
    def not_checked(self) -> str:
        """Why a mistake would not show in these files; "" if it would."""
        n = int(is_wanted(self.trial.truth).sum())
        if self.findings or not 0 < n < unexplained.LEAST or self._stated() >= DOUBTFUL:
            return ""
        what = "object is" if n == 1 else "objects are"
        return (
            f"{n} {what} too few to tell a mistake from a weak detector (at least "
            f"{unexplained.LEAST} are needed)"
        )

    def _stated(self) -> float:
        """AP50 of what the protocol compares."""
        shaped = self.trial.compares_shapes and self.rows.is_shaped
        return self.trial.stated(self.rows) if shaped else self.now.ap50

    @property
    def part(self) -> Sample:
        """Rows on some images."""
        if self._part is None or self._part.raw is not self.rows:
            self._part = sample(self.trial, self.rows)
        return self._part

    _part: Sample | None = None

    def _made(self, repair: Repair) -> None:
        rows = repair.apply(self.rows, self.trial.truth)
        after = self.trial.outcome(rows)
        self._add([repair], rows, after)

    def _add(self, repairs: list[Repair], rows: Raw, after: Outcome) -> None:
        self.steps += [(len(self.findings) + i, self.rows, rows) for i in range(len(repairs))]
        self.findings += [_found(repair, self.now, after) for repair in repairs]
        self.rows, self.now = rows, after

    def _repeated(self) -> None:
        for repair in (*shaped_rows.texts_of_bytes(self.rows), *repeated_rows.repairs(self.rows)):
            self.now = self.trial.outcome(self.rows)
            self._made(repair)
        self.given = self.rows

    def _images(self) -> None:
        """Names that the ground truth has for nothing else: later stages need one of them."""
        self.now = self.trial.outcome(self.rows)
        found = images.repairs(self.rows, self.trial.truth)
        if not any(repair.sure for repair in found):
            return
        known = [(repair, repair.apply(self.rows, self.trial.truth)) for repair in found]
        view = self.trial.agnostic()  # classes may be wrong too
        every = (self.rows, *(rows for _, rows in known))
        now, *fits = (view.whole(rows.classless()) for rows in every)
        best = max(range(len(fits)), key=lambda i: (fits[i], -found[i].weight))
        if fits[best] >= now:
            self._add([found[best]], known[best][1], self.trial.outcome(known[best][1]))

    def _fixes(self) -> None:
        for _ in range(ROUNDS):
            done = {group_of(finding.name) for finding in self.findings}
            groups = [group for group in CANDIDATES if group not in {*done, "rows"}]
            chosen = best(self.trial, self.part, self.now, groups)
            if chosen is None and "boxes" in done:
                more = {*fix_chain.LAST} - {each.name for each in self.findings}
                chosen = best(self.trial, self.part, self.now, ["boxes"], more)
            if chosen is None:
                break
            self._add(*chosen)

    def _truth_layout(self) -> None:
        """Both files are suspects: what the ground truth's own fields contradict comes first."""
        found = truth_choice.choose(self.trial, self.rows)
        if found is not None:
            finding, truth = found
            self.findings.append(finding)
            shaped = replace(truth, shapes=self.trial.shaped_truth.shapes)
            self.trial = replace(self.trial, truth=around_points(shaped), shaped_truth=shaped)
            self.now = self.trial.outcome(self.rows)

    def _unproved(self) -> None:
        """Takes back what is not explained after all: names of images, and boxes in fractions."""
        doubted = {"images", "boxes"} & {group_of(each.name) for each in self.findings}
        if doubted and not explains(measure(self.part, self.part.rows), self.now.ap50):
            tried = {"images", "boxes", "classes"}  # whose AP50 includes the doubted fix
            kept = [each for each in self.findings if group_of(each.name) not in tried]
            named = images.repairs(self.given, self.trial.truth)
            stems = [each for each in named if each.name == "images-by-stem" and each.sure]
            rows = stems[0].apply(self.given, self.trial.truth) if stems else self.given
            self.findings, self.rows, self.steps = kept, rows, []
            self.now = self.trial.outcome(self.rows)

    def _sure_ones(self) -> None:
        """Fixes that hardly change AP50; a shift is looked for where no pixel explains it."""
        part = self.part
        readings = list(boxes.truth_readings(part))
        self.findings += readings
        if readings:  # what is off is the ground truth: moved detections would fit wrong objects
            return
        shaped = self.rows.is_shaped
        exact = () if shaped else (*boxes.turned(self.rows), *boxes.pixels(part))
        for repair in (*exact, *scores.repairs(part)):
            self._make_sure(repair)
        moved = any(finding.name.startswith("boxes-") for finding in self.findings)
        if not moved and shaped_rows.can_move(self.rows):
            for repair in boxes.moves(self.part):
                self._make_sure(shaped_rows.following(repair) if shaped else repair)

    def _make_sure(self, repair: Repair) -> None:
        if repair.sure and repair.name not in {each.name for each in self.findings}:
            self._made(repair)

    def _fixes_by_name(self) -> None:
        """Make the fixes by their names, as `--fix` does: what this does not reach is no fix."""
        names = [each.name for each in self.findings if each.fix]
        if not names:
            return
        promised = self.now.ap50
        made, ap50 = self._chain(names)
        if len(made.repairs) < len(names) or ap50[-1] < promised - KEPT_PROMISE:
            made, ap50 = self._chain([name for name in names if group_of(name) in SHOWN])
        useless = {
            repair.name
            for repair, (begin, end) in zip(made.repairs, _blocks(ap50), strict=True)
            if not repair.sure and ap50[end] < ap50[begin] + GAIN / 2
        }
        if useless:
            made, ap50 = self._chain(each.name for each in made.repairs if each.name not in useless)
        self._restate(made, ap50)

    def _chain(self, names: Iterable[str]) -> tuple[fix_chain.Chain, list[float]]:
        made, _ = fix_chain.chain(self.trial, self.asked, names, attempts)
        return made, [self.trial.outcome(rows).ap50 for rows in made.rows]

    def _restate(self, made: fix_chain.Chain, ap50: list[float]) -> None:
        """Findings of these fixes, in their order, in place of those before."""
        first = next(i for i, each in enumerate(self.findings) if each.fix)
        facts = [each for each in self.findings if not each.fix]
        blocks = _blocks(ap50)
        new = [
            _found(repair, Outcome(ap50[begin], 0), Outcome(ap50[end], 0))
            for repair, (begin, end) in zip(made.repairs, blocks, strict=True)
        ]
        self.findings = [*facts[:first], *new, *facts[first:]]
        rows = made.rows
        self.steps = [(first + i, rows[a], rows[b]) for i, (a, b) in enumerate(blocks)]
        self.rows, self.now = rows[-1], self.trial.outcome(rows[-1])

    def _shapes(self) -> None:
        """Findings of the shapes, and AP50 of the shapes in place of the boxes around them."""
        self.findings += shaped_rows.facts(self.rows)
        if not self.trial.compares_shapes or not self.rows.is_shaped:
            return
        if not shaped_rows.can_move(self.rows) and self._stated() < DOUBTFUL:
            self.findings += self._fixed_frames()
        for i, rows, made in reversed(self.steps):
            before, after = self.trial.stated(rows), self.trial.stated(made)
            if after < LEAST_SHOWN and group_of(self.findings[i].name) not in SHOWN:
                del self.findings[i]  # only the boxes around the shapes fit
            else:
                self.findings[i] = replace(self.findings[i], ap50_before=before, ap50_after=after)

    def _fixed_frames(self) -> Iterator[Finding]:
        """What boxes around masks show that no fix can move."""
        part, base = self.part, self.part.trial.outcome(self.part.rows)
        tried = [_tried(part, repair) for repair in _moves(part)]
        for each in _closest_first(part, ranked(tried, base))[:1]:
            if _is_proved(part, each, each.outcome):
                meant = each.repair.sentence.partition(": mean IoU")[0]
                ap50 = f"{base.ap50:.3f}, then {each.outcome.ap50:.3f}"
                text = f"{meant}, as the boxes around the masks show (their AP50 {ap50}); --fix "
                text += "cannot move run lengths: write the masks again"
                yield Finding(each.repair.name, text)

    def _coverage(self) -> None:
        self.findings += images.strangers(self.rows, self.trial.truth)
        self.findings += coverage.facts(self.trial, self.rows, self.now.ap50)

    def _scores(self) -> None:
        self.findings += scores.facts(self.part, self.now.ap50)

    def _truth(self) -> None:
        self._before_truth = len(self.findings)
        self.findings += about_truth.facts(self.trial, self.rows)
        self.findings += truth_polygons.facts(self.trial.shaped_truth, self.findings)

    def _unexplained(self) -> None:
        facts = [each for each in self.findings[: self._before_truth] if not each.fix]
        facts = [each for each in facts if each.name != "shapes-outside-boxes"]
        done = any(each.ap50_after is None or each.ap50_after >= DOUBTFUL for each in facts)
        names = {each.name for each in self.findings}
        found = unexplained.facts(
            self.part,
            self.now.ap50,
            explained=done or bool(self.left_out),
            shapes=not names & SHAPES_EXPLAINED,
        )
        self.findings[self._before_truth : self._before_truth] = found

    _before_truth = 0
    STAGES: ClassVar[dict[str, Callable[[Examination], None]]] = {
        "repeated rows": _repeated,
        "image names": _images,
        "boxes of the ground truth": _truth_layout,
        "fixes": _fixes,
        "proof": _unproved,
        "pixels and scales": _sure_ones,
        "fixes by name": _fixes_by_name,
        "shapes": _shapes,
        "missing detections": _coverage,
        "score ranges": _scores,
        "ground truth": _truth,
        "unexplained": _unexplained,
    }


def _blocks(ap50: list[float]) -> list[tuple[int, int]]:
    """Where the AP50 before and after each fix are: fixes that gain only with later ones have the
    AP50 before the first and after the last of these.
    """
    begin, found = 0, []
    for i in range(1, len(ap50)):
        gains = [k for k in range(i, len(ap50)) if ap50[k] >= ap50[begin] + GAIN / 2]
        end = gains[0] if gains else i
        found.append((begin, end))
        begin = i if end == i else begin
    return found


def _found(repair: Repair, before: Outcome, after: Outcome) -> Finding:
    flag = f"--fix {repair.name}"
    shown = after.ap50 if after.ap50 >= LEAST_SHOWN else None  # 0 proves nothing
    return Finding(repair.name, repair.sentence, before.ap50, shown, flag)


def best(
    trial: Trial, part: Sample, now: Outcome, groups: Collection[str], names: Collection[str] = ()
) -> Chosen | None:
    """The repair of some groups, or of these names, that gains most; two, where only both together
    gain; none.
    """
    raw = part.raw
    base = part.trial.outcome(part.rows)
    every = attempts(part, groups)
    tried = [each for each in every if not names or each.repair.name in names]
    closer = _closer(part, tried, base)
    for each in _closest_first(part, ranked(tried, base, closer)):
        rows = each.repair.apply(raw, trial.truth)
        after = trial.outcome(rows)
        gains = clear(each.repair, now, after) or (id(each) in closer and after.ap50 >= now.ap50)
        if gains and _is_proved(part, each, after):
            return Chosen([each.repair], rows, after)
    if now.ap50 >= DOUBTFUL or len(groups) < len(CANDIDATES) - 2:
        return None
    return _together(trial, part, now)


def _closer(part: Sample, tried: list[Tried], base: Outcome) -> set[int]:
    """The repairs (as `id`) whose boxes fit clearly better: wrong ones of large objects overlap
    these too.
    """
    doubted = [
        each
        for each in tried
        if not each.repair.sure and group_of(each.repair.name) == "boxes"
        if each.outcome.ap50 >= max(GAIN, base.ap50)
    ]
    if not doubted:
        return set()
    every = (part.rows, *(each.rows for each in doubted))
    before, *after = (best_ious(rows, part.truth, own_class=True) for rows in every)
    fits = zip(doubted, after, strict=True)
    return {id(each) for each, ious in fits if is_closer(before, ious, MUCH)}


def _closest_first(part: Sample, tried: list[Tried]) -> list[Tried]:
    """Of repairs of boxes with the AP50 of the first the one that fits best: where objects are in
    the middle, mirrored boxes overlap turned ones.
    """
    if not tried or group_of(tried[0].repair.name) != "boxes":
        return tried
    chosen, least = tried[0], tried[0].outcome.ap50 * (1 - ALIKE) - 0.005
    ious = best_ious(chosen.rows, part.truth)
    for each in tried[1:]:
        if group_of(each.repair.name) == "boxes" and each.outcome.ap50 >= least:
            other = best_ious(each.rows, part.truth)
            if is_closer(ious, other, CLEARLY, CLOSER):
                chosen, ious = each, other
    return [chosen, *(each for each in tried if each is not chosen)]


def _is_proved(part: Sample, tried: Tried, after: Outcome) -> bool:
    """Whether boxes and images are those of a working detector after the repair."""
    if group_of(tried.repair.name) not in ("boxes", "images"):
        return True
    return explains(measure(part, tried.rows), after.ap50)


def attempts(part: Sample, groups: Collection[str]) -> Iterator[Tried]:
    """Every repair of some groups on the sample."""
    for group in groups:
        yield from _attempts(part, group)


@lru_cache(maxsize=32)  # asked twice for the rows as they are; an examination clears this
def _attempts(part: Sample, group: str) -> tuple[Tried, ...]:
    tried: list[Tried] = []
    try:  # those before the time is over stay
        tried.extend(_tried(part, repair) for repair in CANDIDATES[group](part))
    except OutOfTimeError:
        part.trial.clock.left_out.append(group)
    return tuple(tried)


def _tried(part: Sample, repair: Repair, view: Sample | None = None) -> Tried:
    """A repair on a sample; without classes with a `view` of one class."""
    whole = repair.name.startswith("images-")
    rows = repair.apply(part.raw if whole else part.rows, part.truth)
    if view is not None:
        return Tried(repair, rows, view.trial.outcome(rows.classless()))
    return Tried(repair, rows, part.trial.outcome(rows))


def forget() -> None:
    """Empties what is kept for one examination."""
    for kept in (image_places, images.readings, boxes.moves, sample, _attempts):
        kept.cache_clear()


def _box_repairs(part: Sample) -> Iterator[Repair]:
    moves = _moves(part) if shaped_rows.can_move(part.raw) else iter(())
    yield from map(shaped_rows.following, moves) if part.raw.is_shaped else moves


def _mask_repairs(part: Sample) -> Iterator[Repair]:
    yield from shaped_rows.texts_of_bytes(part.raw)
    yield from shaped_rows.repairs(part)


CANDIDATES: dict[str, Callable[[Sample], Iterable[Repair]]] = {
    "images": lambda part: images.repairs(part.raw, part.whole),
    "boxes": _box_repairs,
    "classes": classes.repairs,
    "scores": scores.repairs,
    "duplicates": scores.duplicates,
    "masks": _mask_repairs,
    "rows": lambda part: repeated_rows.repairs(part.raw),
}
"""The repairs of each group that the rows make possible; their names begin with the group."""


def _moves(part: Sample) -> Iterator[Repair]:
    yield from boxes.repairs(part)
    yield from boxes.moves(part)
    if not part.raw.is_shaped:
        yield from boxes.pixels(part)
        yield from boxes.turned(part.raw)
    yield from turned_images.repairs(part)


def ranked(tried: list[Tried], base: Outcome, closer: Collection[int] = ()) -> list[Tried]:
    """Those that gain clearly, or whose boxes are closer; of the best ones the simplest first."""
    good = [each for each in tried if id(each) in closer or clear(each.repair, base, each.outcome)]
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
    names = repair.sure and group_of(repair.name) in ("classes", "images")
    if names or repair.name in ("duplicates", "scores-negated"):  # the rows themselves show them
        return after.ap50 >= before.ap50 + GAIN / 2
    more = after.found - before.found
    if repair.name in (
        "classes-permuted",
        "boxes-turned",
    ):  # held to other images; two of many classes cost little
        return after.ap50 >= before.ap50 + GAIN and more >= LEAST_MORE
    if after.ap50 < max(before.ap50 + GAIN, before.ap50 * TIMES):
        return False
    if more >= LEAST_MORE and after.ap50 >= max(2 * before.ap50, before.ap50 + 5 * GAIN):
        return True
    return bool(more > DEVIATIONS * (after.found + before.found) ** 0.5)


def _together(trial: Trial, part: Sample, now: Outcome) -> Chosen | None:
    """Boxes or images that are right but for their classes, with the repair of these."""
    view = part.agnostic
    moves = (*boxes.repairs(view), *turned_images.repairs(view))
    if part.raw.is_shaped:
        moves = tuple(map(shaped_rows.following, moves)) if shaped_rows.can_move(part.raw) else ()
    every = (*images.repairs(part.raw, trial.truth), *moves)
    outcomes = [_tried(part, repair, view) for repair in every]
    for each in ranked(outcomes, view.trial.outcome(view.rows))[:2]:
        repaired = replace(part, raw=each.rows)
        more = [_tried(repaired, repair) for repair in classes.repairs(repaired)]
        for other in ranked(more, part.trial.outcome(part.rows)):
            both = other.repair.apply(each.repair.apply(part.raw, trial.truth), trial.truth)
            after = trial.outcome(both)
            if clear(other.repair, now, after):
                return Chosen([each.repair, other.repair], both, after)
    return None
