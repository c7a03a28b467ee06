"""Closes a case: runs and records its verification, and refuses while conditions are not met, unless forced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.app.case import files, holding, place, reviewing, running
from jackline.app.case.writing import text_of
from jackline.clock import wall_ms
from jackline.domain.case import EntryKind, HypothesisStatus
from jackline.domain.learning import line
from jackline.errors import CaseRefused, NotVerified
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jackline.app.case.place import Here
    from jackline.app.case.running import Ended
    from jackline.app.home import Home
    from jackline.domain.case import Case, Entry

VERIFICATION = "verification"
_MOST_NAMED = 5


class Closeout(NamedTuple):
    """The arguments of `case close`."""

    summary: str
    verification: tuple[str, ...] = ()  # empty: the commands given to `case start`
    risks: tuple[str, ...] = ()
    force: str = ""  # the reason to close it although conditions are not met


def close(
    home: Home,
    wanted: Closeout,
    *,
    case_id: str | None = None,
    at: Here | None = None,
    tell: Callable[[str, Ended | None], None] = lambda _command, _ended: None,
) -> Case:
    """Verify and close; CaseRefused with every condition that is not met, NotVerified if a verification fails.

    `tell` gets each command before it runs, and again with its result.
    """
    at = at or place.here(home)
    case = place.chosen(home, case_id, at)
    running.refuse_closed(case)
    summary = text_of(wanted.summary, "the summary")
    force = text_of(wanted.force, "the reason of --force") if wanted.force else ""
    commands = tuple(
        text_of(one, "--verification") for one in wanted.verification or case.problem.expected_verification
    )
    risks = [text_of(one, "--risk") for one in wanted.risks]
    _refuse(case, [] if force else [*unmet(home, case), *_list_missing(commands)])
    holding.refuse_effects(home, at, commands, case.path)
    results = [_verify(home, case, command, at, tell) for command in commands]
    files.follow(home, case.id)
    failed = [entry for entry in results if entry.status != "pass"]
    if failed and not force:
        said = "; ".join(_describe_failure(entry) for entry in failed)
        raise NotVerified(f'case {case.id} is not closed: {said}: fix it and close again, or use `--force "why"`')
    closeout = {"summary": summary, "verification": [_build_result(entry) for entry in results], "risks": risks}
    case = _close(
        home, case, closeout, [*_list_missing(commands), *(_describe_failure(entry) for entry in failed)], force, at
    )
    files.follow(home, case.id)
    return case


def _close(home: Home, case: Case, closeout: dict[str, Any], failed: Sequence[str], force: str, at: Here) -> Case:
    """Check the conditions again for the current version of the case, and close exactly that version."""
    now = place.find(home, case.id)
    found = [*unmet(home, now), *failed]
    _refuse(now, [] if force else found)
    forced = {"forced": force, "unmet": found} if force else {}
    closeout = {**closeout, **forced, "event_seq": now.event_seq}
    return home.store(create=True).close_case(case.id, closeout, wall_ms(), at.actor)


def unmet(home: Home, case: Case) -> list[str]:
    """The conditions that keep a case open, except its verification."""
    hypotheses = home.store().entries(case.id, EntryKind.HYPOTHESIS)
    still_open = [one for one in hypotheses if one.status == HypothesisStatus.OPEN]
    learnings = reviewing.unresolved(case, reviewing.learnings_of(home, case))
    return [
        *_limit_lines([f"hypothesis {one.id} is open" for one in still_open], "open hypotheses"),
        *_limit_lines([f"learning {line(one)}" for one in learnings], "unresolved learnings"),
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


def _verify(home: Home, case: Case, command: str, at: Here, tell: Callable[[str, Ended | None], None]) -> Entry:
    """Run a verification in the root of the repository, also if `close` was typed elsewhere."""
    tell(command, None)
    entry, ended = running.execute_and_record(home, case, (command,), at._replace(folder=case.path), VERIFICATION)
    tell(command, ended)
    return entry


def _describe_failure(entry: Entry) -> str:
    return f"verification {entry.id} failed (exit {entry.data['exit_code']}): {entry.text}"


def _build_result(entry: Entry) -> dict[str, Any]:
    kept = {name: entry.data[name] for name in ("exit_code", "duration_ms")}
    return {"id": entry.id, "command": entry.text, "status": entry.status, **kept}
