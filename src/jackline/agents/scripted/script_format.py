"""Validates a script of the scripted agent before it is played. Pure, and without jsonschema.

It has the same rules as scripted.schema.json, which is for editors; a test compares the two.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from jackline.domain.states import Failure
from jackline.errors import ScriptError

VERSION = 1
LONGEST_SECONDS = 86_400
LONGEST_LEFTOVER_SECONDS = 3_600  # a daemon must end by itself
MOST_BYTES = 2**40
LARGEST_EXIT_CODE = 255
CRASHES = (
    "SIGKILL", "SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT",
)  # fmt: skip
IGNORABLE = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")


@dataclass(frozen=True, slots=True)
class ValueCheck:
    """The rule for a plain value, as text and as a function."""

    words: str
    holds: Callable[[object], bool]


@dataclass(frozen=True, slots=True)
class ObjectShape:
    """The rule for an object: its fields, the required ones, and which of them exclude each other."""

    fields: Mapping[str, ValueCheck | ObjectShape]
    required: tuple[str, ...] = ()
    choices: tuple[frozenset[str], ...] = ()  # exactly one of these sets, of all that they name


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return _is_number(value) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))


def _between(least: float, most: float) -> ValueCheck:
    return ValueCheck(f"a number from {least} to {most}", lambda value: _is_number(value) and least <= value <= most)  # type: ignore[operator]


def _count(least: int, most: int | None = None) -> ValueCheck:
    words = f"a whole number from {least}" + ("" if most is None else f" to {most}")
    top = math.inf if most is None else most
    return ValueCheck(words, lambda value: _is_whole(value) and least <= value <= top)  # type: ignore[operator]


def _one_of(*words: str) -> ValueCheck:
    return ValueCheck(f"one of {', '.join(words)}", lambda value: isinstance(value, str) and value in words)


def _list_of(one: ValueCheck, words: str) -> ValueCheck:
    return ValueCheck(words, lambda value: isinstance(value, list) and bool(value) and all(map(one.holds, value)))


def _either(first: ValueCheck, second: ValueCheck) -> ValueCheck:
    return ValueCheck(f"{first.words}, or {second.words}", lambda value: first.holds(value) or second.holds(value))


TEXT = ValueCheck("a text", lambda value: isinstance(value, str))
WORD = ValueCheck("a text that is not empty", lambda value: isinstance(value, str) and bool(value))
YES_OR_NO = ValueCheck("true or false", lambda value: isinstance(value, bool))
TRUE = ValueCheck("true", lambda value: value is True)
OBJECT = ValueCheck("an object", lambda value: isinstance(value, dict))
ATTEMPT = _count(1)
ARGUMENTS = ValueCheck(
    "a list of texts that names a program first",
    lambda value: isinstance(value, list) and all(map(TEXT.holds, value)) and bool(value) and bool(value[0]),
)

WHEN = ObjectShape(
    {
        "attempt": _either(ATTEMPT, _list_of(ATTEMPT, "a list of such numbers")),
        "attempt_from": ATTEMPT,
        "attempt_to": ATTEMPT,
    }
)
ACTIONS: Mapping[str, tuple[ValueCheck | ObjectShape, ...]] = {
    "say": (TEXT,),
    "think": (TEXT,),
    "call": (
        ObjectShape(
            {
                "tool": WORD,
                "input": OBJECT,
                "run": _either(WORD, ARGUMENTS),
                "on_denied": _one_of("continue", "stop"),
                "ungated": YES_OR_NO,
                "external_id": WORD,
            },
            required=("tool",),
        ),
    ),
    "edit": (
        ObjectShape(
            {"path": WORD, "content": TEXT, "find": WORD, "replace": TEXT, "append": TEXT},
            required=("path",),
            choices=(frozenset({"content"}), frozenset({"find", "replace"}), frozenset({"append"})),
        ),
    ),
    "commit": (WORD,),
    "sleep": (_between(0, LONGEST_SECONDS),),
    "hang": (TRUE,),
    "ignore": (_list_of(_one_of(*IGNORABLE), f"a list of {', '.join(IGNORABLE)}"),),
    "daemon": (ObjectShape({"seconds": _between(0, LONGEST_LEFTOVER_SECONDS), "touch": WORD}, required=("seconds",)),),
    "garbage": (
        ObjectShape(
            {
                "kind": _one_of("binary", "lines", "long_line"),
                "bytes": _count(1, MOST_BYTES),
                "newline": YES_OR_NO,
                "stream": _one_of("stdout", "stderr"),
            },
            required=("kind", "bytes"),
        ),
    ),
    "usage": (
        ObjectShape({"input": _count(0), "output": _count(0), "cached": _count(0), "usd": _between(0, 1_000_000)}),
    ),
    "limit": (
        ObjectShape(
            {"resets_at": _count(0), "resets_in": _between(0, 10**9), "text": TEXT},
            choices=(frozenset(), frozenset({"resets_at"}), frozenset({"resets_in"})),
        ),
    ),
    "error": (ObjectShape({"class": _one_of(*Failure), "detail": TEXT}, required=("class",)),),
    "exit": (_count(0, LARGEST_EXIT_CODE),),
    "crash": (_one_of(*CRASHES),),
    "touch": (WORD,),
    "wait_for": (WORD, ObjectShape({"file": WORD, "seconds": _between(0, LONGEST_SECONDS)}, required=("file",))),
}
_TOP = ("version", "session", "steps", "description", "$schema")


def validate(text: str) -> None:
    """Raise ScriptError, in one line that names the step, unless this is a script of version 1."""
    try:
        script = json.loads(text, parse_constant=_reject_number)
    except json.JSONDecodeError as error:
        _reject("script", f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}")
    except (ValueError, RecursionError) as error:
        _reject("script", f"is not JSON: {error}")
    if not isinstance(script, dict):
        _reject("script", 'must be an object such as {"version": 1, "steps": [{"say": "hello"}]}')
    _check_keys("script", script, _TOP)
    if not (_is_whole(script.get("version")) and script["version"] == VERSION):
        _reject("script", f"'version' must be {VERSION}")
    for name, check in (("session", YES_OR_NO), ("description", TEXT), ("$schema", TEXT)):
        if name in script:
            _check_value("script", f"'{name}'", script[name], check)
    steps = script.get("steps")
    if not isinstance(steps, list) or not steps:
        _reject("script", "'steps' must be a list with at least one step")
    for number, step in enumerate(steps, 1):
        _check_step(f"step {number}", step)


def _reject_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")


def _check_step(where: str, step: object) -> None:
    if not isinstance(step, dict):
        _reject(where, 'must be an object such as {"say": "hello"}')
    _check_keys(where, step, (*ACTIONS, "when"))
    actions = [name for name in step if name != "when"]
    if len(actions) != 1:
        named = f"has {' and '.join(actions)}" if actions else "has none"
        _reject(where, f"must have exactly one action, and {named}")
    (action,) = actions
    value, forms = step[action], ACTIONS[action]
    # An action may have a short form (a text) and a long one (an object), which comes last.
    form = forms[-1] if isinstance(value, dict) else forms[0]
    _check_value(f"{where} ({action})", f"'{action}'", value, form)
    if "when" in step:
        _check_value(f"{where} (when)", "'when'", step["when"], WHEN)


def _check_value(where: str, name: str, value: object, expected: ValueCheck | ObjectShape) -> None:
    if isinstance(expected, ValueCheck):
        if not expected.holds(value):
            _reject(where, f"{name} must be {expected.words}")
        return
    if not isinstance(value, dict):
        _reject(where, f"{name} must be an object with {', '.join(expected.fields)}")
    _check_keys(where, value, tuple(expected.fields))
    for word in expected.required:
        if word not in value:
            _reject(where, f"'{word}' is missing")
    exclusive: frozenset[str] = frozenset().union(*expected.choices)
    if expected.choices and exclusive & value.keys() not in expected.choices:
        choices = ", or ".join(" and ".join(sorted(choice)) or "none" for choice in expected.choices)
        _reject(where, f"needs {choices}")
    for word, part in value.items():
        _check_value(where, f"'{word}'", part, expected.fields[word])


def _check_keys(where: str, value: Mapping[str, object], words: tuple[str, ...]) -> None:
    for word in value:
        if word not in words:
            shown = word if word.isprintable() else ascii(word)[1:-1]
            _reject(where, f"unknown key '{shown}' (known: {', '.join(words)})")


def _reject(where: str, what: str) -> NoReturn:
    raise ScriptError(f"{where}: {what}")
