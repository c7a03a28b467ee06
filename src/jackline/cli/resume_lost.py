"""Continues lost runs one after the other: `jackline resume --lost`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app.lost_runs import list_lost
from jackline.cli.follow_run import Interrupts, follow_run
from jackline.domain.ids import repository_id
from jackline.domain.states import EXIT_INTERRUPTED, EXIT_PERSON
from jackline.errors import JacklineError, StoreError
from jackline.formatting import format_line, pluralize
from jackline.store.models import RunQuery
from jackline.worktrees import find_repository

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.domain.records import Run
    from jackline.store.models import RunSummary

_MOST = 10_000
_PROMPT_CHARS = 60


def resume_lost_runs(
    home: Home, out: Output, is_confirmed: Callable[[Run], bool], *, all_repos: bool, on_ask: str | None
) -> int:
    """Continue the lost runs, oldest first; return the exit code of the first that did not succeed, else 0.

    A run that fails, waits or cannot be continued does not stop the next one; a signal stops them all.
    """
    repository = None if all_repos else repository_id(find_repository(os.getcwd()))
    lost = list_lost(home, RunQuery(repository=repository, limit=_MOST))[::-1]
    if not lost:
        out.print_note("no lost runs" + ("" if all_repos else " in this repository; --all-repos looks in every one"))
        return 0
    codes: list[int] = []
    with Interrupts() as interrupts:
        for row in lost:
            if interrupts.is_interrupted:
                codes.append(EXIT_INTERRUPTED)
                break
            codes.append(_resume_one(home, row, out, interrupts, is_confirmed, on_ask))
    if len(lost) > 1:
        failed = sum(code != 0 for code in codes)
        out.print_note(f"{pluralize(len(lost), 'lost run')}, {len(codes) - failed} succeeded")
    return next((code for code in codes if code), 0)


def _resume_one(
    home: Home,
    row: RunSummary,
    out: Output,
    interrupts: Interrupts,
    is_confirmed: Callable[[Run], bool],
    on_ask: str | None,
) -> int:
    try:
        run = home.find(row.id)
        if not home.explain_loss(run):
            out.print_note(f"run {run.id} was taken up by another process in the meantime")
            return 0
        out.print_note(f"resuming lost run #{run.number} ({run.id}): {format_line(run.spec.prompt, _PROMPT_CHARS)}")
        return follow_run(home, run, out, interrupts, on_ask) if is_confirmed(run) else EXIT_PERSON
    except StoreError:  # it would stop the next one, too
        raise
    except JacklineError as error:
        return out.print_error(str(error), error.exit_code)
