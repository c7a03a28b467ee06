"""Schemas of payloads: KIND.json in the home's `schemas`, else KIND.schema.json in the project's `.agents/schemas`.

A schema can only refuse a payload, so a project's schema needs no trust. An unreadable schema refuses every payload.
A schema may use the part of JSON Schema in `_META_SCHEMA`. Other keywords are refused, because fastjsonschema ignores
keywords that it does not know, and would fetch a `$ref` from the network.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from jackline.domain import ids
from jackline.domain.events import canonical
from jackline.errors import UsageError
from jackline.named import NamedTuple
from jackline.worktrees import find_worktree

if TYPE_CHECKING:
    from collections.abc import Iterator

HOME_FOLDER = "schemas"
PROJECT_FOLDER = os.path.join(".agents", "schemas")
TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
_ANNOTATIONS = ("$schema", "$id", "$comment", "title", "description", "default", "examples")
_SCHEMA = {"$ref": "#"}
_SCHEMAS = {"type": "array", "minItems": 1, "items": _SCHEMA}
_COUNT = {"type": "integer", "minimum": 0}
_KEYWORDS: dict[str, dict[str, Any]] = {
    "type": {
        "anyOf": [{"enum": list(TYPES)}, {"type": "array", "minItems": 1, "items": {"enum": list(TYPES)}}],
    },
    "required": {"type": "array", "items": {"type": "string"}},
    "properties": {"type": "object", "additionalProperties": _SCHEMA},
    "additionalProperties": _SCHEMA,
    "items": _SCHEMA,
    "enum": {"type": "array"},
    "const": {},
    "minimum": {"type": "number"},
    "maximum": {"type": "number"},
    "minLength": _COUNT,
    "maxLength": _COUNT,
    "pattern": {"type": "string"},
    "minItems": _COUNT,
    "maxItems": _COUNT,
    "anyOf": _SCHEMAS,
    "oneOf": _SCHEMAS,
    "allOf": _SCHEMAS,
}
_META_SCHEMA = {
    "type": ["object", "boolean"],
    "properties": {**_KEYWORDS, **{name: {} for name in _ANNOTATIONS}},
    "additionalProperties": False,
}
_HINTS = {  # by the rule of the meta-schema that a schema breaks
    "additionalProperties": f" (known keywords: {', '.join(_KEYWORDS)})",
    "anyOf": f" (known types: {', '.join(TYPES)})",
}
_LONGEST_SCHEMA = 1024 * 1024
_LONGEST_PROBLEM = 500  # names in a payload may have any length
_FAST_SCHEMA, _FAST_PRODUCT = 20_000, 4_000_000  # characters of a schema, and of a schema times a payload
_TIMEOUT_SECONDS = 5.0


class SchemaResult(NamedTuple):
    """The result of checking a payload; both texts are empty if it fits."""

    unusable: str = ""  # why the schema cannot be used
    problem: str = ""  # what is wrong with the payload


def find_schema(home: str, folder: str, kind: str) -> str | None:
    """The file with the schema of a kind; a kind that is not a plain file name has none."""
    if not ids.is_chosen(kind):
        return None
    files = (os.path.join(home, HOME_FOLDER, f"{kind}.json"), *_list_project_files(folder, kind))
    return next((path for path in files if os.path.lexists(path)), None)


def _list_project_files(folder: str, kind: str) -> Iterator[str]:
    """From the folder up to the root of its repository, in the same order as tasks."""
    here, root = os.path.realpath(folder), find_worktree(folder)
    while True:
        yield os.path.join(here, PROJECT_FOLDER, f"{kind}.schema.json")
        if here == root:
            break
        here = os.path.dirname(here)


def refuse_invalid(path: str, value: object) -> None:
    """UsageError unless a payload fits the schema in a file."""
    from jackline.app.text_files import read_regular_text

    schema, payload = read_regular_text(path, _LONGEST_SCHEMA), canonical(value)
    result = (check_in_process if may_take_long(schema, payload) else check_payload)(schema, payload)
    if result.unusable:
        raise UsageError(f"the schema {path} {result.unusable}")
    if result.problem:
        raise UsageError(f"the payload does not fit {path}: {result.problem}")


def may_take_long(schema: str, payload: str) -> bool:
    """Whether a check needs a time limit: a regular expression can take very long on a short text.

    A backslash counts as well, because an escape could spell `pattern`.
    """
    is_large = len(schema) > _FAST_SCHEMA or len(schema) * len(payload) > _FAST_PRODUCT
    return "pattern" in schema or "\\" in schema or is_large


def check_in_process(schema: str, payload: str) -> SchemaResult:
    """Check in another process, which is killed after a timeout: Python cannot interrupt a regular expression."""
    from jackline.engine.command_runner import run_command

    program = f"import sys; sys.path.extend(sys.argv[1:]); from {__name__} import check_stdin; check_stdin()"
    search_path = [path for path in sys.path if os.path.isabs(path)]
    done = run_command(
        (sys.executable, "-IS", "-c", program, *search_path),
        cwd="/",
        env=os.environ,
        stdin=json.dumps([schema, payload]).encode(),
        timeout_s=_TIMEOUT_SECONDS,
    )
    if done.timed_out:
        return SchemaResult(
            f"takes more than {_TIMEOUT_SECONDS:g} s to check this payload: simplify the payload or the patterns"
        )
    if done.exit_code != 0:
        stderr = " ".join(done.stderr_tail.decode("utf-8", "replace").split())
        return SchemaResult(f"could not be used: {stderr[-200:] or f'signal {done.signal}'}")
    return SchemaResult(*json.loads(done.stdout_tail))


def check_stdin() -> None:
    """Run as a program: check the payload against the schema, both from standard input."""
    json.dump(check_payload(*json.load(sys.stdin)), sys.stdout)


def check_payload(schema: str, payload: str) -> SchemaResult:
    """Check a payload against a schema, both JSON texts."""
    import re

    import fastjsonschema as library

    try:
        definition = json.loads(schema, parse_constant=_refuse_constant)
        library.compile(_META_SCHEMA)(definition)
        check = library.compile(_strip_annotations(definition), use_default=False)
    except library.JsonSchemaValueException as error:
        return SchemaResult(_shorten(f"cannot be used: {_format_problem(error)}{_HINTS.get(error.rule or '', '')}"))
    except (re.error, OverflowError) as error:
        return SchemaResult(_shorten(f"cannot be used: a pattern is not a regular expression: {error}"))
    except library.JsonSchemaDefinitionException as error:
        return SchemaResult(_shorten(f"cannot be used: {error}"))
    except (RecursionError, SyntaxError):  # Python limits how deep code can be nested
        return SchemaResult("cannot be used: it is nested too deeply")
    except ValueError as error:
        return SchemaResult(f"is not valid JSON: {error}")
    try:
        check(json.loads(payload))
    except library.JsonSchemaValueException as error:
        return SchemaResult(problem=_format_problem(error))
    return SchemaResult()


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")


def _strip_annotations(schema: Any) -> Any:  # noqa: ANN401 - any JSON
    """The schema with its checked keywords only: an annotation must not reach the generated code."""
    if not isinstance(schema, dict):
        return schema
    kept = {name: value for name, value in schema.items() if name not in _ANNOTATIONS}
    for name in kept.keys() & {"additionalProperties", "items"}:
        kept[name] = _strip_annotations(kept[name])
    for name in kept.keys() & {"anyOf", "oneOf", "allOf"}:
        kept[name] = [_strip_annotations(one) for one in kept[name]]
    if "properties" in kept:
        kept["properties"] = {name: _strip_annotations(one) for name, one in kept["properties"].items()}
    return kept


def _format_problem(error: Any) -> str:  # noqa: ANN401 - the library's exception, which is imported on use
    """One line that begins with the path of the wrong value, such as `$.to[0]`."""
    return _shorten(f"${error.message.removeprefix('data')}")


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_PROBLEM else f"{text[: _LONGEST_PROBLEM - 1]}…"
