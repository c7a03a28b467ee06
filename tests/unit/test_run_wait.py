"""Watching a run that others work on: an outage of the database ends no wait."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from jackline.app.run_wait import wait_while_busy
from jackline.domain.states import RunState
from jackline.errors import StoreUnavailable
from jackline.store.models import RunMark


class FlakyStore:
    """A store whose database is away for some reads; then the run has ended."""

    def __init__(self, outage: int) -> None:
        self.outage, self.reads = outage, 0
        self.runs = SimpleNamespace(get_mark=self.get_mark)
        self.records = SimpleNamespace(list_holders=self.list_holders)

    def read(self) -> None:
        self.reads += 1
        if 1 < self.reads <= self.outage:
            raise StoreUnavailable(detail="restarting")

    def get_mark(self, _run_id: str) -> RunMark:
        self.read()
        state = RunState.SUCCEEDED if self.reads > self.outage else RunState.RUNNING
        return RunMark(state=state, reason=None, event_seq=1, attempt=1, wake_at=None)

    def list_holders(self, _ids: list[str]) -> list[Any]:
        self.read()
        return []


def test_an_outage_does_not_end_the_wait_for_another_process() -> None:
    store = FlakyStore(outage=6)
    home: Any = SimpleNamespace(store=lambda: store, folder=lambda run_id: f"/nowhere/{run_id}")
    run: Any = SimpleNamespace(id="r")
    assert wait_while_busy(home, run, lambda _seconds: False) is False
    assert store.reads > store.outage
