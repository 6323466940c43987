"""Whether bytes are object code that can be linked here.

A linker trusts what it is given: LLVM's ends the whole process at a symbol or a relocation that
it does not know, and follows offsets wherever they lead. So the tables of a file from disk are
walked once before it sees them. This finds bytes that are no object code, those of another
processor, and torn tables; what the instructions themselves do is the business of the digest and
of the folder's owner (see `store`).
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Collection
from typing import NamedTuple

RELOCATABLE = 1  # type of an ELF file
WRITABLE, IN_MEMORY, EXECUTABLE = 1, 2, 4  # flags of its sections
SYMBOLS, NO_BITS, WITH_ADDENDS, WITHOUT_ADDENDS, STRINGS = 2, 8, 4, 9, 3  # types of sections
UNDEFINED, ABSOLUTE, COMMON = 0, 0xFFF1, 0xFFF2  # sections of symbols
LARGEST_COMMON = 4096  # bytes; numba has an empty word for each function
LARGEST_ALIGNMENT = 4096
ELF_MACHINES = {"x86_64": 62, "aarch64": 183, "ppc64le": 21, "riscv64": 243}
# What LLVM's code for a large memory model has: addresses, distances, parts of them
RELOCATIONS = {
    "x86_64": frozenset({1, 2, 4, 24}),  # 64, PC32, PLT32, PC64
    "aarch64": frozenset(range(257, 287)) | {299, 311, 312},
}
EIGHT_BYTES = {("x86_64", 1), ("x86_64", 24), ("aarch64", 257)}  # others have at most four
ANY = range(256)
MACH_O_MAGIC = b"\xcf\xfa\xed\xfe"
MACH_O_MACHINES = {"x86_64": 0x01000007, "arm64": 0x0100000C}
COFF_MACHINES = {"AMD64": 0x8664, "ARM64": 0xAA64}


class Section(NamedTuple):
    """One row of ELF's table of sections, in its order."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class Symbol(NamedTuple):
    """One row of ELF's table of symbols, in its order."""

    name: int
    kind: int
    visibility: int
    section: int
    value: int
    size: int


class Relocation(NamedTuple):
    """A place in a section where the address of a symbol, plus a number, has to be filled in."""

    offset: int
    kind: int
    symbol: int
    addend: int


def machine() -> str:
    """What the system calls the processor: x86_64, aarch64, arm64, AMD64."""
    if hasattr(os, "uname"):
        return os.uname().machine
    return os.environ.get("PROCESSOR_ARCHITECTURE", "")


def fault(code: bytes, symbol: str, outside: Collection[str], processor: str = "") -> str:
    """Why bytes cannot be linked; empty where they can.

    Parameters
    ----------
    code : a whole object file
    symbol : the function that it must define
    outside : names that it may leave to others; those that begin with ``Py`` are always allowed
    processor : as `machine` names it; this one where empty

    Raises
    ------
    nothing : any bytes are an answer
    """
    processor = processor or machine()
    if sys.platform == "darwin":
        (made_for,) = struct.unpack_from("<I", code, 4) if len(code) > 32 else (0,)
        right = code[:4] == MACH_O_MAGIC and made_for == MACH_O_MACHINES.get(processor)
        return "" if right else "no object code of this machine"
    if sys.platform == "win32" and code[:4] != b"\x7fELF":
        (made_for,) = struct.unpack_from("<H", code) if len(code) > 20 else (0,)
        right = made_for == COFF_MACHINES.get(processor)
        return "" if right else "no object code of this machine"
    try:
        return _elf_fault(code, symbol, outside, processor)
    except (struct.error, IndexError, OverflowError, ValueError):
        return "a table of the object code is cut off"


def sections_of(code: bytes) -> list[Section]:
    """The table of sections of an ELF file, in its order."""
    (table,), (count,) = struct.unpack_from("<Q", code, 40), struct.unpack_from("<H", code, 60)
    return [Section(*struct.unpack_from("<IIQQQQIIQQ", code, table + 64 * i)) for i in range(count)]


def symbols_of(code: bytes, table: Section) -> list[Symbol]:
    """The symbols in a table of them, in its order."""
    places = range(table.offset, table.offset + table.size - 23, 24)
    return [Symbol(*struct.unpack_from("<IBBHQQ", code, place)) for place in places]


def relocations_of(code: bytes, table: Section) -> list[Relocation]:
    """The places in a table of them, in its order."""
    places = range(table.offset, table.offset + table.size - 23, 24)
    return [Relocation(*struct.unpack_from("<QIIq", code, place)) for place in places]


def name_of(code: bytes, symbol: Symbol, strings: Section) -> str:
    """A symbol's name, which stands in the section of names."""
    begin, end = strings.offset + symbol.name, strings.offset + strings.size
    return code[begin : code.index(b"\0", begin, end)].decode("ascii", "replace")


def _elf_fault(code: bytes, symbol: str, outside: Collection[str], processor: str) -> str:
    kind, made_for = struct.unpack_from("<HH", code, 16)
    if code[:7] != b"\x7fELF\x02\x01\x01" or kind != RELOCATABLE:
        return "no object code"
    if made_for != ELF_MACHINES.get(processor):
        return "object code of another machine"
    size, count, names = struct.unpack_from("<HHH", code, 58)
    if size != 64 or not 0 < names < count:
        return "no table of sections"
    sections = sections_of(code)
    for section in sections:
        if section.alignment > LARGEST_ALIGNMENT or section.alignment & (section.alignment - 1):
            return "a section is out of line"
        if section.offset + section.size > len(code) or section.kind == WITHOUT_ADDENDS:
            return "a section leaves the file"
        if section.kind == NO_BITS and section.size:
            return "a section without content"
        if section.address or section.name >= sections[names].size:
            return "a section has a wrong name or place"
    tables = [section for section in sections if section.kind == SYMBOLS]
    if len(tables) != 1 or tables[0].entry_size != 24 or tables[0].link >= count:
        return "no table of symbols"
    symbols = symbols_of(code, tables[0])
    return (
        _symbols_fault(code, symbols, sections, sections[tables[0].link], symbol, outside)
        or _relocations_fault(code, sections, len(symbols), sections.index(tables[0]), processor)
        or ""
    )


def _symbols_fault(
    code: bytes,
    symbols: list[Symbol],
    sections: list[Section],
    strings: Section,
    wanted: str,
    outside: Collection[str],
) -> str:
    """Why the symbols are not those of a kernel; empty where they are."""
    if strings.kind != STRINGS:
        return "symbols without names"
    defined = False
    for symbol in symbols[1:]:
        name = name_of(code, symbol, strings)
        if symbol.section == UNDEFINED:
            if not (name in outside or name.startswith("Py")):
                return f"it needs {name!r}"
        elif symbol.section == COMMON:
            if symbol.size > LARGEST_COMMON or symbol.value > LARGEST_ALIGNMENT:
                return "a symbol leaves its section"
        elif symbol.section != ABSOLUTE:
            section = sections[symbol.section]
            if symbol.value + symbol.size > section.size:
                return "a symbol leaves its section"
            if name == wanted:
                defined = symbol.kind & 15 == 2 and bool(section.flags & EXECUTABLE)
    return "" if defined else "it does not define its kernel"


def _relocations_fault(
    code: bytes, sections: list[Section], n_symbols: int, table: int, processor: str
) -> str:
    """Why the places to fill in are not what a linker can fill in; empty where they are."""
    for section in sections:
        if section.kind != WITH_ADDENDS:
            continue
        if section.entry_size != 24 or section.size % 24 or section.link != table:
            return "no table of relocations"
        target = sections[section.info]
        for place in relocations_of(code, section):
            if place.kind not in RELOCATIONS.get(processor, ANY):
                return "a relocation that no kernel has"
            width = 8 if (processor, place.kind) in EIGHT_BYTES else 4
            if place.offset + width > target.size or place.symbol >= n_symbols:
                return "a relocation leaves its section"
    return ""
