"""Metrics and classes by name, with errors that propose the right name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from detmap.core.base.suggestions import ProposesNames, did_you_mean, missing, missing_attribute
from detmap.errors import few


class NamedValues(dict[str, Any]):
    """A dict of values by metric; a `KeyError` proposes the right name."""

    def __missing__(self, name: object) -> Any:
        raise missing(name, self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickled as an `OrderedDict`, which `torch.load` reads with ``weights_only=True``."""
        return OrderedDict, (), None, None, iter(self.items())

    def __copy__(self) -> NamedValues:
        return NamedValues(self)

    def __deepcopy__(self, memo: Any) -> NamedValues:
        return NamedValues(self)  # of numbers and texts

    if not TYPE_CHECKING:  # a type checker would accept any attribute

        def __getattr__(self, name: str) -> Any:
            if name in self:
                return self[name]
            raise AttributeError(f"there is no {name}; the names are {', '.join(self)}")


class ClassRows(list[dict[str, Any]], ProposesNames):
    """One row per class, by position or by the name of the class: ``rows["lamp"]["AP"]``.

    ``list(rows)`` is a plain list, which ``torch.load`` reads with ``weights_only=True``.
    """

    @overload
    def __getitem__(self, key: SupportsIndex | str, /) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, key: slice, /) -> list[dict[str, Any]]: ...

    def __getitem__(self, key: SupportsIndex | slice | str, /) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        rows = [row for row in self if row["name"] == key]
        if len(rows) == 1:
            return rows[0]
        if rows:
            ids = ", ".join(str(row.get("id")) for row in rows)
            raise KeyError(f"several classes are named {key!r} (ids {ids}); use the position")
        hint = did_you_mean("class", key, self.names)
        if not hint and self and key in self[0]:
            hint = f"did you mean to_frame()[{key!r}]? "
        raise KeyError(f"there is no class {key!r:.80}; {hint}the classes are {few(self.names)}")

    def __contains__(self, key: object) -> bool:
        if isinstance(key, str):
            return any(row["name"] == key for row in self)
        return super().__contains__(key)

    if not TYPE_CHECKING:  # a type checker would accept any attribute

        def __getattr__(self, name: str) -> Any:
            if self and name in self[0]:
                text = f"'ClassRows' object has no attribute {name!r}"
                raise AttributeError(f"{text}; did you mean to_frame()[{name!r}]?")
            return super().__getattr__(name)

    @property
    def names(self) -> list[str]:
        """The names of the classes."""
        return [row["name"] for row in self]

    def to_frame(self) -> Any:
        """Returns the rows as a `pandas.DataFrame` with the names of the classes as index."""
        from detmap.core.output import data_frames
        from detmap.core.output.table import Table

        header = tuple(self[0]) if self else ("name",)
        rows = tuple(tuple(row.values()) for row in self)
        frame = data_frames.frame([Table("", header, rows, name="classes")], "classes", "")
        return frame.set_index("name")


class MetricAccess:
    """Base class of results: a mapping from metric to value, whose names are attributes too."""

    @property
    def metrics(self) -> dict[str, float]:
        """Values by name."""
        raise NotImplementedError

    def __getitem__(self, name: str) -> float:
        return float(self.metrics[name])

    def __contains__(self, name: object) -> bool:
        return name in self.metrics

    def __iter__(self) -> Iterator[str]:
        return iter(self.metrics)

    def get(self, name: str, default: float | None = None) -> float | None:
        """Returns the value of a metric, or the default if there is no such metric."""
        return self.metrics.get(name, default)

    def keys(self) -> KeysView[str]:
        """Returns the names of the metrics."""
        return self.metrics.keys()

    def values(self) -> ValuesView[float]:
        """Returns the values of the metrics."""
        return self.metrics.values()

    def items(self) -> ItemsView[str, float]:
        """Returns names and values of the metrics."""
        return self.metrics.items()

    def to_frame(self, table: str | None = None, *, iou: float | None = None) -> Any:
        """Returns one of the tables as a `pandas.DataFrame`; its ``attrs`` hold the signature.

        Parameters
        ----------
        table : ``metrics`` (default), ``classes`` or ``integrators``
        iou : IoU threshold of the counts

        Raises
        ------
        DetmapError : unknown table, or pandas is not installed
        """
        from detmap.core.output import data_frames

        result: Any = self
        tables = result.tables(iou=iou, per_class=True, integrators=table == "integrators")
        return data_frames.frame(tables, table or "metrics", result.signature)

    def _named_metric(self, name: str) -> float:
        """Returns the metric of an attribute's name.

        Raises
        ------
        AttributeError : no such metric; it proposes the right name
        """
        if name.startswith("_"):
            raise missing_attribute(self, name)
        metrics = self.metrics
        if name in metrics:
            return metrics[name]
        raise missing_attribute(self, name, metrics)
