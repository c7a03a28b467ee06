"""Updates the files of a case under `.agents/runs` after every change. The store is the truth, never the files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import places, who
from jackline.errors import CaseRefused, JacklineError, NoCase, UsageError

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.domain.case import Case

_HINT = "the case itself is safe; `jackline case files` writes them again"


def follow(home: Home, case_id: str) -> None:
    """Update the files of a case and the dashboard after a change; a failure is only a warning."""
    refresh(home, case_id)
    home.notify_change()


def refresh(home: Home, case_id: str) -> None:
    """Write what changed or was edited or removed; a failure is only a warning."""
    try:
        _write(home, case_id, anew=False)
    except JacklineError as error:
        warning = f"the files of the case are not up to date: {_describe_error(error)}; {_HINT}"
        if warning not in home.warnings:  # some commands write more than once
            home.warnings.append(warning)


def rewrite(home: Home, case_id: str) -> str:
    """Write every file again; returns the folder."""
    try:
        return _write(home, case_id, anew=True)
    except JacklineError as error:
        raise CaseRefused(f"{_describe_error(error)}: fix that and try again; the case itself is safe") from None


def _describe_error(error: JacklineError) -> str:
    """The error without its hint, which is about runs."""
    why = error.facts.get("why")
    return f"{error.detail} cannot be written ({why})" if why else str(error)


def _write(home: Home, case_id: str, *, anew: bool) -> str:
    from jackline.views import case_files

    store = home.store()
    case = store.case(case_id)
    if case is None:
        raise NoCase(case_id, what="case", hint="jackline case list")
    folder = folder_of(case)
    _refuse_unsafe(case, folder)
    case_files.bring_up_to_date(store, case.id, case.path, who.user_name(), anew=anew)
    return folder


def folder_of(case: Case) -> str:
    """The folder of its files."""
    from jackline.views.case_files import RUNS

    return os.path.join(case.path, RUNS, case.id)


def _refuse_unsafe(case: Case, folder: str) -> None:
    """A case can come from another machine, and a repository from a stranger."""
    if os.path.basename(folder) != case.id or case.id.startswith(".") or not case.id:
        raise UsageError(f"'{case.id}' cannot be the name of a folder")
    if not os.path.isdir(case.path):
        raise UsageError(f"{case.path} does not exist")
    from jackline.views.case_files import NAMES, RUNS_NAMES

    runs = os.path.dirname(folder)
    for path in (*(os.path.join(folder, name) for name in NAMES), *(os.path.join(runs, name) for name in RUNS_NAMES)):
        places.refuse_links(case.path, path)
