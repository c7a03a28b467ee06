"""A stop signal is noticed by a process whose main thread waits, whichever of its threads the system interrupts."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from jackline.cli.signals import STOP_SIGNALS, SignalListener, raise_on_signals
from tests.support.skips import NOT_POSSIBLE

ROUNDS = 30  # without the listener, about every third round gets no answer
PATIENCE_S = 20.0
PROGRAM = """
import queue, signal, threading
from jackline.cli.signals import SignalListener

heard = queue.SimpleQueue()
other = threading.Condition()

def wait_often():
    with other:
        while True:
            other.wait(0.5)

with SignalListener(heard.put):
    for _ in range(8):
        threading.Thread(target=wait_often, daemon=True).start()
    print("ready", flush=True)
    while (number := heard.get()) != signal.SIGHUP:
        print(number, flush=True)
"""


@pytest.fixture
def program() -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.communicate()


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], PATIENCE_S)[0], "the signal was not noticed"
    return process.stdout.readline().strip()


def freeze(process: subprocess.Popen[str]) -> None:
    """Stop the process; return when all of its threads have stopped."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)


@pytest.mark.skipif(sys.platform != "linux", reason=f"{NOT_POSSIBLE}the system has no waitid for a stopped child")
def test_a_signal_right_after_a_freeze_is_noticed(program: subprocess.Popen[str]) -> None:
    assert read_line(program) == "ready"
    for _ in range(ROUNDS):
        freeze(program)
        program.send_signal(signal.SIGCONT)
        program.send_signal(signal.SIGTERM)
        assert read_line(program) == str(int(signal.SIGTERM))
    program.send_signal(signal.SIGHUP)
    assert program.wait(PATIENCE_S) == 0


def test_a_signal_of_another_handler_is_left_to_it() -> None:
    """A question at the terminal ends with the signal, and the run is not asked to park as well."""
    heard: list[int] = []
    with SignalListener(heard.append), pytest.raises(KeyboardInterrupt), raise_on_signals():
        signal.raise_signal(signal.SIGTERM)
    assert heard == []


def test_what_was_there_before_is_restored() -> None:
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc") else 0
    with SignalListener(lambda _number: None):
        assert threading.active_count() == threads + 1
    assert {number: signal.getsignal(number) for number in STOP_SIGNALS} == before
    assert signal.set_wakeup_fd(-1) == -1
    assert threading.active_count() == threads
    assert not descriptors or len(os.listdir("/proc/self/fd")) == descriptors


def test_an_ignored_signal_stays_ignored() -> None:
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with SignalListener(lambda _number: None), raise_on_signals():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, previous)
