"""One attempt, from claim to end: take an input, decide, store, execute. Read this first.

The run machine decides, the store remembers, the runtime acts. Nothing is executed before it is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from jackline.domain.events import canonical
from jackline.domain.machine_state import MachineState, StepResult
from jackline.domain.notices import build_notice
from jackline.domain.records import Checkpoint
from jackline.domain.run_inputs import Claimed, RunCheck, StartTurn
from jackline.domain.run_machine import step
from jackline.domain.states import WaitReason
from jackline.errors import CancelWanted, QuestionsAnswered
from jackline.named import NamedTuple
from jackline.store.models import RunChange

if TYPE_CHECKING:
    from jackline.domain.agent_health import AgentHealth
    from jackline.domain.changes import Changes
    from jackline.domain.events import Fact
    from jackline.domain.pull_request import Feedback, PullRequest
    from jackline.domain.records import Check, Lease, Run, SessionUse, Turn
    from jackline.domain.review_records import Finding, Verdict
    from jackline.domain.run_inputs import MachineInput, RunCommand
    from jackline.store.store import Store


class RunInput(NamedTuple):
    """An input of the run machine, with the records to store in the same transaction."""

    input: MachineInput
    turn: Turn | None = None
    check: Check | None = None
    session: SessionUse | None = None
    health: AgentHealth | None = None
    changes: Changes | None = None
    day_budget: int = 0  # of a turn that ended
    verdict: Verdict | None = None
    findings: tuple[Finding, ...] = ()  # new ones, and those that have changed
    facts: tuple[Fact, ...] = ()  # stored before those of the decision
    pull_request: PullRequest | None = None
    feedback: tuple[Feedback, ...] = ()


class Runtime(Protocol):
    """Everything outside the run machine and the store: processes, clocks, sockets; or a simulation of them."""

    def now(self) -> int:
        """Wall clock, milliseconds."""
        ...

    def new_id(self) -> str:
        """A fresh id."""
        ...

    def execute(self, command: RunCommand, run: Run) -> None:
        """Start a command; its result comes as a later input."""
        ...

    def next_input(self) -> RunInput:
        """Wait for the next input."""
        ...

    def account_time(self) -> None:
        """Account for the time spent, just before the attempt ends."""
        ...


def run_attempt(store: Store, lease: Lease, run: Run, runtime: Runtime) -> Run:
    """Work on a claimed run until it ends or waits; return it in that state."""
    state = MachineState(run_id=run.id, spec=run.spec, status=run.status)
    received = RunInput(Claimed(runtime.now()))
    while True:
        decided = step(state, received.input)
        if decided.ended:
            runtime.account_time()
        if decided.facts:
            try:
                run = store.leases.write_change(lease, _build_change(decided, received, runtime))
            except CancelWanted:  # requested meanwhile: decide again with it
                state = state._replace(status=state.status._replace(cancel_requested=True))
                continue
            except QuestionsAnswered:
                state = state._replace(answered=True)
                continue
        if decided.ended:
            return run
        for command in decided.commands:
            runtime.execute(command, run)
        state = decided.state._replace(status=run.status)
        received = runtime.next_input()


def _build_change(decided: StepResult, received: RunInput, runtime: Runtime) -> RunChange:
    at, state = runtime.now(), decided.state
    return RunChange(
        at=at,
        facts=(*received.facts, *decided.facts),
        status=state.status,
        turn=received.turn,
        check=received.check,
        session=received.session,
        health=received.health,
        changes=received.changes,
        checkpoint=_build_checkpoint(decided, at),
        notice=build_notice(runtime.new_id(), state.run_id, state.spec, state.status, at),
        asks=decided.asks,
        day_budget=received.day_budget,
        iteration=decided.iteration,
        verdict=received.verdict,
        findings=received.findings,
        pull_request=received.pull_request,
        feedback=received.feedback,
    )


def _build_checkpoint(decided: StepResult, at: int) -> Checkpoint | None:
    """A checkpoint at each boundary between steps, and at the end of the attempt."""
    if not decided.ended and not any(isinstance(command, StartTurn | RunCheck) for command in decided.commands):
        return None
    status = decided.state.status
    return Checkpoint(
        run_id=decided.state.run_id,
        step=status.step,
        kind="interrupt" if status.reason is WaitReason.PAUSED else "boundary",
        status=canonical(status.to_dict()),
        cursor=canonical({"turn": status.turn, "iteration": status.iteration, "goal": status.goal}),
        at=at,
    )
