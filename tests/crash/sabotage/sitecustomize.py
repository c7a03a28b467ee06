"""Takes one guard of the gate away, by the name in SABOTAGE: what the crash test says then shows that it can fail."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jackline.domain.records import Call


def receipts() -> None:
    """An effect that has a receipt is made again."""
    from jackline.domain import gate

    gate._find_stored_result = lambda *_: None


def doubts() -> None:
    """What was cut off is taken for not done."""
    from jackline.engine import recovery
    from jackline.store.contract import Settlement

    recovery._probe_call = lambda store, lease, call, prober, at: store.settle(
        lease, Settlement(call.id, "did_not", at)
    )


def intents() -> None:
    """The intent of an effect is written down as done, before it is made."""
    from jackline.engine import ledger
    from jackline.store.contract import Settlement

    prepare, finish = ledger.Ledger.prepare, ledger.Ledger.finish

    def hasty(self: ledger.Ledger, wish: ledger.Wish) -> ledger.Answer:
        answer = prepare(self, wish)
        if wish.tool == "send" and answer.decision == "allow":
            self._store.settle(self._lease, Settlement(answer.call_id, "succeed", self._now()))
        return answer

    def late(self: ledger.Ledger, report: ledger.Report) -> Call:
        call = self._store.call(self._run.id, report.call_id)
        return call if call is not None and call.state == "done" else finish(self, report)

    ledger.Ledger.prepare = hasty  # type: ignore[method-assign]
    ledger.Ledger.finish = late  # type: ignore[method-assign]


GUARDS = {"receipts": receipts, "doubts": doubts, "intents": intents}

if os.environ.get("SABOTAGE"):
    GUARDS[os.environ["SABOTAGE"]]()
