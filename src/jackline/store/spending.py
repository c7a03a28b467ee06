"""What was spent on each day, added up while it is spent: a sum over all runs would grow. It reads nothing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from jackline.store.driver import Statements, clean

if TYPE_CHECKING:
    from jackline.domain.records import Life, Run
    from jackline.store.contract import Change


def add(statements: Statements, before: Run, after: Life, change: Change) -> None:
    """Charge what this write adds to the run, in the same transaction, to whoever's turn it was.

    `after` may already name the agent that takes over.
    """
    usd_micros = after.spent.usd_micros - before.life.spent.usd_micros
    tokens = after.spent.tokens - before.life.spent.tokens
    if not usd_micros and not tokens:
        return
    agent = change.turn.agent if change.turn is not None else before.agent
    values = {"day": day_of(change.at), "agent": clean(agent), "usd_micros": usd_micros, "tokens": tokens}
    statements.run("add_spending", values)


def day_of(at: int) -> str:
    """The day of a moment, in UTC."""
    return time.strftime("%Y-%m-%d", time.gmtime(at // 1000))
