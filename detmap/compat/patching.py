"""`patch_pycocotools`: other people's code evaluates with detmap, as long as wanted."""

from __future__ import annotations

import sys
from types import ModuleType, TracebackType

from pycocotools.coco import COCO as OfficialCOCO
from pycocotools.cocoeval import COCOeval as OfficialCOCOeval

from detmap.compat.coco import COCO
from detmap.compat.evaluation import COCOeval

REPLACED: tuple[tuple[type, type], ...] = ((OfficialCOCO, COCO), (OfficialCOCOeval, COCOeval))
"""A class of pycocotools, and the one in its place."""


class Patch:
    """A patch that was applied; as a context manager it is undone at the end."""

    def __init__(self, changes: list[tuple[ModuleType, str, type, type]]) -> None:
        self._changes = changes

    def restore(self) -> None:
        """Put the names back that still hold what was put there; more than once does nothing."""
        while self._changes:
            module, name, official, ours = self._changes.pop()
            if vars(module).get(name) is ours:
                setattr(module, name, official)

    def __enter__(self) -> Patch:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.restore()


def patch_pycocotools() -> Patch:
    """Put detmap's classes in the place of pycocotools' `COCO` and `COCOeval`.

    ``patch = patch_pycocotools()`` until ``patch.restore()``, or ``with patch_pycocotools(): ...``.
    Patches may be nested.

    Replaced are ``pycocotools.coco.COCO`` and ``pycocotools.cocoeval.COCOeval``, and in every
    module that is loaded by now each global name that holds one of them, so that ``from
    pycocotools.coco import COCO`` anywhere before is reached too. Not reached are objects and
    subclasses that exist already, and names that are no globals of a module: attributes of
    classes, default arguments, items of containers. A module that is first imported under the
    patch, and binds the names then, keeps detmap's classes afterwards.
    """
    changes: list[tuple[ModuleType, str, type, type]] = []
    for module_name, module in list(sys.modules.items()):
        if not isinstance(module, ModuleType) or module_name.split(".")[0] == "detmap":
            continue
        for name, value in list(vars(module).items()):
            for official, ours in REPLACED:
                if value is official:
                    setattr(module, name, ours)
                    changes.append((module, name, official, ours))
    return Patch(changes)
