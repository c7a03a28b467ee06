"""How a turn ended, and what an agent's line meant: the small values that adapters hand to the engine. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from jackline.domain.events import NOTHING
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.states import Failure, WaitReason


class Exit(NamedTuple):
    """How a process ended. Its whole tree is dead by then, but for `survivors`, which no signal could end."""

    code: int | None
    signal: int | None = None
    leftovers: int = 0  # descendants that did not end by themselves
    lost: bool = False  # nobody saw how it ended: the warden was gone
    survivors: int = 0


class Outcome(NamedTuple):
    """What a turn came to: no failure and nothing waited for means that it ended well."""

    failure: Failure | None = None
    detail: str = ""
    resets_at: int | None = None
    waits: WaitReason | None = None
    session_lost: bool = False  # the agent does not know the session it was told to resume
    deferred: bool = False  # the session resumes by itself with the call that needs approval


class Usage(NamedTuple):
    """What an agent said it used; added up over the turns of a run. Input includes what was read from a cache."""

    tokens_input: int = 0
    tokens_output: int = 0
    tokens_cached: int = 0
    usd_micros: int = 0


class Scope(StrEnum):
    """What a figure of usage is the sum of: CLIs differ, and adding up a running total counts it twice."""

    STEP = "step"  # one more request to the model
    MESSAGE = "message"  # the same message may be told again, by the same `Heard.of`
    TURN = "turn"  # everything since the process started
    SESSION = "session"  # everything since the session began, earlier turns included


class Heard(NamedTuple):
    """One thing an agent's output said, in the one vocabulary of all agents.

    kind: message, thinking, call.started, call.finished, usage, session, limit, retry, compacted,
    error, end, raw.
    """

    kind: str
    text: str = ""
    data: Mapping[str, Any] = NOTHING
    usage: Usage | None = None
    scope: Scope = Scope.STEP
    of: str = ""
