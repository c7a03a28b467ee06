"""The live view of a run: the agent's messages, each call with its result, and a live line. Pure.

The words come from the agent's output, which is stored with a delay; the calls come from the ledger, which is written
at once. A call is shown where the output mentions it, so that both appear in the order in which they happened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.cli.event_text import describe_event, is_notable, load_event_data
from jackline.domain.call_text import describe_ledger_call
from jackline.domain.run_inputs import StopReason
from jackline.domain.states import Failure, Phase, Role
from jackline.formatting import (
    format_call_time,
    format_count,
    format_elapsed,
    format_usd,
    make_printable,
    make_readable,
    measure_width,
    shorten_text,
    wrap_text,
)
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jackline.domain.events import Event
    from jackline.domain.records import Call, Run

    Paint = Callable[[str, str | None], str]  # adds a style

HOLD_MS = 2_000  # how long the result of a call waits for the output to mention the call
INDENT = "  "  # of the agent's words: they cannot imitate a line of jackline's own
_MARKS = {"ok": "✓ ", "failed": "✗ "}
_STYLES = {"ok": "green", "failed": "red", "open": "yellow"}
_PHASES = {
    "recovery.started": Phase.RECOVERING,
    "turn.started": Phase.WORKING,
    "check.started": Phase.PROVING,
    "publishing.started": Phase.PUBLISHING,
}
_ROLE_PHASES: dict[str, Phase] = {Role.PLAN: Phase.PLANNING, Role.WORK: Phase.WORKING, Role.REVIEW: Phase.REVIEWING}
_AT_ONCE = (
    "run.",
    "turn.",
    "check.",
    "recovery.",
    "review.",
    "iteration.",
    "agent.end",
)  # before these, the output was stored completely
_AFTER_CHECK = ("run.", "turn.", "recovery.", "check.started", "check.void", "iteration.", "publishing.")
_SHOWN_BY_CALLS = frozenset({StopReason.APPROVAL})
_STREAM = "stream"  # the door of calls that are only observed
_WITHOUT_REASON = frozenset({"call.done", "call.stored", "call.answered"})
_OTHER_OUTCOMES = {"call.asked": "needs approval", "call.void": "did not happen", "call.abandoned": "interrupted"}
_MOST_LEVELS = 4
_LEAST_ACTIVITY = 16  # columns of the live line
_LEAST_TITLE = 16  # columns of a call


class Words(NamedTuple):
    """A message of the agent."""

    text: str


class Note(NamedTuple):
    """An event in one line."""

    text: str


class CallLine(NamedTuple):
    """A call or a proof with its result; without one it has only begun."""

    title: str
    label: str = ""  # its class
    result: str = ""
    style: str = "open"
    duration_ms: int | None = None
    reason: str = ""
    level: int = 0  # of subagents


ViewItem = Words | Note | CallLine


class _OpenCall(NamedTuple):
    call: Call
    since: int
    level: int
    is_mentioned: bool = False
    is_announced: bool = False


class LiveView:
    """Turns events and calls into items to print, one after the other; `now` is any clock in milliseconds."""

    def __init__(self, run: Run, redact: Callable[[str], str] = str, *, is_asked_here: bool = False) -> None:
        """`redact` is for words that arrive in pieces: half a secret was not recognized when it was stored.

        `is_asked_here`: a question follows on this terminal, and gives the reason.
        """
        self._workspace, self._redact = run.spec.workspace, redact
        self._without_reason = _WITHOUT_REASON | {"call.asked"} if is_asked_here else _WITHOUT_REASON
        self._open: dict[str, _OpenCall] = {}
        self._held: dict[str, tuple[CallLine, _OpenCall, int]] = {}  # results whose call the output has yet to mention
        self._mentioned: set[str] = set()  # names of calls that the ledger has yet to mention
        self._levels: dict[str, int] = {}
        self._pieces = ""
        self._check: tuple[str, int, int] | None = None  # check and command, start, start by `now`
        self._phase = "starting"
        spent = run.status.spent
        self._tokens, self._usd_micros, self._usd_estimated = spent.tokens, spent.usd_micros, spent.usd_estimated
        self.last: ViewItem | None = None

    # --- items

    def needs_call(self, event: Event) -> str:
        """Return the id of a call that must be passed with this event; empty if there is none."""
        if not event.kind.startswith("call."):
            return ""
        call = str(load_event_data(event).get("call", ""))
        return "" if call in self._open else call

    def take_event(self, event: Event, now: int, call: Call | None = None) -> list[ViewItem]:
        """Return the items that this event adds."""
        data = load_event_data(event)
        items: list[ViewItem] = []
        if event.kind.startswith(_AT_ONCE):
            items += self._release(lambda _since: True)
        if event.kind.startswith("call."):
            items += self._take_call(event, data, now, call)
        elif event.kind == "agent.usage":
            self._tokens += _read_count(data, "tokens_input") + _read_count(data, "tokens_output")
            self._usd_micros += _read_count(data, "usd_micros")
            self._usd_estimated += _read_count(data, "usd_estimated")
        elif event.kind == "agent.message" and data.get("delta") is True:
            self._pieces += str(data.get("text", ""))
        else:
            items += self._end_words()
            items += self._take_other(event, data, now)
        return self._keep_last(items)

    def release(self, now: int) -> list[ViewItem]:
        """Return the results that have waited long enough for the output to mention their call."""
        return self._keep_last(self._release(lambda since: now - since >= HOLD_MS))

    def finish(self) -> list[ViewItem]:
        """Return the rest: held results, words that have no end, and calls without an outcome."""
        items = [*self._release(lambda _since: True), *self._end_words()]
        for open_call in self._open.values():
            line = self._build_line(open_call, "no outcome", "open")
            items += self._announce_parent(open_call.call)
            items.append(line)
        self._open.clear()
        return self._keep_last(items)

    def _keep_last(self, items: list[ViewItem]) -> list[ViewItem]:
        self.last = items[-1] if items else self.last
        return items

    def _take_other(self, event: Event, data: Mapping[str, Any], now: int) -> list[ViewItem]:
        items: list[ViewItem] = []
        self._phase = _PHASES.get(event.kind, self._phase)
        if event.kind == "turn.started":
            self._phase = _ROLE_PHASES.get(str(data.get("role")), self._phase)
        if self._check is not None and event.kind.startswith(_AFTER_CHECK):
            items.append(self._end_check(event, data))
        match event.kind:
            case "agent.message":
                text, about = str(data.get("text", "")), data.get("call")
                items += self._mention_call(str(about)) if about else []
                return [*items, Words(text)] if text.strip() else items
            case "agent.call.started" | "agent.call.finished":
                return items + self._mention_call(str(data.get("call", "")))
            case "check.started":
                self._check = (f"{data.get('check', 'proof')}: {data.get('command', '')}", event.at, now)
                return items
            case "stop.wanted" if data.get("why") in _SHOWN_BY_CALLS:
                return items
            case _:
                return [*items, Note(describe_event(event))] if is_notable(event) else items

    def _end_words(self) -> list[ViewItem]:
        text, self._pieces = self._redact(self._pieces) if self._pieces else "", ""
        return [Words(text)] if text.strip() else []

    def _end_check(self, event: Event, data: Mapping[str, Any]) -> CallLine:
        command, started, _ = self._check or ("", event.at, 0)
        self._check = None
        title, duration = make_printable(command), max(0, event.at - started)
        is_review = event.kind == "turn.started" and data.get("role") == Role.REVIEW
        if is_review or event.kind in {"run.succeeded", "check.started", "publishing.started"}:  # follow a good one
            return CallLine(title, style="ok", duration_ms=duration)
        if event.kind == "check.void":
            return CallLine(
                title, result="void: it changed the files that it ran on", style="open", duration_ms=duration
            )
        is_refuted = event.kind in {"turn.started", "iteration.ended"} or data.get("proof") == "refuted"
        style, result = ("failed", "") if is_refuted else ("open", "interrupted")
        # Such as a proof that passed too early.
        if event.kind == "run.failed" and data.get("failure") in {Failure.PROOF, Failure.NO_COMMIT}:
            style, result = "failed", ""
        return CallLine(title, result=result, style=style, duration_ms=duration)

    # --- calls

    def _take_call(self, event: Event, data: Mapping[str, Any], now: int, call: Call | None) -> list[ViewItem]:
        name = str(data.get("call", ""))
        known = self._open.pop(name, None)
        if known is None:
            if call is None:
                return []
            known = self._build_open_call(call, now)
        if event.kind == "call.prepared":
            self._open[name] = known
            return []
        line = self._build_outcome(event, data, known)
        # Only what the agent itself reports is mentioned in its output.
        waits = not known.is_mentioned and event.actor == "agent" and data.get("origin", "agent") == "agent"
        if waits:
            self._held[name] = (line, known, now)
            return []
        return [*self._announce_parent(known.call), line]

    def _build_open_call(self, call: Call, now: int) -> _OpenCall:
        level = 0
        if call.parent_id:
            level = min(self._levels.get(call.parent_id, 0) + 1, _MOST_LEVELS)
            self._levels[call.id] = level
        names = {call.id, call.agent_call} & self._mentioned
        self._mentioned -= names
        return _OpenCall(call, now, level, is_mentioned=bool(names))

    def _mention_call(self, name: str) -> list[ViewItem]:
        for call_id, (line, known, _) in self._held.items():
            if name in {call_id, known.call.agent_call}:
                del self._held[call_id]
                return [*self._announce_parent(known.call), line]
        for call_id, known in self._open.items():
            if name in {call_id, known.call.agent_call}:
                self._open[call_id] = known._replace(is_mentioned=True)
                return []
        self._mentioned.add(name)
        return []

    def _release(self, is_due: Callable[[int], bool]) -> list[ViewItem]:
        items: list[ViewItem] = []
        for call_id, (line, known, since) in list(self._held.items()):
            if is_due(since):
                del self._held[call_id]
                items += [*self._announce_parent(known.call), line]
        return items

    def _announce_parent(self, call: Call) -> list[ViewItem]:
        """Show the beginning of a subagent's task before the first of its calls."""
        parent = self._open.get(call.parent_id or "")
        if parent is None or parent.is_announced:
            return []
        self._open[parent.call.id] = parent._replace(is_announced=True)
        return [*self._announce_parent(parent.call), self._build_line(parent, "", "open")]

    def _build_line(self, known: _OpenCall, result: str, style: str, **more: Any) -> CallLine:  # noqa: ANN401 - fields
        title = describe_ledger_call(known.call, self._workspace)
        return CallLine(title, str(known.call.call_class), result, style, level=known.level, **more)

    def _build_outcome(self, event: Event, data: Mapping[str, Any], known: _OpenCall) -> CallLine:
        result, style = _describe_outcome(event.kind, data)
        reason, duration = str(data.get("reason", "")), data.get("duration_ms")
        # What an observed call says is only how it became known; a call that is done needs no reason.
        is_known = known.call.door == _STREAM and reason == known.call.reason
        return self._build_line(
            known,
            make_printable(result),
            style,
            duration_ms=duration if isinstance(duration, int) else None,
            reason="" if is_known or event.kind in self._without_reason else reason,
        )

    # --- the live line

    def format_status(self, now: int, elapsed_ms: int, limit_micros: int | None, columns: int) -> str:
        """Return the live line: time, cost, budget left, tokens, and what is going on; a narrow one has less."""
        left = "" if limit_micros is None else f"{format_usd(max(0, limit_micros - self._usd_micros))} left"
        figures = {
            "elapsed": format_elapsed(elapsed_ms),
            "cost": format_usd(self._usd_micros, self._usd_estimated) if self._usd_micros else "",
            "left": left,
            "tokens": f"{format_count(self._tokens)} tokens" if self._tokens else "",
        }
        activity = self._format_activity(now)
        least = min(measure_width(activity), _LEAST_ACTIVITY)
        for dropped in ("tokens", "left", "cost"):
            if measure_width(_join_figures(figures)) + least <= columns:
                break
            del figures[dropped]
        return shorten_text(_join_figures(figures) + activity, columns)

    def _format_activity(self, now: int) -> str:
        if self._open:
            *others, newest = self._open.values()
            more = f" +{len(others)}" if others else ""
            title = describe_ledger_call(newest.call, self._workspace)
            return f"{format_elapsed(now - newest.since)}{more} {title}"
        if self._check is not None:
            return f"{format_elapsed(now - self._check[2])} {make_printable(self._check[0])}"
        return "writing" if self._pieces else self._phase


def _describe_outcome(kind: str, data: Mapping[str, Any]) -> tuple[str, str]:
    """Return the outcome of a call in words, and its style."""
    code, origin = data.get("exit_code"), str(data.get("origin", "agent"))
    exited = f"exit {code}" if code else ""
    match kind:
        case "call.done":
            return exited if origin == "agent" else f"confirmed by a {origin}", "ok"
        case "call.failed":
            return exited or "failed", "failed"
        case "call.denied":
            return "not run" if "origin" in data else "denied", "failed"
        case "call.stored":
            return "stored result", "ok"
        case "call.in_doubt":
            return f"in doubt, {exited}" if exited else "in doubt", "open"
        case "call.answered":
            return f"answered: {data.get('answer', '')}", "open"
        case _:
            return _OTHER_OUTCOMES.get(kind, kind.removeprefix("call.")), "open"


def render_item(item: ViewItem, columns: int | None, paint: Paint) -> list[str]:
    """Render an item as lines that fit; without `columns` nothing is wrapped or cut, as in a pipe."""
    match item:
        case Words(text):
            return indent_words(text, columns)
        case Note(text):
            return [paint(line, "dim") for line in _wrap_note(text, columns)]
        case CallLine():
            return _render_call(item, columns, paint)


def _wrap_note(text: str, columns: int | None) -> list[str]:
    """Wrap a note. It may quote an agent: what follows its first line is indented, and imitates no line of ours."""
    if columns is None or measure_width(text) <= columns:
        return [text]
    first, *rest = wrap_text(text, columns - 2 * len(INDENT))
    return [first, *(f"{INDENT * 2}{line}" for line in rest)]


def indent_words(text: str, columns: int | None = None) -> list[str]:
    """Render words of an agent: indented, wrapped if `columns` are given, without blank lines around."""
    text = make_readable(text).strip("\n").rstrip()
    lines = text.splitlines() if columns is None else wrap_text(text, columns - len(INDENT))
    return [f"{INDENT}{line}".rstrip() for line in lines]


def _render_call(item: CallLine, columns: int | None, paint: Paint) -> list[str]:
    duration = "" if item.duration_ms is None else format_call_time(item.duration_ms)
    outcome = f"{_MARKS.get(item.style, '')}{item.result}".strip()
    outcome = outcome if item.label or item.result or item.style != "open" else ""
    tail = " ".join(part for part in (item.label, outcome, duration) if part)
    title = "↳ " * item.level + item.title
    if columns is not None:
        title = shorten_text(title, max(columns - measure_width(tail) - 3, _LEAST_TITLE))
    painted = (paint(item.label, "dim"), paint(outcome, _STYLES[item.style]), paint(duration, "dim"))
    shown = " ".join(text for text, part in zip(painted, (item.label, outcome, duration), strict=True) if part)
    reason = make_printable(item.reason).strip()
    if not reason:
        return [f"{title}   {shown}"]
    if columns is None or measure_width(f"{title}   {tail}: {reason}") <= columns:
        return [f"{title}   {shown}: {reason}"]
    return [f"{title}   {shown}", *(f"{INDENT * 2}{line}" for line in wrap_text(reason, columns - 4))]


def _join_figures(figures: Mapping[str, str]) -> str:
    return "".join(f"{text} · " for text in figures.values() if text)


def _read_count(data: Mapping[str, Any], name: str) -> int:
    value = data.get(name)
    return value if isinstance(value, int) else 0
