"""The keys of an ntfy channel that are about replies. It reads the secrets that they name, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.errors import ConfigError
from jackline.features.notify.channel import NTFY
from jackline.features.replies.reply_code import MODES, OFF
from jackline.formatting import parse_duration
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.features.notify.channel import Channel

_SHORTEST_TOPIC = 20  # a topic that can be guessed lets everybody answer
_VALID = "24h"
_LONGEST_MS = 30 * 86_400_000


class ReplySettings(NamedTuple):
    """How a channel takes replies."""

    channel: str
    mode: str
    valid_ms: int


def find_reply_settings(channel: Channel) -> ReplySettings | None:
    """How a channel takes replies; None if it does not, which is the default."""
    mode = channel.get_text("replies", OFF)
    if channel.type != NTFY or mode == OFF:
        return None
    return ReplySettings(
        channel=channel.name,
        mode=mode,
        valid_ms=_read_valid(channel),
    )


def check_reply_keys(channel: Channel, where: str) -> None:
    """ConfigError unless the keys about replies fit together."""
    mode = channel.get_text("replies", OFF)
    if mode not in MODES:
        raise ConfigError(f"{where}: replies must be one of {', '.join(MODES)}, not '{mode}'")
    if mode != OFF and "reply_topic" not in channel.options:
        raise ConfigError(f"{where}: reply_topic is missing; `jackline channel add` creates one")
    topic = channel.options.get("reply_topic")
    if isinstance(topic, str):
        _check_reply_topic(topic, channel, where)
    if not 0 < _read_valid(channel) <= _LONGEST_MS:
        raise ConfigError(f"{where}: reply_valid must be a time such as 8h, at most 30d")


def _check_reply_topic(topic: str, channel: Channel, where: str) -> None:
    if len(topic) < _SHORTEST_TOPIC:
        raise ConfigError(f"{where}: reply_topic can be guessed: use at least {_SHORTEST_TOPIC} random characters")
    if topic == channel.options["topic"]:
        raise ConfigError(f"{where}: reply_topic must not be the topic of the notices")


def find_reply_address(channel: Channel, environ: Mapping[str, str]) -> str:
    """The address of the reply topic."""
    from jackline.features.notify.channel_secrets import read_topic
    from jackline.features.notify.ntfy import get_server

    topic = read_topic(channel, "reply_topic", environ)
    where = f"[channels.{channel.name}]"
    _check_reply_topic(topic, channel._replace(options={"topic": read_topic(channel, "topic", environ)}), where)
    return f"{get_server(channel)}/{topic}"


def _read_valid(channel: Channel) -> int:
    """How long a code is valid, in milliseconds; 0 if that is not a time."""
    return parse_duration(channel.get_text("reply_valid", _VALID)) or 0


def build_read_headers(channel: Channel, environ: Mapping[str, str]) -> dict[str, str]:
    """The headers of a request that reads the reply topic."""
    from jackline.features.notify.channel_secrets import read_secret
    from jackline.features.notify.ntfy import build_headers

    if "reply_token" in channel.options:
        return {"Authorization": f"Bearer {read_secret(channel, 'reply_token', environ)}"}
    return build_headers(channel, environ)


def build_button_headers(channel: Channel, environ: Mapping[str, str]) -> dict[str, str]:
    """The headers of the request that a button makes. They are part of the notice: its readers see the token."""
    from jackline.features.notify.channel_secrets import read_secret

    if "button_token" not in channel.options:
        return {}
    return {"Authorization": f"Bearer {read_secret(channel, 'button_token', environ)}"}
