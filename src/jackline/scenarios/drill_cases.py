"""The cases as data: what the agent does, which process is killed when, what must hold afterwards. Starts nothing.

The tools are those of sandbox_tools.py. An agent that forgets starts over after the kill; any other agent continues
with the interrupted step.
"""

from __future__ import annotations

from enum import StrEnum

from jackline.errors import JacklineError, UsageError
from jackline.named import NamedTuple

PROMPT = "Do the steps of the drill, one by one."


class DrillFailed(JacklineError):
    """{detail}"""  # noqa: D400 - it is the message


class Kill(StrEnum):
    """Which process gets the signal."""

    AGENT = "agent"
    SUPERVISOR = "supervisor"
    EVERYTHING = "everything"  # supervisor, warden, guard and agent at once; only the tool survives
    FREEZE = "freeze"  # the supervisor, for longer than its lease
    POINT = "point"  # the supervisor kills itself at a crash point


class ToolStep(NamedTuple):
    """One call of the agent: a tool and the name of the item that it works on."""

    tool: str
    name: str
    late: bool = False  # only after the kill


class ToolRuns(NamedTuple):
    """How often a tool must have started, and how often it must have finished."""

    tool: str
    name: str
    begun: int
    ended: int


class DrillCase(NamedTuple):
    """One row of the matrix."""

    name: str
    story: str
    must: str
    kill: Kill
    steps: tuple[ToolStep, ...]
    effects: tuple[str, ...]  # must be in the outbox, each exactly once
    runs: tuple[ToolRuns, ...]
    halts: tuple[tuple[str, str], ...] = ()  # moment and name: where a tool stops and waits for the kill
    point: str = ""
    forgets: bool = False
    streams: bool = False  # the model's message is still incomplete at the kill
    together: bool = False  # the tasks run at the same time
    origins: tuple[tuple[str, str], ...] = ()  # effect and the source of its receipt: agent or probe
    replayed: int = 0  # at least this many calls were repeated or answered from the ledger
    refused: int = 0  # at least this many calls were denied during the replay
    drained: tuple[str, ...] = ()  # tasks that must finish before any effect starts
    predecessor: str = ""

    @property
    def first_life(self) -> tuple[ToolStep, ...]:
        """The steps until the kill, including the interrupted one."""
        return tuple(step for step in self.steps[: self._interrupted + 1] if not step.late)

    @property
    def second_life(self) -> tuple[ToolStep, ...]:
        """The steps after the kill."""
        return self.steps if self.forgets else self.steps[self._interrupted :]

    @property
    def _interrupted(self) -> int:
        """The index of the last step that the kill interrupts."""
        if self.point:
            return int(self.point.rpartition(":")[2]) - 1  # every call reaches the point once
        names = {name for _, name in self.halts}
        return max(index for index, step in enumerate(self.steps) if step.name in names)


_REPORT, _LAST = ToolStep("upload", "report"), ToolStep("upload", "last")

CASES: tuple[DrillCase, ...] = (
    DrillCase(
        name="task-crash",
        story="one task is finished, the agent dies inside the second, and starts over",
        must="the finished task is not repeated, the other is launched once more",
        kill=Kill.AGENT,
        steps=(ToolStep("task", "one"), ToolStep("task", "two"), _REPORT),
        halts=(("half", "two"),),
        effects=("report",),
        runs=(ToolRuns("task", "one", 1, 1), ToolRuns("task", "two", 2, 1), ToolRuns("upload", "report", 1, 1)),
        forgets=True,
        replayed=2,
        predecessor="test 1, task crash",
    ),
    DrillCase(
        name="bash-crash",
        story="the agent dies inside a local command",
        must="the command runs again, the effect after it happens once",
        kill=Kill.AGENT,
        steps=(ToolStep("build", "main"), _REPORT),
        halts=(("half", "main"),),
        effects=("report",),
        runs=(ToolRuns("build", "main", 2, 1), ToolRuns("upload", "report", 1, 1)),
        replayed=1,
        predecessor="test 2, bash crash",
    ),
    DrillCase(
        name="upload-crash",
        story="the agent dies in the middle of an upload, before it has arrived",
        must="the upload is in doubt, the probe finds nothing, it is repeated: it arrives once",
        kill=Kill.AGENT,
        steps=(ToolStep("upload", "first"), _REPORT, _LAST),
        halts=(("half", "report"),),
        effects=("first", "report", "last"),
        runs=(ToolRuns("upload", "first", 1, 1), ToolRuns("upload", "report", 2, 1), ToolRuns("upload", "last", 1, 1)),
        origins=(("report", "agent"),),
        replayed=1,
        predecessor="test 3, upload crash",
    ),
    DrillCase(
        name="after-effect-before-ledger",
        story="the upload has arrived, and jackline dies before it records that",
        must="the probe finds it, it is not repeated",
        kill=Kill.POINT,
        point="call.outcome.begun:2",
        steps=(ToolStep("build", "main"), _REPORT, _LAST),
        effects=("report", "last"),
        runs=(ToolRuns("build", "main", 1, 1), ToolRuns("upload", "report", 1, 1), ToolRuns("upload", "last", 1, 1)),
        origins=(("report", "probe"),),
        replayed=1,
        predecessor="test 4, after the e-mail and before the ledger",
    ),
    DrillCase(
        name="read-only",
        story="the agent dies inside a read, and its other step is a read too",
        must="the read runs again, no effect happens, nothing is in doubt",
        kill=Kill.AGENT,
        steps=(ToolStep("look", "notes"), ToolStep("look", "more")),
        halts=(("half", "notes"),),
        effects=(),
        runs=(ToolRuns("look", "notes", 2, 1), ToolRuns("look", "more", 1, 1)),
        replayed=1,
        predecessor="test 5, read-only",
    ),
    DrillCase(
        name="replay-drain",
        story="two tasks are in flight when jackline dies; the resumed agent first tries something else",
        must="everything else is refused until both have been repeated",
        kill=Kill.SUPERVISOR,
        steps=(ToolStep("upload", "early", late=True), ToolStep("task", "one"), ToolStep("task", "two"), _REPORT,
               ToolStep(tool="upload", name="early", late=True)),
        halts=(("half", "one"), ("half", "two")),
        effects=("report", "early"),
        runs=(ToolRuns("task", "one", 2, 1), ToolRuns("task", "two", 2, 1), ToolRuns("upload", "report", 1, 1),
              ToolRuns("upload", "early", 1, 1)),
        forgets=True,
        together=True,
        replayed=2,
        refused=1,
        drained=("one", "two"),
        predecessor="test 6, replay drain",
    ),
    DrillCase(
        name="kill-while-streaming",
        story="the agent dies while the message that asked for the upload still streams; the upload has arrived",
        must="the probe finds it, it is not repeated, although the agent's session has no trace of it",
        kill=Kill.AGENT,
        steps=(_REPORT, _LAST),
        halts=(("done", "report"),),
        effects=("report", "last"),
        runs=(ToolRuns("upload", "report", 1, 0), ToolRuns("upload", "last", 1, 1)),
        streams=True,
        origins=(("report", "probe"),),
        replayed=1,
    ),
    DrillCase(
        name="supervisor-killed",
        story="jackline's supervisor gets SIGKILL in the middle of an upload",
        must="the warden ends the agent and its tools, a resume repeats the upload: it arrives once",
        kill=Kill.SUPERVISOR,
        steps=(ToolStep("build", "main"), _REPORT, _LAST),
        halts=(("half", "report"),),
        effects=("report", "last"),
        runs=(ToolRuns("build", "main", 1, 1), ToolRuns("upload", "report", 2, 1), ToolRuns("upload", "last", 1, 1)),
        replayed=1,
    ),
    DrillCase(
        name="everything-killed",
        story="supervisor, warden, guard and agent get SIGKILL at once; the tool keeps running",
        must="the resume ends the tool, then repeats the upload: it arrives once",
        kill=Kill.EVERYTHING,
        steps=(ToolStep("build", "main"), _REPORT, _LAST),
        halts=(("half", "report"),),
        effects=("report", "last"),
        runs=(ToolRuns("build", "main", 1, 1), ToolRuns("upload", "report", 2, 1), ToolRuns("upload", "last", 1, 1)),
        replayed=1,
    ),
    DrillCase(
        name="frozen-and-thawed",
        story="the supervisor is stopped for longer than its lease, another takes over, then it continues",
        must="its process tree ends at the deadline, it writes nothing more: the upload arrives once",
        kill=Kill.FREEZE,
        steps=(ToolStep("build", "main"), _REPORT, _LAST),
        halts=(("half", "report"),),
        effects=("report", "last"),
        runs=(ToolRuns("build", "main", 1, 1), ToolRuns("upload", "report", 2, 1), ToolRuns("upload", "last", 1, 1)),
        replayed=1,
    ),
)  # fmt: skip

# Both sides of the effect: it has happened and is not recorded, or it is recorded as intended and has not happened.
DEMO_CASES: tuple[DrillCase, ...] = (
    DrillCase(
        name="act-one",
        story="The report arrives, and everything dies in that instant: jackline has not yet recorded that it arrived.",
        must="the probe finds it, it is not repeated",
        kill=Kill.POINT,
        point="call.outcome.begun:2",
        steps=(ToolStep("build", "main"), _REPORT),
        effects=("report",),
        runs=(
            ToolRuns("build", "main", 1, 1),
            ToolRuns("upload", "report", 1, 1),
        ),
        origins=(("report", "probe"),),
        replayed=1,
    ),
    DrillCase(
        name="act-two",
        story="Everything dies after jackline has recorded that the report is about to be uploaded, and before it is.",
        must="the probe finds nothing, the agent uploads it",
        kill=Kill.POINT,
        point="call.intent.committed:2",
        steps=(ToolStep("build", "main"), _REPORT),
        effects=("report",),
        runs=(
            ToolRuns("build", "main", 1, 1),
            ToolRuns("upload", "report", 1, 1),
        ),
        origins=(("report", "agent"),),
        replayed=1,
    ),
)


def choose_cases(names: list[str] | None) -> tuple[DrillCase, ...]:
    """Select cases by name, in the order of the matrix; all of them if no name is given."""
    known = [case.name for case in CASES]
    for name in names or ():
        if name not in known:
            raise UsageError(f"the drill has no case '{name}'; choose from {', '.join(known)}")
    return tuple(case for case in CASES if not names or case.name in names)
