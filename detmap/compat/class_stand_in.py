"""What lets a class stand in the place of one of pycocotools', although objects and subclasses of
that one exist already.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)


class StandIn(ABCMeta):
    """The kind of classes that stand in for an `official` one.

    While `patched`, whatever is an instance or a subclass of the official class is one of theirs:
    a name of pycocotools' that somebody tests against is then the name of the stand-in. (An
    ABCMeta, so that a subclass may have an abstract class beside it.)
    """

    patched = 0  # how many patches are applied

    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, instance) or (
            StandIn.patched > 0 and isinstance(instance, vars(cls).get("_official", ()))
        )

    def __subclasscheck__(cls, subclass: Any) -> bool:
        return type.__subclasscheck__(cls, subclass) or (
            StandIn.patched > 0 and issubclass(subclass, vars(cls).get("_official", ()))
        )


def stands_in_for(official: type) -> Callable[[Class], Class]:
    """Make each method of a class that the official one has too hand over what is not its own.

    ``pycocotools.coco.COCO.loadRes(truth, results)`` and ``coco.COCO.__init__(self)`` reach the
    stand-in under the patch, with objects that were made, or of classes that were written, before.
    """

    def mend(ours: Class) -> Class:
        for name, method in list(vars(ours).items()):
            if callable(method) and name in vars(official):
                setattr(ours, name, _either(ours, method, vars(official)[name]))
        ours._official = official  # type: ignore[attr-defined]
        return ours

    return mend


def is_ours(owner: Any, ours: type) -> bool:
    """Whether an object was made by a stand-in, whatever `isinstance` says under the patch."""
    return ours in type(owner).__mro__


def _either(ours: type, method: Any, theirs: Any) -> Any:
    @wraps(method)
    def either(self: Any, *args: Any, **kwargs: Any) -> Any:
        return (method if is_ours(self, ours) else theirs)(self, *args, **kwargs)

    return either
