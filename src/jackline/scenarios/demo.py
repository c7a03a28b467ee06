"""The demo: two drill cases with narration. A run is killed around an effect and resumed; the effect happens once."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from jackline.errors import JacklineError
from jackline.formatting import pluralize
from jackline.scenarios.case_runner import run_case
from jackline.scenarios.drill_cases import DEMO_CASES
from jackline.scenarios.players import ScriptedPlayer
from jackline.scenarios.sandbox import open_sandbox
from jackline.scenarios.verdicts import PASS, read_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.scenarios.drill_cases import DrillCase

    Say = Callable[[str], None]


class DemoFailed(JacklineError):
    """the demo did not go as promised: {detail}"""  # noqa: D400 - it is the message


def expect(met: bool, otherwise: str) -> None:  # noqa: FBT001 - it reads like an assertion
    """Raise DemoFailed unless it is true."""
    if not met:
        raise DemoFailed(otherwise)


def run_demo(folder: str, home: str, say: Say) -> list[dict[str, Any]]:
    """Play both acts in `folder` with one jackline home; the user's own home and settings are not used."""
    return [_play_case(case, os.path.join(folder, case.name), home, say) for case in DEMO_CASES]


def _play_case(case: DrillCase, folder: str, home: str, say: Say) -> dict[str, Any]:
    counts: list[int] = []

    def count(when: str) -> None:
        counts.append(len(read_lines(sandbox, "outbox.jsonl")))
        say(f"    after the {when} the outbox holds {pluralize(counts[-1], 'report')}")

    def after_kill() -> None:
        count("kill")
        say(f"  $ jackline resume {case.name}")

    say(f"\n— {case.name.replace('-', ' ')} —\n{case.story}\n")
    say(f"  $ jackline run --agent scripted … --run-id {case.name}   (killed at {case.point.partition(':')[0]})")
    with open_sandbox(folder, home) as sandbox:
        verdict = run_case(case, ScriptedPlayer(), sandbox, after_kill)
        expect(verdict.result == PASS, "; ".join(verdict.reasons))
        count("resume")
    with open(sandbox.at("show.json"), encoding="utf-8") as file:
        (receipt,) = json.load(file)["receipts"]
    before, after = counts
    expect(before == (receipt["origin"] == "probe"), f"the outbox held {before} after the kill")
    found = "had arrived, so it was not uploaded again" if before else "had not arrived, so the agent uploaded it"
    say(f"    the probe found that it {found}")
    say(f"    receipt: {receipt['target']} → {receipt['external_id']} (from the {receipt['origin']})")
    return {"run": case.name, "sent_before_kill": before, "sent": after, "receipt": receipt}
