"""One case after the other, each in a place of its own: built, played, looked at, judged. The evidence stays."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

from jackline.app.drill import acts, seen, table, verdict
from jackline.app.drill import place as places
from jackline.app.drill.commands import Commands
from jackline.clock import boot_ms
from jackline.errors import JacklineError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.app.drill.cases import Case
    from jackline.app.drill.playing import Player
    from jackline.app.drill.verdict import Verdict


def new_folder(wanted: str | None) -> str:
    """An empty folder for the evidence; it is never mixed with other files."""
    folder = os.path.abspath(wanted) if wanted else tempfile.gettempdir()
    try:
        if not wanted:
            return tempfile.mkdtemp(prefix="jackline-drill-")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if not os.listdir(folder):
            return folder
    except OSError as error:
        why = error.strerror
        raise UsageError(f"{folder} cannot hold the drill's files ({why}): name another folder with --keep") from None
    raise UsageError(f"{folder} is not empty: name a new folder with --keep")


def play_case(case: Case, player: Player, folder: str) -> Verdict:
    """One case from its first file to its verdict; whatever goes wrong on the way is part of the verdict."""
    started = boot_ms()
    with _short_folder() as temporary:
        place = places.Place(os.path.join(folder, case.name), temporary)
        result = _play(case, player, place)
    judged = verdict.judge(case, result, (boot_ms() - started) / 1000, place.folder)
    places.write(place.at("verdict.json"), json.dumps(table.record(judged, player.name), indent=2) + "\n")
    return judged


def require_linux() -> None:
    """Who is who is read from /proc."""
    if sys.platform != "linux":
        raise UsageError("the drill finds the processes that it kills by /proc, and so runs on Linux only")


def _play(case: Case, player: Player, place: places.Place) -> seen.Seen:
    places.build(place, case)
    with player.playing(case, place) as part, Commands(place, {**place.environment, **part.environment}) as commands:
        act, problem = acts.run(case, place, commands, part, player.name), ""
        try:
            act.play()
        except (JacklineError, OSError) as error:  # also of a process that was gone before it could be killed
            problem = str(error)
        return seen.look(place, commands, case.name, tuple(act.facts), problem)


@contextmanager
def _short_folder() -> Iterator[str]:
    """For sockets and what nobody needs afterwards."""
    folder = tempfile.mkdtemp(prefix="jackline-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
