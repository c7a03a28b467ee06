"""Reads the HTTP request that a command line of curl, wget or HTTPie sends. Pure: no file is read, nothing is sent.

Two spellings of one request must be equal. Where an option could change what is sent and is not understood here, there
is no request, and the command is identified by its words.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from jackline.digests import hash_text
from jackline.domain.events import canonical
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackline.policy.command_line import CommandLine

_DEFAULT_PORTS = {"http": "80", "https": "443"}
# Scheme, host, port, path and query; a user and a fragment are not kept.
_URL = re.compile(
    r"([A-Za-z][A-Za-z0-9+.-]*)://(?:[^/?#]*@)?(\[[^\]/?#]*\]|[^/?#:\[\]]*)(?::(\d*))?((?:/[^?#]*)?)(?:\?([^#]*))?(?:#.*)?"
)
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
# They describe the body or the client; what the request does is the same.
_NEUTRAL_HEADERS = frozenset({"content-type", "accept", "user-agent", "content-length", "expect", "connection"})
_CURL_SHORT = {"X": "--request", "d": "--data", "H": "--header", "o": "--output", "w": "--write-out", "m": "--max-time",
               "A": "--user-agent", "u": "--user"}  # fmt: skip
_CURL_SWITCHES = frozenset("sSfkivLg#N46q")
_CURL_LONG_SWITCHES = frozenset(
    {"--silent", "--show-error", "--fail", "--fail-with-body", "--fail-early", "--insecure", "--include", "--verbose",
     "--location", "--globoff", "--compressed", "--no-progress-meter", "--progress-bar", "--no-buffer", "--http1.1",
     "--http2", "--ipv4", "--ipv6", "--disable"}
)  # fmt: skip
_CURL_BODIES = frozenset({"--data", "--data-ascii", "--data-raw", "--data-binary", "--json"})
_NEUTRAL_VALUED = frozenset(
    {"--output", "--write-out", "--max-time", "--connect-timeout", "--user-agent", "--stderr", "--cacert",
     "--output-document", "--timeout", "--tries", "--verify"}
)  # fmt: skip
_WGET_SHORT = {"O": "--output-document", "T": "--timeout", "t": "--tries", "U": "--user-agent"}
_WGET_SWITCHES = frozenset("qvSnc46")
_WGET_LONG_SWITCHES = frozenset(
    {"--quiet", "--verbose", "--no-verbose", "--server-response", "--no-check-certificate", "--content-on-error"}
)
_HTTPIE_LONG_SWITCHES = frozenset(
    {"--json", "-j", "--verbose", "-v", "--body", "-b", "--headers", "-h", "--ignore-stdin", "-I", "--check-status",
     "--follow", "-F", "--quiet", "-q"}
)  # fmt: skip
# Options that send a request elsewhere, or to more places than its words name.
_ELSEWHERE = (
    "-x", "--proxy", "--preproxy", "--socks", "--connect-to", "--resolve", "-K", "--config", "--next", "-:",
    "--unix-socket", "--abstract-unix-socket", "--input-file", "--base", "--execute", "--expand", "--request-target",
)  # fmt: skip
_USER = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*://)?([^/?#]*)@")
_SLASHES = re.compile(r"([A-Za-z]+):(?:/|///)(?!/)")  # curl takes one to three of them
_HTTPIE_ITEM = re.compile(r"([^:=@]+)(==|:=|=|:)(?!@)(.*)", re.DOTALL)
_HTTPIE_FILE = re.compile(r"[^:=@]*:?=?@")


class _Unclear(Exception):
    """An option that is not understood."""


class HttpRequest(NamedTuple):
    """A request: what the server receives."""

    method: str
    url: str  # in normal form
    body: str  # digest of the body; empty if there is none, or if it is a file
    body_file: str  # the file whose content is the body
    headers: str  # those that may change what the request does, sorted


def parse_request(line: CommandLine) -> HttpRequest | None:
    """Return the request of a command line; None if it is not exactly one, or not known before it runs."""
    parse = _PARSERS.get(line.program)
    if parse is None or not all(word.exact for word in line.words):
        return None
    try:
        return parse([word.text for word in line.words], line.path)
    except _Unclear:
        return None


def has_clear_address(line: CommandLine) -> bool:
    """Whether the words of a request that is not understood name one address, and nothing that leads elsewhere."""
    texts = [word.text for word in line.words]
    elsewhere = (*_ELSEWHERE, "-i", "-B", "-e") if line.program == "wget" else _ELSEWHERE
    if any(text.startswith(elsewhere) or text.lower().startswith("host:") for text in texts):
        return False
    if any(text[:1] == "-" and text[1:2] != "-" and {"x", "K", ":"} & set(text) for text in texts):
        return False
    urls = [text for text in texts if "://" in text and not text.startswith("-")]
    return len(urls) <= 1 and not any(letter in url for url in urls for letter in "{}[]")


def normalize_url(url: str, scheme: str = "http") -> str:
    """Normalize a URL: case of scheme and host, default port, dots and escapes of the path; without user and fragment.

    A text that is not a URL is returned as it is.
    """
    whole = url if "://" in url else f"{scheme}://{url}"
    found = None if any(letter.isspace() for letter in whole) else _URL.fullmatch(whole)
    if found is None or not found[2].rstrip("."):
        return url
    kind, host, port, path, query = found[1].lower(), found[2].lower().rstrip("."), *found.groups("")[2:]
    number = port.lstrip("0")
    place = host if not port or number == _DEFAULT_PORTS.get(kind) else f"{host}:{number}"
    path = _remove_dots(_ESCAPE.sub(_normalize_escape, path)) or "/"
    return f"{kind}://{place}{path}" + (f"?{_ESCAPE.sub(_normalize_escape, query)}" if query else "")


def shorten_url(url: str) -> str:
    """Remove the slash at the end of the path: servers seldom tell the two apart, and a target must not."""
    path, mark, query = url.partition("?")
    return f"{path.rstrip('/')}{mark}{query}" if path.count("/") > len("//") else url


def _normalize_escape(found: re.Match[str]) -> str:
    letter = chr(int(found[0][1:], 16))
    return letter if _UNRESERVED.fullmatch(letter) else found[0].upper()


def _remove_dots(path: str) -> str:
    kept: list[str] = []
    parts = path.split("/")
    for part in parts:
        if part == "..":
            kept[1:] = kept[1:-1]
        elif part != ".":
            kept.append(part)
    ends_with_dots = parts[-1] in {".", ".."} and kept and kept[-1]
    return "/".join([*kept, ""] if ends_with_dots else kept)


# --- curl and wget


class _Options(NamedTuple):
    """How one program spells its options."""

    short: Mapping[str, str]
    switches: frozenset[str]
    long_switches: frozenset[str]


_CURL = _Options(_CURL_SHORT, _CURL_SWITCHES, _CURL_LONG_SWITCHES)
_WGET = _Options(_WGET_SHORT, _WGET_SWITCHES, _WGET_LONG_SWITCHES)


def _split_options(words: Sequence[str], options: _Options) -> list[tuple[str, str]]:
    """Split into options with their values, and URLs, which have no name; the names are the long ones."""
    found: list[tuple[str, str]] = []
    left = iter(words)
    for word in left:
        if not word.startswith("-"):
            found.append(("", word))
        elif word.startswith("--"):
            name, equals, value = word.partition("=")
            if word in options.long_switches:
                continue
            if not equals:
                value = _take_value(left)
            found.append((name, value))
        else:
            for at, letter in enumerate(word[1:], 2):
                if letter in options.switches:
                    continue
                if letter not in options.short:
                    raise _Unclear
                found.append((options.short[letter], word[at:] or _take_value(left)))
                break
    return found


def _take_value(left: Any) -> str:  # noqa: ANN401 - an iterator of words
    value = next(left, None)
    if not isinstance(value, str):
        raise _Unclear
    return value


def _parse_curl(words: Sequence[str], _path: str) -> HttpRequest:
    method, urls, headers, bodies = "", [], [], []
    for name, value in _split_options(words, _CURL):
        if name in {"", "--url"}:
            urls.append(value)
        elif name == "--request":
            method = value.upper()
        elif name == "--header":
            headers.append(value)
        elif name == "--user":
            headers.append(f"authorization:{value}")
        elif name in _CURL_BODIES:
            bodies.append((name, value))
        elif name not in _NEUTRAL_VALUED:
            raise _Unclear
    if any(letter in url for url in urls for letter in "{}[]"):  # several URLs in one
        raise _Unclear
    files = [value for name, value in bodies if value.startswith("@") and name != "--data-raw"]
    if files and len(bodies) > 1:
        raise _Unclear
    joined = ("" if any(name == "--json" for name, _ in bodies) else "&").join(value for _, value in bodies)
    is_sent = bool(bodies)
    urls = [_SLASHES.sub(r"\1://", url, count=1) if _SLASHES.match(url) else url for url in urls]
    return _build_request(method or ("POST" if is_sent else "GET"), urls, headers, "" if files else joined, files)


def _parse_wget(words: Sequence[str], _path: str) -> HttpRequest:
    method, urls, headers, texts, files = "", [], [], [], []
    for name, value in _split_options(words, _WGET):
        if not name:
            urls.append(value)
        elif name == "--method":
            method = value.upper()
        elif name == "--header":
            headers.append(value)
        elif name in {"--post-data", "--body-data"}:
            texts.append(value)
        elif name in {"--post-file", "--body-file"}:
            files.append(f"@{value}")
        elif name not in _NEUTRAL_VALUED:
            raise _Unclear
        method = method or ("POST" if name.startswith("--post-") else "")
    if len(texts) + len(files) > 1:
        raise _Unclear
    return _build_request(method or "GET", urls, headers, "".join(texts), files)


# --- HTTPie


def _parse_httpie(words: Sequence[str], path: str) -> HttpRequest:
    named: list[str] = []
    raw = None
    for word in words:
        if word.startswith("--raw="):
            raw = word.removeprefix("--raw=")
        elif word in _HTTPIE_LONG_SWITCHES:
            continue
        elif word.startswith("-"):
            raise _Unclear
        else:
            named.append(word)
    method = named.pop(0).upper() if named and named[0].upper() in _METHODS else ""
    if not named:
        raise _Unclear
    url = named[0]
    fields, headers = _split_items(named[1:])
    if raw is not None and fields:
        raise _Unclear
    if url.startswith(":"):
        url = f"localhost{url if url[1:2].isdigit() else url[1:]}"
    body = raw if raw is not None else canonical(fields) if fields else ""
    default = "https" if path.rpartition("/")[2] in {"https", "xhs"} else "http"
    return _build_request(method or ("POST" if body else "GET"), [url], headers, body, [], default)


def _split_items(items: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Split the items of HTTPie into the fields of the body, and headers."""
    fields: dict[str, Any] = {}
    headers: list[str] = []
    for item in items:
        found = _HTTPIE_ITEM.fullmatch(item)
        if found is None or "\\" in item or found[2] == "==" or _HTTPIE_FILE.match(item):
            raise _Unclear
        if found[1] in fields:
            raise _Unclear
        if found[2] == ":":
            headers.append(f"{found[1]}:{found[3]}")
        else:
            fields[found[1]] = _parse_json(found[3]) if found[2] == ":=" else found[3]
    return fields, headers


def _parse_json(text: str) -> Any:  # noqa: ANN401 - any JSON
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise _Unclear from None


def _build_request(
    method: str, urls: list[str], headers: list[str], body: str, files: list[str], scheme: str = "http"
) -> HttpRequest:
    # Standard input, also as a device, is not part of the command line.
    if len(urls) != 1 or any(file == "@-" or file.startswith(("@/dev/", "@/proc/")) for file in files):
        raise _Unclear
    user = _USER.match(urls[0])
    if user is not None:
        headers = [*headers, f"authorization:{user[1]}"]
    kept = set()
    for header in headers:
        name, colon, value = header.partition(":")
        if not colon or name.startswith("@") or name.strip().lower() == "host":
            raise _Unclear
        if name.strip().lower() not in _NEUTRAL_HEADERS:
            kept.add(f"{name.strip().lower()}:{value.strip()}")
    return HttpRequest(
        method=method,
        url=normalize_url(urls[0], scheme),
        body=hash_text(_normalize_body(body)) if body else "",
        body_file=files[0].removeprefix("@") if files else "",
        headers="\n".join(sorted(kept)),
    )


def _normalize_body(body: str) -> str:
    """Normalize JSON: white space and order of names do not matter. Not if a name occurs twice, or for odd numbers."""

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in pairs}) < len(pairs):
            raise ValueError("a name occurs twice")
        return dict(pairs)

    def parse_float(text: str) -> float:
        if repr(float(text)) != text:
            raise ValueError("another number could be equal")
        return float(text)

    if body[:1] not in {"{", "["}:
        return body
    try:
        return canonical(json.loads(body, object_pairs_hook=build, parse_float=parse_float))
    except (ValueError, RecursionError):
        return body


_PARSERS = {"curl": _parse_curl, "wget": _parse_wget, "http": _parse_httpie}
