"""Classifies a tool call: finds its rule and the fields that keys and targets may use. Pure: it reads no file.

A shell call is classified by every command that it would run; the strictest one wins.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

from jackline.domain import builtin, keys, policy, schemas
from jackline.domain.builtin import tools
from jackline.domain.combining import WHOLE, accompanied, class_rank, combine, decision_rank, is_ingredient
from jackline.domain.events import NOTHING
from jackline.domain.judging import path_args, path_zones
from jackline.domain.judging.classify_command import Found, classify_command
from jackline.domain.judging.path_zones import Place
from jackline.domain.shell import NotParsed, commands
from jackline.domain.states import CallClass, Decision
from jackline.named import NamedTuple, stored_as

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from jackline.domain.rule import Rule


_CALLER = "tool_call"  # a tool that calls another tool by name


class Where(NamedTuple):
    """Where a call would run; both paths are absolute."""

    workspace: str
    folder: str


@stored_as("words rule why")
class Match(NamedTuple):
    """One command of a call, its rule, and the reason for that rule."""

    words: str
    rule: str
    why: str


class Judgement(NamedTuple):
    """The classification of a call, before the gate looks at the ledger."""

    rule: Rule  # several effects in one call are merged, with their names joined by " + "
    fields: Mapping[str, Any]  # available to `key` and `target`, besides the fields of the input
    matches: tuple[Match, ...] = ()
    wants: frozenset[str] = frozenset()  # key inputs that only the host knows, such as git.commit
    folder: str = ""  # where the host looks them up; empty if unknown
    mistake: str = ""  # why the input violates the tool's schema; such a call is denied with a hint


def judge(rules: tuple[Rule, ...], tool: str, given: Any, where: Where) -> Judgement:  # noqa: ANN401 - any JSON
    """Classify a call; `rules` are the rules frozen with the run."""
    called = given.get("name") if tool == _CALLER and isinstance(given, dict) else None
    if isinstance(called, str) and called != _CALLER:
        inner = judge(rules, called, given.get("arguments", {}), where)
        return inner._replace(fields={**inner.fields, "tool": called})
    text = command_of(tool, given)
    judged = (
        _classify_tool(rules, tool, given, where)
        if text is None
        else _classify_shell(rules, tool, text, _apply_folder(where, given))
    )
    return judged._replace(mistake=schemas.mistake(tool, given))


def command_of(tool: str, given: Any) -> str | None:  # noqa: ANN401 - any JSON
    """Return the text that a shell would run; None if the tool is not a shell or has no command."""
    if tool in tools.VERIFIERS:
        return _join_verification(given.get(tools.VERIFIERS[tool])) if isinstance(given, dict) else None
    if tool not in tools.SHELLS:
        return None
    if isinstance(given, str):
        return given
    if not isinstance(given, dict):
        return None
    # With two fields, only the tool knows which one it runs: both count.
    texts = [text for name in tools.COMMANDS if (text := _join_words(given.get(name))) is not None]
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
        commands(line)
    except NotParsed:
        return shlex.join(("sh", line))  # as a script file, whose content is unknown
    return shlex.join(("sh", "-c", line))


def _apply_folder(where: Where, given: Any) -> Where:  # noqa: ANN401 - any JSON
    """Apply the folder that some tools take with the command. Of two folders, one outside the workspace wins."""
    named = [given.get(name) for name in tools.FOLDERS] if isinstance(given, dict) else []
    folders = [path_zones.resolve_path(value, where.folder) for value in named if isinstance(value, str) and value]
    outside = (folder for folder in folders if not f"{folder}/".startswith(f"{where.workspace.rstrip('/')}/"))
    return where._replace(folder=next(outside, folders[0])) if folders else where


# --- tools that are not shells


def _classify_tool(rules: tuple[Rule, ...], tool: str, given: Any, where: Where) -> Judgement:  # noqa: ANN401 - any JSON
    rule = policy.match(rules, tool)
    matched = f"the tool name matches '{rule.tool}' ({rule.layer})"
    matches = (Match(tool, rule.name, "no rule matches this tool" if rule is policy.UNKNOWN else matched),)
    if builtin.BY_TOOL.get(tool) is not rule or rule.call_class is not CallClass.LOCAL:
        return _build_judgement(rule, NOTHING, matches, where.folder)
    for change in path_args.find_tool_changes(tool, given):
        place = path_zones.find_zone(change.word, where.folder, where.workspace)
        text = change.word.text
        path = text if text.startswith("~") else path_zones.resolve_path(text, where.folder)
        outside = _find_zone_rule(place, deletes=change.deletes)
        if outside is not None:
            why = f"it {'deletes' if change.deletes else 'writes'} {path}, {place.value}"
            return _build_judgement(
                outside, {"path": path}, (Match(f"{tool} {text}", outside.name, why),), where.folder
            )
    return _build_judgement(rule, NOTHING, matches, where.folder)


def _find_zone_rule(place: Place, *, deletes: bool) -> Rule | None:
    if deletes:
        table = {
            Place.OUTSIDE: builtin.OUTSIDE_DELETE,
            Place.UNKNOWN: builtin.OUTSIDE_DELETE,
            Place.HEART: builtin.HEART_DELETE,
        }
        return table.get(place)
    if place is Place.HOOKS:
        return builtin.HOOKS_WRITE
    return builtin.OUTSIDE_FILE if place in {Place.OUTSIDE, Place.UNKNOWN} else None


# --- shells


def _classify_shell(rules: tuple[Rule, ...], tool: str, text: str, where: Where) -> Judgement:
    text = _normalize_paths(text, where)
    whole = {"command": text, "folder": _make_relative(where.folder, where)}
    try:
        parsed = commands(text)
    except NotParsed as error:
        match = Match(text, builtin.UNPARSED.name, f"the command cannot be parsed with certainty: {error}")
        return _build_judgement(_apply_tool_rule(rules, tool, builtin.UNPARSED), whole, (match,), where.folder)
    found = [
        one
        for command in parsed
        for one in classify_command(rules, tool, command, parsed, where.workspace, where.folder)
    ]
    matches = tuple(Match(one.words, one.rule.name, one.why) for one in found)
    if not found:
        return _build_judgement(_apply_tool_rule(rules, tool, builtin.NOTHING_RUN), whole, matches, where.folder)
    rule, leading = _merge_commands(found)
    if leading is None:
        return _build_judgement(rule, whole, matches, where.folder)
    fields = {**leading.fields, **whole, "folder": _make_relative(leading.folder or where.folder, where)}
    return _build_judgement(rule, fields, matches, leading.folder)


def _normalize_paths(text: str, where: Where) -> str:
    """Make workspace paths relative, if the call runs in the workspace root."""
    same = path_zones.resolve_path(where.folder, "/") == path_zones.resolve_path(where.workspace, "/")
    return str(keys.normalise({"command": text}, where.workspace)["command"]) if same else text


def _make_relative(folder: str, where: Where) -> str:
    return str(keys.normalise({"cwd": folder}, where.workspace)["cwd"])


def _apply_tool_rule(rules: tuple[Rule, ...], tool: str, rule: Rule) -> Rule:
    """Apply a configured rule for the whole tool even if no command can be identified."""
    own = policy.match(rules, tool)
    if own is policy.UNKNOWN:
        return rule
    return own if class_rank(own) >= class_rank(rule) else combine([rule, own])


def _merge_commands(found: list[Found]) -> tuple[Rule, Found | None]:
    """Merge the rules of all commands; also return the effect that provides the fields."""
    rules = list({one.rule.name: one.rule for one in found}.values())
    effects = [one for one in found if one.rule.call_class is CallClass.EFFECT]
    if not effects:
        return combine(_add_strictest(rules, [max(rules, key=class_rank)])), None
    parts = _add_strictest(rules, [rule for rule in rules if rule.call_class is CallClass.EFFECT])
    leading = effects[0]
    alone = len(effects) == 1 and leading.is_exact and bool(leading.folder)
    others = not alone or any(one.rule.call_class is not CallClass.READ for one in _find_other_commands(found, leading))
    denied = len(parts) == 1 and parts[0].decision is Decision.DENY  # it never runs, so other commands do not matter
    rule = combine(parts, others=others and len(parts) == 1 and not denied)
    if not others and len(found) > 1:
        rule = accompanied(rule)
        # The other command may produce the data that the effect sends, so its arguments alone do not identify it.
        rule = rule._replace(key=(*WHOLE, *rule.key)) if "arguments" in rule.key else rule
    return rule, leading


def _find_other_commands(found: list[Found], leading: Found) -> Iterator[Found]:
    """Yield the other commands, except files that the output of the effect itself is written to."""
    own_output = False
    for one in found:
        own_output = one is leading or (own_output and one.is_output)
        if not own_output:
            yield one


def _add_strictest(rules: list[Rule], chosen: list[Rule]) -> list[Rule]:
    """Return the chosen rules, plus a rule with a stricter decision if there is one."""
    strictest = max(rules, key=decision_rank)
    return chosen if decision_rank(strictest) <= max(map(decision_rank, chosen)) else [*chosen, strictest]


def _build_judgement(rule: Rule, fields: Mapping[str, Any], matches: tuple[Match, ...], folder: str) -> Judgement:
    return Judgement(
        rule, fields, matches, frozenset(_find_host_inputs(rule, fields)) if folder else frozenset(), folder
    )


def _find_host_inputs(rule: Rule, fields: Mapping[str, Any]) -> Iterable[str]:
    """Yield the host inputs that key and target need; an alternative is skipped if an earlier one is known."""
    for text in (*rule.key, *keys.names_in(rule.target)):
        for name in text.split("|"):
            if is_ingredient(name) and (not name.startswith("file:") or fields.get(name.removeprefix("file:"))):
                yield name
            if fields.get(name):
                break
