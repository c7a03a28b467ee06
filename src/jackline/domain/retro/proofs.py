"""Finds flaky proofs: different results on the same tree. Pure.

If a check has no tree, two checks of an attempt without a turn in between are taken to have the same tree, and a proof
that changes its result twice in one run is a suspect. The review of learnings is not a proof.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

from jackline.domain.learning import REVIEW
from jackline.domain.retro.lines import CheckLine, TurnLine
from jackline.named import NamedTuple, stored_as

SAME_TREE = "different results on the same tree"
NO_TURN = "different results with no turn in between"
TO_AND_FRO = "changed its result twice in one run"
_TWICE = 2


@stored_as("command why runs")
class Flaky(NamedTuple):
    """A command with inconsistent results."""

    command: str
    why: str
    runs: tuple[str, ...]


def flaky(checks: Mapping[str, Sequence[CheckLine]], turns: Mapping[str, Sequence[TurnLine]]) -> list[Flaky]:
    """From the checks and turns by run id; each command with its strongest reason."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for command, runs in _find_on_one_tree(checks).items():
        found[command, SAME_TREE] += runs
    for run_id, of_run in checks.items():
        for command in dict.fromkeys(check.command for check in of_run if check.command != REVIEW):
            finished = [one for one in of_run if one.command == command and one.exit_code is not None]
            why = _find_reason(finished, turns.get(run_id, ()))
            if why:
                found[command, why].append(run_id)
    return _select_strongest(found)


def _find_on_one_tree(checks: Mapping[str, Sequence[CheckLine]]) -> dict[str, list[str]]:
    results: dict[tuple[str, str], dict[bool, list[str]]] = defaultdict(lambda: defaultdict(list))
    for run_id, of_run in checks.items():
        for one in of_run:
            if one.tree and one.exit_code is not None:
                results[one.command, one.tree][one.exit_code == 0].append(run_id)
    found: dict[str, list[str]] = defaultdict(list)
    for (command, _), by_result in results.items():
        if len(by_result) > 1:
            found[command] += [run for runs in by_result.values() for run in runs]
    return found


def _find_reason(checks: Sequence[CheckLine], turns: Sequence[TurnLine]) -> str:
    changes = [(one, other) for one, other in pairwise(checks) if (one.exit_code == 0) != (other.exit_code == 0)]
    treeless = [(one, other) for one, other in changes if not (one.tree and other.tree)]
    steps = [turn.step for turn in turns]
    together = [(one, other) for one, other in treeless if one.attempt == other.attempt]
    if any(not any(one.step < step < other.step for step in steps) for one, other in together):
        return NO_TURN
    return TO_AND_FRO if len(treeless) >= _TWICE else ""


def _select_strongest(found: Mapping[tuple[str, str], list[str]]) -> list[Flaky]:
    order = (SAME_TREE, NO_TURN, TO_AND_FRO)
    best: dict[str, Flaky] = {}
    for (command, why), runs in sorted(found.items(), key=lambda one: (order.index(one[0][1]), one[0][0])):
        best.setdefault(command, Flaky(command, why, tuple(dict.fromkeys(runs))))
    return list(best.values())
