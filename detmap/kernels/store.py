"""Where the machine code of a kernel comes from: the wheel, the user's cache folder, the compiler.

Why not numba's own cache: it needs numba to be imported, which doubles the time and adds half of
the memory of a whole evaluation. Object code needs llvmlite at most (`loader`).

A file of object code begins with what it is (`identity`): the kernel and the types of its
arguments, a digest of the source of all loops that it is made of, detmap's version, the platform,
the processor, the compilers. It is linked only if that is exactly what is wanted, if the digest
over everything is right, and if its tables are those of object code; and, in the cache folder, if
folder and file belong to the user and nobody else may write there. Links are not followed.
Everything else is passed over, and the kernel is compiled. Nothing waits: processes that start at
once all compile, and each puts a whole file in place.

The versions of the compilers are part of the name in the cache although object code stands on its
own: another compiler may round or order nothing differently (no fast-math, no fused operation),
but where it has mended an error, the old code should not outlive it. The wheel's files were
compiled and tested with one version, which they name; there it is not compared.

Environment
-----------
DETMAP_CACHE_DIR : the cache folder, absolute or ``~/...``
DETMAP_KERNELS : ``wheel`` takes nothing but the wheel's kernels, and it is an error where one is
    missing; ``cache`` passes the wheel over; ``compile`` reads and writes nothing
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from detmap.base.resources import PACKAGE
from detmap.errors import DetmapError
from detmap.kernels.folder import folder, opened, read, say, write
from detmap.kernels.identity import compilers, file_name, identity, pack, platform, spelled, unpack
from detmap.kernels.linker import BadCodeError, link, processor

if TYPE_CHECKING:
    from detmap.kernels import Kernel, Key
    from detmap.kernels.compiler import Entry

COMPILING = "compiling kernels, once on this machine (`detmap warmup` does it ahead of time)"
WHEEL = PACKAGE / "_data" / "kernels"
BASELINE = {"linux x86_64": "plain x86-64", "linux aarch64": "plain armv8-a"}
"""Platforms and processors for which the wheel carries kernels."""
MODES = ("", "wheel", "cache", "compile")

_lock = threading.RLock()
if hasattr(os, "register_at_fork"):
    # A fork waits for a kernel that another thread compiles or links just then: a child inherits
    # neither our lock, nor those of numba and LLVM, nor their tables half filled.
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )


def entry(
    kernel: Kernel[Any, Any], args: tuple[object, ...], key: Key
) -> Callable[..., Any] | None:
    """The C function of a kernel for arguments of these types; None where numba has to run it.

    Raises
    ------
    DetmapError : DETMAP_KERNELS asks for what there is not
    """
    mode = os.environ.get("DETMAP_KERNELS", "")
    if mode not in MODES:
        raise DetmapError("DETMAP_KERNELS", f"{mode!r} is not known", "wheel, cache or compile")
    with _lock:
        address = kernel.entries.get(key) or _loaded(kernel, args, key, mode)
        if address is not None:
            kernel.entries[key] = address  # here, so that of two threads that ask one finds it
        return address


def _loaded(
    kernel: Kernel[Any, Any], args: tuple[object, ...], key: Key, mode: str
) -> Callable[..., Any] | None:
    """From where the mode says."""
    address = _from_wheel(kernel, key) if mode in ("", "wheel") else None
    if address is not None:
        return address
    if mode == "wheel":
        raise DetmapError(
            f"kernel {kernel.__name__}",
            f"this installation carries none for {spelled(key)} on {platform()}",
            "unset DETMAP_KERNELS",
        )
    if mode == "compile":
        say("compiling", "compiling kernels in memory, as DETMAP_KERNELS says")
        return _compiled(kernel, args)
    return _from_cache(kernel, args, key)


def _from_wheel(kernel: Kernel[Any, Any], key: Key) -> Callable[..., Any] | None:
    """As it was installed; None for other types of arguments, or a changed source."""
    bring = carried()
    if bring is None:
        return None
    wanted = identity(kernel, key, platform(), BASELINE[platform()])
    try:
        return link(unpack(bring(file_name(wanted)), wanted), checked=True, together=True)
    except OSError:
        return None
    except BadCodeError as error:
        say("wheel", f"{file_name(wanted)} of this installation is passed over: {error}")
        return None


def _from_cache(
    kernel: Kernel[Any, Any], args: tuple[object, ...], key: Key
) -> Callable[..., Any] | None:
    """From the cache folder; compiled, and put there, where it is not there or not right."""
    wanted = identity(kernel, key, platform(), processor(), compilers())
    name = file_name(wanted)
    with opened(folder()) as place:
        if place is None:  # which the user was told
            return _compiled(kernel, args)
        try:
            return link(unpack(read(place, name), wanted))
        except FileNotFoundError:
            say("compiling", COMPILING)
        except (OSError, BadCodeError) as error:
            say("file", f"{name} in {folder()} is passed over and compiled anew: {error}")
        return _compiled(kernel, args, lambda entry: write(place, name, pack(entry, wanted)))


def _compiled(
    kernel: Kernel[Any, Any],
    args: tuple[object, ...],
    keep: Callable[[Entry], None] = lambda entry: None,
) -> Callable[..., Any] | None:
    """Compiled now, and kept; None where numba does not show its object code."""
    from detmap.kernels import compiler

    try:
        entry = compiler.build(kernel, args).entry()
        function = link(entry, checked=True)
    except (compiler.Unsupported, BadCodeError) as error:
        say("numba", f"kernels run by numba alone, which starts slower: it is not known ({error})")
        return None
    keep(entry)
    return function


@cache
def carried() -> Callable[[str], bytes] | None:
    """How to read a file of the kernels that came with this installation; None where none did.

    They lie beside detmap's own code and are trusted as that is: who can write there needs no
    object code to run what he likes.
    """
    read_data: Callable[[str], bytes] | None = getattr(__spec__.loader, "get_data", None)
    if read_data is None or platform() not in BASELINE:
        return None
    place = WHEEL / platform().replace(" ", "-")
    return lambda name: read_data(str(place / name))
