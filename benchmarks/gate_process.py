"""The gate's HTTP server in its own process, as in a supervisor: with a real ledger, or without one.

`python -m benchmarks.gate_process FOLDER` reads lines: `open NAME` opens a gate with that ledger and prints its
address, `close` closes it, `waits NAME` prints how long the agent waited for the ledger. It is a separate process
because the fake model would compete with it.
"""

from __future__ import annotations

import itertools
import os
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NoReturn

from benchmarks import samples
from benchmarks.process import LineProcess
from benchmarks.report import format_duration
from jackline import clock
from jackline.agents.claude.claude_hooks import HOOKS
from jackline.domain.states import CallClass, Decision, RunState
from jackline.engine.call_ledger import CallLedger, CallRequest, CallResult, GateAnswer
from jackline.engine.gate_http import HttpGate
from jackline.engine.hook_handler import HookLedger
from jackline.engine.probes.prober import Prober
from jackline.policy.rules import Rule
from jackline.store.open import open_store
from jackline.store.store import Store

TOKEN = "the-token-of-the-benchmark"  # noqa: S105 - it is valid for a gate of this benchmark only
AGENT = "claude"
YES, READ, EFFECT, STORED = "yes", "read", "effect", "stored"
# An effect that does what the yardstick does: nothing.
SEND = Rule("send", "", CallClass.EFFECT, command=("true", "send"), key=("1",), target="mail:{1}")
_numbers = itertools.count(1)


def plain() -> str:
    """A command that the built-in policy calls a read."""
    return "true"


def effect() -> str:
    """An effect that was never requested before."""
    return f"true send {next(_numbers)}"


def repeated() -> str:
    """An effect that already has a result."""
    return "true send 0"


class GateProcess(LineProcess):
    """The process with the gates."""

    def __init__(self, folder: str) -> None:
        super().__init__("benchmarks.gate_process", folder)

    @contextmanager
    def open_gate(self, ledger: str) -> Iterator[str]:
        """Open a gate with this ledger and yield its address."""
        address = self.ask(f"open {ledger}")
        yield address
        if trouble := self.ask("close"):
            raise RuntimeError(trouble)


class AllowAll:
    """Allows everything and writes nothing: the rest is the agent's own work for a hook, and HTTP."""

    def prepare(self, request: CallRequest) -> GateAnswer:
        return GateAnswer(Decision.ALLOW, request.agent_call)

    def finish(self, result: CallResult) -> None:
        """Do nothing."""

    def stop_for_other_input(self, call_id: str, made: object) -> None:
        """Do nothing."""


@dataclass
class TimedLedger:
    """A ledger that measures how long the agent waits for it."""

    ledger: CallLedger
    prepared: list[float] = field(default_factory=list)
    finished: list[float] = field(default_factory=list)

    def prepare(self, request: CallRequest) -> GateAnswer:
        begin = time.perf_counter()
        answer = self.ledger.prepare(request)
        self.prepared.append(time.perf_counter() - begin)
        return answer

    def finish(self, result: CallResult) -> None:
        begin = time.perf_counter()
        self.ledger.finish(result)
        self.finished.append(time.perf_counter() - begin)

    def stop_for_other_input(self, call_id: str, made: object) -> None:
        self.ledger.stop_for_other_input(call_id, made)

    def describe_waits(self) -> str:
        """Format the medians of the two waits."""
        after = format_duration(statistics.median(self.finished)) if self.finished else "nothing"
        return f"{format_duration(statistics.median(self.prepared))} before the call, {after} after it"


def main(folder: str) -> None:
    store = open_store(os.path.join(folder, "state.sqlite"), create=True)
    ledgers = {name: TimedLedger(_build_ledger(store, folder)) for name in (READ, EFFECT, STORED)}
    settle(ledgers[STORED].ledger)
    print("ready", flush=True)
    gates: list[HttpGate] = []
    errors: list[BaseException] = []
    for line in sys.stdin:
        word, _, name = line.strip().partition(" ")
        match word:
            case "open":
                gate = HttpGate(ledgers.get(name, AllowAll()), TOKEN, HOOKS, errors.append)
                gate.open()
                gates.append(gate)
                answer = gate.address
            case "close":
                gates.pop().close()
                answer = " ".join(map(repr, errors))
            case _:
                answer = ledgers[name].describe_waits()
        print(answer, flush=True)
    store.close()


def settle(ledger: HookLedger) -> None:
    """Record the effect once, so that every call in the benchmark is a repeat."""
    answer = ledger.prepare(CallRequest("Bash", {"command": repeated()}, "http"))
    ledger.finish(CallResult(answer.call_id, ok=True, output="sent"))


def _build_ledger(store: Store, folder: str) -> CallLedger:
    """The ledger of a claimed run, as in a live run."""
    at = clock.wall_ms()
    wanted = samples.SampleSpec(RunState.RUNNING, os.path.join(folder, "repository"), AGENT)
    lease, run = samples.claim_run(store, samples.create_run(store, wanted, at, rules=(SEND,)), at)

    def stop(_why: object, detail: str) -> None:
        raise AssertionError(f"the gate stopped the benchmark: {detail}")

    def warden() -> NoReturn:
        raise AssertionError("no call of the benchmark is in doubt, so nothing is probed")

    prober = Prober(run.spec, {}, 1.0, warden)
    return CallLedger(
        store, lease, run, prober, now=clock.wall_ms, new_id=lambda: samples.new_id(clock.wall_ms()), stop=stop
    )


if __name__ == "__main__":
    main(sys.argv[1])
