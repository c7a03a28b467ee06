"""Agents that a few lines of TOML describe: `[agents.NAME]` with `command = […]` or `acp = […]`. Pure.

The tables come from the user's own config, never from a project's: they name programs that are started.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from jackline.agents import acp, command, lines
from jackline.domain import ids
from jackline.domain.adapter import Adapter, Declaration, Launch, TurnRequest
from jackline.domain.outcome import Exit, Heard, Outcome
from jackline.errors import ConfigError

TEXT, LINES = "text", "lines"
FORMATS = (TEXT, LINES, "claude", "codex", "gemini", "kilo", "opencode", "qwen")
SETTINGS = frozenset({"binary", "model", "effort", "arguments"})  # of any agent
DESCRIBES = ("command", "acp")  # a table with one of these is an agent of its own, not settings of another
_VERSION = re.compile(r"\d+(\.\d+){0,3}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?")
_LISTS = ("command", "acp", "resume", "env", "model_arguments", "version")
_TEXTS = ("format", "minimum", "install")


@dataclass(frozen=True, slots=True)
class Described:
    """An agent as its table says it is."""

    name: str
    command: tuple[str, ...] = ()
    acp: tuple[str, ...] = ()  # instead of `command`: it speaks ACP
    resume: tuple[str, ...] = ()  # the command that goes on with {session}; empty: it cannot
    format: str = TEXT  # what it prints
    minimum: tuple[int, ...] = ()
    env: tuple[str, ...] = ()  # variables that it may see
    install: str = ""
    model_arguments: tuple[str, ...] = ()  # added where a model is chosen
    version: tuple[str, ...] = ()  # the arguments that make it print its version; empty: nothing is asked


def from_tables(tables: Mapping[str, object]) -> dict[str, Described]:
    """The agents that the tables below `[agents]` describe; a table with settings alone is passed over."""
    found = {}
    for name, table in tables.items():
        if not isinstance(table, Mapping):
            _wrong(name, "is not a table: write [agents.NAME] above its lines")
        if any(key in table for key in DESCRIBES):
            found[name] = _described(name, table)
    return found


def adapter_of(described: Described, reader: Adapter | None = None) -> Adapter:
    """The adapter of a described agent; `reader` is the one whose output it prints, if its format names one."""
    return _SpeaksAcp(described) if described.acp else _Runs(described, reader)


class _Runs:
    """Started once a turn; its output is text, event lines, or what another agent prints too."""

    def __init__(self, described: Described, reader: Adapter | None) -> None:
        self._described, self._reader = described, reader
        self.declaration = _declaration(described, reader)

    def launch(self, request: TurnRequest) -> Launch:
        resumes = request.resume and self._described.resume
        words = _started(self._described.resume if resumes else self._described.command, request)
        model = self._described.model_arguments if request.model else ()
        return command.launch(request, (*words, *model, *request.arguments))

    def parse(self, line: bytes) -> tuple[Heard, ...]:
        if self._reader is not None:
            return self._reader.parse(line)
        return command.parse(line) if self._described.format == TEXT else lines.parse(line)

    def classify(self, exit_: Exit, heard: tuple[Heard, ...], tail: str) -> Outcome:
        if self._reader is not None:
            return self._reader.classify(exit_, heard, tail)
        judge = command.classify if self._described.format == TEXT else lines.classify
        return judge(exit_, heard, tail)


class _SpeaksAcp:
    """Talked to by the ACP client."""

    def __init__(self, described: Described) -> None:
        self._described = described
        self.declaration = acp.DECLARATION._replace(
            name=described.name,
            binary=described.acp[0],
            passes=described.env,
            passes_if={},
            install=described.install,
            minimum=described.minimum,
            version_arguments=described.version,
            is_named_by_arguments=False,
        )

    def launch(self, request: TurnRequest) -> Launch:
        words = (*_started(self._described.acp, request), *request.arguments)
        return acp.launch(request._replace(binary=sys.executable), words)  # the binary is the agent's, not the client's

    def parse(self, line: bytes) -> tuple[Heard, ...]:
        return lines.parse(line)

    def classify(self, exit_: Exit, heard: tuple[Heard, ...], tail: str) -> Outcome:
        return lines.classify(exit_, heard, tail)


def _started(words: Sequence[str], request: TurnRequest) -> tuple[str, ...]:
    """By where the program was found, if it was looked for."""
    return (request.binary or words[0], *words[1:])


def _declaration(described: Described, reader: Adapter | None) -> Declaration:
    known = reader.declaration if reader is not None else command.DECLARATION
    structured = described.format != TEXT
    return Declaration(
        name=described.name,
        binary=described.command[0],
        gate="advisory",
        gate_reason=command.DECLARATION.gate_reason,
        chooses_session=any("{session}" in word for word in described.command),
        resumes=bool(described.resume),
        structured=structured,
        tokens=structured,
        cost=known.cost,
        minimum=described.minimum,
        version_arguments=described.version,
        install=described.install,
        passes=described.env,
    )


def _described(name: str, table: Mapping[str, object]) -> Described:
    if not ids.is_chosen(name):
        _wrong(name, "is no name for an agent: use letters, digits, '.', '_' and '-'")
    known = sorted({*_LISTS, *_TEXTS, *SETTINGS})
    unknown = sorted(set(table) - set(known))
    if unknown:
        _wrong(name, f"has an unknown word '{unknown[0]}'; known are {', '.join(known)}")
    lists = {word: _list(name, word, table[word]) for word in _LISTS if word in table}
    texts = {word: _text(name, word, table[word]) for word in _TEXTS if word in table}
    described = Described(
        name=name,
        command=lists.get("command", ()),
        acp=lists.get("acp", ()),
        resume=lists.get("resume", ()),
        format=texts.get("format", TEXT),
        minimum=_version(name, texts.get("minimum", "")),
        env=lists.get("env", ()),
        install=texts.get("install", ""),
        model_arguments=lists.get("model_arguments", ()),
        version=lists.get("version", ("--version",) if "minimum" in texts else ()),
    )
    _check(described, table)
    return described


def _check(described: Described, table: Mapping[str, object]) -> None:
    name = described.name
    if described.command and described.acp:
        _wrong(name, "has both a command and acp: leave one out")
    if described.acp:
        useless = sorted({"resume", "format", "model_arguments"} & set(table))
        if useless:
            _wrong(name, f"speaks ACP, which needs no '{useless[0]}': leave it out")
    if described.format not in FORMATS:
        _wrong(name, f"has a format '{described.format}'; known are {', '.join(FORMATS)}")
    if any(not _VARIABLE.fullmatch(one) for one in described.env):
        _wrong(name, "has an env that is not a list of names of variables (a * at the end takes all that begin so)")
    if described.model_arguments and not any("{model}" in word for word in described.model_arguments):
        _wrong(name, 'has model_arguments without {model}: write them as ["--model", "{model}"]')
    if described.resume:
        _check_resume(described)


def _check_resume(described: Described) -> None:
    if not any("{session}" in word for word in described.resume):
        _wrong(described.name, "has a resume without {session}: which one shall it go on with?")
    if described.resume[0] != described.command[0]:
        _wrong(described.name, "has a resume that starts another program than its command")
    if described.format == TEXT and not any("{session}" in word for word in described.command):
        _wrong(described.name, "prints text, which tells no session: write {session} into its command, or drop resume")


def _list(name: str, word: str, value: object) -> tuple[str, ...]:
    is_empty = value == [] and word != "env"
    if not isinstance(value, list) or is_empty or not all(isinstance(one, str) and one for one in value):
        _wrong(name, f'has a {word} that is not a list of texts: write {word} = ["…", "…"]')
    return tuple(value)


def _text(name: str, word: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        _wrong(name, f'has a {word} that is no text: write {word} = "…"')
    return value


def _version(name: str, text: str) -> tuple[int, ...]:
    if text and not _VERSION.fullmatch(text):
        _wrong(name, f"has a minimum '{text}', which is no version such as 1.2.3")
    return tuple(int(part) for part in text.split(".")) if text else ()


def _wrong(name: str, what: str) -> NoReturn:
    raise ConfigError(f"[agents.{name}] {what}")
