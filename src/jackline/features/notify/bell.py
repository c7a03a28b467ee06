"""Rings the bell of the terminal at which a person waits for a command or watches a service."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.errors import ChannelDown, MessageNotNeeded

if TYPE_CHECKING:
    from jackline.features.notify.channel import Channel, ChannelMessage
    from jackline.features.notify.sending import SendContext


def send(_channel: Channel, _message: ChannelMessage, context: SendContext) -> None:
    """Ring once; without a terminal nobody could hear it."""
    if not context.terminal:
        raise MessageNotNeeded("there is no terminal")
    try:
        descriptor = os.open(context.terminal, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if os.isatty(descriptor):
                os.write(descriptor, b"\a")
        finally:
            os.close(descriptor)
    except OSError as error:
        raise ChannelDown(f"{context.terminal}: {error.strerror}") from None


def find_terminal() -> str:
    """The path of the terminal of this process, if a person sees what it prints."""
    try:
        return os.ttyname(2)
    except OSError:
        return ""
