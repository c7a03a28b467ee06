"""Detects that this process runs below a run, and refuses there what only a person may do. It changes nothing."""

from __future__ import annotations

import os


def is_inside_run() -> bool:
    """Whether an agent, a check or a probe of any run is this process or started it.

    A variable that was unset on the way down is still in the environment of a process above. A process that lost its
    parent belongs to the run's guard, which carries the variables too. Without /proc (macOS) only our own count.
    """
    from jackline.engine import inside, marks
    from jackline.engine.warden.proc import find_ancestors, read_environment

    names = (marks.NAME, inside.RUN)
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
