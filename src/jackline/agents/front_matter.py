"""Reads the YAML head of Markdown files for a model (skills, subagents, commands): some CLIs start programs from it.

Pure. It keeps known keys instead of looking for bad ones, because YAML has many spellings of the same key.
"""

from __future__ import annotations

import re

_KNOWN = """
name title description when_to_use when-to-use license metadata version author tags category compatibility
argument-hint arguments allowed-tools disallowed-tools tools disallowedTools model effort color
user-invocable disable-model-invocation context agent paths globs
"""
_KEY = re.compile(rf"(?:{'|'.join(map(re.escape, _KNOWN.split()))})\s*:(?:\s|$)")
_HEAD = re.compile(r"\A\ufeff?\s*---")
_END = re.compile(r"^---[^\S\n]*$", re.MULTILINE)


def has_only_text(path: str, text: str) -> bool:
    """Check whether a Markdown file has no head, or only known keys that start nothing; other files are data."""
    if not path.lower().endswith((".md", ".mdc", ".markdown")):
        return True
    head, _ = _split_head(text)
    return head is None or _filter_lines(head) == [line for line in head.splitlines() if line.strip()]


def filter_head(text: str) -> str:
    """Return the text with nothing but known keys in its head."""
    head, body = _split_head(text)
    if head is None:
        return text
    kept = "\n".join(_filter_lines(head)) or "description: -"
    return f"---\n{kept}\n---\n{body}"


def _split_head(text: str) -> tuple[str | None, str]:
    """Split off the head; None if there is none. A head without an end is all head."""
    if not _HEAD.match(text):
        return None, text
    _, _, rest = text.partition("---")
    _, _, rest = rest.partition("\n")
    end = _END.search(rest)
    return (rest, "") if end is None else (rest[: end.start()], rest[end.end() + 1 :])


def _filter_lines(head: str) -> list[str]:
    """Keep the lines of known keys, and the indented lines that continue their values."""
    kept: list[str] = []
    is_kept = False
    for line in head.splitlines():
        if line[:1] not in {" ", "\t"} and line.strip() and not line.startswith("- "):
            is_kept = _KEY.match(line) is not None or line.startswith("#")
        if is_kept and line.strip():
            kept.append(line)
    return kept
