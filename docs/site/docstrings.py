"""Docstrings for the site: examples become code without prompts, sections become lists."""

import doctest
import re
from typing import Any

from griffe import Extension

EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\n).*)*", re.MULTILINE)
OPTION = re.compile(r" *# doctest: .*")
ENTRY = re.compile(r"([*\w][\w.*, ]*) : (.+)")


class Examples(Extension):
    """Rewrites docstrings before they are parsed."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Rewrites the docstring of one module, class or function."""
        if not obj.is_alias and obj.docstring:
            obj.docstring.value = EXAMPLE.sub(fence, lists(obj.docstring.value))


def fence(found: re.Match[str]) -> str:
    """Returns an example as code; what it prints is a comment."""
    lines = []
    for example in doctest.DocTestParser().get_examples(f"{found[0]}\n"):
        lines += OPTION.sub("", example.source).rstrip("\n").split("\n")
        lines += [f"# {line}" for line in example.want.splitlines()]
    return "\n".join(("```python", *lines, "```"))


def lists(text: str) -> str:
    """Returns a docstring with its sections as lists: ``name : meaning`` is an item."""
    lines, out, inside = text.splitlines(), [], False
    for i, line in enumerate(lines):
        below = lines[i + 1] if i + 1 < len(lines) else ""
        if line and re.fullmatch("-{3,}", below):
            out += [f"**{line}**", ""]
            inside = True
        elif inside and re.fullmatch("-{3,}", line):
            continue
        elif inside and (entry := ENTRY.fullmatch(line)):
            out.append(f"- **`{entry[1]}`** {entry[2]}")
        elif inside and line and not line[0].isspace() and lines[i - 1].startswith("---"):
            out.append(f"- {line}")
        else:
            inside = inside and (not line or line[0].isspace())
            out.append(line)
    return "\n".join(out)
