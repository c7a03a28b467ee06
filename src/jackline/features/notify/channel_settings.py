"""Checks the `[channels.NAME]` tables of the settings, and for `jackline doctor` what they name. It sends nothing."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, cast

from jackline.app.setting_keys import is_http_address, suggest_nearest
from jackline.errors import ConfigError
from jackline.features.notify.channel import APPRISE, BELL, COMMAND, NTFY, PRIORITIES, TYPES, WEBHOOK, Channel
from jackline.features.notify.channel_secrets import check_topic, read_secret

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jackline.app.config import Config
    from jackline.app.doctor import DoctorFinding
    from jackline.app.home import Home

TEXT, SECRET, ARGUMENTS, TOPIC = "text", "secret", "arguments", "topic"
# The keys of each type of channel; those that are required come first.
_KEYS: dict[str, dict[str, str]] = {
    NTFY: {
        "topic": TOPIC,
        "url": TEXT,
        "token": SECRET,
        "user": TEXT,
        "password": SECRET,
        "replies": TEXT,
        "reply_topic": TOPIC,
        "reply_token": SECRET,
        "button_token": SECRET,
        "reply_valid": TEXT,
    },
    APPRISE: {"url": SECRET},
    WEBHOOK: {"url": TEXT, "secret": SECRET},
    COMMAND: {"command": ARGUMENTS},
    BELL: {},
}
_REQUIRED = {NTFY: ("topic",), APPRISE: ("url",), WEBHOOK: ("url", "secret"), COMMAND: ("command",), BELL: ()}
_COMMON = ("type", "kinds", "labels", "priority", "timeout_seconds")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_LONGEST_TIMEOUT_S = 60


def load_channels(config: Config) -> tuple[list[Channel], list[str]]:
    """The usable channels of the settings, and what is wrong with the others: one broken table stops no other."""
    channels, problems = [], []
    for name, table in config.channels.items():
        try:
            channels.append(parse_channel(name, table))
        except ConfigError as error:
            problems.append(str(error))
    return channels, problems


def parse_channel(name: str, table: Mapping[str, object]) -> Channel:
    """Check one table; ConfigError with the correct form."""
    where = f"[channels.{name}]"
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{where}: a name has up to 32 lowercase letters, digits, - and _")
    kind = table.get("type", name)
    if kind not in TYPES:
        raise ConfigError(f"{where}: type must be one of {', '.join(TYPES)}, not {kind!r}")
    kind = str(kind)
    known = _KEYS[kind]
    for key in table:
        if key not in known and key not in _COMMON:
            near = suggest_nearest(key, (*known, *_COMMON)) or f" known are {', '.join((*known, *_COMMON))}"
            raise ConfigError(f"{where}: unknown key '{key}' of a {kind} channel;{near}")
    missing = [key for key in _REQUIRED[kind] if key not in table]
    if missing:
        raise ConfigError(f"{where}: {missing[0]} is missing; see docs/notices.md")
    options = {
        key: _check_value(table[key], kind_of, f"{where} {key}") for key, kind_of in known.items() if key in table
    }
    channel = Channel(
        name=name,
        type=kind,
        options=options,
        kinds=_read_words(table, "kinds", where),
        labels=_read_words(table, "labels", where),
        priorities=_read_priorities(table.get("priority", {}), where),
        timeout_s=_read_timeout(table.get("timeout_seconds", 10), where),
    )
    _check_type(channel, where)
    return channel


def _check_type(channel: Channel, where: str) -> None:
    if channel.type == NTFY:
        if "token" in channel.options and "user" in channel.options:
            raise ConfigError(f"{where}: use either token, or user and password")
        if ("user" in channel.options) != ("password" in channel.options):
            raise ConfigError(f"{where}: user and password belong together")
        if channel.options.keys() & {"replies", "reply_topic", "reply_valid"}:
            from jackline.features.replies.reply_channel import check_reply_keys

            check_reply_keys(channel, where)
    if channel.type in {NTFY, WEBHOOK} and "url" in channel.options:
        from urllib.parse import urlsplit

        if not is_http_address(channel.get_text("url")):
            raise ConfigError(f"{where}: url must be an http:// or https:// address")
        parts = urlsplit(channel.get_text("url"))
        if parts.username or parts.password:
            raise ConfigError(f"{where}: url must not hold a password; see docs/notices.md")


def _check_value(value: object, kind: str, where: str) -> object:
    if kind == TOPIC and isinstance(value, str):
        return check_topic(value, where)
    if kind in {SECRET, TOPIC}:
        source = value if isinstance(value, dict) else {}
        names = [name for name in source if name in {"env", "file"} and isinstance(source[name], str) and source[name]]
        if len(source) != 1 or not names:
            # The value is not repeated: it may be the secret itself.
            raise ConfigError(
                f'{where} must be {{ env = "NAME" }} or {{ file = "PATH" }}: a secret is not written here'
            )
        return dict(source)
    if kind == ARGUMENTS:
        if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value) or not value[0]:
            raise ConfigError(f'{where} must be a list of words, such as ["notify-send", "jackline"]')
        return tuple(value)
    if not isinstance(value, str) or not value or not value.isprintable():
        raise ConfigError(f"{where} must be a text in one line")
    return value


def _read_words(table: Mapping[str, object], key: str, where: str) -> tuple[str, ...]:
    words = table.get(key, [])
    if not isinstance(words, list) or not all(isinstance(word, str) and word.strip("!") for word in words):
        raise ConfigError(f'{where}: {key} must be a list of patterns, such as ["run.*", "!run.succeeded"]')
    return tuple(words)


def _read_priorities(value: object, where: str) -> dict[str, str]:
    table = {"*": value} if isinstance(value, str) else value
    if not isinstance(table, dict) or not all(word in PRIORITIES for word in table.values()):
        raise ConfigError(f"{where}: priority must be one of {', '.join(PRIORITIES)}, or a table of kinds with these")
    return {str(pattern): str(word) for pattern, word in table.items()}


def _read_timeout(value: object, where: str) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < float(str(value)) <= _LONGEST_TIMEOUT_S:
        raise ConfigError(f"{where}: timeout_seconds must be a number up to {_LONGEST_TIMEOUT_S}")
    return float(str(value))


def check_channels(home: Home) -> Iterator[DoctorFinding]:
    """Check the tables, secrets and programs of the channels for `jackline doctor`: one finding for each."""
    from jackline.app.doctor import FAIL, OK, DoctorFinding

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
        from jackline.app.agents import find_executable

        program = cast("Sequence[str]", channel.options["command"])[0]
        if not find_executable(os.path.expanduser(program), os.environ):
            raise ConfigError(f"{where}: the program {program} is not installed")
    if channel.type == APPRISE:
        import apprise

        if not apprise.Apprise().add(read_secret(channel, "url", os.environ)):
            raise ConfigError(f"{where} url: Apprise does not know such a URL")
