"""What was spent on each day, added up while it is spent: a sum over all runs would grow. It reads nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.formatting import format_date
from jackline.store.driver import Statements, clean

if TYPE_CHECKING:
    from jackline.domain.budget import Spent
    from jackline.domain.records import Life, Run
    from jackline.store.contract import Change

_NOTHING = (0, 0)


def add(statements: Statements, before: Run, after: Life, change: Change) -> None:
    """Charge what this write adds to the run, in the same transaction, to whoever's turn it was.

    `after` may already name the agent that takes over.
    """
    agent = change.turn.agent if change.turn is not None else before.agent
    charge(statements, agent, change.at, after.spent, before.life.spent)


def charge(statements: Statements, agent: str, at: int, spent: Spent, before: Spent | None = None) -> None:
    """Add what was spent, less what was counted before, to the agent's day."""
    counted = _NOTHING if before is None else (before.usd_micros, before.tokens)
    usd_micros, tokens = spent.usd_micros - counted[0], spent.tokens - counted[1]
    if usd_micros or tokens:
        values = {"day": format_date(at), "agent": clean(agent), "usd_micros": usd_micros, "tokens": tokens}
        statements.run("add_spending", values)
