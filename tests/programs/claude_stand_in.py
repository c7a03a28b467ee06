"""A stand-in for Claude Code: asks jackline's hook before each command, and ends its session where a call is deferred.

With ANTHROPIC_BASE_URL it gets its commands from a model, as the trial of the gate wants it. Without it, it has one
command, from its own environment: it sends the mail `deferred`. It runs nothing that the hook did not allow.
"""

import json
import os
import subprocess
import sys
import urllib.request
from typing import Any

VERSION = "2.1.325"
CALL = "toolu_deferred"
NO_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def main(words: list[str]) -> int:
    if "--version" in words:
        sys.stdout.write(f"{VERSION} (Claude Code)\n")
        return 0
    session = next((words[words.index(name) + 1] for name in ("--session-id", "--resume") if name in words), "s")
    with open(words[words.index("--settings") + 1], encoding="utf-8") as file:
        hook = json.load(file)["hooks"]["PreToolUse"][0]["hooks"][0]["url"]
    tell(type="system", subtype="init", session_id=session)
    if "ANTHROPIC_BASE_URL" in os.environ:
        return follow_model(hook, session, sys.stdin.read())
    # A real one goes on with the call that waits only if it is told nothing.
    if "--resume" in words and sys.stdin.read():
        return end(session, "told something, and so forgot the call")
    return run_one(hook, session)


def run_one(hook: str, session: str) -> int:
    command = f"{os.path.dirname(sys.argv[0])}/send deferred"
    called: dict[str, object] = {"type": "tool_use", "id": CALL, "name": "Bash", "input": {"command": command}}
    say(session, called)
    decision, _ = ask(hook, session, CALL, command)
    if decision == "defer":
        tell(type="result", subtype="success", is_error=False, session_id=session, stop_reason="tool_deferred")
        return 0
    if decision == "allow":
        output = run(hook, session, CALL, command)
        answer(session, CALL, output, is_error=False)
        say(session, {"type": "text", "text": "sent"})
    return end(session)


def follow_model(hook: str, session: str, prompt: str) -> int:
    messages: list[dict[str, object]] = [{"role": "user", "content": prompt}]
    while True:
        reply = ask_model(messages)
        messages.append({"role": "assistant", "content": reply["content"]})
        calls = [block for block in reply["content"] if block["type"] == "tool_use"]
        if not calls:
            return end(session)
        results = []
        for call in calls:
            command = call["input"]["command"]
            decision, reason = ask(hook, session, call["id"], command)
            text = run(hook, session, call["id"], command) if decision == "allow" else reason
            results.append({"type": "tool_result", "tool_use_id": call["id"], "content": text})
        messages.append({"role": "user", "content": results})


def ask_model(messages: list[dict[str, object]]) -> Any:
    schema = {"type": "object", "properties": {"command": {"type": "string"}}}
    tools = [{"name": "Bash", "input_schema": schema}]
    body = {"model": "claude-opus-5-5", "max_tokens": 1000, "messages": messages, "tools": tools}
    return post(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", body, os.environ["ANTHROPIC_API_KEY"])


def ask(hook: str, session: str, call: str, command: str) -> tuple[str, str]:
    """What the hook says, and why; nobody who answers means no."""
    fields: dict[str, Any] = {
        "hook_event_name": "PreToolUse",
        "tool_input": {"command": command},
        **facts(session, call),
    }
    try:
        said = post(hook, fields, os.environ["JACKLINE_GATE_TOKEN"])["hookSpecificOutput"]
    except OSError as error:
        return "deny", str(error)
    return said["permissionDecision"], said.get("permissionDecisionReason", "")


def run(hook: str, session: str, call: str, command: str) -> str:
    ended = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    result = {"stdout": ended.stdout, "stderr": ended.stderr, "interrupted": False, "isImage": False}
    fields: dict[str, Any] = {"tool_input": {"command": command}, "tool_response": result, **facts(session, call)}
    post(hook, {"hook_event_name": "PostToolUse", **fields}, os.environ["JACKLINE_GATE_TOKEN"])
    return ended.stdout


def facts(session: str, call: str) -> dict[str, str]:
    return {"session_id": session, "cwd": os.getcwd(), "tool_name": "Bash", "tool_use_id": call}


def post(url: str, fields: dict[str, Any], token: str) -> Any:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}", "x-api-key": token}
    request = urllib.request.Request(url, json.dumps(fields).encode(), headers)  # noqa: S310 - of this machine
    with NO_PROXY.open(request, timeout=60) as reply:
        return json.loads(reply.read() or b"{}")  # who is only told something says nothing


def say(session: str, block: dict[str, object]) -> None:
    message = {"id": f"msg_{session}", "role": "assistant", "content": [block], "usage": {}}
    tell(type="assistant", message=message, session_id=session, parent_tool_use_id=None)


def answer(session: str, call: str, text: str, *, is_error: bool) -> None:
    block = {"type": "tool_result", "tool_use_id": call, "content": text, "is_error": is_error}
    tell(type="user", message={"role": "user", "content": [block]}, session_id=session, parent_tool_use_id=None)


def end(session: str, error: str = "") -> int:
    kind = "error_during_execution" if error else "success"
    tell(type="result", subtype=kind, is_error=bool(error), result=error, session_id=session, stop_reason="end_turn")
    return 1 if error else 0


def tell(**fields: object) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
