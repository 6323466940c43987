"""Attributes that are computed on first access."""

from collections.abc import Callable, Mapping
from typing import Any, Self


class _WithDict:
    pass


own_dict: Callable[[Any], dict[str, Any]] = _WithDict.__dict__["__dict__"].__get__
"""The attributes of a `Lazy` that are there; none is made."""


class Lazy(_WithDict):
    """An object with attributes that are computed on first access.

    Reading an attribute computes it; ``vars()`` computes all. Assigning or deleting one is final.
    Copies and pickles keep computed values. A shallow copy shares later ones with its original.
    """

    _waiting: frozenset[str] = frozenset()
    _shared: dict[str, Any] | None = None  # what was made since there are shallow copies

    def _make(self, name: str) -> None:
        """Computes this attribute and calls `_fill` with it."""
        raise NotImplementedError

    def _wait_for(self, *names: str) -> None:
        """Deletes these attributes; `_make` computes them on the next access."""
        for name in names:
            own_dict(self).pop(name, None)
        self._waiting = self._waiting | set(names)
        self._shared = None

    def _waits_for(self, *names: str) -> bool:
        """Whether none of these attributes exists yet."""
        there = own_dict(self).keys() | (self._shared or {}).keys()
        return all(name in self._waiting and name not in there for name in names)

    def _fill(self, values: Mapping[str, Any]) -> None:
        """Sets those attributes that do not exist yet."""
        for name, value in values.items():
            value = value if self._shared is None else self._shared.setdefault(name, value)
            if name in self._waiting and name not in own_dict(self):
                setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:
        if name not in self._waiting:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self
            )
        if self._shared and name in self._shared:
            setattr(self, name, self._shared[name])
        else:
            self._make(name)
        return own_dict(self)[name]

    def __delattr__(self, name: str) -> None:
        if name in own_dict(self) or name not in self._waiting:
            super().__delattr__(name)
        self._waiting = self._waiting - {name}

    def __copy__(self) -> Self:
        if self._shared is None:
            self._shared = {}
        other = object.__new__(type(self))
        own_dict(other).update(own_dict(self))
        return other

    def __getstate__(self) -> dict[str, Any]:
        return own_dict(self)

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        for name in sorted(self._waiting):
            getattr(self, name)
        return own_dict(self)
