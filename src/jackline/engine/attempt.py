"""One attempt, from claim to end: hear, decide, write down, carry out. Read this first.

The heart decides, the store remembers, the world acts. Nothing is carried out that was not written down before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from jackline.domain.events import canonical
from jackline.domain.heart import State, Step, step
from jackline.domain.notices import notice_of
from jackline.domain.records import Checkpoint
from jackline.domain.signals import Claimed, ReviewLearnings, RunCheck, StartTurn
from jackline.domain.states import WaitReason
from jackline.errors import CancelWanted
from jackline.named import NamedTuple
from jackline.store.contract import Change

if TYPE_CHECKING:
    from jackline.domain.changes import Changes
    from jackline.domain.health import Health
    from jackline.domain.records import Check, Lease, Run, Turn
    from jackline.domain.signals import Command, Input
    from jackline.store.contract import Store


class Signal(NamedTuple):
    """An input for the heart, with the records that must be written in the same transaction."""

    input: Input
    turn: Turn | None = None
    check: Check | None = None
    session: tuple[str, str] | None = None
    health: Health | None = None
    changes: Changes | None = None


class World(Protocol):
    """Everything outside the heart and the store: processes, clocks, sockets; or a simulation of them."""

    def now(self) -> int:
        """Wall clock, milliseconds."""
        ...

    def new_id(self) -> str:
        """A fresh id."""
        ...

    def carry_out(self, command: Command, run: Run) -> None:
        """Start what is ordered; its result is heard later."""
        ...

    def hear(self) -> Signal:
        """Wait for the next thing that happens."""
        ...

    def settle(self) -> None:
        """The last thing before the run leaves this attempt: account for the time that was spent."""
        ...


def work(store: Store, lease: Lease, run: Run, world: World) -> Run:
    """Carry a claimed run on until it ends or waits; gives back the run as it then stands."""
    state = State(run.id, run.spec, run.life)
    signal = Signal(Claimed(world.now()))
    while True:
        decided = step(state, signal.input)
        if decided.ended:
            world.settle()
        if decided.facts:
            try:
                run = store.write(lease, _change(decided, signal, world))
            except CancelWanted:  # asked for since we looked: decide again, knowing it
                state = state._replace(life=state.life._replace(cancel_requested=True))
                continue
        if decided.ended:
            return run
        for command in decided.commands:
            world.carry_out(command, run)
        state = decided.state._replace(life=run.life)
        signal = world.hear()


def _change(decided: Step, signal: Signal, world: World) -> Change:
    at = world.now()
    return Change(
        at=at,
        facts=decided.facts,
        life=decided.state.life,
        turn=signal.turn,
        check=signal.check,
        session=signal.session,
        health=signal.health,
        changes=signal.changes,
        checkpoint=_checkpoint(decided, at),
        notice=notice_of(world.new_id(), decided.state.run_id, decided.state.spec, decided.state.life, at),
    )


def _checkpoint(decided: Step, at: int) -> Checkpoint | None:
    """At each boundary between steps, and where the attempt ends."""
    boundary = any(isinstance(command, StartTurn | ReviewLearnings | RunCheck) for command in decided.commands)
    if not boundary and not decided.ended:
        return None
    life = decided.state.life
    kind = "interrupt" if life.reason is WaitReason.PAUSED else "boundary"
    cursor = canonical({"turn": life.turn, "iteration": life.iteration, "goal": life.goal})
    whole = canonical(life.to_dict())
    return Checkpoint(decided.state.run_id, life.step, kind, whole, cursor, at)
