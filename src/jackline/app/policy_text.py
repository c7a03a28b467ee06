"""Renders rules as TOML that parses back to the same rules. It writes no file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from jackline.domain.rule import Rule
from jackline.domain.states import CallClass, Decision, Replay

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_KEYS = {"call_class": "class", "most": "max"}  # where a field of a rule and its key in a file differ
_HIDDEN_FIELDS = frozenset({"layer", "tightens"})  # not part of a policy file
_ALWAYS_SHOWN = ("name", "call_class", "decision")


def toml_of(rules: Sequence[Rule]) -> str:
    """Render all rules, with a heading for each layer."""
    parts: list[str] = []
    layer = ""
    for rule in rules:
        if rule.layer != layer:
            layer = rule.layer
            parts.append(_render_heading(rule))
        parts.append(_render_table(rule))
    return "\n\n".join(parts)


def record_of(rule: Rule) -> dict[str, object]:
    """Build the JSON record of a rule, with the keys of a policy file."""
    record = {_KEYS.get(name, name): value for name, value in rule._asdict().items()}
    return {**record, "external": dict(rule.external)}


def _render_heading(rule: Rule) -> str:
    only = " (they can only tighten, because this project is not trusted)" if rule.tightens else ""
    own = " (to change one, copy it into your own policy under another name)" if rule.layer == "built-in" else ""
    return f"# rules of the layer {rule.layer}{only}{own}"


def _render_table(rule: Rule) -> str:
    text = "\n".join(("[[rule]]", *_render_lines(rule)))
    if rule.tool or rule.command:
        return text
    # A policy file cannot express this rule: it matches by the path that a call changes.
    return "\n".join(
        ("# matches by the changed path, not by a tool or command", *(f"# {line}" for line in text.splitlines()))
    )


def _render_lines(rule: Rule) -> Iterator[str]:
    plain = _build_defaults(rule)
    for name, value in rule._asdict().items():
        if name not in _HIDDEN_FIELDS and (name in _ALWAYS_SHOWN or value != plain[name]):
            yield f"{_KEYS.get(name, name)} = {_render_value(name, value)}"


def _build_defaults(rule: Rule) -> Mapping[str, object]:
    """Return the defaults of a rule of this class."""
    repeats = rule.call_class in {CallClass.READ, CallClass.LOCAL}
    effect = rule.call_class is CallClass.EFFECT
    return Rule(
        rule.name,
        "",
        rule.call_class,
        Replay.EXACT if repeats else Replay.ASK,
        Decision.ASK if effect else Decision.ALLOW,
    )._asdict()


def _render_value(name: str, value: object) -> str:
    if name == "external" and isinstance(value, tuple):
        return "{ " + ", ".join(f"{_quote_text(one)} = {_quote_text(pattern)}" for one, pattern in value) + " }"
    if isinstance(value, tuple):
        return "[" + ", ".join(_render_value("", one) for one in value) + "]"
    return _quote_text(value) if isinstance(value, str) else str(value)


def _quote_text(value: str) -> str:
    """Quote a string: a JSON string is a TOML string, except that TOML requires DEL to be escaped."""
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
