"""A rule of the policy: which calls it is about, and what the gate does with them. Pure data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.domain.states import CallClass, Decision, Replay
from jackline.named import NamedTuple, split_stored, stored_as

if TYPE_CHECKING:
    from collections.abc import Mapping


@stored_as(
    "name tool call_class replay decision key target probe nothing_happened most command having lacking external "
    "hint layer tightens"
)
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
        """Build a rule from the JSON that was frozen with a run; `Spec` reports the names that are unknown."""
        values, _ = split_stored(cls, data)
        rule = cls(**values)
        return rule._replace(
            call_class=CallClass(rule.call_class),
            replay=Replay(rule.replay),
            decision=Decision(rule.decision),
            key=tuple(rule.key),
            nothing_happened=tuple(rule.nothing_happened),
            command=tuple(rule.command),
            having=tuple(rule.having),
            lacking=tuple(rule.lacking),
            external=tuple((name, pattern) for name, pattern in rule.external),
        )
