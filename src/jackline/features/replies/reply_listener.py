"""Listens to the reply topic of a channel inside a running service, and takes each reply once. It opens no port."""

from __future__ import annotations

import os
import time
from contextlib import closing
from typing import TYPE_CHECKING

from jackline import clock
from jackline.app.service_tasks import ServiceTask
from jackline.diagnostic_log import LOG
from jackline.domain.limits import RetryPolicy, compute_backoff_ms
from jackline.domain.records import SubjectNotice
from jackline.errors import ChannelDown, ConfigError
from jackline.features.notify.channel_settings import load_channels
from jackline.features.notify.delivery_store import DeliveryStore
from jackline.features.replies.reply_channel import build_read_headers, find_reply_address, find_reply_settings
from jackline.features.replies.reply_store import ReplyStore
from jackline.features.replies.reply_stream import ReplyStream, poll_messages

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.app.service_tasks import ServiceContext
    from jackline.features.notify.channel import Channel
    from jackline.features.replies.reply_channel import ReplySettings
    from jackline.features.replies.reply_store import ReplyMessage

_LOOK_SECONDS = 0.25  # how often a quiet stream looks whether the service is being stopped
_OPEN_SECONDS = 20.0  # a server that sends nothing for so long is polled: something between holds its stream back
_STEADY_SECONDS = 60.0  # a stream that is cut sooner, without a message, is opened again after growing pauses
_POLL_SECONDS = 20.0
_POLLING_SECONDS = 900.0  # until the next attempt to follow the stream
_CLOSED_SECONDS = 60.0
_DAY_MS = 86_400_000
_RECONNECTING = RetryPolicy(base_ms=1_000, cap_ms=120_000)


def list_service_tasks(home: Home) -> list[ServiceTask]:
    """One task for each channel that takes replies."""
    channels, _ = load_channels(home.config)
    return [
        ServiceTask(f"replies-{channel.name}", ReplyListener(channel, settings).run)
        for channel in channels
        if (settings := find_reply_settings(channel))
    ]


class ReplyListener:
    """Reads the replies of one channel; a broken connection is made again from where the reading stood."""

    def __init__(self, channel: Channel, settings: ReplySettings) -> None:
        self._channel, self._settings = channel, settings
        self._failures = 0
        self._paused_until = 0.0  # of the monotonic clock, as the next one
        self._polling_until = 0.0

    def run(self, context: ServiceContext) -> float:
        """Read until the service stops or the connection ends; the seconds until the next attempt."""
        pause = self._paused_until - time.monotonic()
        if pause > 0:
            return pause
        if self._is_closed(context):
            return _CLOSED_SECONDS
        try:
            # A service that does only what is due now does not wait.
            if time.monotonic() < self._polling_until or context.wait(0):
                return self._poll(context)
            return self._follow(context)
        except (ChannelDown, ConfigError) as error:
            self._failures += 1
            if isinstance(error, ConfigError):
                self._report(context, str(error))
            pause = compute_backoff_ms(_RECONNECTING, self._failures, self._channel.name) / 1000
            self._paused_until = time.monotonic() + pause
            LOG.warning(f"replies of {self._channel.name}: {error}; next attempt in {pause:.0f} s")
            return pause

    def _is_closed(self, context: ServiceContext) -> bool:
        """Whether nothing is read now: after wrong codes, or until a person confirms a change of the settings."""
        from jackline.app.own_files import find_unconfirmed

        home = context.home
        since = home.config.loaded_at or clock.wall_ms()
        DeliveryStore(home.store()).register_channels([self._channel.name], since)
        state = ReplyStore(home.store()).get_channel(self._channel.name)
        return state is None or bool(state.closed_at) or find_unconfirmed(home) is not None

    def _follow(self, context: ServiceContext) -> float:
        begun = time.monotonic()
        with closing(ReplyStream(*self._build_request(context))) as stream:
            while not context.is_stopping:
                message = stream.next(_LOOK_SECONDS)
                age = time.monotonic() - begun
                if not stream.is_open and age > _OPEN_SECONDS:
                    self._polling_until = time.monotonic() + _POLLING_SECONDS
                    return 0.0
                if message is not None or age > _STEADY_SECONDS:
                    self._failures = 0
                if message is not None and not self._handle(context, message):
                    return _CLOSED_SECONDS
        return 0.0

    def _poll(self, context: ServiceContext) -> float:
        for message in poll_messages(*self._build_request(context)):
            if context.is_stopping or not self._handle(context, message):
                return _CLOSED_SECONDS
        self._failures = 0
        return _POLL_SECONDS

    def _build_request(self, context: ServiceContext) -> tuple[str, int, dict[str, str]]:
        """The address of the topic, from when on it is read, and the headers."""
        state = ReplyStore(context.home.store()).get_channel(self._channel.name)
        since = 0 if state is None else state.position.since
        return find_reply_address(self._channel, os.environ), since, build_read_headers(self._channel, os.environ)

    def _report(self, context: ServiceContext, reason: str) -> None:
        """Tell the person, once a day, that the replies cannot be read before something is changed."""
        name, at = self._channel.name, clock.wall_ms()
        notice = SubjectNotice(
            id=f"replies-unreadable-{name}-{at // _DAY_MS}",
            subject="home",
            kind="replies.unreadable",
            title=f"replies from '{name}' cannot be read",
            body=reason,
            created_at=at,
        )
        context.home.store().notices.add(notice)
        context.home.wake_services()

    def _handle(self, context: ServiceContext, message: ReplyMessage) -> bool:
        """Take a reply; False if the channel is closed now, or a change of the settings is not confirmed."""
        from jackline.app.own_files import find_unconfirmed

        home, name = context.home, self._channel.name
        if find_unconfirmed(home) is not None:
            return False
        replies = ReplyStore(home.store())
        outcome = replies.take(name, self._settings.mode, message, clock.wall_ms())
        if outcome is not None:
            home.notify_change()
            home.wake_services()  # for the run that may continue, and the notice of the reply's result
        state = replies.get_channel(name)
        return state is not None and state.closed_at is None
