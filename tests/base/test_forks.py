"""A child that is forked beside threads inherits no lock that one of them holds."""

import os
import re
import sys

import pytest

from detmap.core.base.locks import cached_property
from tests.support.package_source import MODULES
from tests.support.running import python

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")

FORKS = """
import os, sys, threading, time, warnings
warnings.simplefilter("ignore")
import detmap
from detmap.core.base import atomic_files
truth = detmap.truth_from_arrays([1, 2], [1, 2], [[0, 0, 9, 9]] * 2)
found = detmap.detections_from_arrays(truth, [1, 2], [1, 2], [[0, 0, 9, 9]] * 2, [.9, .8])
place, n_forks = sys.argv[1], int(sys.argv[2])
evaluator = detmap.Evaluator("coco-bbox", truth=truth)
def work(name):
    result = detmap.evaluate(truth, found)
    assert result.metrics["AP"] > .99
    str(result), result.notes, result.curve(1, .5)
    len(evaluator)
    result.matches.save(f"{place}/{name}.npz")
work("first")
stop = threading.Event()
def go_on(name):
    while not stop.is_set():
        work(name)
threads = [threading.Thread(target=go_on, args=(k,)) for k in range(4)]
for each in threads: each.start()
hung = 0
for k in range(n_forks):
    pid = os.fork()
    if not pid:
        work("child")
        os._exit(0)
    for _ in range(600):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            assert status == 0
            break
        time.sleep(.1)
    else:
        hung += 1
        os.kill(pid, 9)
        os.waitpid(pid, 0)
stop.set()
for each in threads: each.join()
print(hung, [name for name in os.listdir(place) if name.startswith(".")])
"""
HELD = """
import os, sys
from detmap.core.base import atomic_files, locks
from detmap.core.streaming.evaluator import Evaluator
evaluator = Evaluator("coco-bbox", classes=["a"])
import threading
ready, stop = threading.Event(), threading.Event()
def hold():
    with atomic_files._changing, evaluator._lock, atomic_files.temporary_folder(sys.argv[1]):
        ready.set()
        stop.wait()
thread = threading.Thread(target=hold)
thread.start()
ready.wait()
pid = os.fork()
if not pid:
    evaluator.reset()
    atomic_files.write_text(sys.argv[1] + "/out", "x")
    atomic_files.abandon()  # the draft of the parent is not the child's
    os._exit(len(os.listdir(sys.argv[1])))
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
stop.set()
thread.join()
"""


@pytest.mark.slow
def test_children_beside_threads_evaluate(tmp_path: object) -> None:
    done = python("-c", FORKS, tmp_path, 50)
    assert (done.out.strip(), done.code) == ("0 []", 0), done.err


@pytest.mark.slow
def test_a_few_children_beside_threads_evaluate(tmp_path: object) -> None:
    done = python("-c", FORKS, tmp_path, 5)
    assert (done.out.strip(), done.code) == ("0 []", 0), done.err


@pytest.mark.slow
def test_a_child_has_locks_of_its_own_and_no_draft_of_its_parent(tmp_path: object) -> None:
    done = python("-c", HELD, tmp_path)
    assert (done.out.strip(), done.code) == ("2", 0), done.err


def test_no_value_is_computed_under_a_lock_of_its_class() -> None:
    pattern = re.compile(r"functools[^\n]*cached_property")
    found = [path.name for path in MODULES if pattern.search(path.read_text())]
    assert found == ["locks.py"]  # in its documentation


class Squares:
    """Counts computations."""

    calls = 0

    @cached_property
    def value(self) -> int:
        """The value."""
        self.calls += 1
        return 4


def test_a_lazy_value_is_computed_once_and_can_be_replaced() -> None:
    one, two = Squares(), Squares()
    assert (one.value, one.value, one.calls, two.calls) == (4, 4, 1, 0)
    assert isinstance(Squares.value, cached_property)
    assert Squares.value.__doc__ == "The value."
    one.__dict__["value"] = 5
    assert one.value == 5


@pytest.mark.skipif("numba" not in sys.modules, reason="numba is not imported")
def test_the_lock_of_numba_is_renewed() -> None:
    from numba.core.compiler_lock import global_compiler_lock

    from detmap.kernels import jit

    before = global_compiler_lock._lock
    jit._renew_lock()
    assert global_compiler_lock._lock is not before
