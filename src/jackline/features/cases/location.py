"""Finds the case to use: the named one, else the active case of this run, or of this repository and user."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import identity
from jackline.domain.ids import repository_id
from jackline.errors import Ambiguous, CaseRefused, NoCase
from jackline.features.cases.case_model import CaseStatus, build_active_key
from jackline.features.cases.case_queries import Cases
from jackline.named import NamedTuple
from jackline.worktrees import find_worktree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.app.home import Home
    from jackline.features.cases.case_model import Case, CaseQuery
    from jackline.store.store import Store

LIST = "jackline case list"
_LONGEST_NAME = 100


class CaseLocation(NamedTuple):
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
    def active_key(self) -> str:
        """The key of the active case."""
        return build_active_key(self.repository, self.user_name, self.run_id)


def get_location(home: Home, folder: str | None = None, environ: Mapping[str, str] | None = None) -> CaseLocation:
    """The current location; Refused inside a run that the home does not know."""
    environ = os.environ if environ is None else environ
    folder = os.getcwd() if folder is None else folder
    run_id = identity.find_known_run(home, environ)
    return CaseLocation(
        folder=folder,
        path=find_worktree(folder),
        user_name=identity.find_user_name(),
        actor=identity.read_actor(environ),
        run_id=run_id,
    )


def find_case(home: Home, text: str) -> Case:
    """Find a case by id or unique prefix."""
    found = [] if home.is_new or not text else Cases(home.store()).find_matching(text)
    if not found:
        raise NoCase(text[:_LONGEST_NAME], what="case", hint=LIST)
    if len(found) > 1:
        raise Ambiguous(text, what="case", count=len(found), some=", ".join(case.id for case in found[:3]))
    return found[0]


def find_active(home: Home, at: CaseLocation | None = None) -> Case | None:
    """The active case here, if there is one."""
    at = at or get_location(home)
    return None if home.is_new else Cases(home.store()).get_active(at.active_key)


def get_active(home: Home, at: CaseLocation | None = None) -> Case:
    """The active case here; CaseRefused if there is none."""
    at = at or get_location(home)
    case = find_active(home, at)
    if case is None:
        where = f"run {at.run_id}" if at.run_id else at.path
        raise CaseRefused(f'no case is active in {where}: start one with `jackline case start "…"`, or see `{LIST}`')
    return case


def choose_case(home: Home, case_id: str | None = None, at: CaseLocation | None = None) -> Case:
    """The named case, else the active one; an empty name (`--case "$ID"` without ID) matches no case."""
    return get_active(home, at) if case_id is None else find_case(home, case_id)


def list_open_ids(store: Store, run_id: str) -> list[str]:
    """The open cases of a run, newest first."""
    from jackline.features.cases.case_model import CaseQuery

    return [case.id for case in Cases(store).list_page(CaseQuery(run_id=run_id, status=CaseStatus.OPEN))]


def list_cases(home: Home, query: CaseQuery) -> list[Case]:
    """Cases, newest first."""
    return [] if home.is_new else Cases(home.store()).list_page(query)
