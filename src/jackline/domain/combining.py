"""Merges the rules that match one call into one rule, which is never laxer than any of them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.states import CallClass, Decision, Replay

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.domain.rule import Rule

JOINED = " + "  # joins the names of merged rules
OTHERS = "others"  # in a rule name: other commands without a rule; the whole call is the key
WHOLE = ("command", "folder")  # fields that identify a shell call
_CLASSES = (CallClass.READ, CallClass.LOCAL, CallClass.UNKNOWN, CallClass.EFFECT)  # strictest last
_DECISIONS = (Decision.STORED, Decision.ALLOW, Decision.ASK, Decision.DENY)
_BUILT_IN_PROBE = "builtin:"
_HOST_PREFIXES = ("git.", "file:")  # prefixes of key inputs that only the host knows


def class_rank(rule: Rule) -> int:
    return _CLASSES.index(rule.call_class)


def decision_rank(rule: Rule) -> int:
    return _DECISIONS.index(rule.decision)


def is_ingredient(name: str) -> bool:
    """Check whether only the host knows this key input."""
    return name.startswith(_HOST_PREFIXES)


def combine(parts: Sequence[Rule], *, others: bool = False) -> Rule:
    """Merge rules into one. With `others`, the call has more commands than the rules cover, so it is never replayed."""
    firm = [rule for rule in parts if not rule.tightens] or list(parts)
    first = max(firm, key=class_rank)  # the first of equals
    if len(parts) == 1 and not others:
        return harmless(first) if first.tightens else first
    kept = first if len(firm) == 1 and not others else _remove_claims(firm, first)
    strictest = max(parts, key=decision_rank)
    joined = kept._replace(
        name=JOINED.join([*(rule.name for rule in parts), *([OTHERS] if others else [])]),
        call_class=max(parts, key=class_rank).call_class,
        decision=strictest.decision,
        most=min((rule.most for rule in parts if rule.most is not None), default=None),
        hint=strictest.hint,
        tightens=False,
    )
    # A replay mode that was safe for a read is not safe for an effect.
    return joined if joined.call_class is first.call_class else joined._replace(replay=Replay.ASK, probe="")


def harmless(rule: Rule) -> Rule:
    """Remove every claim that could make a call look safer or equal to another one."""
    return rule._replace(probe="", replay=Replay.ASK, nothing_happened=(), external=(), key=())


def accompanied(rule: Rule) -> Rule:
    """Adapt a rule for a call with several commands: the exit code may belong to another command."""
    if not rule.nothing_happened:
        return rule
    return rule._replace(name=f"{rule.name}{JOINED}{CallClass.READ}", nothing_happened=())


def _remove_claims(parts: Sequence[Rule], first: Rule) -> Rule:
    """Remove the claims of single rules: no probe and no field covers several commands, only the whole command does."""
    effects = [rule for rule in parts if rule.call_class is CallClass.EFFECT]
    named = (piece for rule in effects for name in rule.key for piece in name.split("|"))
    ingredients = dict.fromkeys(name for name in named if is_ingredient(name))
    external = dict.fromkeys(pair for rule in effects for pair in rule.external)
    return first._replace(
        replay=first.replay if first.call_class in {CallClass.READ, CallClass.LOCAL} else Replay.ASK,
        # The built-in probes examine the whole call, and report doubt if other commands cause it.
        probe=first.probe if len(parts) == 1 and first.probe.startswith(_BUILT_IN_PROBE) else "",
        nothing_happened=(),
        key=(*WHOLE, *ingredients),
        target=first.target if len(effects) == 1 else "",
        external=tuple(external),
    )
