"""One turn of ollama's loop: ask the model, do what it calls for, tell it the results, until it calls no more tools.

All it knows is in its environment (JACKLINE_GATE, OLLAMA_HOST, …); its arguments are options of the model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from . import tools
from .borrowed import failed, tell
from .calls import through_gate
from .chat import Answer, Server
from .memory import Memory, Message
from .turn import Place, Pulse, carry_out

MOST_STEPS = 200
SYSTEM = (
    "You are a coding agent that works alone, without a person to ask. Your working folder is {workspace}. Use the "
    "tools to look at it, to change it and to check your work. When the task is done, or cannot be done, say so in "
    "plain words without calling a tool."
)
_THINK: Mapping[str, bool | str] = {"off": False, "on": True}


def main(arguments: Sequence[str]) -> int:
    return carry_out(partial(_turn, arguments))


def _turn(arguments: Sequence[str], place: Place, prompt: str) -> None:
    options = _options(arguments)
    memory = _begin(place, prompt)
    server, pulse = Server(place.environ), Pulse()
    question = {"model": place.model or _only_model(server), "stream": True, "tools": tools.offered()}
    effort = place.environ.get("JACKLINE_EFFORT", "")
    if effort:
        question["think"] = _THINK.get(effort, effort)
    if options:
        question["options"] = options
    if place.resumes:
        _answer_calls(place, memory, pulse)  # those that the last turn left open come before anything new is said
        memory.add({"role": "user", "content": prompt})
    for _ in range(MOST_STEPS):
        answer = server.chat({**question, "messages": memory.messages}, pulse.beat)
        _take(memory, answer)
        if not answer.calls:
            _end(answer)
            return
        _answer_calls(place, memory, pulse)
    raise failed("agent_error", f"the model went on for {MOST_STEPS} steps without coming to an end")


def _begin(place: Place, prompt: str) -> Memory:
    """The session is on disk, with its task, before its id is told: so that an id that was heard can be resumed."""
    if not place.session:
        raise failed("agent_error", "there is no session: JACKLINE_SESSION is not set")
    memory = Memory(place.folder, place.session)
    if place.resumes:
        memory.recall()
    else:
        system = {"role": "system", "content": SYSTEM.format(workspace=place.workspace)}
        memory.add(system, {"role": "user", "content": prompt})
    tell("session", id=place.session)
    return memory


def _only_model(server: Server) -> str:
    """The model that is installed, if there is no choice."""
    names = server.models()
    if len(names) == 1:
        return names[0]
    how = "name one with --model, OLLAMA_MODEL or JACKLINE_OLLAMA_MODEL"
    if not names:
        raise failed("model_not_found", f"no model is installed at {server.address}: `ollama pull NAME`, then {how}")
    raise failed("model_not_found", f"which model? {how}: {', '.join(sorted(names)[:10])}")


def _take(memory: Memory, answer: Answer) -> None:
    """What the model said is kept before it is acted upon."""
    message: Message = {"role": "assistant", "content": answer.content}
    if answer.thinking:
        message["thinking"] = answer.thinking
        tell("thinking", text=answer.thinking)
    if answer.calls:
        message["tool_calls"] = list(answer.calls)
    memory.add(message)
    if answer.content.strip():
        tell("message", text=answer.content)
    tell("usage", input=answer.tokens_input, output=answer.tokens_output, cached=0, usd=0)


def _answer_calls(place: Place, memory: Memory, pulse: Pulse) -> None:
    """One by one, in the order of the model; a call that was cut off is asked about again, and the gate knows it."""
    for name, call in memory.open_calls():
        memory.add(_result(call, _called(place, pulse, name, call)))


def _called(place: Place, pulse: Pulse, name: str, call: Mapping[str, Any]) -> str:
    try:
        tool, given = tools.wanted(call)
    except tools.Unfit as error:
        return f"error: {error}"
    work = tools.work_of(tool, place, pulse, given)
    return through_gate(place.gate, tool.word, given, name, work).for_model()


def _result(call: Mapping[str, Any], content: str) -> Message:
    function = call.get("function")
    name = function.get("name") if isinstance(function, dict) else ""
    message: Message = {"role": "tool", "tool_name": name, "content": content}
    if call.get("id"):
        message["tool_call_id"] = call["id"]
    return message


def _end(answer: Answer) -> None:
    if answer.reason == "length":
        advice = "give it more room, such as `-- num_ctx=32768`"
        raise failed("context_too_long", f"the model's answer was cut off at the end of its context: {advice}")
    tell("end", reason="done")


def _options(arguments: Sequence[str]) -> dict[str, Any]:
    """Options of the model from words such as num_ctx=32768."""
    options = {}
    for word in arguments:
        name, is_option, value = word.partition("=")
        if not is_option or not name.isidentifier():
            raise failed("agent_error", f"'{word}' is no option of a model: write NAME=VALUE, such as num_ctx=32768")
        options[name] = _value(value)
    return options


def _value(text: str) -> Any:  # noqa: ANN401 - any JSON
    try:
        return json.loads(text)
    except ValueError:
        return text
