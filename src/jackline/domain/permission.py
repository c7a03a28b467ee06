"""What a person agreed to before a run began: rules, by name, whose calls need not be asked about. Pure.

It never turns a `deny` into anything: whoever wants that changes the rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.combining import JOINED, OTHERS
from jackline.domain.states import CallClass, Decision

if TYPE_CHECKING:
    from collections.abc import Collection

    from jackline.domain.rule import Rule

EFFECTS = "effects"  # every rule that asks
_NO_RULES = frozenset({OTHERS, *map(str, CallClass)})  # what stands in a joined name besides rules, and asks nothing


def permitted(rule: Rule, allowed: Collection[str]) -> Rule:
    """The rule as it counts in a run that was given these names: `ask` becomes `allow` where all of it is agreed to."""
    if rule.decision is not Decision.ASK or not allowed:
        return rule
    names = set(rule.name.split(JOINED)) - _NO_RULES
    agreed = EFFECTS in allowed or (bool(names) and names <= set(allowed))
    return rule._replace(decision=Decision.ALLOW) if agreed else rule
