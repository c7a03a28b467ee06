"""Policy rules, and how several rules for one call are merged into one that is never laxer than any of them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.domain.states import CallClass, Decision, Replay
from jackline.named import NamedTuple, split_stored, stored_as

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


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


# Keys, classes and agreements of a run follow the version under which it began. 2: the same effect in other words has
# the same key, and MCP tools have rules. 3: the key of an effect covers the local files that its words name.
POLICY_VERSION = 3
REWORDED = 2  # since this version, an effect in other words is recognized
FILES_KEYED = 3
NAME_SEPARATOR = " + "  # joins the names of merged rules
OTHER_COMMANDS = "others"  # in a rule name: other commands without a rule; the whole call is the key
DEFAULT_TARGET = "program:"  # begins the target of a rule for commands that names none
WHOLE_COMMAND = ("command", "folder")  # fields that identify a shell call
_CLASSES = (CallClass.READ, CallClass.LOCAL, CallClass.UNKNOWN, CallClass.EFFECT)  # strictest last
_DECISIONS = (Decision.STORED, Decision.ALLOW, Decision.ASK, Decision.DENY)
PROBE_PREFIX = "builtin:"  # of the names of built-in probes
_HOST_PREFIXES = ("git.", "file:")  # prefixes of key inputs that only the host knows


def rank_class(rule: Rule) -> int:
    return _CLASSES.index(rule.call_class)


def rank_decision(rule: Rule) -> int:
    return _DECISIONS.index(rule.decision)


def is_host_input(name: str) -> bool:
    """Check whether only the host knows this key input."""
    return name.startswith(_HOST_PREFIXES)


def merge_rules(parts: Sequence[Rule], *, others: bool = False) -> Rule:
    """Merge rules into one. With `others`, the call has more commands than the rules cover, so it is never replayed."""
    firm = [rule for rule in parts if not rule.tightens] or list(parts)
    first = max(firm, key=rank_class)  # the first of equals
    if len(parts) == 1 and not others:
        return strip_claims(first) if first.tightens else first
    kept = first if len(firm) == 1 and not others else _remove_claims(firm, first)
    strictest = max(parts, key=rank_decision)
    joined = kept._replace(
        name=NAME_SEPARATOR.join([*(rule.name for rule in parts), *([OTHER_COMMANDS] if others else [])]),
        call_class=max(parts, key=rank_class).call_class,
        decision=strictest.decision,
        most=min((rule.most for rule in parts if rule.most is not None), default=None),
        hint=strictest.hint,
        tightens=False,
    )
    # A replay mode that was safe for a read is not safe for an effect.
    return joined if joined.call_class is first.call_class else joined._replace(replay=Replay.ASK, probe="")


def strip_claims(rule: Rule) -> Rule:
    """Remove every claim that could make a call look safer or equal to another one."""
    return rule._replace(probe="", replay=Replay.ASK, nothing_happened=(), external=(), key=())


def drop_exit_codes(rule: Rule) -> Rule:
    """Adapt a rule for a call with several commands: the exit code may belong to another command."""
    if not rule.nothing_happened:
        return rule
    return rule._replace(name=f"{rule.name}{NAME_SEPARATOR}{CallClass.READ}", nothing_happened=())


def _remove_claims(parts: Sequence[Rule], first: Rule) -> Rule:
    """Remove the claims of single rules: no probe and no field covers several commands, only the whole command does."""
    effects = [rule for rule in parts if rule.call_class is CallClass.EFFECT]
    names = (piece for rule in effects for name in rule.key for piece in name.split("|"))
    host_inputs = dict.fromkeys(name for name in names if is_host_input(name))
    external = dict.fromkeys(pair for rule in effects for pair in rule.external)
    return first._replace(
        replay=first.replay if first.call_class in {CallClass.READ, CallClass.LOCAL} else Replay.ASK,
        # The built-in probes examine the whole call, and report doubt if other commands cause it.
        probe=first.probe if len(parts) == 1 and first.probe.startswith(PROBE_PREFIX) else "",
        nothing_happened=(),
        key=(*WHOLE_COMMAND, *host_inputs),
        target=first.target if len(effects) == 1 else "",
        external=tuple(external),
    )
