"""Several rules that meet in one call, as one rule: never laxer than any of them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.states import CallClass, Decision, Replay

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jackline.domain.rule import Rule

JOINED = " + "  # between the names of rules that meet
OTHERS = "others"  # stands in a name for commands that no single rule speaks for: then only the whole call tells
WHOLE = ("command", "folder")  # fields of a shell's call that tell it apart from every other
_CLASSES = (CallClass.READ, CallClass.LOCAL, CallClass.UNKNOWN, CallClass.EFFECT)  # the strictest last
_DECISIONS = (Decision.STORED, Decision.ALLOW, Decision.ASK, Decision.DENY)
_BUILT_IN_PROBE = "builtin:"
_HOST = ("git.", "file:")  # what only the host can tell begins so


def class_rank(rule: Rule) -> int:
    return _CLASSES.index(rule.call_class)


def decision_rank(rule: Rule) -> int:
    return _DECISIONS.index(rule.decision)


def is_ingredient(name: str) -> bool:
    """Whether only the host can tell it."""
    return name.startswith(_HOST)


def combine(parts: Sequence[Rule], *, others: bool = False) -> Rule:
    """One rule for all of them; with `others`, for more than they speak of: then nothing is sent again."""
    firm = [rule for rule in parts if not rule.tightens] or list(parts)
    first = max(firm, key=class_rank)  # of equals the first
    if len(parts) == 1 and not others:
        return harmless(first) if first.tightens else first
    kept = first if len(firm) == 1 and not others else _without_claims(firm, first)
    strictest = max(parts, key=decision_rank)
    joined = kept._replace(
        name=JOINED.join([*(rule.name for rule in parts), *([OTHERS] if others else [])]),
        call_class=max(parts, key=class_rank).call_class,
        decision=strictest.decision,
        most=_smallest(rule.most for rule in parts),
        hint=strictest.hint,
        tightens=False,
    )
    # What was exact or idempotent as a read is not, once somebody says that it is an effect.
    return joined if joined.call_class is first.call_class else joined._replace(replay=Replay.ASK, probe="")


def harmless(rule: Rule) -> Rule:
    """A rule that only tightens, without everything that could make a call look safer, or the same as another."""
    return rule._replace(probe="", replay=Replay.ASK, nothing_happened=(), external=(), key=())


def accompanied(rule: Rule) -> Rule:
    """A rule whose command is not alone: an exit code may then be the other command's."""
    if not rule.nothing_happened:
        return rule
    return rule._replace(name=f"{rule.name}{JOINED}{CallClass.READ}", nothing_happened=())


def _without_claims(parts: Sequence[Rule], first: Rule) -> Rule:
    """No probe of a rule speaks for several commands, and no field tells them apart: the whole command does."""
    effects = [rule for rule in parts if rule.call_class is CallClass.EFFECT]
    named = (piece for rule in effects for name in rule.key for piece in name.split("|"))
    ingredients = dict.fromkeys(name for name in named if is_ingredient(name))
    external = dict.fromkeys(pair for rule in effects for pair in rule.external)
    return first._replace(
        replay=first.replay if first.call_class in {CallClass.READ, CallClass.LOCAL} else Replay.ASK,
        # The built-in probes read the whole call, and say so where other commands leave a doubt.
        probe=first.probe if len(parts) == 1 and first.probe.startswith(_BUILT_IN_PROBE) else "",
        nothing_happened=(),
        key=(*WHOLE, *ingredients),
        target=first.target if len(effects) == 1 else "",
        external=tuple(external),
    )


def _smallest(limits: Iterable[int | None]) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)
