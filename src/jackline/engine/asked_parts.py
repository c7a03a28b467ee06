"""Finds out what each command of a call that needs approval would change, and whether that belongs to the user."""

from __future__ import annotations

from itertools import islice, pairwise, product
from typing import TYPE_CHECKING

from jackline.policy import git_push_args, keys, own_remotes
from jackline.policy.agreements import AskedPart, names_place
from jackline.policy.classify_command import ClassifiedCommand
from jackline.policy.rule_lookup import BUILT_IN
from jackline.policy.rules import is_host_input

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Any

    from jackline.domain.spec import Spec
    from jackline.policy.classify import Classification

    ReadInputs = Callable[[Classification, object], Mapping[str, str]]

_MOST_PARTS = 20
_MOST_TARGETS = 50
_PUSH_INPUTS = frozenset({"git.urls", "git.refs", "git.commit", "git.remote", "git.several"})
_FORGE_INPUTS = frozenset({"git.remotes", "git.gh"})
_FORGE_SERVERS = frozenset({"github", "gitlab"})  # kinds of targets of their MCP servers
_WEB = frozenset({"curl", "wget", "http"})
_GIT, _FORGES = "git", frozenset({"gh", "glab"})


def build_asked_parts(
    classified: Classification, tool_input: object, spec: Spec, read_inputs: ReadInputs
) -> tuple[AskedPart, ...]:
    """Build one part for each command that needs approval."""
    whole = ClassifiedCommand(
        words="", rule=classified.rule, why="", fields=classified.fields, folder=classified.folder
    )
    commands = classified.asking or (whole,)
    if len(commands) > _MOST_PARTS:
        return (AskedPart(rule=classified.rule.name, targets=()),)
    return tuple(_build_part(one, classified, tool_input, spec, read_inputs) for one in commands)


def _build_part(
    command: ClassifiedCommand, classified: Classification, tool_input: object, spec: Spec, read_inputs: ReadInputs
) -> AskedPart:
    rule = command.rule
    names = {name for text in keys.find_field_names(rule.target) for name in text.split("|")}
    wanted = {name for name in names if is_host_input(name)}
    program = command.fields.get("program")
    is_built_in = rule.layer == BUILT_IN and names_place(rule.target)
    if is_built_in and program == _GIT:
        wanted |= _PUSH_INPUTS
    elif is_built_in and program in _FORGES:
        wanted |= _FORGE_INPUTS
    known: Mapping[str, str] = {}
    if wanted and command.folder:
        part = classified._replace(
            rule=rule._replace(probe=""), fields=command.fields, folder=command.folder, host_inputs=frozenset(wanted)
        )
        known = read_inputs(part, tool_input)
    normal = keys.normalize_input(tool_input, spec.workspace)
    folder = str(keys.normalize_input({"cwd": command.folder}, spec.workspace)["cwd"])
    fields = {"folder": folder, **command.fields, **known}
    if not is_built_in:
        targets = _list_targets(command, normal, fields, names)
        return AskedPart(rule=rule.name, targets=targets, is_plain=True)
    targets, is_own = _find_place(command, normal, fields, known, spec.own_remotes, names)
    branch = own_remotes.find_branch_kind(fields, known, spec.own_remotes) if is_own and targets else ""
    return AskedPart(rule=rule.name, targets=targets, is_plain=is_own, branch=branch)


def _find_place(
    command: ClassifiedCommand,
    normal: Any,  # noqa: ANN401 - any JSON
    fields: Mapping[str, Any],
    known: Mapping[str, str],
    own: Collection[str],
    names: Collection[str],
) -> tuple[tuple[str, ...], bool]:
    """The targets of a command that names a remote, a repository or a host, and whether all are the user's own."""
    if not command.is_exact or command.is_redirected:
        return (), False
    push = git_push_args.parse_push_fields(fields)
    if push is not None:
        if command.moves_head and not _names_branch(push):
            return (), False
        return own_remotes.list_push_targets(keys.build_target(command.rule, normal, fields), fields, known, own)
    targets = _list_targets(command, normal, fields, names)
    program = fields.get("program")
    if program in _WEB and not own_remotes.find_single_url(fields):
        targets = ()
    if program in _FORGES and fields.get("arguments", [])[:1] == ["api"]:
        path = own_remotes.find_api_path(fields)
        targets = (f"{program}:{path}",) if path else ()
    if command.rule.target.partition(":")[0] in _FORGE_SERVERS:
        return targets, own_remotes.is_own_project(targets[0] if targets else "", own)
    return targets, own_remotes.is_own_place(fields, known, own, command.rule.target)


def _names_branch(push: git_push_args.Push) -> bool:
    """Whether the push does not depend on the current branch."""
    return bool(push.remote and push.refspecs) and all(
        one.destination or one.source not in {"HEAD", "@"} for one in push.refspecs
    )


def _has_doubtful_operand(fields: Mapping[str, Any], names: Collection[str]) -> bool:
    """Whether an argument in the target follows a flag, so that it may be the value of the flag instead."""
    words = [str(word) for word in fields.get("arguments", ())]
    values = {fields[name] for name in names if name.isdigit() and name in fields}
    pairs = pairwise(words)
    return any(after in values and before.startswith("-") and "=" not in before for before, after in pairs)


def _list_targets(
    command: ClassifiedCommand,
    normal: Any,  # noqa: ANN401 - any JSON
    fields: Mapping[str, Any],
    names: Collection[str],
) -> tuple[str, ...]:
    """One target for each value of repeated flags. Empty if its words are only known at run time."""
    if (not command.is_exact and command.rule.target) or _has_doubtful_operand(fields, names):
        return ()
    repeated = {
        name: value.split("\n") for name in names if isinstance(value := fields.get(name), str) and "\n" in value
    }
    chosen = islice(product(*repeated.values()), _MOST_TARGETS + 1)
    found = tuple(
        keys.build_target(command.rule, normal, {**fields, **dict(zip(repeated, values, strict=True))})
        for values in chosen
    )
    return found if len(found) <= _MOST_TARGETS else ()
