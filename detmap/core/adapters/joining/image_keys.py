"""Images of columns, lists and folders whose values may be ids or file names.

`detmap.core.tables.join_keys` chooses the key: one for all values.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.coded_names import coded
from detmap.core.adapters.joining import image_lookup, image_names
from detmap.core.tables import Images, Note, Truth
from detmap.core.tables.grouping import positions
from detmap.core.tables.join_keys import (
    FILE_COLUMNS,
    ID_COLUMNS,
    Choice,
    Column,
    Evidence,
    Key,
    choose,
)
from detmap.errors import DataError


class Found(NamedTuple):
    """The images of n values: (n,) positions, -1 if unknown, and the key of all."""

    image: NDArray[np.int32]
    choice: Choice


def column_of(
    truth: Truth, where: str, key: Key | None = None, header: str | None = None
) -> Column:
    """Returns the column of images at a place.

    Parameters
    ----------
    key : what an option or the format prefers, if the header leaves it open
    header : its name, normalized (`csv_parquet.spelled`)
    """
    images = truth.images
    own: Key | None = "id" if header in ID_COLUMNS else "name" if header in FILE_COLUMNS else None
    return Column("image", where, lambda i: described(images, i), own or key, own is not None)


def described(images: Images, place: int) -> str:
    """Describes an image, for messages; beyond the last one, several of one name."""
    if place >= len(images):
        return "two images"
    file = (images.files or images.stems)[place]
    return f"image {images.ids[place].item()!r}" + (f" ({file})" if file else "")


def find(
    truth: Truth,
    given: Sequence[str],
    column: Column,
    evidence: Evidence | None = None,
    spell: Callable[[str], str] = str,
) -> Found:
    """Finds the images of texts by id, or by path, file name or stem.

    Parameters
    ----------
    evidence : of the pieces that were read before
    spell : the stem of a text that is none itself

    Raises `DataError` if both keys are possible, and for names of two images.
    """
    rows = coded(given)
    by_name = _find_names(truth, rows.names, spell)
    by_id = _find_ids(truth, rows.names, by_name, spell)
    choice = choose(column, rows.names, by_id, by_name, evidence)
    places = by_id if choice.key == "id" else by_name
    shared = np.flatnonzero(places == len(truth.images))
    if len(shared):
        what = f"two images of {truth.source} have the file stem {rows.names[shared[0]]!r}"
        raise DataError(column.where, what, "name the images by their ids")
    return Found(places[rows.code], choice)


def _find_ids(
    truth: Truth, names: Sequence[str], by_name: NDArray[Any], spell: Callable[[str], str]
) -> NDArray[np.int32]:
    """Returns positions by id; a file name is one if no image has this name."""
    table = {str(i): place for place, i in enumerate(truth.images.ids.tolist())}
    pairs = zip(names, by_name.tolist(), strict=True)
    found = [table.get(name, -1 if at >= 0 else table.get(spell(name), -1)) for name, at in pairs]
    return np.array(found, dtype=np.int32)


def _find_names(
    truth: Truth, names: Sequence[str], spell: Callable[[str], str]
) -> NDArray[np.int32]:
    """Returns positions by path, stem, or the stem before an upload; the number of images for names
    of two.
    """
    images = truth.images
    by_stem: dict[str, int] = {}
    for place, stem in enumerate(images.stems):
        by_stem[stem] = len(images) if stem in by_stem else place
    by_stem.pop("", None)
    stems = [name if name in by_stem else spell(name) for name in names]
    lost = [stem for stem in stems if stem not in by_stem]
    if lost:
        by_stem |= image_names.matches_before_upload(images.stems, lost, images.originals)
    exact = image_lookup.exact_positions(truth, names)
    pairs = zip(names, stems, strict=True)
    found = [exact.get(name, by_stem.get(stem, -1)) for name, stem in pairs]
    return np.array(found, dtype=np.int32)


def find_numbers(
    truth: Truth,
    given: NDArray[np.int64],
    column: Column,
    place: Callable[[int], str],
    evidence: Evidence | None = None,
) -> Found:
    """Finds the images of whole numbers by id, or by the number of their stem.

    Parameters
    ----------
    place : place of row i, for messages

    Raises `DataError` if both keys are possible, and for numbers of two stems.
    """
    images = truth.images
    values, code = np.unique(given, return_inverse=True)
    by_id = np.full(len(values), -1, dtype=np.int32)
    by_id[:] = positions(images.ids, values)
    stems = image_lookup.positions_by_number(truth)
    listed = values.tolist()
    by_name = np.array(
        [at[0] if len(at := stems.get(n, [-1])) == 1 else len(images) for n in listed], np.int32
    )
    choice = choose(column, listed, by_id, by_name, evidence)
    places = by_id if choice.key == "id" else by_name
    if len(shared := np.flatnonzero(places == len(images))):
        number = listed[int(shared[0])]
        row = int(np.argmax(given == number))
        raise image_lookup.Lookup(truth).ambiguous(place(row), number, stems[number])
    return Found(places[code.ravel()], choice)


def doubt_note(choice: Choice, count: int, source: str) -> tuple[Note, ...]:
    """Returns the note on numbers that are ids, some of which are other images' stems too."""
    if choice.doubt is None:
        return ()
    text = "detections name their image by the id of one image and the file stem of another: "
    text += "joined by id, since the column has others that are no stem; --image-key chooses"
    return (Note(image_lookup.ID_IS_STEM, text, count, source),)


def find_listed(
    truth: Truth, given: Sequence[Any], where: str, key: Key | None, header: str | None = None
) -> NDArray[np.int32]:
    """Returns positions of the images of a list, whose values are all texts or all whole numbers.

    Whole numbers are ids. Texts that are ids of some images and names of others are an error,
    unless the header or `key` says which.
    """
    texts = [isinstance(each, str) for each in given]
    if not all(texts):
        from detmap.core.adapters.joining import join

        if any(texts) or not all(type(each) is int and abs(each) < 2**63 for each in given):
            what = "not all images are strings, or all integers"
            raise DataError(where, what, "use one kind of ids")
        return join.images_by_id(truth, np.array(given, dtype=np.int64), where)
    column = column_of(truth, where, key, header)
    image, choice = find(truth, given, column, spell=image_names.stem)
    if choice.doubt is not None:
        raise choice.doubt
    return image
