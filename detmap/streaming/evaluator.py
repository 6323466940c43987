"""An evaluation that is fed batch by batch: in a
training loop, on several ranks, over several runs.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from detmap.adapters import ClassNames, read_truth_for
from detmap.adapters import box_conventions as geometry
from detmap.adapters.in_memory.batch_tables import Known, Reader, identify, pair, read_classes
from detmap.adapters.joining.unknown_policy import policy
from detmap.base.locks import Locked, one_at_a_time
from detmap.base.reprs import outline
from detmap.errors import DataError, DetmapError, MergeError, ProtocolError, counted
from detmap.evaluate import summarize
from detmap.matching.engine import match
from detmap.matching.matches import Matches, distinct, read
from detmap.overlaps import kind_of
from detmap.protocol import Protocol
from detmap.protocol.default_protocol import prepare
from detmap.protocol.named_columns import named_columns
from detmap.results.result import Result
from detmap.streaming.merging import numbered_on
from detmap.tables import Categories, Detections, Note, Truth

Classes = Sequence[str] | Sequence[int] | Mapping[int, str] | Categories


class Evaluator(Locked):
    """Takes batches of predictions and targets, and has the result of all so far at any time.

    >>> import detmap
    >>> ev = detmap.Evaluator("coco-bbox", classes=["cat", "dog"])
    >>> box = {"boxes": [[10, 10, 50, 50]], "labels": [1]}
    >>> ev.update([{**box, "scores": [0.9]}], [box])
    >>> round(ev.compute().metrics["AP50"], 6)
    1.0

    A batch is matched when it comes; what is kept are match rows, no boxes. The numbers are those
    of one run over the whole, bit for bit, whatever the batches and their order: `detmap.evaluate`
    of the same boxes, as ``x y width height``, with the images by ascending id.

    Parameters
    ----------
    protocol : a protocol, the name of one, or the path of a TOML file
    classes : names, whose ids are then 0, 1, 2 ...; or ids; or a dict from id to name. Left out
        where `truth` is given.
    truth : known up front, a table or the path of one: targets are then left out, and predictions
        name their image. The result covers the images that were updated; a note says how many were
        not.
    box_format : ``xyxy`` corners, ``xywh`` or ``cxcywh`` in continuous pixels from 0; ``normalized
        xyxy`` and so on in fractions of the image, whose ``orig_size`` (height, width) comes with
        it; ``voc``: first and last pixel, counted from 1, both inside the box
    settings : keys of the protocol to change, ``{"limits.max_dets": [1, 10, 300]}``
    unknown, class_names : what becomes of predictions of other classes and on other images, and
        what labels stand for that are not the ids of `truth`; as in `detmap.read_detections`

    Raises
    ------
    DataError : neither or both of `classes` and `truth`, classes that are not unique, an unknown
        box format
    ProtocolError : an unknown protocol, key or value

    Notes
    -----
    **Image ids.** With an ``image_id`` in every image, results do not depend on the order of
    arrival at all. Without, images are numbered as they come, and where two parts are merged those
    of the second follow those of the first. The number decides one thing only: which of two
    detections of equal score on two images ranks first.

    **Threads.** They may share an evaluator: one is at work at a time.

    **Ties.** Of equal scores the image with the lower id ranks first, and within an image the
    earlier prediction. Protocols that rank ties by input order (``ranking.ties = "input"``, VOC)
    have no file here: the input order of a stream is by image id, then by place in the image.

    **Exactness of boxes.** Tables hold ``x y width height``; ``xywh`` and ``voc`` boxes enter as
    they are. From corners or centers the rest is computed in float64. That is exact for whole and
    half pixels, and for boxes in float32 and shorter, normalized ones included, as long as no
    coordinate but 0 is under 2**-9 or over 2**16, in pixels or in fractions; other float64 boxes
    may move by one rounding, as when they are written to a COCO file.
    """

    def __init__(
        self,
        protocol: Protocol | str = "coco-bbox",
        *,
        classes: Classes | None = None,
        truth: Truth | str | Path | None = None,
        box_format: str = "xyxy",
        settings: Mapping[str, Any] | None = None,
        unknown: str = "error",
        class_names: ClassNames | None = None,
    ) -> None:
        if not isinstance(box_format, str) or box_format not in geometry.IN_MEMORY:
            fix = f"the formats are {', '.join(geometry.IN_MEMORY)}"
            raise DataError("box_format", f"no format {box_format!r}", fix)
        if isinstance(truth, Detections):
            raise DataError("truth", "these are detections", "give the truth, or its path")
        if (classes is None) == (truth is None):
            fix = 'give classes=["cat", "dog"], or truth='
            raise DataError("Evaluator", "needs classes or truth, one of the two", fix)
        self.protocol = prepare(protocol, settings)
        self.box_format = box_format
        self.truth = None
        if truth is not None:
            if not isinstance(truth, Truth):
                truth = read_truth_for(truth, self.protocol)
            self.truth = Known(truth)
        self.categories = (
            read_classes(classes) if self.truth is None else self.truth.table.categories
        )
        more = (*named_columns(self.protocol), policy(unknown, class_names), self.truth)
        self._reader = Reader(self.categories, box_format, *more)
        self.reset()

    @one_at_a_time
    def reset(self) -> None:
        """Forget all images; protocol and classes stay."""
        self._parts: list[Matches] = []
        self._seen: set[Any] = set()
        # Whether images are numbered as they come; None before the first.
        self._numbered: bool | None = None
        self._gathered = False  # whether it holds the images of other ranks
        self._result: Result | None = None

    def __repr__(self) -> str:
        data = f"{counted(len(self), 'image')} of {counted(len(self.categories), 'class')}"
        return outline(self, self.protocol.name, data, f"{self.box_format} boxes")

    def __len__(self) -> int:
        """How many images were updated."""
        return len(self._seen)

    # --- feeding ---

    @one_at_a_time
    def update(self, predictions: Sequence[Any], targets: Sequence[Any] | None = None) -> None:
        """Match a batch; either all of it enters, or none where there is an error.

        Parameters
        ----------
        predictions : B images: dicts with ``boxes`` (n, 4), ``scores`` (n,), ``labels`` (n,) class
            ids, and ``image_id`` where wanted; or objects with ``xyxy``, ``confidence``,
            ``class_id``; or a dict from image id to such. Arrays of numpy, or of torch, JAX, CuPy
            and others on the CPU, of any kind of float; lists will do.
        targets : the same B images: ``boxes``, ``labels``, and where there are such ``area`` (n,)
            in square pixels (else that of the box), flags ``iscrowd``, ``difficult`` and ``ignore``
            (n,), ``image_id``; and (n,) each, by name, every other role and attribute that the
            protocol looks at. None where the evaluator has the truth.

        Raises
        ------
        DataError : shapes or lengths that differ, labels outside the classes, numbers that are not
            finite, negative sizes, an image that came before or that the truth lacks
        ProtocolError : the protocol compares masks or keypoints; batches have boxes
        """
        if kind_of(self.protocol.iou.of).reader is not None:
            raise ProtocolError(
                f"protocol {self.protocol.name}",
                f"compares {self.protocol.iou.of}, and batches have boxes alone",
                "write them to COCO files, and give these to detmap.evaluate or `detmap match`",
            )
        known = self.truth is not None
        predicted, annotated = pair(predictions, targets, known, self.box_format)
        if not predicted:
            return
        ids, place, numbered = identify(predicted, annotated, self._seen, self._numbered, known)
        notes: tuple[Note, ...] = ()
        if self.truth is None:
            truth = self._reader.targets(ids, place, annotated)
        else:
            truth, place, predicted, notes = self._reader.known(self.truth, ids, place, predicted)
        part = Matches.empty(self.protocol, self.categories)
        if predicted:
            detections = self._reader.predictions(truth, place, predicted)
            part = match(truth, detections, self.protocol, threads=1)
        notes = distinct(part.notes, notes)
        self._parts.append(replace(part, position=np.zeros_like(part.position), notes=notes))
        self._seen.update(ids.tolist())
        self._numbered, self._result = numbered, None

    # --- results ---

    @property
    @one_at_a_time
    def matches(self) -> Matches:
        """The match rows of all images so far."""
        if len(self._parts) != 1:
            self._parts = [Matches.empty(self.protocol, self.categories).merge(*self._parts)]
        return self._parts[0]

    @one_at_a_time
    def compute(self) -> Result:
        """The result of all images so far; feeding may go on."""
        if self._result is None:
            matches = self.matches
            unseen = 0 if self.truth is None else len(self.truth.table.images) - matches.n_images
            if unseen:
                text = "images of the truth have not been updated and are left out"
                matches = replace(
                    matches,
                    notes=tuple(sorted((*matches.notes, Note("image-unseen", text, unseen)))),
                )
            self._result = summarize(matches)
        return self._result

    # --- merging and keeping ---

    def merge(self, *others: Evaluator) -> Evaluator:
        """Take in the images of other evaluators, which stay as they are; returns itself.

        Images that were numbered as they came are numbered on: those of the first of the others
        follow one's own.

        Raises
        ------
        MergeError : another protocol, other classes, an image in two of them; nothing is changed
            then
        """
        for each in others:
            if not isinstance(each, Evaluator):
                what = f"a {type(each).__name__} where an evaluator is needed"
                raise MergeError("merge", what, "give evaluators of the same protocol and classes")
            if self.truth and each.truth and not self.truth.same(each.truth):
                what = f"the truths differ: {self.truth.table.source}, {each.truth.table.source}"
                raise MergeError("merge", what, "give every evaluator the same truth")
        return self._take_in([other._held() for other in others])

    @one_at_a_time
    def _held(self) -> tuple[Matches, bool | None]:
        """What it holds at one moment; whether images are numbered."""
        return self.matches, self._numbered

    @one_at_a_time
    def _take_in(self, held: Sequence[tuple[Matches, bool | None]]) -> Evaluator:
        """`merge` of what others held, each looked at alone: no two wait for each other."""
        kinds = {self._numbered, *(numbered for _, numbered in held)} - {None}
        if len(kinds) > 1:
            raise MergeError(
                "merge",
                "images have ids in one evaluator and not in another",
                "give every image its id, or none",
            )
        numbered = kinds.pop() if kinds else None
        parts, n_images = [self.matches], len(self)
        for part, _ in held:
            moves = numbered and part.n_images
            parts.append(numbered_on(part, n_images) if moves else part)
            n_images += part.n_images
        whole = parts[0].merge(*parts[1:])
        self._parts, self._seen = [whole], set(whole.image_ids.tolist())
        self._numbered, self._result = numbered, None
        return self

    @one_at_a_time
    def sync(self, group: Any = None) -> Evaluator:
        """Take in the images of all ranks of a torch.distributed
        group, on every rank; returns itself.

        Every rank has to call it, those without images too. Without torch.distributed there is one
        rank, and nothing to do. After it, `reset` comes before the next round.

        Parameters
        ----------
        group : of processes; all when left out

        Raises
        ------
        MergeError : as `merge`, on every rank; or synced before
        DetmapError : a rank that has ended, or is not there within the timeout of the group
        """
        if "torch.distributed" not in sys.modules:  # nobody has formed a group
            return self
        import torch.distributed as dist

        if not (dist.is_available() and dist.is_initialized()):
            return self
        if self._gathered:
            raise MergeError(
                "sync",
                "this evaluator holds the images of every rank already",
                "reset() it before the next round",
            )
        states: list[Any] = [None] * dist.get_world_size(group)
        try:
            dist.all_gather_object(states, (self.matches, self._numbered), group=group)
        except RuntimeError as error:  # torch's errors of a lost rank and of a timeout are such
            raise DetmapError(
                "sync",
                f"the ranks did not come together: {str(error).splitlines()[0]}",
                "one of them has ended or is too slow; what this rank has is still here",
            ) from error
        ranks = [self._with(*state) for state in states]
        whole = self._with(Matches.empty(self.protocol, self.categories), None)
        try:
            whole.merge(*ranks)
        except MergeError as error:
            hint = (
                "; a sampler that evens out the ranks repeats images: shard without it"
                if "more than one" in error.what
                else ""
            )
            raise MergeError("sync", error.what, error.fix + hint) from None
        self._parts, self._seen, self._numbered, self._result = (
            whole._parts,
            whole._seen,
            whole._numbered,
            None,
        )
        self._gathered = True
        return self

    @one_at_a_time
    def save(self, path: str | Path) -> None:
        """Write all so far to a ``.npz`` file, from which `load` goes on, and which ``detmap
        merge`` takes too.
        """
        self.matches.save(path, box_format=self.box_format, numbered=self._numbered)

    @staticmethod
    def load(
        path: str | Path,
        *,
        truth: Truth | str | Path | None = None,
        unknown: str = "error",
        class_names: ClassNames | None = None,
    ) -> Evaluator:
        """Read what `save` wrote, or a part that ``detmap match`` wrote.

        Parameters
        ----------
        path : of the file
        truth, unknown, class_names : as in `Evaluator`, to go on with; they are not in the file

        Raises
        ------
        DataError : not such a file, damaged, or the truth has other classes
        """
        matches, remarks = read(path)
        loaded = Evaluator(
            matches.protocol,
            classes=None if truth is not None else matches.categories,
            truth=truth,
            box_format=remarks.get("box_format", "xyxy"),
            unknown=unknown,
            class_names=class_names,
        )
        numbered = remarks.get("numbered", False if matches.n_images else None)
        if not isinstance(numbered, bool | None) or (numbered is None) != (not matches.n_images):
            what = f"{numbered!r} with {matches.n_images} images"
            raise DataError(f"{path}: header.remarks.numbered", what, "write it again")
        if numbered and not np.array_equal(matches.image_ids, np.arange(matches.n_images)):
            what = "images are not numbered from 0"
            raise DataError(f"{path}: image_ids", what, "write it again")
        if loaded.categories != matches.categories:
            raise DataError(
                str(path), "other classes than the truth", "give the truth that it was made with"
            )
        if loaded.truth is not None:
            strange = ~np.isin(matches.image_ids, loaded.truth.table.images.ids)
            if strange.any():
                what = f"image {matches.image_ids[strange][0].item()!r} is not in the truth"
                raise DataError(f"{path}: image_ids", what, "give the truth that it was made with")
        return loaded._with(matches, numbered)

    def _with(self, matches: Matches, numbered: bool | None) -> Evaluator:
        """One of the same kind that holds these match rows."""
        other = Evaluator.__new__(Evaluator)
        other.__dict__.update(self.__getstate__())
        other.reset()
        other._parts, other._seen, other._numbered = (
            [matches],
            set(matches.image_ids.tolist()),
            numbered,
        )
        return other
