"""Text that others wrote, as it may be shown."""

from __future__ import annotations


def shown(text: str) -> str:
    """The text with its control characters spelled out: line ends and escapes of a terminal, in
    names of classes or in notes of a file, do nothing.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
