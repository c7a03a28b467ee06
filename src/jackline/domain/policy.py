"""Rules: which tool calls are effects, what they touch, how they are told apart, and what may be done after a crash.

A rule matches by tool name. Reading TOML is done here from text that was read elsewhere; nothing here does I/O.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.domain.rule import Rule
from jackline.domain.states import CallClass, Decision, Replay
from jackline.errors import PolicyError

if TYPE_CHECKING:
    from collections.abc import Mapping


UNKNOWN = Rule(name="unmatched", tool="*", call_class=CallClass.UNKNOWN)
BUILT_IN: tuple[Rule, ...] = tuple(
    Rule(name=f"builtin.{tool}", tool=tool, call_class=kind, replay=Replay.EXACT)
    for kind, tools in {
        CallClass.READ: ("read", "Read", "list", "LS", "grep", "Grep", "glob", "Glob"),
        CallClass.LOCAL: ("edit", "Edit", "write", "Write", "commit"),
    }.items()
    for tool in tools
)
_WORDS: dict[str, type | tuple[type]] = {
    "name": str, "tool": str, "class": str, "replay": str, "decision": str, "key": (str,), "target": str,
    "probe": str, "nothing_happened": (int,), "max": int,
}  # fmt: skip
_SHAPES: dict[type | tuple[type], str] = {
    str: "text", int: "a whole number", (str,): "a list of texts", (int,): "a list of whole numbers",
}  # fmt: skip


def match(rules: tuple[Rule, ...], tool: str) -> Rule:
    """The run's own rules before the built-in ones; `unknown` when nothing matches."""
    for rule in (*rules, *BUILT_IN):
        if rule.tool == tool or (rule.tool.endswith("*") and tool.startswith(rule.tool[:-1])):
            return rule
    return UNKNOWN


def named(rules: tuple[Rule, ...], name: str) -> Rule:
    """The rule that a call was admitted by; `unknown` if it is gone, so that nothing is assumed of the call."""
    return next((rule for rule in (*rules, *BUILT_IN) if rule.name == name), UNKNOWN)


def from_tables(tables: object, source: str) -> tuple[Rule, ...]:
    """Rules from the `[[rule]]` tables of a policy file; a mistake names the file and the rule."""
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        message = f"{source}: a policy is a list of [[rule]] tables"
        raise PolicyError(message)
    rules = tuple(_rule(table, _where(table, source, number)) for number, table in enumerate(tables, 1))
    taken = {UNKNOWN.name, *(rule.name for rule in BUILT_IN)}
    for rule in rules:  # a call remembers its rule by name alone
        if rule.name in taken:
            message = f"{source}: two rules are named '{rule.name}'; give each a 'name' of its own"
            raise PolicyError(message)
        taken.add(rule.name)
    return rules


def _where(table: Mapping[str, Any], source: str, number: int) -> str:
    name = table.get("name", table.get("tool"))
    return f"{source}: rule {number}" + (f" '{name}'" if isinstance(name, str) else "")


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


def _is_shaped(value: object, shape: type | tuple[type]) -> bool:
    """Whether a value is what its word wants; true and false are not numbers here."""
    if isinstance(shape, tuple):
        return isinstance(value, list) and all(_is_shaped(item, shape[0]) for item in value)
    return isinstance(value, shape) and not isinstance(value, bool)


def _mistake(rule: Rule) -> str:
    """What is wrong with a rule whose words are all well formed; empty if nothing is."""
    if rule.replay is Replay.EXACT and rule.call_class not in {CallClass.READ, CallClass.LOCAL}:
        return "replay 'exact' is for reads and locals only; an effect is 'idempotent' or 'ask'"
    if rule.decision is Decision.STORED:
        return "decision 'stored' is the gate's own word; a rule says 'allow', 'deny' or 'ask'"
    if not rule.tool or "*" in rule.tool[:-1]:
        return "'tool' is a name, or the beginning of one with a * at its end"
    if rule.most is not None and rule.most < 0:
        return "'max' must not be negative"
    return ""


def _build(table: Mapping[str, Any]) -> Rule:
    kind = CallClass(table["class"])
    effect, repeatable = kind is CallClass.EFFECT, kind in {CallClass.READ, CallClass.LOCAL}
    return Rule(
        name=table.get("name", table["tool"]),
        tool=table["tool"],
        call_class=kind,
        replay=Replay(table.get("replay", Replay.EXACT if repeatable else Replay.ASK)),
        decision=Decision(table.get("decision", Decision.ASK if effect else Decision.ALLOW)),
        key=tuple(table.get("key", ())),
        target=table.get("target", ""),
        probe=table.get("probe", ""),
        nothing_happened=tuple(table.get("nothing_happened", ())),
        most=table.get("max"),
    )
