"""The acting person or agent, and the run around this process. Refuses inside a run what only a person may do."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.named import NamedTuple

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


class RunAbove(NamedTuple):
    """A run to which a process above this one belongs, as the engine set its variables."""

    tag: str
    run: str
    home: str


def find_runs_above() -> list[RunAbove]:
    """The runs whose agent, check or probe is this process or started it, the outermost first.

    A variable that was unset or changed on the way down is still in the environment of a process above. A process that
    lost its parent belongs to the run's guard, which carries the variables too. Without /proc (macOS) only our own
    count.
    """
    from jackline.engine import run_env
    from jackline.engine.warden.process_tree import find_ancestors, read_environment

    found: dict[str, RunAbove] = {}
    above = [_parse_environment(read_environment(pid)) for pid in reversed(find_ancestors())]
    for environ in (*above, os.environ):
        tag, run = environ.get(run_env.TAG_VARIABLE, ""), environ.get(run_env.RUN, "")
        # Only the outermost process with a tag has the variables as the engine set them.
        if tag or run:
            found.setdefault(tag or run, RunAbove(tag=tag, run=run, home=environ.get(run_env.HOME, "")))
    return list(found.values())


def _parse_environment(data: bytes) -> dict[str, str]:
    pairs = (os.fsdecode(pair).partition("=") for pair in data.split(b"\0"))
    return {name: value for name, _, value in pairs if name}


def is_inside_run(home: Home) -> bool:
    """Whether this process belongs to a run of this home, or of its database under another name."""
    return any(_is_run_of(home, run) for run in find_runs_above())


def _is_run_of(home: Home, run: RunAbove) -> bool:
    # A home that is gone was moved away: any other could be it.
    if not os.path.isdir(run.home) or _is_same_file(run.home, home.path):
        return True
    if home.is_new:
        return False
    from jackline.engine.run_env import TAG_VARIABLE, build_process_tag

    # The tag is signed with the secret of the run's database: it tells databases apart, whatever their address is.
    return bool(run.tag) and build_process_tag(home.store().secret, run.run)[TAG_VARIABLE] == run.tag


def _is_same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False  # the other one does not exist yet


def refuse_inside_run(home: Home, command: str) -> None:
    """Raise Refused if this process runs below a run of this home: `command` is for a person to type, elsewhere."""
    if is_inside_run(home):
        from jackline.errors import Refused

        raise Refused(
            f"`jackline {command}` is refused inside a run of this home: a person types it in a terminal outside of it"
        )
