"""Profiles: how a run decides by itself about calls that would ask. Data, and one pure function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.states import Decision
from jackline.named import NamedTuple
from jackline.policy.agreements import SIDE_BRANCH, UNKNOWN_BRANCH, is_agreed, list_rule_names

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from jackline.policy.agreements import AskedPart

NONE, OVERNIGHT, CI = "none", "overnight", "ci"


class Profile(NamedTuple):
    """The rules that a profile allows in own repositories; every other question is denied."""

    pushes: tuple[str, ...] = ()  # to branches other than the default one
    rules: tuple[str, ...] = ()


PROFILES = {
    OVERNIGHT: Profile(pushes=("git.push",), rules=("gh.pr.create", "glab.mr.create")),
    CI: Profile(),
}


def decide_parts(name: str, parts: Iterable[AskedPart], allowed: Collection[str]) -> Decision:
    """Allow or deny a call that asks; `ask` only if it is a push and the default branch is unknown."""
    decisions = {Decision.ALLOW if is_agreed(part, allowed) else _decide_part(PROFILES[name], part) for part in parts}
    return next((one for one in (Decision.DENY, Decision.ASK) if one in decisions or not decisions), Decision.ALLOW)


def _decide_part(profile: Profile, part: AskedPart) -> Decision:
    names = set(list_rule_names(part.rule))
    if not names or not part.is_plain:
        return Decision.DENY
    if names <= set(profile.rules):
        return Decision.ALLOW
    if not names <= {*profile.rules, *profile.pushes}:
        return Decision.DENY
    return {SIDE_BRANCH: Decision.ALLOW, UNKNOWN_BRANCH: Decision.ASK}.get(part.branch, Decision.DENY)


def describe_rule(name: str, rule: str) -> str:
    """What a profile does with the calls of a rule that asks."""
    profile, names = PROFILES[name], set(list_rule_names(rule))
    if names and names <= set(profile.rules):
        return "allowed in your own repositories, denied elsewhere"
    if names and names <= {*profile.rules, *profile.pushes}:
        return (
            "allowed to branches of your own remotes other than the default one (asks if that is unknown), else denied"
        )
    return "denied, unless --allow covers it; the run continues"
