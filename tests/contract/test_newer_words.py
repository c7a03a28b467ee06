"""A database of a newer version has words that this one does not know: readers show them as text."""

from __future__ import annotations

import pytest

from jackline.domain.states import EXIT_PERSON, Failure, Phase, WaitReason, exit_code
from jackline.store.models import RunQuery
from jackline.store.store import Store
from tests.support.stores import by_hand, made


def test_a_run_with_unknown_words_is_read(store: Store) -> None:
    made(store)
    by_hand(store, "UPDATE runs SET state = 'waiting', reason = 'weather', goal = 'dreaming', failure = 'rain'")
    run = store.runs.get("run-1")
    assert run is not None
    status = run.status
    assert (str(status.reason), str(status.goal), str(status.failure)) == ("weather", "dreaming", "rain")
    assert status.reason not in set(WaitReason)
    assert exit_code(status.state, status.reason, status.failure) == EXIT_PERSON
    (row,) = store.runs.list_page(RunQuery(limit=5))
    assert row.reason == "weather"


@pytest.mark.parametrize("words", [WaitReason, Phase, Failure])
def test_known_words_stay_members(words: type[WaitReason | Phase | Failure]) -> None:
    assert all(words(str(one)) is one for one in words)
    assert "weather" not in {str(one) for one in words if words("weather")}
