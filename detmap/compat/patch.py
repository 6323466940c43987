"""`patch_pycocotools`: makes other code evaluate with detmap."""

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
    """An empty object of a pycocotools class."""
    return object.__new__({official.__name__: official for official, _ in REPLACED}[name])


def _taken_apart(thing: Any) -> Any:
    """The pickle form of an object that pycocotools created, while another class has its name."""
    return _official, (type(thing).__name__,), vars(thing)


class Patch:
    """An active patch; a context manager that restores pycocotools on exit."""

    def __init__(self, changes: list[tuple[ModuleType, str, type, type]]) -> None:
        self._changes, self._applied = changes, True
        StandIn.patched += 1
        for official, _ in REPLACED:
            copyreg.pickle(official, _taken_apart)

    def restore(self) -> None:
        """Restores all names that still hold a replacement; further calls do nothing."""
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
    """Replaces pycocotools' `COCO` and `COCOeval` by detmap's classes.

    ``patch = patch_pycocotools()`` until ``patch.restore()``, or ``with patch_pycocotools(): ...``.
    Patches may be nested.

    The patch replaces ``pycocotools.coco.COCO``, ``pycocotools.cocoeval.COCOeval`` and every global
    name of a loaded module that holds one of them. Existing objects and subclasses keep
    pycocotools'
    methods; they pass `isinstance` tests against the new classes and can be pickled and copied. The
    patch does not reach class attributes, default arguments and items of containers. A module that
    is first imported under the patch keeps detmap's classes afterwards.
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
