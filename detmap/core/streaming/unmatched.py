"""The images of an evaluator whose classes come as they are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.in_memory.batch_join import Batch, Joiner
from detmap.core.protocol import Protocol
from detmap.core.protocol.protocol_digest import protocol_digest
from detmap.errors import MergeError, counted


@dataclass(frozen=True, slots=True, eq=False)
class Unmatched:
    """Checked rows, which merge as `Matches` do.

    Parameters
    ----------
    protocol, reader : of the evaluator
    batch : the rows; None if there are no images
    """

    protocol: Protocol
    reader: Joiner
    batch: Batch | None

    @property
    def image_ids(self) -> NDArray[Any]:
        """Ids of the images."""
        return np.zeros(0, dtype=np.int64) if self.batch is None else self.batch.ids

    @property
    def n_images(self) -> int:
        """The number of images."""
        return len(self.image_ids)

    def renumbered(self, by: int) -> Unmatched:
        """Adds a number to all image ids."""
        return replace(self, batch=None if self.batch is None else self.batch.renumbered(by))

    def merge(self, *others: Any) -> Unmatched:
        """Joins all parts. Raises `MergeError` as `Matches.merge`."""
        for other in others:
            if not isinstance(other, Unmatched):
                what = "classes are given to one evaluator but not to another"
                raise MergeError("merge", what, "give classes= to all evaluators, or to none")
            if protocol_digest(self.protocol) != protocol_digest(other.protocol):
                what = f"protocol {self.protocol.name} and {other.protocol.name}"
                raise MergeError("merge", what, "match all parts under the same protocol")
        parts = [each.batch for each in (self, *others) if each.batch is not None]
        for kinds, what in (
            ({part.ids.dtype.kind for part in parts if len(part.ids)}, "image ids"),
            ({part.labels().dtype.kind for part in parts if len(part)}, "classes"),
        ):
            if len(kinds) > 1:
                what += " are numbers in one part and names in another"
                raise MergeError("merge", what, "use one kind in all parts")
        if not parts:
            return self
        batch = self.reader.join(parts)
        ids, count = np.unique(batch.ids, return_counts=True)
        if (count > 1).any():
            twice = ids[count > 1].tolist()
            what = f"{counted(len(twice), 'image')} in more than one part: {twice[:5]}"
            raise MergeError("merge", what, "put every image into one part only")
        return replace(self, batch=batch)
