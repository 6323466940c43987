"""--ci and --ties: confidence intervals and the effect of tied scores."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from detmap.cli import options, streams
from detmap.cli.dispatch import CHOICES
from detmap.core.output.table import Table
from detmap.core.tables import Truth
from detmap.errors import DetmapError

if TYPE_CHECKING:
    from detmap.core.results.result import Result
    from detmap.core.statistics.intervals import Intervals
    from detmap.core.statistics.ties import Tied

METHODS = CHOICES["--ci"]
AUTOMATIC = METHODS[0]
TABLES = ("intervals", "class-intervals", "ties")


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_intervals(command, per_class=True)
    command.add_argument(
        "--ties",
        action="store_true",
        help="Report how much the order of tied scores can change each metric.",
    )


NAMES = "id, file name or stem"


def add_intervals(
    command: argparse.ArgumentParser, *, per_class: bool = False, names: str = NAMES
) -> None:
    """--ci, --level, --seed and --groups; `per_class`: the command has the option --per-class;
    `names` of images in a file of groups.
    """
    command.add_argument(
        "--ci",
        nargs="?",
        const=AUTOMATIC,
        choices=METHODS,
        metavar="METHOD",
        help="Report confidence intervals by the jackknife: every number is evaluated again on 57 "
        "subsets of the images." + " Add --per-class for intervals per class." * per_class,
    )
    command.add_argument(
        "--level",
        type=options.fraction,
        metavar="P",
        help="Set the confidence level (default: 0.95).",
    )
    add_sampling(command, names)


def add_sampling(command: argparse.ArgumentParser, names: str = NAMES) -> None:
    """--seed and --groups."""
    command.add_argument(
        "--seed", type=options.whole, metavar="S", help="Set the random seed (default: 0)."
    )
    command.add_argument(
        "--groups",
        type=options.path,
        metavar="FILE",
        help="Resample image groups (for example, frames of one video) listed in a CSV file "
        f"image,group; images by {names}.",
    )


def drawing(arguments: argparse.Namespace, truth: Truth | None = None) -> dict[str, Any]:
    """Return the given sampling options as keywords; groups by image id if `truth` is given."""
    names = ("level", "seed", "groups")
    given = {name: getattr(arguments, name, None) for name in names}
    if given["groups"] is not None and truth is not None:
        from detmap.core.statistics.sampling_units import groups_of

        given["groups"] = groups_of(given["groups"], truth, getattr(arguments, "image_key", None))
    return {name: value for name, value in given.items() if value is not None}


class Known(NamedTuple):
    """Intervals and tie effects of a result.

    Parameters
    ----------
    intervals, ties : None and {} if not requested
    signature : of the result, with the options of the intervals
    tables : of intervals and ties
    """

    intervals: Intervals | None
    ties: dict[str, Tied]
    signature: str
    tables: list[Table]

    def added_to(
        self, tables: Sequence[Table], between: Sequence[Table] = (), more: Sequence[str] = ()
    ) -> list[Table]:
        """Return the tables of a result, others, and those of intervals and ties; below the last
        one are the lines of the result's last table, which ends with the signature, and more.
        """
        *first, last = tables
        every = [*first, replace(last, lines=()), *between, *self.tables]
        below = last.lines
        if self.intervals is not None:
            told = filter(None, [self.intervals.sentence()])
            below = (*below[:-1], *told, self.signature)
        every[-1] = replace(every[-1], lines=(*every[-1].lines, *below, *more))
        return every

    def write_into(self, content: dict[str, Any]) -> None:
        """Add to the JSON of a result."""
        made = self.intervals
        if made is not None:
            content["intervals"] = {key: one.to_dict() for key, one in made.metrics.items()}
            for row, of_class in zip(content["per_class"], made.classes, strict=True):
                row["intervals"] = {key: one.to_dict() for key, one in of_class.items()}
            content["sentence"] = made.sentence() or None
        if self.ties:
            content["ties"] = {key: one.to_dict() for key, one in self.ties.items()}
        content["signature"] = self.signature


def known(result: Result, arguments: argparse.Namespace) -> Known:
    """Compute the requested intervals and tie effects."""
    truth = None if result.matched is None else result.matched[0]
    per_class = arguments.per_class or arguments.table == "class-intervals"
    found = known_intervals(result, arguments, truth, per_class=per_class)
    if not arguments.ties:
        return found
    from detmap.core.statistics.ties import tie_table

    streams.progress("evaluating random orders of tied scores")
    ties = result.ties(threads=getattr(arguments, "threads", None))
    return found._replace(ties=ties, tables=[*found.tables, tie_table(ties)])


def known_intervals(
    result: Any, arguments: argparse.Namespace, truth: Truth | None = None, *, per_class: bool
) -> Known:
    """Compute the requested intervals.

    Parameters
    ----------
    result : with a signature and the method `intervals`
    truth : by which a file of groups names images; None: by id
    per_class : whether to show the table of the classes
    """
    given = drawing(arguments, truth)
    if arguments.ci is None:
        if given:
            raise DetmapError(f"--{next(iter(given))}", "needs --ci", "add --ci")
        return Known(None, {}, result.signature, [])
    method = "jackknife" if arguments.ci == AUTOMATIC else arguments.ci
    given |= {"threads": getattr(arguments, "threads", None)}
    given["progress"] = streams.counter("evaluations")
    made = result.intervals(**given, method=method)
    signature = f"{result.signature}|{made.signature}"
    return Known(made, {}, signature, made.tables(per_class=per_class))
