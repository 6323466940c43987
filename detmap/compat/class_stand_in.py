"""Metaclass and decorator of classes that replace those of pycocotools."""

from abc import ABCMeta
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)


class StandIn(ABCMeta):
    """Metaclass of the classes that replace an `official` one.

    While a patch is active, instances and subclasses of the official class pass `isinstance` and
    `issubclass` tests against its replacement. It is an ABCMeta so that abstract classes can be
    mixed in.
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
    """Makes each method dispatch on its object: other objects use the official method.

    ``pycocotools.coco.COCO.loadRes(truth, results)`` and ``coco.COCO.__init__(self)`` then work
    under the patch with objects and classes that are older than the patch.
    """

    def mend(ours: Class) -> Class:
        for name, method in list(vars(ours).items()):
            if callable(method) and name in vars(official):
                setattr(ours, name, _either(ours, method, vars(official)[name]))
        ours._official = official  # type: ignore[attr-defined]
        return ours

    return mend


def is_ours(owner: Any, ours: type) -> bool:
    """Whether a replacement class created the object, whatever `isinstance` returns under the
    patch.
    """
    return ours in type(owner).__mro__


def _either(ours: type, method: Any, theirs: Any) -> Any:
    @wraps(method)
    def either(self: Any, *args: Any, **kwargs: Any) -> Any:
        return (method if is_ours(self, ours) else theirs)(self, *args, **kwargs)

    return either
