"""Loads the policy layers: the user's file, the project's file and the run's own rules.

Errors in a file are collected, not raised: commands that start work refuse, read-only commands continue without it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import places, trust
from jackline.app.keys import nearest
from jackline.app.texts import regular_text
from jackline.domain.permission import EFFECTS
from jackline.domain.policy_toml import good, parse, tables
from jackline.domain.states import Decision, Replay
from jackline.errors import PolicyError, UsageError
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackline.domain.policy_toml import Parsed
    from jackline.domain.rule import Rule

FILE = "policy.toml"
RUN, PROJECT, USER, BUILT_IN = "run", "project", "user", "built-in"
LAYERS = (RUN, PROJECT, USER, BUILT_IN)  # in matching order
_LONGEST = 1_000_000


class Found(NamedTuple):
    """The project and user layers, without the run's own rules."""

    project: tuple[Rule, ...] = ()
    user: tuple[Rule, ...] = ()
    notes: tuple[str, ...] = ()  # information for the user before work starts
    problems: tuple[str, ...] = ()  # why a file was skipped


def user_file(environ: Mapping[str, str]) -> str:
    """Return the path of the user's policy."""
    return os.path.join(places.config_folder(environ), FILE)


def project_file(folder: str) -> str:
    """Return the path of the policy of the project around a folder; it may not exist."""
    return os.path.join(trust.project_of(folder), trust.FOLDER, FILE)


def load(environ: Mapping[str, str], home: str, workspace: str) -> Found:
    """Load the layers for a run in this workspace; an invalid file is reported and skipped."""
    user, user_problem = _load_layer(user_file(environ), USER)
    path = project_file(workspace)
    project, project_problem = _load_layer(path, PROJECT)
    notes: tuple[str, ...] = ()
    if project and not trust.is_trusted(home, workspace):
        project = tuple(map(_restrict_rule, project))
        notes = (
            f"{path}: its rules can only tighten until you trust this project: review it, then run `jackline trust`",
        )
    problems = tuple(filter(None, (project_problem, user_problem)))
    return Found(project, user, notes, problems)


def combined(own: tuple[Rule, ...], found: Found) -> tuple[Rule, ...]:
    """Merge the layers in matching order; raise PolicyError if a file is invalid.

    A call stores only the name of its rule, so a nearer rule replaces a farther one of the same name. A tightening rule
    replaces nothing: it gets a unique name.
    """
    if found.problems:
        raise PolicyError(found.problems[0])
    kept: dict[str, Rule] = {}
    taken = {rule.name for rule in (*own, *found.user)}
    for rule in (*own, *found.project, *found.user):
        name = rule.name
        while rule.tightens and name in taken:
            name += " (project)"
        if rule.tightens:
            taken.add(name)
        kept.setdefault(name, rule._replace(name=name))
    return tuple(kept.values())


def agreed(names: Sequence[str], rules: tuple[Rule, ...]) -> tuple[str, ...]:
    """Check the rule names of --allow; an unknown name is an error."""
    known = {rule.name: rule for rule in (*built_in(), *rules)} if names else {}
    for name in names:
        if name != EFFECTS and name not in known:
            near = nearest(name, (*known, EFFECTS))
            raise UsageError(f"allow: there is no rule '{name}':{near} `jackline policy show` lists all rules")
        if name in known and known[name].decision is Decision.DENY:
            raise UsageError(f"allow: rule '{name}' denies; only rules with the decision 'ask' can be allowed")
    return tuple(dict.fromkeys(names))


def built_in() -> tuple[Rule, ...]:
    """Return the built-in rules, which match last."""
    from jackline.domain import builtin  # imported here: it builds a thousand rules

    return builtin.RULES


def run_file(path: str) -> tuple[Rule, ...]:
    """Load the policy file given for one run; PolicyError names the first error."""
    return good(parse(_read_text(path), RUN), path)


def in_job(text: str, found: object, source: str) -> tuple[Rule, ...]:
    """Build the rules of a job file that was already parsed; errors have line numbers if it is TOML."""
    return good(tables(text, found, RUN), source)


def check(path: str) -> Parsed:
    """Parse a file and report all errors; raise UsageError if it cannot be read."""
    return parse(_read_text(path), RUN)


# files


def _load_layer(path: str, layer: str) -> tuple[tuple[Rule, ...], str]:
    """Load the rules of a layer, or none and the error of the file."""
    if not os.path.lexists(path):
        return (), ""
    try:
        root = os.path.realpath(trust.folder_of(path))
        if layer == PROJECT and not os.path.realpath(path).startswith(os.path.join(root, "")):
            raise PolicyError(f"{path} is a link to a file outside the project; put the policy itself there")
        return good(parse(_read_text(path), layer), path), ""
    except UsageError as error:
        return (), f"{error}; fix it before you start a run (`jackline policy check {path}`)"


def _read_text(path: str) -> str:
    return regular_text(path, _LONGEST)


def _restrict_rule(rule: Rule) -> Rule:
    """Restrict a rule of an untrusted project: no program, and no claim that a call is harmless."""
    replay = Replay.ASK if rule.replay in {Replay.IDEMPOTENT, Replay.RELAUNCH} else rule.replay
    return rule._replace(tightens=True, probe="", nothing_happened=(), external=(), replay=replay)
