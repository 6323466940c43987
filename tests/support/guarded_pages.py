"""Text between pages that no process may read: a byte read beyond it ends the process."""

import ctypes
import mmap

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.coco.scan_json import JsonFile

PAGE = mmap.PAGESIZE
ROOM = 16 * PAGE
NO_ACCESS = 0  # PROT_NONE of sys/mman.h


class Guarded:
    """Memory of ROOM bytes between two pages without access. For POSIX systems."""

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, ROOM + 2 * PAGE)
        place = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        for page in (place, place + PAGE + ROOM):
            if protect(ctypes.c_void_p(page), ctypes.c_size_t(PAGE), NO_ACCESS):
                raise OSError(ctypes.get_errno(), "mprotect")

    def holding(self, data: bytes, *, last: bool) -> NDArray[np.uint8]:
        """The bytes as an array that ends with the memory, or begins with it; overwritten by the
        next call.
        """
        begin = PAGE + (ROOM - len(data) if last else 0)
        self.memory[begin : begin + len(data)] = data
        return np.frombuffer(self.memory, np.uint8, len(data), begin)


class GuardedFile(JsonFile):
    """A JSON file in memory; what is read of it lies between guarded pages.

    Parameters
    ----------
    data : at most ROOM bytes
    last : whether it lies at the end of the pages, or at their beginning
    """

    pages: list[Guarded] = []  # noqa: RUF012 - shared: an array is used until four later reads

    def __init__(self, data: bytes, *, last: bool) -> None:
        self.data, self.size, self.path = data, len(data), "text"
        self.hold(None)
        self.last, self.n_read = last, 0
        if not self.pages:
            self.pages += [Guarded() for _ in range(4)]

    def read(self, at: int, size: int) -> NDArray[np.uint8]:
        """See `JsonFile.read`."""
        self.n_read += 1
        guarded = self.pages[self.n_read % len(self.pages)]
        return guarded.holding(self.data[at : at + size], last=self.last)
