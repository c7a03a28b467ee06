"""The cases of the drill as data: what the agent does, who is killed when, what must hold afterwards. Starts nothing.

The tools are those of world.py. An agent that forgets begins again from the top after the kill; one that does not goes
on with the step that was cut off.
"""

from __future__ import annotations

from enum import StrEnum

from jackline.errors import UsageError
from jackline.named import NamedTuple

PROMPT = "Do what the drill wants, step by step."


class Kill(StrEnum):
    """Who gets the signal."""

    AGENT = "agent"
    SUPERVISOR = "supervisor"
    EVERYTHING = "everything"  # supervisor, warden, guard and agent at once; only the tool lives on
    FREEZE = "freeze"  # the supervisor, for longer than its lease
    POINT = "point"  # the supervisor kills itself at a crash point


class Step(NamedTuple):
    """One call of the agent: a tool of the world and the name of what it works on."""

    tool: str
    name: str
    late: bool = False  # only after the kill


class Runs(NamedTuple):
    """How often a tool must have been begun, and how often it must have come to its end."""

    tool: str
    name: str
    begun: int
    ended: int


class Case(NamedTuple):
    """One row of the matrix."""

    name: str
    story: str
    must: str
    kill: Kill
    steps: tuple[Step, ...]
    effects: tuple[str, ...]  # what must be in the outbox, each exactly once
    runs: tuple[Runs, ...]
    halts: tuple[tuple[str, str], ...] = ()  # moment and name: where tools stop and wait for the kill
    point: str = ""
    forgets: bool = False
    streams: bool = False  # of a model: its message does not end before the kill
    together: bool = False  # the tasks are in flight at once
    origins: tuple[tuple[str, str], ...] = ()  # effect and who must have known of it: agent or probe
    replayed: int = 0  # at least so many calls were made again or answered from the ledger
    refused: int = 0  # at least so many calls were denied until the others had been made again
    drained: tuple[str, ...] = ()  # what must have come to its end before any effect begins
    predecessor: str = ""

    @property
    def first_life(self) -> tuple[Step, ...]:
        """What the agent does until it is killed, the step that the kill cuts off included."""
        return tuple(step for step in self.steps[: self._cut + 1] if not step.late)

    @property
    def second_life(self) -> tuple[Step, ...]:
        """What it does after the kill."""
        return self.steps if self.forgets else self.steps[self._cut :]

    @property
    def _cut(self) -> int:
        """The place of the last step that the kill cuts off."""
        if self.point:
            return int(self.point.rpartition(":")[2]) - 1  # every call reaches the point once
        names = {name for _, name in self.halts}
        return max(place for place, step in enumerate(self.steps) if step.name in names)


_REPORT, _LAST = Step("upload", "report"), Step("upload", "last")

CASES: tuple[Case, ...] = (
    Case(
        name="task-crash",
        story="one task is finished, the agent dies inside the second, and begins again from the top",
        must="the finished task is not done again, the other is launched again once",
        kill=Kill.AGENT,
        steps=(Step("task", "one"), Step("task", "two"), _REPORT),
        halts=(("half", "two"),),
        effects=("report",),
        runs=(Runs("task", "one", 1, 1), Runs("task", "two", 2, 1), Runs("upload", "report", 1, 1)),
        forgets=True,
        replayed=2,
        predecessor="test 1, task crash",
    ),
    Case(
        name="bash-crash",
        story="the agent dies inside a local command",
        must="the command is made again, the effect after it happens once",
        kill=Kill.AGENT,
        steps=(Step("build", "main"), _REPORT),
        halts=(("half", "main"),),
        effects=("report",),
        runs=(Runs("build", "main", 2, 1), Runs("upload", "report", 1, 1)),
        replayed=1,
        predecessor="test 2, bash crash",
    ),
    Case(
        name="upload-crash",
        story="the agent dies in the middle of an upload, before it has arrived",
        must="in doubt, the probe finds nothing, it is made again: there once",
        kill=Kill.AGENT,
        steps=(Step("upload", "first"), _REPORT, _LAST),
        halts=(("half", "report"),),
        effects=("first", "report", "last"),
        runs=(Runs("upload", "first", 1, 1), Runs("upload", "report", 2, 1), Runs("upload", "last", 1, 1)),
        origins=(("report", "agent"),),
        replayed=1,
        predecessor="test 3, upload crash",
    ),
    Case(
        name="after-effect-before-ledger",
        story="the upload has arrived, and jackline dies before it has written that down",
        must="the probe finds it, it is not made again",
        kill=Kill.POINT,
        point="call.outcome.begun:2",
        steps=(Step("build", "main"), _REPORT, _LAST),
        effects=("report", "last"),
        runs=(Runs("build", "main", 1, 1), Runs("upload", "report", 1, 1), Runs("upload", "last", 1, 1)),
        origins=(("report", "probe"),),
        replayed=1,
        predecessor="test 4, after the e-mail and before the ledger",
    ),
    Case(
        name="read-only",
        story="the agent dies inside a read, and there is nothing but reads",
        must="it is read again, no effect happens, nothing is in doubt",
        kill=Kill.AGENT,
        steps=(Step("look", "notes"), Step("look", "more")),
        halts=(("half", "notes"),),
        effects=(),
        runs=(Runs("look", "notes", 2, 1), Runs("look", "more", 1, 1)),
        replayed=1,
        predecessor="test 5, read-only",
    ),
    Case(
        name="replay-drain",
        story="two tasks are in flight when jackline dies; the resumed agent wants to go on with something else",
        must="everything else is refused until both have been made again, then it goes on",
        kill=Kill.SUPERVISOR,
        steps=(Step("upload", "early", late=True), Step("task", "one"), Step("task", "two"), _REPORT,
               Step("upload", "early", late=True)),
        halts=(("half", "one"), ("half", "two")),
        effects=("report", "early"),
        runs=(Runs("task", "one", 2, 1), Runs("task", "two", 2, 1), Runs("upload", "report", 1, 1),
              Runs("upload", "early", 1, 1)),
        forgets=True,
        together=True,
        replayed=2,
        refused=1,
        drained=("one", "two"),
        predecessor="test 6, replay drain",
    ),
    Case(
        name="kill-while-streaming",
        story="the agent dies while the message that asked for the upload still streams; the upload has arrived",
        must="the probe finds it, it is not made again, though the agent's own memory has no trace of it",
        kill=Kill.AGENT,
        steps=(_REPORT, _LAST),
        halts=(("done", "report"),),
        effects=("report", "last"),
        runs=(Runs("upload", "report", 1, 0), Runs("upload", "last", 1, 1)),
        streams=True,
        origins=(("report", "probe"),),
        replayed=1,
    ),
    Case(
        name="supervisor-killed",
        story="jackline's supervisor gets SIGKILL in the middle of an upload",
        must="the warden ends the agent and its tools, a resume makes it again: there once",
        kill=Kill.SUPERVISOR,
        steps=(Step("build", "main"), _REPORT, _LAST),
        halts=(("half", "report"),),
        effects=("report", "last"),
        runs=(Runs("build", "main", 1, 1), Runs("upload", "report", 2, 1), Runs("upload", "last", 1, 1)),
        replayed=1,
    ),
    Case(
        name="everything-killed",
        story="supervisor, warden, guard and agent get SIGKILL at once; the tool works on alone",
        must="the resume ends the tool, then makes the upload again: there once",
        kill=Kill.EVERYTHING,
        steps=(Step("build", "main"), _REPORT, _LAST),
        halts=(("half", "report"),),
        effects=("report", "last"),
        runs=(Runs("build", "main", 1, 1), Runs("upload", "report", 2, 1), Runs("upload", "last", 1, 1)),
        replayed=1,
    ),
    Case(
        name="frozen-and-thawed",
        story="the supervisor is stopped for longer than its lease, another takes over, then it is woken",
        must="its tree is ended at the deadline, it writes nothing more: there once",
        kill=Kill.FREEZE,
        steps=(Step("build", "main"), _REPORT, _LAST),
        halts=(("half", "report"),),
        effects=("report", "last"),
        runs=(Runs("build", "main", 1, 1), Runs("upload", "report", 2, 1), Runs("upload", "last", 1, 1)),
        replayed=1,
    ),
)  # fmt: skip


def chosen(names: list[str] | None) -> tuple[Case, ...]:
    """The cases of these names in the order of the matrix; all, if none is named."""
    known = [case.name for case in CASES]
    for name in names or ():
        if name not in known:
            raise UsageError(f"the drill has no case '{name}': it has {', '.join(known)}")
    return tuple(case for case in CASES if not names or case.name in names)
