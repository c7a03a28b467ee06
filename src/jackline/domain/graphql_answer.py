"""Reads values of GitHub's GraphQL answers, which may be of any type or missing. Pure; nothing here raises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Mapping


def is_number(value: object) -> TypeGuard[int]:
    """Whether a value can be the number of something on GitHub."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def get_dict(node: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A value that is an object; empty if it is none."""
    value = node.get(name)
    return value if isinstance(value, dict) else {}


def get_text(node: Mapping[str, Any], name: str) -> str:
    """A value that is a text; empty if it is none."""
    value = node.get(name)
    return value if isinstance(value, str) else ""


def get_time(node: Mapping[str, Any], name: str) -> int:
    """A time in milliseconds; 0 if it is none."""
    from datetime import datetime

    try:
        return round(datetime.fromisoformat(get_text(node, name)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0


def get_login(node: Mapping[str, Any]) -> str:
    """The login of an author, with [bot] for an app, which may share the name of a person; empty if it is gone."""
    author = get_dict(node, "author")
    login = get_text(author, "login")
    return f"{login}[bot]" if login and author.get("__typename") == "Bot" else login


def is_draft(node: Mapping[str, Any]) -> bool:
    """Whether a review or its comment is not submitted yet: only its author sees it, who may be the one that asks."""
    return get_text(node, "state") == "PENDING"


def list_nodes(holder: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The objects of a connection."""
    nodes = get_dict(holder, name).get("nodes")
    return [node for node in nodes if isinstance(node, dict)] if isinstance(nodes, list) else []
