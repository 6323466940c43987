"""A folder for the files of the cases, also of those that are called by hand: it is removed at the
end of the process.
"""

import tempfile
from pathlib import Path

_FOLDER = tempfile.TemporaryDirectory(prefix="detmap-fuzz-")


def scratch(name: str) -> Path:
    """The path of a file or folder of the cases."""
    return Path(_FOLDER.name, name)
