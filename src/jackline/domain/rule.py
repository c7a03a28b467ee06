"""Policy rules: which calls they match and what the gate does with them; merging of several rules. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.domain.states import CallClass, Decision, Replay
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_LISTS = ("key", "nothing_happened", "command", "having", "lacking")


class Rule(NamedTuple):
    """One rule of the policy."""

    name: str
    tool: str  # tool name, or a prefix with `*`; empty with `command`: every shell tool
    call_class: CallClass
    replay: Replay = Replay.ASK
    decision: Decision = Decision.ALLOW
    key: tuple[str, ...] = ()  # input fields that identify equal calls; empty: the whole input
    target: str = ""  # a pattern over the input such as "mail:{to}"
    probe: str = ""  # shell command with the call as JSON on stdin; exit 0: happened, 1: did not, else unknown
    nothing_happened: tuple[int, ...] = ()  # exit codes that prove that a failed effect changed nothing
    most: int | None = None  # limit per run
    command: tuple[str, ...] = ()  # for shell calls: program and subcommands, such as ("git", "push")
    having: tuple[str, ...] = ()  # matches only with one of these flags or words
    lacking: tuple[str, ...] = ()  # matches only without any of these
    external: tuple[tuple[str, str], ...] = ()  # values to extract from the output: name (url, pr, commit) and pattern
    hint: str = ""  # what a denied agent may do instead
    layer: str = "built-in"  # origin: built-in, user, project, run
    tightens: bool = False  # from an untrusted project: applies only if it is stricter

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Rule:
        """Build a rule from the JSON frozen with a run; unknown names are ignored."""
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
