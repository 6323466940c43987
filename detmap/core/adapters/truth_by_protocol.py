"""The ground truth of one path under several protocols.

Protocols read different columns of a file: ``difficult`` in COCO JSON counts under VOC's rules only
(`detmap.core.protocol.named_columns.named_flags`). A table that was read for one protocol may lack
a column of another one, or have one that the other does not read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters import names_for, read_truth_for, registry
from detmap.core.protocol import Protocol
from detmap.core.tables import Truth
from detmap.errors import DataError


class TruthByProtocol:
    """The ground truth as each protocol reads it; equal tables are one table.

    Parameters
    ----------
    first : as it was read, for `protocol`
    protocol : its protocol; None if all protocols share the table
    read : reads it for another protocol
    options : of the reader: which of roles, attributes and classes it reads by name
    """

    def __init__(
        self,
        first: Truth,
        protocol: Protocol | None = None,
        read: Callable[[Protocol], Truth] | None = None,
        options: Sequence[str] = (),
    ) -> None:
        self.first, self._protocol, self._options = first, protocol, options
        self._read = None if protocol is None else read
        self._known = {} if protocol is None else {self._columns(protocol): first}

    def table(self, protocol: Protocol) -> Truth:
        """The ground truth with the roles and attributes that `read_truth_for` reads for a
        protocol, on the images of the first table.

        Raises
        ------
        DataError : as of `read_truth_for`; the file holds other objects than before
        """
        if self._read is None:
            return self.first
        columns = self._columns(protocol)
        if columns not in self._known:
            self._known[columns] = self._like_known(self._read(protocol), protocol)
        return self._known[columns]

    def select_images(self, places: NDArray[np.int32]) -> TruthByProtocol:
        """The same on some images, by ascending positions."""
        return TruthByProtocol(
            self.first.select_images(places),
            self._protocol,
            lambda protocol: self.table(protocol).select_images(places),
            self._options,
        )

    def _columns(self, protocol: Protocol) -> tuple[tuple[str, ...], ...]:
        """The roles, attributes and classes that the reader reads for a protocol by name."""
        return tuple(tuple(sorted(names_for(protocol)[name])) for name in self._options)

    def _like_known(self, read: Truth, protocol: Protocol) -> Truth:
        """A known table with the same columns, or the first one with the columns of `read`; `read`
        itself if it has the objects of other classes.
        """
        if not np.array_equal(read.boxes, self.first.boxes):
            if self._protocol is not None and protocol.classes != self._protocol.classes:
                return read
            what = "was read again for another protocol and now holds other objects"
            fix = "do not change it during the run, and choose its format with --truth-format"
            raise DataError(self.first.source, what, fix)
        for known in self._known.values():
            if _same(known.roles, read.roles) and _same(known.attributes, read.attributes):
                return known
        return replace(self.first, roles=read.roles, attributes=read.attributes, notes=read.notes)


def truth_by_protocol(
    path: Any, truth: Truth, protocol: Protocol, *, format: str | None = None, **options: Any
) -> TruthByProtocol:
    """The ground truth of a path, which `truth` was read from for `protocol`.

    It is read again only in a format with roles, attributes or classes by name, and for a protocol
    that names others. A table, given as `path`, is the same for all protocols; another Python
    object is read again.

    Parameters
    ----------
    format, options : as of `read_truth_for`
    """
    if isinstance(path, Truth):
        return TruthByProtocol(truth)
    if not isinstance(path, str | os.PathLike):
        again = partial(read_truth_for, path, format=format, **options)
        return TruthByProtocol(truth, protocol, again, tuple(names_for(protocol)))
    path = registry.checked_path(path)
    row, _ = registry.choose_noted(
        registry.FORMATS, path, lambda row: row.truth_looks, format, protocol.files.truth
    )
    named = tuple(name for name in names_for(protocol) if name in row.options)
    if not named:
        return TruthByProtocol(truth)

    def read(rules: Protocol) -> Truth:
        return read_truth_for(path, rules, format=row.name, **options)

    return TruthByProtocol(truth, protocol, read, named)


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return one.keys() == other.keys() and all(
        np.array_equal(one[name], other[name], equal_nan=one[name].dtype.kind == "f")
        for name in one
    )
