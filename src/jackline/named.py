"""`NamedTuple` as typing has it, made in half the time: every command makes some fifty of these classes at its start.

typing compiles each annotation to see whether it could be a type. mypy has done that already, so here they are only
kept. For a type checker this is typing's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414 - said twice: it is what this module is for
else:
    from collections import namedtuple

    _MADE_ALREADY = frozenset({"__annotations__", "__module__", "__qualname__", "__orig_bases__"})

    class _Made(type):
        """Turns the body of a class into a named tuple with its defaults, methods and properties."""

        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = body.get("__annotations__", {})
            defaults = [body[field] for field in fields if field in body]
            made = namedtuple(name, fields, defaults=defaults, module=body["__module__"])  # noqa: PYI024
            made.__annotations__ = made.__new__.__annotations__ = fields
            for key, value in body.items():
                if key not in _MADE_ALREADY and key not in fields:
                    setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_Made):
        """What records inherit from, and are not instances of."""
