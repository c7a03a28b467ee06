"""Parses policy files, reports every error with its line, and renders rules as TOML. Pure: it opens no file."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from jackline.domain.states import CallClass, Decision, Replay
from jackline.errors import PolicyError
from jackline.named import NamedTuple, stored_as, stored_dict
from jackline.policy.agreements import ALL_EFFECTS
from jackline.policy.rules import NAME_SEPARATOR, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

RULE = "rule"
_OPENING, _CLOSING = "[{", "]}"
_KEYS = {"call_class": "class", "most": "max"}  # where a field of a rule and its key in a file differ
_HIDDEN_FIELDS = frozenset({"layer", "tightens"})  # not part of a policy file
_ALWAYS_SHOWN = ("name", "call_class", "decision")
_REQUIRED = {"tool": "*", "class": "read"}  # required keys, filled in to find further errors in a rule without them


@stored_as("line text")
class PolicyMistake(NamedTuple):
    """One error in a policy; the line is 0 if unknown."""

    line: int
    text: str

    def format_error(self, source: str) -> str:
        """Format the error with its file and line."""
        return f"{source}:{self.line}: {self.text}" if self.line else f"{source}: {self.text}"


class ParsedPolicy(NamedTuple):
    """The rules of a text, and all its errors."""

    rules: tuple[Rule, ...]
    mistakes: tuple[PolicyMistake, ...] = ()


class RuleLines(NamedTuple):
    """The line where a rule begins, and the line of each of its keys."""

    line: int
    words: dict[str, int]


class PolicyLines(NamedTuple):
    """The lines of all rules in order, and of the other keys of the file."""

    rules: list[RuleLines]
    words: dict[str, int]


class _Statement(NamedTuple):
    """A table header or a `name = value`, possibly over several lines; `inner` has the lines of tables in its list."""

    line: int
    names: tuple[str, ...]
    is_header: bool
    is_list: bool
    inner: tuple[int, ...]


def parse_policy(text: str, layer: str) -> ParsedPolicy:
    """Parse the text of a policy file."""
    import tomllib

    text = _normalize_text(text)
    try:
        words: dict[str, Any] = tomllib.loads(text)
    except ValueError as error:
        return ParsedPolicy((), (_parse_toml_error(str(error), text),))
    except RecursionError:
        return ParsedPolicy((), (PolicyMistake(0, "the file is nested too deeply"),))
    lines = find_lines(text)
    strange = tuple(
        PolicyMistake(lines.words.get(word, 0), f"unknown key '{word}'; a policy is a list of [[rule]] tables")
        for word in words
        if word != RULE
    )
    parsed = _parse_tables(words.get(RULE, []), lines, layer)
    return ParsedPolicy(parsed.rules, tuple(sorted((*strange, *parsed.mistakes), key=lambda one: one.line)))


def parse_policy_tables(text: str, found: object, layer: str) -> ParsedPolicy:
    """Parse tables that were already read from TOML or, without line numbers, from JSON."""
    from jackline.domain.task import JSON, detect_job_format

    return _parse_tables(
        found, None if not found or detect_job_format(text) == JSON else find_lines(_normalize_text(text)), layer
    )


def require_valid(parsed: ParsedPolicy, source: str) -> tuple[Rule, ...]:
    """Return the rules of a valid text; otherwise raise PolicyError with the first error."""
    if parsed.mistakes:
        first, *more = parsed.mistakes
        raise PolicyError(first.format_error(source) + (f" (and {len(more)} more)" if more else ""))
    return parsed.rules


def _parse_toml_error(message: str, text: str) -> PolicyMistake:
    """Convert an error of `tomllib` into a mistake with a line number."""
    found = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", message)
    if found is None:
        return PolicyMistake(0, message)
    line = int(found[1]) if found[1] else text.count("\n") + (not text.endswith("\n"))
    return PolicyMistake(
        max(line, 1), message[: found.start()] + (f", column {found[2]}" if found[2] else ", at the end")
    )


def _normalize_text(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _parse_tables(tables: object, lines: PolicyLines | None, layer: str) -> ParsedPolicy:
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        line = lines.words.get(RULE, 0) if lines else 0
        return ParsedPolicy((), (PolicyMistake(line, "a policy is a list of [[rule]] tables"),))
    rules: list[Rule] = []
    taken: set[str] = set()
    mistakes: list[PolicyMistake] = []
    for number, table in enumerate(tables, 1):
        place = lines.rules[number - 1] if lines and number <= len(lines.rules) else None
        wrong = list(_find_mistakes(table))
        if not wrong:
            rule = _build_rule(table)._replace(layer=layer)
            clash = _find_name_clash(rule, taken)
            wrong = [("name", clash)] if clash else []
            rules.append(rule)
            taken.add(rule.name)
        for word, text in wrong:
            line = place.words.get(word, place.line) if place else 0
            mistakes.append(PolicyMistake(line, f"rule {number}{_describe_name(table)}: {text}"))
    return ParsedPolicy(tuple(rules), tuple(mistakes))


def _describe_name(table: Mapping[str, object]) -> str:
    name = table.get("name", table.get("tool"))
    return f" '{name}'" if isinstance(name, str) else ""


def _find_name_clash(rule: Rule, taken: set[str]) -> str:
    if rule.name in taken:
        return f"another rule is also named '{rule.name}'; give each rule a unique 'name'"
    if rule.name == ALL_EFFECTS or NAME_SEPARATOR in rule.name or "," in rule.name:
        reserved = f"'{ALL_EFFECTS}', and names with a comma or '{NAME_SEPARATOR}',"
        return f"{reserved} are reserved for --allow; choose another name"
    return ""


def _find_mistakes(table: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield all errors of a rule with their keys. Each key in error is corrected to find the next one."""
    rest = dict(table)
    for _ in range(len(table) + len(_REQUIRED)):
        try:
            _build_rule(rest)
        except PolicyError as error:
            message = str(error).removeprefix(": rule 1").removeprefix(_describe_name(rest)).removeprefix(": ")
        else:
            return
        # The message quotes the key or its value.
        by_value = {str(value): key for key, value in rest.items()}
        keys = (text if text in rest else by_value.get(text, "") for text in _find_quoted(message))
        word = next(filter(None, keys), "")
        yield word, message
        missing = "" if word else next((one for one in _find_quoted(message) if one in _REQUIRED), "")
        if not word and not missing:
            return
        rest.pop(word, None)
        rest |= {one: _REQUIRED[one] for one in (word, missing) if one in _REQUIRED}


def _build_rule(table: dict[str, Any]) -> Rule:
    from jackline.policy import rule_lookup  # imported here: it loads all built-in rules

    return rule_lookup.parse_rule_tables([table], "")[0]


def _find_quoted(message: str) -> list[str]:
    return message.split("'")[1::2]


# --- the lines of rules and keys, for errors


def find_lines(text: str) -> PolicyLines:
    """Find the lines of everything that an error may be about."""
    found = PolicyLines([], {})
    here: tuple[str, ...] = ()  # the current table
    for statement in _split_statements(text):
        if statement.is_header:
            here = statement.names
            _add_header(statement, found)
        elif here == (RULE,) and found.rules:
            found.rules[-1].words.setdefault(statement.names[0], statement.line)
        elif not here:
            found.words.setdefault(statement.names[0], statement.line)
            found.rules.extend(RuleLines(line, {}) for line in statement.inner if statement.names == (RULE,))
    return found


def _add_header(statement: _Statement, found: PolicyLines) -> None:
    if statement.names == (RULE,) and statement.is_list:
        found.rules.append(RuleLines(statement.line, {}))
    elif statement.names[0] == RULE and len(statement.names) > 1 and found.rules:
        found.rules[-1].words.setdefault(statement.names[1], statement.line)
    else:
        found.words.setdefault(statement.names[0], statement.line)


@cache
def _compile_token() -> re.Pattern[str]:
    # A string or a comment is one token, so a [[rule]] inside it does not count.
    return re.compile(
        r'''
    """(?:\\.|[^\\])*?""""{0,2}  # multi-line string; quotes may precede its end
    | "(?:\\.|[^"\\\n])*"
    | \#[^\n]*
    | [\[\]{}=\n.]
    | [^\[\]{}=\n."'\#]+
    '''
        r"""
    | '''.*?''''{0,2}  # the same without escapes
    | '[^'\n]*'
    """,
        re.DOTALL | re.VERBOSE,
    )


def _split_statements(text: str) -> Iterator[_Statement]:
    """Split the text into statements: a line break ends one unless a bracket is open."""
    kept: list[tuple[str, int]] = []
    depth, line = 0, 1
    for found in _compile_token().finditer(text):
        piece = found[0]
        depth += (piece in _OPENING) - (piece in _CLOSING)
        if piece == "\n" and depth == 0:
            yield from _parse_statement(kept)
            kept = []
        elif piece.strip() and not piece.startswith("#"):
            kept.append((piece, line))
        line += piece.count("\n")
    yield from _parse_statement(kept)


def _parse_statement(pieces: list[tuple[str, int]]) -> Iterator[_Statement]:
    if not pieces:
        return
    texts = [piece for piece, _ in pieces]
    is_header = texts[0] == "["
    head = texts if is_header else texts[: texts.index("=")]
    names = tuple(piece[1:-1] if piece[:1] in {'"', "'"} else piece.strip() for piece in head if piece not in "[].")
    inner = () if is_header else tuple(_find_table_lines(pieces[len(head) + 1 :]))
    yield _Statement(line=pieces[0][1], names=names, is_header=is_header, is_list=texts[:2] == ["[", "["], inner=inner)


def _find_table_lines(pieces: list[tuple[str, int]]) -> Iterator[int]:
    """Yield the lines on which the tables of `rule = [{...}, {...}]` begin."""
    depth = 0
    for piece, line in pieces:
        if piece == "{" and depth == 1:
            yield line
        depth += (piece in _OPENING) - (piece in _CLOSING)


# --- rendering


def render_toml(rules: Sequence[Rule]) -> str:
    """Render all rules, with a heading for each layer."""
    parts: list[str] = []
    layer = ""
    for rule in rules:
        if rule.layer != layer:
            layer = rule.layer
            parts.append(_render_heading(rule))
        parts.append(_render_table(rule))
    return "\n\n".join(parts)


def build_record(rule: Rule) -> dict[str, object]:
    """Build the JSON record of a rule, with the keys of a policy file."""
    record = {_KEYS.get(name, name): value for name, value in stored_dict(rule).items()}
    return {**record, "external": dict(rule.external)}


def _render_heading(rule: Rule) -> str:
    only = " (they can only tighten, because this project is not trusted)" if rule.tightens else ""
    own = " (to change one, copy it into your own policy under another name)" if rule.layer == "built-in" else ""
    return f"# rules of the layer {rule.layer}{only}{own}"


def _render_table(rule: Rule) -> str:
    repeats = rule.call_class in {CallClass.READ, CallClass.LOCAL}
    defaults = Rule(
        name=rule.name,
        tool="",
        call_class=rule.call_class,
        replay=Replay.REPORT if repeats else Replay.ASK,
        decision=Decision.ASK if rule.call_class is CallClass.EFFECT else Decision.ALLOW,
    )
    hidden = stored_dict(defaults)
    lines = ["[[rule]]"]
    for name, value in stored_dict(rule).items():
        if name not in _HIDDEN_FIELDS and (name in _ALWAYS_SHOWN or value != hidden[name]):
            lines.append(f"{_KEYS.get(name, name)} = {_render_value(name, value)}")
    if rule.tool or rule.command:
        return "\n".join(lines)
    # A policy file cannot express this rule: it matches by the path that a call changes.
    return "\n".join(("# matches by the changed path, not by a tool or command", *(f"# {line}" for line in lines)))


def _render_value(name: str, value: object) -> str:
    if name == "external" and isinstance(value, tuple):
        return "{ " + ", ".join(f"{_quote_text(one)} = {_quote_text(pattern)}" for one, pattern in value) + " }"
    if isinstance(value, tuple):
        return "[" + ", ".join(_render_value("", one) for one in value) + "]"
    return _quote_text(value) if isinstance(value, str) else str(value)


def _quote_text(value: str) -> str:
    """Quote a string: a JSON string is a TOML string, except that TOML requires DEL to be escaped."""
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
