"""RESUME.md: what happened to a run that stopped, what is open, and the exact commands to go on. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from jackline.domain.gate import is_a_persons, is_asked
from jackline.domain.records import Call
from jackline.domain.states import RunState, WaitReason
from jackline.formatting import format_rfc3339, make_readable
from jackline.views.summary import Summary, completed, cost, next_step

FILE = "RESUME.md"
_STOPPED = frozenset({RunState.WAITING.value, RunState.FAILED.value})
_SHOWN = 500
_MOST = 50
_MOST_TOLD = 300  # lines of the packet, which bounds itself
_DOUBT_WORDS = (
    ("happened", "it took effect; it is never done again"),
    ("did-not", "it did not take effect; the agent may do it"),
    ("retry", "it did not take effect; the agent is told to do it again"),
    ("skip", "it did not take effect; the agent is told to leave it out"),
)
_CUT_OFF_WORDS = (("skip", "nothing waits for it any more; else the agent is told again"),)
_ASKED_WORDS = (("allow", "the agent may do it"), ("deny", "the agent must not do it"))


def is_wanted(summary: Summary) -> bool:
    """Whether a person may have to do something about the run."""
    return summary.state in _STOPPED and not summary.imported


def in_doubt(calls: Sequence[Call], *, strict: bool = False) -> list[Call]:
    """Calls that may have happened, nobody knows, and the run waits for a person to say."""
    return [call for call in calls if is_a_persons(call, strict=strict)]


def asked(calls: Sequence[Call]) -> list[Call]:
    """Calls that a person was asked about and has not answered; the same question is shown once."""
    return list({call.key: call for call in calls if is_asked(call)}.values())


def page(
    summary: Summary,
    calls: Sequence[Call],
    home: str,
    *,
    strict: bool = False,
    packet: str = "",
    forced: Sequence[Call] = (),
    database: str = "",
) -> str:
    """The whole file; `packet` is what the agent is told when it goes on, `forced` what it has to make again.

    `database` is the variable that names it, which no command line can say: there may be a password in it.
    """
    doubts = in_doubt(calls, strict=strict)
    left = list(forced) if summary.reason == WaitReason.HUMAN else []
    parts = [
        _head(summary, home, database),
        _questions("In doubt: did these take effect?", doubts, summary.run_id, home, _DOUBT_WORDS),
        _questions("Waiting for your word", asked(calls), summary.run_id, home, _ASKED_WORDS),
        _questions("Cut off, and not made again", left, summary.run_id, home, _CUT_OFF_WORDS),
        _last_words(summary),
        _told(packet),
        ["## Go on", "", f"    {_there(summary.workspace)}{next_step(summary)}{_of(home)}", ""],
    ]
    return "\n".join(line for part in parts for line in part)


def _there(workspace: str) -> str:
    """A project's own settings, such as the agents that it describes, are found from its folder."""
    return f"cd {make_readable(shlex.quote(workspace))} && "


def _of(home: str) -> str:
    """What makes a command the right one in any shell, whatever its JACKLINE_HOME is."""
    return f" --home {make_readable(shlex.quote(home))}"


def _head(summary: Summary, home: str, database: str) -> list[str]:
    why = summary.reason or summary.classified_error
    return [
        f"# Run {summary.run_id} {summary.state}{f': {why}' if why else ''}",
        "",
        *_quoted(summary.detail),
        f"- agent: {make_readable(summary.agent)}, task: {make_readable(summary.task)}",
        f"- workspace: `{make_readable(summary.workspace)}`",
        f"- home: `{make_readable(home)}`",
        *([f"- database: the one that `{database}` named; set it before you go on"] if database else []),
        *([f"- wakes: {format_rfc3339(summary.wake_time)}"] if summary.wake_time else []),
        _so_far(summary),
        _calls(summary),
        "",
    ]


def _so_far(summary: Summary) -> str:
    spent = f"tokens {summary.token_count}, cost {cost(summary)}"
    return f"- so far: attempts {summary.attempts}, turns {summary.turns}, receipts {summary.receipts}, {spent}"


def _calls(summary: Summary) -> str:
    return f"- calls: {completed(summary)}"


def _questions(title: str, calls: list[Call], run_id: str, home: str, words: tuple[tuple[str, str], ...]) -> list[str]:
    if not calls:
        return []
    listed = f"`jackline show {run_id}{_of(home)}` lists them."
    more = [f"And {len(calls) - _MOST} more: {listed}", ""] if len(calls) > _MOST else []
    return [
        f"## {title}",
        "",
        *(line for call in calls[:_MOST] for line in _question(call, run_id, home, words)),
        *more,
    ]


def _question(call: Call, run_id: str, home: str, words: tuple[tuple[str, str], ...]) -> list[str]:
    width = max(len(word) for word, _ in words)
    command = f"jackline answer {run_id} {call.id}"
    return [
        f"### {make_readable(call.tool)}{f' on {make_readable(call.target)}' if call.target else ''}",
        "",
        *_quoted(call.reason),
        *_code([call.input]),
        "Answer with one of:",
        "",
        *(f"    {command} {word:<{width}}{_of(home)}  # {meaning}" for word, meaning in words),
        "",
    ]


def _last_words(summary: Summary) -> list[str]:
    if not summary.last_message:
        return []
    return ["## The agent's last message", "", *_code(summary.last_message.splitlines())]


def _told(packet: str) -> list[str]:
    if not packet:
        return []
    return ["## What the agent is told when it goes on", "", *_code(packet.splitlines(), _MOST_TOLD)]


def _quoted(text: str) -> list[str]:
    return [*(f"> {line}" for line in make_readable(text[:_SHOWN]).splitlines()), ""] if text else []


def _code(rows: list[str], most: int = _MOST) -> list[str]:
    """Indented, so that nothing in it is read as Markdown."""
    return [*(f"    {make_readable(row[:_SHOWN])}".rstrip() for row in rows[:most]), ""]
