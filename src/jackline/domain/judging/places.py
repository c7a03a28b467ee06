"""Where a path of a command lies: in the workspace, in a temporary folder, outside, or nobody knows. Pure.

No link is followed, because nothing here reads a disk.
"""

from __future__ import annotations

import posixpath
import re
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jackline.domain.shell import Word


class Place(Enum):
    """Where something is written or deleted."""

    INSIDE = "inside the workspace"
    HEART = "the workspace itself or its history"
    HOOKS = "what git runs or obeys here, also for others"
    TEMPORARY = "in a temporary folder"
    OUTSIDE = "outside the workspace"
    UNKNOWN = "where nobody can say before it runs"


_TEMPORARY = ("/tmp", "/var/tmp", "/private/tmp", "/private/var/tmp")  # noqa: S108 - compared, never opened
DEVICES = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty", "/dev/full"})
_HERE = re.compile(r"^(?:\$PWD|\$\{PWD\}|\$\(pwd\)|`pwd`|~\+)(?=/|$)")
_TEMPORARY_NAME = re.compile(r"^(?:\$TMPDIR|\$\{TMPDIR(?::?-/tmp/?)?\})(?=/|$)")
_NEW_NAME = re.compile(r"^(?:\$\(mktemp(?: [^()$`]*)?\)|`mktemp(?: [^`$]*)?`)(?=/|$)")
_RUN_TIME = re.compile(r"[$`*?\[{]")
_UPWARD = re.compile(r"(?:^|[/{,])\.\.?(?:[/*?\[},]|$)|[{,][/~]")


def place(word: Word, folder: str | None, workspace: str) -> Place:
    """Where a path leads; the folder is the one that relative paths start from, None if nobody knows it."""
    if word.exact:
        return _exact(word.text, folder, workspace)
    text = _HERE.sub(".", word.text)
    if text.startswith(("~", "$HOME", "${HOME}")):
        return Place.OUTSIDE
    temporary = _NEW_NAME.sub("/new", _TEMPORARY_NAME.sub("", text))
    if temporary != text:
        return _below_temporary(temporary) if not _UPWARD.search(temporary) else Place.UNKNOWN
    found = _RUN_TIME.search(text)
    if found is None:  # without a sign of the shell's it is a place that another program fills in
        return _exact(text, folder, workspace) if text != word.text else Place.UNKNOWN
    if "{}" in text:
        return Place.UNKNOWN
    return _partly(text[: found.start()], text[found.start() :], folder, workspace)


def resolved(text: str, folder: str) -> str:
    """A path with one spelling, absolute."""
    return posixpath.normpath("/" + posixpath.join(folder, text).lstrip("/"))


def is_socket(word: Word) -> bool:
    """Whether bash would open a connection: for reading too, it is open both ways."""
    return word.text.startswith(("/dev/tcp/", "/dev/udp/"))


def _exact(text: str, folder: str | None, workspace: str) -> Place:
    if folder is None and not text.startswith("/"):
        return Place.UNKNOWN
    whole, root = resolved(text, folder or "/"), resolved(workspace, "/")
    if whole in {root, posixpath.join(root, ".git")}:
        return Place.HEART
    if any(whole == top or _is_below(whole, top) for top in (f"{root}/.git/hooks", f"{root}/.git/config")):
        return Place.HOOKS
    if _is_below(whole, root):
        return Place.INSIDE
    if whole in DEVICES or _is_below(whole, "/dev/fd"):
        return Place.TEMPORARY
    return Place.TEMPORARY if any(_is_below(whole, top) for top in _TEMPORARY) else Place.OUTSIDE


def _partly(known: str, rest: str, folder: str | None, workspace: str) -> Place:
    """A path whose beginning is known: what follows may only lead further down."""
    head, slash, begun = known.rpartition("/")
    if _UPWARD.search(begun + rest) or not (known or rest[0] not in "$`"):
        return Place.UNKNOWN
    if ".git" in rest and re.search(r"[{,]\.git[,}/]", rest):
        return Place.HEART
    above = _exact(head + slash or ".", folder, workspace)
    if above is Place.HEART:
        return Place.INSIDE
    if above is Place.OUTSIDE and resolved(head + slash, folder or "/") in _TEMPORARY:
        return _below_temporary(f"/{begun}{rest}")
    return above


def _below_temporary(rest: str) -> Place:
    """Everything in a temporary folder is not one's own; what begins with a name is."""
    named = rest.lstrip("/")
    return Place.TEMPORARY if named[:1] not in {"", "*", "?", "$", "`", "[", "{"} else Place.UNKNOWN


def _is_below(path: str, top: str) -> bool:
    return path.startswith(top.rstrip("/") + "/")
