"""Starts a case: its id, the state of the worktree, and the plan of the project's intake command."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from jackline.app import secrecy
from jackline.app.case import files, place
from jackline.app.case.writing import text_of
from jackline.clock import wall_ms
from jackline.errors import CaseRefused
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.app.case.place import Here
    from jackline.app.home import Home
    from jackline.domain.case import Case, Problem

_INTAKE_SECONDS = 60.0
_LONGEST_PLAN = 65_536
_LONGEST_SLUG = 48
_MOST_DIRTY = 200
_NO_STATUS = "! git status failed"


class Opening(NamedTuple):
    """The arguments of `case start`."""

    request: str
    intent: str = ""
    targets: Sequence[str] = ()
    non_goals: Sequence[str] = ()
    risks: Sequence[str] = ()
    verify: Sequence[str] = ()


def start(home: Home, opening: Opening, *, skip_intake: bool = False, at: Here | None = None) -> Case:
    """Start a case and make it the active one here; CaseRefused if another open case is active."""
    from jackline.domain.case import NewCase

    at = at or place.here(home)
    request = text_of(opening.request, "the request")
    _refuse_second(home, at)
    problem = _build_problem(opening)
    secrecy.refuse_secret_proof("\n".join(problem.expected_verification), "--verify")
    plan = None if skip_intake else intake_plan(home, request, at)
    problem = problem._replace(intake_plan=plan, dirty_worktree=dirty(at.path))
    now = wall_ms()
    store = home.store(create=True)
    name = name_of(store.redactor.redact(request), now)  # it is a folder name, and every command prints it
    new = NewCase(name, at.repository, at.path, at.user_name, request, problem, at.run_id)
    case = store.start_case(new, at.place, now, at.actor)
    files.follow(home, case.id)
    return case


def _build_problem(opening: Opening) -> Problem:
    from jackline.domain.case import Problem

    return Problem(
        intent=text_of(opening.intent, "--intent") if opening.intent.strip() else "",
        target_properties=_check_texts(opening.targets, "--target"),
        expected_verification=_check_texts(opening.verify, "--verify"),
        risks=_check_texts(opening.risks, "--risk"),
        non_goals=_check_texts(opening.non_goals, "--non-goal"),
    )


def name_of(request: str, at: int) -> str:
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


def dirty(path: str) -> tuple[str, ...]:
    """The lines of `git status --porcelain`; none outside a repository, one line if git fails."""
    if not os.path.exists(os.path.join(path, ".git")):
        return ()
    from jackline.engine.changes import Git, unbound

    said = Git(path, unbound(os.environ)).ask("status", "--porcelain")
    lines = [_NO_STATUS] if said is None else said.splitlines()
    more = (f"… and {len(lines) - _MOST_DIRTY} more",) if len(lines) > _MOST_DIRTY else ()
    return (*lines[:_MOST_DIRTY], *more)


def intake_plan(home: Home, request: str, at: Here) -> Any:  # noqa: ANN401 - any JSON, or text
    """The output of the project's intake command for the request; None without one. A failure is only a warning."""
    command = home.config.text("intake")
    held = [one for one in home.config.held if ": intake " in one]
    home.warnings.extend(held)
    if not command:
        return None
    from jackline.engine.command import run_command
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
        return _warn_no_plan(home, f"{code}; {_find_last_line(ended.stderr_tail)}")
    return plan_of(ended.stdout_tail.decode("utf-8", "replace"))


def plan_of(text: str) -> Any:  # noqa: ANN401 - any JSON, or text
    """A plan as a JSON value if it is valid JSON, else as text; None if it is empty."""
    import json

    text = text.strip()[:_LONGEST_PLAN]
    try:
        return json.loads(text, parse_constant=lambda _: None) if text else None
    except (ValueError, RecursionError):
        return text


def _warn_no_plan(home: Home, why: str) -> None:
    home.warnings.append(f"the intake command made no plan ({why}): the case starts without one")


def _find_last_line(said: bytes) -> str:
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:200] if lines else "no output"


def _refuse_second(home: Home, at: Here) -> None:
    """Checked before the intake command runs; the store checks it again."""
    known = place.active(home, at)
    if known is not None:
        raise CaseRefused(
            f"case {known.id} is open and active here: close it, or record the new work in it; "
            "`jackline case switch` selects another open case"
        )


def _check_texts(values: Sequence[str], what: str) -> tuple[str, ...]:
    return tuple(text_of(one, what) for one in values)
