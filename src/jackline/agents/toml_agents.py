"""Agents defined in TOML: `[agents.NAME]` with `command = […]` or `acp = […]`. Pure.

The tables come from the user's own config, never from a project's: they name programs to start.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from jackline.agents import acp, agent_events, command
from jackline.domain import ids
from jackline.domain.adapter import Adapter, Declaration, Launch, TurnRequest
from jackline.domain.outcome import AgentEvent, Exit, Outcome
from jackline.errors import ConfigError

TEXT, LINES = "text", "lines"
FORMATS = (TEXT, LINES, "claude", "codex", "gemini", "kilo", "opencode", "qwen")
SETTINGS = frozenset({"binary", "model", "effort", "arguments", "env_file"})  # accepted for every agent
DEFINING_KEYS = ("command", "acp")  # a table with one of these defines an agent; any other has settings of one
_VERSION = re.compile(r"\d+(\.\d+){0,3}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?")
_LISTS = ("command", "acp", "resume", "env", "model_arguments", "version")
_TEXTS = ("format", "minimum", "install")


@dataclass(frozen=True, slots=True)
class TomlAgent:
    """An agent as its table defines it."""

    name: str
    command: tuple[str, ...] = ()
    acp: tuple[str, ...] = ()  # instead of `command`, for an agent that speaks ACP
    resume: tuple[str, ...] = ()  # the command that resumes {session}; empty if it cannot
    format: str = TEXT  # of its output
    minimum: tuple[int, ...] = ()
    env: tuple[str, ...] = ()  # variables that it may see
    install: str = ""
    model_arguments: tuple[str, ...] = ()  # added if a model is chosen
    version: tuple[str, ...] = ()  # the arguments that print its version; empty if it is not checked


def parse_tables(tables: Mapping[str, object]) -> dict[str, TomlAgent]:
    """Parse the agents among the tables below `[agents]`; tables that only have settings are skipped."""
    agents = {}
    for name, table in tables.items():
        if not isinstance(table, Mapping):
            _reject(name, "is not a table; write [agents.NAME] above its lines")
        if any(key in table for key in DEFINING_KEYS):
            agents[name] = _parse_table(name, table)
    return agents


def build_adapter(agent: TomlAgent, reader: Adapter | None = None) -> Adapter:
    """Build the adapter of an agent; `reader` is the agent whose output format it prints, if any."""
    return _TomlAcpAdapter(agent) if agent.acp else _TomlCommandAdapter(agent, reader)


class _TomlCommandAdapter:
    """Starts the command once per turn; its output is text, event lines, or another agent's format."""

    def __init__(self, agent: TomlAgent, reader: Adapter | None) -> None:
        self._agent, self._reader = agent, reader
        structured = agent.format != TEXT
        self.declaration = Declaration(
            name=agent.name,
            binary=agent.command[0],
            gate="advisory",
            gate_reason=command.DECLARATION.gate_reason,
            chooses_session=any("{session}" in word for word in agent.command),
            resumes=bool(agent.resume),
            structured=structured,
            tokens=structured,
            cost=reader is not None and reader.declaration.cost,
            live_usage=reader is not None and reader.declaration.live_usage,
            prices="" if reader is None else reader.declaration.prices,
            minimum=agent.minimum,
            version_arguments=agent.version,
            install=agent.install,
            passes=agent.env,
            account_variables=_list_account_variables(agent),
        )

    def launch(self, request: TurnRequest) -> Launch:
        resumes = request.resume and self._agent.resume
        words = _resolve_binary(self._agent.resume if resumes else self._agent.command, request)
        model = self._agent.model_arguments if request.model else ()
        return command.launch(request, (*words, *model, *request.arguments))

    def parse(self, line: bytes) -> tuple[AgentEvent, ...]:
        if self._reader is not None:
            return self._reader.parse(line)
        return command.parse(line) if self._agent.format == TEXT else agent_events.parse_event_line(line)

    def classify(self, exit_: Exit, events: tuple[AgentEvent, ...], tail: str) -> Outcome:
        if self._reader is not None:
            return self._reader.classify(exit_, events, tail)
        classify = command.classify if self._agent.format == TEXT else agent_events.classify_by_events
        return classify(exit_, events, tail)


class _TomlAcpAdapter:
    """Starts the ACP client with the agent's command."""

    parse = staticmethod(agent_events.parse_event_line)
    classify = staticmethod(agent_events.classify_by_events)

    def __init__(self, agent: TomlAgent) -> None:
        self._agent = agent
        self.declaration = acp.DECLARATION._replace(
            name=agent.name,
            binary=agent.acp[0],
            passes=agent.env,
            passes_if={},
            install=agent.install,
            minimum=agent.minimum,
            version_arguments=agent.version,
            is_named_by_arguments=False,
            account_variables=_list_account_variables(agent),
        )

    def launch(self, request: TurnRequest) -> Launch:
        words = (*_resolve_binary(self._agent.acp, request), *request.arguments)
        # `request.binary` is the agent's, not the client's.
        return acp.launch(request._replace(binary=sys.executable), words)


def _list_account_variables(agent: TomlAgent) -> tuple[str, ...]:
    """Each variable that the agent sees may decide as whom it works."""
    return tuple(name for name in agent.env if not name.endswith("*"))


def _resolve_binary(words: Sequence[str], request: TurnRequest) -> tuple[str, ...]:
    """Replace the program with the path where it was found, if any."""
    return (request.binary or words[0], *words[1:])


def _parse_table(name: str, table: Mapping[str, object]) -> TomlAgent:
    if not ids.is_chosen(name):
        _reject(name, "is not a valid agent name; use letters, digits, '.', '_' and '-'")
    known = sorted({*_LISTS, *_TEXTS, *SETTINGS})
    unknown = sorted(set(table) - set(known))
    if unknown:
        _reject(name, f"has an unknown key '{unknown[0]}'; known keys are {', '.join(known)}")
    lists = {word: _parse_list(name, word, table[word]) for word in _LISTS if word in table}
    texts = {word: _parse_text(name, word, table[word]) for word in _TEXTS if word in table}
    minimum = texts.get("minimum", "")
    if minimum and not _VERSION.fullmatch(minimum):
        _reject(name, f"has the minimum '{minimum}', which is not a version such as 1.2.3")
    agent = TomlAgent(
        name=name,
        command=lists.get("command", ()),
        acp=lists.get("acp", ()),
        resume=lists.get("resume", ()),
        format=texts.get("format", TEXT),
        minimum=tuple(int(part) for part in minimum.split(".")) if minimum else (),
        env=lists.get("env", ()),
        install=texts.get("install", ""),
        model_arguments=lists.get("model_arguments", ()),
        version=lists.get("version", ("--version",) if "minimum" in texts else ()),
    )
    _check_agent(agent, table)
    return agent


def _check_agent(agent: TomlAgent, table: Mapping[str, object]) -> None:
    name = agent.name
    if agent.command and agent.acp:
        _reject(name, "has both command and acp; remove one")
    if agent.acp:
        useless = sorted({"resume", "format", "model_arguments"} & set(table))
        if useless:
            _reject(name, f"speaks ACP, which does not use '{useless[0]}'; remove it")
    if agent.format not in FORMATS:
        _reject(name, f"has the unknown format '{agent.format}'; known formats are {', '.join(FORMATS)}")
    if any(not _VARIABLE.fullmatch(one) for one in agent.env):
        _reject(name, "has an env that is not a list of variable names (a * at the end matches any suffix)")
    if agent.model_arguments and not any("{model}" in word for word in agent.model_arguments):
        _reject(name, 'has model_arguments without {model}; write them as ["--model", "{model}"]')
    if agent.resume:
        _check_resume(agent)


def _check_resume(agent: TomlAgent) -> None:
    if not any("{session}" in word for word in agent.resume):
        _reject(agent.name, "has a resume command without {session}")
    if agent.resume[0] != agent.command[0]:
        _reject(agent.name, "has a resume command that starts a different program")
    if agent.format == TEXT and not any("{session}" in word for word in agent.command):
        _reject(agent.name, "prints text, which reports no session; add {session} to its command, or remove resume")


def _parse_list(name: str, word: str, value: object) -> tuple[str, ...]:
    is_empty = value == [] and word != "env"
    if not isinstance(value, list) or is_empty or not all(isinstance(one, str) and one for one in value):
        _reject(name, f'has a {word} that is not a list of strings; write {word} = ["…", "…"]')
    return tuple(value)


def _parse_text(name: str, word: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        _reject(name, f'has a {word} that is not a string; write {word} = "…"')
    return value


def _reject(name: str, what: str) -> NoReturn:
    raise ConfigError(f"[agents.{name}] {what}")
