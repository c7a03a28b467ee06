"""The acting person or agent, and the run around this process. Refuses inside a run what only a person may do."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.app.home import Home


ACTOR_VARIABLE = "JACKLINE_ACTOR"  # set by a host for its agent, by a run for its own, or by a person
RUN_VARIABLE = "JACKLINE_RUN"  # set for everything that an agent of a run starts
LONGEST_ACTOR = 200


def read_actor(environ: Mapping[str, str]) -> str:
    """The name in events and on claims; UsageError if it is not a valid name."""
    name = environ.get(ACTOR_VARIABLE)
    if not name:
        return find_user_name()
    from jackline.errors import UsageError

    if wrong := find_actor_problem(name):
        raise UsageError(f"{ACTOR_VARIABLE}: {wrong}")
    return name


def find_actor_problem(name: str) -> str:
    """Why an actor cannot have this name; empty if it can."""
    if not name.strip() or len(name) > LONGEST_ACTOR or not name.isprintable():
        return f"an actor is a name in one line, of at most {LONGEST_ACTOR} characters"
    return ""


def find_user_name() -> str:
    """The user of this process according to the system: no variable can claim another user's cases."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def read_run_id(environ: Mapping[str, str]) -> str | None:
    """The id of the run that started this process."""
    return environ.get(RUN_VARIABLE) or None


def find_known_run(home: Home, environ: Mapping[str, str]) -> str | None:
    """The same; Refused if this home does not have that run: records written here would belong to nothing."""
    run = read_run_id(environ)
    if run is None or (not home.is_new and home.store().runs.get(run) is not None):
        return run
    from jackline.app.text_files import shorten_name
    from jackline.errors import Refused

    hint = f"unset {RUN_VARIABLE} to work outside of it, or name its home (--home) and database (JACKLINE_DATABASE)"
    raise Refused(f"{RUN_VARIABLE} names run {shorten_name(run)}, which {home.path} does not know: {hint}")


def is_inside_run() -> bool:
    """Whether an agent, a check or a probe of any run is this process or started it.

    A variable that was unset on the way down is still in the environment of a process above. A process that lost its
    parent belongs to the run's guard, which carries the variables too. Without /proc (macOS) only our own count.
    """
    from jackline.engine import run_env
    from jackline.engine.warden.process_tree import find_ancestors, read_environment

    names = (run_env.TAG_VARIABLE, run_env.RUN)
    if any(os.environ.get(name) for name in names):
        return True
    wanted = [b"\0" + os.fsencode(name) + b"=" for name in names]
    environments = (read_environment(pid) for pid in find_ancestors())
    return any(variable in environment for environment in environments for variable in wanted)


def refuse_inside_run(command: str) -> None:
    """Raise Refused if this process runs below a run: `command` is for a person to type, elsewhere."""
    if is_inside_run():
        from jackline.errors import Refused

        raise Refused(
            f"`jackline {command}` is refused inside a run: a person types it in a terminal outside of any run"
        )
