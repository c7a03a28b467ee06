"""What a call is: the rule that it falls under, and what can be said of it by name. Pure: it reads no file.

A call of a shell is judged by every command that it would run, and is as strict as the strictest of them.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

from jackline.domain import builtin, keys, policy, schemas
from jackline.domain.builtin import tools
from jackline.domain.combining import WHOLE, accompanied, class_rank, combine, decision_rank, is_ingredient
from jackline.domain.events import NOTHING
from jackline.domain.judging import filetools, places
from jackline.domain.judging.places import Place
from jackline.domain.judging.sorting import Found, sort
from jackline.domain.shell import NotParsed, commands
from jackline.domain.states import CallClass, Decision
from jackline.named import NamedTuple, stored_as

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from jackline.domain.rule import Rule


_CALLER = "tool_call"  # a tool that calls another one by its name


class Where(NamedTuple):
    """Where a call would run; both are absolute."""

    workspace: str
    folder: str


@stored_as("words rule why")
class Match(NamedTuple):
    """One command of a call, and the rule that it fell under."""

    words: str
    rule: str
    why: str


class Judgement(NamedTuple):
    """Everything that the gate needs to know of a call before it looks into its history."""

    rule: Rule  # where several effects meet in one command: all of them, joined by " + "
    fields: Mapping[str, Any]  # what `key` and `target` may name besides the input's own fields
    matches: tuple[Match, ...] = ()
    wants: frozenset[str] = frozenset()  # ingredients that only the host can tell, such as git.commit
    folder: str = ""  # where they are to be looked for; empty: nobody can say
    mistake: str = ""  # why the input does not fit the tool's schema; such a call is denied with a hint


def judge(rules: tuple[Rule, ...], tool: str, given: Any, where: Where) -> Judgement:  # noqa: ANN401 - any JSON
    """The judgement of a call; `rules` are the run's own, frozen with it."""
    called = given.get("name") if tool == _CALLER and isinstance(given, dict) else None
    if isinstance(called, str) and called != _CALLER:
        inner = judge(rules, called, given.get("arguments", {}), where)
        return inner._replace(fields={**inner.fields, "tool": called})
    text = command_of(tool, given)
    judged = _plain(rules, tool, given, where) if text is None else _shell(rules, tool, text, _moved(where, given))
    return judged._replace(mistake=schemas.mistake(tool, given))


def command_of(tool: str, given: Any) -> str | None:  # noqa: ANN401 - any JSON
    """The text that a shell would read; None if the tool is no shell, or was given none."""
    if tool in tools.VERIFIERS:
        return _verification(given.get(tools.VERIFIERS[tool])) if isinstance(given, dict) else None
    if tool not in tools.SHELLS:
        return None
    if isinstance(given, str):
        return given
    if not isinstance(given, dict):
        return None
    # Of two fields only the tool knows which one it runs: both count.
    texts = [text for name in tools.COMMANDS if (text := _text(given.get(name))) is not None]
    return "\n".join(dict.fromkeys(texts)) if texts else None


def _text(value: Any) -> str | None:  # noqa: ANN401 - any JSON
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        return shlex.join(value)
    return value if isinstance(value, str) else None


def _verification(named: Any) -> str | None:  # noqa: ANN401 - any JSON
    """The commands as one text; the SDK takes a list also out of a text."""
    if isinstance(named, str):
        try:
            named = json.loads(named)
        except (ValueError, RecursionError):
            return None
    lines = [str(one) for one in named] if isinstance(named, list) else []
    return "\n".join(lines if len(lines) == 1 else map(_apart, lines)) or None


def _apart(line: str) -> str:
    """Each is run by a shell of its own: one that has no end, or cannot be read, must not hide those after it."""
    try:
        commands(line)
    except NotParsed:
        return shlex.join(("sh", line))  # as a script, which nobody knows
    return shlex.join(("sh", "-c", line))


def _moved(where: Where, given: Any) -> Where:  # noqa: ANN401 - any JSON
    """Some shells take the folder with the command; of two the one that lies outside counts."""
    named = [given.get(name) for name in tools.FOLDERS] if isinstance(given, dict) else []
    folders = [places.resolved(value, where.folder) for value in named if isinstance(value, str) and value]
    outside = (folder for folder in folders if not f"{folder}/".startswith(f"{where.workspace.rstrip('/')}/"))
    return where._replace(folder=next(outside, folders[0])) if folders else where


# --- tools that are no shells


def _plain(rules: tuple[Rule, ...], tool: str, given: Any, where: Where) -> Judgement:  # noqa: ANN401 - any JSON
    rule = policy.match(rules, tool)
    matches = (Match(tool, rule.name, _why_tool(rule)),)
    if builtin.BY_TOOL.get(tool) is not rule or rule.call_class is not CallClass.LOCAL:
        return _judgement(rule, NOTHING, matches, where.folder)
    for change in filetools.changes(tool, given):
        place = places.place(change.word, where.folder, where.workspace)
        path = _path(change.word.text, where.folder)
        said = (Match(f"{tool} {change.word.text}", "", f"it {_verb(change.deletes)} {path}, {place.value}"),)
        outside = _of_place(place, deletes=change.deletes)
        if outside is not None:
            named = said[0]._replace(rule=outside.name)
            return _judgement(outside, {"path": path}, (named,), where.folder)
    return _judgement(rule, NOTHING, matches, where.folder)


def _of_place(place: Place, *, deletes: bool) -> Rule | None:
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


def _verb(deletes: bool) -> str:  # noqa: FBT001 - one word or the other
    return "deletes" if deletes else "writes"


def _path(text: str, folder: str) -> str:
    return text if text.startswith("~") else places.resolved(text, folder)


def _why_tool(rule: Rule) -> str:
    if rule is policy.UNKNOWN:
        return "no rule speaks of this tool"
    return f"the tool's name fits '{rule.tool}' ({rule.layer})"


# --- shells


def _shell(rules: tuple[Rule, ...], tool: str, text: str, where: Where) -> Judgement:
    text = _one_spelling(text, where)
    whole = {"command": text, "folder": _relative(where.folder, where)}
    try:
        parsed = commands(text)
    except NotParsed as error:
        match = Match(text, builtin.UNPARSED.name, f"the command cannot be read with certainty: {error}")
        return _judgement(_with_own(rules, tool, builtin.UNPARSED), whole, (match,), where.folder)
    found = [one for command in parsed for one in sort(rules, tool, command, parsed, where.workspace, where.folder)]
    matches = tuple(Match(one.words, one.rule.name, one.why) for one in found)
    if not found:
        return _judgement(_with_own(rules, tool, builtin.NOTHING_RUN), whole, matches, where.folder)
    rule, leading = _decisive(found)
    if leading is None:
        return _judgement(rule, whole, matches, where.folder)
    fields = {**leading.fields, **whole, "folder": _relative(leading.folder or where.folder, where)}
    return _judgement(rule, fields, matches, leading.folder)


def _one_spelling(text: str, where: Where) -> str:
    """Paths of the workspace made relative, where that means the same."""
    same = places.resolved(where.folder, "/") == places.resolved(where.workspace, "/")
    return str(keys.normalise({"command": text}, where.workspace)["command"]) if same else text


def _relative(folder: str, where: Where) -> str:
    return str(keys.normalise({"cwd": folder}, where.workspace)["cwd"])


def _with_own(rules: tuple[Rule, ...], tool: str, rule: Rule) -> Rule:
    """Somebody's own rule for the whole tool holds also where no command is to be seen."""
    own = policy.match(rules, tool)
    if own is policy.UNKNOWN:
        return rule
    return own if class_rank(own) >= class_rank(rule) else combine([rule, own])


def _decisive(found: list[Found]) -> tuple[Rule, Found | None]:
    """The one rule of all commands, and the effect that its fields are about."""
    rules = list({one.rule.name: one.rule for one in found}.values())
    effects = [one for one in found if one.rule.call_class is CallClass.EFFECT]
    if not effects:
        return _strictest(rules), None
    parts = _parts(rules, [rule for rule in rules if rule.call_class is CallClass.EFFECT])
    leading = effects[0]
    alone = len(effects) == 1 and leading.is_exact and bool(leading.folder)
    others = not alone or any(one.rule.call_class is not CallClass.READ for one in _company(found, leading))
    denied = len(parts) == 1 and parts[0].decision is Decision.DENY  # it runs in no company at all
    rule = combine(parts, others=others and len(parts) == 1 and not denied)
    if not others and len(found) > 1:
        rule = _with_company(accompanied(rule))
    return rule, leading


def _company(found: list[Found], leading: Found) -> Iterator[Found]:
    """The other commands; a file of the workspace that takes the output of the effect itself is none."""
    own_output = False
    for one in found:
        own_output = one is leading or (own_output and one.is_output)
        if not own_output:
            yield one


def _strictest(rules: list[Rule]) -> Rule:
    return combine(_parts(rules, [max(rules, key=class_rank)]))


def _parts(rules: list[Rule], chosen: list[Rule]) -> list[Rule]:
    """The chosen rules, and the one that decides more strictly than they do, if there is one."""
    strictest = max(rules, key=decision_rank)
    return chosen if decision_rank(strictest) <= max(map(decision_rank, chosen)) else [*chosen, strictest]


def _with_company(rule: Rule) -> Rule:
    """What an effect sends may come from the command before it: then its own words do not tell two of them apart."""
    return rule._replace(key=(*WHOLE, *rule.key)) if "arguments" in rule.key else rule


def _judgement(rule: Rule, fields: Mapping[str, Any], matches: tuple[Match, ...], folder: str) -> Judgement:
    return Judgement(rule, fields, matches, frozenset(_wanted(rule, fields)) if folder else frozenset(), folder)


def _wanted(rule: Rule, fields: Mapping[str, Any]) -> Iterable[str]:
    """The ingredients that key and target name: of alternatives only those before which nothing is known."""
    for text in (*rule.key, *keys.names_in(rule.target)):
        for name in text.split("|"):
            if is_ingredient(name) and (not name.startswith("file:") or fields.get(name.removeprefix("file:"))):
                yield name
            if fields.get(name):
                break
