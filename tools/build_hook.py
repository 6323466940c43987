"""Part of the build: put the library of the kernels' machine code into the wheel, and beside the
kernels of an editable install. Without a linker there is none, which is said: numba compiles then.
"""

import os
import platform
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelsHook(BuildHookInterface):  # type: ignore[type-arg]
    """Called by hatchling around the build of a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Link for this machine, or in a wheel for the platform that DETMAP_PLATFORM names.

        Raises
        ------
        LookupError, OSError : it fails for DETMAP_PLATFORM
        """
        sys.path.insert(0, str(Path(self.root, "tools")))
        import build_native

        asked = os.environ.get("DETMAP_PLATFORM")
        name = asked or build_native.host()
        self.folder = tempfile.TemporaryDirectory()
        kernels = Path(self.root, "detmap", "kernels")
        try:
            file, tag = build_native.PLATFORMS[name].file, build_native.PLATFORMS[name].tag
            place = kernels if version == "editable" else Path(self.folder.name)
            build_native.build(name, place / file)
        except (LookupError, OSError, ImportError, RuntimeError) as error:
            if asked:
                raise
            self.app.display_warning(f"no library of the kernels, numba compiles them: {error}")
            return
        self.app.display_info(f"linked the kernels' machine code for {name}: {file}")
        if version != "editable":
            build_data["force_include"][str(place / file)] = f"detmap/kernels/{file}"
            if not asked and tag.startswith("manylinux") and platform.libc_ver()[0] != "glibc":
                tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data |= {"tag": f"py3-none-{tag}", "pure_python": False}

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Leave nothing behind."""
        self.folder.cleanup()
