"""A call in doubt and a prober below a real warden. For tests of probes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jackline.domain.records import Call
from jackline.domain.spec import Spec
from jackline.domain.states import CallClass, CallState, Decision, Replay
from jackline.engine import key_inputs, probes
from jackline.engine.probes.prober import Prober
from jackline.engine.process import Warden
from jackline.policy.rules import Rule
from jackline.store.models import Settlement

AT = 1_700_000_000_000


class Doubt:
    """One rule with a probe; every call is of its kind."""

    def __init__(self, probe: str, workspace: Path, env: Mapping[str, str], warden: Warden, **rule: Any) -> None:
        self.rule = Rule("the-rule", "Bash", CallClass.EFFECT, probe=probe, **rule)
        self.workspace, self.env, self.warden = workspace, env, warden
        self.rules: tuple[Rule, ...] = (self.rule,)
        self.timeout_s = 30.0

    def call(self, given: object, external: Mapping[str, str] | None = None, **more: Any) -> Call:
        return Call(
            "c1", "r1", 1, 1, 0, 1, "Bash", CallClass.EFFECT, Replay.ASK, Decision.ALLOW, more.pop("rule", "the-rule"),
            "hook", "the-key", "the-target", json.dumps(given), CallState.IN_DOUBT, more.pop("prepared_at", AT),
            external=json.dumps(external) if external else "", **more,
        )  # fmt: skip

    def prepared(self, command: str, **more: Any) -> Call:
        """A call of a shell, with what is written down of it before it runs."""
        words = more.pop("words", command).split()
        fields = {"program": words[0], "arguments": words[1:], "command": command}
        wants = probes.find_wanted_inputs(self.rule.probe)
        told = key_inputs.read_key_inputs(
            wants, fields, str(self.workspace), str(self.workspace), self.env, self.warden
        )
        return self.call({"command": command}, {**told, "folder": str(self.workspace)}, **more)

    def judge(self, call: Call, *, other_host: str = "", **more: Any) -> Settlement | None:
        spec = Spec("do it", str(self.workspace), rules=self.rules)
        prober = Prober(spec, self.env, self.timeout_s, lambda: self.warden, **more)
        return prober.probe_call(call, AT + 1, other_host)

    def found(self, call: Call, **more: Any) -> tuple[str, str]:
        """What is decided, and the evidence."""
        settlement = self.judge(call, **more)
        assert settlement is not None
        return settlement.change, settlement.output or settlement.reason
