"""Renders the transcript of a run as text: who said what, each command with its result. It reads, and prints nothing.

The order is that of the agent's output. A call that the output does not mention, such as one that a crash cut off,
follows at the end of its turn. The host's own calls, which no output mentions, are where the ledger has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.cli.event_text import describe_event, is_notable
from jackline.domain import call_gate
from jackline.domain.call_text import describe_ledger_call
from jackline.domain.states import CallState
from jackline.exports.transcript import HOST, EntryType, TranscriptReader
from jackline.formatting import format_call_time, make_printable, make_readable, pluralize, shorten_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jackline.cli.output import Output
    from jackline.domain.events import Event
    from jackline.domain.records import Call, Run
    from jackline.exports.transcript import TranscriptEntry
    from jackline.store.store import Store

PERSON, GATE, RUN = "you", "gate", "run"
_OUTPUT_LINES = 5
_PROMPT_LINES = 5
_NS_PER_MS = 1_000_000
_HELD = {"call.denied": "denied", "call.asked": "needs approval", "call.stored": "not repeated"}
_DECIDED = {"call.in_doubt": "in doubt", "call.void": "did not happen", "call.abandoned": "given up"}
_OUTCOMES = frozenset({"call.done", "call.failed"})
_DECISIONS = ("call.", "stop.")
_COVERED = frozenset({"turn.started", "check.started", "check.launched", "run.queued"})  # by another entry


class TranscriptView:
    """The transcript of one run; it remembers which calls it has shown, and the turn that it is in."""

    def __init__(self, store: Store, run: Run, out: Output, turn: int | None, *, shows_starts: bool) -> None:
        """`turn` selects one turn; `shows_starts`: a call is also shown when it starts, for a person who follows."""
        self._store, self._run, self._out = store, run, out
        self._only_turn, self._shows_starts = turn, shows_starts
        self._reader = TranscriptReader(store, run)
        self._calls: dict[str, Call] = {call.id: call for call in store.calls.list_all(run.id)}
        self._ids = {(call.turn, call.agent_call): call.id for call in self._calls.values()}
        self._shown: set[str] = set()
        self._turn = 0
        self._said, self._speaker = "", run.agent  # the pieces of a message
        self._held: list[str] = []  # lines about decisions of the gate that are not shown yet
        self._was_output = False
        self._is_new = True

    def read_page(self) -> list[str | dict[str, Any]]:
        """Return the next lines, or JSON objects with --json; none if there is nothing new."""
        page: list[str | dict[str, Any]] = []
        if self._is_new:
            self._is_new = False
            if self._only_turn is None:
                page += self._render(None, self._reader.start)
        while not page and (entries := self._reader.read_page()):
            for event, entry in entries:
                page += self._render(event, entry)
            if self._said and not self._out.json:
                page += self._end_message()
        return page

    def _render(self, event: Event | None, entry: TranscriptEntry) -> Iterator[str | dict[str, Any]]:
        self._note_turn(event, entry)
        call = self._find_call(event, entry)
        if self._only_turn is not None and self._turn != self._only_turn:
            return
        if self._out.json:
            what = {"what": describe_ledger_call(call, self._run.spec.workspace)} if call else {}
            yield {**entry.to_dict(), **what}
            return
        is_piece = _get_kind(entry) == "agent.message" and entry.metadata.get("delta") is True
        if self._said and not is_piece:
            yield from self._end_message()
        if is_piece:
            self._said, self._speaker = self._said + entry.content, entry.agent
        else:
            yield from self._render_text(event, entry, call)

    def _note_turn(self, event: Event | None, entry: TranscriptEntry) -> None:
        turn = entry.metadata.get("turn")
        if event is not None and event.kind in {"turn.started", "turn.launched"} and isinstance(turn, int):
            self._turn = turn

    def _find_call(self, event: Event | None, entry: TranscriptEntry) -> Call | None:
        if event is None or not event.kind.startswith(("call.", "agent.call.")):
            return None
        name = entry.metadata.get("call")
        if not isinstance(name, str):
            return None
        call_id = self._ids.get((self._turn, name), name)
        # The calls were read after the run: they are as new as its last event, or newer.
        if event.seq > self._run.event_seq and (call := self._store.calls.get(self._run.id, call_id)) is not None:
            self._calls[call.id] = call
            self._ids[call.turn, call.agent_call] = call.id
        return self._calls.get(call_id)

    # text

    def _render_text(self, event: Event | None, entry: TranscriptEntry, call: Call | None) -> Iterator[str]:
        kind = _get_kind(entry)
        # The ledger is written at once, the agent's output in batches: decisions follow the words before them.
        is_output = kind.startswith("agent.")
        if self._held and not is_output and (self._was_output or not kind.startswith(_DECISIONS)):
            yield from self._held
            self._held = []
        self._was_output = is_output
        if kind in _COVERED:
            return
        if kind in _OUTCOMES and call is not None and call.door == call_gate.HOST and call.id not in self._shown:
            yield from self._render_ledger_call(call)
        elif kind in _RENDERERS:
            yield from _RENDERERS[kind](self, entry, call)
        elif entry.type == EntryType.START and entry.content.strip():
            yield from self._format_words(PERSON, entry.content)
        elif entry.type == EntryType.ERROR:
            yield from self._format_words("error", entry.error)
        elif event is not None and kind == event.kind and (is_notable(event) or event.actor == "person"):
            words = self._format_words(PERSON if event.actor == "person" else RUN, describe_event(event))
            if kind.startswith(_DECISIONS):
                self._held += words
            else:
                yield from words

    def _end_message(self) -> Iterator[str]:
        said, self._said = self._said, ""
        yield from self._format_words(self._speaker, said)

    def _format_words(self, who: str, text: str) -> Iterator[str]:
        lines = [make_printable(line) for line in make_readable(text).strip().splitlines()] or [""]
        yield f"{self._out.colorize(f'{make_printable(who)}:', 'bold')} {lines[0]}"
        yield from (f"  {line}" for line in lines[1:])

    def render_message(self, entry: TranscriptEntry, _call: Call | None) -> Iterator[str]:
        if entry.content.strip():
            yield from self._format_words(entry.agent, entry.content)

    def render_thinking(self, entry: TranscriptEntry, _call: Call | None) -> Iterator[str]:
        if entry.content.strip():
            for line in self._format_words(f"{entry.agent} (thinking)", entry.content):
                yield self._out.colorize(line, "dim")

    def render_launch(self, entry: TranscriptEntry, _call: Call | None) -> Iterator[str]:
        yield self._out.colorize(f"-- turn {self._turn}, {make_printable(entry.agent)}", "dim")
        lines = entry.content.strip().splitlines()
        if self._turn > 1 and lines:  # the first prompt was shown already; an answered call needs none
            shown = [*lines[:_PROMPT_LINES], "…"] if len(lines) > _PROMPT_LINES else lines
            yield from self._format_words(RUN, "\n".join(shown))

    def render_call_start(self, _entry: TranscriptEntry, call: Call | None) -> Iterator[str]:
        if self._shows_starts and call is not None and call.state is CallState.PREPARED:
            yield self._format_call(call, f"{call.call_class} …")

    def render_call_end(self, entry: TranscriptEntry, call: Call | None) -> Iterator[str]:
        output, ok = entry.metadata.get("output"), entry.metadata.get("ok") is not False
        code = entry.metadata.get("exit_code")
        if call is None:
            yield self._cut(f"{make_printable(entry.content)}   {_format_result(ok=ok, code=code, ms=None)}")
        elif call.id in self._shown:
            return  # a background call is reported twice
        else:
            self._shown.add(call.id)
            code = call.exit_code if call.exit_code is not None else code
            output = call.output or output
            ok = ok and call.state in {CallState.DONE, CallState.PREPARED}
            yield self._format_call(call, f"{call.call_class} {_format_result(ok=ok, code=code, ms=call.duration_ms)}")
        yield from self._format_output(output if isinstance(output, str) else "", call)

    def render_held(self, entry: TranscriptEntry, call: Call | None) -> Iterator[str]:
        kind, reason = _get_kind(entry), str(entry.metadata.get("reason") or "")
        if call is not None:
            self._shown.add(call.id)
            word = (_HELD | _DECIDED)[kind]
            what = describe_ledger_call(call, self._run.spec.workspace)
            self._held += self._format_words(GATE, f"{word}: {what}{f' ({reason})' if reason else ''}")
        yield from ()

    def render_answer(self, entry: TranscriptEntry, call: Call | None) -> Iterator[str]:
        what = f": {describe_ledger_call(call, self._run.spec.workspace)}" if call else ""
        yield from self._format_words(PERSON, f"{entry.metadata.get('answer')}{what}")

    def render_turn_end(self, entry: TranscriptEntry, _call: Call | None) -> Iterator[str]:
        for call in [call for call in self._calls.values() if call.turn == self._turn and call.id not in self._shown]:
            if call.door != call_gate.HOST:  # the host's follow: it makes them after the turn
                yield from self._render_ledger_call(call)
        if entry.type == EntryType.ERROR:
            yield from self._format_words("error", entry.error)
        elif entry.type == EntryType.RESULT and entry.metadata.get("failure"):
            detail = str(entry.metadata.get("detail") or "")
            yield from self._format_words("error", ": ".join(filter(None, (str(entry.metadata["failure"]), detail))))

    def render_check(self, entry: TranscriptEntry, _call: Call | None) -> Iterator[str]:
        if entry.type == EntryType.ERROR:
            yield from self._format_words("error", entry.error)
        elif entry.type == EntryType.RESULT:
            code, ms = entry.metadata.get("exit_code"), entry.duration // _NS_PER_MS
            command = make_printable(str(entry.metadata.get("command")))
            yield self._cut(f"{HOST}: $ {command}   {_format_result(ok=code == 0, code=code, ms=ms)}")
            yield from self._format_output(entry.content, None)

    def render_state(self, entry: TranscriptEntry, _call: Call | None) -> Iterator[str]:
        if entry.type == EntryType.STATE and _get_kind(entry) != "run.claimed":
            data = entry.metadata
            state = _get_kind(entry).removeprefix("run.")
            parts = (state, *(str(data[name]) for name in ("reason", "failure", "detail") if data.get(name)))
            yield from self._format_words(RUN, ": ".join(parts))

    def _render_ledger_call(self, call: Call) -> Iterator[str]:
        self._shown.add(call.id)
        ok, is_open = call.state is CallState.DONE, call.state is CallState.PREPARED
        result = "?" if is_open else _format_result(ok=ok, code=call.exit_code, ms=call.duration_ms)
        yield self._format_call(call, f"{call.call_class} {result}")
        yield from self._format_output(call.output, call)

    # lines

    def _format_call(self, call: Call, result: str) -> str:
        what = describe_ledger_call(call, self._run.spec.workspace)
        if not self._out.stdout.is_terminal:
            return f"{what}   {result}"
        return f"{shorten_text(what, self._out.terminal_width() - len(result) - 3)}   {result}"

    def _format_output(self, output: str, call: Call | None) -> Iterator[str]:
        lines = make_readable(output).strip("\n").splitlines()
        yield from (self._cut(f"    {make_printable(line.expandtabs(4)).rstrip()}") for line in lines[:_OUTPUT_LINES])
        if len(lines) > _OUTPUT_LINES:
            more = f"    … {pluralize(len(lines) - _OUTPUT_LINES, 'more line')}"
            yield f"{more}: jackline show {self._run.id} --call {call.id}" if call else more

    def _cut(self, line: str) -> str:
        return shorten_text(line, self._out.terminal_width()) if self._out.stdout.is_terminal else line


def _get_kind(entry: TranscriptEntry) -> str:
    return str(entry.metadata.get("event", ""))


def _format_result(*, ok: bool, code: object, ms: int | None) -> str:
    parts = ["✓" if ok else "✗"]
    parts += [f"exit {code}"] if code not in (None, 0) or (code == 0 and not ok) else []
    parts += [format_call_time(ms)] if ms is not None else []
    return " ".join(parts)


_RENDERERS: dict[str, Callable[[TranscriptView, TranscriptEntry, Call | None], Iterator[str]]] = {
    "agent.message": TranscriptView.render_message,
    "agent.thinking": TranscriptView.render_thinking,
    "agent.call.started": TranscriptView.render_call_start,
    "agent.call.finished": TranscriptView.render_call_end,
    "turn.launched": TranscriptView.render_launch,
    "turn.ended": TranscriptView.render_turn_end,
    "check.ended": TranscriptView.render_check,
    "call.answered": TranscriptView.render_answer,
    **dict.fromkeys((*_HELD, *_DECIDED), TranscriptView.render_held),
    **dict.fromkeys(
        ("run.waiting", "run.succeeded", "run.failed", "run.cancelled", "run.claimed"),
        TranscriptView.render_state,
    ),
}
