"""Attributes that are made when somebody first asks for them, and cannot be told from others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


class _WithDict:
    pass


own_dict: Callable[[Any], dict[str, Any]] = _WithDict.__dict__["__dict__"].__get__
"""The attributes of a `Lazy` that are there; none is made."""


class Lazy(_WithDict):
    """An object some of whose attributes wait to be made.

    Reading one by its name makes it, ``vars()`` makes all of them; assigning or deleting one is
    final. Copies and pickles take along what is there and wait for the rest.
    """

    _waiting: frozenset[str] = frozenset()

    def _make(self, name: str) -> None:
        """`_fill` in this attribute, and any others that come with it."""
        raise NotImplementedError

    def _wait_for(self, *names: str) -> None:
        """Forget these attributes; `_make` will be asked for them."""
        for name in names:
            own_dict(self).pop(name, None)
        self._waiting = self._waiting | set(names)

    def _waits_for(self, *names: str) -> bool:
        """Whether all of these are still to be made."""
        there = own_dict(self)
        return all(name in self._waiting and name not in there for name in names)

    def _fill(self, values: Mapping[str, Any]) -> None:
        """Set those of the attributes that wait."""
        for name, value in values.items():
            if self._waits_for(name):
                setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:
        if name not in self._waiting:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self
            )
        self._make(name)
        return own_dict(self)[name]

    def __delattr__(self, name: str) -> None:
        if not self._waits_for(name):
            super().__delattr__(name)
        self._waiting = self._waiting - {name}

    def __getstate__(self) -> dict[str, Any]:
        return own_dict(self)

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        for name in sorted(self._waiting):
            getattr(self, name)
        return own_dict(self)
