"""A task: a template for runs, read from the text of a Markdown file with front matter. Pure: no file is opened here.

The front matter is the small part of YAML that people write: `key: value` lines between two `---` lines. Whatever
could mean something else in real YAML (nesting, blocks, anchors) is refused, never guessed.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from jackline.domain.events import NOTHING
from jackline.errors import UsageError
from jackline.named import NamedTuple, stored_as

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


if TYPE_CHECKING:
    Setting = int | float | str

FENCE = "---"
MODES = ("job", "interactive")
PROJECT, USER, BUILT_IN = "project", "user", "built in"  # whose a task is
GIVEN = ("workspace", "task")  # variables that every task has
_TEXTS = ("description", "agent", "model", "effort", "proof", "mode")
_LISTS = ("agents", "fallback", "allow")
_SWITCHES = ("requires_commit", "requires_clean")
_VARIABLE = "var."
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_LINE = re.compile(r"([A-Za-z_][\w.-]*)[ \t]*:(?:[ \t]+(.*))?")
_COMMENT = re.compile(r"(?:^|[ \t])#.*$")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_CHOICES = ("true", "false", "allow", "deny")  # what a setting may be besides a number
_NOT_PLAIN = tuple("|>&*!%@`{}[]\"'")
_PLACES = re.compile(rf"\{{\{{({_NAME})\}}\}}|\{{({_NAME})\}}")


@stored_as(
    "name prompt source description agent fallback model effort proof mode requires_commit requires_clean settings "
    "variables origin allow"
)
class Task(NamedTuple):
    """What a task file says; what is empty is left to the flags and settings."""

    name: str
    prompt: str
    source: str
    description: str = ""
    agent: str = ""
    fallback: tuple[str, ...] = ()
    model: str = ""
    effort: str = ""
    proof: str = ""
    mode: str = "job"
    requires_commit: bool = False
    requires_clean: bool = False
    settings: Mapping[str, Setting] = NOTHING
    variables: Mapping[str, str] = NOTHING  # with their defaults
    origin: str = ""  # whose it is
    allow: tuple[str, ...] = ()  # rules whose asking is answered beforehand

    @property
    def needs(self) -> tuple[str, ...]:
        """The variables that have no default and must be given."""
        named = dict.fromkeys(found[2] for found in _PLACES.finditer(self.prompt) if found[2])
        return tuple(name for name in named if name not in self.variables and name not in GIVEN)


class _Word(NamedTuple):
    """One line of front matter."""

    name: str
    value: str
    where: str


def parse(name: str, text: str, source: str, settings: Sequence[str] = ()) -> Task:
    """The task in a file's text; a mistake names the file and the line. `settings` are the names it may set."""
    head, prompt = _split(text.removeprefix("\ufeff").replace("\r\n", "\n"), source)
    words = list(_words(head, source))
    known = (*_TEXTS, *_LISTS, *_SWITCHES, *settings)
    seen: set[str] = set()
    for word in words:
        _refuse(word, known, seen)
        seen.add(word.name)
    texts = {word.name: _text(word) for word in words if word.name in _TEXTS}
    lists = {word.name: _list(word) for word in words if word.name in _LISTS}
    switches = {word.name: _switch(word) for word in words if word.name in _SWITCHES}
    numbers = {word.name: _setting(word) for word in words if word.name in settings}
    variables = {word.name[len(_VARIABLE) :]: _text(word) for word in words if word.name.startswith(_VARIABLE)}
    if texts.get("mode", MODES[0]) not in MODES:
        raise UsageError(f"{source}: mode must be {' or '.join(MODES)}, not '{texts['mode']}'")
    agents = {**texts, **_agents(lists, texts, source)}
    return Task(
        name=name, prompt=prompt.strip(), source=source, settings=numbers, variables=variables, **{**agents, **switches}
    )


def fill(task: Task, given: Mapping[str, str], known: Mapping[str, str]) -> str:
    """The prompt with its variables filled: `{name}`; `{{name}}` stays as `{name}`, and so does every other brace."""
    named = {*task.variables, *task.needs}
    for name in given:
        if name not in named:
            said = f"it has {', '.join(sorted(named))}" if named else "it has none"
            raise UsageError(f"task '{task.name}' has no variable '{name}': {said}")
    values = {**task.variables, **given, **{name: known[name] for name in GIVEN}}
    missing = [name for name in task.needs if name not in given]
    if missing:
        flags = " ".join(f"--var {name}=VALUE" for name in missing)
        raise UsageError(f"task '{task.name}' wants to know {', '.join(missing)}: add {flags}")
    return _PLACES.sub(lambda found: f"{{{found[1]}}}" if found[1] else values[found[2]], task.prompt)


def _split(text: str, source: str) -> tuple[list[str], str]:
    lines = text.split("\n")
    if lines[0].rstrip() != FENCE:
        return [], text
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == FENCE:
            return lines[1:number], "\n".join(lines[number + 1 :])
    raise UsageError(f"{source}: the front matter has no end: close it with a line of {FENCE}")


def _words(lines: list[str], source: str) -> Iterator[_Word]:
    for number, line in enumerate(lines, 2):
        where = f"{source}, line {number}"
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _LINE.fullmatch(line.rstrip())
        if found is None:
            hint = "a list is written [a, b]" if line.lstrip().startswith("- ") else "write `key: value`, not indented"
            raise UsageError(f"{where}: '{line.strip()[:60]}' cannot be read: {hint}")
        yield _Word(name=found[1], value=(found[2] or "").strip(), where=where)


def _refuse(word: _Word, known: Sequence[str], seen: set[str]) -> None:
    if word.name in seen:
        raise UsageError(f"{word.where}: '{word.name}' is said twice")
    if word.name.startswith(_VARIABLE):
        variable = word.name[len(_VARIABLE) :]
        if not re.fullmatch(_NAME, variable) or variable in GIVEN:
            taken = "is filled by jackline itself" if variable in GIVEN else "is no name: use letters, digits and _"
            raise UsageError(f"{word.where}: '{variable}' {taken}")
    elif word.name not in known:
        raise UsageError(f"{word.where}: unknown key '{word.name}'; known are {', '.join(known)}, var.NAME")


def _text(word: _Word) -> str:
    """Plain or quoted text; what YAML would read as something else has to be quoted."""
    value = word.value
    if value[:1] == '"':
        try:
            return str(json.loads(_COMMENT.sub("", value) if not value.endswith('"') else value))
        except ValueError:
            raise UsageError(f"{word.where}: {word.name} has a quote that does not end") from None
    if value[:1] == "'" and value.endswith("'") and len(value) > 1:
        return value[1:-1].replace("''", "'")
    value = _COMMENT.sub("", value).strip()
    if value.startswith(_NOT_PLAIN):
        raise UsageError(f'{word.where}: {word.name} begins with {value[0]}: put it between double quotes ("...")')
    return value


def _list(word: _Word) -> tuple[str, ...]:
    value = _COMMENT.sub("", word.value).strip()
    if not (value.startswith("[") and value.endswith("]")):
        raise UsageError(f"{word.where}: {word.name} is a list: write [a, b]")
    items = [item.strip() for item in value[1:-1].split(",")]
    return tuple(_text(word._replace(value=item)) for item in items if item)


def _switch(word: _Word) -> bool:
    value = _COMMENT.sub("", word.value).strip()
    if value not in {"true", "false"}:
        raise UsageError(f"{word.where}: {word.name} is true or false, not '{value}'")
    return value == "true"


def _setting(word: _Word) -> Setting:
    """A number, or one of few words; whether it fits the setting is judged where settings are loaded."""
    value = _text(word)
    if value in _CHOICES:
        return value
    if not _NUMBER.fullmatch(value):
        raise UsageError(f"{word.where}: {word.name} is a number, not '{value}'")
    return float(value) if "." in value else int(value)


def _agents(lists: Mapping[str, tuple[str, ...]], texts: Mapping[str, str], source: str) -> dict[str, Any]:
    """`agents` is short for an agent and its fallback."""
    if "agents" not in lists:
        return dict(lists)
    rest = {name: names for name, names in lists.items() if name != "agents"}
    if "agent" in texts or "fallback" in lists:
        raise UsageError(f"{source}: say either 'agents', or 'agent' and 'fallback'")
    agents = lists["agents"]
    return {**rest, "agent": agents[0] if agents else "", "fallback": agents[1:]}


JSON, TOML = "json", "toml"


def language(text: str) -> str:
    """The language that a job is written in, which is also how its file's name ends: no TOML begins with a brace."""
    return JSON if text.lstrip("\ufeff \t\r\n").startswith("{") else TOML
