"""Takes one guard of the gate away, by the name in SABOTAGE: what the crash test says then shows that it can fail."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jackline.domain.records import Call


def receipts() -> None:
    """An effect that has a receipt is made again."""
    from jackline.domain import call_gate

    call_gate._find_stored_result = lambda *_: None


def doubts() -> None:
    """What was cut off is taken for not done."""
    from jackline.engine import recovery
    from jackline.store.models import Settlement

    recovery._probe_call = lambda store, lease, call, prober, at, other_host: store.ledger.settle(
        lease, Settlement(call.id, "did_not", at)
    )


def intents() -> None:
    """The intent of an effect is written down as done, before it is made."""
    from jackline.engine import call_ledger
    from jackline.store.models import Settlement

    prepare, finish = call_ledger.CallLedger.prepare, call_ledger.CallLedger.finish

    def hasty(self: call_ledger.CallLedger, request: call_ledger.CallRequest) -> call_ledger.GateAnswer:
        answer = prepare(self, request)
        if request.tool == "send" and answer.decision == "allow":
            self._store.ledger.settle(self._lease, Settlement(answer.call_id, "succeed", self._now()))
        return answer

    def late(self: call_ledger.CallLedger, report: call_ledger.CallResult) -> Call:
        call = self._store.calls.get(self._run.id, report.call_id)
        return call if call is not None and call.state == "done" else finish(self, report)

    call_ledger.CallLedger.prepare = hasty  # type: ignore[method-assign]
    call_ledger.CallLedger.finish = late  # type: ignore[method-assign]


GUARDS = {"receipts": receipts, "doubts": doubts, "intents": intents}

if os.environ.get("SABOTAGE"):
    GUARDS[os.environ["SABOTAGE"]]()
