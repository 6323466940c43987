"""Print the oldest version of each dependency that pyproject.toml allows, for pip.

    python tools/lower_bounds.py [EXTRA ...] > oldest.txt
    pip install -r oldest.txt

Without an extra: what detmap itself needs. Exit 1 if a dependency has no lower bound.
"""

import argparse
import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
PARTS = re.compile(r"([\w.-]+)(\[[\w,-]+\])?\s*(?:(?:>=|==)\s*([\w.]+))?")


def pins(project: dict[str, Any], extras: Iterable[str] = ()) -> list[str]:
    """``name==version`` of the dependencies and of extras, also of those that an extra names.

    Raises
    ------
    ValueError : a dependency has no lower bound
    """
    found: dict[str, str] = {}
    open_extras, done = list(extras), set[str]()
    requirements = list(project["dependencies"])
    while requirements or open_extras:
        if not requirements:
            extra = open_extras.pop()
            if extra not in done:
                requirements = list(project["optional-dependencies"][extra])
            done.add(extra)
            continue
        text = requirements.pop()
        match = PARTS.match(text)
        assert match is not None
        name, inner, version = match.groups()
        if name == project["name"]:
            open_extras += (inner or "").strip("[]").split(",")
        elif version is None:
            raise ValueError(f"{text}: give a lower bound, name>=version")
        else:
            found[name] = f"{name}{inner or ''}=={version}"
    return [found[name] for name in sorted(found)]


def main() -> int:
    """Print the pins of the extras that the command line names."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    command = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = sorted(project["optional-dependencies"])
    command.add_argument("extras", nargs="*", metavar="EXTRA", help=", ".join(known))
    given = command.parse_args()
    if strange := set(given.extras) - set(known):
        command.error(f"no extra {min(strange)}: choose from {', '.join(known)}")
    try:
        print(*pins(project, given.extras), sep="\n")
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
