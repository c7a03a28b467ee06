"""Which notice still has to go to which channel: rows are planned, claimed, and closed. It sends nothing.

A row is claimed before its message is sent, so that of several processes one sends it. A process that dies in between
leaves a claim that runs out: the message is sent again, with the same id. Times are the caller's wall clock; a time
that lies further ahead than any wait was set by a clock that went wrong, and counts as over.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from jackline.domain.limits import RetryPolicy, compute_backoff_ms
from jackline.errors import Ambiguous, NotFound
from jackline.named import NamedTuple, stored_as
from jackline.store import rows
from jackline.store.driver import clean
from jackline.store.parts import PING_CHANNEL, PingEvent, StorePart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from jackline.store.driver import Row, Statements

PENDING, SENT, SKIPPED, STUCK = "pending", "sent", "skipped", "stuck"
BACKOFF = RetryPolicy(most=12, base_ms=30_000, cap_ms=3_600_000)
GIVE_UP_AFTER_MS = 6 * 3_600_000  # commands retry without a pause: attempts alone would soon be used up
CLAIM_MS = 90_000  # longer than any channel may take
_PAGE = 200
_REMOVED = 10**15  # the start of a channel that is not configured
_LONGEST_WAIT_MS = 2 * 3_600_000
_LONGEST_ERROR = 500
_MOST_STUCK_PINGS = 1_000


@stored_as("notice_id channel state attempts next_at owner claimed_until error created_at sent_at")
class Delivery(NamedTuple):
    """One notice on its way to one channel."""

    notice_id: str
    channel: str
    state: str
    attempts: int = 0
    next_at: int = 0
    owner: str = ""
    claimed_until: int = 0
    error: str = ""
    created_at: int = 0
    sent_at: int | None = None

    def is_stuck(self, at: int) -> bool:
        """Whether an attempt failed, and the message has not been sent since.

        The first attempt has not failed while its claim lasts; if its process was killed, the claim runs out.
        """
        is_claimed = at < self.claimed_until <= at + _LONGEST_WAIT_MS
        is_first = self.attempts == 1 and is_claimed and not self.error
        return self.state == STUCK or (self.state == PENDING and self.attempts > 0 and not is_first)


class OutboxNotice(NamedTuple):
    """A notice of either table, as delivery needs it."""

    id: str
    created_at: int
    kind: str
    subject: str  # `run:ID` for one about a run
    title: str
    body: str
    labels: str = ""
    priority: str = ""

    @property
    def run_id(self) -> str:
        """The run that it is about; empty for another subject."""
        kind, _, run_id = self.subject.partition(":")
        return run_id if kind == "run" else ""


class ListedNotice(NamedTuple):
    """A notice with its state on each channel."""

    notice: OutboxNotice
    delivered_at: int | None  # when nothing was left to do
    deliveries: tuple[Delivery, ...]

    @property
    def is_ping(self) -> bool:
        """Whether it is a ping: a request of a run's address."""
        return any(delivery.channel == PING_CHANNEL for delivery in self.deliveries)

    def is_stuck(self, at: int) -> bool:
        """Whether a channel did not take it."""
        return any(delivery.is_stuck(at) for delivery in self.deliveries)


class DeliveryStore(StorePart):
    """The part of the store with the deliveries of notices."""

    def register_channels(self, names: Iterable[str], at: int) -> dict[str, int]:
        """Since when each of these channels exists; a new one, or one that was removed, exists since `at`.

        A start in the future is that of a clock which was set back since.
        """
        known = self._list_starts()
        new = [name for name in names if known.get(name, _REMOVED) > at]
        if not new:
            return known

        def add(statements: Statements) -> dict[str, int]:
            for name in new:
                statements.run("add_channel", {"channel": name, "since": at})
                statements.run("set_channel_start", {"channel": name, "since": at})
            starts: dict[str, int] = dict(statements.all("list_channel_starts", {}))
            return starts

        return self._driver.write(add)

    def _list_starts(self) -> dict[str, int]:
        starts: dict[str, int] = dict(self._all("list_channel_starts", {}))
        return starts

    def has_work(self, names: Iterable[str], loaded_at: int) -> bool:
        """Whether a row is open, or a notice is new to these channels."""
        known = self._list_starts()
        since = min((min(known.get(name, loaded_at), loaded_at) for name in names), default=loaded_at)
        row = self._one("has_delivery_work", {"since": since})
        return row is not None and bool(row[0])

    def plan(self, since: Mapping[str, int], at: int, is_wanted: Callable[[str, OutboxNotice], bool]) -> int:
        """Write rows for new notices: pending for each channel that wants one, skipped for the others.

        A channel gets no notice that is older than the channel. Returns the number of notices.
        """
        if not since:
            return 0
        values = {"since": min(since.values()), "limit": _PAGE}
        total = 0
        while notices := [OutboxNotice(*row) for row in self._all("unplanned_notices", values)]:
            planned = [
                Delivery(
                    notice_id=notice.id,
                    channel=channel,
                    state=PENDING if is_wanted(channel, notice) else SKIPPED,
                    next_at=notice.created_at,
                    created_at=at,
                )
                for notice in notices
                for channel, start in since.items()
                if notice.created_at >= start
            ]
            self._driver.write(partial(self._add_planned, planned=planned, at=at))
            total += len(notices)
        return total

    def _add_planned(self, statements: Statements, planned: list[Delivery], at: int) -> None:
        for delivery in planned:
            statements.run("add_delivery", rows.build_parameters(delivery))
        for notice_id in {delivery.notice_id for delivery in planned}:
            self._finish_notice(statements, notice_id, at)

    def list_due(self, channel: str, at: int, due: int, limit: int = _PAGE) -> list[Delivery]:
        """The channel's unclaimed rows that are due at `due`."""
        values = {"channel": channel, "at": at, "due": due, "impossible": at + _LONGEST_WAIT_MS, "limit": limit}
        return [Delivery(*row) for row in self._all("due_deliveries", values)]

    def claim(self, delivery: Delivery, owner: str, at: int) -> Delivery | None:
        """Claim a row for one attempt to send it; None if another process was faster."""
        values = {
            "notice_id": delivery.notice_id,
            "channel": delivery.channel,
            "attempts": delivery.attempts,
            "owner": owner,
            "at": at,
            "until": at + CLAIM_MS,
            "impossible": at + _LONGEST_WAIT_MS,
        }
        if self._driver.write(lambda statements: statements.run("claim_delivery", values)) == 0:
            return None
        return delivery._replace(attempts=delivery.attempts + 1, owner=owner, claimed_until=at + CLAIM_MS)

    def close(self, delivery: Delivery, state: str, at: int, error: str = "") -> None:
        """Record that the message was sent or is not sent at all, even if the claim ran out meanwhile."""
        values = {
            "notice_id": delivery.notice_id,
            "channel": delivery.channel,
            "state": state,
            "sent_at": at if state == SENT else None,
            "error": self._cut_error(error),
        }

        def write(statements: Statements) -> None:
            statements.run("close_delivery", values)
            self._finish_notice(statements, delivery.notice_id, at)

        self._driver.write(write)

    def postpone(self, delivery: Delivery, at: int, error: str) -> int:
        """Record a failed attempt; when it is tried again, or 0 if that was the last one."""
        is_over = delivery.attempts >= BACKOFF.most and at - delivery.created_at >= GIVE_UP_AFTER_MS
        seed = f"{delivery.notice_id}:{delivery.channel}"
        next_at = at + compute_backoff_ms(BACKOFF, delivery.attempts, seed)
        values = {
            "notice_id": delivery.notice_id,
            "channel": delivery.channel,
            "attempts": delivery.attempts,
            "owner": delivery.owner,
            "state": STUCK if is_over else PENDING,
            "next_at": next_at,
            "error": self._cut_error(error),
        }
        self._driver.write(lambda statements: statements.run("postpone_delivery", values))
        return 0 if is_over else next_at

    def release(self, owner: str, error: str) -> list[str]:
        """Give up the claims of a process that has ended: the rows are due as before. Returns their channels."""
        values = {"owner": owner, "error": self._cut_error(error)}

        def release(statements: Statements) -> list[str]:
            held = statements.all("claimed_channels", {"owner": owner})
            statements.run("release_deliveries", values)
            return [channel for (channel,) in held]

        return self._driver.write(release)

    def retry(self, notice_id: str, at: int) -> int:
        """Make the open rows of a notice due at once, those that were given up too; all notices without an id."""
        values = {"notice_id": clean(notice_id), "at": at}
        return self._driver.write(lambda statements: statements.run("retry_deliveries", values))

    def has_retried(self, channel: str, since: int) -> bool:
        """Whether a row of the channel was made due at once by `retry`, since a time, and was not tried since."""
        return self._one("has_retried_delivery", {"channel": channel, "since": since}) is not None

    def skip_removed(self, known: Iterable[str], at: int) -> int:
        """Close the open rows of channels that are no longer configured, those that were given up, too.

        If such a channel returns, it gets new notices only.
        """
        names = {*known, PING_CHANNEL}
        gone = [name for name, start in self._list_starts().items() if name not in names and start != _REMOVED]

        def forget(statements: Statements) -> None:
            for name in gone:
                statements.run("set_channel_start", {"channel": name, "since": _REMOVED})

        if gone:
            self._driver.write(forget)
        removed = [channel for (channel,) in self._all("unfinished_channels", {}) if channel not in names]
        for channel in removed:
            for (notice_id,) in self._all("unfinished_of_channel", {"channel": channel}):
                self.close(Delivery(notice_id, channel, PENDING), SKIPPED, at, "the channel was removed")
        return len(removed)

    def find_next_at(self, channel: str) -> int | None:
        """When the channel's next row is due; None if there is none."""
        row = self._one("next_delivery_at", {"channel": channel})
        return row[0] if row else None

    def list_stuck(self, at: int, run_id: str = "", limit: int = 100) -> list[ListedNotice]:
        """The notices that a channel did not take, and the pings that a server did not; newest first."""
        notices = self.list_notices(at, run_id, limit, stuck_only=True)
        values = {
            "channel": PING_CHANNEL,
            "at": at,
            "impossible": at + _LONGEST_WAIT_MS,
            "limit": _MOST_STUCK_PINGS,
        }
        pings = [_build_listed_ping(Delivery(*row)) for row in self._all("stuck_pings", values)]
        found = [*notices, *(one for one in pings if run_id in {"", one.notice.run_id})]
        return sorted(found, key=lambda one: -one.notice.created_at)[:limit]

    def list_notices(
        self, at: int, run_id: str = "", limit: int = 100, *, stuck_only: bool = False
    ) -> list[ListedNotice]:
        """The stuck notices first, then the newest; `run_id`: only those about a run."""

        def read(statements: Statements) -> list[ListedNotice]:
            values = {"run_id": run_id, "limit": limit}
            rows = [] if stuck_only else statements.all("newest_outbox", values)
            known = {row[0] for row in rows}
            stuck = statements.all("stuck_outbox", {**values, "at": at, "impossible": at + _LONGEST_WAIT_MS})
            rows = [*(row for row in stuck if row[0] not in known), *rows]
            return [self._build_listed(statements, row) for row in rows]

        listed = self._driver.snapshot(read)
        return sorted(listed, key=lambda one: (not one.is_stuck(at), -one.notice.created_at))[:limit]

    def _build_listed(self, statements: Statements, row: Row) -> ListedNotice:
        *notice, delivered_at = row
        found = statements.all("deliveries_of_notice", {"id": notice[0]})
        return ListedNotice(OutboxNotice(*notice), delivered_at, tuple(Delivery(*one) for one in found))

    def list_deliveries(self, notice_id: str) -> list[Delivery]:
        """The deliveries of a notice, by channel."""
        return [Delivery(*row) for row in self._all("deliveries_of_notice", {"id": clean(notice_id)})]

    def find_notice_id(self, text: str) -> str:
        """The id of a notice by itself or its unique beginning; NotFound or Ambiguous."""
        values = {"start": clean(text), "end": clean(text) + "\U0010ffff"}
        found = [str(row[0]) for row in self._all("notice_ids", values)]
        if text in found:
            return text
        if not text or not found:
            raise NotFound(text, what="notice", hint="jackline notices --stuck")
        if len(found) > 1:
            raise Ambiguous(text, what="notice", count=len(found), some=", ".join(found[:3]))
        return found[0]

    def get_notice(self, notice_id: str) -> OutboxNotice | None:
        """A notice of either table."""
        row = self._one("get_open_notice", {"id": notice_id})
        return None if row is None else OutboxNotice(*row)

    def _finish_notice(self, statements: Statements, notice_id: str, at: int) -> None:
        for name in ("finish_notice", "finish_subject_notice"):
            statements.run(name, {"id": notice_id, "at": at})

    def _cut_error(self, error: str) -> str:
        return clean(self.redactor.redact(error))[:_LONGEST_ERROR]


def parse_ping_id(notice_id: str) -> tuple[PingEvent, str]:
    """The event and the run of the row of a ping."""
    kind, run_id, *_ = notice_id.split(":")
    return PingEvent(kind.removeprefix("ping.")), run_id


def build_fire_ping(event: PingEvent, run_id: str, at: int) -> Delivery:
    """The row that requests the address of a schedule for a fire that started no run."""
    notice_id = f"ping.{event}:{clean(run_id)}:fire"
    return Delivery(notice_id=notice_id, channel=PING_CHANNEL, state=PENDING, next_at=at, created_at=at)


def _build_listed_ping(delivery: Delivery) -> ListedNotice:
    """A ping as it is listed: by its run, because its address is a secret."""
    event, run_id = parse_ping_id(delivery.notice_id)
    notice = OutboxNotice(
        id=delivery.notice_id,
        created_at=delivery.created_at,
        kind=f"ping.{event}",
        subject=f"run:{run_id}",
        title=f"the address of run {run_id} was not reached",
        body="",
    )
    return ListedNotice(notice=notice, delivered_at=None, deliveries=(delivery,))
