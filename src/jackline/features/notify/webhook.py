"""Posts messages as JSON to an address of your own, signed with a shared secret."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jackline import clock
from jackline.features.notify.channel_secrets import read_secret
from jackline.features.notify.http_request import post
from jackline.formatting import format_iso

if TYPE_CHECKING:
    from jackline.features.notify.channel import Channel, ChannelMessage
    from jackline.features.notify.sending import SendContext

_MOST_BODY = 100_000


def send(channel: Channel, message: ChannelMessage, context: SendContext) -> None:
    """Post a message. The receiver knows a repeated one by its id, and an old one by its time."""
    body = json.dumps(build_payload(message), ensure_ascii=False).encode()
    at = str(clock.wall_ms() // 1000)
    headers = {
        "Content-Type": "application/json",
        "X-Jackline-Id": message.id.encode("ascii", "replace").decode(),
        "X-Jackline-Timestamp": at,
        "X-Jackline-Signature": f"sha256={sign(read_secret(channel, 'secret', context.environ), at, body)}",
    }
    post(channel.get_text("url"), body, headers, context.timeout_s)


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """The signature of a request: HMAC-SHA256 of the timestamp, a dot and the body, in hexadecimal digits."""
    import hmac

    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, "sha256").hexdigest()


def build_payload(message: ChannelMessage) -> dict[str, Any]:
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
