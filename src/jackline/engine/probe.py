"""Probes: a rule's own way to find out whether an effect happened (exit 0), did not (1), or nobody knows (else)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from jackline import faults
from jackline.domain import policy
from jackline.domain.states import Replay
from jackline.engine.command import CommandResult, run_command
from jackline.engine.process import SpawnFailed, WardenLost
from jackline.store.contract import Settlement

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jackline.domain.records import Call, Spec
    from jackline.domain.rule import Rule
    from jackline.engine.process import Warden

_HAPPENED, _DID_NOT = 0, 1
_EVIDENCE = 65_536


class Prober:
    """Judges calls in doubt; what it cannot judge is a person's to say."""

    def __init__(self, spec: Spec, env: Mapping[str, str], timeout_s: float, warden: Callable[[], Warden]) -> None:
        """Probes run in the workspace, without the gate, below the attempt's warden like everything else."""
        self._spec, self._env, self._timeout_s, self._warden = spec, env, timeout_s, warden

    def judge(self, call: Call, at: int) -> Settlement | None:
        """What the probe found, or what the rule's replay allows without one; None if nobody knows."""
        rule = policy.named(self._spec.rules, call.rule)
        if rule.probe:
            return self._probe(call, rule, at)
        if rule.replay is Replay.IDEMPOTENT:
            return Settlement(call.id, "did_not", at, origin="rule", reason="idempotent: sent again with its key")
        return None

    def _probe(self, call: Call, rule: Rule, at: int) -> Settlement | None:
        result = self._run(call, rule)
        if result is None:
            return None
        faults.reach("probe.finished")
        evidence = result.stdout_tail.decode("utf-8", "replace").strip()
        changes = {_HAPPENED: "happened", _DID_NOT: "did_not"}
        change = None if result.timed_out else changes.get(result.exit_code if result.exit_code is not None else -1)
        if change is None:
            return None
        first = evidence.partition("\n")[0]
        return Settlement(call.id, change, at, output=evidence, external_id=first, origin="probe", reason=rule.probe)

    def _run(self, call: Call, rule: Rule) -> CommandResult | None:
        """None if the probe cannot be run at all: then nobody knows, and a person is asked."""
        try:
            return run_command(
                ["/bin/sh", "-c", rule.probe],
                cwd=self._spec.workspace,
                env={**self._env, "JACKLINE_CALL_ID": call.id, "JACKLINE_CALL_KEY": call.key},
                stdin=_question(call),
                timeout_s=self._timeout_s,
                output_limit=_EVIDENCE,
                below=self._warden(),
            )
        except (SpawnFailed, WardenLost):
            return None


def _question(call: Call) -> bytes:
    asked = {"call": call.id, "tool": call.tool, "input": json.loads(call.input), "target": call.target}
    return json.dumps(asked).encode()
