"""The session formats of the CLIs: parses the beginning of a session file. Pure: it opens no file.

A session is a file of JSON lines, or of gemini's older form, one object. Other versions may write other things: what is
not understood is left out.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

# Texts that the CLI itself writes in the name of the person, before the first prompt.
_NOT_TYPED = ("<", "# AGENTS.md", "Caveat: ")


class SessionHead(NamedTuple):
    """What the beginning of a file says about its session."""

    id: str = ""
    folder: str = ""
    prompt: str = ""


class SessionFormat(NamedTuple):
    """Where a CLI keeps its sessions below its folder, and how to read one."""

    folders: tuple[str, ...]  # one pattern for each level; the last is that of the file
    parse: Callable[[Iterable[Mapping[str, Any]]], SessionHead]


def decode_lines(data: bytes, *, whole: bool) -> Iterator[Mapping[str, Any]]:
    """The JSON objects of a file's beginning; broken lines are skipped, and so is a last line that was cut off."""
    lines = data.split(b"\n")
    for line in lines if whole else lines[:-1]:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found


def _parse_claude(records: Iterable[Mapping[str, Any]]) -> SessionHead:
    head = SessionHead()
    for one in records:
        head = _add(head, one.get("sessionId"), one.get("cwd"))
        if one.get("type") == "user" and not one.get("isMeta"):
            head = _add(head, prompt=_join_text(_get(one, "message").get("content")))
    return head


def _parse_codex(records: Iterable[Mapping[str, Any]]) -> SessionHead:
    head = SessionHead()
    for one in records:
        payload = _get(one, "payload")
        if one.get("type") == "session_meta":
            head = _add(head, payload.get("id"), payload.get("cwd"))
        elif one.get("type") == "response_item" and payload.get("role") == "user":
            head = _add(head, prompt=_join_text(payload.get("content")))
    return head


def _parse_gemini(records: Iterable[Mapping[str, Any]]) -> SessionHead:
    head = SessionHead()
    for one in records:
        head = _add(head, one.get("sessionId"))
        messages = one.get("messages")  # of the older form
        for message in messages if isinstance(messages, list) else [one]:
            if isinstance(message, dict) and message.get("type") == "user":
                head = _add(head, prompt=_join_text(message.get("content")))
    return head


def _parse_qwen(records: Iterable[Mapping[str, Any]]) -> SessionHead:
    head = SessionHead()
    for one in records:
        head = _add(head, one.get("sessionId"), one.get("cwd"))
        if one.get("type") == "user":
            head = _add(head, prompt=_join_text(_get(one, "message").get("parts")))
    return head


FORMATS = {
    "claude": SessionFormat(folders=("projects", "*", "*.jsonl"), parse=_parse_claude),
    "codex": SessionFormat(folders=("sessions", "*", "*", "*", "rollout-*.jsonl"), parse=_parse_codex),
    "gemini": SessionFormat(folders=("tmp", "*", "chats", "session-*.json*"), parse=_parse_gemini),
    "qwen": SessionFormat(folders=("projects", "*", "chats", "*.jsonl"), parse=_parse_qwen),
}


def _add(head: SessionHead, session: object = None, folder: object = None, prompt: str = "") -> SessionHead:
    """The head with what was missing; the first of each counts."""
    typed = prompt.strip()
    return SessionHead(
        id=head.id or (session if isinstance(session, str) else ""),
        folder=head.folder or (folder if isinstance(folder, str) else ""),
        prompt=head.prompt or ("" if typed.startswith(_NOT_TYPED) else typed),
    )


def _get(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = record.get(name)
    return found if isinstance(found, dict) else {}


def _join_text(content: object) -> str:
    """The text of a message: itself, or the texts of its parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "\n".join(text for text in texts if isinstance(text, str))
