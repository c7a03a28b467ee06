"""Effects of an agent without a gate: the host was not looked at before they ran."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from jackline.clock import wall_ms
from jackline.domain.states import CallState
from jackline.engine.call_ledger import CallLedger, CallRequest, CallResult
from jackline.engine.settings import new_id
from jackline.policy.toml_rules import parse_policy, require_valid
from jackline.store.store import Store
from tests.support.stores import begun

RULES = """
[[rule]]
name = "deploy"
command = "deploy-nowhere"
class = "effect"
decision = "allow"
"""


def make_ledger(store: Store) -> CallLedger:
    lease = begun(store)
    run = store.runs.get(lease.run_id)
    assert run is not None
    run = run._replace(spec=run.spec._replace(rules=require_valid(parse_policy(RULES, "user"), "test"), workspace="/"))
    prober: Any = SimpleNamespace(probe_call=lambda _call, _at, _host="": None)
    return CallLedger(store, lease, run, prober, now=wall_ms, new_id=new_id, stop=lambda _why, _detail: None)


@pytest.mark.parametrize("is_gated", [True, False])
def test_a_program_that_is_missing_proves_something_only_before_the_call(store: Store, *, is_gated: bool) -> None:
    ledger = make_ledger(store)
    request = CallRequest(tool="Bash", input={"command": "deploy-nowhere now"}, door="gate")
    call_id = ledger.prepare(request).call_id if is_gated else ledger.observe(request)
    settled = ledger.finish(CallResult(call_id=call_id, ok=False, exit_code=127))
    assert settled.state is (CallState.FAILED if is_gated else CallState.IN_DOUBT)
