"""The signature: one line that identifies protocol, data and version.

``coco-bbox.2|default|proto:8c1f…|data:51ab…|detmap:0.1.0``
"""

import platform

from detmap.core.protocol import Protocol
from detmap.core.protocol.protocol_digest import protocol_digest
from detmap.version import __version__


def signature(protocol: Protocol, data: str) -> str:
    """Returns protocol, version, changes, both digests and detmap's version."""
    if protocol.changes:
        state = ";".join(f"{key}={value}" for key, value in protocol.changes)
    else:
        state = "default" if protocol.stock else "custom"
    return "|".join(
        (
            f"{protocol.name}.{protocol.version}",
            state,
            f"proto:{protocol_digest(protocol)}",
            f"data:{data}",
            f"detmap:{__version__}",
        )
    )


def current(text: str) -> str:
    """Returns a signature in the words of this version: ``default`` was ``stock``."""
    return text.replace("|stock|", "|default|", 1)


def environment() -> dict[str, str]:
    """Returns the versions that can affect a metric."""
    from importlib.metadata import version

    return {
        "detmap": __version__,
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "numba": version("numba"),
        "platform": f"{platform.system()} {platform.machine()}",
    }
