"""Values that an object computes when they are first read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

Computed = TypeVar("Computed")


class cached_property(Generic[Computed]):  # noqa: N801 - used like `property`
    """A property that is computed once per object and then is an attribute of it.

    Unlike `functools.cached_property` before Python 3.12 it has no lock. That lock is shared by all
    objects of a class, and a process that was forked while another thread held it waits forever.
    Two threads may both compute a value; they get equal ones.
    """

    def __init__(self, compute: Callable[[Any], Computed]) -> None:
        self.compute, self.__doc__ = compute, compute.__doc__
        self.name = compute.__name__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> Computed: ...

    def __get__(self, instance: object | None, owner: type) -> Self | Computed:
        if instance is None:
            return self
        values = instance.__dict__  # not `setattr`: the object may be frozen
        if self.name not in values:
            values.setdefault(self.name, self.compute(instance))
        value: Computed = values[self.name]
        return value
