"""Set up the command-line process: signals that end it, closed standard streams, exit.

Imports next to nothing, because Ctrl-C is not handled before the import ends.
"""

from __future__ import annotations

# What `signal` wraps, without the enums, whose import takes longer than all else here.
import _signal as signal  # type: ignore[import-not-found]
import _thread
import atexit
import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

ENDED_BY = 128  # plus the number of the signal: the exit code, as shells have it
WORDS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "hung up"}
"""Signals that end the command, and how it says so; Windows has no SIGHUP."""
_ending = _thread.allocate_lock()  # held by the thread that ends the process; the other one waits
MOST_TOOLS = 6  # of `sys.monitoring`
OBJECTS = 100_000  # new objects per garbage collection; imports allocate about as many


def begin() -> None:
    """Set up the process before the command runs."""
    gc.set_threshold(OBJECTS)
    # Before NumPy is imported: nothing here is linear algebra, and its threads cost .1 s to start.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _fill_descriptors()
    _watch_for_signals()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - as long as the process lives
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # names may hold what an old terminal cannot show
            stream.reconfigure(errors="backslashreplace")


def end(code: int) -> NoReturn:
    """Flush the streams and exit with this code."""
    from detmap.cli import streams

    watched = _is_watched()
    if not watched:
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            try:
                stream.flush()
            except OSError:
                streams.drop(stream)
    _ending.acquire()  # everything is written: Ctrl-C is too late
    if watched:
        sys.exit(code)
    os._exit(code)  # skips 20 ms of interpreter shutdown


def _is_watched() -> bool:
    """Check for a debugger, profiler or coverage, which write at interpreter exit."""
    if sys.gettrace() or sys.getprofile():
        return True
    monitoring = getattr(sys, "monitoring", None)  # from Python 3.12; cProfile takes it from 3.13
    return monitoring is not None and any(map(monitoring.get_tool, range(MOST_TOOLS)))


def _fill_descriptors() -> None:
    """Open the null device for closed standard streams (``>&-``), to occupy their numbers."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one


def _watch_for_signals() -> None:
    """End the process at once on Ctrl-C, SIGTERM and SIGHUP, also while a kernel runs.

    A KeyboardInterrupt comes only between two steps of the interpreter in the main thread, so not
    while a kernel runs or LLVM compiles; it is lost in a callback, and waits for worker threads.
    The C part of Python's signal handling writes to a pipe at once, and a thread waits there.
    Where the user has one ignored (`nohup`, a job in the background) it stays ignored.
    """
    defaults = signal.default_int_handler, signal.SIG_DFL
    known = {name: getattr(signal, name) for name in WORDS if hasattr(signal, name)}
    watched = {
        number: name for name, number in known.items() if signal.getsignal(number) in defaults
    }
    if sys.platform == "win32":
        if signal.SIGINT in watched:
            signal.signal(signal.SIGINT, lambda *_: _leave(signal.SIGINT, WORDS["SIGINT"]))
        return
    if not watched:
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    for number in watched:
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    _thread.start_new_thread(_wait, (reader, watched))


def _wait(reader: int, watched: dict[int, str]) -> None:
    number = os.read(reader, 1)[0]
    while number not in watched:
        number = os.read(reader, 1)[0]
    _leave(number, WORDS[watched[number]])


def _leave(number: int, word: str) -> None:
    """End the process on a signal and delete temporary files."""
    if not _ending.acquire(False):
        return
    try:
        terminal = os.dup(2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the main thread may still write a line
        # Halfway through its import the module has no such function yet, and no drafts either.
        abandon = getattr(sys.modules.get("detmap.core.base.atomic_files"), "abandon", None)
        if abandon is not None:
            abandon()
        os.write(terminal, f"detmap: {word}\n".encode())
    finally:
        os._exit(ENDED_BY + number)
