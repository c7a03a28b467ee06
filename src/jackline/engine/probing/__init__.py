"""The built-in probes, which a rule names by `builtin:NAME`. One file each, imported on use; they only look.

Each is a function of a Scene that gives a Finding. What it cannot find out for sure is unknown, and a person is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.engine.probing.finding import Finding
    from jackline.engine.probing.scene import Scene

PREFIX = "builtin:"


class _Probe(NamedTuple):
    """Where a probe is, and what it must know of the time before the call."""

    module: str
    function: str
    wants: frozenset[str] = frozenset()
    compares: bool = True  # the input with the world: a secret in it, which is never kept, makes it look different


PROBES = {
    "git-push": _Probe(
        "git_push", "look", frozenset({"git.commit", "git.refs", "git.remote", "git.url", "git.branch"})
    ),
    "gh-pr-create": _Probe("github", "look_for_pull_request", frozenset({"git.commit", "git.branch"})),
    "gh-issue-create": _Probe("github", "look_for_issue"),
    "file": _Probe("file", "look"),
    "http": _Probe("http", "look", compares=False),
}


def is_built_in(probe: str) -> bool:
    """Whether a rule's probe is one of these; any other is a shell command."""
    return probe.startswith(PREFIX)


def wants(probe: str) -> frozenset[str]:
    """The ingredients that must be written down with a call's intent, so that its probe can look for them later."""
    known = PROBES.get(probe.removeprefix(PREFIX)) if is_built_in(probe) else None
    return known.wants if known else frozenset()


def compares(probe: str) -> bool:
    """Whether a probe compares the call's input with what there is."""
    known = PROBES.get(probe.removeprefix(PREFIX))
    return known is not None and known.compares


def function_of(probe: str) -> Callable[[Scene], Finding] | None:
    """The probe itself; None if this version has none of that name."""
    from importlib import import_module

    known = PROBES.get(probe.removeprefix(PREFIX))
    if known is None:
        return None
    made: Callable[[Scene], Finding] = getattr(import_module(f"{__name__}.{known.module}"), known.function)
    return made
