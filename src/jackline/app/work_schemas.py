"""Schemas of payloads: KIND.json in the home's `schemas`, else KIND.schema.json in the project's `.agents/work`.

A schema only ever refuses, so a project needs nobody's trust for one. One that cannot be read refuses everything.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from jackline.app import places
from jackline.domain import ids
from jackline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

HOME_FOLDER = "schemas"
PROJECT_FOLDER = os.path.join(".agents", "work")
_LONGEST = 1024 * 1024


def path_of(home: str, folder: str, kind: str) -> str | None:
    """The file with the schema of a kind; a kind that is no plain file name has none."""
    if not ids.is_chosen(kind):
        return None
    files = (os.path.join(home, HOME_FOLDER, f"{kind}.json"), *_of_project(folder, kind))
    return next((path for path in files if os.path.lexists(path)), None)


def _of_project(folder: str, kind: str) -> Iterator[str]:
    """From the folder upwards to the root of its repository, as tasks are found."""
    here, root = os.path.realpath(folder), places.repository_of(folder)
    while True:
        yield os.path.join(here, PROJECT_FOLDER, f"{kind}.schema.json")
        if here == root:
            break
        here = os.path.dirname(here)


def problem(home: str, folder: str, kind: str, value: object) -> str | None:
    """Why a payload does not fit its kind; None if it does, or if nobody says what it has to look like."""
    path = path_of(home, folder, kind)
    if path is None:
        return None
    from jackline.domain import json_schema

    try:
        schema = json.loads(_text(path))
        json_schema.refuse_schema(schema)
        found = json_schema.first_problem(schema, value)
    except json_schema.SchemaRefused as error:
        raise UsageError(f"the schema {path} cannot be used: {error}") from None
    except ValueError as error:
        raise UsageError(f"the schema {path} is no JSON: {error}") from None
    except RecursionError:
        raise UsageError(f"the payload, or the schema {path}, is nested too deeply") from None
    return found and f"the payload does not fit {path}: {found}"


def _text(path: str) -> str:
    from jackline.app.texts import regular_text

    return regular_text(path, _LONGEST)
