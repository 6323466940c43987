"""An evaluation that is fed batch by batch: in a training loop, on several ranks, over several
runs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from detmap import checks
from detmap.adapters import batches, read_truth
from detmap.adapters.batches import Fields
from detmap.errors import DataError, DetmapError, MergeError, ProtocolError, few
from detmap.evaluate import prepare, summarize
from detmap.locks import Locked, one_at_a_time
from detmap.matches import Matches, read
from detmap.matching import match
from detmap.protocol import Protocol
from detmap.result import Result
from detmap.rows import Positions, rows_of
from detmap.tables import Categories, Detections, Images, Note, Truth

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
    ) -> None:
        if not isinstance(box_format, str) or box_format not in batches.FORMATS:
            raise DataError(
                "box_format",
                f"no format {box_format!r}",
                f"the formats are {', '.join(batches.FORMATS)}",
            )
        if isinstance(truth, Detections):
            raise DataError("truth", "these are detections", "give the truth, or its path")
        if (classes is None) == (truth is None):
            raise DataError(
                "Evaluator",
                "needs classes or truth, one of the two",
                'give classes=["cat", "dog"], or truth=',
            )
        self.protocol = prepare(protocol, settings)
        self.box_format = box_format
        self.truth = (
            None
            if truth is None
            else _Known(
                truth
                if isinstance(truth, Truth)
                else read_truth(truth, shapes=self.protocol.iou.of)
            )
        )
        self.categories = (
            _categories(classes) if self.truth is None else self.truth.table.categories
        )
        self._labels = Positions(self.categories.ids)
        self.reset()

    @one_at_a_time
    def reset(self) -> None:
        """Forget all images; protocol and classes stay."""
        self._parts: list[Matches] = []
        self._seen: set[Any] = set()
        self._numbered: bool | None = (
            None  # whether images are numbered as they come; None before the first
        )
        self._gathered = False  # whether it holds the images of other ranks
        self._result: Result | None = None

    def __len__(self) -> int:
        """How many images were updated."""
        return len(self._seen)

    # --- feeding ----------------------------------------------------------------------------------
    # ---------------------

    @one_at_a_time
    def update(self, predictions: Sequence[Any], targets: Sequence[Any] | None = None) -> None:
        """Match a batch; either all of it enters, or none where there is an error.

        Parameters
        ----------
        predictions : B images: dicts with ``boxes`` (n, 4), ``scores`` (n,), ``labels`` (n,) class
            ids, and ``image_id`` where wanted; or objects with ``xyxy``, ``confidence``,
            ``class_id``. Arrays of numpy, or of torch, JAX, CuPy and others on the CPU, of any kind
            of float; lists will do.
        targets : the same B images: ``boxes``, ``labels``, and where there are such ``area`` (n,)
            in square pixels (else that of the box), ``iscrowd`` and ``difficult`` (n,),
            ``image_id``. None where the evaluator has the truth.

        Raises
        ------
        DataError : shapes or lengths that differ, labels outside the classes, numbers that are not
            finite, negative sizes, an image that came before or that the truth lacks
        ProtocolError : the protocol compares masks or keypoints; batches have boxes
        """
        if self.protocol.iou.of != "boxes":
            raise ProtocolError(
                f"protocol {self.protocol.name}",
                f"compares {self.protocol.iou.of}, and batches have boxes alone",
                "write them to COCO files, and give these to detmap.evaluate or `detmap match`",
            )
        found = batches.batch("predictions", predictions)
        if self.truth is None:
            if targets is None:
                raise DataError(
                    "targets", "missing", "give the targets, or the evaluator its truth= up front"
                )
            sought = batches.batch("targets", targets)
            if len(sought) != len(found):
                raise DataError(
                    "targets",
                    f"{len(sought)} images, but {len(found)} in predictions",
                    "give one of each an image",
                )
        else:
            if targets is not None:
                raise DataError(
                    "targets", "given, but the evaluator has its truth", "leave them out, or truth="
                )
            sought = [{}] * len(found)
        if self.truth is None and self.box_format.startswith("normalized"):
            batches.require_same_sizes(found, sought)
        if not found:
            return
        ids, place, numbered = self._identify(found, sought)
        truth = self._read_targets(ids, place, sought) if self.truth is None else self.truth.on(ids)
        predicted = self._read_predictions(truth, place, found)
        part = match(truth, predicted, self.protocol, threads=1)
        self._parts.append(replace(part, position=np.zeros_like(part.position)))
        self._seen.update(ids.tolist())
        self._numbered, self._result = numbered, None

    def _identify(
        self, found: Sequence[Fields], sought: Sequence[Fields]
    ) -> tuple[NDArray[Any], NDArray[np.int32], bool]:
        """(B,) ascending ids, where among them each image stands, and whether they are numbers
        of arrival.
        """
        place = np.arange(len(found), dtype=np.int32)
        ids = []
        for i, (prediction, target) in enumerate(zip(found, sought, strict=True)):
            own = batches.identifier(f"predictions[{i}]", prediction)
            other = batches.identifier(f"targets[{i}]", target)
            if own is not None and other is not None and own != other:
                raise DataError(
                    f"predictions[{i}].image_id",
                    f"{own!r}, but {other!r} in targets[{i}]",
                    "give images in one order",
                )
            ids.append(other if own is None else own)
        numbered = ids[0] is None
        if 0 < ids.count(None) < len(ids):
            i = next(i for i, each in enumerate(ids) if (each is None) != numbered)
            raise DataError(
                f"predictions[{i}].image_id",
                "in some images only",
                "give every image its id, or none",
            )
        if self._numbered is not None and self._numbered != numbered:
            raise DataError(
                "predictions[0].image_id",
                "in some batches only",
                "give every image its id, or none",
            )
        if numbered:
            if self.truth is not None:
                raise DataError(
                    "predictions[0].image_id",
                    "missing",
                    "name the image of the truth that it is of",
                )
            return np.arange(len(self._seen), len(self._seen) + len(ids)), place, True
        if len({type(each) for each in (*ids, *islice(self._seen, 1))}) > 1:
            raise DataError(
                "predictions[0].image_id", "whole numbers and strings", "use one kind of ids"
            )
        if len(set(ids)) < len(ids) or not self._seen.isdisjoint(ids):
            i = next(i for i, each in enumerate(ids) if each in self._seen or each in ids[:i])
            raise DataError(
                f"predictions[{i}].image_id",
                f"{ids[i]!r} came before",
                "update each image once; reset() to begin anew",
            )
        try:
            if isinstance(ids[0], str):
                array = checks.id_array("image_id", [str(each) for each in ids])
            else:
                array = np.array(ids).astype(np.int64, casting="safe")
        except (OverflowError, TypeError):
            raise DataError(
                "predictions[0].image_id",
                "not a whole number of 64 bits",
                "use smaller ids, or strings",
            ) from None
        order = np.argsort(array)
        place[order] = place.copy()
        return array[order], place, False

    def _read_predictions(
        self, truth: Truth, place: NDArray[np.int32], images: Sequence[Fields]
    ) -> Detections:
        where = "predictions"
        rows = batches.read_rows(where, images, self.box_format, {"scores": None})
        score = np.asarray(rows.more["scores"], dtype=np.float64)
        bad = ~np.isfinite(score)
        if bad.any():
            i, row = batches.place_of(rows.count, bad)
            raise DataError(
                f"{where}[{i}].scores[{row}]",
                f"{score[bad][0]} is not a finite number",
                "a score is a number",
            )
        label, box_format = self._label(where, rows), batches.table_format(self.box_format)
        return _by_image(
            Detections(
                truth.images,
                truth.categories,
                np.repeat(place, rows.count),
                label,
                rows.boxes,
                score,
                box_format,
            )
        )

    def _read_targets(
        self, ids: NDArray[Any], place: NDArray[np.int32], images: Sequence[Fields]
    ) -> Truth:
        where = "targets"
        optional = {"area": np.nan, "iscrowd": 0, "difficult": 0}
        asked = {
            key: missing
            for key, missing in optional.items()
            if any(key in image for image in images)
        }
        rows = batches.read_rows(where, images, self.box_format, asked)
        for key in asked.keys() - {"area"}:
            bad = (rows.more[key] != 0) & (rows.more[key] != 1)
            if bad.any():
                i, row = batches.place_of(rows.count, bad)
                what = f"{rows.more[key][bad][0]} is no flag"
                raise DataError(f"{where}[{i}].{key}[{row}]", what, "flags are 0 or 1")
        corners = self.box_format == "voc"
        sides = rows.boxes[:, 2:] - rows.boxes[:, :2] + 1 if corners else rows.boxes[:, 2:]
        area = sides[:, 0] * sides[:, 1]
        if "area" in asked:
            given = np.repeat(["area" in image for image in images], rows.count)
            area = np.where(given, rows.more["area"], area)
            bad = ~(np.isfinite(area) & (area >= 0))
            if bad.any():
                i, row = batches.place_of(rows.count, bad)
                raise DataError(
                    f"{where}[{i}].area[{row}]",
                    f"{area[bad][0]} is negative or not a finite number",
                    "areas are square pixels",
                )
        unknown = np.full(len(ids), np.nan)
        return _by_image(
            Truth(
                Images(ids, ("",) * len(ids), unknown, unknown),
                self.categories,
                image=np.repeat(place, rows.count),
                label=self._label(where, rows),
                boxes=rows.boxes,
                roles={
                    role: rows.more[key].astype(bool)
                    for key, role in (("iscrowd", "crowd"), ("difficult", "difficult"))
                    if key in asked
                },
                attributes={"area": area},
                box_format=batches.table_format(self.box_format),
                family="voc" if corners else "coco",
            )
        )

    def _label(self, where: str, rows: batches.Rows) -> NDArray[np.int32]:
        label = self._labels(rows.label)
        bad = label < 0
        if bad.any():
            i, row = batches.place_of(rows.count, bad)
            ids = self.categories.ids.tolist()
            raise DataError(
                f"{where}[{i}].labels[{row}]",
                f"no class {rows.label[bad][0]}",
                f"the class ids are {few(ids)}",
            )
        return label

    # --- results ----------------------------------------------------------------------------------
    # ---------------------

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

    # --- merging and keeping
    # ---------------------------------------------------------------------------------------------

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
            if self.truth and each.truth and not _same(self.truth.table, each.truth.table):
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
            parts.append(replace(part, image_ids=part.image_ids + n_images) if moves else part)
            n_images += part.n_images
        whole = parts[0].merge(*parts[1:])
        self._parts, self._seen = [whole], set(whole.image_ids.tolist())
        self._numbered, self._result = numbered, None
        return self

    @one_at_a_time
    def sync(self, group: Any = None) -> Evaluator:
        """Take in the images of all ranks of a torch.distributed group, on every rank; returns
        itself.

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
    def load(path: str | Path, *, truth: Truth | str | Path | None = None) -> Evaluator:
        """Read what `save` wrote, or a part that ``detmap match`` wrote.

        Parameters
        ----------
        path : of the file
        truth : as in `Evaluator`, to go on without targets; it is not in the file

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


Table = TypeVar("Table", Detections, Truth)


def _by_image(table: Table) -> Table:
    """A table with its rows by image, and those of an image in the order that they have."""
    if (table.image[1:] >= table.image[:-1]).all():
        return table
    return table.take(np.argsort(table.image, kind="stable"))


def _same(one: Truth, other: Truth) -> bool:
    """Whether two truths hold the same objects."""
    if one is other:
        return True
    names = ("image", "label", "boxes", "area", "crowd", "difficult")
    return np.array_equal(one.images.ids, other.images.ids) and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in names
    )


class _Known:
    """A truth, from which the objects on some images are taken."""

    def __init__(self, table: Truth) -> None:
        self.table = table
        self.images = Positions(table.images.ids)
        self.rows = np.argsort(table.image, kind="stable")
        self.off = np.searchsorted(table.image[self.rows], np.arange(len(table.images) + 1))

    def on(self, ids: NDArray[Any]) -> Truth:
        """The truth on images by their ids, which ascend."""
        table = self.table
        known = ids.dtype.kind == table.images.ids.dtype.kind
        image = self.images(ids).astype(np.int64) if known else np.full(len(ids), -1)
        if (image < 0).any():
            strange = ids[image < 0][0].item()
            example = f", such as {table.images.ids[0].item()!r}" if len(table.images) else ""
            raise DataError(
                "predictions.image_id",
                f"no image {strange!r} in {table.source}",
                f"the truth has {len(table.images)} images{example}",
            )
        places, _ = rows_of(self.off, image)
        return table.on(image, self.rows[places])


def _categories(classes: Any) -> Categories:
    """Classes by ascending id, from names, ids, or a dict of both."""
    if isinstance(classes, Categories):
        return classes
    if isinstance(classes, str | bytes) or not isinstance(classes, Iterable):
        raise DataError("classes", f"{classes!r:.60}", "give a list of names, of ids, or a dict")
    given = list(classes)
    if isinstance(classes, Mapping):
        names = {key: str(name) for key, name in classes.items()}
    elif given and all(isinstance(each, str) for each in given):
        names = dict(enumerate(given))
    else:
        names = {each: str(each) for each in given}
    twice = len(set(given)) < len(given)
    if twice or not all(
        isinstance(key, int | np.integer) and not isinstance(key, bool) for key in names
    ):
        raise DataError(
            "classes",
            "not unique" if twice else f"{given[:3]}",
            "give names, or whole numbers, each once",
        )
    ids = sorted(int(key) for key in names)
    if ids and not -(2**63) <= ids[0] <= ids[-1] < 2**63:
        raise DataError("classes", "an id of more than 64 bits", "give smaller ids")
    return Categories(np.array(ids, dtype=np.int64), tuple(names[i] for i in ids))
