"""Proves that an agent's gate holds, once for each program and its settings; canaries.json stores the result.

It does not cover a project's settings: the adapter's own settings override most of them, and a run detects the others
(`engine.observed_calls`, `engine.hook_handler`).
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from jackline import clock
from jackline.app import agent_versions, state_files
from jackline.digests import hash_text
from jackline.domain.adapter import TurnRequest
from jackline.domain.agent_ref import split_agent
from jackline.engine.gate_socket import find_hooks
from jackline.errors import JacklineError, Ungated

if TYPE_CHECKING:
    from jackline.app.agents import AgentProgram
    from jackline.domain.adapter import Adapter, Hooks

CACHE = agent_versions.CANARIES


def check_gate(home: str, adapter: Adapter, found: AgentProgram) -> None:
    """Raise Ungated if the program's gate does not hold; an agent without hooks has none to prove."""
    hooks = find_hooks(adapter)
    if hooks is None:
        return
    request = build_request(found.binary, hooks)
    note, key = os.path.join(home, CACHE), _build_key(adapter, request, found)
    account = split_agent(adapter.declaration.name).account
    known = state_files.read_entries(note).get(found.binary, {})
    proved = _read_accounts(known) if known.get("key") == key else {}
    if known.get("key") == key and (not account or account in proved):
        return
    from jackline.app.canary_trial import find_gate_fault

    why = find_gate_fault(adapter, hooks, request)
    if why:
        raise Ungated(found.name, why=f"{found.binary} {why}")
    entry: dict[str, object] = {"key": key, "version": found.version, "at": clock.wall_ms()}
    if account or proved:
        entry["accounts"] = {**proved, **({account: clock.wall_ms()} if account else {})}
    with suppress(JacklineError):  # without the note, the next run only repeats the trial
        state_files.update_entries(note, lambda others: {**agent_versions.drop_missing(others), found.binary: entry})


def _read_accounts(entry: state_files.Entry) -> dict[str, object]:
    """The accounts for which the trial was made, besides the agent without one."""
    accounts = entry.get("accounts")
    return dict(accounts) if isinstance(accounts, dict) else {}


def build_request(binary: str, hooks: Hooks) -> TurnRequest:
    """The turn of the trial, which sets its folders and its gate."""
    return TurnRequest(
        run_id="canary",
        attempt=1,
        turn=1,
        role="work",
        prompt="run the commands",
        workspace="/",
        folder="/",
        gate="",
        token="",
        binary=binary,
        arguments=hooks.canary_args,
    )


def _build_key(adapter: Adapter, request: TurnRequest, found: AgentProgram) -> str:
    """Identifies the program and everything that it is started with."""
    launch = adapter.launch(request)
    settings = hash_text(repr((launch.argv, sorted(launch.env.items()), sorted(launch.files.items()))))
    return f"{agent_versions.identify_file(found.binary)}:{found.version}:{settings}"
