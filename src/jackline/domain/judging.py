"""What a call is: the rule that it falls under, and what can be said of it by name. Pure: it reads no file.

A call of a shell is judged by every command that it would run, and is as strict as the strictest of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from jackline.domain import policy
from jackline.domain.events import NOTHING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.rule import Rule


class Where(NamedTuple):
    """Where a call would run; both are absolute."""

    workspace: str
    folder: str


class Match(NamedTuple):
    """One command of a call, and the rule that it fell under."""

    words: str
    rule: str
    why: str


class Judgement(NamedTuple):
    """Everything that the gate needs to know of a call before it looks into its history."""

    rule: Rule  # where several effects meet in one command: all of them, joined by " + "
    fields: Mapping[str, Any]  # what `key` and `target` may name besides the input's own fields
    matches: tuple[Match, ...] = ()
    wants: frozenset[str] = frozenset()  # ingredients that only the host can tell, such as git.commit
    folder: str = ""  # where they are to be looked for; empty: nobody can say
    mistake: str = ""  # why the input does not fit the tool's schema; such a call is denied with a hint


def judge(rules: tuple[Rule, ...], tool: str, given: Any, where: Where) -> Judgement:  # noqa: ANN401 - any JSON
    """The judgement of a call; `rules` are the run's own, frozen with it."""
    del given
    return Judgement(policy.match(rules, tool), NOTHING, folder=where.folder)
