"""Reads the topics and secrets that the table of a channel names: variables and files that only the user can read."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from jackline.app.env_file import read_secret_file
from jackline.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.features.notify.channel import Channel

_SHORTEST_SECRET = 4
_TOPIC = re.compile(r"[-_A-Za-z0-9]{1,64}")


def check_topic(topic: str, where: str) -> str:
    """The topic; ConfigError if it cannot be one."""
    if not _TOPIC.fullmatch(topic):
        raise ConfigError(f"{where} must be 1 to 64 letters, digits, - and _")
    return topic


def read_topic(channel: Channel, key: str, environ: Mapping[str, str]) -> str:
    """A topic, which may be written in the table, or in a variable or a file that the table names."""
    topic = channel.options[key]
    return (
        topic
        if isinstance(topic, str)
        else check_topic(read_secret(channel, key, environ), f"[channels.{channel.name}] {key}")
    )


def read_secret(channel: Channel, key: str, environ: Mapping[str, str]) -> str:
    """The secret that a channel names; ConfigError if it cannot be used, which never repeats it."""
    source = channel.options[key]
    where = f"[channels.{channel.name}] {key}"
    if not isinstance(source, dict):
        raise ConfigError(f"{where} is not a reference to a variable or a file")
    if "env" in source:
        value = environ.get(source["env"], "").strip()
        if not value:
            raise ConfigError(f"{where}: the variable {source['env']} is not set")
        if not value.isprintable():  # it would end a header, and the error would repeat it
            raise ConfigError(f"{where}: the variable {source['env']} must have one line, with the secret alone")
        return value
    path = os.path.expanduser(source["file"])
    if not os.path.isabs(path):
        raise ConfigError(f"{where}: write the absolute path of the file")
    value = read_secret_file(path, where)
    if not value.isprintable():
        raise ConfigError(f"{where}: {path} must have one line, with the secret alone")
    return value


def hide_url(text: str, url: str) -> str:
    """The text without any part of the URL."""
    for part in sorted(re.split(r"[/:@?&=]+", url), key=len, reverse=True):
        if len(part) >= _SHORTEST_SECRET:
            text = text.replace(part, "***")
    return text
