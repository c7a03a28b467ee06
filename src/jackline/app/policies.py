"""The layers of the policy: the user's file, the project's, the run's own. Read, checked, put in order; nothing else.

What is wrong with a file is kept, not raised: whoever starts work refuses then, whoever only looks goes on without it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import places, trust
from jackline.app.keys import nearest
from jackline.app.policy_reading import good, parse, tables
from jackline.app.texts import regular_text
from jackline.domain.permission import EFFECTS
from jackline.domain.states import Decision, Replay
from jackline.errors import PolicyError, UsageError
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackline.app.policy_reading import Parsed
    from jackline.domain.rule import Rule

FILE = "policy.toml"
RUN, PROJECT, USER, BUILT_IN = "run", "project", "user", "built-in"
LAYERS = (RUN, PROJECT, USER, BUILT_IN)  # in the order in which they are looked at
_LONGEST = 1_000_000


class Found(NamedTuple):
    """The layers that lie around, without the run's own."""

    project: tuple[Rule, ...] = ()
    user: tuple[Rule, ...] = ()
    notes: tuple[str, ...] = ()  # what a person should know before work begins
    problems: tuple[str, ...] = ()  # why a file was left out


def user_file(environ: Mapping[str, str]) -> str:
    """The policy that is the user's own."""
    return os.path.join(places.config_folder(environ), FILE)


def project_file(folder: str) -> str:
    """The policy of the project around a folder; it may not be there."""
    return os.path.join(trust.project_of(folder), trust.FOLDER, FILE)


def load(environ: Mapping[str, str], home: str, workspace: str) -> Found:
    """What a run in this workspace would be given; a broken file is named and left out."""
    user, user_problem = _layer(user_file(environ), USER)
    path = project_file(workspace)
    project, project_problem = _layer(path, PROJECT)
    notes: tuple[str, ...] = ()
    if project and not trust.is_trusted(home, workspace):
        project = tuple(map(_tightening, project))
        notes = (f"{path}: its rules only tighten, because nobody trusts this project: read it, then `jackline trust`",)
    problems = tuple(filter(None, (project_problem, user_problem)))
    return Found(project, user, notes, problems)


def combined(own: tuple[Rule, ...], found: Found) -> tuple[Rule, ...]:
    """The rules of a run in the order they are looked at; PolicyError if a file is broken.

    A call remembers its rule by name, so a nearer rule takes the place of a farther one of the same name. One that
    only tightens takes nobody's place: it gets a name of its own.
    """
    if found.problems:
        raise PolicyError(found.problems[0])
    kept: dict[str, Rule] = {}
    firm = {rule.name for rule in (*own, *found.user)}
    for rule in (*own, *found.project, *found.user):
        named = _renamed(rule, firm) if rule.tightens else rule
        kept.setdefault(named.name, named)
    return tuple(kept.values())


def agreed(names: Sequence[str], rules: tuple[Rule, ...]) -> tuple[str, ...]:
    """The rules that a person agreed to beforehand; a name that means nothing is an error, not a wish unheard."""
    known = {rule.name: rule for rule in (*built_in(), *rules)} if names else {}
    for name in names:
        if name != EFFECTS and name not in known:
            near = nearest(name, (*known, EFFECTS))
            raise UsageError(f"allow: no rule is called '{name}':{near} `jackline policy show` lists them")
        if name in known and known[name].decision is Decision.DENY:
            raise UsageError(f"allow: rule '{name}' denies, and only what asks can be agreed to: change the rule")
    return tuple(dict.fromkeys(names))


def built_in() -> tuple[Rule, ...]:
    """The rules that come with jackline, which are looked at last."""
    from jackline.domain import builtin  # a thousand rules: whoever needs none of them does not wait

    return builtin.RULES


def run_file(path: str) -> tuple[Rule, ...]:
    """The rules in a file that a person named for one run; PolicyError names the first line that is wrong."""
    return good(parse(_text(path), RUN), path)


def in_job(text: str, found: object, source: str) -> tuple[Rule, ...]:
    """The rules in a job file that was read already; the lines are told if it is TOML."""
    return good(tables(text, found, RUN), source)


def check(path: str) -> Parsed:
    """A file with all its mistakes; UsageError if it cannot be read at all."""
    return parse(_text(path), RUN)


# files


def _layer(path: str, layer: str) -> tuple[tuple[Rule, ...], str]:
    """A layer's rules, or none and what is wrong with the file."""
    if not os.path.lexists(path):
        return (), ""
    try:
        if layer == PROJECT:
            _refuse_outside(path)
        return good(parse(_text(path), layer), path), ""
    except UsageError as error:
        return (), f"{error}; mend it before work is started (`jackline policy check {path}`)"


def _refuse_outside(path: str) -> None:
    root = os.path.realpath(trust.folder_of(path))
    if not os.path.realpath(path).startswith(os.path.join(root, "")):
        raise PolicyError(f"{path} leads out of the project by a link: put the policy itself there")


def _text(path: str) -> str:
    return regular_text(path, _LONGEST)


def _tightening(rule: Rule) -> Rule:
    """What is left of a rule of a project that nobody trusts: no program, and no claim that something is harmless."""
    replay = Replay.ASK if rule.replay in {Replay.IDEMPOTENT, Replay.RELAUNCH} else rule.replay
    return rule._replace(tightens=True, probe="", nothing_happened=(), external=(), replay=replay)


def _renamed(rule: Rule, taken: set[str]) -> Rule:
    name = rule.name
    while name in taken:
        name += " (project)"
    taken.add(name)
    return rule._replace(name=name)
