"""Runs a command of the user for each message: the message as JSON on stdin, never as words of a shell."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, cast

from jackline.engine.command_runner import run_command
from jackline.engine.process import SpawnFailed, WardenLost
from jackline.errors import ChannelDown
from jackline.features.notify.webhook import build_payload
from jackline.formatting import make_printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.features.notify.channel import Channel, ChannelMessage
    from jackline.features.notify.sending import SendContext

_SHOWN = 200


def send(channel: Channel, message: ChannelMessage, context: SendContext) -> None:
    """Run the command; it has delivered the message if it exits with 0."""
    first, *rest = cast("Sequence[str]", channel.options["command"])
    env = {
        **context.environ,
        "JACKLINE_NOTICE_ID": message.id,
        "JACKLINE_NOTICE_KIND": message.kind,
        "JACKLINE_NOTICE_TITLE": message.title,
        "JACKLINE_NOTICE_PRIORITY": message.priority,
        "JACKLINE_NOTICE_RUN": message.run_id,
    }
    stdin = json.dumps(build_payload(message), ensure_ascii=False).encode()
    try:
        result = run_command(
            [os.path.expanduser(first), *rest], cwd=context.folder, env=env, stdin=stdin, timeout_s=context.timeout_s
        )
    except (SpawnFailed, WardenLost) as error:
        raise ChannelDown(error) from None
    if result.timed_out:
        raise ChannelDown(f"{first} did not end within {context.timeout_s:.0f} s")
    if result.exit_code != 0:
        said = make_printable((result.stderr_tail or result.stdout_tail).decode(errors="replace").strip()[-_SHOWN:])
        raise ChannelDown(f"{first} ended with {result.exit_code or result.signal}: {said}".rstrip(": "))
