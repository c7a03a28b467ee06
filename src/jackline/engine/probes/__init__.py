"""The built-in probes, which a rule names by `builtin:NAME`. Each is imported on use, and only reads.

A probe is a function from a Scene to a Finding. If it is not certain, its verdict is unknown, and a person is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.engine.probes.findings import ProbeContext, ProbeFinding

PREFIX = "builtin:"


class _Probe(NamedTuple):
    """Where a probe is, and what it needs to know from before the call."""

    module: str
    function: str
    wants: frozenset[str] = frozenset()
    compares: bool = True  # it compares the input, from which secrets are removed


PROBES = {
    "git-push": _Probe(
        module="git_push",
        function="probe_git_push",
        wants=frozenset({"git.commit", "git.refs", "git.remote", "git.url", "git.branch"}),
    ),
    "gh-pr-create": _Probe(
        module="github", function="probe_pull_request", wants=frozenset({"git.commit", "git.branch"})
    ),
    "gh-issue-create": _Probe(module="github", function="probe_issue"),
    "file": _Probe(module="file", function="probe_file"),
    "http": _Probe(module="http", function="probe_http_request", compares=False),
}


def is_built_in(probe: str) -> bool:
    """Whether a rule's probe is built in; any other is a shell command."""
    return probe.startswith(PREFIX)


def find_wanted_inputs(probe: str) -> frozenset[str]:
    """The key inputs to store with a call's intent for its probe."""
    found = PROBES.get(probe.removeprefix(PREFIX)) if is_built_in(probe) else None
    return found.wants if found else frozenset()


def compares_input(probe: str) -> bool:
    """Whether a probe compares the call's input with the current state."""
    found = PROBES.get(probe.removeprefix(PREFIX))
    return found is not None and found.compares


def load_probe(probe: str) -> Callable[[ProbeContext], ProbeFinding] | None:
    """Import the probe; None if this version has none of that name."""
    from importlib import import_module

    found = PROBES.get(probe.removeprefix(PREFIX))
    if found is None:
        return None
    function: Callable[[ProbeContext], ProbeFinding] = getattr(
        import_module(f"{__name__}.{found.module}"), found.function
    )
    return function
