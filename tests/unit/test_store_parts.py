"""The table of the store's parts says exactly what they have: a method that is not in it could not be called."""

from __future__ import annotations

from importlib import import_module

import pytest

from jackline.store.base import Base
from jackline.store.sql_store import PARTS, SqlStore


@pytest.mark.parametrize("part", PARTS)
def test_every_public_method_of_a_part_is_in_the_table(part: str) -> None:
    module, _, name = part.partition(":")
    found = getattr(import_module(f"jackline.store.{module}"), name)
    own = {method for method in vars(found) if not method.startswith("_")}
    assert issubclass(found, Base)
    assert own == set(PARTS[part].split())


def test_a_store_has_no_attribute_that_no_part_has() -> None:
    store = SqlStore.__new__(SqlStore)
    with pytest.raises(AttributeError):
        store.enqeue  # type: ignore[attr-defined]  # noqa: B018


def test_a_store_that_has_grown_is_a_store_still() -> None:
    store = SqlStore.__new__(SqlStore)
    assert callable(store.list_runs)
    assert callable(store.item)
    assert callable(store.enqueue)
    assert isinstance(store, SqlStore)
    assert type(store).__name__ == "SqlStore"
