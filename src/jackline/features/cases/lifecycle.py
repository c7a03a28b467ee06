"""Starts and closes cases: the id, the worktree and the intake plan of a new one, the verification of an old one.

A case is not closed while conditions are not met, unless a person forces it.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from jackline.app import preflight
from jackline.clock import wall_ms
from jackline.errors import CaseRefused, NotVerified
from jackline.features.cases import case_files, command_runs, git_hook, location
from jackline.features.cases.case_model import EntryKind, HypothesisStatus
from jackline.features.cases.case_queries import Cases
from jackline.features.cases.case_store import CaseNotebook
from jackline.features.cases.entries import check_text
from jackline.features.cases.learning import format_unresolved
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jackline.app.home import Home
    from jackline.features.cases.case_model import Case, CaseEntry
    from jackline.features.cases.command_runs import CaseCommandResult
    from jackline.features.cases.location import CaseLocation


_INTAKE_SECONDS = 60.0
_LONGEST_PLAN = 65_536
_LONGEST_SLUG = 48
_MOST_DIRTY = 200
_NO_STATUS = "! git status failed"
VERIFICATION = "verification"
_MOST_NAMED = 5


class Opening(NamedTuple):
    """The arguments of `case start`."""

    request: str
    intent: str = ""
    targets: Sequence[str] = ()
    non_goals: Sequence[str] = ()
    risks: Sequence[str] = ()
    verify: Sequence[str] = ()


def start_case(home: Home, opening: Opening, *, skip_intake: bool = False, at: CaseLocation | None = None) -> Case:
    """Start a case and make it the active one here; CaseRefused if another open case is active."""
    from jackline.features.cases.case_model import NewCase, Problem

    at = at or location.get_location(home)
    request = check_text(opening.request, "the request")
    known = location.find_active(home, at)  # checked before the intake command runs; the store checks it again
    if known is not None:
        raise CaseRefused(
            f"case {known.id} is open and active here: close it, or record the new work in it; "
            "`jackline case switch` selects another open case"
        )
    problem = Problem(
        intent=check_text(opening.intent, "--intent") if opening.intent.strip() else "",
        target_properties=_check_texts(opening.targets, "--target"),
        expected_verification=_check_texts(opening.verify, "--verify"),
        risks=_check_texts(opening.risks, "--risk"),
        non_goals=_check_texts(opening.non_goals, "--non-goal"),
    )
    preflight.reject_secret_proof(home, "\n".join(problem.expected_verification), "--verify")
    plan = None if skip_intake else run_intake(home, request, at)
    problem = problem._replace(intake_plan=plan, dirty_worktree=list_changes(at.path))
    now = wall_ms()
    store = home.store(create=True)
    name = build_case_id(store.redactor.redact(request), now)  # it is a folder name, and every command prints it
    new = NewCase(
        id=name,
        repository=at.repository,
        path=at.path,
        user_name=at.user_name,
        request=request,
        problem=problem,
        run_id=at.run_id,
    )
    case = CaseNotebook(store).start(new, at.active_key, now, at.actor)
    case_files.update_case(home, case.id)
    return case


def build_case_id(request: str, at: int) -> str:
    """The id of a case: a UTC timestamp and a slug of the request."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(at // 1000))
    words = "".join(one if one.isascii() and one.isalnum() else " " for one in request.lower()).split()
    slug = ""
    for word in words:
        longer = f"{slug}-{word}" if slug else word
        if len(longer) > _LONGEST_SLUG:
            break
        slug = longer
    return f"{stamp}-{slug or (words[0][:_LONGEST_SLUG] if words else 'case')}"


def list_changes(path: str) -> tuple[str, ...]:
    """The lines of `git status --porcelain`; none outside a repository, one line if git fails."""
    if not os.path.exists(os.path.join(path, ".git")):
        return ()
    from jackline.engine.git import Git, unbind_git_env

    output = Git(workspace=path, env=unbind_git_env(os.environ)).run("status", "--porcelain")
    lines = [_NO_STATUS] if output is None else output.splitlines()
    more = (f"… and {len(lines) - _MOST_DIRTY} more",) if len(lines) > _MOST_DIRTY else ()
    return (*lines[:_MOST_DIRTY], *more)


def run_intake(home: Home, request: str, at: CaseLocation) -> Any:  # noqa: ANN401 - any JSON, or text
    """The output of the project's intake command for the request; None without one. A failure is only a warning."""
    command = home.config.get_text("intake")
    held = [one for one in home.config.held if ": intake " in one]
    home.warnings.extend(held)
    if not command:
        return None
    from jackline.engine.command_runner import run_command
    from jackline.errors import JacklineError

    env = {**os.environ, "JACKLINE_REQUEST": request}
    try:
        ended = run_command(
            command, cwd=at.path, env=env, stdin=request.encode("utf-8", "replace"), timeout_s=_INTAKE_SECONDS
        )
    except JacklineError as error:
        return _warn_no_plan(home, str(error))
    if ended.timed_out or ended.exit_code != 0:
        code = f"timed out after {_INTAKE_SECONDS:g} s" if ended.timed_out else f"exit {ended.exit_code}"
        lines = ended.stderr_tail.decode("utf-8", "replace").strip().splitlines()
        return _warn_no_plan(home, f"{code}; {lines[-1][:200] if lines else 'no output'}")
    return parse_plan(ended.stdout_tail.decode("utf-8", "replace"))


def parse_plan(text: str) -> Any:  # noqa: ANN401 - any JSON, or text
    """A plan as a JSON value if it is valid JSON, else as text; None if it is empty."""
    import json

    text = text.strip()[:_LONGEST_PLAN]
    try:
        return json.loads(text, parse_constant=lambda _: None) if text else None
    except (ValueError, RecursionError):
        return text


def _warn_no_plan(home: Home, why: str) -> None:
    home.warnings.append(f"the intake command made no plan ({why}): the case starts without one")


def _check_texts(values: Sequence[str], what: str) -> tuple[str, ...]:
    return tuple(check_text(one, what) for one in values)


class Closeout(NamedTuple):
    """The arguments of `case close`."""

    summary: str
    verification: tuple[str, ...] = ()  # empty: the commands given to `case start`
    risks: tuple[str, ...] = ()
    force: str = ""  # the reason to close it although conditions are not met


def close_case(
    home: Home,
    wanted: Closeout,
    *,
    case_id: str | None = None,
    at: CaseLocation | None = None,
    on_command: Callable[[str, CaseCommandResult | None], None] = lambda _command, _ended: None,
) -> Case:
    """Verify and close; CaseRefused with every condition that is not met, NotVerified if a verification fails.

    `on_command` gets each command before it runs, and again with its result.
    """
    at = at or location.get_location(home)
    case = location.choose_case(home, case_id, at)
    command_runs.refuse_closed(case)
    summary = check_text(wanted.summary, "the summary")
    force = check_text(wanted.force, "the reason of --force") if wanted.force else ""
    commands = tuple(
        check_text(one, "--verification") for one in wanted.verification or case.problem.expected_verification
    )
    risks = [check_text(one, "--risk") for one in wanted.risks]
    _refuse(case, [] if force else [*list_unmet(home, case), *_list_missing(commands)])
    command_runs.refuse_effects(home, at, commands, case.path)
    results, root = [], at._replace(folder=case.path)  # also if `close` was typed elsewhere
    for command in commands:
        on_command(command, None)
        entry, ended = command_runs.execute_and_record(home, case, (command,), root, VERIFICATION)
        on_command(command, ended)
        results.append(entry)
    case_files.update_case(home, case.id)
    failed = [entry for entry in results if entry.status != "pass"]
    if failed and not force:
        reasons = "; ".join(_describe_failure(entry) for entry in failed)
        raise NotVerified(f'case {case.id} is not closed: {reasons}: fix it and close again, or use `--force "why"`')
    # Check the conditions again for the current version of the case, and close exactly that version.
    now = location.find_case(home, case.id)
    unmet = [*list_unmet(home, now), *_list_missing(commands), *(_describe_failure(entry) for entry in failed)]
    _refuse(now, [] if force else unmet)
    closeout: dict[str, Any] = {
        "summary": summary,
        "verification": [
            {
                "id": entry.id,
                "command": entry.text,
                "status": entry.status,
                "exit_code": entry.data["exit_code"],
                "duration_ms": entry.data["duration_ms"],
            }
            for entry in results
        ],
        "risks": risks,
        **({"forced": force, "unmet": unmet} if force else {}),
        "event_seq": now.event_seq,
    }
    case = CaseNotebook(home.store(create=True)).close(case.id, closeout, wall_ms(), at.actor)
    case_files.update_case(home, case.id)
    return case


def list_unmet(home: Home, case: Case) -> list[str]:
    """The conditions that keep a case open, except its verification."""
    hypotheses = Cases(home.store()).list_entries(case.id, EntryKind.HYPOTHESIS)
    still_open = [one for one in hypotheses if one.status == HypothesisStatus.OPEN]
    learnings = git_hook.find_unresolved(case, git_hook.list_learnings(home, case))
    return [
        *_limit_lines([f"hypothesis {one.id} is open" for one in still_open], "open hypotheses"),
        *_limit_lines([f"learning {format_unresolved(one)}" for one in learnings], "unresolved learnings"),
    ]


def _limit_lines(lines: list[str], what: str) -> list[str]:
    more = len(lines) - _MOST_NAMED
    return [*lines[:_MOST_NAMED], f"{more} more {what}"] if more > 0 else lines


def _list_missing(commands: Sequence[str]) -> list[str]:
    return [] if commands else ["no verification command is given (--verification CMD)"]


def _refuse(case: Case, reasons: Sequence[str]) -> None:
    if reasons:
        hint = 'resolve them, or use `--force "why"`'
        raise CaseRefused(f"case {case.id} is not closed: {'; '.join(reasons)}: {hint}")


def _describe_failure(entry: CaseEntry) -> str:
    return f"verification {entry.id} failed (exit {entry.data['exit_code']}): {entry.text}"
