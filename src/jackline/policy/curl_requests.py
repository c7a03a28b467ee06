"""Decides whether a curl command only reads: every flag must be known, and nothing local may go out. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jackline.policy.loopback import build_flag_table, split_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jackline.shell.model import Word

READS, SENDS, OPEN = "reads", "sends", "open"  # open: unknown
READING_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# With any other scheme curl is interactive and sends its standard input.
_FETCHED_SCHEMES = frozenset({"http", "https", "ftp", "ftps", "file", "sftp", "scp", "tftp"})
_LETTERS_WITH_VALUE = frozenset("AbcCdDeEFhHKmoPQrtTuUwxXyYz")
_BODY_LETTERS = frozenset({"-F", "-T", "-K", "-Q", "-a", "-t"})
_BODY_FLAGS = (
    *("--form", "--form-string", "--form-escape", "--json", "--upload-file", "--config", "--quote", "--mail-from"),
    *("--mail-rcpt", "--append", "--telnet-option"),
)
_DATA_FLAGS = ("--data", "--data-raw", "--data-binary", "--data-urlencode", "--data-ascii")
_TABLE = build_flag_table(
    "-s -S -f -L -k -v -i -I -g -4 -6 -0 -1 -2 -3 -# -N -n -R -O -J -j -l -B -p -q -Z -G -V -M -: --next "
    "--silent --show-error --fail --fail-with-body --fail-early --location --insecure --verbose --compressed "
    "--include --show-headers --head --ipv4 --ipv6 --http0.9 --http1.0 --http1.1 --http2 --http2-prior-knowledge "
    "--http3 --http3-only --no-progress-meter --progress-meter --progress-bar --globoff --path-as-is --get "
    "--no-buffer --remote-name --remote-name-all --remote-header-name --remote-time --create-dirs --tcp-nodelay "
    "--tcp-fastopen --no-keepalive --keepalive --no-alpn --no-sessionid --tlsv1 --tlsv1.0 --tlsv1.1 --tlsv1.2 "
    "--tlsv1.3 --sslv2 --sslv3 --ssl --ssl-reqd --ssl-no-revoke --retry-connrefused --retry-all-errors --netrc "
    "--netrc-optional --basic --digest --ntlm --negotiate --anyauth --location-trusted --parallel "
    "--parallel-immediate --raw --tr-encoding --trace-time --trace-ids --disable --version --manual --no-clobber "
    "--skip-existing --remove-on-error --styled-output --no-styled-output --list-only --use-ascii --ftp-pasv "
    "--junk-session-cookies --compressed-ssh --suppress-connect-headers --haproxy-protocol --disallow-username-in-url "
    "--proxytunnel --proxy-insecure --cert-status --ca-native --post301 --post302 --post303",
    "-o -D -c -w -H -A -e -m -b -u -U -x -y -Y -z -r -C -E -h -P -d -X --output --dump-header --cookie-jar --write-out "
    "--header --user-agent --referer --max-time --cookie --user --proxy-user --proxy --speed-time --speed-limit "
    "--time-cond --range --continue-at --cert --help --request --url --data --data-raw --data-binary --data-urlencode "
    "--data-ascii --url-query --connect-timeout --retry --retry-delay --retry-max-time --cacert --capath --key "
    "--cert-type --key-type --resolve --connect-to --interface --dns-servers --output-dir --unix-socket "
    "--abstract-unix-socket --max-redirs --max-filesize --limit-rate --rate --ciphers --tls-max --tls13-ciphers "
    "--noproxy --socks4 --socks4a --socks5 --socks5-hostname --preproxy --proto --proto-redir --local-port "
    "--keepalive-time --expect100-timeout --happy-eyeballs-timeout-ms --parallel-max --request-target --oauth2-bearer "
    "--aws-sigv4 --netrc-file --pinnedpubkey --trace --trace-ascii --stderr --libcurl --etag-save --hsts --alt-svc "
    "--create-file-mode --hostpubsha256 --pass --pubkey --proxy-cacert --proxy-header --doh-url",
)
_OVERRIDES = re.compile(r"(?i)x-(?:http-)?method(?:-override)?\s*:\s*(?!get\b|head\b|options\b)")
# A command substitution that prints the content of files or variables.
_PRINTS_CONTENT = re.compile(
    r"(?:\$\(|`)\s*(?:<|(?:[\w./-]*/)?(?:cat|tac|head|tail|base64|base32|xxd|od|hexdump|strings|gzip|zcat|tar|zip|sed"
    r"|awk|grep|rg|env|printenv|set|openssl|gpg|git\s+(?:diff|show|log|config|stash|cat-file))\b)"
)
_OUTPUT = re.compile(r"%output\{>*([^}]*)\}")


def classify_curl(words: Sequence[Word]) -> str:
    """Return `reads`, `sends` or `open`; any request that may send something makes it `sends`."""
    if any(_sends_content(word) or _has_sending_scheme(word.text) for word in words):
        return SENDS
    split = split_words(words, _TABLE, lambda _: True)
    flags = [(name, value.text) for name, value in split.flags] if split else list(parse_flags_leniently(words))
    if any(_sends(request, known=split is not None) for request in _split_requests(flags)):
        return SENDS
    formats = [value for name, value in flags if _is_flag(name, "-w", ("--write-out",))]
    return OPEN if split is None or any(value.startswith("@") for value in formats) else READS


def sends_content(words: Sequence[Word]) -> bool:
    """Check whether a word holds the content of a file, a header that changes the method, or a file of headers."""
    return any(map(_sends_content, words))


def find_written_files(words: Sequence[Word]) -> Iterator[Word]:
    """Yield the files that the format of `--write-out` names."""
    for word in words:
        if "%output{" in word.text:
            yield from (word._replace(text=found[1]) for found in _OUTPUT.finditer(word.text))


def _sends_content(word: Word) -> bool:
    text = word.text
    return (not word.exact and _PRINTS_CONTENT.search(text) is not None) or _OVERRIDES.search(text) is not None


def _has_sending_scheme(text: str) -> bool:
    scheme, mark, _ = text.partition("://")
    return bool(mark) and not text.startswith("-") and scheme.isalnum() and scheme.lower() not in _FETCHED_SCHEMES


def parse_flags_leniently(words: Sequence[Word]) -> Iterator[tuple[str, str]]:
    """Yield each possible flag with its joined value or the next word; a value that looks like a flag counts too."""
    for index, word in enumerate(words):
        after = words[index + 1].text if index + 1 < len(words) else ""
        name, equals, value = word.text.partition("=")
        if name.startswith("--"):
            yield name, value if equals else after
        elif name.startswith("-"):
            for position, letter in enumerate(word.text[1:], 2):
                yield f"-{letter}", word.text[position:] or after
                if letter in _LETTERS_WITH_VALUE:
                    break


def _split_requests(flags: list[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """Yield the flags of each request; `--next` starts another one."""
    request: list[tuple[str, str]] = []
    for name, value in flags:
        if name == "-:" or is_long_flag(name, ("--next",)):
            yield request
            request = []
        request.append((name, value))
    yield request


def _sends(request: list[tuple[str, str]], *, known: bool) -> bool:
    """Check one request. Without a parse that is `known`, `-G` may be the value of another flag."""
    methods = [value.upper() for name, value in request if _is_flag(name, "-X", ("--request",))]
    if any(method and method not in READING_METHODS for method in methods):
        return True
    if any(name in _BODY_LETTERS or is_long_flag(name, _BODY_FLAGS) for name, _ in request):
        return True
    data = [value for name, value in request if _is_flag(name, "-d", _DATA_FLAGS)]
    if data and not (known and any(name in {"-G", "--get"} for name, _ in request)):
        return True
    queries = [value for name, value in request if is_long_flag(name, ("--url-query",))]
    queries += [value for name, value in request if is_long_flag(name, ("--variable",))]
    headers = [value for name, value in request if _is_flag(name, "-H", ("--header", "--proxy-header"))]
    # `@file`, `name@file` and a header `@file` send the content of a file.
    return any("@" in value.partition("=")[0] for value in (*data, *queries)) or any(
        value.startswith("@") for value in headers
    )


def _is_flag(name: str, letter: str, flags: Sequence[str]) -> bool:
    return name == letter or is_long_flag(name, flags)


def is_long_flag(name: str, flags: Sequence[str]) -> bool:
    """Check for one of these long flags, possibly abbreviated."""
    return name.startswith("--") and len(name) > len("--x") and any(flag.startswith(name) for flag in flags)
