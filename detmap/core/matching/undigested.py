"""Match results whose image digests are computed when they are first read.

Only the signature, saving, merging and comparing read them; a training loop that reads metrics does
not.
"""

from __future__ import annotations

from typing import Any

from detmap.core.base.immutable import keep
from detmap.core.matching.matches import Matches
from detmap.core.tables import Detections, Truth
from detmap.core.tables.digests import image_digests


class Undigested(Matches):
    """Match results of `tables`, which they keep alive; a changed copy has its digests."""

    __slots__ = ("tables",)
    tables: tuple[Truth, Detections]

    def __getattr__(self, name: str) -> Any:
        """Computes the digests, if nothing has read them before."""
        if name != "digest":
            raise AttributeError(name)
        keep(self, digest=image_digests(*self.tables))
        return self.digest

    def __reduce__(self) -> tuple[Any, ...]:
        made, (_, *columns) = super().__reduce__()
        return made, (Matches, *columns)
