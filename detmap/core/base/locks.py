"""Objects that several threads share, and values that they compute without a lock."""

import os
import threading
import weakref
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, cast, overload

Given = ParamSpec("Given")
Got = TypeVar("Got")
Object = TypeVar("Object", bound="Locked")


class Locked:
    """Base class of objects with a lock. Copies and forked processes get a new lock."""

    _lock: Any

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Creates an object with its lock, also when it is unpickled."""
        made = super().__new__(cls)
        made._lock = threading.RLock()
        _LIVE.add(made)
        return made

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {name: value for name, value in self.__dict__.items() if name != "_lock"}


def one_at_a_time(
    method: Callable[Concatenate[Object, Given], Got],
) -> Callable[Concatenate[Object, Given], Got]:
    """Decorates a method so that only one thread at a time runs it on an object."""

    @wraps(method)
    def waiting(self: Object, *args: Given.args, **kwargs: Given.kwargs) -> Got:
        with self._lock:
            return method(self, *args, **kwargs)

    return cast("Callable[Concatenate[Object, Given], Got]", waiting)


_LIVE: weakref.WeakSet[Locked] = weakref.WeakSet()


def _renew() -> None:
    """Replaces all locks in a forked process."""
    for each in list(_LIVE):
        each._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


# --- lazy values ---

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
