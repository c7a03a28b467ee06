"""Sends one message over one channel of any type; what only one type needs is imported when it is used."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, cast

from jackline import clock
from jackline.errors import ChannelDown, ConfigError, MessageNotNeeded
from jackline.features.notify.channel import APPRISE, BELL, COMMAND, HIGH, MAX, NTFY, WEBHOOK
from jackline.features.notify.channel_secrets import hide_url, read_secret
from jackline.formatting import format_iso, make_printable
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jackline.engine.command_runner import CommandResult
    from jackline.features.notify.channel import Channel, ChannelMessage

_MOST_BODY = 100_000
_SHOWN = 200


class SendContext(NamedTuple):
    """What a sender may use of its process."""

    environ: Mapping[str, str]  # with the secrets that channels name
    folder: str  # in which a command runs
    terminal: str = ""  # the path of the terminal of a person who waits, if there is one
    timeout_s: float = 10.0


def send_message(channel: Channel, message: ChannelMessage, context: SendContext) -> None:
    """Send a message.

    ChannelDown if the channel does not work now, MessageRefused if only this message fails, MessageNotNeeded if there
    is nothing to send it to, ConfigError if a secret cannot be read.
    """
    _SENDERS[channel.type](channel, message, context)


def _publish_to_ntfy(channel: Channel, message: ChannelMessage, context: SendContext) -> None:
    from jackline.features.notify.ntfy import publish_message

    publish_message(channel, message, context.environ, context.timeout_s)


def _post_to_webhook(channel: Channel, message: ChannelMessage, context: SendContext) -> None:
    """Post the message, signed: the receiver knows a repeated one by its id, and an old one by its time."""
    import hmac

    from jackline.features.notify.http_request import post

    body = json.dumps(_build_payload(message), ensure_ascii=False).encode()
    at = str(clock.wall_ms() // 1000)
    secret = read_secret(channel, "secret", context.environ)
    headers = {
        "Content-Type": "application/json",
        "X-Jackline-Id": message.id.encode("ascii", "replace").decode(),
        "X-Jackline-Timestamp": at,
        "X-Jackline-Signature": f"sha256={hmac.new(secret.encode(), f'{at}.'.encode() + body, 'sha256').hexdigest()}",
    }
    post(channel.get_text("url"), body, headers, context.timeout_s)


def _start_command(channel: Channel, message: ChannelMessage, context: SendContext) -> None:
    """Run the user's command, with the message on stdin; it has delivered the message if it exits with 0."""
    first, *rest = cast("Sequence[str]", channel.options["command"])
    env = {
        **context.environ,
        "JACKLINE_NOTICE_ID": message.id,
        "JACKLINE_NOTICE_KIND": message.kind,
        "JACKLINE_NOTICE_TITLE": message.title,
        "JACKLINE_NOTICE_PRIORITY": message.priority,
        "JACKLINE_NOTICE_RUN": message.run_id,
    }
    stdin = json.dumps(_build_payload(message), ensure_ascii=False).encode()
    result = _run_program([os.path.expanduser(first), *rest], context._replace(environ=env), stdin)
    if result.timed_out:
        raise ChannelDown(f"{first} did not end within {context.timeout_s:.0f} s")
    if result.exit_code != 0:
        said = make_printable((result.stderr_tail or result.stdout_tail).decode(errors="replace").strip()[-_SHOWN:])
        raise ChannelDown(f"{first} ended with {result.exit_code or result.signal}: {said}".rstrip(": "))


def _send_with_apprise(channel: Channel, message: ChannelMessage, context: SendContext) -> None:
    """Send the message to the service of the channel's URL, a secret; Apprise cuts it to what the service takes."""
    from jackline.features.notify import apprise_child

    url = read_secret(channel, "url", context.environ)
    request = {
        "url": url,
        "title": message.title if message.body else "",  # Apprise refuses a message without a body
        "body": message.body or message.title,
        "is_urgent": message.priority in {HIGH, MAX},
    }
    argv = [sys.executable, "-W", "ignore", "-m", apprise_child.__name__]
    result = _run_program(argv, context, json.dumps(request).encode())
    if result.timed_out:
        raise ChannelDown(f"Apprise: no answer within {context.timeout_s:.0f} s")
    if result.exit_code == apprise_child.UNKNOWN_URL:
        raise ConfigError(f"[channels.{channel.name}] url: Apprise does not know such a URL; see docs/notices.md")
    if result.exit_code != 0:
        lines = (result.stdout_tail or result.stderr_tail).decode(errors="replace").strip().splitlines()
        reason = make_printable(hide_url(lines[-1], url))[:_SHOWN] if lines else "it was not sent"
        raise ChannelDown(f"Apprise: {reason}")


def _ring_bell(_channel: Channel, _message: ChannelMessage, context: SendContext) -> None:
    """Ring the terminal once; MessageNotNeeded without one."""
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


_SENDERS: dict[str, Callable[[Channel, ChannelMessage, SendContext], None]] = {
    NTFY: _publish_to_ntfy,
    APPRISE: _send_with_apprise,
    WEBHOOK: _post_to_webhook,
    COMMAND: _start_command,
    BELL: _ring_bell,
}


def _run_program(argv: Sequence[str], context: SendContext, stdin: bytes) -> CommandResult:
    """Run a program without a shell; ChannelDown if it cannot be started."""
    from jackline.engine.command_runner import run_command
    from jackline.engine.process import SpawnFailed, WardenLost

    try:
        return run_command(argv, cwd=context.folder, env=context.environ, stdin=stdin, timeout_s=context.timeout_s)
    except (SpawnFailed, WardenLost) as error:
        raise ChannelDown(error) from None


def _build_payload(message: ChannelMessage) -> dict[str, Any]:
    """The message as plain JSON values, for webhooks and commands."""
    return {
        "id": message.id,
        "kind": message.kind,
        "subject": message.subject,
        "title": message.title,
        "body": message.body[:_MOST_BODY],
        "priority": message.priority,
        "labels": list(message.labels),
        "created_at": format_iso(message.created_at),
        "run": message.run_id or None,
        "agent": message.agent or None,
        "task": message.task or None,
        "folder": message.folder or None,
    }


def find_terminal() -> str:
    """The path of the terminal of this process, if a person sees what it prints."""
    try:
        return os.ttyname(2)
    except OSError:
        return ""
