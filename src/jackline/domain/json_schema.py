"""A small part of JSON Schema (2020-12): enough to say what a payload looks like. Pure; it fetches no reference.

A schema that says anything beyond this part is refused by name: what would not be checked must not look checked.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NoReturn

from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Path = tuple[str | int, ...]
    Check = Callable[[Any, Any, dict[str, Any], Path], Iterator[str]]

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
_ANNOTATIONS = frozenset({"$schema", "$id", "$comment", "title", "description", "default", "examples"})
_SHOWN = 60
_LONGEST = 500  # of a line that says what is wrong: names in a payload may be of any length
_SMALL = 4_000_000  # schema times value, in characters: they are done with in a moment, whatever they say


class Verdict(NamedTuple):
    """What came of comparing two texts."""

    unusable: str = ""  # why the schema cannot be used
    problem: str = ""  # what is wrong with the value


class SchemaRefused(ValueError):
    """A schema that is none, or that says more than is understood here."""


def may_take_long(schema: str, value: str) -> bool:
    """Whether nobody can say how long a comparison takes: a pattern may take ages over a short text.

    An escape could spell `pattern` so that it is not seen here.
    """
    return "pattern" in schema or "\\" in schema or len(schema) * len(value) > _SMALL


def judge(schema: str, value: str) -> Verdict:
    """Compare a value with a schema, both as JSON."""
    try:
        wanted = json.loads(schema, parse_constant=_no_number)
        refuse_schema(wanted)
        return Verdict(problem=_cut(first_problem(wanted, json.loads(value)) or "", _LONGEST))
    except SchemaRefused as error:
        return Verdict(_cut(f"cannot be used: {error}", _LONGEST))
    except ValueError as error:
        return Verdict(f"is no JSON: {error}")
    except RecursionError:
        return Verdict("is nested too deeply")


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def refuse_schema(schema: object, path: Path = ()) -> None:
    """SchemaRefused unless every word of the schema is one that is checked here."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise SchemaRefused(f"{_place(path)} is no schema: it has to be an object, true or false")
    for keyword, said in schema.items():
        if keyword in _ANNOTATIONS:
            continue
        if keyword not in _KEYWORDS:
            known = ", ".join(_KEYWORDS)
            raise SchemaRefused(f"{_place(path)} uses '{keyword}', which is not checked here: known are {known}")
        _refuse_word(keyword, said, (*path, keyword))


def first_problem(schema: object, value: object) -> str | None:
    """What is wrong with a value, and where; None if it fits a schema that was not refused."""
    return next(_problems(schema, value, ()), None)


def _refuse_word(keyword: str, said: Any, path: Path) -> None:  # noqa: ANN401 - any JSON
    match keyword:
        case "properties":
            _demand(isinstance(said, dict), path, "an object of schemas")
            for name, one in said.items():
                refuse_schema(one, (*path, name))
        case "items" | "additionalProperties":
            refuse_schema(said, path)
        case "anyOf" | "oneOf" | "allOf":
            _demand(isinstance(said, list) and bool(said), path, "a list of schemas")
            for number, one in enumerate(said):
                refuse_schema(one, (*path, number))
        case _:
            _refuse_plain(keyword, said, path)


def _refuse_plain(keyword: str, said: Any, path: Path) -> None:  # noqa: ANN401 - any JSON
    match keyword:
        case "type":
            names = said if isinstance(said, list) and said else [said]
            _demand(all(isinstance(one, str) for one in names), path, "a name, or a list of them")
            _demand(all(one in TYPES for one in names), path, f"one of {', '.join(TYPES)}")
        case "required":
            _demand(isinstance(said, list) and all(isinstance(one, str) for one in said), path, "a list of names")
        case "enum":
            _demand(isinstance(said, list), path, "a list of values")
        case "minimum" | "maximum":
            _demand(_is_number(said), path, "a number")
        case "minLength" | "maxLength" | "minItems" | "maxItems":
            _demand(isinstance(said, int) and not isinstance(said, bool) and said >= 0, path, "a whole number from 0")
        case "pattern":
            _demand(isinstance(said, str) and _compiles(said), path, "a regular expression")


def _demand(fits: bool, path: Path, what: str) -> None:  # noqa: FBT001 - it reads as a sentence
    if not fits:
        raise SchemaRefused(f"{_place(path)} has to be {what}")


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def _problems(schema: Any, value: Any, path: Path) -> Iterator[str]:  # noqa: ANN401 - any JSON
    if schema is False:
        yield f"{_place(path)} is not allowed"
    if not isinstance(schema, dict):
        return
    for keyword, said in schema.items():
        check = _KEYWORDS.get(keyword)
        if check is not None:
            yield from check(said, value, schema, path)


def _type(said: Any, value: Any, _schema: dict[str, Any], path: Path) -> Iterator[str]:  # noqa: ANN401
    names = said if isinstance(said, list) else [said]
    if not any(_is_of(value, name) for name in names):
        yield f"{_place(path)} has to be of type {' or '.join(names)}"


def _is_of(value: object, name: str) -> bool:
    match name:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return _is_number(value) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))
        case "number":
            return _is_number(value)
        case "string":
            return isinstance(value, str)
        case "array":
            return isinstance(value, list)
        case _:
            return isinstance(value, dict)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _required(said: Any, value: Any, _schema: dict[str, Any], path: Path) -> Iterator[str]:  # noqa: ANN401
    if isinstance(value, dict):
        for name in said:
            if name not in value:
                yield f"{_place(path)} has no '{name}', which is required"


def _properties(said: Any, value: Any, _schema: dict[str, Any], path: Path) -> Iterator[str]:  # noqa: ANN401
    if isinstance(value, dict):
        for name, schema in said.items():
            if name in value:
                yield from _problems(schema, value[name], (*path, name))


def _additional(said: Any, value: Any, schema: dict[str, Any], path: Path) -> Iterator[str]:  # noqa: ANN401
    if isinstance(value, dict):
        for name in value:
            if name not in schema.get("properties", {}):
                yield from _problems(said, value[name], (*path, name))


def _items(said: Any, value: Any, _schema: dict[str, Any], path: Path) -> Iterator[str]:  # noqa: ANN401
    if isinstance(value, list):
        for number, one in enumerate(value):
            yield from _problems(said, one, (*path, number))


def _enum(said: Any, value: Any, _schema: dict[str, Any], path: Path) -> Iterator[str]:  # noqa: ANN401
    if not any(_same(value, one) for one in said):
        yield f"{_place(path)} has to be one of {_short(said)}"


def _const(said: Any, value: Any, _schema: dict[str, Any], path: Path) -> Iterator[str]:  # noqa: ANN401
    if not _same(value, said):
        yield f"{_place(path)} has to be {_short(said)}"


def _same(one: Any, other: Any) -> bool:  # noqa: ANN401 - any JSON
    """Equal as JSON: 1 is 1.0, and true is not 1."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_same(*pair) for pair in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


def _minimum(said: Any, value: Any, _schema: dict[str, Any], path: Path) -> Iterator[str]:  # noqa: ANN401
    if _is_number(value) and value < said:
        yield f"{_place(path)} has to be at least {said}"


def _maximum(said: Any, value: Any, _schema: dict[str, Any], path: Path) -> Iterator[str]:  # noqa: ANN401
    if _is_number(value) and value > said:
        yield f"{_place(path)} has to be at most {said}"


def _length(of: type, unit: str, *, least: bool) -> Check:
    def check(said: Any, value: Any, _schema: dict[str, Any], path: Path) -> Iterator[str]:  # noqa: ANN401
        if isinstance(value, of) and (len(value) < said if least else len(value) > said):  # type: ignore[arg-type]
            yield f"{_place(path)} has to have at {'least' if least else 'most'} {said} {unit}"

    return check


def _pattern(said: Any, value: Any, _schema: dict[str, Any], path: Path) -> Iterator[str]:  # noqa: ANN401
    if isinstance(value, str) and re.search(said, value) is None:
        yield f"{_place(path)} has to match {_short(said)}"


def _any_of(said: Any, value: Any, _schema: dict[str, Any], path: Path) -> Iterator[str]:  # noqa: ANN401
    if _fitting(said, value, path) == 0:
        yield f"{_place(path)} fits none of the {len(said)} schemas of anyOf"


def _one_of(said: Any, value: Any, _schema: dict[str, Any], path: Path) -> Iterator[str]:  # noqa: ANN401
    fitting = _fitting(said, value, path)
    if fitting != 1:
        yield f"{_place(path)} fits {fitting} of the {len(said)} schemas of oneOf: it has to be one"


def _all_of(said: Any, value: Any, _schema: dict[str, Any], path: Path) -> Iterator[str]:  # noqa: ANN401
    for schema in said:
        yield from _problems(schema, value, path)


def _fitting(schemas: list[Any], value: Any, path: Path) -> int:  # noqa: ANN401 - any JSON
    return sum(next(_problems(schema, value, path), None) is None for schema in schemas)


_KEYWORDS: dict[str, Check] = {
    "type": _type,
    "required": _required,
    "properties": _properties,
    "additionalProperties": _additional,
    "items": _items,
    "enum": _enum,
    "const": _const,
    "minimum": _minimum,
    "maximum": _maximum,
    "minLength": _length(str, "characters", least=True),
    "maxLength": _length(str, "characters", least=False),
    "pattern": _pattern,
    "minItems": _length(list, "items", least=True),
    "maxItems": _length(list, "items", least=False),
    "anyOf": _any_of,
    "oneOf": _one_of,
    "allOf": _all_of,
}


def _place(path: Path) -> str:
    """Where in the value or the schema: `$.to[0].name`."""
    return "$" + "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in path)


def _short(value: object) -> str:
    return _cut(repr(value), _SHOWN)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
