"""Loads the policy layers: the user's file, the project's file and the run's own rules.

Errors in a file are collected, not raised: commands that start work refuse, read-only commands continue without it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import paths, trust
from jackline.app.setting_keys import suggest_nearest
from jackline.app.text_files import read_regular_text
from jackline.domain.states import Decision, Replay
from jackline.errors import PolicyError, UsageError
from jackline.named import NamedTuple
from jackline.policy.agreements import ALL_EFFECTS, split_agreement
from jackline.policy.toml_rules import parse_policy, parse_policy_tables, require_valid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackline.policy.rules import Rule
    from jackline.policy.toml_rules import ParsedPolicy

FILE = "policy.toml"
RUN, PROJECT, USER, BUILT_IN = "run", "project", "user", "built-in"
LAYERS = (RUN, PROJECT, USER, BUILT_IN)  # in matching order
_LONGEST = 1_000_000


class PolicyLayers(NamedTuple):
    """The project and user layers, without the run's own rules."""

    project: tuple[Rule, ...] = ()
    user: tuple[Rule, ...] = ()
    notes: tuple[str, ...] = ()  # information for the user before work starts
    problems: tuple[str, ...] = ()  # why a file was skipped


def find_user_policy(environ: Mapping[str, str]) -> str:
    """Return the path of the user's policy."""
    return os.path.join(paths.find_config_folder(environ), FILE)


def find_project_policy(folder: str) -> str:
    """Return the path of the policy of the project around a folder; it may not exist."""
    return os.path.join(trust.find_project(folder), trust.AGENTS_FOLDER, FILE)


def load_layers(environ: Mapping[str, str], home: str, database: str, workspace: str) -> PolicyLayers:
    """Load the layers for a run in this workspace; an invalid file is reported and skipped."""
    user, user_problem = _load_layer(find_user_policy(environ), USER)
    path = find_project_policy(workspace)
    project, project_problem = _load_layer(path, PROJECT)
    notes: tuple[str, ...] = ()
    if project and not trust.is_trusted(home, database, workspace):
        project = tuple(map(_restrict_rule, project))
        notes = (
            f"{path}: its rules can only tighten until you trust this project: review it, then run `jackline trust`",
        )
    problems = tuple(filter(None, (project_problem, user_problem)))
    return PolicyLayers(project=project, user=user, notes=notes, problems=problems)


def merge_layers(own: tuple[Rule, ...], found: PolicyLayers) -> tuple[Rule, ...]:
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


def check_allowed_rules(names: Sequence[str], rules: tuple[Rule, ...]) -> tuple[str, ...]:
    """Check the texts of --allow: RULE, RULE=PATTERN or RULE=any; an unknown rule is an error."""
    from jackline.policy.rule_lookup import UNMATCHED  # imported here: it builds a thousand rules

    known = {rule.name: rule for rule in (UNMATCHED, *load_built_in(), *rules)} if names else {}
    for text in names:
        name, pattern = split_agreement(text, (*known, ALL_EFFECTS))
        if name != ALL_EFFECTS and name not in known:
            near = suggest_nearest(name, (*known, ALL_EFFECTS))
            raise UsageError(f"allow: there is no rule '{name}':{near} `jackline policy show` lists all rules")
        if text != name and not pattern.strip():
            raise UsageError(f"allow: '{text}' has no pattern: use {name}=PATTERN, {name}=any, or {name} alone")
        if name in known and known[name].decision is Decision.DENY:
            raise UsageError(f"allow: rule '{name}' denies; only rules with the decision 'ask' can be allowed")
    return tuple(dict.fromkeys(names))


def load_built_in() -> tuple[Rule, ...]:
    """Return the built-in rules, which match last."""
    from jackline.policy import builtin  # imported here: it builds a thousand rules

    return builtin.RULES


def load_run_policy(path: str) -> tuple[Rule, ...]:
    """Load the policy file given for one run; PolicyError names the first error."""
    return require_valid(parse_policy(_read_text(path), RUN), path)


def parse_job_policy(text: str, found: object, source: str) -> tuple[Rule, ...]:
    """Build the rules of a job file that was already parsed; errors have line numbers if it is TOML."""
    return require_valid(parse_policy_tables(text, found, RUN), source)


def check_policy(path: str) -> ParsedPolicy:
    """Parse a file and report all errors; raise UsageError if it cannot be read."""
    return parse_policy(_read_text(path), RUN)


# files


def _load_layer(path: str, layer: str) -> tuple[tuple[Rule, ...], str]:
    """Load the rules of a layer, or none and the error of the file."""
    if not os.path.lexists(path):
        return (), ""
    try:
        root = os.path.realpath(trust.find_agents_parent(path))
        if layer == PROJECT and not os.path.realpath(path).startswith(os.path.join(root, "")):
            raise PolicyError(f"{path} is a link to a file outside the project; put the policy itself there")
        return require_valid(parse_policy(_read_text(path), layer), path), ""
    except UsageError as error:
        return (), f"{error}; fix it before you start a run (`jackline policy check {path}`)"


def _read_text(path: str) -> str:
    return read_regular_text(path, _LONGEST)


def _restrict_rule(rule: Rule) -> Rule:
    """Restrict a rule of an untrusted project: no program, and no claim that a call is harmless."""
    replay = Replay.ASK if rule.replay in {Replay.IDEMPOTENT, Replay.RELAUNCH} else rule.replay
    return rule._replace(tightens=True, probe="", nothing_happened=(), external=(), replay=replay)
