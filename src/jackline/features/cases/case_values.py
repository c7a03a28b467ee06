"""Cases and entries as JSON values, with the field names of the predecessor. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.features.cases.case_model import EntryKind
from jackline.formatting import format_iso, make_readable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.features.cases.case_model import Case, CaseEntry


def build_problem_values(case: Case) -> dict[str, Any]:
    """The problem of a case."""
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


def build_entry_values(entry: CaseEntry) -> dict[str, Any]:
    """An entry of a case."""
    data = dict(entry.data)
    own: dict[str, Any]
    match entry.kind:
        case EntryKind.HYPOTHESIS:
            own = {"text": entry.text, "status": entry.status, "updated_at": format_iso(entry.updated_at)}
        case EntryKind.EVIDENCE:
            own = {"text": entry.text, "hypothesis": data.pop("hypothesis", None)}
        case EntryKind.COMMAND:
            own = {"command": entry.text, "status": entry.status}
        case EntryKind.LEARNING:
            own = {"kind": data.pop("kind", None), "summary": entry.text, "repo_action": entry.status}
    return {"id": entry.id, "created_at": format_iso(entry.at), **own, **data}


def build_case_values(case: Case) -> dict[str, Any]:
    """A case."""
    return {
        **build_problem_values(case),
        "status": case.status.value,
        "repository": case.path,
        "user": case.user_name,
        "run": case.run_id,
        "counts": dict(case.counts),
        "updated_at": format_iso(case.updated_at),
        "closed_at": format_iso(case.closed_at),
        "closeout": dict(case.closeout) or None,
    }


def build_closeout_values(case: Case) -> dict[str, Any]:
    """The closeout of a case."""
    closeout = case.closeout
    forced = {name: closeout[name] for name in ("forced", "unmet") if name in closeout}
    return {
        "id": case.id,
        "closed_at": format_iso(case.closed_at),
        "summary": closeout.get("summary", ""),
        "verification": closeout.get("verification", []),
        "residual_risks": closeout.get("risks", []),
        **forced,
    }


def render_closeout(case: Case) -> str:
    """The closeout as Markdown."""
    values = build_closeout_values(case)
    results = [
        f"{one.get('status', '')}: `{one.get('command', '')}` ({one.get('id', '-')}, exit {one.get('exit_code')})"
        if isinstance(one, dict)
        else str(one)  # an imported result may be plain text
        for one in values["verification"]
    ]
    lines = [
        f"# Closeout of {case.id}",
        "",
        case.request,
        "",
        f"Closed {values['closed_at']}.",
        "",
        values["summary"],
        "",
    ]
    lines += [*_render_section("Verification", results), *_render_section("Residual risks", values["residual_risks"])]
    if "forced" in values:
        lines += [
            *_render_section("Closed despite unmet conditions", [values["forced"]]),
            *_render_section("Not met", values["unmet"]),
        ]
    return make_readable("\n".join(lines))


def _render_section(title: str, items: Sequence[object]) -> list[str]:
    return [f"## {title}", "", *(f"- {one}" for one in items or ("none",)), ""]
