"""The values that adapters return to the engine: an agent's events, its usage, and how a turn ended. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from jackline.domain.events import NOTHING
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.states import Failure, WaitReason


class Exit(NamedTuple):
    """How a process ended. Its whole tree is dead by then, except `survivors`, which no signal could end."""

    code: int | None
    signal: int | None = None
    leftovers: int = 0  # descendants that did not end by themselves
    lost: bool = False  # its exit is unknown: the warden was gone
    survivors: int = 0


class Outcome(NamedTuple):
    """The outcome of a turn: without a failure and a wait it ended well."""

    failure: Failure | None = None
    detail: str = ""
    resets_at: int | None = None
    waits: WaitReason | None = None
    session_lost: bool = False  # the agent does not know the session to resume
    deferred: bool = False  # the session resumes by itself with the call that needs approval


class Usage(NamedTuple):
    """The usage that an agent reported, summed over the turns of a run. Input includes cached tokens."""

    tokens_input: int = 0
    tokens_output: int = 0
    tokens_cached: int = 0
    usd_micros: int = 0


class Scope(StrEnum):
    """What a usage figure covers: CLIs differ, and adding up a running total would count it twice."""

    STEP = "step"  # one more request to the model
    MESSAGE = "message"  # the same message may be repeated, with the same `Heard.of`
    TURN = "turn"  # everything since the process started
    SESSION = "session"  # everything since the session began, earlier turns included


class Heard(NamedTuple):
    """One event of an agent's output, in the vocabulary that all agents share.

    kind: message, thinking, call.started, call.finished, usage, session, limit, retry, compacted,
    error, end, raw.
    """

    kind: str
    text: str = ""
    data: Mapping[str, Any] = NOTHING
    usage: Usage | None = None
    scope: Scope = Scope.STEP
    of: str = ""
