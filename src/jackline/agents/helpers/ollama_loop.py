"""One turn of the ollama loop: ask the model, run its tool calls, return the results, until it calls no more tools.

Its only input is its environment (JACKLINE_GATE, OLLAMA_HOST, …); its arguments are options of the model.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ..scripted.playback.agent_io import build_failure, build_lost_session, build_session_path, emit, replace_file
from . import model_tools
from .helper_turn import Heartbeat, HelperContext, run_helper
from .ollama_server import ModelAnswer, OllamaServer

SESSION_VERSION = 1
MOST_STEPS = 200
SYSTEM = (
    "You are a coding agent that works alone, without a person to ask. Your working folder is {workspace}. Use the "
    "tools to look at it, to change it and to check your work. When the task is done, or cannot be done, say so in "
    "plain words without calling a tool."
)
Message = dict[str, Any]
_THINK: Mapping[str, bool | str] = {"off": False, "on": True}


class ChatHistory:
    """Every message of a session in one file, saved before anything acts on it: the model itself keeps no state."""

    def __init__(self, folder: str, session: str) -> None:
        self._path = build_session_path(folder, session)
        self.messages: list[Message] = []

    def load(self) -> None:
        try:
            with open(self._path, "rb") as file:
                stored = json.load(file)
            if stored["version"] != SESSION_VERSION:
                raise build_lost_session(f"session has version {stored['version']}")
            self.messages = [dict(message) for message in stored["messages"]]
        except FileNotFoundError:
            raise build_lost_session("session not found") from None
        except (ValueError, KeyError, TypeError) as error:
            raise build_lost_session(f"session cannot be read: {error!r}") from None

    def append(self, *messages: Message) -> None:
        self.messages.extend(messages)
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        replace_file(self._path, json.dumps({"version": SESSION_VERSION, "messages": self.messages}).encode())

    def list_open_calls(self) -> list[tuple[str, dict[str, Any]]]:
        """The tool calls that have no result yet, each with a unique name."""
        number = len(self.messages) - 1
        while number >= 0 and self.messages[number].get("role") == "tool":
            number -= 1
        calls = self.messages[number].get("tool_calls") or [] if number >= 0 else []
        results = len(self.messages) - 1 - number
        return [(f"m{number}.{index}", call) for index, call in enumerate(calls)][results:]


def main(arguments: Sequence[str]) -> int:
    return run_helper(partial(_run_turn, arguments))


def _run_turn(arguments: Sequence[str], context: HelperContext, prompt: str) -> None:
    options = _parse_options(arguments)
    history = _open_session(context, prompt)
    server, heartbeat = OllamaServer(context.environ), Heartbeat()
    request = {"model": context.model or _find_only_model(server), "stream": True, "tools": model_tools.list_schemas()}
    effort = context.environ.get("JACKLINE_EFFORT", "")
    if effort:
        request["think"] = _THINK.get(effort, effort)
    if options:
        request["options"] = options
    if context.resumes:
        _answer_calls(context, history, heartbeat)  # the calls that the last turn left open come first
        history.append({"role": "user", "content": prompt})
    for _ in range(MOST_STEPS):
        answer = server.chat({**request, "messages": history.messages}, heartbeat.beat)
        _record_answer(history, answer)
        if answer.calls:
            _answer_calls(context, history, heartbeat)
            continue
        if answer.reason == "length":
            detail = "the model's answer was cut off at the end of its context"
            raise build_failure("context_too_long", f"{detail}: give it more room, such as `-- num_ctx=32768`")
        emit("end", reason="done")
        return
    raise build_failure("agent_error", f"the model did not finish within {MOST_STEPS} steps")


def _open_session(context: HelperContext, prompt: str) -> ChatHistory:
    """Save the session with its task before reporting its id, so that a reported session can always be resumed."""
    if not context.session:
        raise build_failure("agent_error", "there is no session: JACKLINE_SESSION is not set")
    history = ChatHistory(context.folder, context.session)
    if context.resumes:
        history.load()
    else:
        system = {"role": "system", "content": SYSTEM.format(workspace=context.workspace)}
        history.append(system, {"role": "user", "content": prompt})
    emit("session", id=context.session)
    return history


def _find_only_model(server: OllamaServer) -> str:
    """The installed model, if there is only one."""
    names = server.list_models()
    if len(names) == 1:
        return names[0]
    how = "name one with --model, OLLAMA_MODEL or JACKLINE_OLLAMA_MODEL"
    if not names:
        detail = f"no model is installed at {server.address}: `ollama pull NAME`, then {how}"
        raise build_failure("model_not_found", detail)
    raise build_failure("model_not_found", f"no model given; {how}: {', '.join(sorted(names)[:10])}")


def _record_answer(history: ChatHistory, answer: ModelAnswer) -> None:
    message: Message = {"role": "assistant", "content": answer.content}
    if answer.thinking:
        message["thinking"] = answer.thinking
        emit("thinking", text=answer.thinking)
    if answer.calls:
        message["tool_calls"] = list(answer.calls)
    history.append(message)
    if answer.content.strip():
        emit("message", text=answer.content)
    emit("usage", input=answer.tokens_input, output=answer.tokens_output, cached=0, usd=0)


def _answer_calls(context: HelperContext, history: ChatHistory, heartbeat: Heartbeat) -> None:
    """Run the calls in the model's order; for an interrupted call the gate is asked again, and recognizes it."""
    for agent_call, call in history.list_open_calls():
        function = call.get("function")
        name = function.get("name") if isinstance(function, dict) else ""
        content = model_tools.run_tool(context, heartbeat, agent_call, call)
        message: Message = {"role": "tool", "tool_name": name, "content": content}
        if call.get("id"):
            message["tool_call_id"] = call["id"]
        history.append(message)


def _parse_options(arguments: Sequence[str]) -> dict[str, Any]:
    """Parse options of the model, such as num_ctx=32768."""
    options = {}
    for word in arguments:
        name, is_option, value = word.partition("=")
        if not is_option or not name.isidentifier():
            detail = f"'{word}' is not an option of a model; write NAME=VALUE, such as num_ctx=32768"
            raise build_failure("agent_error", detail)
        try:
            options[name] = json.loads(value)
        except ValueError:
            options[name] = value
    return options
