"""Policy rules: which calls they match and what the gate does with them; merging of several rules. Pure."""

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
