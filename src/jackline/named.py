"""A `NamedTuple` that is cheap to define, and the names under which the fields of records are stored.

Every command defines about fifty record classes when it starts. `typing.NamedTuple` compiles each annotation and a
constructor per class; this one keeps the annotations, which mypy has checked, and compiles a constructor for the first
value of a class. It takes a tenth of the time. For a type checker it is typing's own.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414 - the explicit re-export of this module
else:
    from collections import _tuplegetter, namedtuple

    class _Signature:
        """The signature of a record's constructor, for `help()` and editors; built when it is asked for."""

        def __get__(self, _record: object, cls: type) -> object:
            from inspect import Parameter, Signature

            kinds = {field: cls._field_defaults.get(field, Parameter.empty) for field in cls._fields}
            types = cls.__annotations__
            return Signature(
                Parameter(field, Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=types[field])
                for field, default in kinds.items()
            )

    class _Record(tuple):
        """The methods of every record, copied into each class: typing's have no class between them and tuple."""

        __slots__ = ()
        __signature__ = _Signature()

        def __new__(cls, /, *values: object, **named: object) -> Self:
            """Replace itself by the constructor that `namedtuple` compiles, when the first value is made."""
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
            values, positions = list(self), self._positions
            try:
                for name, value in changes.items():
                    values[positions[name]] = value
            except KeyError:
                message = f"Got unexpected field names: {[name for name in changes if name not in positions]!r}"
                raise ValueError(message) from None
            return tuple.__new__(type(self), values)

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self))  # noqa: B905 - both have the same length; the check costs a fifth

        def __getnewargs__(self) -> tuple[Any, ...]:
            return tuple(self)

        def __repr__(self) -> str:
            values = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
            return f"{type(self).__name__}({values})"

    _SHARED = {name: vars(_Record)[name] for name in vars(_Record) if name not in {"__module__", "__doc__"}}

    class _RecordType(type):
        """Turns the body of a class into a named tuple with its defaults, methods and properties."""

        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = tuple(body.get("__annotations__", ()))
            defaults = {field: body[field] for field in fields if field in body}
            positions = {field: index for index, field in enumerate(fields)}
            getters = {field: _tuplegetter(index, "") for field, index in positions.items()}
            named = {
                "_fields": fields,
                "_field_defaults": defaults,
                "_positions": positions,
                "__match_args__": fields,
            }
            return type(name, (tuple,), {**_SHARED, **body, **getters, **named})

    class NamedTuple(metaclass=_RecordType):
        """The base class of records; they are not instances of it."""


_RecordClass = TypeVar("_RecordClass", bound=type)
_Value = TypeVar("_Value")
_stored: dict[type, tuple[str, ...]] = {}


def stored_as(names: str) -> Callable[[_RecordClass], _RecordClass]:
    """Decorate a record class with the names of its columns or JSON keys, in the order of its fields.

    A field can then be renamed without changing what is stored. Fields must not be reordered: a field that has moved
    away from its name is a TypeError at import. Trailing fields without a name are stored in some other way.
    """

    def name_fields(record: _RecordClass) -> _RecordClass:
        stored, fields = tuple(names.split()), _field_names(record)
        moved = [name for name, field in zip(stored, fields, strict=False) if name != field and name in fields]
        if moved or len(stored) > len(fields):
            message = f"the stored names of {record.__name__} are not in the order of its fields: {' '.join(moved)}"
            raise TypeError(message)
        _stored[record] = stored
        return record

    return name_fields


def stored_names(record: type) -> tuple[str, ...]:
    """Return the names under which the fields of a record class are stored, in the order of the fields."""
    return _stored[record]


def stored_dict(record: Any) -> dict[str, Any]:  # noqa: ANN401 - any record
    """Return the fields of a record by their stored names."""
    names = _stored[type(record)]
    values = record if isinstance(record, tuple) else (getattr(record, name) for name in _field_names(type(record)))
    return dict(zip(names, values))  # noqa: B905 - fields without a stored name are left out


def stored_changes(record: Any) -> dict[str, Any]:  # noqa: ANN401 - any record
    """Return the fields of a record that differ from their defaults, by their stored names."""
    defaults, fields = type(record)._field_defaults, type(record)._fields
    named = zip(_stored[type(record)], fields, record, strict=False)
    return {name: value for name, field, value in named if field not in defaults or defaults[field] != value}


def load_stored(record: type[_Value], data: Mapping[str, Any]) -> _Value:
    """Build a record from its fields by stored name; TypeError if one is missing or unknown."""
    values, unknown = split_stored(record, data)
    if unknown:
        message = f"{record.__name__} has no {unknown[0]}"
        raise TypeError(message)
    return record(**values)


def split_stored(record: type, data: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return stored data by the names of the record's fields, and the stored names that the record does not have."""
    fields = _map_stored_names(record)
    known = {fields[name]: value for name, value in data.items() if name in fields}
    return known, [] if len(known) == len(data) else [name for name in data if name not in fields]


@cache
def _map_stored_names(record: type) -> dict[str, str]:
    """Return the record's fields by stored name; built once, because every run that is read has five such records."""
    return dict(zip(stored_names(record), _field_names(record), strict=False))


def _field_names(record: Any) -> tuple[str, ...]:  # noqa: ANN401 - a class of records or a dataclass
    return getattr(record, "_fields", None) or tuple(record.__dataclass_fields__)
