"""What is wrong with text that is not JSON: a file that is cut, or another fault."""

import json
import re

WRITE_AGAIN = "the file is truncated or still being written; write or copy it again"
_UNFINISHED = r"\s*|-|\.|[.\d]*[eE][+-]?|\\u?[0-9a-fA-F]{0,3}"
_ESCAPE = r"\\?u?[0-9a-fA-F]{0,4}"
_WORDS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")


def explain(text: str | bytes, message: object, fix: str) -> tuple[str, str]:
    """Returns what is wrong with text that a decoder refused with a message, and the fix.

    Text that is the beginning of JSON is truncated; the line where it ends is named.
    """
    line = last_line(text)
    if not line:
        return f"not JSON: {message}", fix
    return f"truncated: line {line} ends in the middle of the JSON", WRITE_AGAIN


def last_line(text: str | bytes) -> int:
    """Returns the last line of text that is the beginning of JSON, from 1; 0 for other text."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8-sig")
        json.loads(text)
    except UnicodeDecodeError as error:
        return last_line(error.object[: error.start]) if is_cut_character(error) else 0
    except json.JSONDecodeError as error:
        return 1 + error.doc.rstrip().count("\n") if is_truncated(error) else 0
    except (ValueError, RecursionError):
        pass
    return 0


def is_cut_character(error: UnicodeDecodeError) -> bool:
    """Checks if the last character of a text in UTF-8 is not whole."""
    return error.end == len(error.object) and error.reason == "unexpected end of data"


def is_truncated(error: json.JSONDecodeError) -> bool:
    """Checks if the end of the text is the fault: more text could make it JSON."""
    rest = error.doc[error.pos :].strip()
    if not error.doc.strip():
        return False
    if error.msg.startswith("Unterminated string"):
        return True
    if error.msg.startswith("Invalid \\uXXXX"):
        return re.fullmatch(_ESCAPE, rest) is not None
    if error.msg == "Expecting value" and any(word.startswith(rest) for word in _WORDS):
        return True
    return re.fullmatch(_UNFINISHED, rest) is not None
