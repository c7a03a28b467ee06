"""The acting person or agent, and the run around this process. Refuses inside a run what only a person may do."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.app.home import Home

ACTOR = "JACKLINE_ACTOR"  # set by a host for its agent, by a run for its own, or by a person
RUN = "JACKLINE_RUN"  # set for everything that an agent of a run starts
LONGEST_ACTOR = 200


def actor(environ: Mapping[str, str]) -> str:
    """The name in events and on claims; UsageError if it is not a valid name."""
    name = environ.get(ACTOR)
    if not name:
        return user_name()
    from jackline.errors import UsageError

    if wrong := find_actor_problem(name):
        raise UsageError(f"{ACTOR}: {wrong}")
    return name


def find_actor_problem(name: str) -> str:
    """Why an actor cannot have this name; empty if it can."""
    if not name.strip() or len(name) > LONGEST_ACTOR or not name.isprintable():
        return f"an actor is a name in one line, of at most {LONGEST_ACTOR} characters"
    return ""


def user_name() -> str:
    """The user of this process according to the system: no variable can claim another user's cases."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def run_id(environ: Mapping[str, str]) -> str | None:
    """The id of the run that started this process."""
    return environ.get(RUN) or None


def known_run(home: Home, environ: Mapping[str, str]) -> str | None:
    """The same; Refused if this home does not have that run: records written here would belong to nothing."""
    run = run_id(environ)
    if run is None or (not home.is_new and home.store().run(run) is not None):
        return run
    from jackline.app.texts import named
    from jackline.errors import Refused

    hint = f"unset {RUN} to work outside of it, or name its home (--home) and database (JACKLINE_DATABASE)"
    raise Refused(f"{RUN} names run {named(run)}, which {home.path} does not know: {hint}")
