"""Parses the text of a policy into rules, and reports every error with its line. It opens no file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.domain.combining import JOINED
from jackline.domain.permission import EFFECTS
from jackline.domain.policy_lines import lines_of
from jackline.errors import PolicyError
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jackline.domain.policy_lines import Lines
    from jackline.domain.rule import Rule

_REQUIRED = {"tool": "*", "class": "read"}  # required keys, filled in to find further errors in a rule without them


class Mistake(NamedTuple):
    """One error in a policy; the line is 0 if unknown."""

    line: int
    text: str

    def told(self, source: str) -> str:
        """Format the error with its file and line."""
        return f"{source}:{self.line}: {self.text}" if self.line else f"{source}: {self.text}"


class Parsed(NamedTuple):
    """The rules of a text, and all its errors."""

    rules: tuple[Rule, ...]
    mistakes: tuple[Mistake, ...] = ()


def parse(text: str, layer: str) -> Parsed:
    """Parse the text of a policy file."""
    import tomllib

    text = _normalize_text(text)
    try:
        words: dict[str, Any] = tomllib.loads(text)
    except ValueError as error:
        return Parsed((), (_parse_toml_error(str(error), text),))
    except RecursionError:
        return Parsed((), (Mistake(0, "the file is nested too deeply"),))
    lines = lines_of(text)
    strange = tuple(
        Mistake(lines.words.get(word, 0), f"unknown key '{word}'; a policy is a list of [[rule]] tables")
        for word in words
        if word != "rule"
    )
    parsed = _parse_tables(words.get("rule", []), lines, layer)
    return Parsed(parsed.rules, tuple(sorted((*strange, *parsed.mistakes), key=lambda one: one.line)))


def tables(text: str, found: object, layer: str) -> Parsed:
    """Parse tables that were already read from TOML or, without line numbers, from JSON."""
    from jackline.domain.job import JSON, language

    return _parse_tables(found, None if not found or language(text) == JSON else lines_of(_normalize_text(text)), layer)


def good(parsed: Parsed, source: str) -> tuple[Rule, ...]:
    """Return the rules of a valid text; otherwise raise PolicyError with the first error."""
    if parsed.mistakes:
        first, *more = parsed.mistakes
        raise PolicyError(first.told(source) + (f" (and {len(more)} more)" if more else ""))
    return parsed.rules


def _parse_toml_error(said: str, text: str) -> Mistake:
    """Convert an error of `tomllib` into a mistake with a line number."""
    import re

    found = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", said)
    if found is None:
        return Mistake(0, said)
    line = int(found[1]) if found[1] else text.count("\n") + (not text.endswith("\n"))
    return Mistake(max(line, 1), said[: found.start()] + (f", column {found[2]}" if found[2] else ", at the end"))


def _normalize_text(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _parse_tables(tables: object, lines: Lines | None, layer: str) -> Parsed:
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        line = lines.words.get("rule", 0) if lines else 0
        return Parsed((), (Mistake(line, "a policy is a list of [[rule]] tables"),))
    rules: list[Rule] = []
    taken: set[str] = set()
    mistakes: list[Mistake] = []
    for number, table in enumerate(tables, 1):
        place = lines.rules[number - 1] if lines and number <= len(lines.rules) else None
        wrong = list(_find_mistakes(table))
        for word, text in wrong:
            line = place.words.get(word, place.line) if place else 0
            mistakes.append(Mistake(line, f"rule {number}{_describe_name(table)}: {text}"))
        if not wrong:
            rule = _build_rules([table])[0]._replace(layer=layer)
            clash = _find_name_clash(rule, taken)
            if clash:
                line = place.words.get("name", place.line) if place else 0
                mistakes.append(Mistake(line, f"rule {number}{_describe_name(table)}: {clash}"))
            rules.append(rule)
            taken.add(rule.name)
    return Parsed(tuple(rules), tuple(mistakes))


def _describe_name(table: Mapping[str, object]) -> str:
    name = table.get("name", table.get("tool"))
    return f" '{name}'" if isinstance(name, str) else ""


def _find_name_clash(rule: Rule, taken: set[str]) -> str:
    if rule.name in taken:
        return f"another rule is also named '{rule.name}'; give each rule a unique 'name'"
    if rule.name == EFFECTS or JOINED in rule.name or "," in rule.name:
        return f"'{EFFECTS}', and names with a comma or '{JOINED}', are reserved for --allow; choose another name"
    return ""


def _find_mistakes(table: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield all errors of a rule with their keys. Each key in error is corrected to find the next one."""
    rest = dict(table)
    for _ in range(len(table) + len(_REQUIRED)):
        said = _find_first_mistake(rest)
        if not said:
            return
        word = _find_key(said, rest)
        yield word, said
        missing = "" if word else next((one for one in _find_quoted(said) if one in _REQUIRED), "")
        if not word and not missing:
            return
        rest.pop(word, None)
        rest |= {one: _REQUIRED[one] for one in (word, missing) if one in _REQUIRED}


def _find_first_mistake(table: dict[str, Any]) -> str:
    try:
        _build_rules([table])
    except PolicyError as error:
        return (
            str(error).removeprefix(": ").removeprefix("rule 1").removeprefix(_describe_name(table)).removeprefix(": ")
        )
    return ""


def _build_rules(tables: list[dict[str, Any]]) -> tuple[Rule, ...]:
    from jackline.domain import policy  # imported here: it loads all built-in rules

    return policy.from_tables(tables, "")


def _find_key(said: str, table: Mapping[str, object]) -> str:
    """Return the key that a message is about, which quotes the key or its value."""
    by_value = {str(value): word for word, value in table.items()}
    words = (text if text in table else by_value.get(text, "") for text in _find_quoted(said))
    return next(filter(None, words), "")


def _find_quoted(said: str) -> list[str]:
    return said.split("'")[1::2]
