"""Our NamedTuple does what typing's does, for everything that a record of ours uses."""

from __future__ import annotations

import pickle
import typing
from collections.abc import Callable
from typing import Any

import pytest

from jackline import named
from jackline.domain.records import RunStatus
from jackline.domain.spec import Spec

BODY = '''
from __future__ import annotations

class Made(NamedTuple):
    """What it is for."""

    first: int
    second: Unknown | None
    third: tuple[str, ...] = ()

    @property
    def both(self) -> int:
        return self.first + 1

    @classmethod
    def of(cls, first: int) -> Made:
        return cls(first, None)
'''


def made(base: object) -> Any:
    place: dict[str, Any] = {"NamedTuple": base, "__name__": "somewhere"}
    exec(BODY, place)  # noqa: S102 - the same text under both
    return place["Made"]


OURS, THEIRS = made(named.NamedTuple), made(typing.NamedTuple)


@pytest.mark.parametrize(
    "name", ["__name__", "__qualname__", "__module__", "__doc__", "_fields", "_field_defaults", "__mro__"]
)
def test_a_class_is_made_as_typing_makes_it(name: str) -> None:
    ours, theirs = getattr(OURS, name), getattr(THEIRS, name)
    assert (ours[1:] == theirs[1:]) if name == "__mro__" else (ours == theirs)


def test_a_value_behaves_as_one_of_typings() -> None:
    ours, theirs = OURS(1, second=2), THEIRS(1, second=2)
    assert ours == theirs == (1, 2, ())
    assert (repr(ours), ours._asdict(), ours.both) == (repr(theirs), theirs._asdict(), 2)
    assert ours._replace(first=3) == theirs._replace(first=3)
    assert OURS.of(4) == THEIRS.of(4)
    with pytest.raises(TypeError):
        OURS(1)
    with pytest.raises(AttributeError):
        ours.first = 2


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (TypeError, lambda one: one(1)),
        (TypeError, lambda one: one(1, 2, 3, 4)),
        (TypeError, lambda one: one(1, 2, fourth=3)),
        (TypeError, lambda one: one._make((1, 2))),
        (ValueError, lambda one: one(1, 2)._replace(fourth=3)),
        (ValueError, lambda one: one(1, 2)._replace(fifth=1, first=2, fourth=3)),
    ],
)
def test_a_mistake_is_the_mistake_that_it_is_with_typing(kind: type[Exception], wrong: Callable[[Any], object]) -> None:
    told = []
    for one in (made(named.NamedTuple), THEIRS):  # a fresh one: its first value is the one that is wrong
        with pytest.raises(kind) as caught:
            wrong(one)
        told.append(str(caught.value))
    assert told[0] == told[1]


def test_a_constructor_is_compiled_with_the_first_value_of_its_class_and_kept() -> None:
    one, other = made(named.NamedTuple), made(named.NamedTuple)
    before = one.__new__
    assert one(1, 2) == (1, 2, ())
    compiled = one.__new__
    assert one(3, 4, third=("x",)) == (3, 4, ("x",))
    assert one.__new__ is compiled
    assert before is other.__new__
    assert before is not compiled


def test_a_class_that_inherits_from_a_record_makes_values_of_its_own() -> None:
    below = type("Below", (OURS,), {})
    assert type(below(1, 2)) is below
    assert type(OURS(1, 2)) is OURS


def test_a_record_survives_pickling() -> None:
    life = RunStatus(detail="x")
    assert pickle.loads(pickle.dumps(life)) == life  # noqa: S301 - our own
    assert Spec.from_dict(Spec("p", "/w").to_dict()) == Spec("p", "/w")


def stored_record(names: str, fields: str) -> Any:
    body = "\n".join(f"    {field}: int" for field in fields.split())
    place: dict[str, Any] = {"NamedTuple": named.NamedTuple, "stored_as": named.stored_as, "__name__": "somewhere"}
    exec(f"@stored_as({names!r})\nclass Made(NamedTuple):\n{body}\n", place)  # noqa: S102 - a class for each case
    return place["Made"]


def test_a_renamed_field_keeps_its_stored_name() -> None:
    renamed = stored_record("life step", "status step")
    assert named.stored_dict(renamed(1, 2)) == {"life": 1, "step": 2}
    assert named.load_stored(renamed, {"step": 2, "life": 1}) == (1, 2)
    assert named.split_stored(renamed, {"life": 1, "later": 3}) == ({"status": 1}, ["later"])
    with pytest.raises(TypeError, match="Made has no later"):
        named.load_stored(renamed, {"life": 1, "step": 2, "later": 3})


@pytest.mark.parametrize("fields", ["step life", "step status life", "life"])
def test_a_field_that_has_left_its_place_is_refused(fields: str) -> None:
    with pytest.raises(TypeError, match="the stored names of Made are not in the order of its fields"):
        stored_record("life step", fields)
