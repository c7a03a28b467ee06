"""One turn of an agent: launch, capture every byte, hear what it says, report its end. It never decides."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from jackline import faults
from jackline.clock import boot_ms
from jackline.domain.budget import Spent, exhausted
from jackline.domain.events import Fact
from jackline.domain.health import health_of, resting
from jackline.domain.meter import Meter, minus
from jackline.domain.outcome import Outcome
from jackline.domain.signals import Stop, TurnEnded
from jackline.domain.states import DEFERRED, Failure
from jackline.engine import threads
from jackline.engine.attempt import Signal
from jackline.engine.doors import hooks_of
from jackline.engine.masked import MaskedFile
from jackline.engine.onlooker import Onlooker
from jackline.engine.review import open_cases
from jackline.engine.stream import LineSplitter
from jackline.engine.witness import Witness
from jackline.errors import SessionTaken
from jackline.named import NamedTuple
from jackline.store.contract import Change

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.domain.adapter import Adapter, Launch
    from jackline.domain.changes import Changes
    from jackline.domain.outcome import Exit, Heard, Usage
    from jackline.domain.records import Lease, Run, Turn
    from jackline.engine.child import Child, Chunk
    from jackline.engine.launching import Plan
    from jackline.engine.ledger import Ledger
    from jackline.engine.process import Warden
    from jackline.engine.stream import Line
    from jackline.store.contract import Store

_FLUSH_S = 0.25
_BATCH = 100
_MOST_FACTS = 5_000  # per turn; what an agent says beyond that stands in the raw transcript only
_TEXT = 4_000
_SHORT = 200
_TELLING = frozenset({"end", "error", "limit", "session"})
_AT_ONCE = frozenset({"session", "limit", "end", "error"})
_TAIL_BYTES = 8_192  # of stderr, where a CLI writes why it ends
_MOST_TELLING = 100  # the last ones tell how a turn ended; an agent that repeats itself must not fill our memory


class Crew(NamedTuple):
    """Whom a turn works with."""

    store: Store
    lease: Lease
    run: Run
    adapter: Adapter
    ledger: Ledger
    now: Callable[[], int]
    post: Callable[[Signal | BaseException], None]
    stop: Callable[[Stop, str], None]
    survey: Callable[[], Changes | None]  # what the run has changed in its repository; None: git cannot say


class TurnJob:
    """A turn under way: one thread listens to the agent until it is gone, and then reports its end."""

    def __init__(self, crew: Crew, planned: Plan, folder: str) -> None:
        """The turn is written down already; nothing is started yet."""
        turn = planned.turn
        self._crew, self._turn = crew, turn
        self._resumed = turn.session if planned.request.resume else None
        self._knows_session = planned.request.resume or bool(planned.request.fork_of)
        self._strayed = ""  # the session that the agent began instead of the one it was told to resume
        base = os.path.join(folder, "turns", f"{turn.number:04d}-{turn.role}")
        os.makedirs(os.path.dirname(base), mode=0o700, exist_ok=True)
        self._redactor = crew.store.redactor
        self._raw = {name: MaskedFile(f"{base}.{name}", self._redactor.values) for name in ("stdout", "stderr")}
        self._splitter = LineSplitter()
        self._facts: list[Fact] = []
        self._kept = 0
        self._telling: list[Heard] = []
        self._tail = b""
        self._meter = Meter(planned.before)
        self._onlooker = _onlooker(crew)
        self._raw_lines = 0
        self._in_pieces = False
        self._owns = True  # the session that it names
        self.last_output = boot_ms()
        self.over = False  # the agent is gone: no clock runs while its end is looked into
        self.child: Child | None = None

    def start(self, warden: Warden, launch: Launch, env: dict[str, str], workspace: str) -> None:
        """Spawn the agent and begin to listen."""
        faults.reach("turn.spawning")
        self.child = warden.spawn(launch.argv, env, workspace, stdin=launch.stdin)
        faults.reach("turn.spawned")
        self.last_output = boot_ms()
        threads.start("turn", partial(self._attend, self.child), self._crew.post)

    def give_up(self) -> None:
        """Nothing was started, and nothing will be."""
        for raw in self._raw.values():
            raw.close()

    def _attend(self, child: Child) -> None:
        try:
            self._listen(child)
            exit_ = child.wait()
            self.over = True
            faults.reach("turn.exited")
            self._crew.post(self._ended(exit_))
        finally:
            child.close()
            self.give_up()

    def _listen(self, child: Child) -> None:
        while not child.drained:
            chunks = child.read(_FLUSH_S if self._facts else None)
            if not chunks:
                self._flush()
            for chunk in chunks:
                self._take(chunk)
        self._raw["stdout"].finish()
        self._hear_all(self._splitter.end())
        self._tell_tail(self._raw["stderr"].finish())
        self._flush()

    def _take(self, chunk: Chunk) -> None:
        self.last_output = boot_ms()
        covered = self._raw[chunk.source].write(chunk.data)
        if chunk.source == "stdout":  # heard as it was said: keys of calls are made from it
            self._hear_all(self._splitter.feed(chunk.data))
        else:
            self._tell_tail(covered)

    def _tell_tail(self, covered: bytes) -> None:
        self._tail = (self._tail + covered)[-_TAIL_BYTES:]

    def _hear_all(self, lines: list[Line]) -> None:
        for line in lines:
            if line.truncated:
                self._raw_lines += 1
            else:
                self._hear(line.data, line.offset)

    def _hear(self, line: bytes, offset: int) -> None:
        for heard in self._crew.adapter.parse(line):
            if heard.kind == "raw":
                self._raw_lines += 1
            elif heard.usage is not None:
                self._keep(self._spend(heard), offset)
            else:
                self._note(heard)
                self._keep(heard, offset)

    def _note(self, heard: Heard) -> None:
        """What the engine itself must know of a line."""
        if heard.kind in _TELLING:
            self._telling = [*self._telling, heard][-_MOST_TELLING:]
        self._read(heard)
        if heard.kind == "session":
            self._meet(heard.text)
        if self._onlooker is not None:
            self._onlooker.see(heard)
        elif heard.kind == "call.started" and not self._crew.ledger.knows(str(heard.data.get("call", ""))):
            self._crew.stop(Stop.UNGATED, f"{heard.data.get('tool')} ran without asking the gate")

    def _read(self, heard: Heard) -> None:
        """Keep the last message; some agents tell it in pieces, one line after the other."""
        is_piece = heard.kind == "message" and heard.data.get("delta") is True
        if heard.kind == "message":
            before = self._turn.last_message if is_piece and self._in_pieces else ""
            self._turn = self._turn._replace(last_message=self._cut(before + heard.text))
        self._in_pieces = is_piece

    def _cut(self, text: str) -> str:
        """Redacted first where it is too long: half a secret would not be known as one."""
        return text if len(text) <= _TEXT else self._redactor.redact(text)[:_TEXT]

    def _meet(self, session: str) -> None:
        """An agent that silently begins another session than it was told to knows nothing of the task: end it."""
        if self._resumed is not None and session != self._resumed:
            self._strayed = session
            self._meter = Meter()  # its totals are not those of the session that was asked for
            if self.child is not None:
                self.child.kill()
            return
        self._turn = self._turn._replace(session=session)

    def _spend(self, heard: Heard) -> Heard:
        """Charge a figure; what is written down is by how much it moved the turn's account."""
        before = self._meter.value
        used = self._meter.hear(heard)
        spec, life = self._crew.run.spec, self._crew.run.life
        # Steps and iterations are counted when they begin: only what an agent reports can run out in the middle.
        limits = spec.limits._replace(wall_ms=None, iterations=None, steps=None, calls=None)
        spent = exhausted(limits, life.spent.plus(**_amounts(used)))
        if spent:
            self._crew.stop(Stop.BUDGET, f"budget spent: {spent}")
        return heard._replace(usage=minus(used, before))

    def _keep(self, heard: Heard, offset: int) -> None:
        self._kept += 1
        full = self._kept > _MOST_FACTS
        if not full:
            self._facts.append(_fact(heard._replace(text=self._cut(heard.text)), offset))
        # What was used and which session it is must not wait for the turn's end, however much was said before.
        due = heard.kind == "session" or self._kept % _BATCH == 0
        if heard.kind in _AT_ONCE or len(self._facts) >= _BATCH or (full and due):
            self._flush(always=full and due)

    def _flush(self, *, always: bool = False) -> None:
        facts, self._facts = tuple(self._facts), []
        if facts or always:
            change = Change(self._crew.now(), facts, turn=self._current(), session=self._session(), actor="agent")
            try:
                self._crew.store.write(self._crew.lease, change)
            except SessionTaken:  # an agent that counts its sessions from one: this one is not ours to go on with
                self._owns = False
                self._crew.store.write(self._crew.lease, change._replace(session=None))

    def _session(self) -> tuple[str, str] | None:
        return (self._turn.agent, self._turn.session) if self._turn.session and self._owns else None

    def _current(self) -> Turn:
        return self._turn._replace(
            raw_lines=self._raw_lines,
            stdout_bytes=self._raw["stdout"].size,
            stderr_bytes=self._raw["stderr"].size,
            spent=Spent(**_amounts(self._meter.value)),
        )

    def _ended(self, exit_: Exit | None) -> Signal:
        changes = self._crew.survey()
        outcome = self._with_commit(self._outcome(exit_), changes)
        at = self._crew.now()
        turn = self._current()._replace(
            ended_at=at,
            exit_code=exit_.code if exit_ else None,
            failure=outcome.failure,
            detail=DEFERRED if outcome.deferred else outcome.detail,
        )
        unfinished = len(self._crew.store.open_calls(self._crew.run.id))
        session = (turn.agent, "") if outcome.session_lost else self._session()
        health = health_of(turn.agent, outcome, at)
        known = [one for one in self._crew.store.health() if one.agent != turn.agent]
        tired = resting([*known, health] if health else known, at)
        left = len(self._crew.ledger.replay)
        cases = len(open_cases(self._crew.store, self._crew.run.id)) if _is_well(outcome) else 0
        ended = TurnEnded(at, outcome, self._meter.value, unfinished, tired, left, cases)
        return Signal(ended, turn=turn, session=session, health=health, changes=changes)

    def _with_commit(self, outcome: Outcome, changes: Changes | None) -> Outcome:
        if not _is_well(outcome) or not self._crew.run.spec.requires_commit:
            return outcome
        if changes is None:
            return Outcome(Failure.NO_COMMIT, "git could not say whether this run has made a commit")
        if changes.commits:
            return outcome
        return Outcome(Failure.NO_COMMIT, "the agent says it is done, and this run has made no commit")

    def _outcome(self, exit_: Exit | None) -> Outcome:
        if exit_ is None:
            return _LOST
        if self._strayed:
            detail = f"it began session {self._strayed} instead of {self._resumed}"
            return Outcome(Failure.AGENT_ERROR, detail, session_lost=True)
        tail = self._tail.decode("utf-8", "replace")
        outcome = self._crew.adapter.classify(exit_, tuple(self._telling), tail)
        # Only a session that was asked for can be lost: else a fresh one would follow a fresh one without end.
        return outcome if self._knows_session else outcome._replace(session_lost=False)


def _is_well(outcome: Outcome) -> bool:
    return outcome.failure is None and outcome.waits is None and not outcome.session_lost


_LOST = Outcome(Failure.CRASHED, "the agent's end was not seen")


def _onlooker(crew: Crew) -> Onlooker | Witness | None:
    """Who compares the output with the ledger; an agent at the socket uses our own names for its calls."""
    if hooks_of(crew.adapter) is not None:
        return Witness(crew.ledger, crew.stop)
    return None if crew.adapter.declaration.gate == "enforced" else Onlooker(crew.ledger)


def _amounts(usage: Usage) -> dict[str, int]:
    return {
        "tokens_input": usage.tokens_input,
        "tokens_output": usage.tokens_output,
        "tokens_cached": usage.tokens_cached,
        "usd_micros": usage.usd_micros,
    }


def _fact(heard: Heard, offset: int) -> Fact:
    # The ledger keeps a call's input and output, the transcript keeps every byte: an event only points there.
    data = {name: value for name, value in heard.data.items() if _is_small(value)}
    data["offset"] = offset
    if heard.text:
        data["text"] = heard.text
    if heard.usage is not None:
        data.update(_amounts(heard.usage))
    return Fact(f"agent.{heard.kind}", data)


def _is_small(value: object) -> bool:
    return isinstance(value, int | float) or (isinstance(value, str) and len(value) <= _SHORT)
