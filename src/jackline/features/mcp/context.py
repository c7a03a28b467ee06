"""The context of the tools of one server: the home, the run that it serves, and the streams that models name."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from jackline.app import identity
from jackline.errors import UsageError
from jackline.features.cases import case_model, location
from jackline.features.reports import dashboard
from jackline.features.work import work_item, work_queue
from jackline.formatting import format_command
from jackline.store.models import JOURNAL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.app.home import Home
    from jackline.features.bridge.bridge_message import BridgeReader


LONGEST_VALUE = 2_000  # characters of a value in a list; a tool for one thing returns the whole value


def limit_json(text: str) -> Any:  # noqa: ANN401 - any JSON
    """The JSON value in a text; the beginning of a text that is too long for a list."""
    return json.loads(text) if len(text) <= LONGEST_VALUE else {"cut": text[:LONGEST_VALUE], "characters": len(text)}


class ToolContext:
    """One home, for tools that run in parallel threads."""

    def __init__(self, home: Home, environ: Mapping[str, str], member: BridgeReader | None = None) -> None:
        """`member`: the name under which this server joined a run from outside."""
        self._home = home
        self.environ = environ
        self.member = member
        self._making = threading.Lock()
        self._is_made = False

    @property
    def path(self) -> str:
        """The path of the home."""
        return self._home.path

    @property
    def run_id(self) -> str | None:
        """The run in which the server was started, or which it joined."""
        return self.member.run_id if self.member else identity.read_run_id(self.environ)

    def format_command(self, *words: str) -> str:
        """A command that works without the environment of this process."""
        program, more, _ = dashboard.describe_invocation(self._home)
        return format_command(*program, *words, *more)

    @contextmanager
    def open(self) -> Iterator[Home]:
        """Open the home for one call, with its own connection and warnings.

        Until the home exists, calls run one after another: a database cannot be read while it is created.
        """
        with nullcontext() if self._is_made else self._making, self._home.reopen() as home:
            home.on_change = self._home.on_change
            yield home
            self._is_made = self._is_made or not home.is_new


def find_stream(home: Home, text: str) -> str:
    """The stream of `run:ID`, `case:ID`, `work:ID` or `journal:`; a run id needs no prefix."""
    kind, colon, name = text.partition(":")
    match kind, name:
        case "", "":
            return ""
        case "journal", "":
            return JOURNAL
        case "run", name if name:
            return find_run_stream(home, name)
        case "case", name if name:
            return find_case_stream(home, name)
        case "work", name if name:
            return find_item_stream(home, name)
    if colon:
        raise UsageError(f"unknown stream '{text[:100]}': use run:ID, case:ID, work:ID or journal:")
    return find_run_stream(home, text)


def find_run_stream(home: Home, text: str) -> str:
    """The stream of a run, by its id or a unique prefix."""
    return home.find(text).id


def find_case_stream(home: Home, text: str) -> str:
    """The stream of a case, by its id or a unique prefix."""
    return case_model.get_case_stream(location.find_case(home, text).id)


def find_item_stream(home: Home, text: str) -> str:
    """The stream of a work item."""
    return work_item.get_item_stream(work_queue.get_item(home, text).id)
