"""`patch_pycocotools`: other people's code evaluates with detmap, as long as wanted."""

from __future__ import annotations

import copyreg
import sys
from types import ModuleType, TracebackType
from typing import Any

from pycocotools.coco import COCO as OfficialCOCO
from pycocotools.cocoeval import COCOeval as OfficialCOCOeval

from detmap.compat.class_stand_in import StandIn
from detmap.compat.coco_api import COCO
from detmap.compat.cocoeval import COCOeval

REPLACED: tuple[tuple[type, type], ...] = ((OfficialCOCO, COCO), (OfficialCOCOeval, COCOeval))
"""A class of pycocotools, and the one in its place."""


def _official(name: str) -> Any:
    """An empty object of a class of pycocotools."""
    return object.__new__({official.__name__: official for official, _ in REPLACED}[name])


def _taken_apart(thing: Any) -> Any:
    """How an object that pycocotools made is pickled while its class goes by another name."""
    return _official, (type(thing).__name__,), vars(thing)


class Patch:
    """A patch that was applied; as a context manager it is undone at the end."""

    def __init__(self, changes: list[tuple[ModuleType, str, type, type]]) -> None:
        self._changes, self._applied = changes, True
        StandIn.patched += 1
        for official, _ in REPLACED:
            copyreg.pickle(official, _taken_apart)

    def restore(self) -> None:
        """Put the names back that still hold what was put there; more than once does nothing."""
        if self._applied:
            self._applied = False
            StandIn.patched -= 1
            if not StandIn.patched:
                for official, _ in REPLACED:
                    copyreg.dispatch_table.pop(official, None)
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
    pycocotools.coco import COCO`` anywhere before is reached too. Objects and subclasses that
    exist already remain pycocotools' own: they pass for instances and subclasses of the new
    classes, whose methods hand them over, and are pickled and copied as before; what they
    evaluate, pycocotools evaluates. Not reached are names that are no globals of a module:
    attributes of classes, default arguments, items of containers. A module that is first
    imported under the patch, and binds the names then, keeps detmap's classes afterwards.
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
