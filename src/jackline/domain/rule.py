"""A rule of the policy: which calls it is about, and what the gate does with them. Pure data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.domain.states import CallClass, Decision, Replay
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_LISTS = ("key", "nothing_happened", "command", "having", "lacking")


class Rule(NamedTuple):
    """What the gate knows about the calls of one tool."""

    name: str
    tool: str  # its name, or the beginning of one with a `*`; with `command` empty: every tool that is a shell
    call_class: CallClass
    replay: Replay = Replay.ASK
    decision: Decision = Decision.ALLOW
    key: tuple[str, ...] = ()  # the input fields that make two calls the same; none named: the whole input
    target: str = ""  # a pattern over the input such as "mail:{to}"
    probe: str = ""  # a shell command that gets the call as JSON on stdin: exit 0 happened, 1 did not, else unknown
    nothing_happened: tuple[int, ...] = ()  # exit codes that prove that a failed effect touched nothing
    most: int | None = None  # how often in one run
    command: tuple[str, ...] = ()  # of a shell's call: the program and its subcommands, such as ("git", "push")
    having: tuple[str, ...] = ()  # only with one of these flags or words
    lacking: tuple[str, ...] = ()  # only without all of these
    external: tuple[tuple[str, str], ...] = ()  # what to find in the output: a name (url, pr, commit) and a pattern
    hint: str = ""  # what an agent that is denied may do instead
    layer: str = "built-in"  # whose rule it is: built-in, user, project, run
    tightens: bool = False  # of a project that nobody trusts: it counts only where it is stricter than the rest

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Rule:
        """A rule from the JSON that was frozen with a run; names that this version does not know are passed over."""
        values = {name: value for name, value in data.items() if name in cls._fields}
        return cls(
            **{
                **values,
                "call_class": CallClass(values["call_class"]),
                "replay": Replay(values.get("replay", Replay.ASK)),
                "decision": Decision(values.get("decision", Decision.ALLOW)),
                **{name: tuple(values.get(name, ())) for name in _LISTS},
                "external": tuple((name, pattern) for name, pattern in values.get("external", ())),
            }
        )
