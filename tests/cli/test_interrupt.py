"""Ctrl-C, SIGTERM and SIGHUP end any command at once, with exit 128 + n and no partial file."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support import builders as make
from tests.support.running import python

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

COCO, RESULTS = make.SHAPES / "instances_test.json", make.SHAPES / "detections" / "contours.json"
SOON = 10.0  # seconds: at once, and what a busy machine adds; what is interrupted would take longer
BEGUN = """
import sys, os
import detmap.cli.process as process
before = process.begin
def begin():
    before()
    os.write(1, b"!")
process.begin = begin
from detmap.cli import entry
sys.argv = ["detmap", *sys.argv[1:]]
entry()
"""


def heed() -> None:
    """Let a child be ended, also where this process was started with ignored signals (`nohup`)."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def begun(code: str, *argv: object, **environment: str) -> subprocess.Popen[bytes]:
    """A program, which writes ! when it is ready for signals."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, argv)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment},
        preexec_fn=heed,
    )
    assert process.stdout is not None
    assert process.stdout.read(1) == b"!"
    return process


def start(*argv: object, **environment: str) -> subprocess.Popen[bytes]:
    """A command, ready for signals."""
    return begun(BEGUN, *argv, **environment)


def interrupt(process: subprocess.Popen[bytes]) -> tuple[int, bytes, bytes, float]:
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err, time.monotonic() - begin


def check(outcome: tuple[int, bytes, bytes, float], output: Path) -> bool:
    """Whether it was interrupted; else it had ended before."""
    code, out, err, took = outcome
    assert b"Traceback" not in err
    assert list(output.parent.glob(".detmap-*")) == []
    assert took < SOON
    if code == 0:
        assert output.exists()
        assert b"interrupted" not in err
        return False
    assert code == 130
    assert err.endswith(b"detmap: interrupted\n")
    # In the moment between the last line and the exit, everything is written.
    assert out == b"" or (out.endswith(b"\n") and output.exists())
    return True


def test_ctrl_c_at_the_first_moment(tmp_path: Path) -> None:
    output = tmp_path / "out"
    for _ in range(3):
        assert check(interrupt(start("eval", COCO, RESULTS, "-o", output)), output)
    assert not output.exists()


@pytest.mark.slow
def test_ctrl_c_while_it_works(tmp_path: Path) -> None:
    rng, output = random.Random(1), tmp_path / "out"
    for _ in range(4):
        process = start("eval", COCO, RESULTS, "-o", output)
        time.sleep(rng.uniform(0, 0.4))
        check(interrupt(process), output)


@pytest.mark.slow
@pytest.mark.parametrize("cold", [False, True], ids=["warm", "cold"])
def test_ctrl_c_at_any_moment(tmp_path: Path, cold: bool) -> None:
    rng, output, interrupted = random.Random(2), tmp_path / "out", 0
    if not cold:
        start("match", COCO, RESULTS, "-o", output).communicate()
    begin = time.monotonic()
    start("match", COCO, RESULTS, "-o", output).communicate()
    whole = 3 if cold else time.monotonic() - begin  # how long it takes where nobody interrupts
    output.unlink()
    moments = 12 if cold else 40
    for k in range(moments):
        numba = {"DETMAP_KERNELS": "numba", "NUMBA_CACHE_DIR": str(tmp_path / f"cache{k}")}
        cache = numba if cold else {}
        process = start("match", COCO, RESULTS, "-o", output, **cache)
        time.sleep(rng.uniform(0, whole))
        interrupted += check(interrupt(process), output)
        output.unlink(missing_ok=True)
    assert interrupted >= moments // 10


FIRST = "import sys, time, types\nfrom detmap.cli import process\nprocess.begin()\n"
READY = "sys.stdout.write('!'), sys.stdout.flush()\n"
# The second lock never comes back, whatever signal comes: as in a kernel or in LLVM, where Python's
# own handler would wait for the end.
IN_C = f"""import ctypes
mutex, library = ctypes.create_string_buffer(64), ctypes.CDLL(None)
{READY}
library.pthread_mutex_lock(mutex)
library.pthread_mutex_lock(mutex)
"""
IN_THREADS = f"""from detmap.core.base.parallel import map_ordered
{READY}
list(map_ordered(lambda k: time.sleep(60), range(9), 2))
"""
IN_AN_IMPORT = f"""
sys.modules['detmap.core.base.atomic_files'] = types.ModuleType('empty')
{READY}
time.sleep(60)
"""


@pytest.mark.parametrize(
    "code",
    [IN_C, pytest.param(IN_THREADS, marks=pytest.mark.slow), IN_AN_IMPORT],
    ids=["in C", "in a pool of threads", "in the import of the writer of files"],
)
def test_ctrl_c_while_the_main_thread_is(code: str) -> None:
    process = begun(FIRST + code)
    time.sleep(0.2)
    status, _, err, took = interrupt(process)
    assert (status, err) == (130, b"detmap: interrupted\n")
    assert took < SOON


def test_ctrl_c_removes_the_draft_of_a_file(tmp_path: Path) -> None:
    code = (
        f"{FIRST}from detmap.core.base import atomic_files as files\n"
        "with files.replacing(sys.argv[1]) as file:\n"
        "    file.write(b'half')\n"
        f"    {READY}    time.sleep(60)\n"
    )
    output = tmp_path / "state"
    output.write_text("old")
    process = begun(code, output)
    assert len(list(tmp_path.iterdir())) == 2
    assert interrupt(process)[0] == 130
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
    assert output.read_text() == "old"


RACE = """
import os, signal, sys, time, _thread
from detmap.core.base import atomic_files
from detmap.cli import entry, process

def interrupted(module, name):
    function = getattr(module, name)
    def call(*arguments, **options):
        value = function(*arguments, **options)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(.05)
        return value
    setattr(module, name, call)

main, write = _thread.get_ident(), os.write
def slow_write(number, data):  # as on a terminal that is stopped for a moment
    if _thread.get_ident() == main:
        return write(number, data)
    done = write(number, data)
    time.sleep(.3)
    return done

os.write = slow_write
place, name = sys.argv[1].split(".")
interrupted({"os": os, "files": atomic_files, "sys": sys}[place], name)
sys.argv = ["detmap", *sys.argv[2:]]
entry()
"""


@pytest.mark.parametrize("moment", ["files._lock", "os.fsync", "files._settle", "os.replace"])
def test_ctrl_c_wins_over_the_main_thread_which_goes_on(tmp_path: Path, moment: str) -> None:
    """The draft is gone and the main thread works on: no error of its own, no file, no exit 0."""
    output = tmp_path / "out"
    done = subprocess.run(
        [sys.executable, "-c", RACE, moment, "match", COCO, RESULTS, "-o", output],
        capture_output=True,
        preexec_fn=heed,
    )
    assert check((done.returncode, done.stdout, done.stderr, 0.0), output)
    assert output.exists() == (moment in ("files._settle", "os.replace"))


def test_ctrl_c_leaves_no_part_of_a_converted_folder(tmp_path: Path) -> None:
    output = tmp_path / "out"
    done = subprocess.run(
        [sys.executable, "-c", RACE, "os.chmod", "convert", COCO, output, "--to", "yolo"],
        capture_output=True,
        preexec_fn=heed,
    )
    assert (done.returncode, done.stderr) == (130, b"detmap: interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_nothing_heavy_is_imported_before_ctrl_c_is_answered() -> None:
    code = (
        "import sys\n"
        "from detmap.cli import entry, process\n"
        "heavy = ('numpy', 'typing', 'argparse', 'enum', 'contextlib')\n"
        "print(*[m for m in heavy if m in sys.modules])\n"
    )
    assert python("-S", "-c", code, PYTHONPATH=make.ROOT) == (0, "\n", "")


@pytest.mark.parametrize(
    ("number", "word"), [(signal.SIGTERM, "terminated"), (signal.SIGHUP, "hung up")]
)
def test_other_signals_end_a_command_too(tmp_path: Path, number: signal.Signals, word: str) -> None:
    process = start("eval", COCO, RESULTS, "-o", tmp_path / "out")
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (128 + number, b"")
    assert err.endswith(f"detmap: {word}\n".encode())
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL])
def test_a_killed_conversion_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    rng, output = random.Random(3), tmp_path / "folder" / "voc"
    output.parent.mkdir()
    images = [make.image(id=i, file_name=f"{i}.jpg") for i in range(4000)]
    objects = [make.annotation(id=i + 1, image_id=i) for i in range(4000)]
    truth = make.write(tmp_path / "t.json", make.instances(images=images, annotations=objects))
    for _ in range(6):
        process = start("convert", truth, output, "--to", "voc", "--force")
        time.sleep(rng.uniform(0.1, 0.7))
        process.send_signal(number)
        process.communicate(timeout=120)
        hidden = [name for name in os.listdir(output.parent) if name.startswith(".detmap-")]
        assert number == signal.SIGKILL or hidden == []
    process = start("convert", truth, tmp_path / "folder" / "other", "--to", "voc")
    process.communicate(timeout=120)
    assert not [name for name in os.listdir(output.parent) if name.startswith(".")]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_an_ignored_signal_stays_ignored(tmp_path: Path, number: signal.Signals) -> None:
    """As under nohup, or in the background of a script."""
    code = f"import signal; signal.signal({int(number)}, signal.SIG_IGN)\n" + BEGUN
    process = begun(code, "eval", COCO, RESULTS, "-o", tmp_path / "out")
    process.send_signal(number)
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert (tmp_path / "out").exists()
