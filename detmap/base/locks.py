"""Objects that threads share: one method at a time, however they are pickled or forked."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast

Given = ParamSpec("Given")
Got = TypeVar("Got")
Object = TypeVar("Object", bound="Locked")


class Locked:
    """What has a lock of its own; a copy and a forked process begin with a new one."""

    _lock: Any

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """An object with its lock, whether it is initialised or unpickled."""
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
    """A method that waits for those of other threads on the same object."""

    @wraps(method)
    def waiting(self: Object, *args: Given.args, **kwargs: Given.kwargs) -> Got:
        with self._lock:
            return method(self, *args, **kwargs)

    return cast("Callable[Concatenate[Object, Given], Got]", waiting)


_LIVE: weakref.WeakSet[Locked] = weakref.WeakSet()


def _renew() -> None:
    """In a forked process: who held a lock is not there to let it go."""
    for each in list(_LIVE):
        each._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
