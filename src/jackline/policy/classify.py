"""Classifies a tool call: finds its rule and the fields that keys and targets may use. Pure: it reads no file.

A shell call is classified by every command that it would run; the strictest one wins.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

from jackline.domain import schemas
from jackline.domain.events import NOTHING
from jackline.domain.states import CallClass, Decision, Replay
from jackline.named import NamedTuple, stored_as
from jackline.policy import (
    builtin,
    discarded_work,
    effect_parts,
    keys,
    path_args,
    path_zones,
    rule_lookup,
    tool_names,
)
from jackline.policy.builtin import agent_tools, mcp_tools
from jackline.policy.classify_command import ClassifiedCommand, classify_command, survey_text
from jackline.policy.curl_requests import READING_METHODS
from jackline.policy.path_zones import PathZone
from jackline.policy.rules import (
    NAME_SEPARATOR,
    REWORDED,
    WHOLE_COMMAND,
    drop_exit_codes,
    merge_rules,
    rank_class,
    rank_decision,
)
from jackline.shell import list_commands
from jackline.shell.model import NotParsed, ShellCommand

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jackline.policy.call_context import CallContext
    from jackline.policy.discarded_work import Discard
    from jackline.policy.effect_parts import EffectPart
    from jackline.policy.rules import Rule

# Subcommands of git after which a remote or the current branch may be another one.
_REMOTE_CHANGES = frozenset({"remote", "config", "submodule", "clone", "init"})
_BRANCH_CHANGES = frozenset({"checkout", "switch", "branch", "symbolic-ref", "worktree"})
_CALLER = "tool_call"  # a tool that calls another tool by name
# The fields of tools that fetch, without _ and -. A method other than GET, HEAD or OPTIONS, or a body, sends data.
_METHOD_FIELDS = frozenset({"method", "httpmethod", "verb", "requestmethod", "xhttpmethodoverride", "xmethodoverride"})
_BODY_FIELDS = frozenset(
    {"body", "data", "payload", "json", "form", "formdata", "files", "file", "postdata", "requestbody", "bodyfile"}
    | {"rawbody", "jsonbody", "multipart", "upload"}
)
_MOST_LEVELS = 6  # of nested fields
# The rules for files outside that a tool deletes or writes.
_DELETE_RULES = {
    PathZone.OUTSIDE: builtin.OUTSIDE_DELETE,
    PathZone.UNKNOWN: builtin.OUTSIDE_DELETE,
    PathZone.ROOT: builtin.ROOT_DELETE,
}
_WRITE_RULES = {
    PathZone.OUTSIDE: builtin.OUTSIDE_FILE,
    PathZone.UNKNOWN: builtin.OUTSIDE_FILE,
    PathZone.HOOKS: builtin.HOOKS_WRITE,
}


@stored_as("words rule why")
class RuleMatch(NamedTuple):
    """One command of a call, its rule, and the reason for that rule."""

    words: str
    rule: str
    why: str


class Classification(NamedTuple):
    """The classification of a call, before the gate looks at the ledger."""

    rule: Rule  # several effects in one call are merged, with their names joined by " + "
    fields: Mapping[str, Any]  # available to `key` and `target`, besides the fields of the input
    matches: tuple[RuleMatch, ...] = ()
    host_inputs: frozenset[str] = frozenset()  # key inputs that only the host knows, such as git.commit
    folder: str = ""  # where the host looks them up; empty if unknown
    effects: tuple[EffectPart, ...] = ()  # of a shell call, since version 2 of the policy
    company: tuple[str, ...] = ()  # the other commands of a call with one effect, except those that only read
    commands: tuple[ClassifiedCommand, ...] = ()  # all commands of a shell call
    mistake: str = ""  # why the input violates the tool's schema; such a call is denied with a hint
    asking: tuple[ClassifiedCommand, ...] = ()  # the commands of a shell call that need approval
    discards: tuple[Discard, ...] = ()  # those that discard work which no commit holds


def classify_call(rules: tuple[Rule, ...], tool: str, given: Any, where: CallContext) -> Classification:  # noqa: ANN401 - any JSON
    """Classify a call; `rules` are the rules frozen with the run."""
    called = given.get("name") if tool == _CALLER and isinstance(given, dict) else None
    if isinstance(called, str) and called != _CALLER:
        inner = classify_call(rules, called, given.get("arguments", {}), where)
        return inner._replace(fields={**inner.fields, "tool": called})
    text = find_command_text(tool, given)
    classified = (
        _classify_tool(rules, tool, given, where)
        if text is None
        else _classify_shell(rules, tool, text, apply_folder(where, given))
    )
    return classified._replace(mistake=schemas.find_input_mistake(tool, given))


def find_command_text(tool: str, given: Any) -> str | None:  # noqa: ANN401 - any JSON
    """Return the text that a shell would run; None if the tool is not a shell or has no command."""
    if tool in agent_tools.VERIFIER_FIELDS:
        return _join_verification(given.get(agent_tools.VERIFIER_FIELDS[tool])) if isinstance(given, dict) else None
    if tool not in tool_names.SHELL_TOOLS:
        return None
    if isinstance(given, str):
        return given
    if not isinstance(given, dict):
        return None
    # With two fields, only the tool knows which one it runs: both count.
    texts = [text for name in tool_names.COMMAND_FIELDS if (text := _join_words(given.get(name))) is not None]
    return "\n".join(dict.fromkeys(texts)) if texts else None


def _join_words(value: Any) -> str | None:  # noqa: ANN401 - any JSON
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        return shlex.join(value)
    return value if isinstance(value, str) else None


def _join_verification(named: Any) -> str | None:  # noqa: ANN401 - any JSON
    """Join verification commands into one text. The MCP SDK also accepts a list as JSON text."""
    if isinstance(named, str):
        try:
            named = json.loads(named)
        except (ValueError, RecursionError):
            return None
    lines = [str(one) for one in named] if isinstance(named, list) else []
    return "\n".join(lines if len(lines) == 1 else map(_wrap_in_shell, lines)) or None


def _wrap_in_shell(line: str) -> str:
    """Wrap a command in its own shell, so that an unclosed or invalid one does not hide the next ones."""
    try:
        list_commands(line)
    except NotParsed:
        return shlex.join(("sh", line))  # as a script file, whose content is unknown
    return shlex.join(("sh", "-c", line))


def apply_folder(where: CallContext, given: Any) -> CallContext:  # noqa: ANN401 - any JSON
    """Apply the folder that some tools take with the command. Of two folders, one outside the workspace wins."""
    named = [given.get(name) for name in tool_names.FOLDER_FIELDS] if isinstance(given, dict) else []
    folders = [path_zones.resolve_path(value, where.folder) for value in named if isinstance(value, str) and value]
    outside = (folder for folder in folders if not f"{folder}/".startswith(f"{where.workspace.rstrip('/')}/"))
    return where._replace(folder=next(outside, folders[0])) if folders else where


# --- tools that are not shells


def _classify_tool(rules: tuple[Rule, ...], tool: str, given: Any, where: CallContext) -> Classification:  # noqa: ANN401 - any JSON
    rule = rule_lookup.find_tool_rule(rules, tool, where.unmatched, where.version)
    if any(name.startswith("mcp.") for name in rule.name.split(NAME_SEPARATOR)) and rule.layer == rule_lookup.BUILT_IN:
        return _classify_mcp(rule, tool, given, where)
    is_built_in = builtin.BY_TOOL.get(tool) is rule
    if is_built_in and tool in agent_tools.FETCHERS and _sends_data(given):
        match = RuleMatch(words=tool, rule=builtin.FETCH_SEND.name, why="it has a method or a body that sends data")
        return _build_classification(builtin.FETCH_SEND, NOTHING, (match,), where.folder)
    if is_built_in and rule.call_class is CallClass.LOCAL:
        found = [
            outside
            for change in path_args.find_tool_changes(tool, given)
            if (outside := _classify_tool_change(tool, change, where)) is not None
        ]
        if found:
            return max(found, key=lambda one: (rank_class(one.rule), rank_decision(one.rule)))
    matched = f"the tool name matches '{rule.tool}' ({rule.layer})"
    why = "no rule matches this tool" if rule.name == rule_lookup.UNMATCHED.name else matched
    return _build_classification(rule, NOTHING, (RuleMatch(words=tool, rule=rule.name, why=why),), where.folder)


def _sends_data(value: Any, name: str = "", levels: int = _MOST_LEVELS) -> bool:  # noqa: ANN401 - any JSON
    """Check the input of a tool that fetches, in any nesting, for a method or a body that sends data."""
    plain = name.lower().replace("_", "").replace("-", "")
    if plain in _METHOD_FIELDS and isinstance(value, str):
        return bool(value) and value.strip().upper() not in READING_METHODS
    if plain in _BODY_FIELDS:
        return bool(value) or (isinstance(value, int) and not isinstance(value, bool))
    if not levels:
        return isinstance(value, dict | list)
    if isinstance(value, dict):
        return any(_sends_data(item, str(key), levels - 1) for key, item in value.items())
    return isinstance(value, list) and any(_sends_data(item, "", levels - 1) for item in value)


def _classify_tool_change(tool: str, change: path_args.PathChange, where: CallContext) -> Classification | None:
    """Classify a file that a tool changes; None if it is inside the workspace."""
    zone = path_zones.find_zone(change.word, where.folder, where.workspace)
    outside = (_DELETE_RULES if change.deletes else _WRITE_RULES).get(zone)
    if outside is None:
        return None
    text = change.word.text
    path = text if text.startswith("~") else path_zones.resolve_path(text, where.folder)
    why = f"it {'deletes' if change.deletes else 'writes'} {path}, {zone.value}"
    match = RuleMatch(words=f"{tool} {text}", rule=outside.name, why=why)
    return _build_classification(outside, {"path": path}, (match,), where.folder)


def _classify_mcp(rule: Rule, tool: str, given: Any, where: CallContext) -> Classification:  # noqa: ANN401 - any JSON
    called = mcp_tools.split_tool_name(tool)
    fields = {"mcp.server": called.server, "mcp.tool": called.tool} if called else {}
    reading = mcp_tools.find_statement_rule(tool, given) if rule in mcp_tools.MCP_RULES else None
    why = "it sends one reading statement" if reading else "the server and the verbs in the tool's name"
    rule = reading or rule
    return _build_classification(rule, fields, (RuleMatch(words=tool, rule=rule.name, why=why),), where.folder)


# --- shells


def _classify_shell(rules: tuple[Rule, ...], tool: str, text: str, where: CallContext) -> Classification:
    if path_zones.resolve_path(where.folder, "/") == path_zones.resolve_path(where.workspace, "/"):
        # In the workspace root, its absolute paths mean the same as relative ones.
        text = str(keys.normalize_input({"command": text}, where.workspace)["command"])
    whole = {"command": text, "folder": _make_relative(where.folder, where)}
    try:
        parsed = list_commands(text, constants=where.version >= REWORDED)
    except NotParsed as error:
        match = RuleMatch(
            words=text, rule=builtin.UNPARSED.name, why=f"the command cannot be parsed with certainty: {error}"
        )
        return _build_classification(
            _apply_tool_rule(rules, tool, builtin.UNPARSED, where), whole, (match,), where.folder
        )
    classified = _classify_commands(rules, tool, parsed, whole, where)
    discards = discarded_work.find_discards(parsed, where) if "git" in text or "hub" in text else ()
    return classified._replace(discards=discards) if discards else classified


def _classify_commands(
    rules: tuple[Rule, ...],
    tool: str,
    parsed: tuple[ShellCommand, ...],
    whole: Mapping[str, Any],
    where: CallContext,
) -> Classification:
    survey = survey_text(parsed)
    # A command that is repeated is classified once.
    known = {one: tuple(classify_command(rules, tool, one, survey, where)) for one in dict.fromkeys(parsed)}
    found = [one for command in parsed for one in known[command]]
    matches = tuple(RuleMatch(words=one.words, rule=one.rule.name, why=one.why) for one in found)
    if not found:
        return _build_classification(
            _apply_tool_rule(rules, tool, builtin.NOTHING_RUN, where), whole, matches, where.folder
        )
    rule, leading = _merge_commands(found, where)
    asking = _list_asking(found, parsed)
    if leading is None:
        return _build_classification(rule, whole, matches, where.folder)._replace(asking=asking, commands=tuple(found))
    fields = {**leading.fields, **whole, "folder": _make_relative(leading.folder or where.folder, where)}
    if where.version < REWORDED:
        return _build_classification(rule, fields, matches, leading.folder)._replace(asking=asking)
    effects = effect_parts.list_effect_parts(found, whole, where.workspace)
    company: tuple[str, ...] = ()
    if len(effects) == 1 and effects[0].is_identified:
        rule = rule._replace(key=effects[0].rule.key, target=effects[0].rule.target)
        others = _find_other_commands(found, leading)
        company = tuple(one.words for one in others if one.rule.call_class is not CallClass.READ)
    elif WHOLE_COMMAND[0] not in rule.key:  # its fields alone do not identify it
        rule = rule._replace(key=(*WHOLE_COMMAND, *rule.key))
    return _build_classification(rule, fields, matches, leading.folder)._replace(
        effects=effects, company=company, commands=tuple(found), asking=asking
    )


def _list_asking(found: list[ClassifiedCommand], parsed: tuple[ShellCommand, ...]) -> tuple[ClassifiedCommand, ...]:
    """The commands that need approval, and whether others of the call change where they go."""
    asking = [one for one in found if one.rule.decision is Decision.ASK]
    if not asking or len(parsed) == 1:
        return tuple(asking)
    words = {
        word.text
        for command in parsed
        if command.words and command.words[0].text.rpartition("/")[2] == "git"
        for word in command.words[1:]
    }
    redirects = bool(words & _REMOTE_CHANGES) or any(one.rule.name == builtin.HOOKS_WRITE.name for one in found)
    moves = bool(words & _BRANCH_CHANGES) or any(".git/" in one.words for one in found)
    return tuple(one._replace(is_redirected=one.is_redirected or redirects, moves_head=moves) for one in asking)


def _make_relative(folder: str, where: CallContext) -> str:
    return str(keys.normalize_input({"cwd": folder}, where.workspace)["cwd"])


def _apply_tool_rule(rules: tuple[Rule, ...], tool: str, rule: Rule, where: CallContext) -> Rule:
    """Apply a configured rule for the whole tool even if no command can be identified."""
    rule = rule_lookup.apply_unmatched(rule, where.unmatched)
    own = rule_lookup.find_tool_rule(rules, tool, where.unmatched)
    if own.name == rule_lookup.UNMATCHED.name:
        return rule
    return own if rank_class(own) >= rank_class(rule) else merge_rules([rule, own])


def _merge_commands(found: list[ClassifiedCommand], where: CallContext) -> tuple[Rule, ClassifiedCommand | None]:
    """Merge the rules of all commands; also return the command that provides the fields."""
    rules = list({one.rule.name: one.rule for one in found}.values())
    effects = [one for one in found if one.rule.call_class is CallClass.EFFECT]
    if not effects:
        # Among rules of one class, the one that insists on a repetition after a crash.
        first = max(rules, key=lambda rule: (rank_class(rule), rule.replay is Replay.EXACT))
        asking = [one for one in found if one.rule.decision is Decision.ASK]
        is_alone = len(asking) == 1 and asking[0].rule is first and first.call_class is CallClass.UNKNOWN
        merged = merge_rules(_add_stricter(rules, [first], where))
        if is_alone:
            return merged, asking[0]
        return (merged._replace(target="") if first.target and rule_lookup.is_unmatched(first) else merged), None
    parts = _add_stricter(rules, [rule for rule in rules if rule.call_class is CallClass.EFFECT], where)
    leading = effects[0]
    alone = len(effects) == 1 and leading.is_exact and bool(leading.folder)
    others = not alone or any(one.rule.call_class is not CallClass.READ for one in _find_other_commands(found, leading))
    denied = len(parts) == 1 and parts[0].decision is Decision.DENY  # it never runs, so other commands do not matter
    rule = merge_rules(parts, others=others and len(parts) == 1 and not denied)
    if not others and len(found) > 1:
        rule = drop_exit_codes(rule)
        # The other command may produce the data that the effect sends, so its arguments alone do not identify it.
        rule = rule._replace(key=(*WHOLE_COMMAND, *rule.key)) if "arguments" in rule.key else rule
    return rule, leading


def _find_other_commands(found: list[ClassifiedCommand], leading: ClassifiedCommand) -> Iterator[ClassifiedCommand]:
    """Yield the other commands, except files that the output of the effect itself is written to."""
    own_output = False
    for one in found:
        own_output = one is leading or (own_output and one.is_output)
        if not own_output:
            yield one


def _add_stricter(rules: list[Rule], chosen: list[Rule], where: CallContext) -> list[Rule]:
    """Return the chosen rules, plus a rule with a stricter decision if there is one, and every other rule that asks."""
    if where.version > 1:  # who agrees to one rule has not agreed to the others
        chosen = [*chosen, *(rule for rule in rules if rule.decision is Decision.ASK and rule not in chosen)]
    strictest = max(rules, key=rank_decision)
    return chosen if rank_decision(strictest) <= max(map(rank_decision, chosen)) else [*chosen, strictest]


def _build_classification(
    rule: Rule, fields: Mapping[str, Any], matches: tuple[RuleMatch, ...], folder: str
) -> Classification:
    host_inputs = keys.find_host_inputs(rule, fields) if folder else frozenset()
    return Classification(rule=rule, fields=fields, matches=matches, host_inputs=host_inputs, folder=folder)
