"""The sandbox of one case: its own home, HOME, repository and outside world, and the processes that run in it.

The environment is built from scratch, so no key, proxy or setting of the user can be in it. Starts only git. Finding
processes needs /proc, so it works on Linux only.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import site
import sys
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

from jackline.engine import orphans
from jackline.engine.command_runner import run_command
from jackline.engine.warden.process_tree import list_processes, read_process
from jackline.errors import UsageError
from jackline.named import NamedTuple
from jackline.scenarios import sandbox_tools
from jackline.scenarios.drill_cases import DrillFailed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TOOLS = ("upload", "build", "look", "task")
_GIT_TIMEOUT_S = 30.0
_GIT_COMMANDS = (
    ("init", "--quiet", "--template="),
    # In the repository itself: this wins over the machine's own settings for signing and hooks.
    ("config", "user.name", "Drill"),
    ("config", "user.email", "drill@example.org"),
    ("config", "commit.gpgSign", "false"),
    ("config", "core.hooksPath", os.devnull),
    ("commit", "--quiet", "--allow-empty", "--message", "Begin"),
)


class Sandbox(NamedTuple):
    """The folders of one case; all of it is evidence except the temporary folder."""

    folder: str
    temporary: str  # TMPDIR of the agent: a short path, because sockets are created in it
    home: str  # jackline's

    def at(self, *names: str) -> str:
        """Build a path in the folder."""
        return os.path.join(self.folder, *names)

    @property
    def user(self) -> str:
        """The HOME of every process of the case, by which they are found."""
        return self.at("user")

    @property
    def repository(self) -> str:
        """The agent's workspace."""
        return self.at("repository")

    @property
    def world(self) -> str:
        """The outside world: the tools themselves record here what happened."""
        return self.at("world")

    @property
    def environment(self) -> dict[str, str]:
        """Everything that jackline gets, and so the most that an agent can get."""
        # A jackline that is installed below the user's own HOME could not start with another one.
        user_base = {"PYTHONUSERBASE": site.getuserbase()} if site.ENABLE_USER_SITE else {}
        return {
            "PATH": f"{self.at('tools')}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "LANG": "C.UTF-8",
            "HOME": self.user,
            "TMPDIR": self.temporary,
            "JACKLINE_HOME": self.home,
            **user_base,
        }

    @property
    def probe(self) -> str:
        """The command line that finds out whether an upload has arrived."""
        return self._tool_command("probe")

    def tool(self, name: str) -> str:
        """The path of a tool's program."""
        return self.at("tools", name)

    def has_arrived(self, name: str) -> bool:
        """Whether the tool that works on `name` has reached the point where it waits for the kill."""
        return os.path.exists(os.path.join(self.world, f"here.{name}"))

    def build(self, halts: Iterable[tuple[str, str]] = ()) -> None:
        """Create the folders, the tools, their halts, and a repository with one commit if git is installed."""
        for folder in (self.user, self.repository, self.world, self.at("tools"), self.at("said")):
            os.makedirs(folder, mode=0o700)
        for name in TOOLS:
            write_text(self.tool(name), f'#!/bin/sh\nexec {self._tool_command(name)} "$@"\n')
            os.chmod(self.tool(name), 0o700)
        for moment, name in halts:
            write_text(os.path.join(self.world, f"halt.{moment}.{name}"), "")
        if shutil.which("git"):
            for words in _GIT_COMMANDS:
                ended = run_command(
                    ("git", *words),
                    cwd=self.repository,
                    env=self.environment,
                    timeout_s=_GIT_TIMEOUT_S,
                    output_limit=4096,
                )
                if ended.exit_code != 0:
                    message = ended.stderr_tail.decode(errors="replace")
                    raise DrillFailed(f"`git {words[0]}` ended with {ended.exit_code}: {message}")

    def _tool_command(self, *words: str) -> str:
        program = os.path.abspath(sandbox_tools.__file__)
        return shlex.join((sys.executable, "-I", "-S", program, self.world, *words))


@contextmanager
def open_sandbox(folder: str, home: str = "") -> Iterator[Sandbox]:
    """A sandbox that is not built yet; `home` defaults to a folder in it. Only the temporary folder is removed."""
    with make_temporary_folder() as temporary:
        yield Sandbox(folder=folder, temporary=temporary, home=home or os.path.join(folder, "home"))


@contextmanager
def make_temporary_folder(prefix: str = "jackline-") -> Iterator[str]:
    """A folder that is removed afterwards, whatever is in it."""
    folder = tempfile.mkdtemp(prefix=prefix)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def make_folder(wanted: str | None, name: str) -> str:
    """Create an empty folder for the files of `name`; they are never mixed with others."""
    folder = os.path.abspath(wanted) if wanted else tempfile.gettempdir()
    try:
        if not wanted:
            return tempfile.mkdtemp(prefix=f"jackline-{name}-")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):  # it must be writable
            pass
        is_empty = not os.listdir(folder)
    except OSError as error:
        why = error.strerror
        raise UsageError(f"{folder} cannot hold the {name}'s files ({why}): name another folder with --keep") from None
    if not is_empty:
        raise UsageError(f"{folder} is not empty: name a new folder with --keep")
    return folder


def write_text(path: str, text: str) -> None:
    """Write a file of the case."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


# --- processes


class CaseProcesses(NamedTuple):
    """The processes of one attempt; the tools are all that the agent has started."""

    supervisor: int
    warden: int
    guards: tuple[int, ...]
    agent: int
    tools: tuple[int, ...]


def find_processes(sandbox: Sandbox, supervisor: int, warden: int) -> CaseProcesses:
    """Find the processes of the current attempt."""
    table = list_processes()
    guards = tuple(pid for pid, process in table.items() if process.parent == warden)
    below = [process for process in table.values() if process.parent in guards]
    if not below:
        raise DrillFailed("the agent's process was not found")
    # The agent is the first process that its guard has started; later ones are orphans that the guard adopted.
    agent = min(below, key=lambda process: (process.start_ticks, process.pid)).pid
    known = {supervisor, warden, *guards, agent}
    tools = tuple(pid for pid in list_running(sandbox) if pid not in known)
    return CaseProcesses(supervisor=supervisor, warden=warden, guards=guards, agent=agent, tools=tools)


def list_running(sandbox: Sandbox) -> dict[int, str]:
    """Every living process of the case with its command: they all have its HOME."""
    return {process.pid: process.command for process in orphans.find_orphans({"HOME": sandbox.user})}


def is_alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    process = read_process(pid)
    return process is not None and not process.dead


def is_stopped(pid: int) -> bool:
    """Whether a SIGSTOP has reached every thread."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/stat", "rb") as file:
            stat = file.read()
        if stat[stat.rindex(b")") + 2 :][:1] not in {b"T", b"t"}:
            return False
    return True


def send_signal(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to each of them."""
    for pid in pids:
        os.kill(pid, number)
