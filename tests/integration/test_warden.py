"""The warden, through its real processes: whatever dies or freezes, no agent is left at work."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jackline.clock import boot_ms
from jackline.domain.outcome import Exit
from jackline.engine.command_runner import run_command
from jackline.engine.process import Child, SpawnFailed, Warden, WardenLost
from jackline.engine.warden.messages import EXIT_DEADLINE, EXIT_QUIT
from jackline.engine.warden.process_tree import read_process
from tests.programs.processes import PROGRAMS, Grip, is_readable

SOURCE = os.path.abspath(os.path.join(PROGRAMS, "..", "..", "src"))
ENV = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE}
PYTHON = [sys.executable, "-I", "-S"]


@pytest.fixture
def warden() -> Iterator[Warden]:
    marker = {"JACKLINE_TEST": secrets.token_hex(8)}
    with Warden.start(deadline_ms=boot_ms() + 60_000, marker=marker) as handle:
        yield handle


def start(warden: Warden, program: str, *arguments: str) -> Child:
    return warden.spawn([*PYTHON, os.path.join(PROGRAMS, program), *arguments], ENV, "/")


def start_tree(warden: Warden, mode: str) -> tuple[Child, dict[str, int]]:
    child = start(warden, "tree.py", mode)
    return child, json.loads(read_line(child.stdout))


def start_held_tree(warden: Warden, mode: str = "plain") -> tuple[Child, dict[str, int], Grip]:
    child, pids = start_tree(warden, mode)
    return child, pids, Grip(pids.values())


def read_line(fd: int) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(fd, 1)
        assert byte, f"end of file after {line!r}"
        line += byte
    return line


def end_of(child: Child) -> Exit:
    ending = child.wait(60)
    child.close()
    assert ending is not None
    return ending


def run_python(warden: Warden, code: str, stdin: bytes | None = None) -> bytes:
    child = warden.spawn([*PYTHON, "-c", code], ENV, "/", stdin=stdin)
    output = b""
    while not child.drained:
        output += b"".join(chunk.data for chunk in child.read(20))
    assert end_of(child).code == 0, output
    return output


def nobody_holds(fd: int) -> bool:
    """End of file on a pipe is the proof that all who had its other end are dead."""
    return is_readable(fd, 0) and os.read(fd, 1) == b""


def parent_of(pid: int) -> int:
    process = read_process(pid)
    assert process is not None
    return process.parent


# ------------------------------------------------------------------------------------ one agent


def test_a_child_gets_clean_descriptors_signals_and_session(warden: Warden) -> None:
    code = """
import os, signal
status = open("/proc/self/status").read()
mask = lambda name: int(status.split(name)[1].split()[0], 16)
# Python itself ignores SIGPIPE and SIGXFSZ at its start; 32 and 33 are the C library's own and cannot be set.
ours = sum(1 << number - 1 for number in signal.valid_signals()) & ~(1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1)
ignored = mask("SigIgn:") & ours
fds = sorted(map(int, os.listdir("/proc/self/fd")))[:-1]  # the last is the listing itself
print(os.getsid(0) == os.getpid(), mask("SigBlk:"), ignored, fds)
"""
    assert run_python(warden, code) == b"True 0 0 [0, 1, 2]\n"


def test_exit_code_and_output_arrive(warden: Warden) -> None:
    child = warden.spawn(["sh", "-c", "echo out; echo err >&2; exit 7"], ENV, "/")
    chunks = []
    while not child.drained:
        chunks += child.read(20)
    assert sorted(chunks) == [("stderr", b"err\n"), ("stdout", b"out\n")]
    assert end_of(child) == Exit(7, None, leftovers=0, lost=False)


def test_death_by_a_signal_is_told_apart_from_an_exit_code(warden: Warden) -> None:
    child = warden.spawn(["sh", "-c", "kill -SEGV $$"], ENV, "/")
    assert end_of(child) == Exit(None, signal.SIGSEGV, leftovers=0, lost=False)


def test_wait_gives_none_while_the_child_lives(warden: Warden) -> None:
    child, _, grip = start_held_tree(warden)
    with grip:
        assert child.wait(0) is None
        child.kill()
        assert end_of(child).signal == signal.SIGKILL


def test_large_stdin_arrives_although_nobody_feeds_it(warden: Warden) -> None:
    code = "import sys; data = sys.stdin.buffer.read(); print(len(data), set(data))"
    assert run_python(warden, code, stdin=b"p" * 5_000_000) == b"5000000 {112}\n"


def test_stdin_is_empty_by_default(warden: Warden) -> None:
    assert run_python(warden, "import sys; print(repr(sys.stdin.read()))") == b"''\n"


def test_bytes_that_are_no_text_pass_unchanged(warden: Warden) -> None:
    strange = os.fsdecode(b"caf\xe9 \xff\n")
    code = "import os, sys; sys.stdout.buffer.write(os.fsencode(sys.argv[1]) + os.environb[b'STRANGE'])"
    child = warden.spawn([*PYTHON, "-c", code, strange], {**ENV, "STRANGE": strange}, "/")
    assert child.read(20) == [("stdout", b"caf\xe9 \xff\n" * 2)]
    end_of(child)


def test_the_marker_is_in_every_environment() -> None:
    with Warden.start(deadline_ms=boot_ms() + 60_000, marker={"JACKLINE_TEST": "here"}) as warden:
        assert run_python(warden, "import os; print(os.environ['JACKLINE_TEST'])") == b"here\n"


# ------------------------------------------------------------------------------------ failing to start


def test_a_missing_program_is_reported(warden: Warden) -> None:
    with pytest.raises(SpawnFailed, match=r"cannot start no-such-agent: No such file .*PATH"):
        warden.spawn(["no-such-agent"], ENV, "/")


def test_a_missing_folder_is_reported(warden: Warden, tmp_path: Path) -> None:
    with pytest.raises(SpawnFailed, match=f"folder {tmp_path}/gone: No such file"):
        warden.spawn(["true"], ENV, str(tmp_path / "gone"))


def test_a_file_that_is_not_executable_is_reported(warden: Warden, tmp_path: Path) -> None:
    (tmp_path / "agent").write_text("#!/bin/sh\n")
    with pytest.raises(SpawnFailed, match="Permission denied"):
        warden.spawn([str(tmp_path / "agent")], ENV, "/")


@pytest.mark.parametrize("where", ["argv", "env"])
def test_three_megabytes_of_arguments_are_refused_in_words(warden: Warden, where: str) -> None:
    words = ["x" * 1000] * 3000 if where == "argv" else []
    env = {f"NAME{number}": "x" * 1000 for number in range(3000)} if where == "env" else {}
    with pytest.raises(SpawnFailed, match=r"Argument list too long .*standard input"):
        warden.spawn(["true", *words], {**ENV, **env}, "/")
    assert run_python(warden, "print('alive')") == b"alive\n"


def test_a_zero_byte_in_an_argument_is_reported(warden: Warden) -> None:
    with pytest.raises(SpawnFailed, match="null byte"):
        warden.spawn(["true", "a\0b"], ENV, "/")


def test_failed_starts_leave_no_descriptor_open_and_too_few_are_reported() -> None:
    """In a process of its own: in this one a thread of an earlier test may open something at any time."""
    program = [sys.executable, os.path.join(PROGRAMS, "failed_starts.py")]
    done = subprocess.run(program, env=ENV, check=False, capture_output=True, text=True)
    assert (done.stdout.splitlines(), done.stderr) == (["all closed"] * 5 + ["alive"], "")


# ------------------------------------------------------------------------------------ ending a tree


def test_what_the_agent_leaves_behind_is_dead_before_its_exit_is_told(warden: Warden) -> None:
    child, pids = start_tree(warden, "leave")
    ending = end_of(child)
    assert ending == Exit(0, None, leftovers=3, lost=False)
    assert not [name for name, pid in pids.items() if read_process(pid)]


def test_kill_ends_the_whole_tree_with_its_daemons(warden: Warden) -> None:
    child, pids, grip = start_held_tree(warden)
    with grip:
        child.kill()
        assert end_of(child) == Exit(None, signal.SIGKILL, leftovers=3, lost=False)
        assert grip.deaths(0) == set(pids.values())


def test_stop_lets_an_obedient_agent_end_by_itself(warden: Warden) -> None:
    child, pids, grip = start_held_tree(warden, "obey")
    with grip:
        child.stop(60_000)
        ending = end_of(child)
        assert (ending.code, ending.signal, ending.lost) == (5, None, False)
        assert grip.deaths(0) == set(pids.values())


def test_stop_kills_what_is_deaf_after_the_grace(warden: Warden) -> None:
    child, pids, grip = start_held_tree(warden, "deaf")
    with grip:
        begun = boot_ms()
        child.stop(400)
        assert end_of(child) == Exit(None, signal.SIGKILL, leftovers=3, lost=False)
        assert boot_ms() - begun >= 400
        assert grip.deaths(0) == set(pids.values())


def test_kill_cuts_a_long_grace_short(warden: Warden) -> None:
    child, _, grip = start_held_tree(warden, "deaf")
    with grip:
        child.stop(3_600_000)
        child.kill()
        assert end_of(child).signal == signal.SIGKILL
        assert grip.all_die(0)


def test_stop_reaches_an_agent_that_was_stopped(warden: Warden) -> None:
    child, pids, grip = start_held_tree(warden, "obey")
    with grip:
        os.kill(pids["agent"], signal.SIGSTOP)
        child.stop(60_000)
        assert end_of(child).code == 5


def test_a_fork_storm_is_ended(warden: Warden) -> None:
    child = start(warden, "storm.py")
    assert read_line(child.stdout) == b"begun\n"
    child.kill()
    assert child.wait(30) is not None
    assert nobody_holds(child.stdout)
    assert end_of(child).survivors == 0


def test_what_hops_from_pid_to_pid_is_caught(warden: Warden, tmp_path: Path) -> None:
    child = start(warden, "relay.py", str(tmp_path / "finished"))
    assert read_line(child.stdout) == b"begun\n"
    child.kill()
    assert child.wait(30) is not None
    assert nobody_holds(child.stdout)
    assert end_of(child).survivors == 0
    assert not (tmp_path / "finished").exists()


def test_what_hops_is_caught_also_where_looking_is_slow(tmp_path: Path) -> None:
    program = [sys.executable, os.path.join(PROGRAMS, "slow_walk.py"), str(tmp_path / "finished")]
    done = subprocess.run(program, env=ENV, stdout=subprocess.PIPE, check=True)
    assert done.stdout == b"0\n"
    assert not (tmp_path / "finished").exists()


@pytest.mark.parametrize("end", [Child.kill, lambda child: child.stop(60_000)], ids=["kill", "stop"])
def test_nobody_lives_to_act_on_the_death_of_another(
    warden: Warden, tmp_path: Path, end: Callable[[Child], None]
) -> None:
    """Else `build || send_alarm` would send the alarm because we killed the build."""
    child = start(warden, "mourners.py", str(tmp_path / "acted"))
    assert read_line(child.stdout) == b"begun\n"
    end(child)
    assert end_of(child).survivors == 0
    assert not (tmp_path / "acted").exists()


def test_the_end_of_one_agent_does_not_touch_its_neighbours(warden: Warden) -> None:
    """The neighbour's daemon is an orphan by then: only its own guard knows whose it is."""
    one, _, grip_one = start_held_tree(warden)
    two, _, grip_two = start_held_tree(warden)
    with grip_one, grip_two:
        one.kill()
        end_of(one)
        assert grip_one.all_die(0)
        assert grip_two.deaths(0) == set()
        two.kill()
        end_of(two)
        assert grip_two.all_die(0)


def test_close_ends_what_still_runs() -> None:
    warden = Warden.start(deadline_ms=boot_ms() + 60_000, marker={"JACKLINE_TEST": secrets.token_hex(8)})
    child, _, grip = start_held_tree(warden)
    with grip:
        warden.close()
        assert grip.all_die(0)
        assert warden.exit_code == EXIT_QUIT
        assert end_of(child) == Exit(None, signal.SIGKILL, leftovers=0, lost=False)
        with pytest.raises(WardenLost):
            warden.spawn(["true"], ENV, "/")


# ------------------------------------------------------------------------------------ deadline


def test_the_deadline_ends_everything() -> None:
    warden = Warden.start(deadline_ms=boot_ms() + 3_600_000, marker={"JACKLINE_TEST": secrets.token_hex(8)})
    child, _, grip = start_held_tree(warden)
    with grip:
        warden.renew(boot_ms())
        assert end_of(child).lost
        assert grip.all_die(0)
        assert warden.exit_code == EXIT_DEADLINE
        warden.close()


def test_a_renewal_moves_the_deadline() -> None:
    first = boot_ms() + 2_000
    warden = Warden.start(deadline_ms=first, marker={"JACKLINE_TEST": secrets.token_hex(8)})
    warden.renew(boot_ms() + 60_000)
    child, _, grip = start_held_tree(warden)
    with grip, warden:
        assert child.wait(max(0, first + 300 - boot_ms()) / 1000) is None
        assert run_python(warden, "print('alive')") == b"alive\n"
        child.kill()
        end_of(child)


# ------------------------------------------------------------------------------------ somebody is killed


def test_a_killed_warden_takes_the_tree_with_it(warden: Warden) -> None:
    child, _, grip = start_held_tree(warden)
    with grip:
        os.kill(warden.pid, signal.SIGKILL)
        assert end_of(child).lost
        assert grip.all_die(0)
        with pytest.raises(WardenLost):
            warden.spawn(["true"], ENV, "/")
        with pytest.raises(WardenLost):
            warden.renew(boot_ms() + 1)
        child.kill()  # of no use any more, and no error


def test_a_killed_guard_takes_its_tree_with_it_and_nothing_else(warden: Warden) -> None:
    child, pids, grip = start_held_tree(warden)
    other, _, other_grip = start_held_tree(warden)
    with grip, other_grip:
        os.kill(parent_of(pids["agent"]), signal.SIGKILL)
        assert end_of(child).lost
        assert grip.all_die()  # soon: the warden does not wait for the dead while others may need it
        assert other_grip.deaths(0) == set()
        other.kill()
        assert end_of(other).signal == signal.SIGKILL


def test_polite_signals_do_not_end_the_warden(warden: Warden) -> None:
    run_python(warden, "pass")  # by now it has set its signals
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1):
        os.kill(warden.pid, number)
    assert run_python(warden, "print('alive')") == b"alive\n"


@contextmanager
def supervisor(tmp_path: Path, lease_ms: int) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, int], Grip]]:
    """Start a supervisor of its own; the grip holds its warden, guard and tree."""
    program = os.path.join(PROGRAMS, "supervisor.py")
    words = [str(lease_ms), secrets.token_hex(8), str(tmp_path / "lock"), "plain"]
    with subprocess.Popen([sys.executable, program, *words], env=ENV, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        pids = json.loads(read_line(process.stdout.fileno()))
        with Grip(pids.values()) as grip:
            yield process, pids, grip
        process.kill()


def test_a_killed_supervisor_leaves_nobody(tmp_path: Path) -> None:
    with supervisor(tmp_path, 3_600_000) as (process, _, grip):
        process.kill()
        assert grip.all_die()


def test_the_lock_is_free_only_when_the_tree_is_dead(tmp_path: Path) -> None:
    with supervisor(tmp_path, 3_600_000) as (process, pids, grip), (tmp_path / "lock").open() as lock:
        with pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        process.kill()
        fcntl.flock(lock, fcntl.LOCK_EX)
        # The warden itself may still be about to exit: its descriptors close a little before.
        assert set(pids.values()) - grip.deaths(0) <= {pids["warden"]}


def test_the_lock_is_held_while_only_the_guard_is_left_to_end_the_tree(tmp_path: Path) -> None:
    with supervisor(tmp_path, 3_600_000) as (process, pids, grip), (tmp_path / "lock").open() as lock:
        os.kill(pids["guard"], signal.SIGSTOP)
        with Grip([pids["warden"]]) as warden_grip:
            process.kill()
            os.kill(pids["warden"], signal.SIGKILL)
            process.wait()
            assert warden_grip.all_die()
        with pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.kill(pids["guard"], signal.SIGCONT)
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert set(pids.values()) - grip.deaths(0) <= {pids["guard"]}


def test_a_frozen_supervisor_loses_its_tree_at_the_deadline(tmp_path: Path) -> None:
    with supervisor(tmp_path, 2_000) as (process, _, grip):
        process.send_signal(signal.SIGSTOP)
        assert grip.all_die()
        process.send_signal(signal.SIGCONT)
        assert process.stdout is not None
        assert json.loads(read_line(process.stdout.fileno())) == {"lost": True, "warden": EXIT_DEADLINE}


# ------------------------------------------------------------------------------------ commands


def test_a_command_gives_its_code_and_its_last_bytes() -> None:
    result = run_command("seq 100000; echo oops >&2; exit 3", cwd="/", env=ENV, timeout_s=60, output_limit=12)
    assert (result.exit_code, result.signal, result.timed_out) == (3, None, False)
    assert (result.stdout_tail, result.stderr_tail) == (b"9999\n100000\n", b"oops\n")


def test_a_command_reads_its_standard_input_and_takes_a_list() -> None:
    result = run_command(["cat"], cwd="/", env=ENV, stdin=b"prompt", timeout_s=60)
    assert (result.exit_code, result.stdout_tail) == (0, b"prompt")


def test_a_command_that_does_not_exist_is_reported() -> None:
    with pytest.raises(SpawnFailed, match="no-such-check"):
        run_command(["no-such-check"], cwd="/", env=ENV, timeout_s=60)


def test_the_timeout_of_a_command_kills_its_grandchildren(warden: Warden, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    command = "exec 9>fifo; (setsid env -i sleep 600 </dev/null >/dev/null 2>&1 &); echo begun; sleep 600"
    fifo = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    result = run_command(command, cwd=str(tmp_path), env=ENV, timeout_s=3, below=warden)
    assert result.timed_out
    assert (result.exit_code, result.signal, result.stdout_tail) == (None, signal.SIGKILL, b"begun\n")
    assert nobody_holds(fifo)
    os.close(fifo)


def test_a_command_that_closes_its_output_is_still_waited_for(warden: Warden) -> None:
    result = run_command("exec >&- 2>&-; sleep 0.2; exit 4", cwd="/", env=ENV, timeout_s=60, below=warden)
    assert (result.exit_code, result.timed_out) == (4, False)


# ------------------------------------------------------------------------------------ memory


@pytest.mark.parametrize("mode", ["lines", "endless", "binary"])
def test_memory_is_flat_under_any_amount_of_output(tmp_path: Path, mode: str) -> None:
    small, large = (drink(mode, megabytes, tmp_path / "raw") for megabytes in (5, 65))
    assert large["bytes"] == 70_000_000  # the raw file is appended to
    assert large["lines"] > 0
    assert large["peak_kb"] - small["peak_kb"] < 8_192


def drink(mode: str, megabytes: int, path: Path) -> dict[str, int]:
    words = [os.path.join(PROGRAMS, "drink.py"), mode, str(megabytes), str(path)]
    done = subprocess.run([sys.executable, *words], env=ENV, stdout=subprocess.PIPE, check=True)
    report: dict[str, int] = json.loads(done.stdout)
    return report


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("broken", ["_handle_report", "_end_leftovers"])
def test_a_listener_that_fails_leaves_nobody_waiting(
    warden: Warden, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a mistake of ours")

    child, _, grip = start_held_tree(warden)
    with grip:
        monkeypatch.setattr(warden, broken, fail)
        if broken == "_handle_report":
            child.kill()  # its end is the report that nobody can read
        else:
            os.kill(warden.pid, signal.SIGKILL)
        ending = end_of(child)
        assert (ending.code, ending.lost) == (None, True)
        assert grip.all_die()
    with pytest.raises(WardenLost):
        start(warden, "tree.py", "plain")


def test_the_warden_imports_little() -> None:
    """Every run keeps a warden and a guard in memory, and waits for them to start."""
    program = "import sys; sys.path.append(sys.argv[1]); __import__('warden.loop'); import ctypes; print(*sys.modules)"
    folder = os.path.join(SOURCE, "jackline", "engine")
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, folder], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "warden.guard" in loaded
    assert not loaded & {"enum", "re", "typing", "json", "signal", "socket", "jackline"}
