"""Checks whether a tool that fetches a page also sends data: a method, a body, or a header that changes the method.

Pure; by the names of the fields, in any nesting.
"""

from __future__ import annotations

from typing import Any

from jackline.policy.curl_requests import READING_METHODS

_METHOD_FIELDS = frozenset({"method", "httpmethod", "verb", "requestmethod", "xhttpmethodoverride", "xmethodoverride"})
_BODY_FIELDS = frozenset(
    {"body", "data", "payload", "json", "form", "formdata", "files", "file", "postdata", "requestbody", "bodyfile"}
    | {"rawbody", "jsonbody", "multipart", "upload"}
)
_MOST_LEVELS = 6


def sends_data(given: Any) -> bool:  # noqa: ANN401 - any JSON
    """Check for a method other than GET, HEAD or OPTIONS, and for a body."""
    return _sends(given, "", _MOST_LEVELS)


def _sends(value: Any, name: str, levels: int) -> bool:  # noqa: ANN401 - any JSON
    plain = name.lower().replace("_", "").replace("-", "")
    if plain in _METHOD_FIELDS and isinstance(value, str):
        return bool(value) and value.strip().upper() not in READING_METHODS
    if plain in _BODY_FIELDS:
        return bool(value) or (isinstance(value, int) and not isinstance(value, bool))
    if not levels:
        return isinstance(value, dict | list)
    if isinstance(value, dict):
        return any(_sends(item, str(key), levels - 1) for key, item in value.items())
    return isinstance(value, list) and any(_sends(item, "", levels - 1) for item in value)
