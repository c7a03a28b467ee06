"""Runs commands for a case and records their results.

It applies no policy to them; inside a run it refuses commands with effects, so that an agent cannot bypass the gate.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.clock import wall_ms
from jackline.errors import CaseRefused
from jackline.features.cases import case_files, location
from jackline.features.cases.case_model import CaseEntry, CaseStatus, CommandStatus, EntryKind
from jackline.features.cases.case_store import CaseNotebook
from jackline.features.cases.entries import check_text
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.app.home import Home
    from jackline.domain.records import Run
    from jackline.engine.command_runner import OutputListener
    from jackline.features.cases.case_model import Case
    from jackline.features.cases.location import CaseLocation


TIMED_OUT = 11
NOT_STARTED = 127
INTERRUPTED = 130
_BY_SIGNAL = 128
_KILLED = _BY_SIGNAL + 9
_LOST = "\nended: the jackline process that watched it was killed\n"
_TAIL = 65_536
_KEPT = 4_000  # characters of output
_SHELL = "Bash"  # the tool name that policies use for shell commands
_SHOWN = 80
_HINT = "run it with your own tool, so that the gate sees it, then use `jackline case command add`"


class CaseCommandResult(NamedTuple):
    """A finished command, with an exit code as a shell reports it."""

    command: str
    exit_code: int
    stdout: bytes
    stderr: bytes
    duration_ms: int
    timed_out: bool = False

    @property
    def passed(self) -> bool:
        """Whether it succeeded."""
        return self.exit_code == 0


def _ignore_output(_source: str, _data: bytes) -> None:
    """Discard the output."""


def run_for_case(
    home: Home,
    words: Sequence[str],
    *,
    case_id: str | None = None,
    at: CaseLocation | None = None,
    on_output: OutputListener = _ignore_output,
) -> tuple[CaseEntry, CaseCommandResult]:
    """Run a command here and record it; `on_output` gets its output as it is printed."""
    at = at or location.get_location(home)
    case = location.choose_case(home, case_id, at)
    refuse_closed(case)
    line = _join_words(words)
    check_text(line, "the command")
    refuse_effects(home, at, (line,), at.folder)
    done = execute_and_record(home, case, words, at, on_output=on_output)
    case_files.update_case(home, case.id)
    return done


def execute_and_record(
    home: Home,
    case: Case,
    words: Sequence[str],
    at: CaseLocation,
    purpose: str = "",
    on_output: OutputListener = _ignore_output,
) -> tuple[CaseEntry, CaseCommandResult]:
    """Run a command in the folder of `at` and record the result, also if it is interrupted."""
    try:
        ended = _execute(home, words, at.folder, on_output)
    except KeyboardInterrupt:
        record_command(
            home,
            case,
            CaseCommandResult(
                command=_join_words(words), exit_code=INTERRUPTED, stdout=b"", stderr=b"interrupted\n", duration_ms=0
            ),
            at,
            purpose,
        )
        case_files.update_case(home, case.id)
        raise
    return record_command(home, case, ended, at, purpose), ended


def _join_words(words: Sequence[str]) -> str:
    """The words as a command line."""
    from shlex import join

    return words[0] if len(words) == 1 else join(words)


def _execute(home: Home, words: Sequence[str], folder: str, on_output: OutputListener) -> CaseCommandResult:
    """Run a command until it ends or the setting `case_seconds` is exceeded.

    One word is a line for the shell; several words are a program and its arguments.
    """
    from jackline.engine.command_runner import run_command
    from jackline.engine.process import SpawnFailed, WardenLost

    seconds, line = home.config.get_float("case_seconds"), _join_words(words)
    command = words[0] if len(words) == 1 else tuple(words)
    env = dict(os.environ)
    try:
        done = run_command(command, cwd=folder, env=env, timeout_s=seconds, output_limit=_TAIL, hear=on_output)
    except SpawnFailed as error:
        return _report_lost(line, NOT_STARTED, f"{error}\n", on_output)
    except WardenLost:
        return _report_lost(line, _KILLED, _LOST, on_output)
    if done.timed_out:
        late = f"\nended by jackline after {seconds:g} s (case_seconds)\n".encode()
        on_output("stderr", late)
        return CaseCommandResult(
            command=line,
            exit_code=TIMED_OUT,
            stdout=done.stdout_tail,
            stderr=done.stderr_tail + late,
            duration_ms=done.duration_ms,
            timed_out=True,
        )
    code = _BY_SIGNAL + (done.signal or 0) if done.exit_code is None else done.exit_code
    return CaseCommandResult(
        command=line, exit_code=code, stdout=done.stdout_tail, stderr=done.stderr_tail, duration_ms=done.duration_ms
    )


def _report_lost(line: str, code: int, why: str, on_output: OutputListener) -> CaseCommandResult:
    """The result of a command that could not start, or that killed its watcher and so ended all its processes."""
    stderr = why.encode("utf-8", "replace")
    on_output("stderr", stderr)
    return CaseCommandResult(command=line, exit_code=code, stdout=b"", stderr=stderr, duration_ms=0)


def record_command(home: Home, case: Case, ended: CaseCommandResult, at: CaseLocation, purpose: str = "") -> CaseEntry:
    """Record a finished command in the case."""
    store = home.store(create=True)
    status = CommandStatus.PASS if ended.passed else CommandStatus.FAIL
    output = (ended.stdout + ended.stderr).decode("utf-8", "replace")
    # Redacted before it is cut: the second half of a secret would not be recognized.
    data = {
        "exit_code": ended.exit_code,
        "duration_ms": ended.duration_ms,
        "output": store.redactor.redact(output)[-_KEPT:],
        **({"timed_out": True} if ended.timed_out else {}),
        **({"purpose": purpose} if purpose else {}),
    }
    entry = CaseEntry(
        case_id=case.id,
        kind=EntryKind.COMMAND,
        number=0,
        at=0,
        updated_at=0,
        text=ended.command,
        status=str(status),
        data=data,
    )
    return CaseNotebook(store).add_entry(case.id, entry, wall_ms(), at.actor)


# what is refused


def refuse_closed(case: Case) -> None:
    """Checked before anything runs; the store checks it again."""
    if case.status is CaseStatus.CLOSED:
        raise CaseRefused(f"case {case.id} is closed: `jackline case reopen {case.id}` opens it again")


def refuse_effects(home: Home, at: CaseLocation, commands: Sequence[str], folder: str) -> None:
    """CaseRefused if the run's policy classifies a command as an effect, or does not allow it."""
    run = _find_run(home, at)
    if run is None:
        return
    from jackline.domain.states import CallClass, Decision
    from jackline.engine.program_links import make_resolver
    from jackline.policy import classify
    from jackline.policy.agreements import AskedPart, apply_agreements
    from jackline.policy.call_context import build_context

    where = build_context(run.spec, folder, make_resolver(run.spec.workspace))
    for command in commands:
        judged = classify.classify_call(run.spec.rules, _SHELL, {"command": command}, where)
        names = [one.rule.name for one in judged.asking] or [judged.rule.name]
        parts = [AskedPart(rule=name, targets=(), is_plain=True) for name in names]
        rule = apply_agreements(judged.rule, parts, run.spec.allowed, run.spec.policy_version)
        if rule.call_class is CallClass.EFFECT or rule.decision is not Decision.ALLOW:
            why = f"{rule.call_class}, rule {rule.name}"
            raise CaseRefused(f"inside run {run.id} `{command[:_SHOWN]}` cannot be run from here ({why}): {_HINT}")


def _find_run(home: Home, at: CaseLocation) -> Run | None:
    """The run whose mark this process has; without a mark, the run that it names."""
    from jackline.engine import run_env

    mark = os.environ.get(run_env.TAG_VARIABLE)
    if mark and not home.is_new:
        secret = home.store().secret
        for row in home.list_active():
            if run_env.build_process_tag(secret, row.id)[run_env.TAG_VARIABLE] == mark:
                return home.store().runs.get(row.id)
    return home.store().runs.get(at.run_id) if at.run_id else None
