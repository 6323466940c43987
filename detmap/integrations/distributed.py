"""Distributed evaluation with Dask (``pip install 'detmap-eval[dask]'``).

Workers match each shard and split its match rows by class. Other tasks then compute the scores
of each class. No machine holds all rows.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters import options_of, read_detections, read_truth_for
from detmap.core.adapters.in_memory.nested_arrow import images_from_table as images_from_table
from detmap.core.base.sums import add_integers
from detmap.core.curves import scores as curves
from detmap.core.curves.scores import Scores
from detmap.core.matching.engine import match
from detmap.core.matching.matches import Matches
from detmap.core.matching.matches_overview import Overview, RowSummary, overview, row_summary
from detmap.core.protocol import Protocol
from detmap.core.protocol.default_protocol import prepare
from detmap.core.results.result import Result
from detmap.core.tables import MAX_ROWS, Detections, Truth
from detmap.errors import DataError, require
from detmap.integrations.shards import match_shard as match_shard
from detmap.integrations.shards import reduce as reduce

if TYPE_CHECKING:
    from distributed import Client

MOST_ROWS = 10_000_000
"""Match rows, about 400 MB, that `evaluate` fetches by default."""

Shard = tuple[str | Path, str | Path] | Callable[[], tuple[Truth, Detections]]


def evaluate(
    shards: Sequence[Shard],
    protocol: Protocol | str = "coco-bbox",
    client: Client | None = None,
    *,
    settings: dict[str, Any] | None = None,
    rows: bool | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Result:
    """Evaluates shards of a data set on a Dask cluster; gives the same bits as one process.

    Parameters
    ----------
    shards : pairs of paths (truth, detections) as the workers see them, or functions that
        return truth and detections. Each image is in one shard; all shards have the same
        classes. Protocols with ties by input order use the order of the shards.
    protocol : a protocol, the name of one, or the path of a TOML file
    client : Dask client (default: the current one, else a local cluster for this call)
    settings : keys of the protocol to change
    rows : whether the result has the match rows, for `Result.intervals` and `Result.curve`; None:
        if there are at most 10 million
    progress : called with the numbers of matched shards and of all shards

    Returns
    -------
    Result; without match rows it has no intervals and no curves

    Raises
    ------
    DataError : not a list of shards; a shard cannot be read
    MergeError : an image in two shards, or different classes
    ProtocolError : an unknown protocol, key or value

    Notes
    -----
    Dask repeats the shards of a lost worker, with the same bits. Without `rows`, this process holds
    only paths and scores.
    """
    _require_pairs(shards)
    if not shards:
        raise DataError(
            "shards", "no shards", "give pairs of paths, or functions that return the tables"
        )
    as_completed = require("distributed", "dask").as_completed
    rules = prepare(protocol, settings)
    rules.require("Dask")
    with _connected(client) as cluster:
        n_groups = 2 * (add_integers(cluster.nthreads().values()) or 4)
        parts = cluster.map(_match, list(shards), protocol=rules, pure=False, key="detmap-match")
        heads = cluster.map(_head, parts, pure=False, key="detmap-head")
        offsets = cluster.submit(_offsets, heads, pure=False, key=_named("offsets", heads))
        dealt = cluster.map(
            _deal,
            parts,
            range(len(parts)),
            offsets=offsets,
            n_groups=n_groups,
            pure=False,
            key="detmap-deal",
        )
        scored = _score_groups(cluster, dealt, heads, n_groups)
        joined = cluster.submit(_join, heads, scored, pure=False, key=_named("join", heads))
        n_rows = cluster.submit(_n_rows, heads, pure=False, key=_named("rows", heads))
        for done, head in enumerate(as_completed(heads), start=1):
            if head.status == "error":
                head.result()
            if progress is not None:
                progress(done, len(shards))
        kept = None
        if rows or (rows is None and n_rows.result() <= MOST_ROWS):
            moved = cluster.map(
                _moved, parts, range(len(parts)), offsets=offsets, pure=False, key="detmap-rows"
            )
            first, *others = cluster.gather(moved)
            kept = first.merge(*others)
            del moved
        del parts, dealt  # lets the cluster free them after use
        summary, scores = joined.result()
    return Result(summary if kept is None else kept, scores)


def _require_pairs(shards: Any) -> None:
    """Raises `DataError` for anything but a list of shards, such as one pair of paths."""
    fix = 'give a list of shards: [("truth.json", "detections.json"), ...], or of functions'
    if isinstance(shards, str | Path | Truth | Detections) or not isinstance(shards, Sequence):
        raise DataError("shards", f"{_described(shards)}, not a list of shards", fix)
    paired = len(shards) == 2
    for i, shard in enumerate(shards):
        if callable(shard):
            continue
        if isinstance(shard, tuple | list) and len(shard) == 2:
            unfit = [each for each in shard if not isinstance(each, str | Path)]
            if not unfit:
                continue
            what = f"{_described(unfit[0])}, not a path"
            more = "; for tables give a function that returns (truth, detections)"
            raise DataError(f"shards[{i}]", what, fix + more)
        if paired and isinstance(shard, str | Path | Truth | Detections):
            fix = "give a list of pairs: [(truth, detections)]"
            if not isinstance(shard, str | Path):
                fix = "give a list of functions: [lambda: (truth, detections)]"
            raise DataError("shards", "one pair of ground truth and detections", fix)
        raise DataError(f"shards[{i}]", f"{_described(shard)}, not a pair of paths", fix)


def _described(value: Any) -> str:
    return f"{value!r:.80}" if isinstance(value, str | Path) else f"a {type(value).__name__}"


def _score_groups(cluster: Client, dealt: list[Any], heads: list[Any], n_groups: int) -> list[Any]:
    """Submits the scores of each group of classes."""
    scored = []
    for g in range(n_groups):
        pieces = cluster.map(
            operator.getitem, dealt, [g] * len(dealt), pure=False, key="detmap-piece"
        )
        key = _named(f"score-{g}", heads)
        scored.append(cluster.submit(_score, pieces, group=(g, n_groups), pure=False, key=key))
    return scored


@contextmanager
def _connected(client: Client | None) -> Iterator[Client]:
    from distributed import Client, get_client

    if client is None:
        try:
            client = get_client()
        except ValueError:  # no current client
            with Client() as own:
                yield own
            return
    yield client


def _named(task: str, heads: Sequence[Any]) -> str:
    """A unique key per evaluation; its first words show on the dashboard."""
    return f"detmap-{task}-{heads[0].key.rpartition('-')[0].removeprefix('detmap-head-')}"


# --- tasks on the workers ---


@dataclass(frozen=True, slots=True, eq=False)
class _Head:
    """A shard without its rows."""

    images: Matches
    n_images_without_objects: int
    end: int
    n_rows: int


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """The scores of some classes, given by position."""

    classes: NDArray[np.int64]
    scores: Scores
    summary: RowSummary


def _match(shard: Shard, *, protocol: Protocol) -> Matches:
    if callable(shard):
        truth, detections = shard()
    else:
        truth = read_truth_for(shard[0], protocol)
        detections = read_detections(shard[1], truth, **options_of(protocol))
    return match(truth, detections, protocol, threads=1)


def _head(part: Matches) -> _Head:
    return _Head(
        part.without_rows(),
        part.n_images_without_objects(),
        int(part.position.max(initial=-1)) + 1,
        len(part),
    )


def _n_rows(heads: Sequence[_Head]) -> int:
    return add_integers(head.n_rows for head in heads)


def _offsets(heads: Sequence[_Head]) -> list[int]:
    """What to add to each shard's positions, for protocols with ties by input order."""
    if heads[0].images.protocol.ranking.ties == "image":
        return [0] * len(heads)
    ends = list(accumulate(head.end for head in heads))
    if ends[-1] > MAX_ROWS:
        raise DataError(
            "shards",
            f"{ends[-1]} detections",
            f"a protocol with ties by input order ranks at most {MAX_ROWS}",
        )
    return [0, *ends[:-1]]


def _moved(part: Matches, shard: int, *, offsets: Sequence[int]) -> Matches:
    """A shard's rows with positions in the whole."""
    return replace(part, position=part.position + np.int32(offsets[shard]))


def _deal(part: Matches, shard: int, *, offsets: Sequence[int], n_groups: int) -> list[Matches]:
    """Splits a shard's rows by group of classes."""
    moved = _moved(part, shard, offsets=offsets)
    return [
        moved.select_classes(_classes(len(part.categories), g, n_groups)) for g in range(n_groups)
    ]


def _classes(n_classes: int, g: int, n_groups: int) -> NDArray[np.int64]:
    return np.arange(g, n_classes, n_groups)


def _score(pieces: Sequence[Matches], *, group: tuple[int, int]) -> _Group:
    whole = pieces[0].merge(*pieces[1:])
    g, n_groups = group
    classes = g + n_groups * np.arange(len(whole.categories))
    scores = curves.scores(whole, threads=1)
    return _Group(classes, scores, row_summary(whole))


def _join(heads: Sequence[_Head], groups: Sequence[_Group]) -> tuple[Overview, Scores]:
    images = heads[0].images.merge(*(head.images for head in heads[1:]))
    without = add_integers(head.n_images_without_objects for head in heads)
    order = np.argsort(np.concatenate([group.classes for group in groups]))
    summary = overview(images, (group.summary for group in groups), without, order)
    return summary, curves.join(
        [group.scores for group in groups], [group.classes for group in groups]
    )
