"""Parses JSON from arguments, within limits that every reader of the stored value can handle. It opens no file."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from jackline.domain import plain_json
from jackline.errors import UsageError

LONGEST = 1_000_000  # characters; larger data belongs in a file


def value_of(text: str, what: str, example: str) -> Any:  # noqa: ANN401 - any JSON
    """Parse a text; UsageError for invalid JSON, NaN and infinities."""
    if len(text) > LONGEST:
        raise UsageError(f"{what} is longer than {LONGEST:,} characters: write a file and name the file")
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise UsageError(f"{what} is nested more than {plain_json.DEEPEST} deep") from None
    except ValueError as error:
        raise UsageError(f"{what} is not valid JSON ({error}): use JSON such as '{example}'") from None
    if wrong := plain_json.wrong(value):
        raise UsageError(f"{what} {wrong}")
    return value


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")
