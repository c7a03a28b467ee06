"""Finds the case to use: the named one, else the active case of this run, or of this repository and user."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import places, who
from jackline.domain.case import CaseStatus, place_of
from jackline.domain.repository import repository_id
from jackline.errors import Ambiguous, CaseRefused, NoCase
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.app.home import Home
    from jackline.domain.case import Case, CaseQuery
    from jackline.store.contract import Store

LIST = "jackline case list"
_LONGEST_NAME = 100


class Here(NamedTuple):
    """The folder, repository, user and run of a command."""

    folder: str  # where the command was typed
    path: str  # the root of the repository around it
    user_name: str
    actor: str
    run_id: str | None = None

    @property
    def repository(self) -> str:
        """The repository's id."""
        return repository_id(self.path)

    @property
    def place(self) -> str:
        """The key of the active case."""
        return place_of(self.repository, self.user_name, self.run_id)


def here(home: Home, folder: str | None = None, environ: Mapping[str, str] | None = None) -> Here:
    """The current location; Refused inside a run that the home does not know."""
    environ = os.environ if environ is None else environ
    folder = os.getcwd() if folder is None else folder
    run_id = who.known_run(home, environ)
    return Here(folder, places.repository_of(folder), who.user_name(), who.actor(environ), run_id)


def find(home: Home, text: str) -> Case:
    """Find a case by id or unique prefix."""
    found = [] if home.is_new or not text else home.store().matching_cases(text)
    if not found:
        raise NoCase(text[:_LONGEST_NAME], what="case", hint=LIST)
    if len(found) > 1:
        raise Ambiguous(text, what="case", count=len(found), some=", ".join(case.id for case in found[:3]))
    return found[0]


def active(home: Home, at: Here | None = None) -> Case | None:
    """The active case here, if there is one."""
    at = at or here(home)
    return None if home.is_new else home.store().active_case(at.place)


def current(home: Home, at: Here | None = None) -> Case:
    """The active case here; CaseRefused if there is none."""
    at = at or here(home)
    case = active(home, at)
    if case is None:
        where = f"run {at.run_id}" if at.run_id else at.path
        raise CaseRefused(f'no case is active in {where}: start one with `jackline case start "…"`, or see `{LIST}`')
    return case


def chosen(home: Home, case_id: str | None = None, at: Here | None = None) -> Case:
    """The named case, else the active one; an empty name (`--case "$ID"` without ID) matches no case."""
    return current(home, at) if case_id is None else find(home, case_id)


def list_open_ids(store: Store, run_id: str) -> list[str]:
    """The open cases of a run, newest first."""
    from jackline.domain.case import CaseQuery

    return [case.id for case in store.cases(CaseQuery(run_id=run_id, status=CaseStatus.OPEN))]


def listed(home: Home, query: CaseQuery) -> list[Case]:
    """Cases, newest first."""
    return [] if home.is_new else home.store().cases(query)
