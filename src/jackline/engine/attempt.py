"""One attempt, from claim to end: take an input, decide, store, execute. Read this first.

The run machine decides, the store remembers, the runtime acts. Nothing is executed before it is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from jackline.domain.events import canonical
from jackline.domain.notices import build_notice
from jackline.domain.records import Checkpoint
from jackline.domain.run_inputs import Claimed, RunCheck, StartTurn
from jackline.domain.run_machine import MachineState, StepResult, step
from jackline.domain.states import WaitReason
from jackline.errors import CancelWanted
from jackline.named import NamedTuple
from jackline.store.models import RunChange

if TYPE_CHECKING:
    from jackline.domain.agent_health import AgentHealth
    from jackline.domain.changes import Changes
    from jackline.domain.records import Check, Lease, Run, Turn
    from jackline.domain.run_inputs import MachineInput, RunCommand
    from jackline.store.store import Store


class RunInput(NamedTuple):
    """An input of the run machine, with the records to store in the same transaction."""

    input: MachineInput
    turn: Turn | None = None
    check: Check | None = None
    session: tuple[str, str] | None = None
    health: AgentHealth | None = None
    changes: Changes | None = None


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


def run_attempt(store: Store, lease: Lease, run: Run, world: Runtime) -> Run:
    """Work on a claimed run until it ends or waits; return it in that state."""
    state = MachineState(run_id=run.id, spec=run.spec, life=run.status)
    signal = RunInput(Claimed(world.now()))
    while True:
        decided = step(state, signal.input)
        if decided.ended:
            world.account_time()
        if decided.facts:
            try:
                run = store.leases.write_change(lease, _build_change(decided, signal, world))
            except CancelWanted:  # requested meanwhile: decide again with it
                state = state._replace(life=state.life._replace(cancel_requested=True))
                continue
        if decided.ended:
            return run
        for command in decided.commands:
            world.execute(command, run)
        state = decided.state._replace(life=run.status)
        signal = world.next_input()


def _build_change(decided: StepResult, signal: RunInput, world: Runtime) -> RunChange:
    at = world.now()
    return RunChange(
        at=at,
        facts=decided.facts,
        life=decided.state.life,
        turn=signal.turn,
        check=signal.check,
        session=signal.session,
        health=signal.health,
        changes=signal.changes,
        checkpoint=_build_checkpoint(decided, at),
        notice=build_notice(world.new_id(), decided.state.run_id, decided.state.spec, decided.state.life, at),
    )


def _build_checkpoint(decided: StepResult, at: int) -> Checkpoint | None:
    """A checkpoint at each boundary between steps, and at the end of the attempt."""
    boundary = any(isinstance(command, StartTurn | RunCheck) for command in decided.commands)
    if not boundary and not decided.ended:
        return None
    life = decided.state.life
    kind = "interrupt" if life.reason is WaitReason.PAUSED else "boundary"
    cursor = canonical({"turn": life.turn, "iteration": life.iteration, "goal": life.goal})
    whole = canonical(life.to_dict())
    return Checkpoint(run_id=decided.state.run_id, step=life.step, kind=kind, status=whole, cursor=cursor, at=at)
