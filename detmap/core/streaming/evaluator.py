"""Streaming evaluation: batch by batch in a training loop, on several ranks, over several runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from detmap.core.adapters import ClassNames, read_truth_for
from detmap.core.adapters import box_conventions as geometry
from detmap.core.adapters.in_memory.batch_join import Batch, classes_of
from detmap.core.adapters.in_memory.batch_rows import Reader
from detmap.core.adapters.in_memory.batch_tables import Known, identify, pair, read_classes
from detmap.core.adapters.joining.unknown_policy import named_classes, policy
from detmap.core.base.locks import Locked, one_at_a_time
from detmap.core.base.npz_archive import shown_name
from detmap.core.base.reprs import outline
from detmap.core.base.suggestions import ProposesNames, proposes_arguments
from detmap.core.matching.engine import match
from detmap.core.matching.matches import Matches, read
from detmap.core.output.named_values import NamedValues
from detmap.core.overlaps import kind_of
from detmap.core.protocol import Protocol
from detmap.core.protocol.default_protocol import prepare
from detmap.core.protocol.named_columns import named_columns
from detmap.core.results.result import Result
from detmap.core.streaming import batch_counts, torch_ranks
from detmap.core.streaming.merging import renumbered
from detmap.core.streaming.unmatched import Unmatched
from detmap.core.tables import Categories, Detections, Note, Truth
from detmap.core.tables.notes import distinct, listed_names, merged
from detmap.errors import DataError, MergeError, counted
from detmap.evaluate import summarize

if TYPE_CHECKING:
    from concurrent.futures import Future

BUFFERED = 1 << 16
"""Rows of predictions and targets that are kept before they are matched together."""

NO_CLASSES = Categories(np.zeros(0, dtype=np.int64), ())
State = tuple[Matches | Unmatched, bool | None]
"""The images of an evaluator, and whether they are numbered as they came."""

Classes = Sequence[str] | Sequence[int] | Mapping[int, str] | Categories


class Evaluator(Locked, ProposesNames):
    """Evaluates batches of predictions and targets; gives the result so far at any time.

    >>> import detmap
    >>> ev = detmap.Evaluator("coco-bbox", classes=["cat", "dog"])
    >>> box = {"boxes": [[10, 10, 50, 50]], "labels": [1]}
    >>> ev.update([{**box, "scores": [0.9]}], [box])
    >>> round(ev.compute().metrics["AP50"], 6)
    1.0

    Each batch is checked at once. 65,536 rows (predictions and targets) are matched together; then
    only their match rows are kept. The numbers equal `detmap.evaluate` of the same boxes, masks or
    keypoints, bit for bit, for any batches in any order.

    Parameters
    ----------
    protocol : a protocol, the name of one, or the path of a TOML file
    classes : names (ids 0, 1, 2 ...), ids, or a dict from id to name; omit with `truth`. Without
        both, labels define the classes as they come, all by id or all by name; then rows are kept
        until `compute`, because a new class can change the order of classes
    truth : a table, path or object as in `detmap.evaluate`; `update` then takes
        predictions only, with image ids. The result covers the updated images; a note counts the
        others.
    box_format : ``xyxy`` corners, ``xywh`` or ``cxcywh`` in continuous pixels from 0;
        ``normalized xyxy`` etc. in fractions of the image (needs ``orig_size``: height, width);
        ``voc``: first and last pixel, counted from 1, inclusive
    settings : keys of the protocol to change, ``{"limits.max_dets": [1, 10, 300]}``
    unknown, class_names : handling of unknown classes and images, and names of class ids; as in
        `detmap.read_detections`

    Raises
    ------
    DataError : both `classes` and `truth`, duplicate classes, unknown box format
    ProtocolError : an unknown protocol, key or value

    Notes
    -----
    **Image ids.** With an ``image_id`` in every image, the order of arrival has no effect. Else
    images are numbered as they arrive; a merge renumbers those of the second part. The number only
    orders tied scores on different images.

    **Threads.** Threads may share an evaluator; calls run one at a time.

    **Ties.** Tied scores are ordered by image id, then by position in the batch. The same holds for
    protocols with ties by input order (``ranking.ties = "input"``, VOC).

    **Exactness of boxes.** Tables hold ``x y width height``; ``xywh`` and ``voc`` boxes are kept.
    Corners and centers are converted in float64. This is exact for whole and half pixels. It is
    exact for float32 boxes if all coordinates are 0 or from 2**-9 to 2**16. Other float64 boxes may
    change by one rounding, as in a COCO file.
    """

    @proposes_arguments
    def __init__(
        self,
        protocol: Protocol | str = "coco-bbox",
        *,
        classes: Classes | None = None,
        truth: Any = None,
        box_format: str = "xyxy",
        settings: Mapping[str, Any] | None = None,
        unknown: str = "error",
        class_names: ClassNames | None = None,
    ) -> None:
        if not isinstance(box_format, str) or box_format not in geometry.IN_MEMORY:
            fix = f"the formats are {', '.join(geometry.IN_MEMORY)}"
            raise DataError("box_format", f"no format {box_format!r}", fix)
        if isinstance(truth, Detections):
            fix = "give the ground truth, or its path"
            raise DataError("truth", "is a table of detections", fix)
        if classes is not None and truth is not None:
            fix = 'give classes=["cat", "dog"], or truth='
            what = "classes and truth: the ground truth has its own classes"
            raise DataError("Evaluator", what, fix)
        self.protocol = prepare(protocol, settings)
        self.protocol.require("Evaluator")
        self.protocol.rows()  # a rule of a benchmark's own has none, and is refused by name
        self.box_format = box_format
        self.truth, told = None, policy(unknown, class_names)
        if truth is not None:
            if not isinstance(truth, Truth):
                truth = read_truth_for(truth, self.protocol)
            truth, told = named_classes(truth, told)
            self.truth = Known(truth)
        given = None if classes is None else read_classes(classes)
        self._reader = Reader(
            given if self.truth is None else self.truth.table.categories,
            box_format,
            *named_columns(self.protocol),
            policy=told,
            truth=self.truth,
            shapes=kind_of(self.protocol.iou.of).reader,
        )
        self.reset()

    @one_at_a_time
    def reset(self) -> None:
        """Removes all images; keeps protocol and classes."""
        self._parts: list[Matches] = []
        self._pending: list[Batch] = []  # checked, not matched
        self._n_pending = 0  # their rows
        self._seen: set[Any] = set()
        self._numbered: bool | None = None  # None before the first image
        self._gathered = False  # whether `sync` added the images of other ranks
        self._last: Batch | None = None  # of the last update, None if it was refused
        self._n_refused = 0
        self._result: Result | None = None
        self._checked: tuple[Truth, Detections] | None = None  # the largest batch, for the doctor

    @property
    @one_at_a_time
    def categories(self) -> Categories:
        """The classes; those seen so far, if they come as they are."""
        if self._reader.categories is not None:
            return self._reader.categories
        batch = self._batch()
        return classes_of(np.zeros(0, dtype=np.int64) if batch is None else batch.labels())[0]

    def __getstate__(self) -> dict[str, Any]:
        """A copy does not share what `update` changes."""
        state = super().__getstate__()
        own = {name: type(state[name])(state[name]) for name in ("_parts", "_pending", "_seen")}
        return state | own

    def __repr__(self) -> str:
        data = f"{counted(len(self), 'image')} of {counted(len(self.categories), 'class')}"
        return outline(self, self.protocol.name, data, f"{self.box_format} boxes")

    def __len__(self) -> int:
        """How many images were updated."""
        return len(self._seen)

    # --- feeding ---

    @one_at_a_time
    def update(
        self, predictions: Any = None, targets: Any = None, *, preds: Any = None, target: Any = None
    ) -> None:
        """Adds a batch; on an error nothing is added, and a note of the result counts the batch.

        Parameters
        ----------
        predictions : B dicts with ``boxes`` (n, 4), ``scores`` (n,), ``labels`` (n,) class ids or
            names and optional ``image_id``; or objects with ``xyxy``, ``confidence``,
            ``class_id``; or a dict from image id to these. Arrays of numpy, torch, JAX, CuPy (on
            the CPU) or lists. Protocols that compare masks need ``masks`` (n, height, width);
            keypoints ``keypoints`` (n, points, 3); rotated boxes ``polygons`` (n, 8) corners or
            (n, 5) rectangles; or a list of n values as in COCO JSON, ``segmentation`` or
            ``keypoints``. ``boxes`` may then be missing. Polygons need ``orig_size`` (height,
            width).
        targets : the same B images: ``boxes``, ``labels``; optional ``area`` (n,) in square pixels,
            flags ``iscrowd``, ``difficult``, ``ignore`` (n,), ``image_id``, and other roles and
            attributes of the protocol by name. None if the evaluator has the ground truth.
        preds, target : other names of both, those of torchmetrics

        Raises
        ------
        DataError : inconsistent shapes, unknown labels, non-finite numbers, negative sizes, a
            repeated image, an image that is not in the ground truth, or a misspelt key (other
            unknown keys are ignored)
        """
        try:
            self._last = self._added(predictions, targets, preds=preds, target=target)
        except Exception:
            self._last, self._result, self._n_refused = None, None, self._n_refused + 1
            raise

    def _added(self, predictions: Any, targets: Any, *, preds: Any, target: Any) -> Batch | None:
        """Does `update`; returns the batch, None without images."""
        for name, twice in (("preds", predictions), ("target", targets)):
            if {"preds": preds, "target": target}[name] is not None and twice is not None:
                raise DataError("update", f"{name} is given twice", "give it once")
        predictions = preds if predictions is None else predictions
        targets = target if targets is None else targets
        known = self.truth is not None
        predicted, annotated = pair(predictions, targets, known, self.box_format)
        if not predicted:
            return None
        ids, numbered = identify(predicted, annotated, self._seen, self._numbered, self.truth)
        batch = self._reader.read(ids, predicted, annotated)
        if self._reader.categories is None:
            self._check_labels(batch)
        full = self._n_pending + len(batch) >= BUFFERED and self._reader.categories is not None
        if full or not self._seen:  # the first one at once: it shows what the protocol lacks
            part = self._match([*self._pending, batch])
        if full:
            self._parts, self._pending, self._n_pending = [*self._parts, part], [], 0
        else:
            self._pending.append(batch)
            self._n_pending += len(batch)
        self._seen.update(ids.tolist())
        self._numbered, self._result = numbered, None
        return batch

    def _check_labels(self, batch: Batch) -> None:
        """Raises `DataError` if labels are names on one side or in some batches, ids in others."""
        sides = [batch.found.label, *([] if batch.objects is None else [batch.objects.label])]
        if len({side.dtype.kind for side in sides if len(side)}) > 1:
            what = "class ids in predictions, names in targets, or the reverse"
            raise DataError("targets[0].labels", what, "give ids everywhere, or names")
        labels = batch.labels()
        before = next((each.labels() for each in self._pending if len(each)), labels)
        if len(labels) and before.dtype.kind != labels.dtype.kind:
            what = "class ids in some batches, names in others"
            raise DataError("predictions[0].labels", what, "give ids everywhere, or names")

    def _none(self, categories: Categories) -> Matches:
        """Matches without images, in the classes that the protocol makes of these."""
        return Matches.empty(self.protocol, self.protocol.classes.rename_categories(categories))

    def _match(self, batches: Sequence[Batch]) -> Matches:
        """The match rows of checked batches."""
        part = self._none(self._reader.categories or NO_CLASSES)
        if not batches:
            return part
        batch = self._reader.join(batches)
        if len(batch.ids):
            tables = self._reader.tables(batch)
            part = match(*tables, self.protocol, threads=1)
            known = 0 if self._checked is None else len(self._checked[0].images)
            if self.protocol.iou.of == "boxes" and len(batch.ids) > known:
                self._checked = tables
        return replace(
            part, position=np.zeros_like(part.position), notes=distinct(part.notes, batch.notes)
        )

    def _batch(self) -> Batch | None:
        """The rows that are not matched, as one batch."""
        if len(self._pending) > 1:
            self._pending = [self._reader.join(self._pending)]
        return self._pending[0] if self._pending else None

    def _refused(self) -> tuple[Note, ...]:
        """The note on refused batches."""
        text = "updates were refused with an error and are not counted"
        return (Note("batch-refused", text, self._n_refused),) if self._n_refused else ()

    # --- results ---

    @one_at_a_time
    @proposes_arguments
    def batch_metrics(self, score: float = 0.5, *, iou: float | None = None) -> NamedValues:
        """Returns precision, recall, F1 and counts of the last batch alone, at a score.

        >>> import detmap
        >>> ev = detmap.Evaluator(classes=["cat"])
        >>> box = {"boxes": [[10, 10, 50, 50]], "labels": [0]}
        >>> ev.update([{**box, "scores": [0.9]}], [box])
        >>> ev.batch_metrics(0.5)["f1"]
        1.0

        The numbers are those of ``compute().at(score).micro`` of an evaluator with only this batch:
        all classes together, without ignored objects and detections; NaN if undefined.

        Parameters
        ----------
        score : lowest score of a detection
        iou : a threshold of the protocol (default: 0.5, or the lowest)

        Raises
        ------
        DataError : no batch was updated, or the last one was refused; a score above 1 where all
            scores are from 0 to 1
        ProtocolError : the protocol has no such IoU threshold
        """
        if self._last is None:
            what = "there is no batch: no image was updated, or the last batch was refused"
            raise DataError("batch_metrics", what, "call update first")
        return batch_counts.rates(self._reader, self._last, self.protocol, score, iou)

    @property
    @one_at_a_time
    def matches(self) -> Matches:
        """The match rows of all images so far."""
        matches = self._matched()
        notes = self._refused()
        return replace(matches, notes=merged(matches.notes, notes)) if notes else matches

    def _matched(self) -> Matches:
        """`matches` without the note on refused batches."""
        if self._reader.categories is None:
            batch = self._batch()
            return self._match([] if batch is None else [batch])
        if self._pending:
            self._parts, self._pending = [*self._parts, self._match(self._pending)], []
            self._n_pending = 0
        if len(self._parts) != 1:
            self._parts = [self._none(self.categories).merge(*self._parts)]
        return self._parts[0]

    @one_at_a_time
    def compute(self) -> Result:
        """Returns the result of all images so far; updates may follow."""
        if self._result is None:
            matches = self.matches
            if self.truth is not None:
                unseen = listed_names(np.setdiff1d(self.truth.table.images.ids, matches.image_ids))
                text = "ground-truth images have not been updated; the result does not cover them"
                note = Note("image-unseen", text, len(unseen), names=unseen, adding="missing")
                matches = replace(matches, notes=distinct(matches.notes, [note]))
            result = summarize(matches)
            if self._checked is not None:
                inputs = (*self._checked, self.protocol, {"fixable": False})
                result = replace(result, inputs=inputs)
            self._result = result
        return self._result

    def compute_async(self) -> Future[Result]:
        """Starts `compute` of the images so far in a thread of its own; updates may follow at once.

        >>> import detmap
        >>> ev = detmap.Evaluator(classes=["cat"])
        >>> ev.update([{"boxes": [], "scores": [], "labels": []}], [{"boxes": [], "labels": []}])
        >>> ev.compute_async().result().counts()["images"]
        1

        Matching and curves run without the interpreter's lock, so a training loop goes on. What the
        thread raises, ``result()`` raises. A program that ends waits for it.
        """
        from concurrent.futures import Future  # takes 5 ms

        copied, future = copy(self), Future[Result]()
        future.set_running_or_notify_cancel()  # it cannot be cancelled any more

        def run() -> None:
            try:
                result = copied.compute()
                _ = result.metrics  # which are computed when they are asked for
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        Thread(target=run, name="detmap compute").start()
        return future

    # --- merging and keeping ---

    def __add__(self, other: Evaluator) -> Evaluator:
        """Returns a new evaluator with the images of both; see `merge`."""
        return self._with(None, None).merge(self, other)

    def __radd__(self, other: Any) -> Evaluator:
        """Returns a copy for ``sum(evaluators)``, which begins with 0."""
        if other == 0:
            return self._with(None, None).merge(self)
        return NotImplemented

    def merge(self, *others: Evaluator) -> Evaluator:
        """Adds the images of other evaluators, which do not change; returns itself.

        Images without ids are renumbered after the own ones.

        Raises
        ------
        MergeError : another protocol, other classes, or an image in two of them; nothing changes
        """
        for each in others:
            if not isinstance(each, Evaluator):
                what = f"a {type(each).__name__}, not an Evaluator"
                raise MergeError("merge", what, "give evaluators of the same protocol and classes")
            if each is self or sum(each is other for other in others) > 1:
                what = "the same evaluator twice: its images would count twice"
                raise MergeError("merge", what, "give each evaluator once")
            if self.truth and each.truth and not self.truth.same(each.truth):
                what = f"the truths differ: {self.truth.table.source}, {each.truth.table.source}"
                raise MergeError("merge", what, "give every evaluator the same truth")
        return self._add([other._state() for other in others])

    @one_at_a_time
    def _state(self) -> State:
        """The images, and whether they are numbered."""
        return self._images(), self._numbered

    def _images(self) -> Matches | Unmatched:
        """All images so far; not matched if classes come as they are."""
        if self._reader.categories is not None:
            return self.matches
        batch, notes = self._batch(), self._refused()
        if notes:
            batch = batch or self._reader.read(np.zeros(0, dtype=np.int64), [], [])
            batch = replace(batch, notes=merged(batch.notes, notes))
        return Unmatched(self.protocol, self._reader, batch)

    def _hold(self, whole: Matches | Unmatched, numbered: bool | None) -> None:
        """Replaces all images."""
        if isinstance(whole, Matches):
            self._parts, self._pending, self._n_pending = [whole], [], 0
        else:
            self._pending = [] if whole.batch is None else [whole.batch]
        self._seen = set(whole.image_ids.tolist())
        self._numbered, self._result = numbered, None
        self._n_refused = 0  # its note is one of `whole`

    @one_at_a_time
    def _add(self, states: Sequence[State]) -> Evaluator:
        """`merge` of states; each was read under its own lock, so no deadlock is possible."""
        kinds = {self._numbered, *(numbered for _, numbered in states)} - {None}
        if len(kinds) > 1:
            raise MergeError(
                "merge",
                "images have ids in one evaluator but not in another",
                "give ids to all images, or to none",
            )
        numbered = kinds.pop() if kinds else None
        parts: list[Any] = [self._images()]
        n_images = len(self)
        for part, _ in states:
            renumber = numbered and part.n_images
            parts.append(renumbered(part, n_images) if renumber else part)
            n_images += part.n_images
        parts.sort(key=lambda part: isinstance(part, Matches))  # `Unmatched` knows what differs
        self._hold(parts[0].merge(*parts[1:]), numbered)
        return self

    @one_at_a_time
    def sync(self, group: Any = None) -> Evaluator:
        """Adds the images of all ranks of a torch.distributed group, on every rank; returns itself.

        Every rank must call it, with or without images. Without torch.distributed it does nothing.
        Call `reset` before the next round.

        Parameters
        ----------
        group : process group (default: all processes)

        Raises
        ------
        MergeError : as `merge`, on every rank; or a second call
        DetmapError : a rank has ended or exceeds the timeout of the group
        """
        if not torch_ranks.are_there():
            return self
        if self._gathered:
            raise MergeError(
                "sync",
                "this evaluator already holds the images of every rank",
                "call reset() before the next round",
            )
        states = torch_ranks.gather((self._images(), self._numbered), group)
        whole = self._with(None, None)
        try:
            whole._add(states)
        except MergeError as error:
            hint = (
                "; samplers with padding repeat images: use a sampler without padding"
                if "more than one" in error.what
                else ""
            )
            raise MergeError("sync", error.what, error.fix + hint) from None
        self._hold(whole._images(), whole._numbered)
        self._gathered = True
        return self

    @one_at_a_time
    def save(self, path: str | Path | BinaryIO) -> None:
        """Writes the match rows to a ``.npz`` file or file object for `load` or ``detmap merge``.

        Classes that came as they are become the classes of the loaded evaluator.
        """
        given, matches = self.categories, self.matches
        told: dict[str, Any] = {"box_format": self.box_format, "numbered": self._numbered}
        if given != matches.categories:  # the protocol renames classes, and labels are the old ones
            told["classes"] = [*zip(given.ids.tolist(), given.names, strict=True)]
        matches.save(path, **told)

    @staticmethod
    def load(
        path: str | Path | BinaryIO,
        *,
        truth: Truth | str | Path | None = None,
        unknown: str = "error",
        class_names: ClassNames | None = None,
    ) -> Evaluator:
        """Reads a file of `save` or of ``detmap match``.

        Parameters
        ----------
        path : path of the file, or a file object that reads bytes
        truth, unknown, class_names : as in `Evaluator`; the file does not contain them

        Raises
        ------
        DataError : not such a file, damaged, or other classes than the ground truth
        """
        matches, remarks = read(path)
        place = shown_name(path)
        loaded = Evaluator(
            matches.protocol,
            classes=None if truth is not None else _given_classes(place, matches, remarks),
            truth=truth,
            box_format=remarks.get("box_format", "xyxy"),
            unknown=unknown,
            class_names=class_names,
        )
        numbered = remarks.get("numbered", False if matches.n_images else None)
        if not isinstance(numbered, bool | None) or (numbered is None) != (not matches.n_images):
            what = f"{numbered!r} with {matches.n_images} images"
            raise DataError(f"{place}: header.remarks.numbered", what, "write it again")
        if numbered and not np.array_equal(matches.image_ids, np.arange(matches.n_images)):
            what = "images are not numbered from 0"
            raise DataError(f"{place}: image_ids", what, "write it again")
        if matches.protocol.classes.rename_categories(loaded.categories) != matches.categories:
            raise DataError(
                place,
                "other classes than the ground truth",
                "give the ground truth of the first run",
            )
        if loaded.truth is not None:
            strange = ~np.isin(matches.image_ids, loaded.truth.table.images.ids)
            if strange.any():
                what = f"image {matches.image_ids[strange][0].item()!r} is not in the ground truth"
                fix = "give the ground truth of the first run"
                raise DataError(f"{place}: image_ids", what, fix)
        return loaded._with(matches, numbered)

    def _with(self, matches: Matches | None, numbered: bool | None) -> Evaluator:
        """An evaluator of the same kind with these match rows."""
        other = Evaluator.__new__(Evaluator)
        other.__dict__.update(self.__getstate__())
        other.reset()
        if matches is not None:
            other._hold(matches, numbered)
        return other


def _given_classes(place: str, matches: Matches, remarks: Mapping[str, Any]) -> Categories:
    """The classes that labels refer to: those before the protocol renamed them, if it does."""
    pairs = remarks.get("classes")
    if pairs is None:
        return matches.categories
    try:
        given = read_classes({int(i): str(name) for i, name in pairs})
    except (DataError, TypeError, ValueError):
        what = "not the ids and names of classes"
        raise DataError(f"{place}: header.remarks.classes", what, "write it again") from None
    return given
