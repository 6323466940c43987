"""The two functions that an engine needs: Ray, Spark, Dask or a queue."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from detmap.core.adapters.in_memory.nested_arrow import images_from_table
from detmap.core.matching.matches import Matches
from detmap.core.protocol import Protocol
from detmap.core.results.result import Result
from detmap.core.streaming.evaluator import Classes, Evaluator
from detmap.errors import DataError, MergeError
from detmap.evaluate import summarize


def match_shard(
    table: Any,
    classes: Classes,
    protocol: Protocol | str = "coco-bbox",
    *,
    box_format: str = "xywh",
    settings: Mapping[str, Any] | None = None,
    truth: str = "truth",
    detections: str = "detections",
) -> bytes:
    """Matches some images on a worker; give the bytes of all workers to `reduce`.

    Parameters
    ----------
    table : one row an image, as in `images_from_table`; images without objects have rows too
    classes : of the whole data set, as in `detmap.Evaluator`; the same on all workers
    protocol, box_format, settings : as in `detmap.Evaluator`
    truth, detections : names of the nested columns

    Raises
    ------
    DataError : invalid rows, as `detmap.Evaluator.update`
    """
    evaluator = Evaluator(protocol, classes=classes, box_format=box_format, settings=settings)
    evaluator.update(*images_from_table(table, truth=truth, detections=detections))
    return evaluator.matches.to_bytes()


def reduce(parts: Iterable[bytes | Matches]) -> Result:
    """Returns the result of all parts, in any order; the bits are those of one process.

    Raises
    ------
    DataError : no parts, one part outside a list, or bytes that `match_shard` did not write
    MergeError : an image in two parts, other classes or another protocol
    """
    if isinstance(parts, bytes | bytearray | memoryview | Matches) or not isinstance(
        parts, Iterable
    ):
        one = isinstance(parts, Matches | bytes)
        what = f"{'one part' if one else f'a {type(parts).__name__}'}, not a list of parts"
        raise DataError("reduce", what, "give a list of parts: reduce([part]) or reduce(parts)")
    read = [part if isinstance(part, Matches) else Matches.from_bytes(part) for part in parts]
    if not read:
        raise DataError("reduce", "no parts", "give what `match_shard` returned on the workers")
    try:
        return summarize(read[0].merge(*read[1:]))
    except MergeError as error:
        if "more than one part" not in error.what or not all(map(_is_numbered, read)):
            raise
        fix = "give image_id in every image, unique in the whole data set; or merge the evaluators"
        what = f"{error.what}: the images of all parts are numbered from 0, as without image_id"
        raise MergeError(error.where, what, fix) from None


def _is_numbered(part: Matches) -> bool:
    """Whether the image ids are 0, 1, 2 ..., as an `Evaluator` numbers images without ids."""
    return np.array_equal(part.image_ids, np.arange(part.n_images))
