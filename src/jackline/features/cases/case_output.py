"""Prints cases and entries, as text or JSON. It changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.cli.output import parse_columns
from jackline.features.cases import case_values
from jackline.features.cases.case_model import EntryKind, HypothesisStatus
from jackline.formatting import format_local, make_printable, pluralize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.features.cases.case_model import Case, CaseEntry
    from jackline.features.cases.learning import UnresolvedLearning

_PLURALS = {"hypothesis": "hypotheses", "evidence": "evidence", "command": "commands", "learning": "learnings"}
_MOST_SHOWN = 20
_LAST_COMMANDS = 5


def print_entry(one: CaseEntry, home: Home, out: Output) -> None:
    """Print an entry that was just written."""
    if out.json:
        out.print_json({**build_entry_record(one), **_warnings(home)})
    else:
        out.print_line(f"{one.id} {one.status}".rstrip())


def build_entry_record(one: CaseEntry) -> dict[str, Any]:
    """An entry with the id of its case."""
    return {"case": one.case_id, **case_values.build_entry_values(one)}


def print_entries(found: Sequence[CaseEntry], out: Output) -> None:
    """Print entries."""
    if out.json:
        out.print_json_lines(build_entry_record(one) for one in found)
        return
    rows = [[one.id, one.status, one.text, str(one.data.get("note", ""))] for one in found]
    out.print_table(parse_columns("ID STATUS* TEXT~ NOTE"), rows)


def print_case(one: Case, home: Home, out: Output, text: str = "") -> None:
    """Print a case that was just changed; its JSON includes the warnings."""
    if out.json:
        out.print_json({**case_values.build_case_values(one), **_warnings(home)})
    else:
        out.print_line(text or one.id)


def _warnings(home: Home) -> dict[str, list[str]]:
    return {"warnings": home.warnings} if home.warnings else {}


def print_status(one: Case, found: Sequence[CaseEntry], now: int, home: Home, out: Output) -> None:
    """Print the status of a case: counts, open hypotheses, last commands."""
    hypotheses = [entry for entry in found if entry.kind is EntryKind.HYPOTHESIS]
    still_open = [entry for entry in hypotheses if entry.status == HypothesisStatus.OPEN]
    commands = [entry for entry in found if entry.kind is EntryKind.COMMAND][-_LAST_COMMANDS:]
    if out.json:
        more = {"open_hypotheses": [case_values.build_entry_values(entry) for entry in still_open]}
        last = {"last_commands": [case_values.build_entry_values(entry) for entry in commands]}
        out.print_json({**case_values.build_case_values(one), **more, **last, **_warnings(home)})
        return
    out.print_line(f"{out.colorize(one.id, 'bold')} {one.status}")
    out.print_line(f"  {make_printable(one.request)}")
    belongs = f", in run {one.run_id}" if one.run_id else ""
    out.print_line(f"  started {format_local(one.created_at, now)} by {make_printable(one.user_name)}{belongs}")
    counts = [f"{count} {_PLURALS[kind] if count != 1 else kind}" for kind, count in one.counts.items()]
    out.print_line(f"  {', '.join(counts)}; {len(still_open)} open")
    lines = [f"{entry.id} open: {entry.text}" for entry in still_open[:_MOST_SHOWN]]
    if len(still_open) > _MOST_SHOWN:
        lines.append(f"… and {len(still_open) - _MOST_SHOWN} more: jackline case hypothesis list --status open")
    lines += [f"{entry.id} {entry.status}: {entry.text}" for entry in commands]
    if one.closeout:
        lines.append(f"closed: {one.closeout.get('summary', '')}")
        lines += [f"not met: {reason}" for reason in one.closeout.get("unmet", ())]
    for line in lines:
        out.print_line(f"  {make_printable(line)}")


def print_cases(found: Sequence[Case], now: int, out: Output, *, paths: bool) -> None:
    """Print cases."""
    if out.json:
        out.print_json_lines(case_values.build_case_values(one) for one in found)
        return
    rows = [
        [
            one.id,
            one.status,
            str(one.counts["hypothesis"]),
            format_local(one.created_at, now),
            one.user_name,
            one.run_id or "-",
            one.request,
            *([one.path] if paths else []),
        ]
        for one in found
    ]
    out.print_table(
        parse_columns("CASE STATUS* HYPOTHESES> BEGUN USER RUN REQUEST~" + (" REPOSITORY" if paths else "")), rows
    )


def print_review(learnings: Sequence[CaseEntry], lacking: Sequence[UnresolvedLearning], out: Output) -> None:
    """Print every learning, and what it lacks."""
    missing = {one.entry.number: one.lacks for one in lacking}
    if out.json:
        out.print_json_lines(
            {**build_entry_record(one), "resolved": one.number not in missing, "lacks": missing.get(one.number)}
            for one in learnings
        )
        return
    rows = [
        [
            one.id,
            "unresolved" if one.number in missing else "resolved",
            one.status,
            one.text,
            missing.get(one.number) or str(one.data.get("path") or one.data.get("reason") or ""),
        ]
        for one in learnings
    ]
    out.print_table(parse_columns("ID STATE* ACTION SUMMARY~ WHERE"), rows)
    out.print_note(f"{pluralize(len(learnings), 'learning')}, {len(missing)} unresolved")
