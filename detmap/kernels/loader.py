"""From object code to memory that the processor runs, on Linux with x86-64.

What a linker does, for the little that kernels need of one: their sections are laid one after the
other, and the addresses that they leave open are filled in. LLVM does it on every platform, but
its library has to be loaded for that, and it makes an engine for each kernel: for the fourteen
kernels of an evaluation 100 ms in place of 2. It still does all that kernels were never seen to
need: `load` returns None then.

Source: System V ABI, AMD64 supplement, section 4.4 (relocation).
"""

from __future__ import annotations

import ctypes
import mmap
import struct
import sys
from collections.abc import Mapping

from detmap.kernels.object_code import (
    IN_MEMORY,
    SYMBOLS,
    UNDEFINED,
    WITH_ADDENDS,
    WRITABLE,
    Section,
    Symbol,
    machine,
    name_of,
    relocations_of,
    sections_of,
    symbols_of,
)

HERE = sys.platform == "linux" and machine() == "x86_64" and sys.maxsize > 1 << 32
CONTENT = 1  # type of a section; the tables for unwinding have another, and nothing unwinds
ADDRESS = 1  # type of a relocation: the whole address of a symbol
_loaded: list[mmap.mmap] = []  # kernels stay for as long as the process does


def load(code: bytes, symbol: str, outside: Mapping[str, int], otherwise: int) -> int | None:
    """The address of a function of an object file, whose tables are in order (`fault`).

    Parameters
    ----------
    code, symbol : as in `Entry`
    outside : addresses of functions that the file may leave to others
    otherwise : the address for all others that it names, which it never calls

    Raises
    ------
    OSError : the system lets no memory be run
    """
    sections = sections_of(code)
    table = next(section for section in sections if section.kind == SYMBOLS)
    symbols, strings = symbols_of(code, table), sections[table.link]
    places, size = _laid_out(sections)
    if any(sections[at].flags & WRITABLE for at in places):
        return None
    memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for at, place in places.items():
        section = sections[at]
        memory[place : place + section.size] = code[section.offset : section.offset + section.size]

    def address(wanted: Symbol) -> int | None:
        if wanted.section == UNDEFINED:
            return outside.get(name_of(code, wanted, strings), otherwise)
        if wanted.section in places:
            return begin + places[wanted.section] + wanted.value
        return None

    for section in sections:
        if section.kind == WITH_ADDENDS and section.info in places:
            for gap in relocations_of(code, section):
                target = address(symbols[gap.symbol])
                if gap.kind != ADDRESS or target is None:
                    return None
                place = places[section.info] + gap.offset
                struct.pack_into("<Q", memory, place, (target + gap.addend) % (1 << 64))
    _let_run(begin, size)
    _loaded.append(memory)
    return address(next(each for each in symbols if name_of(code, each, strings) == symbol))


def _laid_out(sections: list[Section]) -> tuple[dict[int, int], int]:
    """Where in one piece of memory each section begins that belongs there, and the whole size."""
    places, end = {}, 0
    for at, section in enumerate(sections):
        if section.kind == CONTENT and section.flags & IN_MEMORY and section.size:
            places[at] = end + -end % max(section.alignment, 1)
            end = places[at] + section.size
    return places, end


def _let_run(begin: int, size: int) -> None:
    """Let memory be run, and no longer written to."""
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    if protect(begin, size, mmap.PROT_READ | mmap.PROT_EXEC):
        raise OSError(ctypes.get_errno(), "this system lets no code be loaded")
