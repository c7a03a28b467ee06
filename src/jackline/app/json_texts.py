"""JSON that somebody gives as text: read within bounds, so that everybody can read it again. It opens no file."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from jackline.domain import plain_json
from jackline.errors import UsageError

LONGEST = 1_000_000  # characters: what is larger is a file, and is named


def value_of(text: str, what: str, example: str) -> Any:  # noqa: ANN401 - any JSON
    """The value in a text; NaN and its like are none."""
    if len(text) > LONGEST:
        raise UsageError(f"{what} is longer than {LONGEST:,} characters: write a file, and name it there")
    try:
        value = json.loads(text, parse_constant=_no_number)
    except RecursionError:
        raise UsageError(f"{what} is nested more than {plain_json.DEEPEST} deep") from None
    except ValueError as error:
        raise UsageError(f"{what} is no JSON ({error}): give something like '{example}'") from None
    if wrong := plain_json.wrong(value):
        raise UsageError(f"{what} {wrong}")
    return value


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")
