"""Delivers notices inside a running service: one task per channel, so that a dead one delays no other."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from jackline import clock
from jackline.app.service_tasks import ServiceTask
from jackline.domain.limits import RetryPolicy, compute_backoff_ms
from jackline.features.notify.channel_pass import ChannelPass, run_passes
from jackline.features.notify.channel_settings import load_channels
from jackline.features.notify.delivery import close_removed, plan_deliveries
from jackline.features.notify.delivery_store import DeliveryStore
from jackline.features.notify.senders import find_terminal

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.app.service_tasks import ServiceContext
    from jackline.features.notify.channel import Channel

_PASS_SECONDS = 60.0
_PING_SECONDS = 5.0  # a run that starts or ends gives no signal
_IDLE_SECONDS = 60.0  # without a signal; a safety net
_REOPENING = RetryPolicy(base_ms=5_000, cap_ms=300_000)  # how long a channel that does not work is left alone


def list_service_tasks(home: Home) -> list[ServiceTask]:
    """One task for each channel of the settings; without any, one that closes what is left of removed ones."""
    channels, problems = load_channels(home.config)
    home.warnings += problems
    tasks = [ServiceTask(f"notify-{channel.name}", ChannelTask(channel).run) for channel in channels]
    return [*(tasks or [ServiceTask("notify", close_old_messages)]), ServiceTask("ping", send_pings)]


def close_old_messages(context: ServiceContext) -> float:
    """Close what is left of removed channels; the seconds until the next look."""
    if not context.home.is_new:
        close_removed(context.home)
    return _IDLE_SECONDS


def send_pings(context: ServiceContext) -> float:
    """Request the addresses of runs that have started or ended; the seconds until the next look."""
    if context.home.is_new or not context.home.store().notices.has_open_ping():
        return _PING_SECONDS
    from jackline.features.notify.ping import list_ping_passes

    until = time.monotonic() + _PASS_SECONDS
    passes = list_ping_passes(context.home, context.service_id, until, is_stopping=lambda: context.is_stopping)
    run_passes(passes, until)
    return _PING_SECONDS


class ChannelTask:
    """Delivers to one channel, and remembers when it last failed."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._failures = 0
        self._closed_until = 0.0  # of the monotonic clock
        self._failed_at = 0

    def run(self, context: ServiceContext) -> float:
        """Deliver what is due; the seconds until the next look."""
        closed = self._closed_until - time.monotonic()
        home = context.home
        if closed > 0 and not DeliveryStore(home.store()).has_retried(self._channel.name, self._failed_at):
            return closed
        plan_deliveries(home, load_channels(home.config)[0])
        until = time.monotonic() + _PASS_SECONDS
        one = ChannelPass(
            home,
            self._channel,
            context.service_id,
            until,
            terminal=find_terminal(),
            is_stopping=lambda: context.is_stopping,
        )
        one.send_due()
        if one.is_down:
            self._failures += 1
            pause = compute_backoff_ms(_REOPENING, self._failures, self._channel.name) / 1000
            self._closed_until, self._failed_at = time.monotonic() + pause, clock.wall_ms()
            return pause
        self._failures = 0
        next_at = DeliveryStore(home.store()).find_next_at(self._channel.name)
        return _IDLE_SECONDS if next_at is None else min(_IDLE_SECONDS, max(0.5, (next_at - clock.wall_ms()) / 1000))
