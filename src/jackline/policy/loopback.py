"""Recognizes requests that go to a literal loopback address and nowhere else. Pure; by the words of the command alone.

Only known flags count: a proxy, another address for a name, a config file or a redirect could lead elsewhere.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from jackline.policy.command_line import CommandLine
    from jackline.shell.model import ShellCommand, Word

# Behind these ports a request controls more than a program under development: ssh, mail, printing, proxies, docker,
# etcd, nomad, kubernetes, jackline's own MCP server, vault, consul, debuggers of browsers and of node, WinRM.
_CONTROL_PORTS = frozenset(
    {22, 23, 25, 465, 587, 631, 1080, 2375, 2376, 2377, 2379, 2380, 3128, 4243, 4646, 5985, 5986, 6443, 7345, 8001}
    | {8118, 8200, 8500, 9050, 9222, 9229, 10250, 10255, 16443}
)
_HOST = r"(?:localhost|127(?:\.(?:0|[1-9]\d{0,2})){3}|0\.0\.0\.0|\[::1\])"
_URL = re.compile(rf"(?i)(?:(?:https?|wss?)://)?{_HOST}(?::(\d{{1,5}}))?(?:/[^\s\\]*|\?[^\s\\@/]*)?")
_LOCAL_HOST = re.compile(rf"(?i){_HOST}|::1")
_SHORT_URL = re.compile(r":(\d{1,5})?(?:/[^\s\\]*)?")  # httpie: `:8000/items` is on localhost
_AUTHORITY_END = re.compile(r"(?i)^(?:(?:https?|wss?)://)?[^/?]*[/?]")
_MOST_PORT = 65535
_EXPANDS = ("$", "`", "{", "*", "?", "[", "~", "<", ">")


class FlagTable(NamedTuple):
    """The flags of a program that are known not to change where it connects to."""

    switches: frozenset[str]
    valued: frozenset[str]


class SplitWords(NamedTuple):
    """The words of a command, split by a flag table."""

    flags: tuple[tuple[str, Word], ...]  # with their values; a switch has its own word
    operands: tuple[Word, ...]

    def find_values(self, *names: str) -> list[Word]:
        """Return the values of these flags."""
        return [value for name, value in self.flags if name in names]


def build_flag_table(switches: str, valued: str) -> FlagTable:
    """Build a table from two texts of flags."""
    return FlagTable(frozenset(switches.split()), frozenset(valued.split()))


def split_words(
    words: Sequence[Word], table: FlagTable, is_trusted: Callable[[Word], bool] = lambda _: False
) -> SplitWords | None:
    """Split the words; None if there is an unknown flag, or a word that the shell may expand to a flag.

    A trusted word counts as one word, whatever the shell makes of it.
    """
    flags: list[tuple[str, Word]] = []
    operands: list[Word] = []
    left = iter(words)
    is_ended = False
    for word in left:
        text = word.text
        if not word.exact and text.startswith(_EXPANDS) and not is_trusted(word):
            return None
        if is_ended or not text.startswith("-") or text == "-":
            operands.append(word)
            continue
        if text == "--":
            is_ended = True
            continue
        found = _split_flag(word, left, table, is_trusted)
        if found is None:
            return None
        flags += found
    return SplitWords(tuple(flags), tuple(operands))


def _split_flag(
    word: Word, left: Iterator[Word], table: FlagTable, is_trusted: Callable[[Word], bool]
) -> list[tuple[str, Word]] | None:
    text = word.text
    name, equals, value = text.partition("=")
    if text in table.switches:
        return [(text, word)]
    if equals and name in table.valued and len(name) > len("-x"):
        return [(name, word._replace(text=value))]
    if text in table.valued:
        return _take_value(text, left, is_trusted)
    if text.startswith("--"):
        return None
    found: list[tuple[str, Word]] = []
    for place, letter in enumerate(text[1:], 2):
        flag = f"-{letter}"
        if flag in table.valued:
            taken = [(flag, word._replace(text=text[place:]))] if text[place:] else _take_value(flag, left, is_trusted)
            return None if taken is None else [*found, *taken]
        if flag not in table.switches:
            return None
        found.append((flag, word))
    return found


def _take_value(name: str, left: Iterator[Word], is_trusted: Callable[[Word], bool]) -> list[tuple[str, Word]] | None:
    following = next(left, None)
    if following is None:
        return None
    # Without quotes the shell would split it into more words; JSON can only be one word if it is quoted.
    is_split = not following.exact and following.text.startswith(_EXPANDS) and not is_trusted(following)
    return None if is_split and not following.text.lstrip("{[ ").startswith('"') else [(name, following)]


def is_local_host(text: str) -> bool:
    """Check for a literal loopback address without a port."""
    return _LOCAL_HOST.fullmatch(text) is not None


def is_ordinary_port(text: str | None, closed_ports: frozenset[int]) -> bool:
    """Check that no control interface and none of jackline's own listeners is behind this port; None is the default."""
    if text is None:
        return True
    return text.isascii() and text.isdigit() and 0 < int(text) <= _MOST_PORT and int(text) not in (
        _CONTROL_PORTS | closed_ports
    )  # fmt: skip


def is_local_url(word: Word, closed_ports: frozenset[int]) -> bool:
    """Check for a URL, or a host with a port, on a literal loopback address and an ordinary port."""
    found = _URL.fullmatch(word.text)
    if found is None or not is_ordinary_port(found[1], closed_ports):
        return False
    # An expansion may follow in the path; in the host or the port it could be anything.
    return word.exact or _has_literal_authority(word.text)


def _has_literal_authority(text: str) -> bool:
    authority = _AUTHORITY_END.match(text)
    return authority is not None and not any(letter in authority[0] for letter in "$`{*")


def has_proxy_variable(command: ShellCommand) -> bool:
    """Check for a variable of the command, or of its shell, that names a proxy."""
    return any("proxy" in word.text.partition("=")[0].lower() for word in command.assignments)


def is_local_request(line: CommandLine, command: ShellCommand, closed_ports: frozenset[int]) -> bool:
    """Check that every request of this HTTP or socket client goes to an ordinary port on loopback."""
    client = _CLIENTS.get(line.program)
    if client is None or has_proxy_variable(command) or not line.is_certain:
        return False
    table, check = client
    split = split_words(line.words, table)
    return split is not None and check(split, closed_ports)


def _is_local_curl(split: SplitWords, closed_ports: frozenset[int]) -> bool:
    urls = [*split.operands, *split.find_values("--url")]
    formats = split.find_values("-w", "--write-out")
    if any("output{" in word.text or word.text.startswith("@") for word in formats):  # it may write to other files
        return False
    return bool(urls) and all(is_local_url(word, closed_ports) for word in urls)


def _is_local_wget(split: SplitWords, closed_ports: frozenset[int]) -> bool:
    """Check a request of wget, which follows redirects with its body unless a flag forbids it."""
    limits = [word.text for word in split.find_values("--max-redirect")]
    return limits[-1:] == ["0"] and bool(split.operands) and all(is_local_url(w, closed_ports) for w in split.operands)


def _is_local_httpie(split: SplitWords, closed_ports: frozenset[int]) -> bool:
    """Check `http POST :8000/items name=value`; the method may be missing, and items are not addresses."""
    operands = split.operands
    if len(operands) > 1 and operands[0].text.isalpha():  # httpie takes any word of letters as the method
        operands = operands[1:]
    if not operands:
        return False
    short = _SHORT_URL.fullmatch(operands[0].text) if operands[0].exact else None
    if short is not None:
        return is_ordinary_port(short[1], closed_ports)
    return is_local_url(operands[0], closed_ports)


def _is_local_socket(split: SplitWords, closed_ports: frozenset[int]) -> bool:
    """Check `nc host port`."""
    if len(split.operands) != len(("host", "port")) or not all(word.exact for word in split.operands):
        return False
    host, port = (word.text for word in split.operands)
    return is_local_host(host) and is_ordinary_port(port, closed_ports)


def _is_local_websocket(split: SplitWords, closed_ports: frozenset[int]) -> bool:
    urls = [*split.operands, *split.find_values("-c", "--connect")]
    return len(urls) == 1 and is_local_url(urls[0], closed_ports)


def _is_local_grpc(split: SplitWords, closed_ports: frozenset[int]) -> bool:
    return bool(split.operands) and is_local_url(split.operands[0], closed_ports)


_CURL = build_flag_table(
    "-s -S -f -i -I -v -k -g -G -0 -4 -6 -# -N -n -q -O -R -Z -a --silent --show-error --fail --fail-with-body "
    "--include --head --verbose --insecure --compressed --http1.0 --http1.1 --http2 --no-progress-meter --globoff "
    "--get --ipv4 --ipv6 --no-buffer --path-as-is --progress-bar --disable --raw --fail-early --no-keepalive "
    "--retry-connrefused --retry-all-errors --basic --digest --create-dirs --netrc --remote-name --tcp-nodelay",
    "-X -d -F -H -A -b -e -m -o -u -w -T -r -c -D --request --data --data-raw --data-binary --data-urlencode "
    "--data-ascii --json --form --form-string --header --user-agent --cookie --referer --max-time --output --user "
    "--write-out --upload-file --range --cookie-jar --dump-header --connect-timeout --retry --retry-delay "
    "--retry-max-time --cacert --cert --key --url --output-dir --oauth2-bearer --limit-rate --max-filesize "
    "--trace --trace-ascii --stderr",
)
_WGET = build_flag_table(
    "-q -S -v -nv --quiet --server-response --no-check-certificate --content-on-error --no-verbose -4 -6",
    "-O -o -T -t -U --post-data --post-file --body-data --body-file --method --header --output-document --output-file "
    "--timeout --tries --user --password --user-agent --max-redirect",
)
_HTTPIE = build_flag_table(
    "-v -h -b -j -f -I -d -m -q --verbose --headers --body --json --form --multipart --check-status --ignore-stdin "
    "--download --quiet --stream -S --meta --compress -x",
    "-p -a -A -s -o --print --auth --auth-type --style --output --pretty --timeout --verify --raw --boundary",
)
_CLIENTS: Mapping[str, tuple[FlagTable, Callable[[SplitWords, frozenset[int]], bool]]] = {
    "curl": (_CURL, _is_local_curl),
    "wget": (_WGET, _is_local_wget),
    "http": (_HTTPIE, _is_local_httpie),
    **dict.fromkeys(("nc", "ncat", "netcat"), (build_flag_table("-z -v -n -4 -6 -N", "-w -i -q"), _is_local_socket)),
    "telnet": (build_flag_table("-4 -6", ""), _is_local_socket),
    "wscat": (build_flag_table("-n --no-color", "-c --connect -H --header -x --execute -w --wait"),
              _is_local_websocket),
    "websocat": (build_flag_table("-n -1 -t -q -n1", "-H --header"), _is_local_websocket),
    "grpcurl": (build_flag_table("-plaintext -v -insecure -emit-defaults -format-error",
                                 "-d -H -max-time -import-path -proto -connect-timeout"), _is_local_grpc),
}  # fmt: skip
