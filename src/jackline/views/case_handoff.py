"""What the next agent needs to go on with a case, as markdown or as values. Pure; bounded, because a model reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.domain.case import CaseStatus, CommandStatus, HypothesisStatus
from jackline.domain.learning import line
from jackline.formatting import make_readable
from jackline.named import NamedTuple
from jackline.views import case_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jackline.domain.case import Case, Entry
    from jackline.domain.learning import Unresolved

_MOST_HYPOTHESES = 20
_MOST_EVIDENCE = 5
_MOST_COMMANDS = 8
_MOST_DIRTY = 30
_MOST_LEARNINGS = 5
_LONGEST = 400
_LONGEST_PLAN = 800
_LONGEST_OUTPUT = 160
_OTHERS = "# or rejected, blocked, superseded"
_HEADINGS = {
    HypothesisStatus.OPEN: "Open hypotheses",
    HypothesisStatus.BLOCKED: "Blocked hypotheses",
    HypothesisStatus.ACCEPTED: "Accepted",
    HypothesisStatus.REJECTED: "Rejected: do not try them again",
    HypothesisStatus.SUPERSEDED: "Superseded",
}


class Handoff(NamedTuple):
    """A case with everything about it."""

    case: Case
    hypotheses: Sequence[Entry] = ()
    evidence: Sequence[Entry] = ()
    commands: Sequence[Entry] = ()
    learnings: Sequence[Entry] = ()
    unresolved: Sequence[Unresolved] = ()
    dirty: Sequence[str] = ()  # what `git status --porcelain` says now

    @property
    def still_open(self) -> list[Entry]:
        """The hypotheses that nobody has decided."""
        return [one for one in self.hypotheses if one.status == HypothesisStatus.OPEN]


def next_commands(told: Handoff) -> list[str]:
    """What to type to go on, exactly."""
    case = told.case
    if case.status is CaseStatus.CLOSED:
        return [f"jackline case reopen {case.id}"]
    own = f"--case {case.id}"
    resolve = [
        f"jackline case hypothesis resolve {one.id} --status accepted {own}  {_OTHERS}"
        for one in told.still_open[:_MOST_EVIDENCE]
    ]
    about = f" --hypothesis {told.still_open[0].id}" if told.still_open else ""
    verification = "" if case.problem.expected_verification else ' --verification "COMMAND"'
    return [
        f'jackline case evidence add "…"{about} {own}' if told.hypotheses else _first(own),
        *resolve,
        f"jackline case learning review {own}",
        f'jackline case close --summary "…"{verification} {own}',
    ]


def _first(own: str) -> str:
    return f'jackline case hypothesis add "…" {own}'


def to_dict(told: Handoff) -> dict[str, Any]:
    """Plain JSON values."""
    return {
        **case_lines.case_values(told.case),
        "hypotheses": [case_lines.entry_values(one) for one in _worth_telling(told)],
        "evidence": [case_lines.entry_values(one) for one in _last(told.evidence, _MOST_HYPOTHESES)],
        "commands": [case_lines.entry_values(one) for one in _last(told.commands, _MOST_COMMANDS)],
        "learnings": [case_lines.entry_values(one) for one in _last(told.learnings, _MOST_HYPOTHESES)],
        "unresolved_learnings": [
            {**case_lines.entry_values(one.entry), "lacks": one.lacks} for one in told.unresolved[-_MOST_HYPOTHESES:]
        ],
        "dirty_now": list(told.dirty),
        "next_steps": [f"{one.id}: {one.text}" for one in _last(told.still_open, _MOST_HYPOTHESES)],
        "next_commands": next_commands(told),
    }


def _worth_telling(told: Handoff) -> list[Entry]:
    """The newest hypotheses, and the newest that are open, however many were decided after them."""
    newest = _last(told.hypotheses, _MOST_HYPOTHESES)
    still_open = _last(told.still_open, _MOST_HYPOTHESES)
    return sorted({one.number: one for one in (*newest, *still_open)}.values(), key=lambda one: one.number)


def text_of(told: Handoff) -> str:
    """A page that an agent reads first."""
    return make_readable("\n".join([*_head(told.case), *_body(told)]))


def _head(case: Case) -> Iterator[str]:
    problem = case.problem
    yield from (f"# Case {case.id} ({case.status})", "", case.request, "", f"Repository: `{case.path}`", "")
    yield from (f"Intent: {_short(problem.intent)}", "") if problem.intent else ()
    yield from _items("Target", problem.target_properties)
    yield from _items("Not a goal", problem.non_goals)
    yield from _items("Risks", problem.risks)
    yield from _items("Verification", problem.expected_verification)
    if case.status is CaseStatus.CLOSED:
        yield from ("## Closed", "", _short(str(case.closeout.get("summary", ""))), "")
        yield from _items("Residual risks", [_short(str(one)) for one in case.closeout.get("risks", ())])
    if problem.intake_plan is not None:
        yield from ("## Plan of the intake", "", _plan(problem.intake_plan), "")


def _body(told: Handoff) -> Iterator[str]:
    for status, heading in _HEADINGS.items():
        entries = [one for one in told.hypotheses if one.status == status]
        yield from _items(heading, [text for one in entries for text in _hypothesis(one, told)], _MOST_HYPOTHESES * 3)
    loose = [_short(one.text) for one in told.evidence if not one.data.get("hypothesis")]
    yield from _items("Other evidence", loose, _MOST_HYPOTHESES)
    yield from _items("Last commands", [_command(one) for one in told.commands], _MOST_COMMANDS)
    yield from _items("Learnings that are not in the repository yet", [_short(line(one)) for one in told.unresolved])
    lacking = {one.entry.id for one in told.unresolved}
    kept = [_learning(one) for one in told.learnings if one.id not in lacking]
    yield from _items("Learned, and kept", kept, _MOST_LEARNINGS)
    yield from _items("Changed in the worktree now", [_changed(one, told.case) for one in told.dirty], _MOST_DIRTY)
    yield from _items(
        "Next steps", [f"decide {one.id}: {_short(one.text)}" for one in told.still_open], _MOST_HYPOTHESES
    )
    yield from _items("To go on", [f"`{one}`" for one in next_commands(told)])


def _hypothesis(entry: Entry, told: Handoff) -> list[str]:
    note = f" ({_short(str(entry.data['note']))})" if entry.data.get("note") else ""
    evidence = [one for one in told.evidence if one.data.get("hypothesis") == entry.id]
    shown = [f"{entry.id}'s {one.id}: {_short(one.text)}" for one in _last(evidence, _MOST_EVIDENCE)]
    return [f"{entry.id} {_short(entry.text)}{note}", *shown]


def _command(entry: Entry) -> str:
    """With what a failed one said last, or what somebody noted."""
    code = entry.data.get("exit_code")
    said = str(entry.data.get("note") or "")
    if not said and entry.status == CommandStatus.FAIL:
        said = str(entry.data.get("output") or "").rstrip().rpartition("\n")[2]
    more = f": {_short(said, _LONGEST_OUTPUT)}" if said.strip() else ""
    return f"{entry.id} {entry.status}{'' if code is None else f' (exit {code})'}: `{_short(entry.text)}`{more}"


def _learning(entry: Entry) -> str:
    where = str(entry.data.get("path") or entry.data.get("reason") or "")
    return f"{entry.id} {_short(entry.text)} ({entry.status}: {_short(where)})"


def _changed(line: str, case: Case) -> str:
    return f"`{line}`{' (as when the case began)' if line in case.problem.dirty_worktree else ''}"


def _plan(plan: object) -> str:
    if isinstance(plan, str):
        return _short(plan, _LONGEST_PLAN)
    from json import dumps

    return f"`{_short(dumps(plan, ensure_ascii=False), _LONGEST_PLAN)}`"


def _items(title: str, items: Sequence[str], most: int = _MOST_HYPOTHESES) -> list[str]:
    if not items:
        return []
    left = len(items) - most
    more = [f"- … and {left} before them"] if left > 0 else []
    return [f"## {title}", "", *more, *(f"- {one}" for one in items[-most:]), ""]


def _last(entries: Sequence[Entry], most: int) -> Sequence[Entry]:
    return entries[-most:]


def _short(text: str, most: int = _LONGEST) -> str:
    """One line, as long as anybody needs."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"
