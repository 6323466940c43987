"""The old import path of `detmap.base.resources`."""

from detmap.base.resources import folder

__all__ = ["folder"]
