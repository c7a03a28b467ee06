"""The transcript of a run: builds its entries from the run's events; reads and writes transcript.jsonl.

It has the format of the predecessor's transcript.jsonl. It reads the store and never writes to it. The events do not
say when a turn or a check ended: these entries are built from their rows, when the next event shows that they ended.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from jackline.domain.events import NOTHING, Event
from jackline.domain.records import Check, Run, Turn
from jackline.domain.review_prompts import has_done_signal
from jackline.domain.run_totals import compute_turn_cost
from jackline.domain.states import Failure, Role, RunState, WaitReason
from jackline.errors import UsageError
from jackline.exports import record_json
from jackline.exports.manifest import DONE_SIGNAL, format_review_mode, manifest_state
from jackline.exports.record_json import ZERO_TIME
from jackline.formatting import to_datetime, to_usd
from jackline.named import NamedTuple, stored_as

if TYPE_CHECKING:
    from jackline.store.store import Store

HOST = "host"  # the agent of a check
_PAGE = 500
_NS_PER_MS = 1_000_000
_OMIT_EMPTY = frozenset({"iteration", "agent", "state", "content", "signal", "error", "duration", "metadata"})


class EntryType(StrEnum):
    """The kinds of entries."""

    START = "start"
    ITERATION = "iteration"
    MESSAGE = "message"
    EXECUTE = "execute"
    RESULT = "result"
    SIGNAL = "signal"
    STATE = "state"
    ERROR = "error"
    END = "end"


@stored_as("type timestamp run_id iteration agent state content signal error duration metadata")
class TranscriptEntry(NamedTuple):
    """One line; `duration` is in nanoseconds, as in Go."""

    type: str = ""
    timestamp: datetime = ZERO_TIME
    run_id: int = 0
    iteration: int = 0
    agent: str = ""
    state: str = ""
    content: str = ""
    signal: str = ""
    error: str = ""
    duration: int = 0
    metadata: Mapping[str, Any] = NOTHING

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values in the predecessor's order, without empty optional fields."""
        return record_json.dump_record(self, _OMIT_EMPTY)

    def to_line(self) -> bytes:
        """Encode as a line of the file."""
        return record_json.encode_json(self.to_dict())


def read_transcript(path: str) -> list[TranscriptEntry]:
    """Read all entries of a file; see iterate_transcript."""
    return list(iterate_transcript(path))


def iterate_transcript(path: str) -> Iterator[TranscriptEntry]:
    """Read the entries of a file, one at a time.

    An incomplete last line is skipped. Any other line that cannot be read becomes an `error` entry with its number.
    """
    try:
        with open(path, "rb") as file:
            yield from _parse_lines(file)
    except OSError as error:
        message = f"{path} cannot be read ({error.strerror}): `jackline export RUN` writes it again"
        raise UsageError(message) from error


def _parse_lines(lines: Iterator[bytes]) -> Iterator[TranscriptEntry]:
    last = TranscriptEntry()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            last = TranscriptEntry(**record_json.load_fields(TranscriptEntry, record_json.decode_object(line)))
        except ValueError as error:
            if not line.endswith(b"\n"):
                return
            last = _build_error_entry(number, error, last)
        yield last


def _build_error_entry(number: int, error: ValueError, before: TranscriptEntry) -> TranscriptEntry:
    return TranscriptEntry(
        type=EntryType.ERROR,
        timestamp=before.timestamp,
        run_id=before.run_id,
        iteration=before.iteration,
        error=f"line {number} of the transcript cannot be read: {error}",
        metadata={"line": number},
    )


def load_entries(store: Store, run: Run) -> Iterator[TranscriptEntry]:
    """Build the whole transcript of a run, reading the events page by page."""
    reader = TranscriptReader(store, run)
    yield reader.start
    while page := reader.read_page():
        yield from (entry for _, entry in page)


class TranscriptReader:
    """Reads the transcript of a run as it grows: each page has the entries of the events since the last one."""

    def __init__(self, store: Store, run: Run) -> None:
        self._store, self._run_id = store, run.id
        self._builder = _EntryBuilder(run, {}, ())
        self._seen = 0
        self.start = self._builder.build_start()

    def read_page(self) -> list[tuple[Event, TranscriptEntry]]:
        """Return the next entries, each with its event; none if there is no new event."""
        entries: list[tuple[Event, TranscriptEntry]] = []
        while not entries and (events := self._store.records.list_events(self._run_id, self._seen, _PAGE)):
            self._seen = events[-1].seq
            # Read after the events: those that show the end of a turn or a check were written with its row.
            turns = {turn.number: turn for turn in self._store.records.list_turns(self._run_id)}
            self._builder.update_records(turns, self._store.records.list_checks(self._run_id))
            entries = [(event, entry) for event in events for entry in self._builder.build_entries(event)]
        return entries


def iterate_lines(store: Store, run: Run, path: str) -> Iterator[bytes]:
    """Yield the lines of a run's transcript.jsonl; entries of archived events are taken from the existing file."""
    archived = _last_archived_seq(store, run)
    has_old_file = archived > 0 and os.path.isfile(path)
    if has_old_file:
        yield from (entry.to_line() for entry in iterate_transcript(path) if _event_seq(entry) <= archived)
    for entry in load_entries(store, run):
        if not has_old_file or _event_seq(entry) > archived:
            yield entry.to_line()


def _last_archived_seq(store: Store, run: Run) -> int:
    """Return the sequence number of the last event that was archived; 0 if there is none."""
    first = store.records.list_events(run.id, 0, 1)
    return first[0].seq - 1 if first else run.event_seq


def _event_seq(entry: TranscriptEntry) -> int:
    seq = entry.metadata.get("seq", 0)
    return seq if isinstance(seq, int) else 0


def build_entries(
    run: Run, turns: Mapping[int, Turn], checks: Sequence[Check], events: Iterable[Event]
) -> Iterator[TranscriptEntry]:
    """Build the entries of a run from its events, oldest first."""
    builder = _EntryBuilder(run, turns, checks)
    yield builder.build_start()
    for event in events:
        yield from builder.build_entries(event)


class _DecodedEvent(NamedTuple):
    """An event with its data decoded."""

    event: Event
    data: Mapping[str, Any]

    def get_text(self, *names: str) -> str:
        """Return the first of these values that is a text and not empty."""
        return next((found for name in names if isinstance(found := self.data.get(name), str) and found), "")

    def get_int(self, name: str) -> int:
        value = self.data.get(name)
        return value if isinstance(value, int) else 0


class _EntryBuilder:
    """Tracks the iteration, the state, and the open turn or check while it converts one event after the other."""

    def __init__(self, run: Run, turns: Mapping[int, Turn], checks: Sequence[Check]) -> None:
        self._run, self._turns, self._checks = run, turns, checks
        self._iteration = 0
        self._state = ""
        self._turn: Turn | None = None
        self._check: Check | None = None
        self._done = False  # whether the agent reported the end of this turn

    def update_records(self, turns: Mapping[int, Turn], checks: Sequence[Check]) -> None:
        """Use newer rows of the run's turns and checks."""
        self._turns, self._checks = turns, checks
        if self._turn is not None:
            self._turn = turns.get(self._turn.number, self._turn)
        if self._check is not None:
            same = (one for one in checks if (one.step, one.started_at) == (self._check.step, self._check.started_at))
            self._check = next(same, self._check)

    def build_start(self) -> TranscriptEntry:
        """Build the first entry; it repeats the manifest, so that the transcript can be read alone."""
        spec = self._run.spec
        metadata = {
            "seq": 1,
            "run_id": self._run.id,
            "repo_id": self._run.repository,
            "workspace": spec.workspace,
            "primary_agent": spec.agent,
            "review_mode": format_review_mode(spec),
            "task": spec.task,
            "proof_command": spec.proof,
            "max_iterations": spec.limits.iterations or 0,
            "done_signal": spec.done_signal or DONE_SIGNAL,
        }
        return TranscriptEntry(
            EntryType.START,
            to_datetime(self._run.created_at),
            self._run.number,
            content=spec.prompt,
            metadata=metadata,
        )

    def build_entries(self, event: Event) -> Iterator[TranscriptEntry]:
        """Build the entries of one event, after those of a turn or check that it shows to have ended."""
        now = _DecodedEvent(event, record_json.decode_object(event.data))
        if event.kind in _CLOSING_KINDS:
            turn, self._turn = self._turn, None
            check, self._check = self._check, None
            if turn is not None:
                yield from self._build_turn_end(now, turn)
            if check is not None:
                yield from self._build_check_end(now, check)
        yield from _BUILDERS.get(event.kind, _EntryBuilder.build_message)(self, now)

    # ends of turns and checks, which have no event

    def _build_turn_end(self, now: _DecodedEvent, turn: Turn) -> Iterator[TranscriptEntry]:
        metadata = {"seq": now.event.seq, "event": "turn.ended", "turn": turn.number, "role": turn.role}
        if turn.ended_at is None:  # its supervisor died
            yield self._build_interruption(now, turn.agent, f"turn {turn.number} was interrupted", metadata)
            return
        span = (turn.started_at, turn.ended_at)
        yield self._build_result(now, turn.agent, turn.last_message, span, metadata | self._turn_metadata(turn))
        signal = self._run.spec.done_signal
        is_done = self._done and turn.failure is None and turn.role == Role.WORK
        if is_done and has_done_signal(turn.last_message, signal):
            yield self._build_signal(now, turn.agent, signal or DONE_SIGNAL, turn.ended_at, metadata)

    def _build_check_end(self, now: _DecodedEvent, check: Check) -> Iterator[TranscriptEntry]:
        metadata = {"seq": now.event.seq, "event": "check.ended", "command": check.command}
        if check.ended_at is None:
            yield self._build_interruption(now, HOST, "the proof was interrupted", metadata)
            return
        metadata["exit_code"] = check.exit_code
        yield self._build_result(now, HOST, check.output, (check.started_at, check.ended_at), metadata)
        verdict = _judge_check(now, check)
        if verdict:
            yield self._build_signal(now, HOST, verdict, check.ended_at, metadata)

    # one method per kind of event that is more than a message

    def build_nothing(self, now: _DecodedEvent) -> Iterator[TranscriptEntry]:
        """The `start` entry or a later one covers this event."""
        del now
        yield from ()

    def build_message(self, now: _DecodedEvent) -> Iterator[TranscriptEntry]:
        """Build a message: text of the agent, or a record of the ledger or the engine."""
        agent = ""
        if now.event.kind.startswith("agent."):
            agent = self._turn.agent if self._turn else self._run.spec.agent
        yield self._build_entry(
            now, EntryType.MESSAGE, agent=agent, content=now.get_text("text", "detail", "reason", "tool")
        )

    def build_error(self, now: _DecodedEvent) -> Iterator[TranscriptEntry]:
        error = now.get_text("text", "detail", "reason") or now.event.kind
        agent = self._turn.agent if self._turn else self._run.spec.agent
        yield self._build_entry(now, EntryType.ERROR, agent=agent, error=error)

    def note_agent_end(self, now: _DecodedEvent) -> Iterator[TranscriptEntry]:
        """Remember it: the `signal` entry follows the result of the turn, unless the turn failed."""
        self._done = "deferred" not in {now.get_text("text"), now.get_text("reason")}
        yield from () if self._done else self.build_message(now)  # deferred: it stopped to wait for a person

    def build_verdict(self, now: _DecodedEvent) -> Iterator[TranscriptEntry]:
        """Build the signal of a reviewer."""
        signal = "PASS" if now.get_text("outcome") == "pass" else "FAIL"
        agent, content = now.get_text("agent"), now.get_text("text")
        yield self._build_entry(now, EntryType.SIGNAL, agent=agent, content=content, signal=signal)

    def build_claimed(self, now: _DecodedEvent) -> Iterator[TranscriptEntry]:
        yield self._build_state_change(now, manifest_state(RunState.RUNNING))

    def build_queued(self, now: _DecodedEvent) -> Iterator[TranscriptEntry]:
        yield self._build_state_change(now, manifest_state(RunState.QUEUED))

    def build_turn_start(self, now: _DecodedEvent) -> Iterator[TranscriptEntry]:
        state = "reviewing" if now.data.get("role") == Role.REVIEW else manifest_state(RunState.RUNNING)
        if self._state != state:
            yield self._build_state_change(now, state)
        if now.get_int("iteration") != self._iteration:
            self._iteration = now.get_int("iteration")
            yield self._build_entry(now, EntryType.ITERATION)

    def build_turn_launch(self, now: _DecodedEvent) -> Iterator[TranscriptEntry]:
        self._turn = self._turns.get(now.get_int("turn"))
        self._done = False
        agent, prompt = (self._turn.agent, self._turn.prompt) if self._turn else (self._run.spec.agent, "")
        yield self._build_entry(now, EntryType.EXECUTE, agent=agent, content=prompt)

    def build_check_launch(self, now: _DecodedEvent) -> Iterator[TranscriptEntry]:
        started = [check for check in self._checks if check.started_at <= now.event.at]
        same = [check for check in started if check.step == now.get_int("step")]  # two may start in one millisecond
        self._check = max(same or started, key=lambda check: check.started_at, default=None)
        yield self._build_entry(now, EntryType.EXECUTE, agent=HOST, content=now.get_text("command"))

    def build_waiting(self, now: _DecodedEvent) -> Iterator[TranscriptEntry]:
        reason = next((reason for reason in WaitReason if reason == now.data.get("reason")), None)
        state = manifest_state(RunState.WAITING, reason)
        yield self._build_state_change(now, state)._replace(content=now.get_text("detail"))

    def build_run_end(self, now: _DecodedEvent) -> Iterator[TranscriptEntry]:
        ended = RunState(now.event.kind.removeprefix("run."))
        if ended is RunState.FAILED:
            error = ": ".join(part for part in (now.get_text("failure"), now.get_text("detail")) if part)
            yield self._build_entry(now, EntryType.ERROR, error=error or "failed")
        state = manifest_state(ended)
        yield self._build_state_change(now, state)
        started_at = self._run.started_at or self._run.created_at
        duration = max(0, now.event.at - started_at) * _NS_PER_MS
        yield self._build_entry(now, EntryType.END, state=state, duration=duration)

    # entries

    def _build_state_change(self, now: _DecodedEvent, state: str) -> TranscriptEntry:
        self._state = state
        return self._build_entry(now, EntryType.STATE, state=state)

    def _build_interruption(
        self, now: _DecodedEvent, agent: str, error: str, metadata: Mapping[str, Any]
    ) -> TranscriptEntry:
        return self._build_entry(now, EntryType.ERROR, agent=agent, error=error)._replace(metadata=metadata)

    def _build_result(
        self, now: _DecodedEvent, agent: str, content: str, span: tuple[int, int], metadata: Mapping[str, Any]
    ) -> TranscriptEntry:
        started_at, ended_at = span
        entry = self._build_entry(now, EntryType.RESULT, agent=agent, content=content)
        duration = max(0, ended_at - started_at) * _NS_PER_MS
        return entry._replace(timestamp=to_datetime(ended_at), duration=duration, metadata=metadata)

    def _build_signal(
        self, now: _DecodedEvent, agent: str, signal: str, at: int, metadata: Mapping[str, Any]
    ) -> TranscriptEntry:
        entry = self._build_entry(now, EntryType.SIGNAL, agent=agent, signal=signal)
        return entry._replace(timestamp=to_datetime(at), metadata=metadata)

    def _build_entry(self, now: _DecodedEvent, kind: EntryType, **values: Any) -> TranscriptEntry:  # noqa: ANN401 - its fields
        shown = values.get("content") or values.get("error")
        data = {name: value for name, value in now.data.items() if name != "text" or value != shown}  # not twice
        metadata = {**data, "seq": now.event.seq, "event": now.event.kind, "actor": now.event.actor}
        at = to_datetime(now.event.at)
        return TranscriptEntry(kind, at, self._run.number, self._iteration, metadata=metadata, **values)

    def _turn_metadata(self, turn: Turn) -> dict[str, Any]:
        return {
            "attempt": turn.attempt,
            "session": turn.session,
            "exit_code": turn.exit_code,
            "failure": turn.failure,
            "detail": turn.detail,
            "stdout_bytes": turn.stdout_bytes,
            "stderr_bytes": turn.stderr_bytes,
            "tokens_input": turn.spent.tokens_input,
            "tokens_output": turn.spent.tokens_output,
            "tokens_cached": turn.spent.tokens_cached,
            "cost_usd": to_usd(compute_turn_cost(self._run.spec, turn)),
        }


# Events that follow only a check that passed; `check.void` comes before the check that replaces a void one.
_PASSING_KINDS = frozenset({"run.succeeded", "check.started", "publishing.started"})
_CHECK_FAILURES = frozenset({Failure.PROOF, Failure.LEARNINGS})


def _judge_check(now: _DecodedEvent, check: Check) -> str:
    """Return PASS or FAIL; empty for a check that was stopped, whatever its exit code."""
    if now.event.kind in _PASSING_KINDS or (now.event.kind == "turn.started" and now.data.get("role") == Role.REVIEW):
        return "PASS"
    failed = now.event.kind in {"run.failed", "iteration.ended"} and now.data.get("failure") in _CHECK_FAILURES
    return "FAIL" if failed and check.exit_code is not None else ""


_BuilderMethod = Callable[[_EntryBuilder, _DecodedEvent], Iterator[TranscriptEntry]]
_BUILDERS: dict[str, _BuilderMethod] = {
    "run.created": _EntryBuilder.build_nothing,
    "run.claimed": _EntryBuilder.build_claimed,
    "run.queued": _EntryBuilder.build_queued,
    "run.waiting": _EntryBuilder.build_waiting,
    "run.succeeded": _EntryBuilder.build_run_end,
    "run.failed": _EntryBuilder.build_run_end,
    "run.cancelled": _EntryBuilder.build_run_end,
    "turn.started": _EntryBuilder.build_turn_start,
    "turn.launched": _EntryBuilder.build_turn_launch,
    "check.started": _EntryBuilder.build_nothing,
    "check.launched": _EntryBuilder.build_check_launch,
    "review.verdict": _EntryBuilder.build_verdict,
    "agent.error": _EntryBuilder.build_error,
    "agent.limit": _EntryBuilder.build_error,
    "agent.end": _EntryBuilder.note_agent_end,
}
# One of these is always the first event after a turn or a check has ended, or was found dead.
_CLOSING_KINDS = frozenset(
    {
        "run.claimed", "recovery.started", "turn.started", "check.started", "run.waiting", "run.succeeded",
        "run.failed", "run.cancelled", "review.undone", "review.verdict", "iteration.ended", "check.void",
        "check.dropped", "publishing.started",
    }
)  # fmt: skip
