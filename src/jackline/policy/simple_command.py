"""Recognizes a shell call that is one simple command, whose exit code therefore is that of its program. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.policy.builtin.flag_tables import ARGUMENTS
from jackline.shell.compound import parse_script
from jackline.shell.model import CommandList, NotParsed, SimpleCommand

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.shell.model import ShellNode

_SHELLS = frozenset({"bash", "sh", "zsh", "dash"})
_SHELL_FLAGS = frozenset({"-c", "-lc", "-cl"})
_SHELL_CALL = 3  # words: the shell, its flag, the text
# They run other programs, and may end with the exit code of one that started after an effect.
_RUNNERS_TEXT = """
. ansible at batch bun bunx bundle busybox cargo chroot command conda coproc dash deno doas docker docker-compose
dotnet eval exec env fab fish fly flock gcloud gradle heroku ionice java just kubectl ksh lerna make mise mix mvn
nerdctl nice ninja node nohup npm npx nsenter nx parallel pdm perl php pipx pnpm podman poetry python python3 rake
rsync ruby script setsid sh source ssh sshpass stdbuf sudo systemd-run task time timeout tox trap turbo unshare uv
uvx vagrant watch xargs yarn zsh bash
"""
_RUNNERS = frozenset(_RUNNERS_TEXT.split())
# Exit codes of curl before it has sent anything: no proxy, no host, no connection, no TLS, no trusted certificate.
CURL_NOT_SENT = frozenset({5, 6, 7, 35, 60})
_CURLS = frozenset({"curl", "/bin/curl", "/usr/bin/curl"})  # a program of this name elsewhere may be anything
_CURL_VALUES = ARGUMENTS["curl"]  # options with a value
# Several requests, options that are not here, or a request that is sent before the connection is known to be good.
_CURL_OTHER = ("location", "follow", "next", "retry", "config", "upload-file", "expand-", "tls-earlydata")
_CURL_OTHER_LETTERS = frozenset("LK:T")
_NOT_HTTP = ("ftp.", "dict.", "ldap.", "imap.", "smtp.", "pop3.")  # curl guesses the protocol by the name of the host


def parse_simple_command(text: str) -> SimpleCommand | None:
    """Return the only command of the text; None if there is more: a list, a pipe, a loop, a substitution, a wrapper."""
    try:
        node: ShellNode = parse_script(text)
    except NotParsed:
        return None
    while isinstance(node, CommandList) and len(node.items) == 1:
        node = node.items[0]
    if not isinstance(node, SimpleCommand) or not node.words or node.inner or not node.words[0].exact:
        return None
    if any(not one.target.exact or one.target.text != "/dev/null" for one in node.redirects):
        return None
    words = node.words
    if len(words) == _SHELL_CALL and words[0].text.rpartition("/")[2] in _SHELLS and words[1].text in _SHELL_FLAGS:
        return parse_simple_command(words[2].text) if words[2].exact else None
    return None if words[0].text.rpartition("/")[2] in _RUNNERS else node


def is_single_request(command: SimpleCommand) -> bool:
    """Check whether this is curl with one HTTP request, as far as its command line tells."""
    if command.words[0].text not in _CURLS or command.assignments:
        return False
    if not all(word.exact for word in command.words):
        return False
    words = [word.text for word in command.words[1:]]
    urls = []
    for name, value in _split_curl_words(words):
        if name in _CURL_OTHER_LETTERS or (
            len(name) > 1 and any(other.startswith(name) or name.startswith(other) for other in _CURL_OTHER)
        ):
            return False
        urls += [value] if name in {"", "url"} else []
    return len(urls) == 1 and _is_http(urls[0])


def _split_curl_words(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield options by name with their values, and other words with an empty name; an unknown value is a word."""
    rest = iter(words)
    for word in rest:
        if word.startswith("--"):
            yield word[2:], next(rest, "") if word in _CURL_VALUES else ""
        elif word.startswith("-"):
            for at, letter in enumerate(word[1:], start=2):
                takes_value = f"-{letter}" in _CURL_VALUES
                yield letter, (word[at:] or next(rest, "")) if takes_value else ""
                if takes_value:
                    break
        else:
            yield "", word


def _is_http(url: str) -> bool:
    """Check whether the URL is one HTTP request; braces, brackets and the name of a file stand for several."""
    if any(letter in url for letter in "{}[]") or url.startswith("@"):
        return False
    scheme, separator, _ = url.lower().partition("://")
    return scheme in {"http", "https"} if separator else not url.lower().startswith(_NOT_HTTP)
