"""What agents spend per day, and what running turns may still spend of the day's budget. The days are UTC."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.records import SubjectNotice
from jackline.errors import DayBudgetSpent
from jackline.formatting import DAY_MS, format_date, format_usd
from jackline.store import rows
from jackline.store.driver import Statements, clean
from jackline.store.parts import StorePart, lock_fenced_head

if TYPE_CHECKING:
    from jackline.domain.limits import Spent
    from jackline.domain.records import Lease

_MOSTLY_SPENT = 0.8
_RESERVED_MS = 60_000  # when to check whether other turns have released their reservations


class SpendingStore(StorePart):
    """Reservations: two turns at the same time cannot both spend the rest of a day's budget."""

    def reserve(self, lease: Lease, limit: int, wanted: int | None, at: int) -> int:
        """Reserve the rest of the run's budget (`wanted`) or of the day's, whichever is less; return the amount.

        `limit` is the budget of a day, in millionths of a dollar. DayBudgetSpent if nothing is left of it.
        """

        def reserve(statements: Statements) -> int:
            lock_fenced_head(statements, lease)
            statements.one("lock_instance", {})  # one reservation after the other
            values = {"run_id": lease.run_id, "day": format_date(at)}
            row = statements.one("get_day_spending", values)
            spent, reserved = map(int, row or (0, 0))
            rest = limit - spent - reserved
            if rest <= 0:
                holders = [str(row[0]) for row in statements.all("list_reserving", values)]
                raise _build_refusal(limit, spent, at, holders)
            amount = rest if wanted is None else min(rest, wanted)
            statements.run("put_reservation", {**values, "usd_micros": amount})
            return amount

        return self._driver.write(reserve)

    def find_rest(self, limit: int, at: int) -> int:
        """What is left of the day's budget, in millionths of a dollar, after what running turns have reserved."""
        row = self._one("get_day_spending", {"run_id": "", "day": format_date(at)})
        return limit - sum(map(int, row or (0, 0)))


def _build_refusal(limit: int, spent: int, at: int, holders: list[str]) -> DayBudgetSpent:
    if spent < limit:
        reserved = f"the day's budget of {format_usd(limit)} is reserved by turns of {', '.join(holders)}"
        hint = "`jackline resume --lost --all-repos` settles those of lost runs"
        return DayBudgetSpent(f"{reserved}; resume when they have ended; {hint}", wake_at=at + _RESERVED_MS)
    detail = f"the day's budget is spent: {format_usd(spent)} of {format_usd(limit)}; the next day starts at 00:00 UTC"
    return DayBudgetSpent(detail, wake_at=find_next_day(at))


def report_day_budget(statements: Statements, day: str | None, limit: int, at: int) -> None:
    """Write a notice when most of a day's budget is spent, and another one when all of it is: once for each budget."""
    day = day or format_date(at)
    row = statements.one("get_day_spending", {"run_id": "", "day": day})
    spent = int(row[0]) if row else 0
    if spent < limit * _MOSTLY_SPENT:
        return
    kind, text = ("budget.spent", "is spent") if spent >= limit else ("budget.low", "is nearly spent")
    notice = SubjectNotice(
        id=f"{kind}-{day}-{limit}",
        subject=f"budget:{day}",
        kind=kind,
        title=f"the budget of {day} {text}",
        body=f"{format_usd(spent)} of {format_usd(limit)}; a run that needs more waits until 00:00 UTC",
        created_at=at,
    )
    statements.run("add_subject_notice", rows.build_parameters(notice))


def find_next_day(at: int) -> int:
    """When the next day starts, in UTC."""
    return (at // DAY_MS + 1) * DAY_MS


def settle_reservation(statements: Statements, run_id: str) -> str | None:
    """Delete the reservation of a turn that has ended; return its day, to which the turn is charged."""
    row = statements.one("drop_reservation", {"run_id": run_id})
    return str(row[0]) if row else None


def charge_spending(
    statements: Statements, agent: str, at: int, spent: Spent, before: Spent | None = None, day: str | None = None
) -> None:
    """Add the spending of a write to the agent's day, in the same transaction; a sum over all runs would grow."""
    usd_micros = spent.usd_micros - (before.usd_micros if before else 0)
    tokens = spent.tokens - (before.tokens if before else 0)
    if usd_micros or tokens:
        values = {"day": day or format_date(at), "agent": clean(agent), "usd_micros": usd_micros, "tokens": tokens}
        statements.run("add_spending", values)
