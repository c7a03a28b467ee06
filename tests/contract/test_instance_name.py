"""The name of an instance: the first one stays, on both stores."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from jackline.store.store import Store


def test_the_names_that_were_given_first_stay(store: Store) -> None:
    assert store.admin.name_instance("grove", "forge") == ("grove", "forge")
    assert store.admin.name_instance("grove", "other") == ("grove", "forge")
    assert store.admin.name_instance("pilot", "forge") == ("grove", "forge")


def test_what_cannot_be_stored_is_replaced(store: Store) -> None:
    assert store.admin.name_instance("gr\x00ve", "for\ud800ge") == ("gr\ufffdve", "for\ufffdge")


def test_of_many_at_once_one_wins_with_both_names(store: Store) -> None:
    names = [(f"host-{number}", f"agent-{number}") for number in range(20)]
    with ThreadPoolExecutor(8) as pool:
        said = set(pool.map(lambda one: store.admin.name_instance(*one), names))
    assert len(said) == 1
    assert said <= set(names)
