"""Docstrings for the site: examples (``>>>``) outside of a section become code blocks."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension

EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\n).*)*", re.MULTILINE)
OPTION = re.compile(r" *# doctest: .*")


class Examples(Extension):
    """Fences examples, so that Markdown does not read brackets in them as links."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Rewrites the docstring of one module, class or function."""
        if not obj.is_alias and obj.docstring:
            obj.docstring.value = EXAMPLE.sub(fence, obj.docstring.value)


def fence(found: re.Match[str]) -> str:
    """Returns an example as a fenced block without the options of doctest."""
    return f"```pycon\n{OPTION.sub('', found[0])}\n```"
