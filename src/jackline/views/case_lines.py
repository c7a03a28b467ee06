"""A case and its entries as the values that files and programs read, in the predecessor's words. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.domain.case import EntryKind
from jackline.formatting import format_iso, make_readable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.domain.case import Case, Entry


def problem_values(case: Case) -> dict[str, Any]:
    """The capsule that the case began with."""
    problem = case.problem
    return {
        "id": case.id,
        "created_at": format_iso(case.created_at),
        "request": case.request,
        "intent": problem.intent,
        "target_properties": list(problem.target_properties),
        "intake_plan": problem.intake_plan,
        "expected_verification": list(problem.expected_verification),
        "risks": list(problem.risks),
        "non_goals": list(problem.non_goals),
        "dirty_worktree": list(problem.dirty_worktree),
    }


def entry_values(entry: Entry) -> dict[str, Any]:
    """One line of a notebook."""
    begun = {"id": entry.id, "created_at": format_iso(entry.at)}
    data = dict(entry.data)
    return {**begun, **_own_values(entry, data), **data}


def _own_values(entry: Entry, data: dict[str, Any]) -> dict[str, Any]:
    match entry.kind:
        case EntryKind.HYPOTHESIS:
            return {"text": entry.text, "status": entry.status, "updated_at": format_iso(entry.updated_at)}
        case EntryKind.EVIDENCE:
            return {"text": entry.text, "hypothesis": data.pop("hypothesis", None)}
        case EntryKind.COMMAND:
            return {"command": entry.text, "status": entry.status}
        case EntryKind.LEARNING:
            return {"kind": data.pop("kind", None), "summary": entry.text, "repo_action": entry.status}


def case_values(case: Case) -> dict[str, Any]:
    """A case as commands tell it."""
    return {
        **problem_values(case),
        "status": case.status.value,
        "repository": case.path,
        "user": case.user_name,
        "run": case.run_id,
        "counts": dict(case.counts),
        "updated_at": format_iso(case.updated_at),
        "closed_at": format_iso(case.closed_at),
        "closeout": dict(case.closeout) or None,
    }


def closeout_values(case: Case) -> dict[str, Any]:
    """How it was closed."""
    told = case.closeout
    forced = {name: told[name] for name in ("forced", "unmet") if name in told}
    return {
        "id": case.id,
        "closed_at": format_iso(case.closed_at),
        "summary": told.get("summary", ""),
        "verification": told.get("verification", []),
        "residual_risks": told.get("risks", []),
        **forced,
    }


def closeout_markdown(case: Case) -> str:
    """The same for people."""
    told = closeout_values(case)
    results = [_result(one) for one in told["verification"]]
    lines = [f"# Closeout of {case.id}", "", case.request, "", f"Closed {told['closed_at']}.", "", told["summary"], ""]
    lines += [*_section("Verification", results), *_section("Residual risks", told["residual_risks"])]
    if "forced" in told:
        lines += [*_section("Closed all the same", [told["forced"]]), *_section("Not met", told["unmet"])]
    return make_readable("\n".join(lines))


def _result(one: object) -> str:
    """What was imported may be text only."""
    if not isinstance(one, dict):
        return str(one)
    return f"{one.get('status', '')}: `{one.get('command', '')}` ({one.get('id', '-')}, exit {one.get('exit_code')})"


def _section(title: str, items: Sequence[object]) -> list[str]:
    return [f"## {title}", "", *(f"- {one}" for one in items or ("none",)), ""]
