"""Who acts, and inside which run: read from the environment alone. It decides nothing about what they may do."""

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
    """Whose name stands in events and on claims; UsageError if nobody can be called so."""
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
    """The user of this process, as the system knows them: nobody can claim another's cases by a variable."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def run_id(environ: Mapping[str, str]) -> str | None:
    """The run inside which this process was started."""
    return environ.get(RUN) or None


def known_run(home: Home, environ: Mapping[str, str]) -> str | None:
    """The same; Refused if this home does not know it: what is written here would belong to nothing."""
    run = run_id(environ)
    if run is None or (not home.is_new and home.store().run(run) is not None):
        return run
    from jackline.app.texts import named
    from jackline.errors import Refused

    cure = f"unset {RUN} to work outside of it, or name its home (--home) and database (JACKLINE_DATABASE)"
    raise Refused(f"{RUN} names run {named(run)}, which {home.path} does not know: {cure}")
