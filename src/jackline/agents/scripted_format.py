"""What a script of the scripted agent may say: the check before it is played. Pure, and without jsonschema.

It says the same as scripted.schema.json, which is for editors; a test holds the two together.
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
LONGEST_LEFTOVER_SECONDS = 3_600  # a daemon that nobody ends must end by itself
MOST_BYTES = 2**40
LARGEST_EXIT_CODE = 255
CRASHES = (
    "SIGKILL", "SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT",
)  # fmt: skip
IGNORABLE = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")


@dataclass(frozen=True, slots=True)
class Check:
    """What a plain value must be, in words and as a function."""

    words: str
    holds: Callable[[object], bool]


@dataclass(frozen=True, slots=True)
class Shape:
    """What an object must be: its fields, those it needs, and which of them exclude each other."""

    fields: Mapping[str, Check | Shape]
    required: tuple[str, ...] = ()
    choices: tuple[frozenset[str], ...] = ()  # exactly one of these sets, of all that they name


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(value: object) -> bool:
    return _number(value) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))


def _between(least: float, most: float) -> Check:
    return Check(f"a number from {least} to {most}", lambda value: _number(value) and least <= value <= most)  # type: ignore[operator]


def _count(least: int, most: int | None = None) -> Check:
    words = f"a whole number from {least}" + ("" if most is None else f" to {most}")
    top = math.inf if most is None else most
    return Check(words, lambda value: _whole(value) and least <= value <= top)  # type: ignore[operator]


def _one_of(*words: str) -> Check:
    return Check(f"one of {', '.join(words)}", lambda value: isinstance(value, str) and value in words)


def _list_of(one: Check, words: str) -> Check:
    return Check(words, lambda value: isinstance(value, list) and bool(value) and all(map(one.holds, value)))


def _either(first: Check, second: Check) -> Check:
    return Check(f"{first.words}, or {second.words}", lambda value: first.holds(value) or second.holds(value))


TEXT = Check("a text", lambda value: isinstance(value, str))
WORD = Check("a text that is not empty", lambda value: isinstance(value, str) and bool(value))
YES_OR_NO = Check("true or false", lambda value: isinstance(value, bool))
TRUE = Check("true", lambda value: value is True)
OBJECT = Check("an object", lambda value: isinstance(value, dict))
ATTEMPT = _count(1)
ARGUMENTS = Check(
    "a list of texts that names a program first",
    lambda value: isinstance(value, list) and all(map(TEXT.holds, value)) and bool(value) and bool(value[0]),
)

WHEN = Shape(
    {
        "attempt": _either(ATTEMPT, _list_of(ATTEMPT, "a list of such numbers")),
        "attempt_from": ATTEMPT,
        "attempt_to": ATTEMPT,
    }
)
ACTIONS: Mapping[str, tuple[Check | Shape, ...]] = {
    "say": (TEXT,),
    "think": (TEXT,),
    "call": (
        Shape(
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
        Shape(
            {"path": WORD, "content": TEXT, "find": WORD, "replace": TEXT, "append": TEXT},
            required=("path",),
            choices=(frozenset({"content"}), frozenset({"find", "replace"}), frozenset({"append"})),
        ),
    ),
    "commit": (WORD,),
    "sleep": (_between(0, LONGEST_SECONDS),),
    "hang": (TRUE,),
    "ignore": (_list_of(_one_of(*IGNORABLE), f"a list of {', '.join(IGNORABLE)}"),),
    "daemon": (Shape({"seconds": _between(0, LONGEST_LEFTOVER_SECONDS), "touch": WORD}, required=("seconds",)),),
    "garbage": (
        Shape(
            {
                "kind": _one_of("binary", "lines", "long_line"),
                "bytes": _count(1, MOST_BYTES),
                "newline": YES_OR_NO,
                "stream": _one_of("stdout", "stderr"),
            },
            required=("kind", "bytes"),
        ),
    ),
    "usage": (Shape({"input": _count(0), "output": _count(0), "cached": _count(0), "usd": _between(0, 1_000_000)}),),
    "limit": (
        Shape(
            {"resets_at": _count(0), "resets_in": _between(0, 10**9), "text": TEXT},
            choices=(frozenset(), frozenset({"resets_at"}), frozenset({"resets_in"})),
        ),
    ),
    "error": (Shape({"class": _one_of(*Failure), "detail": TEXT}, required=("class",)),),
    "exit": (_count(0, LARGEST_EXIT_CODE),),
    "crash": (_one_of(*CRASHES),),
    "touch": (WORD,),
    "wait_for": (WORD, Shape({"file": WORD, "seconds": _between(0, LONGEST_SECONDS)}, required=("file",))),
}
_TOP = ("version", "session", "steps", "description", "$schema")


def validate(text: str) -> None:
    """Raise ScriptError, in one line that names the step, unless this is a script of version 1."""
    script = _decoded(text)
    if not isinstance(script, dict):
        _refuse("script", 'must be an object such as {"version": 1, "steps": [{"say": "hello"}]}')
    _known("script", script, _TOP)
    if not (_whole(script.get("version")) and script["version"] == VERSION):
        _refuse("script", f"'version' must be {VERSION}")
    for name, check in (("session", YES_OR_NO), ("description", TEXT), ("$schema", TEXT)):
        if name in script:
            _check("script", f"'{name}'", script[name], check)
    steps = script.get("steps")
    if not isinstance(steps, list) or not steps:
        _refuse("script", "'steps' must be a list with at least one step")
    for number, step in enumerate(steps, 1):
        _step(f"step {number}", step)


def _decoded(text: str) -> object:
    try:
        return json.loads(text, parse_constant=_no_such_number)
    except json.JSONDecodeError as error:
        _refuse("script", f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}")
    except (ValueError, RecursionError) as error:
        _refuse("script", f"is not JSON: {error}")


def _no_such_number(word: str) -> NoReturn:
    message = f"{word} is no number"
    raise ValueError(message)


def _step(where: str, step: object) -> None:
    if not isinstance(step, dict):
        _refuse(where, 'must be an object such as {"say": "hello"}')
    _known(where, step, (*ACTIONS, "when"))
    actions = [name for name in step if name != "when"]
    if len(actions) != 1:
        named = f"has {' and '.join(actions)}" if actions else "has none"
        _refuse(where, f"must have exactly one action, and {named}")
    action = actions[0]
    _check_any(f"{where} ({action})", f"'{action}'", step[action], ACTIONS[action])
    if "when" in step:
        _check(f"{where} (when)", "'when'", step["when"], WHEN)


def _check_any(where: str, name: str, value: object, allowed: tuple[Check | Shape, ...]) -> None:
    """An action may be written short (a text) or long (an object); the form that was meant is judged."""
    shapes = [one for one in allowed if isinstance(one, Shape)]
    meant = shapes if shapes and isinstance(value, dict) else allowed
    _check(where, name, value, meant[0])


def _check(where: str, name: str, value: object, expected: Check | Shape) -> None:
    if isinstance(expected, Shape):
        _object(where, name, value, expected)
    elif not expected.holds(value):
        _refuse(where, f"{name} must be {expected.words}")


def _object(where: str, name: str, value: object, shape: Shape) -> None:
    if not isinstance(value, dict):
        _refuse(where, f"{name} must be an object with {', '.join(shape.fields)}")
    _known(where, value, tuple(shape.fields))
    for word in shape.required:
        if word not in value:
            _refuse(where, f"'{word}' is missing")
    _choose(where, value, shape)
    for word, given in value.items():
        _check(where, f"'{word}'", given, shape.fields[word])


def _choose(where: str, value: Mapping[str, object], shape: Shape) -> None:
    if not shape.choices:
        return
    exclusive = frozenset().union(*shape.choices)
    if exclusive & value.keys() not in shape.choices:
        choices = ", or ".join(" and ".join(sorted(choice)) or "none" for choice in shape.choices)
        _refuse(where, f"needs {choices}")


def _known(where: str, value: Mapping[str, object], words: tuple[str, ...]) -> None:
    for word in value:
        if word not in words:
            _refuse(where, f"unknown word '{_one_line(word)}' (known: {', '.join(words)})")


def _one_line(word: str) -> str:
    return word if word.isprintable() else ascii(word)[1:-1]


def _refuse(where: str, what: str) -> NoReturn:
    message = f"{where}: {what}"
    raise ScriptError(message)
