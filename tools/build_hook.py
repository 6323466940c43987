"""Part of the wheel's build: compile the kernels and put them into the wheel as data.

The wheel stays one for all machines (py3-none-any): it carries the code for Linux on x86-64 and on
aarch64, and elsewhere the kernels are compiled on the first run. Built on another system than
Linux on x86-64 it carries none, and says so. An editable install has none either: there the loops
change.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelsHook(BuildHookInterface):  # type: ignore[type-arg]
    """Called by hatchling around the build of a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile in a process of its own: numba has to be told of the processor before its
        import.
        """
        if version == "editable" or self.target_name != "wheel":
            return
        here = f"{sys.platform} {platform.machine()}"
        if here != "linux x86_64":
            self.app.display_warning(f"built on {here}: this wheel carries no compiled kernels")
            return
        self.folder = tempfile.TemporaryDirectory()
        command = [sys.executable, str(Path(self.root, "tools", "build_kernels.py"))]
        subprocess.run([*command, self.folder.name], check=True, cwd=self.root)
        build_data["force_include"][self.folder.name] = "detmap/_data/kernels"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Leave nothing behind."""
        if hasattr(self, "folder"):
            self.folder.cleanup()
