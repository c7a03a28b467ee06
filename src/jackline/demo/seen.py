"""What the store and the host know of a run of the demo. It only reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.demo.expecting import DemoFailed
from jackline.engine import leftovers, marks
from jackline.engine.warden.proc import processes
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from jackline.demo.place import Place
    from jackline.domain.records import Call
    from jackline.store.contract import Store

_BRIEF = 90


class Seen(NamedTuple):
    """A run that has ended."""

    run: str
    state: str
    session: str
    sessions: tuple[str, ...]  # of each turn
    ends: tuple[str, ...]  # of each turn: ok, or its failure and the details
    tokens_input: int
    tokens_output: int
    calls: tuple[str, ...]
    commits: tuple[str, ...]
    told: str  # the prompt of the last turn
    said: str  # its last message


def look(store: Store, run_id: str) -> Seen:
    """Everything that the demo tells of the run."""
    run, turns = store.run(run_id), store.turns(run_id)
    if run is None or not turns:
        raise DemoFailed(f"nothing is written down of run {run_id}")
    spent = run.life.spent
    return Seen(
        run=run_id,
        state=run.life.state,
        session=turns[-1].session or "",
        sessions=tuple(turn.session or "" for turn in turns),
        ends=tuple(f"{turn.failure}: {turn.detail}" if turn.failure else "ok" for turn in turns),
        tokens_input=spent.tokens_input,
        tokens_output=spent.tokens_output,
        calls=tuple(map(_brief, store.calls(run_id))),
        commits=store.changes(run_id).commits,
        told=turns[-1].prompt,
        said=turns[-1].last_message,
    )


def agent_pid(store: Store, run_id: str) -> int:
    """The process of the CLI itself: the first that the guard below its warden has started."""
    warden, table = store.attempts(run_id)[-1].warden_pid, processes().values()
    guards = {process.pid for process in table if process.parent == warden}
    below = [process for process in table if process.parent in guards]
    if not below:
        raise DemoFailed("the agent's process was not found: this demo needs Linux")
    # Later come only orphans, which the guard adopts.
    return min(below, key=lambda process: (process.start_ticks, process.pid)).pid


def left_running(store: Store, place: Place, run_id: str) -> list[str]:
    """The commands of all processes that bear the run's mark or have the act's HOME, of which no other has heard."""
    found = {one.pid: one for one in leftovers.find(marks.mark_of(store.secret, run_id))}
    found.update({one.pid: one for one in leftovers.find({"HOME": place.user})})
    return [f"{one.pid} {one.command}" for one in found.values()]


def _brief(call: Call) -> str:
    shown = call.input if len(call.input) <= _BRIEF else f"{call.input[:_BRIEF]}…"
    return f"{call.tool} {shown} ({call.state})"
