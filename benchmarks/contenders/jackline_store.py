"""jackline: the intent before a call, its outcome (and an effect's receipt) after it, each with a chained event."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NoReturn

from benchmarks import samples
from benchmarks.contenders import Prepared, pragmas
from jackline import clock
from jackline.domain.records import Lease, Run
from jackline.domain.states import RunState
from jackline.policy.rules import Rule
from jackline.store.open import open_store
from jackline.store.store import Store


def prepare(folder: str, variant: str) -> Prepared:
    """`variant` is `read` or `effect`, or `ledger`, which the gates call: it derives an effect's key from its input."""
    store = open_store(os.path.join(folder, "jackline.db"), create=True)
    at = clock.wall_ms()
    lease, run = samples.claim_run(
        store, samples.create_run(store, samples.SampleSpec(RunState.RUNNING, folder), at), at
    )
    rules = {"read": samples.READ, "effect": samples.SEND}
    work = _build_pair(store, lease, rules[variant]) if variant in rules else _build_gated_pair(store, lease, run)
    # Behind the contract, because a setting is visible on its own connection only.
    connection = store.driver._connection  # type: ignore[attr-defined]  # noqa: SLF001
    note = store.driver.write(lambda _: pragmas.describe(connection), synced=variant != "read")
    return Prepared(work, note, store.close)


def _build_pair(store: Store, lease: Lease, rule: Rule) -> Callable[[], None]:
    def pair() -> None:
        at = clock.wall_ms()
        samples.durable_call(store, lease, rule, samples.new_id(at), at)

    return pair


def _build_gated_pair(store: Store, lease: Lease, run: Run) -> Callable[[], None]:
    from jackline.engine.call_ledger import CallLedger, CallRequest, CallResult
    from jackline.engine.probes.prober import Prober

    def new_id() -> str:
        return samples.new_id(clock.wall_ms())

    def stop(_why: object, detail: str) -> None:
        raise AssertionError(f"the gate stopped the benchmark: {detail}")

    def warden() -> NoReturn:
        raise AssertionError("no call of the benchmark is in doubt, so nothing is probed")

    prober = Prober(run.spec, {}, 1.0, warden)
    ledger = CallLedger(store, lease, run, prober, now=clock.wall_ms, new_id=new_id, stop=stop)

    def pair() -> None:
        answer = ledger.prepare(CallRequest(samples.SEND.tool, {"id": new_id(), "text": "x" * 100}, "shim"))
        ledger.finish(CallResult(answer.call_id, ok=True, exit_code=0, output="sent", external_id="1"))

    return pair
