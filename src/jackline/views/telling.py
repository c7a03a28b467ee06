"""What each event of a run becomes in its transcript. Pure: one event at a time, no files, no store.

Turns and checks end without an event of their own; their ends are told from their rows, where the next event
shows that they are over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jackline.domain.events import Event
from jackline.domain.records import Check, Run, Turn
from jackline.domain.states import Failure, Role, RunState, WaitReason
from jackline.domain.turns import turn_cost
from jackline.formatting import to_datetime, to_usd
from jackline.views import record_json
from jackline.views.entry import EntryType, TranscriptEntry
from jackline.views.manifest import DONE_SIGNAL, SINGLE, manifest_state

HOST = "host"  # who runs a check: never the agent
_NS = 1_000_000


def fold(
    run: Run, turns: Mapping[int, Turn], checks: Sequence[Check], events: Iterable[Event]
) -> Iterator[TranscriptEntry]:
    """The entries that a run's events stand for, oldest first."""
    teller = _Teller(run, turns, checks)
    yield teller.start()
    for event in events:
        yield from teller.tell(event)


@dataclass(frozen=True, slots=True)
class _Moment:
    """One event with its data read."""

    event: Event
    data: Mapping[str, Any]

    def text(self, *names: str) -> str:
        """The first of these that is a text and not empty."""
        return next((found for name in names if isinstance(found := self.data.get(name), str) and found), "")

    def whole(self, name: str) -> int:
        value = self.data.get(name)
        return value if isinstance(value, int) else 0


class _Teller:
    """Knows what is open while the events go by: the iteration, the turn or check under way, the state."""

    def __init__(self, run: Run, turns: Mapping[int, Turn], checks: Sequence[Check]) -> None:
        self._run, self._turns, self._checks = run, turns, checks
        self._iteration = 0
        self._state = ""
        self._turn: Turn | None = None
        self._check: Check | None = None
        self._done = False  # whether the agent of this turn said so

    def start(self) -> TranscriptEntry:
        """The run begins: the same words as its manifest, so that the transcript can be read alone."""
        spec = self._run.spec
        metadata = {
            "seq": 1,
            "run_id": self._run.id,
            "repo_id": self._run.repository,
            "workspace": spec.workspace,
            "primary_agent": spec.agent,
            "review_mode": SINGLE,
            "task": spec.task,
            "proof_command": spec.proof,
            "max_iterations": spec.limits.iterations or 0,
            "done_signal": DONE_SIGNAL,
        }
        return TranscriptEntry(
            EntryType.START,
            to_datetime(self._run.created_at),
            self._run.number,
            content=spec.prompt,
            metadata=metadata,
        )

    def tell(self, event: Event) -> Iterator[TranscriptEntry]:
        """What one event adds; what was under way is told first if this event shows that it is over."""
        now = _Moment(event, record_json.decode_object(event.data))
        if event.kind in _CLOSING:
            yield from self._close(now)
        yield from _TELLERS.get(event.kind, _Teller.said)(self, now)

    # what ends without an event of its own

    def _close(self, now: _Moment) -> Iterator[TranscriptEntry]:
        turn, self._turn = self._turn, None
        check, self._check = self._check, None
        if turn is not None:
            yield from self._turn_over(now, turn)
        if check is not None:
            yield from self._check_over(now, check)

    def _turn_over(self, now: _Moment, turn: Turn) -> Iterator[TranscriptEntry]:
        metadata = {"seq": now.event.seq, "event": "turn.ended", "turn": turn.number, "role": turn.role}
        if turn.ended_at is None:  # its attempt died with it
            yield self._cut_off(now, turn.agent, f"turn {turn.number} was cut off", metadata)
            return
        span = (turn.started_at, turn.ended_at)
        yield self._result(now, turn.agent, turn.last_message, span, metadata | self._turn_values(turn))
        if self._done and turn.failure is None:
            yield self._signal(now, turn.agent, DONE_SIGNAL, turn.ended_at, metadata)

    def _check_over(self, now: _Moment, check: Check) -> Iterator[TranscriptEntry]:
        metadata = {"seq": now.event.seq, "event": "check.ended", "command": check.command}
        if check.ended_at is None:
            yield self._cut_off(now, HOST, "the proof was cut off", metadata)
            return
        metadata["exit_code"] = check.exit_code
        yield self._result(now, HOST, check.output, (check.started_at, check.ended_at), metadata)
        verdict = _verdict(now, check)
        if verdict:
            yield self._signal(now, HOST, verdict, check.ended_at, metadata)

    # one method for each kind of event that is more than a message

    def nothing(self, now: _Moment) -> Iterator[TranscriptEntry]:
        """The `start` entry has told it, or an entry that follows will."""
        del now
        yield from ()

    def said(self, now: _Moment) -> Iterator[TranscriptEntry]:
        """Everything else: what the agent said, and what the ledger and the engine wrote down."""
        agent = self._run.spec.agent if now.event.kind.startswith("agent.") else ""
        yield self._entry(now, EntryType.MESSAGE, agent=agent, content=now.text("text", "detail", "reason", "tool"))

    def failed_saying(self, now: _Moment) -> Iterator[TranscriptEntry]:
        error = now.text("text", "detail", "reason") or now.event.kind
        yield self._entry(now, EntryType.ERROR, agent=self._run.spec.agent, error=error)

    def agent_done(self, now: _Moment) -> Iterator[TranscriptEntry]:
        """The `signal` entry follows the turn's result, if that is a good one."""
        self._done = "deferred" not in {now.text("text"), now.text("reason")}
        yield from () if self._done else self.said(now)  # deferred: it stopped to wait for a person

    def claimed(self, now: _Moment) -> Iterator[TranscriptEntry]:
        yield self._moved(now, manifest_state(RunState.RUNNING))

    def woken(self, now: _Moment) -> Iterator[TranscriptEntry]:
        yield self._moved(now, manifest_state(RunState.QUEUED))

    def turn_started(self, now: _Moment) -> Iterator[TranscriptEntry]:
        state = "reviewing" if now.data.get("role") == Role.REVIEW else manifest_state(RunState.RUNNING)
        if self._state != state:
            yield self._moved(now, state)
        if now.whole("iteration") != self._iteration:
            self._iteration = now.whole("iteration")
            yield self._entry(now, EntryType.ITERATION)

    def turn_launched(self, now: _Moment) -> Iterator[TranscriptEntry]:
        self._turn = self._turns.get(now.whole("turn"))
        self._done = False
        agent, prompt = (self._turn.agent, self._turn.prompt) if self._turn else (self._run.spec.agent, "")
        yield self._entry(now, EntryType.EXECUTE, agent=agent, content=prompt)

    def check_launched(self, now: _Moment) -> Iterator[TranscriptEntry]:
        begun = [check for check in self._checks if check.started_at <= now.event.at]
        same = [check for check in begun if check.step == now.whole("step")]  # two may begin in one millisecond
        self._check = max(same or begun, key=lambda check: check.started_at, default=None)
        yield self._entry(now, EntryType.EXECUTE, agent=HOST, content=now.text("command"))

    def waiting(self, now: _Moment) -> Iterator[TranscriptEntry]:
        state = manifest_state(RunState.WAITING, _wait_reason(now))
        yield replace(self._moved(now, state), content=now.text("detail"))

    def ended(self, now: _Moment) -> Iterator[TranscriptEntry]:
        ended = RunState(now.event.kind.removeprefix("run."))
        if ended is RunState.FAILED:
            error = ": ".join(part for part in (now.text("failure"), now.text("detail")) if part)
            yield self._entry(now, EntryType.ERROR, error=error or "failed")
        state = manifest_state(ended)
        yield self._moved(now, state)
        begun = self._run.started_at or self._run.created_at
        duration = max(0, now.event.at - begun) * _NS
        yield self._entry(now, EntryType.END, state=state, duration=duration)

    # entries

    def _moved(self, now: _Moment, state: str) -> TranscriptEntry:
        self._state = state
        return self._entry(now, EntryType.STATE, state=state)

    def _cut_off(self, now: _Moment, agent: str, error: str, metadata: Mapping[str, Any]) -> TranscriptEntry:
        return replace(self._entry(now, EntryType.ERROR, agent=agent, error=error), metadata=metadata)

    def _result(
        self, now: _Moment, agent: str, content: str, span: tuple[int, int], metadata: Mapping[str, Any]
    ) -> TranscriptEntry:
        begun, ended = span
        entry = self._entry(now, EntryType.RESULT, agent=agent, content=content)
        duration = max(0, ended - begun) * _NS
        return replace(entry, timestamp=to_datetime(ended), duration=duration, metadata=metadata)

    def _signal(self, now: _Moment, agent: str, signal: str, at: int, metadata: Mapping[str, Any]) -> TranscriptEntry:
        entry = self._entry(now, EntryType.SIGNAL, agent=agent, signal=signal)
        return replace(entry, timestamp=to_datetime(at), metadata=metadata)

    def _entry(self, now: _Moment, kind: EntryType, **values: Any) -> TranscriptEntry:  # noqa: ANN401 - its fields
        told = values.get("content") or values.get("error")
        data = {name: value for name, value in now.data.items() if name != "text" or value != told}  # said once
        metadata = {**data, "seq": now.event.seq, "event": now.event.kind, "actor": now.event.actor}
        at = to_datetime(now.event.at)
        return TranscriptEntry(kind, at, self._run.number, self._iteration, metadata=metadata, **values)

    def _turn_values(self, turn: Turn) -> dict[str, Any]:
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
            "cost_usd": to_usd(turn_cost(self._run.spec, turn)),
        }


_JUDGED = frozenset({Failure.PROOF, Failure.LEARNINGS})


def _verdict(now: _Moment, check: Check) -> str:
    """PASS or FAIL if the host found it out; a proof that was stopped says nothing, whatever its exit."""
    if now.event.kind in {"run.succeeded", "check.started"}:  # a second check follows only one that passed
        return "PASS"
    judged = now.event.kind == "run.failed" and now.data.get("failure") in _JUDGED
    return "FAIL" if judged and check.exit_code is not None else ""


def _wait_reason(now: _Moment) -> WaitReason | None:
    return next((reason for reason in WaitReason if reason == now.data.get("reason")), None)


_Tell = Callable[[_Teller, _Moment], Iterator[TranscriptEntry]]
_TELLERS: dict[str, _Tell] = {
    "run.created": _Teller.nothing,
    "run.claimed": _Teller.claimed,
    "run.queued": _Teller.woken,
    "run.waiting": _Teller.waiting,
    "run.succeeded": _Teller.ended,
    "run.failed": _Teller.ended,
    "run.cancelled": _Teller.ended,
    "turn.started": _Teller.turn_started,
    "turn.launched": _Teller.turn_launched,
    "check.started": _Teller.nothing,
    "check.launched": _Teller.check_launched,
    "agent.error": _Teller.failed_saying,
    "agent.limit": _Teller.failed_saying,
    "agent.end": _Teller.agent_done,
}
# Each of these is the first thing written down after a turn or a check has ended, or was found dead.
_CLOSING = frozenset(
    {
        "run.claimed", "recovery.started", "turn.started", "check.started", "run.waiting", "run.succeeded",
        "run.failed", "run.cancelled",
    }
)  # fmt: skip
