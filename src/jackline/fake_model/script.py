"""The script of the fake model: replies in order, for the requests with tools. Pure, except for its position."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

from jackline.domain.events import NOTHING
from jackline.errors import ScriptError
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jackline.fake_model.wire import ModelRequest


class Reply(NamedTuple):
    """One reply of the script, independent of agent and provider.

    shell: a command for the agent's shell tool, whatever its name; write: [path, content] for its write tool;
    call: {"tool": exact name, "input": {…}}; calls: several of these in one answer. A status of 400 and above is an
    error with `message` and `headers`. With status 200, `kind` is the type of an error in the middle of a stream.
    drop and hang: "before" anything is sent, or in the "middle" of the answer. pad: fill the text up to this size.
    """

    say: str = ""
    thinking: str = ""
    shell: str = ""
    write: tuple[str, str] | None = None
    call: Mapping[str, Any] = NOTHING
    calls: tuple[Mapping[str, Any], ...] = ()
    status: int = 200
    message: str = ""
    kind: str = ""
    headers: Mapping[str, str] = NOTHING
    drop: str = ""
    hang: str = ""
    pad: int = 0
    tokens_input: int = 11
    tokens_output: int = 7
    tokens_cached: int = 0
    times: int = 1  # the number of requests that get it


_DONE = Reply(say="ok")
_OK, _ERRORS = 200, range(400, 600)  # HTTP statuses
_LISTS = ("write", "calls")


class Script:
    """The remaining replies. A request without tools (a title, a summary) gets a plain answer and uses none."""

    def __init__(self, replies: tuple[Reply, ...], otherwise: Reply = _DONE) -> None:
        """`otherwise` is the reply after the last one."""
        self._replies = [reply for reply in replies for _ in range(reply.times)]
        self._otherwise = otherwise
        self._lock = threading.Lock()

    def next_reply(self, asked: ModelRequest) -> Reply:
        """The reply to this request."""
        if not asked.tools:
            return _DONE
        with self._lock:
            return self._replies.pop(0) if self._replies else self._otherwise


def load_script(text: str) -> Script:
    """Parse a script: {"replies": […], "otherwise": {…}}; ScriptError if it is invalid."""
    try:
        fields = json.loads(text)
    except ValueError as error:
        raise ScriptError(f"the model's script is not JSON: {error}") from None
    if not isinstance(fields, dict) or not isinstance(fields.get("replies"), list):
        raise ScriptError('the model\'s script must be an object with a list "replies"')
    if unknown := fields.keys() - {"replies", "otherwise"}:
        raise ScriptError(f"the model's script has '{min(unknown)}': it may have replies and otherwise")
    replies = tuple(_parse_reply(f"reply {number}", one) for number, one in enumerate(fields["replies"], 1))
    return Script(replies, _parse_reply("otherwise", fields["otherwise"]) if "otherwise" in fields else _DONE)


def _parse_reply(where: str, fields: object) -> Reply:
    if not isinstance(fields, dict):
        raise ScriptError(f"{where} of the model's script must be an object")
    for name, value in fields.items():
        if name not in _CHECKS:
            raise ScriptError(f"{where} of the model's script has '{name}': it may have {', '.join(_CHECKS)}")
        is_valid, description = _CHECKS[name]
        if not is_valid(value):
            raise ScriptError(f"{where} of the model's script: {name} must be {description}")
    values: dict[str, Any] = {name: tuple(value) if name in _LISTS else value for name, value in fields.items()}
    reply = Reply(**values)
    if reply.tokens_cached > reply.tokens_input:
        raise ScriptError(f"{where} of the model's script: tokens_input must include tokens_cached")
    return reply


class _Check(NamedTuple):
    is_valid: Callable[[Any], bool]
    description: str


def _is_call(value: object) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() <= {"tool", "input"}
        and isinstance(value.get("tool"), str)
        and isinstance(value.get("input", {}), dict)
    )


_TEXT = _Check(lambda value: isinstance(value, str), "text")
_COUNT = _Check(lambda value: type(value) is int and value >= 0, "a whole number, 0 or more")
_PAIR = _Check(lambda value: isinstance(value, list) and list(map(type, value)) == [str, str], "[path, content]")
_CALL = _Check(_is_call, '{"tool": name, "input": {…}}')
_CALLS = _Check(
    lambda value: isinstance(value, list) and all(map(_is_call, value)), 'a list of {"tool": name, "input": {…}}'
)
_STATUS = _Check(lambda value: isinstance(value, int) and (value == _OK or value in _ERRORS), "200, or 400 to 599")
_HEADERS = _Check(
    lambda value: isinstance(value, dict) and all(isinstance(one, str) for one in value.values()), "an object of texts"
)
_MOMENT = _Check(lambda value: value in ("before", "middle"), '"before" or "middle"')
_CHECKS = {
    "say": _TEXT,
    "thinking": _TEXT,
    "shell": _TEXT,
    "write": _PAIR,
    "call": _CALL,
    "calls": _CALLS,
    "status": _STATUS,
    "message": _TEXT,
    "kind": _TEXT,
    "headers": _HEADERS,
    "drop": _MOMENT,
    "hang": _MOMENT,
    "pad": _COUNT,
    "tokens_input": _COUNT,
    "tokens_output": _COUNT,
    "tokens_cached": _COUNT,
    "times": _COUNT,
}
