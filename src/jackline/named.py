"""`NamedTuple` as typing has it, made in a tenth of the time: every command makes some fifty such classes at its start.

typing compiles each annotation to see whether it could be a type, and for each class a constructor. mypy has seen to
the annotations already, so here they are only kept; and in most commands most classes have no value, so a constructor
is compiled when the first value is made. For a type checker this is typing's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414 - said twice: it is what this module is for
else:
    from collections import _tuplegetter, namedtuple

    class _Record(tuple):
        """What every record can do; copied into each of them, because typing's have no class between them and tuple."""

        __slots__ = ()

        def __new__(cls, /, *values: object, **named: object) -> Self:
            """The first value: from now on the class has the constructor that `namedtuple` compiles."""
            compiled = namedtuple(cls.__name__, cls._fields, defaults=cls._field_defaults.values()).__new__  # noqa: PYI024
            cls.__new__ = staticmethod(compiled)
            return compiled(cls, *values, **named)

        @classmethod
        def _make(cls, values: Iterable[object]) -> Self:
            made = tuple.__new__(cls, values)
            if len(made) != len(cls._fields):
                message = f"Expected {len(cls._fields)} arguments, got {len(made)}"
                raise TypeError(message)
            return made

        def _replace(self, /, **changes: object) -> Self:
            made = self._make(map(changes.pop, self._fields, self))
            if changes:
                message = f"Got unexpected field names: {list(changes)!r}"
                raise ValueError(message)
            return made

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self))  # noqa: B905 - they are as many, and looking costs a fifth

        def __getnewargs__(self) -> tuple[Any, ...]:
            return tuple(self)

        def __repr__(self) -> str:
            told = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
            return f"{type(self).__name__}({told})"

    _SHARED = {name: vars(_Record)[name] for name in vars(_Record) if name not in {"__module__", "__doc__"}}

    class _Made(type):
        """Turns the body of a class into a named tuple with its defaults, methods and properties."""

        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = tuple(body.get("__annotations__", ()))
            defaults = {field: body[field] for field in fields if field in body}
            getters = {field: _tuplegetter(index, "") for index, field in enumerate(fields)}
            named = {"_fields": fields, "_field_defaults": defaults, "__match_args__": fields}
            return type(name, (tuple,), {**_SHARED, **body, **getters, **named})

    class NamedTuple(metaclass=_Made):
        """What records inherit from, and are not instances of."""
