"""Makes text from files safe to print."""


def shown(text: str) -> str:
    """Escapes control characters, so that class names and notes cannot control the terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
