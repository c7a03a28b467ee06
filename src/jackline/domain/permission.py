"""Rules that a person approved before a run began, by name: their calls need no approval. Pure.

It never changes a `deny`: edit the rule for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.combining import JOINED, OTHERS
from jackline.domain.states import CallClass, Decision

if TYPE_CHECKING:
    from collections.abc import Collection

    from jackline.domain.rule import Rule

EFFECTS = "effects"  # every rule that asks
_NO_RULES = frozenset({OTHERS, *map(str, CallClass)})  # parts of a joined name that are not rules, and never ask


def permitted(rule: Rule, allowed: Collection[str]) -> Rule:
    """Turn the rule's `ask` into `allow` if every part of it is approved."""
    if rule.decision is not Decision.ASK or not allowed:
        return rule
    names = set(rule.name.split(JOINED)) - _NO_RULES
    approved = EFFECTS in allowed or (bool(names) and names <= set(allowed))
    return rule._replace(decision=Decision.ALLOW) if approved else rule
