"""Values that several computations on the same tables share."""

from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

Value = TypeVar("Value")


class LastValues:
    """Keeps the last value of each kind.

    Memory is bounded, so callers that want to share values compute similar things in a row. Not
    safe for several threads that ask for the same kind.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[object, ...], Hashable, Any]] = {}

    def get(
        self, kind: str, inputs: tuple[object, ...], key: Hashable, compute: Callable[[], Value]
    ) -> Value:
        """Returns the last value of this kind if its inputs and key are the same, else a new one.

        Parameters
        ----------
        kind : name of the value
        inputs : immutable objects, compared by identity
        key : all else that the value depends on, compared by `==`
        compute : returns the value
        """
        known = self._known.get(kind)
        if known is None or known[1] != key or not _same(known[0], inputs):
            self._known.pop(kind, None)  # its memory is free before a new value needs some
            known = self._known[kind] = (inputs, key, compute())
        return cast(Value, known[2])


def _same(first: tuple[object, ...], second: tuple[object, ...]) -> bool:
    return len(first) == len(second) and all(a is b for a, b in zip(first, second, strict=True))
