"""Publishes messages to a topic of ntfy.sh or another ntfy server, as JSON."""

from __future__ import annotations

import base64
import json
import re
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from jackline.digests import hash_text
from jackline.features.notify.channel import PRIORITIES, cut_text
from jackline.features.notify.channel_secrets import read_secret, read_topic
from jackline.features.notify.http_request import post

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.features.notify.channel import Channel, ChannelMessage, MessageAction

DEFAULT_URL = "https://ntfy.sh"
_MOST_BODY, _MOST_TITLE = 3_800, 240  # bytes; ntfy turns a message above 4096 into an attachment
_MOST_REQUEST = 8_000  # bytes, with its buttons; ntfy refuses more than twice the length of a message
_LEAST_BODY = 100  # bytes; a shorter text is not worth its place
_MOST_TAGS = 1_000  # characters of all tags: a run may have any number of labels
_MOST_ACTIONS = 3
_SEQUENCE = re.compile(r"[-_A-Za-z0-9]{1,64}")


def publish_message(channel: Channel, message: ChannelMessage, environ: Mapping[str, str], timeout_s: float) -> None:
    """Publish a message; a server that knows sequence ids shows a repeated one once."""
    fields = {"topic": read_topic(channel, "topic", environ), **build_fields(message)}
    while len(_encode(fields)) > _MOST_REQUEST and fields["message"]:
        half = len(fields["message"].encode()) // 2
        fields["message"] = cut_text(fields["message"], half) if half > _LEAST_BODY else ""
    publish(channel, fields, environ, timeout_s)


def publish(channel: Channel, fields: Mapping[str, Any], environ: Mapping[str, str], timeout_s: float) -> str:
    """Publish these fields, with the topic among them; the server's answer."""
    return post(get_server(channel), _encode(fields), build_headers(channel, environ), timeout_s)


def _encode(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode()


def get_server(channel: Channel) -> str:
    """The address of the channel's server, without a slash at its end."""
    return channel.get_text("url", DEFAULT_URL).rstrip("/")


def build_headers(channel: Channel, environ: Mapping[str, str]) -> dict[str, str]:
    """The headers of every request to the server: who we are."""
    headers = {"Content-Type": "application/json"}
    if "token" in channel.options:
        headers["Authorization"] = f"Bearer {read_secret(channel, 'token', environ)}"
    elif "user" in channel.options:
        pair = f"{channel.get_text('user')}:{read_secret(channel, 'password', environ)}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    return headers


def build_sequence_id(notice_id: str) -> str:
    """The id of a message on the server, the same however often it is sent."""
    return notice_id if _SEQUENCE.fullmatch(notice_id) else hash_text(notice_id)[:32]


def cut_title(title: str) -> str:
    """A title as it is published."""
    return cut_text(title, _MOST_TITLE)


def build_fields(message: ChannelMessage) -> dict[str, Any]:
    """The message as ntfy's JSON, without its topic."""
    lengths = accumulate(len(tag) for tag in message.tags)
    fields: dict[str, Any] = {
        "title": cut_title(message.title),
        "message": cut_text(message.body, _MOST_BODY),
        "priority": PRIORITIES.index(message.priority) + 1,
        "tags": [tag for tag, length in zip(message.tags, lengths, strict=True) if length <= _MOST_TAGS],
        "sequence_id": build_sequence_id(message.id),
    }
    if message.actions:
        fields["actions"] = [_build_action(action) for action in message.actions[:_MOST_ACTIONS]]
    return fields


def _build_action(action: MessageAction) -> dict[str, Any]:
    return {
        "action": "http",
        "label": action.label,
        "url": action.url,
        "method": action.method,
        "body": action.body,
        "headers": dict(action.headers),
        "clear": action.clears,
    }
