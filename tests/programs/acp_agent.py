"""A tiny agent that speaks ACP on its standard streams and plays the parts that are named on its command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
SESSION = "session-of-the-agent"
PARTS = sys.argv[1:]
OPTIONS = [{"optionId": "yes", "kind": "allow_once", "name": "Yes"}, {"optionId": "ever", "kind": "allow_always"},
           {"optionId": "no", "kind": "reject_once", "name": "No"}]  # fmt: skip
asked = 0


def send(**fields: object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **fields}) + "\n")
    sys.stdout.flush()


def receive() -> Json:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    message: Json = json.loads(line)
    return message


def update(name: str, /, **fields: object) -> None:
    send(method="session/update", params={"sessionId": SESSION, "update": {"sessionUpdate": name, **fields}})


def say(text: str, kind: str = "agent_message_chunk") -> None:
    update(kind, content={"type": "text", "text": text})


def ask(method: str, **params: object) -> Json:
    """Their answer: result or error. A cancel that comes first is passed over, as agents may."""
    global asked  # noqa: PLW0603 - a program of one page
    asked += 1
    send(id=f"q{asked}", method=method, params={"sessionId": SESSION, **params})
    while True:
        message = receive()
        if message.get("id") == f"q{asked}":
            return message


def initialize() -> Json:
    if "noise" in PARTS:
        sys.stdout.write("Loaded cached credentials.\n\n[1, 2]\n")
    version = 9 if "new" in PARTS else 1
    return {"protocolVersion": version, "agentCapabilities": {"loadSession": "forgetful" not in PARTS}}


def new_session() -> Json:
    models = {"models": {"availableModels": [], "currentModelId": "one"}} if "models" in PARTS else {}
    options = {"configOptions": [{"id": "llm", "category": "model"}]} if "options" in PARTS else {}
    return {"sessionId": SESSION, **models, **options}


def load_session() -> Json:
    say("an old message")
    update("tool_call", toolCallId="old", status="completed", title="old")
    return {}


def call_shell(*, early: bool) -> None:
    """A call of a shell with leave; `early` says that it runs before it asks."""
    call = {"toolCallId": "t1", "title": "echo hi", "kind": "execute", "rawInput": {"command": "echo hi"}}
    update("tool_call", **call, status="in_progress" if early else "pending")
    chosen = ask("session/request_permission", toolCall={"toolCallId": "t1"}, options=OPTIONS)["result"]["outcome"]
    say(f"[{chosen.get('optionId', chosen['outcome'])}]")
    raw = {"metadata": {"exit": 0}}
    content = [{"type": "content", "content": {"type": "text", "text": "hi"}}]
    done = chosen.get("optionId") == "yes"
    if done or early:
        status = "completed" if done else "failed"
        update("tool_call_update", toolCallId="t1", status=status, content=content, rawOutput=raw)


def echo(text: str) -> None:
    say(f"{len(text)} {text[-10:]}")


def talk(_text: str) -> None:
    for piece in ("I ", "think"):
        say(piece, "agent_thought_chunk")
    for piece in ("so I ", "am"):
        say(piece)
    update("plan", entries=[])
    update("usage_update", used=1, size=2, cost={"amount": 0.25, "currency": "USD"})


def run(_text: str) -> None:
    places = [{"path": "/x"}]
    update("tool_call", toolCallId="t2", title="Looking", kind="read", status="in_progress", locations=places)
    update("tool_call_update", toolCallId="t2", status="failed", rawOutput={"exitCode": 4})


def run_long(_text: str) -> None:
    update("tool_call", toolCallId="t3", title="mcp_tool", kind="other", status="in_progress")


def read(path: str) -> None:
    told(ask("fs/read_text_file", path=path, line=2, limit=1))


def write(path: str) -> None:
    told(ask("fs/write_text_file", path=path, content="written"))


def told(answer: Json) -> None:
    say(json.dumps(answer.get("result", answer.get("error", {}).get("message"))))


def wait(_text: str) -> None:
    """Until it is cancelled, with a shell of its own below, which it ends as agents do."""
    shell = subprocess.Popen(["sleep", "600"], start_new_session=True)
    with open("shell.new", "w", encoding="ascii") as file:
        file.write(str(shell.pid))
    os.rename("shell.new", "shell.pid")
    while receive().get("method") != "session/cancel":
        pass
    shell.kill()
    shell.wait()


PLAYS: dict[str, Callable[[str], object]] = {
    "echo": echo,
    "talk": talk,
    "ask": lambda _text: call_shell(early=False),
    "ask-late": lambda _text: call_shell(early=True),
    "run": run,
    "run-long": run_long,
    "environment": lambda _text: say(json.dumps(dict(os.environ))),
    "exit": lambda _text: sys.exit(7),
    "write": write,
    "read": read,
    "wait": wait,
}


def prompt(params: Json) -> Json:
    text = params["prompt"][0]["text"]
    for part in PARTS:
        if part in PLAYS:
            PLAYS[part](text)
    if "wait" in PARTS:
        return {"stopReason": "cancelled"}
    stop = next((part.removeprefix("stop=") for part in PARTS if part.startswith("stop=")), "end_turn")
    ended: Json = {"stopReason": stop}
    if "usage" in PARTS:
        ended["usage"] = {"inputTokens": 10, "outputTokens": 5, "thoughtTokens": 2, "cachedReadTokens": 100,
                          "cachedWriteTokens": 1000, "totalTokens": 1117}  # fmt: skip
    if "quota" in PARTS:
        ended["_meta"] = {"quota": {"token_count": {"input_tokens": 8, "output_tokens": 3}}}
    return ended


def answer(message: Json) -> Json:
    """Errors are asked for as METHOD=CODE."""
    method, params = message["method"], message["params"]
    for part in PARTS:
        if part.startswith(f"{method}="):
            error = {"code": int(part.partition("=")[2]), "message": "no", "data": {"details": "because"}}
            return {"error": error}
    match method:
        case "initialize":
            return {"result": initialize()}
        case "session/new":
            assert os.path.isabs(params["cwd"])
            return {"result": new_session()}
        case "session/load":
            return {"result": load_session()}
        case "session/set_model" | "session/set_config_option":
            say(json.dumps(params))
            with open("model.json", "w", encoding="utf-8") as file:
                json.dump({"method": method, **params}, file)
            return {"result": {}}
        case "session/prompt":
            return {"result": prompt(params)}
    return {"error": {"code": -32601, "message": method}}


while True:
    question = receive()
    if "id" in question and "method" in question:
        send(id=question["id"], **answer(question))
