"""Rules: which tool calls are effects, what they touch, how they are told apart, and what may be done after a crash.

A rule matches by tool name, or by the words of a command (see sorting.py). Rules come from tables that were read
elsewhere; nothing here does I/O.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jackline.domain import builtin
from jackline.domain.combining import JOINED, OTHERS, accompanied, class_rank, combine, decision_rank, harmless
from jackline.domain.rule import Rule
from jackline.domain.states import CallClass, Decision, Replay
from jackline.errors import PolicyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


UNKNOWN = Rule(name="unmatched", tool="*", call_class=CallClass.UNKNOWN)
BUILT_IN: tuple[Rule, ...] = builtin.RULES
BUILT_IN_PROBE = "builtin:"  # how the name of a probe begins that comes with jackline
PROBES = frozenset({"file", "gh-issue-create", "gh-pr-create", "git-push", "http"})
_LAYERS = ("run", "project", "user", "built-in")  # in the order in which they are looked at
_SAID = (Decision.ALLOW, Decision.ASK, Decision.DENY)  # the fourth is the gate's own word
_RESERVED = frozenset({UNKNOWN.name, OTHERS, str(CallClass.READ)})
_WORDS: dict[str, type | tuple[type, ...]] = {
    "name": str, "tool": str, "class": str, "replay": str, "decision": str, "key": (str,), "target": str,
    "probe": str, "nothing_happened": (int,), "max": int, "command": (str, list), "having": (str,), "lacking": (str,),
    "external": dict, "hint": str,
}  # fmt: skip
_SHAPES: dict[type | tuple[type, ...], str] = {
    str: "text", int: "a whole number", (str,): "a list of texts", (int,): "a list of whole numbers",
    (str, list): "text or a list of texts", dict: "a table of names and patterns",
}  # fmt: skip


def in_order(rules: tuple[Rule, ...]) -> Sequence[Rule]:
    """The run's own rules first, then the project's, then the user's; within a layer as they stand in its file."""
    return sorted(rules, key=_layer) if len(rules) > 1 else rules


def _layer(rule: Rule) -> int:
    return _LAYERS.index(rule.layer) if rule.layer in _LAYERS else 0


def is_for(rule: Rule, tool: str) -> bool:
    """Whether a rule speaks of this tool: by its name, or by the beginning of it."""
    return rule.tool == tool or (rule.tool.endswith("*") and tool.startswith(rule.tool[:-1]))


def match(rules: tuple[Rule, ...], tool: str) -> Rule:
    """The rule of a tool that is no shell: the layers' own before the built-in ones, `unknown` when none fits."""
    fitting = [rule for rule in in_order(rules) if not rule.command and is_for(rule, tool)]
    firm = next((rule for rule in fitting if not rule.tightens), None) or _built_in(tool)
    return tighten(firm, next((rule for rule in fitting if rule.tightens), None))


def _built_in(tool: str) -> Rule:
    known = builtin.BY_TOOL.get(tool)
    if known is not None:
        return known
    return next((rule for rule in builtin.BY_BEGINNING if is_for(rule, tool)), UNKNOWN)


def tighten(rule: Rule, tightening: Rule | None) -> Rule:
    """The rule of a call, made stricter by one that may do nothing else."""
    if tightening is None or not _is_stricter(tightening, rule):
        return rule
    laxer = class_rank(rule) <= class_rank(tightening) and decision_rank(rule) <= decision_rank(tightening)
    if laxer and rule.call_class is not CallClass.EFFECT and rule.most is None:
        return harmless(tightening)
    return combine([rule, tightening])


def _is_stricter(one: Rule, other: Rule) -> bool:
    fewer = one.most is not None and (other.most is None or one.most < other.most)
    return class_rank(one) > class_rank(other) or decision_rank(one) > decision_rank(other) or fewer


def named(rules: tuple[Rule, ...], name: str) -> Rule:
    """The rule that a call was admitted by; `unknown` if it is gone, so that nothing is assumed of the call."""
    found = _named(rules, name)
    if found is not None:
        return harmless(found) if found.tightens else found
    if JOINED not in name:
        return UNKNOWN
    parts, last = pieces(rules, name), name.rsplit(JOINED, maxsplit=1)[-1]
    if last == CallClass.READ:
        return accompanied(parts[0])
    return combine(parts, others=last == OTHERS)._replace(name=name)


def pieces(rules: tuple[Rule, ...], name: str) -> list[Rule]:
    """The rules that meet in a name."""
    return [_named(rules, one) or UNKNOWN for one in name.split(JOINED) if one not in _RESERVED - {UNKNOWN.name}]


def _named(rules: tuple[Rule, ...], name: str) -> Rule | None:
    own = next((rule for rule in rules if rule.name == name), None)
    return own if own is not None else builtin.BY_NAME.get(name)


def from_tables(tables: object, source: str, lines: Sequence[int] = (), *, layer: str = "run") -> tuple[Rule, ...]:
    """Rules from the `[[rule]]` tables of a policy file; a mistake names the file, the line if known, the rule."""
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        message = f"{source}: a policy is a list of [[rule]] tables"
        raise PolicyError(message)
    places = [_where(table, source, number, lines) for number, table in enumerate(tables, 1)]
    rules = tuple(_rule(table, place)._replace(layer=layer) for table, place in zip(tables, places, strict=True))
    taken: set[str] = set()
    for rule, place in zip(rules, places, strict=True):  # a call remembers its rule by name alone
        if rule.name in taken or rule.name in _RESERVED or rule.name in builtin.BY_NAME:
            message = f"{place}: two rules are named '{rule.name}'; give each a 'name' of its own"
            raise PolicyError(message)
        taken.add(rule.name)
    return rules


def _where(table: Mapping[str, Any], source: str, number: int, lines: Sequence[int]) -> str:
    name = table.get("name", table.get("tool"))
    line = f":{lines[number - 1]}" if number <= len(lines) else ""
    return f"{source}{line}: rule {number}" + (f" '{name}'" if isinstance(name, str) else "")


def _rule(table: Mapping[str, Any], where: str) -> Rule:
    for word, value in table.items():
        if word not in _WORDS:
            message = f"{where}: unknown word '{word}' (known: {', '.join(_WORDS)})"
            raise PolicyError(message)
        if not _is_shaped(value, _WORDS[word]):
            message = f"{where}: '{word}' must be {_SHAPES[_WORDS[word]]}"
            raise PolicyError(message)
    try:
        rule = _build(table)
    except (KeyError, ValueError) as error:
        message = f"{where}: {'missing ' if isinstance(error, KeyError) else ''}{error}"
        raise PolicyError(message) from None
    mistake = _mistake(rule)
    if mistake:
        message = f"{where}: {mistake}"
        raise PolicyError(message)
    return rule


def _is_shaped(value: object, shape: type | tuple[type, ...]) -> bool:
    """Whether a value is what its word wants; true and false are not numbers here."""
    if shape == (str, list):
        return isinstance(value, str) or _is_shaped(value, (str,))
    if isinstance(shape, tuple):
        return isinstance(value, list) and all(_is_shaped(item, shape[0]) for item in value)
    if shape is dict:
        return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
    return isinstance(value, shape) and not isinstance(value, bool)


def _mistake(rule: Rule) -> str:
    """What is wrong with a rule whose words are all well formed; empty if nothing is."""
    if rule.replay is Replay.EXACT and rule.call_class not in {CallClass.READ, CallClass.LOCAL}:
        return "replay 'exact' is for reads and locals only; an effect is 'idempotent' or 'ask'"
    if not _is_tool(rule):
        return "'tool' is a name, or the beginning of one with a * at its end"
    if rule.most is not None and rule.most < 0:
        return "'max' must not be negative"
    if not rule.name.isprintable() or not rule.name.strip():
        return "'name' must be one line of text that can be seen"
    if JOINED in rule.name:
        return f"'name' must not hold '{JOINED}': that joins the names of rules that meet in one call"
    if rule.probe.startswith(BUILT_IN_PROBE) and rule.probe.removeprefix(BUILT_IN_PROBE) not in PROBES:
        return f"there is no built-in probe '{rule.probe}': there are {', '.join(sorted(PROBES))}"
    return _command_mistake(rule) or _pattern_mistake(rule) or _field_mistake(rule)


def _is_tool(rule: Rule) -> bool:
    return "*" not in rule.tool[:-1] and bool(rule.tool or rule.command)


def _command_mistake(rule: Rule) -> str:
    if any(not word.strip() or any(letter.isspace() for letter in word) for word in rule.command):
        return "'command' is a program and its subcommands, such as \"git push\""
    if rule.command and rule.command[0].startswith("-"):
        return "'command' begins with the name of a program, not with a flag"
    if (rule.having or rule.lacking) and not rule.command:
        return "'having' and 'lacking' belong to a rule with a 'command'"
    if any(not word for word in (*rule.having, *rule.lacking)):
        return "'having' and 'lacking' are lists of flags or words, none of them empty"
    return ""


def _field_mistake(rule: Rule) -> str:
    from jackline.domain import keys  # with its digests: only whoever writes rules of his own waits for it

    if any(brace in keys.without_fields(rule.target) for brace in "{}"):
        return "'target' has a brace that belongs to no field: write {to}, or {to|cc} for the first that is there"
    return "" if all(rule.key) else "'key' is a list of fields, none of them empty"


def _pattern_mistake(rule: Rule) -> str:
    for name, pattern in rule.external:
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            return f"'external' {name}: not a regular expression: {error}"
    return ""


def _chosen(word: str, value: str, known: Iterable[str]) -> str:
    names = [str(one) for one in known]
    if value not in names:
        message = f"'{word}' is '{value}': say {', '.join(names[:-1])} or {names[-1]}"
        raise ValueError(message)
    return value


def _build(table: Mapping[str, Any]) -> Rule:
    kind = CallClass(_chosen("class", table["class"], CallClass))
    effect, repeatable = kind is CallClass.EFFECT, kind in {CallClass.READ, CallClass.LOCAL}
    command = table.get("command", ())
    words = tuple(command.split() if isinstance(command, str) else command)
    if "command" in table and not words:
        raise ValueError("'command' is empty: name a program, such as \"git push\"")
    tool = table.get("tool", "") if words else table["tool"]
    return Rule(
        name=table.get("name", tool or " ".join(words)),
        tool=tool,
        call_class=kind,
        replay=Replay(_chosen("replay", table.get("replay", Replay.EXACT if repeatable else Replay.ASK), Replay)),
        decision=Decision(
            _chosen("decision", table.get("decision", Decision.ASK if effect else Decision.ALLOW), _SAID)
        ),
        key=tuple(table.get("key", ())),
        target=table.get("target", ""),
        probe=table.get("probe", ""),
        nothing_happened=tuple(table.get("nothing_happened", ())),
        most=table.get("max"),
        command=words,
        having=tuple(table.get("having", ())),
        lacking=tuple(table.get("lacking", ())),
        external=tuple(table.get("external", {}).items()),
        hint=table.get("hint", ""),
    )
