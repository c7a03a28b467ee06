"""Rules as the TOML that would be read as these very rules: for showing them, and for pasting them. Writes no file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from jackline.domain.rule import Rule
from jackline.domain.states import CallClass, Decision, Replay
from jackline.named import stored_dict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_WORDS = {"call_class": "class", "most": "max"}  # where a field of a rule and its word differ
_NO_WORDS = frozenset({"layer", "tightens"})  # they say where a rule stands, and no file says that
_JUDGED = "are judged by what they touch, not by a name"
_ALWAYS = ("name", "call_class", "decision")


def toml_of(rules: Sequence[Rule]) -> str:
    """All of them, each with the layer it comes from where that changes."""
    parts: list[str] = []
    layer = ""
    for rule in rules:
        if rule.layer != layer:
            layer = rule.layer
            parts.append(_heading(rule))
        parts.append(_table(rule))
    return "\n\n".join(parts)


def record_of(rule: Rule) -> dict[str, object]:
    """A rule for programs, by the words that a file uses."""
    told = {_WORDS.get(name, name): value for name, value in stored_dict(rule).items()}
    return {**told, "external": dict(rule.external)}


def _heading(rule: Rule) -> str:
    only = ": they only tighten, because nobody trusts this project" if rule.tightens else ""
    own = ": to change one, copy it into your own policy and give it another name" if rule.layer == "built-in" else ""
    return f"# rules of the layer {rule.layer}{only}{own}"


def _table(rule: Rule) -> str:
    text = "\n".join(("[[rule]]", *_lines(rule)))
    if rule.tool or rule.command:
        return text
    # No file can say this: it is found by what a call touches.
    return "\n".join((f"# for calls that {_JUDGED}", *(f"# {line}" for line in text.splitlines())))


def _lines(rule: Rule) -> Iterator[str]:
    plain = _defaults(rule)
    for name, value in stored_dict(rule).items():
        if name not in _NO_WORDS and (name in _ALWAYS or value != plain[name]):
            yield f"{_WORDS.get(name, name)} = {_value(name, value)}"


def _defaults(rule: Rule) -> Mapping[str, object]:
    """What a file's rule of this class is if it says nothing else."""
    repeats = rule.call_class in {CallClass.READ, CallClass.LOCAL}
    effect = rule.call_class is CallClass.EFFECT
    assumed = Rule(
        rule.name,
        "",
        rule.call_class,
        Replay.EXACT if repeats else Replay.ASK,
        Decision.ASK if effect else Decision.ALLOW,
    )
    return stored_dict(assumed)


def _value(name: str, value: object) -> str:
    if name == "external" and isinstance(value, tuple):
        return "{ " + ", ".join(f"{_text(one)} = {_text(pattern)}" for one, pattern in value) + " }"
    if isinstance(value, tuple):
        return "[" + ", ".join(_value("", one) for one in value) + "]"
    return _text(value) if isinstance(value, str) else str(value)


def _text(value: str) -> str:
    """A string of JSON is one of TOML; only DEL, which JSON leaves as it is, must be escaped."""
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
