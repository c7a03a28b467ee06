"""Checks the configured channels for `jackline doctor`: tables, secrets and programs. It sends nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

from jackline.app.agents import find_executable
from jackline.app.doctor import FAIL, OK, DoctorFinding
from jackline.errors import ConfigError
from jackline.features.notify.channel import APPRISE, COMMAND
from jackline.features.notify.channel_secrets import read_secret
from jackline.features.notify.channel_settings import parse_channel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jackline.app.home import Home
    from jackline.features.notify.channel import Channel


def check_channels(home: Home) -> Iterator[DoctorFinding]:
    """One finding for each channel."""
    for name, table in home.config.channels.items():
        part = f"channel {name}"
        try:
            channel = parse_channel(name, table)
            _check_parts(channel)
        except ConfigError as error:
            yield DoctorFinding(part=part, state=FAIL, found=str(error), fix="correct it in your config.toml")
        else:
            found = f"{channel.type}; `jackline notify --test {name}` sends a message"
            yield DoctorFinding(part=part, state=OK, found=found)


def _check_parts(channel: Channel) -> None:
    """ConfigError if a secret cannot be read, or a program or service is not known."""
    for key, value in channel.options.items():
        if isinstance(value, dict):
            read_secret(channel, key, os.environ)
    where = f"[channels.{channel.name}]"
    if channel.type == COMMAND:
        program = cast("Sequence[str]", channel.options["command"])[0]
        if not find_executable(os.path.expanduser(program), os.environ):
            raise ConfigError(f"{where}: the program {program} is not installed")
    if channel.type == APPRISE:
        import apprise

        if not apprise.Apprise().add(read_secret(channel, "url", os.environ)):
            raise ConfigError(f"{where} url: Apprise does not know such a URL")
