"""What a turn will be, before anything is written or started: session, prompt, request. It spawns nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from jackline.domain.adapter import TurnRequest
from jackline.domain.events import Fact
from jackline.domain.meter import plus
from jackline.domain.outcome import Usage
from jackline.domain.packet import packet, prompt_of
from jackline.domain.records import Manner, Turn
from jackline.engine.settings import fresh_session, passed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackline.domain.adapter import Adapter
    from jackline.domain.records import Lease, Run, Spec
    from jackline.domain.signals import StartTurn
    from jackline.store.contract import Store


class Place(NamedTuple):
    """Where the turn will happen."""

    folder: str  # the agent's own, in the run's folder
    gate: str
    token: str
    binary: str
    environ: Mapping[str, str]  # ours; the agent sees what it declares


class Plan(NamedTuple):
    """A turn that is ready to be written down."""

    turn: Turn
    request: TurnRequest
    before: Usage  # what earlier turns of the same session were charged already
    facts: tuple[Fact, ...] = ()  # what is to be said of it besides


def plan(store: Store, lease: Lease, run: Run, order: StartTurn, adapter: Adapter, place: Place, at: int) -> Plan:
    """The next turn of the run, in its agent's session if it has one."""
    agent = adapter.declaration.name
    session, resumes = _session(store.sessions(run.id), run.spec, adapter)
    turns = store.turns(run.id)
    first = not any(turn.agent == agent for turn in turns)
    told = packet(store.calls(run.id), store.receipts(run.id), store.changes(run.id).commits)
    # An adopted session is resumed, and yet knows nothing of the task.
    knows = resumes and _was_told(turns, agent, session)
    prompt = prompt_of(1 if first and resumes else order.turn, run.spec.prompt, told, resumes=knows)
    turn = Turn(run.id, order.turn, order.step, lease.token, order.role, agent, session, prompt, at)
    charged = [one.spent for one in turns if resumes and (one.agent, one.session) == (agent, session)]
    before = Usage()
    for spent in charged:
        before = plus(before, Usage(spent.tokens_input, spent.tokens_output, spent.tokens_cached, spent.usd_micros))
    facts = _advisory(adapter) if first else ()
    return Plan(turn, request_of(run.spec, turn, adapter, place, resumes=resumes), before, facts)


def _was_told(turns: Sequence[Turn], agent: str, session: str | None) -> bool:
    """Whether a turn of this run has said anything in the session; one that was cut off before may know nothing."""
    return any((one.agent, one.session) == (agent, session) and one.stdout_bytes for one in turns)


def request_of(spec: Spec, turn: Turn, adapter: Adapter, place: Place, *, resumes: bool) -> TurnRequest:
    """Everything that the launch of the turn may depend on."""
    manner = spec.manners.get(turn.agent, Manner())
    return TurnRequest(
        run_id=turn.run_id,
        attempt=turn.attempt,
        turn=turn.number,
        role=turn.role,
        prompt=turn.prompt,
        workspace=spec.workspace,
        folder=place.folder,
        gate=place.gate,
        token=place.token,
        session=turn.session,
        resume=resumes,
        binary=place.binary,
        model=manner.model,
        effort=manner.effort,
        arguments=manner.arguments,
        environ=passed(place.environ, (*adapter.declaration.seen(place.environ), *manner.passes)),
        options=spec.options,
    )


def _advisory(adapter: Adapter) -> tuple[Fact, ...]:
    """An agent whose calls nobody holds is never run without saying so."""
    declaration = adapter.declaration
    if declaration.gate == "enforced":
        return ()
    return (Fact("gate.advisory", {"agent": declaration.name, "reason": declaration.gate_reason}),)


def _session(known: Mapping[str, str], spec: Spec, adapter: Adapter) -> tuple[str | None, bool]:
    """The session to use and whether it exists already. One that was lost is known as an empty text."""
    declaration = adapter.declaration
    adopted = spec.session if declaration.name == spec.agent else ""
    old = known.get(declaration.name, adopted)
    if old and declaration.resumes:
        return old, True
    return (fresh_session() if declaration.chooses_session else None), False
