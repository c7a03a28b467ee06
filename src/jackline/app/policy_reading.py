"""The text of a policy as rules, with every mistake and its line. It opens no file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.domain.combining import JOINED
from jackline.domain.permission import EFFECTS
from jackline.errors import PolicyError
from jackline.named import NamedTuple, stored_as

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jackline.domain.policy_lines import Lines
    from jackline.domain.rule import Rule

_GOOD = {"tool": "*", "class": "read"}  # what every rule must have, for looking at the rest of one that has not


@stored_as("line text")
class Mistake(NamedTuple):
    """One thing that is wrong with a policy; the line is 0 where nobody can say."""

    line: int
    text: str

    def told(self, source: str) -> str:
        """For a person who wants to mend it."""
        return f"{source}:{self.line}: {self.text}" if self.line else f"{source}: {self.text}"


class Parsed(NamedTuple):
    """The rules of one text, and everything that is wrong with it."""

    rules: tuple[Rule, ...]
    mistakes: tuple[Mistake, ...] = ()


def parse(text: str, layer: str) -> Parsed:
    """The rules in the text of a policy file."""
    import tomllib

    text = _plain(text)
    try:
        words: dict[str, Any] = tomllib.loads(text)
    except ValueError as error:
        return Parsed((), (_syntax(str(error), text),))
    except RecursionError:
        return Parsed((), (Mistake(0, "it is nested too deeply"),))
    lines = _lines(text)
    strange = tuple(
        Mistake(lines.words.get(word, 0), f"unknown word '{word}': a policy is a list of [[rule]] tables")
        for word in words
        if word != "rule"
    )
    parsed = _judged(words.get("rule", []), lines, layer)
    return Parsed(parsed.rules, tuple(sorted((*strange, *parsed.mistakes), key=lambda one: one.line)))


def tables(text: str, found: object, layer: str) -> Parsed:
    """The rules in tables that were read already, out of a text in TOML or, without lines, in JSON."""
    from jackline.domain.job import JSON, language

    return _judged(found, None if not found or language(text) == JSON else _lines(_plain(text)), layer)


def good(parsed: Parsed, source: str) -> tuple[Rule, ...]:
    """The rules of a text that has no mistakes; PolicyError names the first."""
    if parsed.mistakes:
        first, *more = parsed.mistakes
        raise PolicyError(first.told(source) + (f" (and {len(more)} more)" if more else ""))
    return parsed.rules


def _lines(text: str) -> Lines:
    from jackline.domain.policy_lines import lines_of

    return lines_of(text)


def _syntax(said: str, text: str) -> Mistake:
    """What the reader of TOML says, with its line in front."""
    import re

    found = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", said)
    if found is None:
        return Mistake(0, said)
    line = int(found[1]) if found[1] else text.count("\n") + (not text.endswith("\n"))
    return Mistake(max(line, 1), said[: found.start()] + (f", column {found[2]}" if found[2] else ", at its end"))


def _plain(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _judged(tables: object, lines: Lines | None, layer: str) -> Parsed:
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        line = lines.words.get("rule", 0) if lines else 0
        return Parsed((), (Mistake(line, "a policy is a list of [[rule]] tables"),))
    rules: list[Rule] = []
    taken: set[str] = set()
    mistakes: list[Mistake] = []
    for number, table in enumerate(tables, 1):
        place = lines.rules[number - 1] if lines and number <= len(lines.rules) else None
        wrong = list(_mistakes(table))
        for word, text in wrong:
            line = place.words.get(word, place.line) if place else 0
            mistakes.append(Mistake(line, f"rule {number}{_named(table)}: {text}"))
        if not wrong:
            rule = _rules([table])[0]._replace(layer=layer)
            clash = _clash(rule, taken)
            if clash:
                line = place.words.get("name", place.line) if place else 0
                mistakes.append(Mistake(line, f"rule {number}{_named(table)}: {clash}"))
            rules.append(rule)
            taken.add(rule.name)
    return Parsed(tuple(rules), tuple(mistakes))


def _named(table: Mapping[str, object]) -> str:
    name = table.get("name", table.get("tool"))
    return f" '{name}'" if isinstance(name, str) else ""


def _clash(rule: Rule, taken: set[str]) -> str:
    if rule.name in taken:
        return f"another rule is named '{rule.name}', too: give each a 'name' of its own"
    if rule.name == EFFECTS or JOINED in rule.name or "," in rule.name:
        return f"'{EFFECTS}', and a name with a comma or '{JOINED}', means something else to --allow: choose another"
    return ""


def _mistakes(table: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """All that is wrong with a rule, each with its word: what was told is put right, to see the rest."""
    rest = dict(table)
    for _ in range(len(table) + len(_GOOD)):
        said = _first_mistake(rest)
        if not said:
            return
        word = _word_in(said, rest)
        yield word, said
        missing = "" if word else next((one for one in _quoted(said) if one in _GOOD), "")
        if not word and not missing:
            return
        rest.pop(word, None)
        rest |= {one: _GOOD[one] for one in (word, missing) if one in _GOOD}


def _first_mistake(table: dict[str, Any]) -> str:
    try:
        _rules([table])
    except PolicyError as error:
        return str(error).removeprefix(": ").removeprefix("rule 1").removeprefix(_named(table)).removeprefix(": ")
    return ""


def _rules(tables: list[dict[str, Any]]) -> tuple[Rule, ...]:
    from jackline.domain import policy  # with all that is built in: a run without files of its own does not wait for it

    return policy.from_tables(tables, "")


def _word_in(said: str, table: Mapping[str, object]) -> str:
    """Which word of a rule a message is about: it quotes the word, or the value."""
    by_value = {str(value): word for word, value in table.items()}
    words = (text if text in table else by_value.get(text, "") for text in _quoted(said))
    return next(filter(None, words), "")


def _quoted(said: str) -> list[str]:
    return said.split("'")[1::2]
