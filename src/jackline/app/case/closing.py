"""How a case is closed: its verification is run and written down, and what was not met stops it, or is said."""

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
    """What somebody says who closes a case."""

    summary: str
    verification: tuple[str, ...] = ()  # none: what the case began with
    risks: tuple[str, ...] = ()
    force: str = ""  # the reason to close it all the same


def close(
    home: Home,
    wanted: Closeout,
    *,
    case_id: str | None = None,
    at: Here | None = None,
    tell: Callable[[str, Ended | None], None] = lambda _command, _ended: None,
) -> Case:
    """Verify and close; Refused with everything that is not met, NotVerified if the verification failed.

    `tell` hears of each command before it is run, and again with how it ended.
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
    _refuse(case, [] if force else [*unmet(home, case), *_missing(commands)])
    holding.refuse_effects(home, at, commands, case.path)
    results = [_verified(home, case, command, at, tell) for command in commands]
    files.follow(home, case.id)
    failed = [entry for entry in results if entry.status != "pass"]
    if failed and not force:
        raise NotVerified(_failed(case, failed))
    told = {"summary": summary, "verification": [_result(entry) for entry in results], "risks": risks}
    case = _close(home, case, told, [*_missing(commands), *(_said(entry) for entry in failed)], force, at)
    files.follow(home, case.id)
    return case


def _close(home: Home, case: Case, told: dict[str, Any], failed: Sequence[str], force: str, at: Here) -> Case:
    """Look again, at the case as it is now, and close exactly that one."""
    now = place.find(home, case.id)
    found = [*unmet(home, now), *failed]
    _refuse(now, [] if force else found)
    forced = {"forced": force, "unmet": found} if force else {}
    closeout = {**told, **forced, "event_seq": now.event_seq}
    return home.store(create=True).close_case(case.id, closeout, wall_ms(), at.actor)


def unmet(home: Home, case: Case) -> list[str]:
    """What stands against closing it, besides its verification."""
    hypotheses = home.store().entries(case.id, EntryKind.HYPOTHESIS)
    still_open = [one for one in hypotheses if one.status == HypothesisStatus.OPEN]
    learnings = reviewing.unresolved(case, reviewing.learnings_of(home, case))
    return [
        *_some([f"hypothesis {one.id} is open" for one in still_open], "open hypotheses"),
        *_some([f"learning {line(one)}" for one in learnings], "unresolved learnings"),
    ]


def _some(lines: list[str], what: str) -> list[str]:
    more = len(lines) - _MOST_NAMED
    return [*lines[:_MOST_NAMED], f"{more} more {what}"] if more > 0 else lines


def _missing(commands: Sequence[str]) -> list[str]:
    return [] if commands else ["no verification is named (--verification CMD)"]


def _refuse(case: Case, reasons: Sequence[str]) -> None:
    if reasons:
        cure = 'resolve them, or `--force "why"`'
        raise CaseRefused(f"case {case.id} is not closed: {'; '.join(reasons)}: {cure}")


def _verified(home: Home, case: Case, command: str, at: Here, tell: Callable[[str, Ended | None], None]) -> Entry:
    """Run in the root of the repository, wherever `close` was typed."""
    tell(command, None)
    entry, ended = running.executed(home, case, (command,), at._replace(folder=case.path), VERIFICATION)
    tell(command, ended)
    return entry


def _failed(case: Case, failed: Sequence[Entry]) -> str:
    said = "; ".join(_said(entry) for entry in failed)
    return f'case {case.id} is not closed: {said}: mend it and close again, or `--force "why"`'


def _said(entry: Entry) -> str:
    return f"verification {entry.id} failed (exit {entry.data['exit_code']}): {entry.text}"


def _result(entry: Entry) -> dict[str, Any]:
    kept = {name: entry.data[name] for name in ("exit_code", "duration_ms")}
    return {"id": entry.id, "command": entry.text, "status": entry.status, **kept}
