"""Sends what is due on one channel, one row after the other: each is claimed before it is sent."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

from jackline import clock
from jackline.errors import ChannelDown, ConfigError, MessageNotNeeded, MessageRefused
from jackline.features.notify.delivery_store import SENT, SKIPPED, STUCK, DeliveryStore
from jackline.features.notify.messages import build_message
from jackline.features.notify.senders import SendContext, send_message
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jackline.app.home import Home
    from jackline.features.notify.channel import Channel
    from jackline.features.notify.delivery_store import Delivery

_FAR_AHEAD_MS = 10**15
_LEAST_SECONDS = 0.05


class DeliveryReport(NamedTuple):
    """What the passes of one delivery did; the child that delivers for a command prints it as JSON.

    Pings are no messages, and not counted; in `down` they are a channel.
    """

    sent: int = 0
    postponed: int = 0
    stuck: int = 0  # given up
    down: Sequence[str] = ()  # channels that did not work
    problems: Sequence[str] = ()  # what is wrong with the settings


def find_due_time(at: int, *, ignores_backoff: bool) -> int:
    """Up to which time rows are sent: also those whose next attempt is later, if their backoff is ignored."""
    return at + _FAR_AHEAD_MS if ignores_backoff else at


class ChannelPass:
    """One look at the rows of one channel: sends what is due until one attempt shows that the channel does not work."""

    def __init__(
        self,
        home: Home,
        channel: Channel,
        owner: str,
        until: float,
        *,
        ignores_backoff: bool = False,
        terminal: str = "",
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        """`until` is a time of the monotonic clock."""
        self.channel, self.counts, self.is_down = channel, Counter[str](), False
        self.error: Exception | None = None
        self._home, self._owner, self._until = home, owner, until
        self._ignores_backoff, self._is_stopping = ignores_backoff, is_stopping
        self._context = SendContext(os.environ, home.path, terminal)
        self._deliveries = DeliveryStore(home.store())

    def _list_due(self, at: int, due: int) -> list[Delivery]:
        return self._deliveries.list_due(self.channel.name, at, due)

    def _send(self, claimed: Delivery, timeout_s: float) -> None:
        notice = self._deliveries.get_notice(claimed.notice_id)
        if notice is None:
            raise MessageNotNeeded("the notice is gone")
        message = build_message(self._home, notice, self.channel)
        send_message(self.channel, message, self._context._replace(timeout_s=timeout_s))

    def run(self) -> None:
        """Send what is due; an unexpected error is kept for the thread that waits."""
        try:
            self.send_due()
        except Exception as error:  # noqa: BLE001 - raised again by the thread that joins this one
            self.error = error

    def send_due(self) -> None:
        """Send what is due, the row that waits longest first."""
        at = clock.wall_ms()
        due = find_due_time(at, ignores_backoff=self._ignores_backoff)
        for delivery in self._list_due(at, due):
            left = self._until - time.monotonic()
            if self.is_down or self._is_stopping() or left < _LEAST_SECONDS:
                return
            claimed = self._deliveries.claim(delivery, self._owner, clock.wall_ms())
            if claimed is None:  # another process was faster
                continue
            try:
                self._send(claimed, min(left, self.channel.timeout_s))
            except MessageNotNeeded as error:
                self._deliveries.close(claimed, SKIPPED, clock.wall_ms(), str(error))
            except (ChannelDown, ConfigError, MessageRefused) as error:
                self.is_down = not isinstance(error, MessageRefused)
                next_at = self._deliveries.postpone(claimed, clock.wall_ms(), str(error))
                self.counts["postponed" if next_at else STUCK] += 1
            else:
                self._deliveries.close(claimed, SENT, clock.wall_ms())
                self.counts[SENT] += 1


def run_passes(passes: Sequence[ChannelPass], until: float) -> None:
    """Run each pass in its own thread, so that a dead server delays no other; an unexpected error is raised here."""
    threads = [threading.Thread(target=one.run, name=f"deliver-{one.channel.name}", daemon=True) for one in passes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    for one in passes:
        if one.error is not None:
            raise one.error
