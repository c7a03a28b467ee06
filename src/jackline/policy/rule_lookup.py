"""Finds the rule of a tool, and builds rules from the `[[rule]]` tables of a policy file. Pure: no I/O.

Rules with a `command` are matched by the classifier of shell commands.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jackline.domain.states import CallClass, Decision, Replay
from jackline.errors import PolicyError
from jackline.policy import builtin
from jackline.policy.builtin import mcp_tools
from jackline.policy.rules import (
    NAME_SEPARATOR,
    OTHER_COMMANDS,
    PROBE_PREFIX,
    REWORDED,
    Rule,
    drop_exit_codes,
    merge_rules,
    rank_class,
    rank_decision,
    strip_claims,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

UNMATCHED = Rule(name="unmatched", tool="*", call_class=CallClass.UNKNOWN)
_UNMATCHED_HINT = "no rule matches it, and such calls are not allowed: use another command, or report what you need"
BUILT_IN_RULES: tuple[Rule, ...] = builtin.RULES
PROBE_NAMES = frozenset({"file", "gh-issue-create", "gh-pr-create", "git-push", "http"})
BUILT_IN = "built-in"
_LAYERS = ("run", "project", "user", BUILT_IN)  # in matching order
_DECISIONS = (Decision.ALLOW, Decision.ASK, Decision.DENY)  # `stored` is only set by the gate
_RESERVED = frozenset({UNMATCHED.name, OTHER_COMMANDS, str(CallClass.READ)})
_KEY_TYPES: dict[str, type | tuple[type, ...]] = {
    "name": str, "tool": str, "class": str, "replay": str, "decision": str, "key": (str,), "target": str,
    "probe": str, "nothing_happened": (int,), "max": int, "command": (str, list), "having": (str,), "lacking": (str,),
    "external": dict, "hint": str,
}  # fmt: skip
_TYPE_NAMES: dict[type | tuple[type, ...], str] = {
    str: "a string", int: "an integer", (str,): "a list of strings", (int,): "a list of integers",
    (str, list): "a string or a list of strings", dict: "a table of names and patterns",
}  # fmt: skip


def sort_by_layer(rules: tuple[Rule, ...]) -> Sequence[Rule]:
    """Sort rules by layer: run, project, user; within a layer in file order."""
    if len(rules) < 2:  # noqa: PLR2004 - nothing to sort
        return rules
    return sorted(rules, key=lambda rule: _LAYERS.index(rule.layer) if rule.layer in _LAYERS else 0)


def matches_tool(rule: Rule, tool: str) -> bool:
    """Check whether a rule matches this tool by name or prefix."""
    return rule.tool == tool or (rule.tool.endswith("*") and tool.startswith(rule.tool[:-1]))


def find_tool_rule(rules: tuple[Rule, ...], tool: str, unmatched: Decision = Decision.ALLOW, version: int = 1) -> Rule:
    """Return the rule of a tool that is not a shell. Configured rules come first; without a match it is `UNMATCHED`."""
    fitting = [rule for rule in sort_by_layer(rules) if not rule.command and matches_tool(rule, tool)]
    firm = next((rule for rule in fitting if not rule.tightens), None) or builtin.BY_TOOL.get(tool)
    if firm is None and version >= REWORDED:
        firm = mcp_tools.find_mcp_rule(tool)
    if firm is None:
        firm = next((rule for rule in builtin.BY_PREFIX if matches_tool(rule, tool)), UNMATCHED)
    return tighten_rule(apply_unmatched(firm, unmatched), next((rule for rule in fitting if rule.tightens), None))


def apply_unmatched(rule: Rule, decision: Decision) -> Rule:
    """Set the decision for calls that no rule matches. A configured rule of class unknown decides for itself."""
    if decision is Decision.ALLOW or not is_unmatched(rule):
        return rule
    return rule._replace(decision=decision, hint=_UNMATCHED_HINT)


def is_unmatched(rule: Rule) -> bool:
    """Check whether a call has this rule because no rule matches it, or because it cannot be parsed."""
    return rule.call_class is CallClass.UNKNOWN and rule.layer == BUILT_IN


def tighten_rule(rule: Rule, tightening: Rule | None) -> Rule:
    """Apply a tightening rule, which can only make the rule of a call stricter."""
    if tightening is None:
        return rule
    fewer = tightening.most is not None and (rule.most is None or tightening.most < rule.most)
    stricter = rank_class(tightening) > rank_class(rule) or rank_decision(tightening) > rank_decision(rule)
    if not stricter and not fewer:
        return rule
    laxer = rank_class(rule) <= rank_class(tightening) and rank_decision(rule) <= rank_decision(tightening)
    if laxer and rule.call_class is not CallClass.EFFECT and rule.most is None:
        return strip_claims(tightening)
    return merge_rules([rule, tightening])


def find_rule(rules: tuple[Rule, ...], name: str, unmatched: Decision = Decision.ALLOW) -> Rule:
    """Return the rule that admitted a call, by name; `UNMATCHED` if it is gone, so that nothing is assumed."""
    found = _find_by_name(rules, name)
    if found is not None:
        return strip_claims(found) if found.tightens else apply_unmatched(found, unmatched)
    if NAME_SEPARATOR not in name:
        return apply_unmatched(UNMATCHED, unmatched)
    parts = [apply_unmatched(rule, unmatched) for rule in split_merged_rules(rules, name)]
    last = name.rsplit(NAME_SEPARATOR, maxsplit=1)[-1]
    if last == CallClass.READ:
        return drop_exit_codes(parts[0])
    return merge_rules(parts, others=last == OTHER_COMMANDS)._replace(name=name)


def split_merged_rules(rules: tuple[Rule, ...], name: str) -> list[Rule]:
    """Return the rules whose names are joined in a name."""
    return [
        _find_by_name(rules, one) or UNMATCHED
        for one in name.split(NAME_SEPARATOR)
        if one not in _RESERVED - {UNMATCHED.name}
    ]


def _find_by_name(rules: tuple[Rule, ...], name: str) -> Rule | None:
    own = next((rule for rule in rules if rule.name == name), None)
    return own if own is not None else builtin.BY_NAME.get(name)


def parse_rule_tables(
    tables: object, source: str, lines: Sequence[int] = (), *, layer: str = "run"
) -> tuple[Rule, ...]:
    """Build rules from `[[rule]]` tables. Errors name the file, the rule and, if known, the line."""
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise PolicyError(f"{source}: a policy is a list of [[rule]] tables")
    places: list[str] = []
    for number, table in enumerate(tables, 1):
        line = f":{lines[number - 1]}" if number <= len(lines) else ""
        name = table.get("name", table.get("tool"))
        places.append(f"{source}{line}: rule {number}" + (f" '{name}'" if isinstance(name, str) else ""))
    rules = tuple(_parse_rule(table, place)._replace(layer=layer) for table, place in zip(tables, places, strict=True))
    taken = {*_RESERVED, *builtin.BY_NAME}
    for rule, place in zip(rules, places, strict=True):  # a call stores only the name of its rule
        if rule.name in taken:
            raise PolicyError(f"{place}: two rules are named '{rule.name}'; give each rule a unique 'name'")
        taken.add(rule.name)
    return rules


def _parse_rule(table: Mapping[str, Any], where: str) -> Rule:
    for word, value in table.items():
        if word not in _KEY_TYPES:
            raise PolicyError(f"{where}: unknown key '{word}' (known keys: {', '.join(_KEY_TYPES)})")
        if not _has_type(value, _KEY_TYPES[word]):
            raise PolicyError(f"{where}: '{word}' must be {_TYPE_NAMES[_KEY_TYPES[word]]}")
    try:
        rule = _build_rule(table)
    except (KeyError, ValueError) as error:
        raise PolicyError(f"{where}: {'missing ' if isinstance(error, KeyError) else ''}{error}") from None
    mistake = _find_mistake(rule)
    if mistake:
        raise PolicyError(f"{where}: {mistake}")
    return rule


def _has_type(value: object, shape: type | tuple[type, ...]) -> bool:
    """Check the type of a value; booleans are not integers here."""
    if shape == (str, list):
        return isinstance(value, str) or _has_type(value, (str,))
    if isinstance(shape, tuple):
        return isinstance(value, list) and all(_has_type(item, shape[0]) for item in value)
    if shape is dict:
        return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
    return isinstance(value, shape) and not isinstance(value, bool)


def _find_mistake(rule: Rule) -> str:
    """Return an error for a rule whose values have valid types; empty if it is valid."""
    if rule.replay in {Replay.EXACT, Replay.REPORT} and rule.call_class not in {CallClass.READ, CallClass.LOCAL}:
        return f"replay '{rule.replay}' is for reads and locals only; an effect is 'idempotent' or 'ask'"
    if "*" in rule.tool[:-1] or not (rule.tool or rule.command):
        return "'tool' must be a name, or a prefix that ends with *"
    if rule.most is not None and rule.most < 0:
        return "'max' must not be negative"
    if not rule.name.isprintable() or not rule.name.strip():
        return "'name' must be a single line of printable text"
    if NAME_SEPARATOR in rule.name:
        return f"'name' must not contain '{NAME_SEPARATOR}', which joins the names of merged rules"
    if rule.probe.startswith(PROBE_PREFIX) and rule.probe.removeprefix(PROBE_PREFIX) not in PROBE_NAMES:
        return f"unknown built-in probe '{rule.probe}'; known probes: {', '.join(sorted(PROBE_NAMES))}"
    return _find_command_mistake(rule) or _find_pattern_mistake(rule) or _find_field_mistake(rule)


def _find_command_mistake(rule: Rule) -> str:
    if any(not word.strip() or any(letter.isspace() for letter in word) for word in rule.command):
        return "'command' must be a program and its subcommands, such as \"git push\""
    if rule.command and rule.command[0].startswith("-"):
        return "'command' must start with a program, not with a flag"
    if (rule.having or rule.lacking) and not rule.command:
        return "'having' and 'lacking' require a 'command'"
    if any(not word for word in (*rule.having, *rule.lacking)):
        return "'having' and 'lacking' must not contain empty strings"
    return ""


def _find_field_mistake(rule: Rule) -> str:
    from jackline.policy import keys  # imported here: hashing is only needed for custom rules

    if any(brace in keys.remove_fields(rule.target) for brace in "{}"):
        return "'target' has an unmatched brace; use {to}, or {to|cc} for the first present field"
    return "" if all(rule.key) else "'key' must not contain empty strings"


def _find_pattern_mistake(rule: Rule) -> str:
    for name, pattern in rule.external:
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            return f"'external' {name}: invalid regular expression: {error}"
    return ""


def _check_choice(word: str, value: str, known: Iterable[str]) -> str:
    names = [str(one) for one in known]
    if value not in names:
        raise ValueError(f"'{word}' is '{value}'; use {', '.join(names[:-1])} or {names[-1]}")
    return value


def _build_rule(table: Mapping[str, Any]) -> Rule:
    kind = CallClass(_check_choice("class", table["class"], CallClass))
    effect, repeatable = kind is CallClass.EFFECT, kind in {CallClass.READ, CallClass.LOCAL}
    command = table.get("command", ())
    words = tuple(command.split() if isinstance(command, str) else command)
    if "command" in table and not words:
        raise ValueError("'command' is empty; use a program, such as \"git push\"")
    tool = table.get("tool", "") if words else table["tool"]
    return Rule(
        name=table.get("name", tool or " ".join(words)),
        tool=tool,
        call_class=kind,
        replay=Replay(
            _check_choice("replay", table.get("replay", Replay.REPORT if repeatable else Replay.ASK), Replay)
        ),
        decision=Decision(
            _check_choice("decision", table.get("decision", Decision.ASK if effect else Decision.ALLOW), _DECISIONS)
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
