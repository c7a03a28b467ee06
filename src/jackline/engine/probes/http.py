"""Probe: may an HTTP request be sent again? Only if it has an idempotency key. It sends nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.engine.probes import shell_commands
from jackline.engine.probes.findings import DID_NOT, SENT_AGAIN, ProbeFinding, build_unknown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jackline.engine.probes.findings import ProbeContext
    from jackline.shell.model import ShellCommand, Word

# A request id such as X-Request-Id is for tracing: few servers refuse a second request with the same id.
KEYS = frozenset({"idempotency-key", "x-idempotency-key", "paypal-request-id"})
_WITH_FLAG = frozenset({"curl", "wget", "curlie"})
_WITH_ITEM = frozenset({"http", "https", "xh", "xhs"})
_FLAGS = ("-H", "--header")


def probe_http_request(scene: ProbeContext) -> ProbeFinding:
    """A request with an idempotency key may be sent again; for any other the outcome is unknown."""
    if scene.find_shell_text() is None:
        return _probe_fields(scene)
    found = shell_commands.parse_commands(scene)
    requests = [one for one in found or () if shell_commands.find_program(one) in _WITH_FLAG | _WITH_ITEM]
    if not requests:
        return build_unknown("the call is not a request that can be parsed")
    keys = [_find_key(one) for one in requests]
    if not all(keys):
        return build_unknown("the request has no idempotency key, or only the shell knew it")
    return _build_finding(keys)


def _probe_fields(scene: ProbeContext) -> ProbeFinding:
    """Probe a tool that has its headers as an object, or as a list of texts."""
    headers = scene.input.get("headers") if isinstance(scene.input, dict) else None
    lines = [f"{name}: {value}" for name, value in headers.items()] if isinstance(headers, dict) else headers
    key = _find_header_key(lines if isinstance(lines, list) else ())
    return _build_finding([key]) if key else build_unknown("the request has no idempotency key")


def _build_finding(keys: list[str]) -> ProbeFinding:
    return ProbeFinding(verdict=DID_NOT, evidence=f"{SENT_AGAIN} ({', '.join(keys)})", again=True)


def _find_key(request: ShellCommand) -> str:
    """The key of a request as the server gets it; one that the shell computes differs the next time."""
    if shell_commands.find_program(request) in _WITH_ITEM:
        headers: Iterable[Word] = request.words[1:]
    else:
        headers = shell_commands.find_flag_values(request.words[1:], *_FLAGS)
    return _find_header_key(word.text for word in headers if word.exact)


def _find_header_key(headers: Iterable[object]) -> str:
    for header in headers:
        name, _, value = str(header).partition(":")
        if name.strip().lower() in KEYS and value.strip():
            return value.strip()
    return ""
