"""The adapter of kilo: what differs from opencode's, against lines that the real one printed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jackline.agents import registry
from jackline.agents.kilo import ADAPTER, DECLARATION
from jackline.agents.opencode import OpencodeAdapter
from jackline.domain.adapter import TurnRequest
from jackline.domain.outcome import Exit, Outcome, Usage, UsageMeter
from jackline.domain.states import Failure
from jackline.engine.settings import select_variables
from jackline.errors import UsageError
from tests.support.adapters import Ear, turn_request

EAR = Ear(ADAPTER)
hear = EAR.hear


def outcome_of(name: str, code: int) -> Outcome:
    return EAR.outcome_of(name, Exit(code))


def request(**more: Any) -> TurnRequest:
    return turn_request(**{"prompt": "do it", **more})


def test_the_registry_knows_it() -> None:
    assert registry.load_adapter("kilo") is ADAPTER


def test_what_calls_home_stays_behind_or_tries_for_minutes_is_off() -> None:
    launch = ADAPTER.launch(request())
    assert launch.argv[:2] == ("kilo", "run")
    wanted = {
        "KILO_NO_DAEMON": "1", "KILO_TELEMETRY_LEVEL": "off", "KILO_SESSION_RETRY_LIMIT": "1",
        "KILO_DISABLE_SESSION_INGEST": "1", "KILO_DISABLE_AUTOUPDATE": "1", "KILO_DISABLE_CODEBASE_INDEXING": "1",
    }  # fmt: skip
    assert wanted.items() <= launch.env.items()
    assert not any(name.startswith("OPENCODE") for name in launch.env)


def test_what_needs_somebody_there_later_is_refused_to_it() -> None:
    permission = json.loads(ADAPTER.launch(request()).env["KILO_CONFIG_CONTENT"])["permission"]
    assert {"question", "suggest", "schedule_wakeup", "cron_create"} <= permission.keys()
    assert set(permission.values()) == {"deny"}


def test_the_sessions_of_its_cloud_are_not_taken_over() -> None:
    with pytest.raises(UsageError, match="kilo does not accept --cloud-fork here"):
        ADAPTER.launch(request(arguments=("--cloud-fork",)))


def test_it_sees_its_own_variables_and_not_those_of_a_kilo_around_it() -> None:
    ours = {"KILO_API_KEY": "k", "KILO_ORG_ID": "o", "KILO_CONFIG_DIR": "c"}
    assert select_variables({**ours, "KILO_PROCESS_ROLE": "worker", "KILO_PID": "7"}, DECLARATION.passes) == ours


def test_its_launcher_of_npm_stays_so_the_program_behind_it_is_found() -> None:
    assert isinstance(ADAPTER, OpencodeAdapter)
    root = "/usr/lib/node_modules/@kilocode"
    found = ADAPTER.native_path(f"{root}/cli/bin/kilo")
    assert found[0] == f"{root}/cli/bin/.kilo"
    assert f"{root}/cli/node_modules/@kilocode/cli-linux-x64/bin/kilo" in found
    assert f"{root}/cli-linux-arm64/bin/kilo" in found
    assert ADAPTER.native_path(f"{root}/cli-linux-x64/bin/kilo") == ()


def test_calls_tokens_and_the_end_are_heard() -> None:
    heard, meter = hear("calls"), UsageMeter()
    for one in heard:
        if one.usage is not None:
            meter.add(one)
    assert meter.total == Usage(tokens_input=44, tokens_output=28, tokens_cached=4, usd_micros=96)
    assert [one.data.get("exit_code") for one in heard if one.kind == "call.finished"] == [3, None, 0]
    assert not [one for one in heard if one.kind == "raw"]
    assert outcome_of("calls", 0) == outcome_of("resumed", 0) == outcome_of("recovered", 1) == Outcome()


@pytest.mark.parametrize(
    ("name", "failure"),
    [
        ("401", Failure.AUTHENTICATION),
        ("429", Failure.LIMIT),
        ("500", Failure.OVERLOADED),
        ("refused", Failure.CONNECTIVITY),
        ("unknown_model", Failure.MODEL_NOT_FOUND),
    ],
)
def test_errors_are_classified(name: str, failure: Failure) -> None:
    assert outcome_of(name, 1).failure is failure
