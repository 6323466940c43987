"""Stand-ins for what an official program imports and does not use, or no longer finds."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

Numbers = dict[str, float]


def package(name: str, *folders: Path, **names: Any) -> None:
    """Makes a package whose modules are in these folders, and which has these names."""
    module = ModuleType(name)
    module.__path__ = [str(folder) for folder in folders]
    vars(module).update(names)
    sys.modules[name] = module
