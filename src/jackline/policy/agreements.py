"""What a person agreed to in advance: `RULE`, `RULE=PATTERN` or `RULE=any`, and which calls that covers. Pure.

A plain name of a built-in rule whose targets name a remote, a repository or a host covers those of the workspace's own
remotes. In runs that began under the first version of the policy, a name covers every call of its rule.
"""

from __future__ import annotations

import json
import re
import shlex
from functools import lru_cache
from typing import TYPE_CHECKING

from jackline.domain.states import CallClass, Decision
from jackline.named import NamedTuple
from jackline.policy.rules import NAME_SEPARATOR, OTHER_COMMANDS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from jackline.policy.rules import Rule

ALL_EFFECTS = "effects"  # every rule that asks, except those that need their own name
ANY = "any"
SIDE_BRANCH, UNKNOWN_BRANCH = "side", "unknown"  # not the default branch; it is not known which one that is
ASKS = "asks"  # in `Call.external`: the parts of a call that no person has approved
# These overwrite or delete data for good, or could be anything: `effects` does not cover them.
OWN_NAME_ONLY = frozenset(
    {"git.push.lease", "git.push.delete", "rm.variable", "unmatched", "unparsed", "inexact.write", "builtin.mcp"}
)
_NO_RULES = frozenset({OTHER_COMMANDS, *map(str, CallClass)})  # parts of a joined name that are not rules
# The kinds of targets that name a remote, a repository or a host.
_PLACES = frozenset(
    {
        "git", "hg", "sl", "svn", "pr", "issue", "mr", "gh", "glab", "hub", "tea", "release", "repo", "workflow", "run",
        "http", "net", "ssh", "copy", "image", "s3", "database", "github", "gitlab",
    }
)  # fmt: skip
_UP = re.compile(r"(?:^|[/\\:])(?:\.|%2e){2}(?:[/\\]|$)", re.IGNORECASE)
_UNKNOWN_PART = re.compile(r"(?:^|[:/])null(?:$|[:/])")
_MOST_PATTERNS = 64


class AskedPart(NamedTuple):
    """One command of a call that asks: the names of its rule, and what it would change."""

    rule: str
    targets: tuple[str, ...]  # a pattern has to match each of them; empty: they are not known
    is_plain: bool = False  # the plain name of its rule covers them
    branch: str = ""  # of a push to own remotes: SIDE_BRANCH or UNKNOWN_BRANCH; empty: the default branch, or no branch


def list_rule_names(name: str) -> list[str]:
    """The names of the rules that a rule's name joins, as a person approves them in advance."""
    return [part for part in dict.fromkeys(name.split(NAME_SEPARATOR)) if part not in _NO_RULES]


def is_rule_allowed(name: str, allowed: Collection[str]) -> bool:
    """Whether every part of a rule's name was approved in advance: for runs of the first version of the policy."""
    names = list_rule_names(name)
    return ALL_EFFECTS in allowed or (bool(names) and set(names) <= set(allowed))


def apply_agreements(rule: Rule, parts: Collection[AskedPart], allowed: Collection[str], version: int) -> Rule:
    """Turn the rule's `ask` into `allow` if every part was approved in advance; never change a `deny`."""
    if rule.decision is not Decision.ASK or not allowed:
        return rule
    is_covered = bool(parts) and all(is_agreed(part, allowed) for part in parts)
    agreed = is_covered if version > 1 else is_rule_allowed(rule.name, allowed)
    return rule._replace(decision=Decision.ALLOW) if agreed else rule


def split_agreement(text: str, known: Collection[str]) -> tuple[str, str]:
    """Split `RULE=PATTERN`; the pattern is empty for a plain name. A rule's own name may contain `=`."""
    if text in known:
        return text, ""
    fitting = [name for name in known if text.startswith(f"{name}=")]
    name = max(fitting, key=len, default=text.partition("=")[0])
    return name, text[len(name) + 1 :]


def is_agreed(part: AskedPart, allowed: Collection[str]) -> bool:
    """Whether every rule of a part was agreed to for all its targets."""
    names = list_rule_names(part.rule)
    return bool(names) and all(_is_covered(name, part, allowed) for name in names)


def _is_covered(name: str, part: AskedPart, allowed: Collection[str]) -> bool:
    given = {text[len(name) + 1 :] for text in allowed if text == name or text.startswith(f"{name}=")}
    if name not in OWN_NAME_ONLY:
        prefix = f"{ALL_EFFECTS}="
        given |= {text[len(prefix) :] for text in allowed if text == ALL_EFFECTS or text.startswith(prefix)}
    if ANY in given or ("" in given and part.is_plain):
        return True
    return bool(part.targets) and all(
        any(matches_target(pattern, target) for pattern in given if pattern) for target in part.targets
    )


def names_place(target: str) -> bool:
    """Whether a target, or the pattern of a rule's targets, names a remote, a repository or a host."""
    return target.partition(":")[0] in _PLACES


def matches_target(pattern: str, target: str) -> bool:
    """Whether a pattern matches a whole target. `*` stays within a part of it; at the end it matches the rest."""
    if pattern == target:
        return True
    # A path that leads up again is not where it seems to be.
    return not _UP.search(target) and target.isprintable() and _compile(pattern).fullmatch(target) is not None


@lru_cache(maxsize=_MOST_PATTERNS)
def _compile(pattern: str) -> re.Pattern[str]:
    body, rest = (pattern[:-1], ".*") if pattern.endswith("*") else (pattern, "")
    pieces = {"*": r"[^/?#@\\\s]*", "?": r"[^/]"}
    return re.compile("".join(pieces.get(letter) or re.escape(letter) for letter in body) + rest)


def suggest_agreements(parts: Iterable[AskedPart]) -> list[str]:
    """The words after `--allow` that agree to these parts for good, one for each rule and target."""
    found: dict[str, None] = {}
    for part in parts:
        for name in list_rule_names(part.rule):
            plain = name if part.is_plain else f"{name}={ANY}"
            found.update(dict.fromkeys(_suggest_pattern(name, target) or plain for target in part.targets or ("",)))
    return list(found)


def format_agreements(parts: Iterable[AskedPart]) -> str:
    """The flags that agree to these parts for good, as they are typed in a shell."""
    return " ".join(f"--allow {shlex.quote(text)}" for text in suggest_agreements(parts))


def _suggest_pattern(name: str, target: str) -> str:
    """`RULE=PATTERN` for this target alone: a comma separates names, and a star would match more. Empty: impossible."""
    pattern = re.sub(r"[,*]", "?", target)
    names_something = bool(target) and pattern not in {ANY, "?"} and target.isprintable()
    fits = names_something and not has_unknown_part(target) and matches_target(pattern, target)
    return f"{name}={pattern}" if fits else ""


def has_unknown_part(target: str) -> bool:
    """Whether a part of the target was not known, such as the branch of a repository without commits."""
    return _UNKNOWN_PART.search(target) is not None


def dump_parts(parts: Iterable[AskedPart]) -> list[list[object]]:
    """The parts as JSON values, for the ledger."""
    return [[part.rule, list(part.targets), part.is_plain] for part in parts]


def load_parts(external: str) -> tuple[AskedPart, ...]:
    """The parts of a call in the ledger; empty if there are none."""
    found = json.loads(external) if ASKS in external else {}
    rows = found.get(ASKS, []) if isinstance(found, dict) else []
    return tuple(AskedPart(rule=rule, targets=tuple(targets), is_plain=is_plain) for rule, targets, is_plain in rows)
