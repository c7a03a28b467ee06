"""Builds the handoff of a case and renders it for the next agent, as Markdown or JSON values. It only reads.

The result is bounded, because a model reads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.features.cases import case_values, git_hook, lifecycle, location
from jackline.features.cases.case_model import CaseStatus, CommandStatus, EntryKind, HypothesisStatus
from jackline.features.cases.case_queries import Cases
from jackline.features.cases.learning import format_unresolved
from jackline.formatting import make_readable
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jackline.app.home import Home
    from jackline.features.cases.case_model import Case, CaseEntry
    from jackline.features.cases.learning import UnresolvedLearning
    from jackline.features.cases.location import CaseLocation


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
    HypothesisStatus.REJECTED: "Rejected: do not try these again",
    HypothesisStatus.SUPERSEDED: "Superseded",
}


class Handoff(NamedTuple):
    """A case with its entries and the state of the worktree."""

    case: Case
    hypotheses: Sequence[CaseEntry] = ()
    evidence: Sequence[CaseEntry] = ()
    commands: Sequence[CaseEntry] = ()
    learnings: Sequence[CaseEntry] = ()
    unresolved: Sequence[UnresolvedLearning] = ()
    dirty: Sequence[str] = ()  # current lines of `git status --porcelain`

    @property
    def still_open(self) -> list[CaseEntry]:
        """The open hypotheses."""
        return [one for one in self.hypotheses if one.status == HypothesisStatus.OPEN]


def build_handoff(home: Home, *, case_id: str | None = None, at: CaseLocation | None = None) -> Handoff:
    """Build the handoff of a case."""
    case = location.choose_case(home, case_id, at)
    entries = Cases(home.store()).list_entries(case.id)
    of_kind = {kind: tuple(one for one in entries if one.kind is kind) for kind in EntryKind}
    lacking = tuple(git_hook.find_unresolved(case, of_kind[EntryKind.LEARNING]))
    return Handoff(
        case=case,
        hypotheses=of_kind[EntryKind.HYPOTHESIS],
        evidence=of_kind[EntryKind.EVIDENCE],
        commands=of_kind[EntryKind.COMMAND],
        learnings=of_kind[EntryKind.LEARNING],
        unresolved=lacking,
        dirty=lifecycle.list_changes(case.path),
    )


def list_next_commands(handoff: Handoff) -> list[str]:
    """The commands to continue with."""
    case = handoff.case
    if case.status is CaseStatus.CLOSED:
        return [f"jackline case reopen {case.id}"]
    own = f"--case {case.id}"
    resolve = [
        f"jackline case hypothesis resolve {one.id} --status accepted {own}  {_OTHERS}"
        for one in handoff.still_open[:_MOST_EVIDENCE]
    ]
    about = f" --hypothesis {handoff.still_open[0].id}" if handoff.still_open else ""
    verification = "" if case.problem.expected_verification else ' --verification "COMMAND"'
    return [
        f'jackline case evidence add "…"{about} {own}'
        if handoff.hypotheses
        else f'jackline case hypothesis add "…" {own}',
        *resolve,
        f"jackline case learning review {own}",
        f'jackline case close --summary "…"{verification} {own}',
    ]


def build_handoff_values(handoff: Handoff) -> dict[str, Any]:
    """Plain JSON values; of the hypotheses the newest, and the newest open ones."""
    shown = {one.number for some in (handoff.hypotheses, handoff.still_open) for one in some[-_MOST_HYPOTHESES:]}
    return {
        **case_values.build_case_values(handoff.case),
        "hypotheses": [case_values.build_entry_values(one) for one in handoff.hypotheses if one.number in shown],
        "evidence": [case_values.build_entry_values(one) for one in handoff.evidence[-_MOST_HYPOTHESES:]],
        "commands": [case_values.build_entry_values(one) for one in handoff.commands[-_MOST_COMMANDS:]],
        "learnings": [case_values.build_entry_values(one) for one in handoff.learnings[-_MOST_HYPOTHESES:]],
        "unresolved_learnings": [
            {**case_values.build_entry_values(one.entry), "lacks": one.lacks}
            for one in handoff.unresolved[-_MOST_HYPOTHESES:]
        ],
        "dirty_now": list(handoff.dirty),
        "next_steps": [f"{one.id}: {one.text}" for one in handoff.still_open[-_MOST_HYPOTHESES:]],
        "next_commands": list_next_commands(handoff),
    }


def render_handoff(handoff: Handoff) -> str:
    """The Markdown page."""
    return make_readable("\n".join([*_render_head(handoff.case), *_render_body(handoff)]))


def _render_head(case: Case) -> Iterator[str]:
    problem = case.problem
    yield from (f"# Case {case.id} ({case.status})", "", case.request, "", f"Repository: `{case.path}`", "")
    yield from (f"Intent: {_shorten(problem.intent)}", "") if problem.intent else ()
    yield from _render_section("Target", problem.target_properties)
    yield from _render_section("Not a goal", problem.non_goals)
    yield from _render_section("Risks", problem.risks)
    yield from _render_section("Verification", problem.expected_verification)
    if case.status is CaseStatus.CLOSED:
        yield from ("## Closed", "", _shorten(str(case.closeout.get("summary", ""))), "")
        yield from _render_section("Residual risks", [_shorten(str(one)) for one in case.closeout.get("risks", ())])
    if problem.intake_plan is not None:
        from json import dumps

        plan = problem.intake_plan
        text = plan if isinstance(plan, str) else dumps(plan, ensure_ascii=False)
        text = _shorten(text, _LONGEST_PLAN)
        yield from ("## Intake plan", "", text if isinstance(plan, str) else f"`{text}`", "")


def _render_body(handoff: Handoff) -> Iterator[str]:
    for status, heading in _HEADINGS.items():
        entries = [one for one in handoff.hypotheses if one.status == status]
        yield from _render_section(
            heading, [text for one in entries for text in _describe_hypothesis(one, handoff)], _MOST_HYPOTHESES * 3
        )
    loose = [_shorten(one.text) for one in handoff.evidence if not one.data.get("hypothesis")]
    yield from _render_section("Other evidence", loose, _MOST_HYPOTHESES)
    yield from _render_section("Last commands", [_describe_command(one) for one in handoff.commands], _MOST_COMMANDS)
    yield from _render_section(
        "Learnings that are not in the repository yet", [_shorten(format_unresolved(one)) for one in handoff.unresolved]
    )
    lacking = {one.entry.id for one in handoff.unresolved}
    kept = [
        f"{one.id} {_shorten(one.text)} ({one.status}: "
        f"{_shorten(str(one.data.get('path') or one.data.get('reason') or ''))})"
        for one in handoff.learnings
        if one.id not in lacking
    ]
    yield from _render_section("Learnings in the repository", kept, _MOST_LEARNINGS)
    known = handoff.case.problem.dirty_worktree
    changes = [f"`{one}`{' (unchanged since the case started)' if one in known else ''}" for one in handoff.dirty]
    yield from _render_section("Uncommitted changes", changes, _MOST_DIRTY)
    yield from _render_section(
        "Next steps", [f"decide {one.id}: {_shorten(one.text)}" for one in handoff.still_open], _MOST_HYPOTHESES
    )
    yield from _render_section("Commands to continue", [f"`{one}`" for one in list_next_commands(handoff)])


def _describe_hypothesis(entry: CaseEntry, handoff: Handoff) -> list[str]:
    note = f" ({_shorten(str(entry.data['note']))})" if entry.data.get("note") else ""
    evidence = [one for one in handoff.evidence if one.data.get("hypothesis") == entry.id]
    shown = [f"{entry.id}'s {one.id}: {_shorten(one.text)}" for one in evidence[-_MOST_EVIDENCE:]]
    return [f"{entry.id} {_shorten(entry.text)}{note}", *shown]


def _describe_command(entry: CaseEntry) -> str:
    """A command with its note, or the last line of a failed command."""
    code = entry.data.get("exit_code")
    text = str(entry.data.get("note") or "")
    if not text and entry.status == CommandStatus.FAIL:
        text = str(entry.data.get("output") or "").rstrip().rpartition("\n")[2]
    more = f": {_shorten(text, _LONGEST_OUTPUT)}" if text.strip() else ""
    return f"{entry.id} {entry.status}{'' if code is None else f' (exit {code})'}: `{_shorten(entry.text)}`{more}"


def _render_section(title: str, items: Sequence[str], most: int = _MOST_HYPOTHESES) -> list[str]:
    if not items:
        return []
    left = len(items) - most
    more = [f"- … and {left} earlier ones"] if left > 0 else []
    return [f"## {title}", "", *more, *(f"- {one}" for one in items[-most:]), ""]


def _shorten(text: str, most: int = _LONGEST) -> str:
    """One line of limited length."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"
