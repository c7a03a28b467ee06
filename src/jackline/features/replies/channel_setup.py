"""Sets up an ntfy channel: makes random topics, and adds its table to the user's settings."""

from __future__ import annotations

import os
import secrets
import stat
from typing import TYPE_CHECKING

from jackline.app.config import find_user_file, read_toml
from jackline.app.own_files import (
    UnconfirmedChange,
    confirm_changes,
    find_unconfirmed,
    refuse_fresh_changes,
    refuse_unconfirmed,
)
from jackline.digests import sha256
from jackline.errors import ConfigError, Refused, UsageError
from jackline.features.notify.channel import NTFY
from jackline.features.notify.channel_secrets import read_secret
from jackline.features.notify.channel_settings import parse_channel
from jackline.features.replies.reply_code import OFF
from jackline.files import append_missing, make_private_folder
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.app.home import Home
    from jackline.features.notify.channel import Channel

_TOPIC_BYTES = 24
_FILE_MODE = 0o600


class NewChannel(NamedTuple):
    """A channel as a person asks for it."""

    name: str
    replies: str = OFF
    server: str = ""
    token_file: str = ""
    button_token_file: str = ""


class AddedChannel(NamedTuple):
    """A channel that was added."""

    channel: Channel
    path: str  # of the settings
    was_readable: bool  # whether other users of the machine could read the settings before


def add_channel(home: Home, new: NewChannel, environ: Mapping[str, str]) -> AddedChannel:
    """Write the table of a new channel at the end of the user's settings; nothing else in it changes."""
    path = find_user_file(environ)
    channel = parse_channel(new.name, _build_table(new))
    for key in ("token", "button_token"):
        if key in channel.options:
            read_secret(channel, key, environ)
    text = _format_table(channel)
    known = read_toml(path).get("channels", {})
    if isinstance(known, dict) and new.name in known:
        raise UsageError(f"{path} has a channel '{new.name}' already: choose another name, or edit the file")
    target = os.path.realpath(path)  # a link to the settings stays one
    before = _read_bytes(target)
    was_confirmed = _is_confirmed(home)
    make_private_folder(os.path.dirname(path))
    try:
        was_readable = _make_private(target)
        append_missing(target, lambda known: _find_missing(known, text, path))
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}; nothing was added") from None
    if was_confirmed:
        _confirm_own_change(home, path, before, text)
    return AddedChannel(channel=channel, path=path, was_readable=was_readable)


def _is_confirmed(home: Home) -> bool:
    """Whether the settings are as a person confirmed them, and have been since this command started."""
    try:
        refuse_unconfirmed(home)
        refuse_fresh_changes(home, home.config.loaded_at)
    except Refused:
        return False
    return True


def _confirm_own_change(home: Home, path: str, before: bytes, text: str) -> None:
    """Confirm the change if a run is active, unless its agent has changed the settings at the same moment."""
    after, change = _read_bytes(path), find_unconfirmed(home)
    is_ours = after.startswith(before) and after[len(before) :].replace(b"\r\n", b"\n").strip() == text.strip().encode()
    if change is not None and is_ours and change._replace(digests={}) == UnconfirmedChange(files=(path,)):
        confirm_changes(home, change._replace(digests={path: sha256(after).hexdigest()}))


def _read_bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def make_topic() -> str:
    """A name of 192 random bits."""
    return f"jl-{secrets.token_urlsafe(_TOPIC_BYTES)}"


def _build_table(new: NewChannel) -> dict[str, object]:
    table: dict[str, object] = {"type": NTFY, "topic": make_topic()}
    if new.server:
        table["url"] = new.server
    if new.token_file:
        table["token"] = {"file": os.path.abspath(new.token_file)}
    if new.replies != OFF:
        table |= {"replies": new.replies, "reply_topic": make_topic()}
        if new.button_token_file:
            table["button_token"] = {"file": os.path.abspath(new.button_token_file)}
    elif new.button_token_file:
        raise UsageError("--button-token-file is for the buttons of a channel that takes replies: add --replies")
    return table


def _format_table(channel: Channel) -> str:
    import json

    def format_value(value: object) -> str:
        if isinstance(value, dict):
            return "{ " + ", ".join(f"{key} = {format_value(one)}" for key, one in value.items()) + " }"
        return json.dumps(value, ensure_ascii=False)  # a basic string of TOML

    options = {"type": channel.type, **channel.options}
    lines = [f"{key} = {format_value(value)}" for key, value in options.items()]
    return "\n".join([f"[channels.{channel.name}]", *lines, ""])


def _find_missing(known: bytes, table: str, path: str) -> bytes:
    """The table, if the file is still valid with it and means the same otherwise."""
    import tomllib

    added = ("" if not known else "\n" if known.endswith(b"\n") else "\n\n") + table
    try:
        before = tomllib.loads(known.decode())
        after = tomllib.loads(known.decode() + added)
    except ValueError as error:
        raise ConfigError(f"{path}: the channel cannot be added: {error}; nothing was changed") from None
    before.setdefault("channels", {}).update(tomllib.loads(table)["channels"])
    if before != after:
        raise ConfigError(f"{path}: the channel cannot be added without changing other settings; nothing was changed")
    return added.encode()


def _make_private(path: str) -> bool:
    """Create the file, or take it from other users of the machine; whether they could read it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)
    try:
        mode = os.fstat(descriptor).st_mode
        is_readable = bool(mode & (stat.S_IRWXG | stat.S_IRWXO))
        if is_readable and stat.S_ISREG(mode):
            os.fchmod(descriptor, _FILE_MODE)
        return is_readable
    finally:
        os.close(descriptor)
