"""Parses the input of `--each`: one line of text or one JSON object for each run. It creates nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from jackline.app.run_creation import refuse_problems
from jackline.digests import hash_text
from jackline.domain.events import NOTHING, canonical
from jackline.errors import UsageError
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LINE = "line"  # the variable that gets a line of text
FIELDS = ("prompt", "workspace", "agent")  # of an object; its other names are variables
_DIGITS = 12
_MOST_ITEMS = 10_000  # they are created in one transaction


class EachItem(NamedTuple):
    """What one line of text, or one object, gives to a run."""

    number: int  # of its first line
    text: str = ""
    prompt: str = ""
    workspace: str = ""
    agent: str = ""
    variables: Mapping[str, str] = NOTHING
    digest: str = ""  # the same for the same content; a repeated line gets another one


def parse_items(text: str, source: str) -> list[EachItem]:
    """Parse all of the input; UsageError with the numbers of the lines that cannot be used."""
    items: list[EachItem] = []
    problems: list[str] = []
    seen: dict[str, int] = {}
    for number, raw in _split_items(text.removeprefix("\ufeff")):
        try:
            item = _parse_object(raw) if raw.startswith("{") else EachItem(0, text=raw)
        except ValueError as error:
            problems.append(f"{source}, line {number}: {error}")
            continue
        content = canonical([item.text, item.prompt, item.workspace, item.agent, dict(item.variables)])
        seen[content] = seen.get(content, 0) + 1
        digest = hash_text(f"{seen[content]} {content}")[:_DIGITS]
        items.append(item._replace(number=number, digest=digest))
    refuse_problems(problems)
    if len(items) > _MOST_ITEMS:
        raise UsageError(f"{source} has {len(items)} lines, more than {_MOST_ITEMS}: split it; nothing was created")
    if not items:
        raise UsageError(f"{source} has no lines: nothing was created")
    return items


def _split_items(text: str) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, and the objects, which may have several lines, each with its line number."""
    decoder = json.JSONDecoder()
    number, at = 1, 0
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        line = text[at:end].strip()
        if line.startswith("{"):
            begin = text.index("{", at)
            try:
                _, stop = decoder.raw_decode(text, begin)
            except (ValueError, RecursionError):  # the parser of the line reports it
                stop = end
            end = text.find("\n", stop)
            end = len(text) if end < 0 else end
            line = text[begin:end].strip()
        if line:
            yield number, line
        number += text.count("\n", at, end + 1)
        at = end + 1


def _parse_object(text: str) -> EachItem:
    """ValueError if it is not a JSON object of texts, numbers and switches."""
    try:
        # A number is used as it is written: 1.10 is not 1.1.
        found = json.loads(
            text, object_pairs_hook=_refuse_repeated, parse_constant=_refuse_constant, parse_float=str, parse_int=str
        )
    except json.JSONDecodeError as error:
        message = f"it begins with a brace and is not a JSON object ({error.msg}, column {error.colno})"
        raise ValueError(message) from None
    except RecursionError:
        message = "it is nested too deeply"
        raise ValueError(message) from None
    values = {name: _parse_value(name, value) for name, value in found.items()}
    fields = {name: values.pop(name) for name in FIELDS if name in values}
    for name, value in fields.items():
        if not value.strip():
            message = f"{name} is empty"
            raise ValueError(message)
    return EachItem(0, variables=values, **fields)


def _refuse_repeated(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            message = f"{name[:40]} appears more than once"
            raise ValueError(message)
        found[name] = value
    return found


def _refuse_constant(word: str) -> None:
    message = f"{word} is not allowed in JSON"
    raise ValueError(message)


def _parse_value(name: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    message = f"{name[:40]} must be text, a number, true or false"
    raise ValueError(message)
