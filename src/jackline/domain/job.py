"""What can be told of a job file by its text alone. Pure."""

from __future__ import annotations

JSON, TOML = "json", "toml"


def language(text: str) -> str:
    """The language that a job is written in, which is also how its file's name ends: no TOML begins with a brace."""
    return JSON if text.lstrip("\ufeff \t\r\n").startswith("{") else TOML
