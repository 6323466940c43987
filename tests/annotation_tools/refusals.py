"""One bad file: a DataError with this place, cause and fix."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from detmap import DataError


def refuses(read: Callable[..., Any], *given: Any, says: str, **options: Any) -> None:
    """Checks that `read` raises a `DataError` whose text contains `says`, ``...`` for anything."""
    pattern = ".*".join(map(re.escape, says.split("...")))
    with pytest.raises(DataError, match=pattern) as caught:
        read(*given, **options)
    assert caught.value.where
    assert caught.value.fix
