"""Sends messages through Apprise, which knows some hundred services by their URL. The URL is a secret."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from jackline.engine.command_runner import run_command
from jackline.engine.process import SpawnFailed, WardenLost
from jackline.errors import ChannelDown, ConfigError
from jackline.features.notify import apprise_child
from jackline.features.notify.channel import HIGH, MAX
from jackline.features.notify.channel_secrets import hide_url, read_secret
from jackline.formatting import make_printable

if TYPE_CHECKING:
    from jackline.features.notify.channel import Channel, ChannelMessage
    from jackline.features.notify.sending import SendContext

_SHOWN = 200


def send(channel: Channel, message: ChannelMessage, context: SendContext) -> None:
    """Send a message to the service of the channel's URL; Apprise cuts it to what the service takes."""
    url = read_secret(channel, "url", context.environ)
    request = {
        "url": url,
        "title": message.title if message.body else "",  # Apprise refuses a message without a body
        "body": message.body or message.title,
        "is_urgent": message.priority in {HIGH, MAX},
    }
    argv = [sys.executable, "-W", "ignore", "-m", apprise_child.__name__]
    try:
        result = run_command(
            argv,
            cwd=context.folder,
            env=context.environ,
            stdin=json.dumps(request).encode(),
            timeout_s=context.timeout_s,
        )
    except (SpawnFailed, WardenLost) as error:
        raise ChannelDown(error) from None
    if result.timed_out:
        raise ChannelDown(f"Apprise: no answer within {context.timeout_s:.0f} s")
    if result.exit_code == apprise_child.UNKNOWN_URL:
        raise ConfigError(f"[channels.{channel.name}] url: Apprise does not know such a URL; see docs/notices.md")
    if result.exit_code != 0:
        lines = (result.stdout_tail or result.stderr_tail).decode(errors="replace").strip().splitlines()
        reason = make_printable(hide_url(lines[-1], url))[:_SHOWN] if lines else "it was not sent"
        raise ChannelDown(f"Apprise: {reason}")
