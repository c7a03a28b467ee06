"""Sends one message over one channel: the table of the types of channels, and what a sender gets."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    from jackline.features.notify.channel import Channel, ChannelMessage

    class SenderModule(Protocol):
        """A module with one type of channel."""

        def send(self, channel: Channel, message: ChannelMessage, context: SendContext) -> None:
            """Send it; see `send_message` for how that fails."""


class SendContext(NamedTuple):
    """What a sender may use of its process."""

    environ: Mapping[str, str]  # with the secrets that channels name
    folder: str  # in which a command runs
    terminal: str = ""  # the path of the terminal of a person who waits, if there is one
    timeout_s: float = 10.0


_SENDERS = {
    "ntfy": "jackline.features.notify.ntfy",
    "apprise": "jackline.features.notify.apprise_sender",
    "webhook": "jackline.features.notify.webhook",
    "command": "jackline.features.notify.command_sender",
    "bell": "jackline.features.notify.bell",
}


def send_message(channel: Channel, message: ChannelMessage, context: SendContext) -> None:
    """Send a message.

    ChannelDown if the channel does not work now, MessageRefused if only this message fails, MessageNotNeeded if there
    is nothing to send it to, ConfigError if a secret cannot be read.
    """
    sender = cast("SenderModule", import_module(_SENDERS[channel.type]))
    sender.send(channel, message, context)
