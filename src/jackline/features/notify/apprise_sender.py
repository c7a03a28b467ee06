"""Sends messages through Apprise, which knows some hundred services by their URL. The URL is a secret."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

from jackline.errors import ChannelDown, ConfigError
from jackline.features.notify.channel import HIGH, MAX
from jackline.features.notify.channel_secrets import read_secret

if TYPE_CHECKING:
    from jackline.features.notify.channel import Channel, ChannelMessage
    from jackline.features.notify.sending import SendContext

_SHORTEST_SECRET = 4
_SHOWN = 200


def send(channel: Channel, message: ChannelMessage, context: SendContext) -> None:
    """Send a message to the service of the channel's URL; Apprise cuts it to what the service takes."""
    import apprise

    url = read_secret(channel, "url", context.environ)
    service = apprise.Apprise(asset=apprise.AppriseAsset(app_id="jackline", async_mode=False, storage_mode="memory"))
    if not service.add(url):
        raise ConfigError(f"[channels.{channel.name}] url: Apprise does not know such a URL; see docs/notices.md")
    kind = apprise.NotifyType.WARNING if message.priority in {HIGH, MAX} else apprise.NotifyType.INFO
    # Apprise declares no types for it.
    with apprise.LogCapture(level=logging.WARNING, fmt="%(message)s") as log:  # type: ignore[no-untyped-call]
        is_sent = service.notify(title=message.title, body=message.body, notify_type=kind)
        said = log.getvalue() if log is not None else ""
    if not is_sent:
        lines = said.strip().splitlines()
        raise ChannelDown(f"Apprise: {_hide_url(lines[-1], url)[:_SHOWN] if lines else 'it was not sent'}")


def _hide_url(text: str, url: str) -> str:
    """The text without any part of the URL."""
    for part in sorted(re.split(r"[/:@?&=]+", url), key=len, reverse=True):
        if len(part) >= _SHORTEST_SECRET:
            text = text.replace(part, "***")
    return text
