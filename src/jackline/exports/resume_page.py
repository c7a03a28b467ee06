"""RESUME.md: why a run stopped, its open questions, and the exact commands to continue. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from jackline.domain.call_gate import is_waiting_for_approval, needs_person
from jackline.domain.call_text import find_call_folder, format_call, format_target
from jackline.domain.records import Call
from jackline.domain.states import RunState, WaitReason
from jackline.exports.summary import Summary, format_completion, format_cost
from jackline.formatting import format_rfc3339, make_readable

FILE = "RESUME.md"
_STOPPED = frozenset({RunState.WAITING.value, RunState.FAILED.value})
_MAX_CHARS = 500
_MAX_CALL_CHARS = 2_000
_MAX_ROWS = 50
_MAX_PACKET_LINES = 300
_DOUBT_ANSWERS = (
    ("happened", "it took effect; it is never repeated"),
    ("did-not", "it did not take effect; the agent may make it"),
    ("retry", "it did not take effect; the agent is told to repeat it"),
    ("skip", "it did not take effect; the agent is told to skip it"),
)
_INTERRUPTED_ANSWERS = (("skip", "do not wait for it; otherwise the agent is told again"),)
_APPROVAL_ANSWERS = (("allow", "the agent may make the call"), ("deny", "the agent must not make the call"))


def needs_resume_page(summary: Summary) -> bool:
    """Return whether the run has stopped and may need a person."""
    return summary.state in _STOPPED and not summary.imported


def find_doubtful_calls(calls: Sequence[Call], *, strict: bool = False) -> list[Call]:
    """Return the calls in doubt that only a person can settle."""
    return [call for call in calls if needs_person(call, strict=strict)]


def find_unanswered_calls(calls: Sequence[Call]) -> list[Call]:
    """Return the calls that need approval and have no answer yet; the same question once."""
    return list({call.key: call for call in calls if is_waiting_for_approval(call)}.values())


def render_resume_page(
    summary: Summary,
    calls: Sequence[Call],
    home: str,
    *,
    strict: bool = False,
    packet: str = "",
    forced: Sequence[Call] = (),
    database: str = "",
) -> str:
    """Render the file. `packet` is the agent's resume prompt, `forced` are the calls that it must repeat.

    `database` names the variable with the database address. The address may hold a password and is not shown.
    """
    doubts = find_doubtful_calls(calls, strict=strict)
    interrupted = list(forced) if summary.reason == WaitReason.HUMAN else []
    parts = [
        _render_head(summary, home, database),
        _render_questions("In doubt: did these calls take effect?", doubts, summary.run_id, home, _DOUBT_ANSWERS),
        _render_questions(
            "Waiting for your approval", find_unanswered_calls(calls), summary.run_id, home, _APPROVAL_ANSWERS
        ),
        _render_questions("Interrupted, and not repeated", interrupted, summary.run_id, home, _INTERRUPTED_ANSWERS),
        _render_findings(summary, home),
        _render_code("The agent's last message", summary.last_message, _MAX_ROWS),
        _render_code("The agent's prompt when it continues", packet, _MAX_PACKET_LINES),
        # From the workspace: settings of the project, such as its own agents, are found there.
        [
            "## Continue",
            "",
            f"    cd {_quote(summary.workspace)} && {summary.next_command} --home {_quote(home)}",
            "",
        ],
    ]
    return "\n".join(line for part in parts for line in part)


def _quote(path: str) -> str:
    return make_readable(shlex.quote(path))


def _render_head(summary: Summary, home: str, database: str) -> list[str]:
    why = summary.reason or summary.classified_error
    spent = f"tokens {summary.token_count}, cost {format_cost(summary)}"
    return [
        f"# Run {summary.run_id} {summary.state}{f': {why}' if why else ''}",
        "",
        *_render_quote(summary.detail),
        f"- agent: {make_readable(summary.agent)}, task: {make_readable(summary.task)}",
        f"- workspace: `{make_readable(summary.workspace)}`",
        f"- home: `{make_readable(home)}`",
        *([f"- database: the one that `{database}` named; set it before you continue"] if database else []),
        *([f"- wakes: {format_rfc3339(summary.wake_time)}"] if summary.wake_time else []),
        f"- so far: attempts {summary.attempts}, turns {summary.turns}, receipts {summary.receipts}, {spent}",
        f"- calls: {format_completion(summary)}",
        "",
    ]


def _render_questions(
    title: str, calls: list[Call], run_id: str, home: str, answers: tuple[tuple[str, str], ...]
) -> list[str]:
    if not calls:
        return []
    command = f"jackline show {run_id} --home {_quote(home)}"
    more = [f"And {len(calls) - _MAX_ROWS} more: `{command}` lists them.", ""] if len(calls) > _MAX_ROWS else []
    return [
        f"## {title}",
        "",
        *(line for call in calls[:_MAX_ROWS] for line in _render_question(call, run_id, home, answers)),
        *more,
    ]


def _render_question(call: Call, run_id: str, home: str, answers: tuple[tuple[str, str], ...]) -> list[str]:
    width = max(len(word) for word, _ in answers)
    whole = format_call(call.tool, call.input, folder=find_call_folder(call))
    is_cut = call.input_ref is not None or len(whole) > _MAX_CALL_CHARS
    command = f"jackline answer {run_id} {call.id}"
    return [
        f"### {make_readable(call.tool)}{f' on {format_target(call.target)}' if call.target else ''}",
        "",
        *_render_quote(call.reason),
        *(f"    {line}".rstrip() for line in whole[:_MAX_CALL_CHARS].splitlines()),
        *([f"    … (all of it: jackline show {run_id} --call {call.id} --home {_quote(home)})"] * is_cut),
        "",
        "Answer with one of:",
        "",
        *(f"    {command} {word:<{width}} --home {_quote(home)}  # {meaning}" for word, meaning in answers),
        "",
    ]


def _render_findings(summary: Summary, home: str) -> list[str]:
    if not summary.open_findings:
        return []
    command = f"jackline findings {summary.run_id} --home {_quote(home)}"
    return [
        *_render_code("Open findings of the reviewers", "\n".join(summary.open_findings), _MAX_ROWS),
        f"    {command}",
        f"    {command} --dismiss ID --reason WHY  # it no longer blocks the run",
        "",
    ]


def _render_quote(text: str) -> list[str]:
    return [*(f"> {line}" for line in make_readable(text[:_MAX_CHARS]).splitlines()), ""] if text else []


def _render_code(title: str, text: str, max_lines: int) -> list[str]:
    """Render a section of indented lines, so that nothing in them is read as Markdown."""
    if not text:
        return []
    lines = (f"    {make_readable(line[:_MAX_CHARS])}".rstrip() for line in text.splitlines()[:max_lines])
    return [f"## {title}", "", *lines, ""]
