"""Parses tasks: templates for runs, written as Markdown with front matter. Pure: it opens no file.

The front matter is a small part of YAML: `key: value` lines between two `---` lines. Anything that could mean something
else in real YAML (nesting, blocks, anchors) is an error.
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

    Setting = int | float | str

FENCE = "---"
INTERACTIVE = "interactive"  # a person at a terminal is asked before the run is resumed
MODES = ("job", INTERACTIVE)
PROJECT, USER, BUILT_IN = "project", "user", "built in"  # origins of tasks
GIVEN = ("workspace", "task")  # variables that jackline sets for every task
JSON, TOML = "json", "toml"
_TEXTS = ("description", "agent", "model", "effort", "proof", "mode", "setup", "review_mode", "done_signal",
          "pr", "pr_base", "until")  # fmt: skip
_LISTS = ("agents", "fallback", "allow", "review")
_SWITCHES = ("requires_commit", "requires_clean", "plan", "proof_must_fail_first", "commit")
_VARIABLE = "var."
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_LINE = re.compile(r"([A-Za-z_][\w.-]*)[ \t]*:(?:[ \t]+(.*))?")
_COMMENT = re.compile(r"(?:^|[ \t])#.*$")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
# The values of settings that are not numbers.
_CHOICES = ("true", "false", "allow", "ask", "deny", "report", "insist", "auto", "off", "none", "ci", "overnight")
_NOT_PLAIN = tuple("|>&*!%@`{}[]\"'")
_PLACES = re.compile(rf"\{{\{{({_NAME})\}}\}}|\{{({_NAME})\}}")


@stored_as(
    "name prompt source description agent fallback model effort proof mode requires_commit requires_clean settings "
    "variables origin allow setup review review_mode done_signal plan proof_must_fail_first commit "
    "pr pr_base until"
)
class Task(NamedTuple):
    """The content of a task file; the flags and settings apply where it is empty."""

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
    origin: str = ""  # PROJECT, USER or BUILT_IN
    allow: tuple[str, ...] = ()  # rules that are approved in advance
    setup: str = ""  # a command that prepares the run's worktree
    review: tuple[str, ...] = ()
    review_mode: str = ""
    done_signal: str = ""
    plan: bool = False
    proof_must_fail_first: bool = False
    commit: bool = False  # the host commits what the agent left uncommitted
    pr: str = ""  # the kind of the pull request to open
    pr_base: str = ""
    until: str = ""

    @property
    def needs(self) -> tuple[str, ...]:
        """The variables without a default, which must be given."""
        return tuple(name for name in list_variables(self.prompt) if name not in self.variables and name not in GIVEN)


class _Line(NamedTuple):
    """One line of front matter."""

    name: str
    value: str
    where: str  # the file and the line number, for errors


def parse_task(name: str, text: str, source: str, settings: Sequence[str] = ()) -> Task:
    """Parse the text of a task file; an error names the file and the line. `settings` are the names that it may set."""
    head, prompt = _split_front_matter(text.removeprefix("\ufeff").replace("\r\n", "\n"), source)
    fields: dict[str, Any] = {}
    numbers: dict[str, Setting] = {}
    variables: dict[str, str] = {}
    seen: set[str] = set()
    for line in _parse_lines(head, source, (*_TEXTS, *_LISTS, *_SWITCHES, *settings)):
        if line.name in seen:
            raise UsageError(f"{line.where}: duplicate key '{line.name}'")
        seen.add(line.name)
        if line.name.startswith(_VARIABLE):
            variables[line.name[len(_VARIABLE) :]] = _parse_text(line)
        elif line.name in settings:
            numbers[line.name] = _parse_setting(line)
        else:
            fields[line.name] = _parse_field(line)
    if fields.get("mode", MODES[0]) not in MODES:
        raise UsageError(f"{source}: mode must be {' or '.join(MODES)}, not '{fields['mode']}'")
    if "agents" in fields:  # short for an agent and its fallback
        if "agent" in fields or "fallback" in fields:
            raise UsageError(f"{source}: use either 'agents', or 'agent' and 'fallback'")
        agents = fields.pop("agents")
        fields |= {"agent": agents[0] if agents else "", "fallback": agents[1:]}
    return Task(name=name, prompt=prompt.strip(), source=source, settings=numbers, variables=variables, **fields)


def fill_prompt(task: Task, given: Mapping[str, str], known: Mapping[str, str]) -> str:
    """Replace `{name}` in the prompt by the value of the variable, and `{{name}}` by `{name}`; keep other braces."""
    names = {*task.variables, *task.needs}
    for name in given:
        if name not in names:
            hint = f"its variables: {', '.join(sorted(names))}" if names else "it has none"
            raise UsageError(f"task '{task.name}' has no variable '{name}'; {hint}")
    missing = [name for name in task.needs if name not in given]
    if missing:
        flags = " ".join(f"--var {name}=VALUE" for name in missing)
        raise UsageError(f"task '{task.name}' needs a value for {', '.join(missing)}: add {flags}")
    return _fill_places(task.prompt, {**task.variables, **given, **{name: known[name] for name in GIVEN}})


def fill_template(prompt: str, given: Mapping[str, str]) -> str:
    """Do the same with a prompt that belongs to no task; UsageError unless it names exactly these variables."""
    names = list_variables(prompt)
    for name in given:
        if name not in names:
            raise UsageError(f"the prompt does not use '{name}': write {{{name}}} in it, or leave it out")
    for name in names:
        if name not in given:
            raise UsageError(f"the prompt needs a value for '{name}'")
    return _fill_places(prompt, given)


def list_variables(prompt: str) -> tuple[str, ...]:
    """Return the names of `{name}` in a prompt, each once."""
    return tuple(dict.fromkeys(found[2] for found in _PLACES.finditer(prompt) if found[2]))


def _fill_places(prompt: str, values: Mapping[str, str]) -> str:
    return _PLACES.sub(lambda found: f"{{{found[1]}}}" if found[1] else values[found[2]], prompt)


def detect_job_format(text: str) -> str:
    """Return the format of a job file, which is also its suffix: no TOML starts with a brace."""
    return JSON if text.lstrip("\ufeff \t\r\n").startswith("{") else TOML


def _split_front_matter(text: str, source: str) -> tuple[list[str], str]:
    lines = text.split("\n")
    if lines[0].rstrip() != FENCE:
        return [], text
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == FENCE:
            return lines[1:number], "\n".join(lines[number + 1 :])
    raise UsageError(f"{source}: the front matter is not closed; end it with a line of {FENCE}")


def _parse_lines(lines: list[str], source: str, known: Sequence[str]) -> Iterator[_Line]:
    for number, line in enumerate(lines, 2):
        where = f"{source}, line {number}"
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _LINE.fullmatch(line.rstrip())
        if found is None:
            hint = "write a list as [a, b]" if line.lstrip().startswith("- ") else "write `key: value`, not indented"
            raise UsageError(f"{where}: '{line.strip()[:60]}' cannot be parsed; {hint}")
        name = found[1]
        if name.startswith(_VARIABLE):
            variable = name[len(_VARIABLE) :]
            if variable in GIVEN:
                raise UsageError(f"{where}: '{variable}' is set by jackline")
            if not re.fullmatch(_NAME, variable):
                raise UsageError(f"{where}: '{variable}' is not a valid name; use letters, digits and _")
        elif name not in known:
            raise UsageError(f"{where}: unknown key '{name}' (known keys: {', '.join(known)}, var.NAME)")
        yield _Line(name=name, value=(found[2] or "").strip(), where=where)


def _parse_field(line: _Line) -> str | tuple[str, ...] | bool:
    if line.name in _TEXTS:
        return _parse_text(line)
    value = _COMMENT.sub("", line.value).strip()
    if line.name in _SWITCHES:
        if value not in {"true", "false"}:
            raise UsageError(f"{line.where}: {line.name} must be true or false, not '{value}'")
        return value == "true"
    if not (value.startswith("[") and value.endswith("]")):
        raise UsageError(f"{line.where}: {line.name} must be a list such as [a, b]")
    items = [item.strip() for item in value[1:-1].split(",")]
    return tuple(_parse_text(line._replace(value=item)) for item in items if item)


def _parse_setting(line: _Line) -> Setting:
    """Parse a number or a choice; the loader of the settings checks whether it is valid for the setting."""
    value = _parse_text(line)
    if value in _CHOICES:
        return value
    if not _NUMBER.fullmatch(value):
        raise UsageError(f"{line.where}: {line.name} must be a number, not '{value}'")
    return float(value) if "." in value else int(value)


def _parse_text(line: _Line) -> str:
    """Parse plain or quoted text; text that YAML would parse as something else must be quoted."""
    value = line.value
    if value[:1] == '"':
        try:
            return str(json.loads(_COMMENT.sub("", value) if not value.endswith('"') else value))
        except ValueError:
            raise UsageError(f"{line.where}: {line.name} has an unclosed quote") from None
    if value[:1] == "'" and value.endswith("'") and len(value) > 1:
        return value[1:-1].replace("''", "'")
    value = _COMMENT.sub("", value).strip()
    if value.startswith(_NOT_PLAIN):
        raise UsageError(f'{line.where}: {line.name} starts with {value[0]}; put it in double quotes ("...")')
    return value
