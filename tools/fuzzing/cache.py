"""The cache folder of the kernels, forged: whatever lies there, a kernel runs, with the right
numbers.

A folder is filled as a process leaves it; then files are swapped, cut, flipped, emptied, made huge,
given other headers (with the right digest over them), replaced by folders, links, circles, FIFOs,
given to somebody else or opened to all, and so is the folder. Instructions are never changed under
a right digest: who can write machine code into a folder of the user's runs it. Kernels are tiny, so
that compiling them anew costs little; they must give the right number, say what they passed over,
touch nothing that a link points to, and leave a folder from which the next process compiles
nothing.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import random
import shutil
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from detmap.kernels import Kernel, compiler, folder, identity, kernel

COUNTS = {"compiled": 0, "passed over": 0, "unused folders": 0}
NUMBERS = np.arange(6.0)
LOG = logging.getLogger("detmap")


@kernel
def once(numbers: Any) -> int:
    """So many."""
    return numbers.shape[0]


@kernel
def thrice(numbers: Any) -> int:
    """Three times as many."""
    return 3 * numbers.shape[0]


@kernel
def added(numbers: Any) -> float:
    """The sum."""
    total = 0.0
    for i in range(numbers.shape[0]):
        total += numbers[i]
    return total


KERNELS: dict[str, tuple[Kernel[..., Any], float]] = {
    "once": (once, 6),
    "thrice": (thrice, 18),
    "added": (added, 15),
}
_files: dict[str, bytes] = {}  # as the compiler leaves them
_said: list[str] = []
_build = compiler.build
_compiled: list[str] = []


class Heard(logging.Handler):
    """What detmap tells the user."""

    def emit(self, record: logging.LogRecord) -> None:
        _said.append(record.getMessage())


def counted(kernel: Kernel[..., Any], args: Any) -> Any:
    """`compiler.build`, once a kernel and process; code of the second call is that of the first."""
    _compiled.append(kernel.__name__)
    if kernel.__name__ not in _built:
        _built[kernel.__name__] = _build(kernel, args)
    return _built[kernel.__name__]


_built: dict[str, Any] = {}


def prepare() -> None:
    """Fill a folder once."""
    LOG.addHandler(Heard())
    LOG.propagate = False
    compiler.build = counted
    os.environ["DETMAP_KERNELS"] = "cache"
    with tempfile.TemporaryDirectory() as place:
        os.environ["DETMAP_CACHE_DIR"] = f"{place}/detmap"
        run()
        for file in Path(place, "detmap").iterdir():
            _files[file.name] = file.read_bytes()


def run() -> str:
    """Call every kernel as a new process would; what is wrong with the answers."""
    _said.clear()
    _compiled.clear()
    folder._said.clear()
    for name, (function, right) in KERNELS.items():
        found = Kernel(function.function)(NUMBERS)
        if found != right:
            return f"{name} gives {found}"
    return ""


# --- what happens to files ------------------------------------------------------------------------


def signed(content: bytes) -> bytes:
    """With the right digest."""
    return identity.MAGIC + hashlib.sha256(content).digest() + content


def parts(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Header and object code."""
    head, _, code = data[len(identity.MAGIC) + 32 :].partition(b"\n")
    return json.loads(head), code


def change_header(rng: random.Random, data: bytes) -> bytes:
    """One entry says something else, is of another type, or is missing; the digest is right."""
    header, code = parts(data)
    name = rng.choice([name for name in header if name != "further"])
    value: Any = rng.choice(["", 1, None, [], {}, "x" * 10_000, "\0", "None", "pppp", "0" * 64])
    if rng.random() < 0.2:
        del header[name]
    elif value == header[name]:
        header[name] = "y"
    else:
        header[name] = value
    return signed(json.dumps(header).encode() + b"\n" + code)


def change_object(rng: random.Random, data: bytes) -> bytes:
    """Other bytes than object code, or object code with a torn table; the digest is right."""
    header, code = parts(data)
    (sections,) = struct.unpack_from("<Q", code, 40)
    code = rng.choice(
        (
            lambda: b"",
            lambda: rng.randbytes(rng.randrange(5000)),
            lambda: b"\x7fELF" + rng.randbytes(rng.randrange(200)),
            lambda: code[:64] + rng.randbytes(len(code) - 64),
            lambda: code[: rng.randrange(len(code))],
            lambda: code[:16] + rng.randbytes(48) + code[64:],
            lambda: code[:sections] + rng.randbytes(len(code) - sections),
            lambda: b"\xcf\xfa\xed\xfe" + code[4:],
            lambda: code[:18] + struct.pack("<H", rng.choice([0, 3, 40, 183, 243])) + code[20:],
            lambda: one_field(rng, code, sections),
        )
    )()
    return signed(json.dumps(header).encode() + b"\n" + code)


def one_field(rng: random.Random, code: bytes, sections: int) -> bytes:
    """A number in the header or in the table of sections is absurd."""
    at = rng.choice([40, *(sections + 64 * i + j for i in range(1, 8) for j in (24, 32))])
    absurd = rng.choice([1 << 63, (1 << 64) - 1, len(code), 1 << 40])
    return code[:at] + struct.pack("<Q", absurd) + code[at + 8 :]


def flip(rng: random.Random, data: bytes) -> bytes:
    """One bit, anywhere; the digest is not right any more."""
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


CONTENTS: dict[str, Callable[[random.Random, bytes], bytes]] = {
    "empty": lambda rng, data: b"",
    "cut": lambda rng, data: data[: rng.randrange(len(data))],
    "longer": lambda rng, data: data + rng.randbytes(rng.randrange(1, 99)),
    "flipped": flip,
    "noise": lambda rng, data: rng.randbytes(rng.randrange(4000)),
    "signed noise": lambda rng, data: signed(rng.randbytes(rng.randrange(4000))),
    "header": change_header,
    "object": change_object,
}
OTHERS = (
    "folder",
    "link",
    "endless",
    "circle",
    "dangling",
    "FIFO",
    "huge",
    "open to all",
    "foreign",
    "swapped",
)
PLACES = ("fine", "fine", "fine", "777", "link", "file", "foreign", "circle")


def forge(rng: random.Random, how: str, file: Path, victim: Path) -> None:
    """Do to a file what its name says."""
    data = file.read_bytes()
    if how in CONTENTS:
        file.write_bytes(CONTENTS[how](rng, data))
        return
    if how == "swapped":
        file.write_bytes(_files[rng.choice([name for name in _files if name != file.name])])
        return
    if how in ("open to all", "foreign"):
        if how == "foreign" and not os.geteuid():
            os.chown(file, 12345, 12345)
        else:
            file.chmod(rng.choice([0o622, 0o666, 0o620, 0o777]))
        return
    file.unlink()
    if how == "folder":
        file.mkdir()
    elif how == "FIFO":
        os.mkfifo(file)
    elif how == "huge":
        with open(file, "wb") as sparse:
            sparse.truncate(1 << 40)
    else:
        targets = {"link": victim, "endless": "/dev/zero", "circle": file, "dangling": "nowhere"}
        file.symlink_to(targets[how])


def forge_place(how: str, place: Path) -> None:
    """Do to the folder what its name says."""
    elsewhere = place.with_name("elsewhere")
    if how == "777":
        place.chmod(0o777)
    elif how == "foreign":
        if not os.geteuid():
            os.chown(place, 12345, -1)
        else:
            place.chmod(0o772)
    elif how == "link":
        place.rename(elsewhere)
        place.symlink_to(elsewhere)
    elif how in ("file", "circle"):
        shutil.rmtree(place)
        if how == "file":
            place.write_bytes(b"in the way")
        else:
            place.symlink_to(place)


def case(seed: int) -> str | None:
    """A folder filled and forged; what is wrong with what then happens."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as top:
        place, victim = Path(top, "detmap"), Path(top, "victim")
        os.environ["DETMAP_CACHE_DIR"] = str(place)
        place.mkdir(mode=0o700)
        for name, data in _files.items():
            (place / name).write_bytes(data)
            (place / name).chmod(0o600)
        kept = _files[rng.choice(list(_files))]
        victim.write_bytes(kept)
        forged = {}
        for name in rng.sample(sorted(_files), rng.randrange(1, 4)):
            forged[name] = rng.choice([*CONTENTS, *OTHERS])
            forge(rng, forged[name], place / name, victim)
        how = rng.choice(PLACES)
        forge_place(how, place)
        wrong = judge(how, forged, place)
        if victim.read_bytes() != kept:
            wrong = "the target of a link was written"
        return f"{wrong} ({how}: {forged})" if wrong else None


def judge(how: str, forged: dict[str, str], place: Path) -> str:
    """What is wrong with two processes on a forged folder."""
    before = (
        {path.name: path.lstat().st_mtime_ns for path in place.iterdir()} if place.is_dir() else {}
    )
    wrong = run()
    if wrong:
        return wrong
    COUNTS["compiled"] += len(_compiled)
    wanted = {name.rpartition("-")[0] for name in (_files if how != "fine" else forged)}
    if set(_compiled) != wanted:
        return f"compiled {_compiled}, not {sorted(wanted)}"
    if how != "fine":
        COUNTS["unused folders"] += 1
        after = (
            {path.name: path.lstat().st_mtime_ns for path in place.iterdir()}
            if place.is_dir()
            else {}
        )
        if after != before:
            return "something was written into a folder that must not be used"
        return "" if len(_said) == 1 else f"said {_said}"
    COUNTS["passed over"] += len(forged)
    if not any("passed over" in text for text in _said) or len(_said) > 2:
        return f"said {_said}"
    if any(path.suffix != ".kernel" for path in place.iterdir()):
        return "a draft was left behind"
    wrong = run()
    again = {name.rpartition("-")[0] for name, how in forged.items() if how == "folder"}
    return wrong or ("" if set(_compiled) == again else f"the next process compiled {_compiled}")
