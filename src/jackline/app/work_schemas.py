"""Schemas of payloads: KIND.json in the home's `schemas`, else KIND.schema.json in the project's `.agents/schemas`.

A schema only ever refuses, so a project needs nobody's trust for one. One that cannot be read refuses everything.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

from jackline.app import places
from jackline.domain import ids
from jackline.domain.events import canonical
from jackline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.domain.json_schema import Verdict

HOME_FOLDER = "schemas"
PROJECT_FOLDER = os.path.join(".agents", "schemas")
_LONGEST = 1024 * 1024
_SECONDS = 5.0
_JUDGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "work_judge.py")


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


def refuse_unfitting(path: str, value: object) -> None:
    """UsageError unless a payload fits the schema in a file."""
    from jackline.domain import json_schema

    schema, payload = _text(path), canonical(value)
    judge = _judged_apart if json_schema.may_take_long(schema, payload) else json_schema.judge
    verdict = judge(schema, payload)
    if verdict.unusable:
        raise UsageError(f"the schema {path} {verdict.unusable}")
    if verdict.problem:
        raise UsageError(f"the payload does not fit {path}: {verdict.problem}")


def _judged_apart(schema: str, payload: str) -> Verdict:
    """By a process of its own, which is ended when it takes too long."""
    from jackline.domain.json_schema import Verdict
    from jackline.engine.command import run_command

    asked = json.dumps([schema, payload]).encode()
    ended = run_command((sys.executable, "-IS", _JUDGE), cwd="/", env=os.environ, stdin=asked, timeout_s=_SECONDS)
    if ended.timed_out:
        return Verdict(f"takes more than {_SECONDS:g} s to judge this payload: make it, or its patterns, simpler")
    if ended.exit_code != 0:
        said = ended.stderr_tail.decode("utf-8", "replace").split()
        return Verdict(f"could not be looked at: {' '.join(said)[-200:] or f'signal {ended.signal}'}")
    return Verdict(*json.loads(ended.stdout_tail))


def _text(path: str) -> str:
    from jackline.app.texts import regular_text

    return regular_text(path, _LONGEST)
