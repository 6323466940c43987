"""Joins the images and classes of detections to those of the ground truth, also across formats.

Images are joined by id or file stem, classes by id or name:

- integers are ids of a COCO truth, or stems of a VOC truth as numbers (``000012`` is 12,
  ``2008_000003`` is 2008000003); class ids of a VOC truth need class names
  (`detmap.core.adapters.joining.unknown_policy`) or VOC's own classes
- strings are stems of a VOC truth; VOC text names a COCO truth's file stems or ids; class names are
  class names everywhere

Only the `Policy` decides whether unknown images and classes are an error or dropped.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.coded_names import coded
from detmap.core.adapters.joining import unknown_policy
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.base.flat_rows import first_true
from detmap.core.base.immutable import vouched
from detmap.core.base.open_files import shown
from detmap.core.base.parallel import map_chunks
from detmap.core.base.sums import add_integers
from detmap.core.tables import MAX_PIXEL as MAX_PIXEL
from detmap.core.tables import (
    MAX_ROWS,
    BoxFormat,
    Categories,
    Columns,
    Detections,
    Images,
    Note,
    Shapes,
    Truth,
    boxes_as,
    reversed_boxes,
)
from detmap.core.tables.grouping import positions
from detmap.core.tables.join_keys import Column, Evidence, Key
from detmap.core.tables.notes import listed_names
from detmap.errors import DataError, few


class Origin(NamedTuple):
    """The source of detection rows, for messages.

    Parameters
    ----------
    source : the path
    place : the image field of row i (``results.json[1042].image_id``)
    images, classes : names in row i; may be empty if the ground truth has them all
    class_place : the class field of row i; default `place`
    """

    source: str
    place: Callable[[int], str]
    images: Sequence[Any] | NDArray[Any] = ()
    classes: Sequence[Any] | NDArray[Any] = ()
    class_place: Callable[[int], str] | None = None


SCORES = ("score", "confidence", "conf", "scores", "probability", "prob")
"""Names of columns and keys of scores."""
EXACT = 2.0**53
"""Below it every whole number is one in double precision."""

LIST = "list of images"
NUMBERED = f"{LIST} without ids"
"""`Truth.source` of a list of images; and of one whose images count from 0, without ids and files.
"""


def require_numbered(truth: Truth, detections: Detections) -> None:
    """Raises `DataError` for detections with image ids that may not count from 0, as the images of
    a ground truth without ids do.
    """
    if truth.source == NUMBERED and len(detections) and detections.image.min() > 0:
        what = (
            "have image ids, the ground truth has none: its images count from 0, and no "
            "detection is on image 0"
        )
        fix = "give each dict of the ground truth its image_id"
        raise DataError("detections", what, fix)


def joined(
    truth: Truth,
    image: NDArray[np.int32],
    label: NDArray[np.int32],
    boxes: NDArray[np.float64],
    score: NDArray[np.float64],
    *,
    box_format: BoxFormat,
    origin: Origin,
    policy: Policy = STRICT,
    notes: tuple[Note, ...] = (),
    attributes: Mapping[str, NDArray[np.float64]] | None = None,
    shapes: Shapes | None = None,
    in_pixels: bool = True,
    checked: bool = False,
) -> Detections:
    """Creates detections from positions in the ground truth, -1 for unknown images and classes.

    Parameters
    ----------
    policy : whether unknown rows are an error, or dropped and counted
    notes : of the reader, how it found images and classes
    attributes : see `detmap.core.tables.Detections`
    shapes : of the rows, if they have more than boxes
    in_pixels : whether the boxes are in the pixels of their image
    checked : whether the reader vouches for the columns: finite numbers of reasonable size, no
        negative side

    Raises `DataError` for unknown images or classes and negative sizes. Notes count reversed
        corners.
    """
    if box_format == "xywh" and not checked:
        _require_sides(boxes, origin)
    notes += _doubtful_names(truth, image, origin)
    label = policy.known_by_new_name(truth, label, origin.classes)
    images, categories = truth.images, truth.categories
    if policy.unknown in ("classes", "add") and truth.scope is None:
        images, categories, image, label, added = _add_unknown(truth, image, label, origin, policy)
        notes += added
    known, dropped = judged(truth, image, label, origin, policy)
    attributes = attributes or {}
    if dropped:
        image, label, boxes, score = image[known], label[known], boxes[known], score[known]
        attributes = {name: column[known] for name, column in attributes.items()}
        shapes = None if shapes is None else shapes.take(known)
    notes += dropped
    if truth.regions is not None:
        free, dropped = outside_regions(truth, image, boxes_as(boxes, box_format, "xywh"), origin)
        image, label, boxes, score = image[free], label[free], boxes[free], score[free]
        attributes = {name: column[free] for name, column in attributes.items()}
        shapes = None if shapes is None else shapes.take(free)
        notes += dropped
    if in_pixels:
        notes += outside(images, image, boxes_as(boxes, box_format, "xywh"), origin.source)
    notes += _vast(score, origin.source)
    if box_format == "voc" and (count := int(reversed_boxes(boxes, box_format).sum())):
        text = "boxes have reversed corners: they overlap nothing, as in the devkit"
        notes += (Note("box-reversed", text, count, origin.source),)
    make = partial(vouched, Detections) if checked and len(boxes) <= MAX_ROWS else Detections
    return make(
        images=images,
        categories=categories,
        image=image,
        label=label,
        boxes=boxes,
        score=score,
        box_format=box_format,
        source=origin.source,
        notes=notes,
        attributes=Columns(attributes),
        shapes=shapes,
    )


def _add_unknown(
    truth: Truth, image: NDArray[np.int32], label: NDArray[np.int32], origin: Origin, policy: Policy
) -> tuple[Images, Categories, NDArray[np.int32], NDArray[np.int32], tuple[Note, ...]]:
    """Adds the classes of ``scope.unknown``, or images and classes; returns the new positions."""
    from detmap.core.adapters.joining import additions

    images, categories, source = truth.images, truth.categories, origin.source
    notes: tuple[Note, ...] = ()
    if policy.unknown == "add":
        images, image, notes = additions.add_images(images, image, origin.images, source)
    categories, label, more = additions.add_classes(categories, label, origin.classes, source)
    return images, categories, image, label, (*notes, *more)


def _doubtful_names(truth: Truth, image: NDArray[np.int32], origin: Origin) -> tuple[Note, ...]:
    """Returns notes on names that may be of other images; numbers are ids."""
    if not len(origin.images) or not isinstance(origin.images[0], str):
        return ()
    from detmap.core.adapters.joining import image_lookup

    return image_lookup.doubtful_names(truth, origin.images, image, origin.source)


def unscored(count: int, source: str | Path, columns: Iterable[str] = ()) -> tuple[Note, ...]:
    """Returns the note on detections without scores; `columns` are those of a table."""
    text = "detections have no score: each is read as 1.0, so scores order nothing"
    text += f" (the columns are {few(columns)})" if columns else ""
    return (Note("score-missing", text, count, shown(source)),) * bool(count)


def _vast(score: NDArray[np.float64], source: str) -> tuple[Note, ...]:
    """Returns a note on tied scores so large that doubles cannot distinguish them."""
    if score.min(initial=0.0) > -EXACT and score.max(initial=0.0) < EXACT:  # as in most files
        return ()
    vast = score[np.abs(score) >= EXACT]
    different = listed_names(f"{each:.0f}" for each in np.unique(vast).tolist())
    text = (
        "scores from 2^53 on equal another: scores are held in double precision, which tells whole "
        "numbers of that size apart no more"
    )
    n_shared, sizes = len(vast) - len(different), (len(vast),)
    return (Note("score-vast", text, n_shared, source, different, sizes, "repeats"),)


def box_fault(box: NDArray[np.float64], written: list[float]) -> str:
    """Returns what is wrong with a box that is refused, for messages; `written` is how it is
    given.
    """
    if np.isfinite(box).all() and (np.abs(box) > MAX_PIXEL).any():
        return f"{written!r} has a number beyond {MAX_PIXEL:g}: areas of such boxes are too large"
    return f"{written!r} has a negative size or a non-finite number"


def _require_sides(boxes: NDArray[np.float64], origin: Origin) -> None:
    """Raises `DataError` for the first box with a negative side."""
    if not boxes.size or boxes.min() >= 0:
        return
    bad = reversed_boxes(boxes, "xywh")
    if (row := first_true(bad)) is not None:
        raise DataError(
            origin.place(row).removesuffix(".image_id").removesuffix(".file_name"),
            f"box {boxes[row].tolist()} has a negative width or height",
            "fix or remove the row",
        )


def judged(
    truth: Truth, image: NDArray[np.int32], label: NDArray[np.int32], origin: Origin, policy: Policy
) -> tuple[NDArray[np.bool_], tuple[Note, ...]]:
    """Returns (n,) bool, rows with a known image and class, and notes on the others; see `joined`.

    A row on an unknown image is not counted by class too.
    """
    if not len(image) or (image.min() >= 0 and label.min() >= 0):  # as in most files
        return np.ones(len(image), dtype=bool), ()
    notes: tuple[Note, ...] = ()
    kept = image >= 0
    for kind, things, lacking, names, place in (
        ("image", "on", ~kept, origin.images, origin.place),
        ("class", "of", kept & (label < 0), origin.classes, origin.class_place),
    ):
        lost = np.flatnonzero(lacking).tolist()
        if not lost:
            continue
        strange = _some(names, lost)
        if kind == "class" and policy.class_names is not None:
            strange = [policy.class_names.get(each, each) for each in strange]
        if policy.unknown != "drop":
            where = (place or origin.place)(lost[0])
            can_add = kind == "class" and _can_add(truth, _some(names, lost), policy)
            raise unknown_policy.refusal(
                where, kind, strange, len(lost), truth, things, can_add=can_add
            )
        categories = truth.categories if kind == "class" else None
        notes += unknown_policy.dropped(kind, strange, len(lost), origin.source, categories)
    return kept & (label >= 0), notes


def _can_add(truth: Truth, names: Sequence[Any], policy: Policy) -> bool:
    """Whether the ground truth may lack these classes because they have no objects, and
    ``scope.unknown`` adds them.
    """
    every = len(truth.categories) == len(np.unique(truth.label))
    named = all(isinstance(each, str) for each in names)
    return policy.unknown == "error" and truth.scope is None and every and named


def outside_regions(
    truth: Truth, image: NDArray[np.int32], boxes: NDArray[np.float64], origin: Origin
) -> tuple[NDArray[np.bool_], tuple[Note, ...]]:
    """Returns (n,) bool, detections that no ignored region covers, and a note on the others."""
    regions = truth.regions
    if regions is None or not len(regions):
        return np.ones(len(image), dtype=bool), ()
    covered = regions.cover(image, boxes, (truth.images.width, truth.images.height))
    text = "detections lie in ignored regions of the ground truth and were dropped"
    notes = (Note("region-ignored", text, int(covered.sum()), origin.source),)
    return ~covered, notes if covered.any() else ()


def outside(
    images: Images, image: NDArray[np.int32], boxes: NDArray[np.float64], source: str
) -> tuple[Note, ...]:
    """Returns a note on the number of boxes x, y, width, height completely outside their image.

    They indicate another scale or box convention.
    """
    from detmap.kernels.overlap import count_outside

    def some(rows: slice) -> int:
        return count_outside(image[rows], boxes[rows], images.width, images.height)

    count = add_integers(map_chunks(some, len(image)))
    text = "detections lie completely outside their image"
    return (Note("box-outside", text, count, source),) if count else ()


def _some(values: Sequence[Any] | NDArray[Any], rows: list[int]) -> list[Any]:
    """Returns the values of some rows as Python objects."""
    return [
        value.item() if isinstance(value, np.generic) else value
        for value in map(values.__getitem__, rows)
    ]


def places(known: NDArray[Any], given: NDArray[Any] | Sequence[str]) -> NDArray[np.int32]:
    """Returns positions of ids among ascending known ids of the same type; -1 if unknown.

    Strings that are no array are looked up one by one: an array would be as wide as the longest.
    """
    if isinstance(given, np.ndarray):
        return positions(known, given)
    return coded(given).positions({each: i for i, each in enumerate(known.tolist())})


def images_named(
    truth: Truth,
    given: NDArray[Any] | list[str],
    place: Callable[[int], str],
    source: str,
    *,
    key: Key = "name",
    column: Column | None = None,
    evidence: Evidence | None = None,
) -> tuple[NDArray[np.int32], tuple[Note, ...]]:
    """Returns positions of images by id or another unambiguous name (-1 if unknown), and notes on
    other ways than ids.

    Parameters
    ----------
    given : (n,) whole numbers, or n strings
    place : place of row i, for messages
    key : what the field or the format prefers
    column : in place of `key`, a column of numbers
    evidence : of the pieces that were read before

    Raises `DataError` for ambiguous names and for numbers if the ground truth has names.
    """
    ids = truth.images.ids
    if not len(ids) or not len(given):
        return np.full(len(given), -1, dtype=np.int32), ()
    from detmap.core.adapters.joining import image_keys, image_lookup

    if isinstance(given, list) or given.dtype.kind != "i":
        names = given if isinstance(given, list) else given.tolist()
        lookup = image_lookup.Lookup(truth)
        image, ways = image_lookup.positions_by_name(lookup, names, place, key, evidence)
        return image, image_lookup.notes_of(ways, source)
    how = "the number of its stem"
    if ids.dtype.kind == "i":
        column = column or image_keys.column_of(truth, place(0), key)
        by_id = positions(ids, given)
        if column.preferred == "id" and evidence is None and by_id.min() >= 0:  # as in most files
            return by_id, ()
        numbered, choice = image_keys.find_numbers(truth, given, column, place, evidence)
        if choice.key == "id":
            return numbered, image_keys.doubt_note(choice, len(given), source)
    else:
        by_stem = image_lookup.positions_by_stem_id(truth, given)
        if by_stem is None:
            raise DataError(
                place(0),
                f"image ids are integers ({given[0]}) but strings in {truth.source} "
                f"({ids[0].item()!r})",
                "write the ids as in the ground truth",
            )
        numbered = by_stem
    count = {how: int((numbered >= 0).sum())}
    return numbered, image_lookup.notes_of(Counter(count), source)


def images_by_id(truth: Truth, given: NDArray[Any] | list[str], first: str) -> NDArray[np.int32]:
    """Returns positions of images by id, as `images_named` without notes; `first` is the place of
    all rows.
    """
    return images_named(truth, given, lambda _: first, "", key="id")[0]


def images_by_stem(
    truth: Truth, given: Sequence[str], source: str, key: Key | None = "name"
) -> NDArray[np.int32]:
    """Returns positions of images by file stem, or by id for a COCO truth; -1 if unknown.

    `key` is what the format or an option prefers.
    """
    from detmap.core.adapters.joining import image_keys

    return image_keys.find(truth, given, image_keys.column_of(truth, source, key)).image


def classes_by_id(
    truth: Truth, given: NDArray[Any] | Sequence[str], source: str, policy: Policy = STRICT
) -> NDArray[np.int32]:
    """Returns positions of classes by id (integers) or name (strings); -1 if unknown.

    Raises `DataError` if the ids have no defined meaning or class names are not unique.
    """
    if isinstance(given, np.ndarray) and given.dtype.kind == "i":
        ids, labels = policy.class_ids(truth, source)
        place = positions(ids, given)
        return place if labels is None else np.append(labels, np.int32(-1))[place]
    by_name = policy.positions_by_name(truth, source)
    return coded(given).positions(by_name)
