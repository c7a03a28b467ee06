"""Probes: how a rule finds out whether an effect happened. What a probe cannot tell is left to a person, with evidence.

A probe is a built-in one (`builtin:NAME`, see `engine.probing`) or a shell command: exit 0 happened, 1 did not, else
nobody knows.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jackline import faults
from jackline.clock import boot_ms
from jackline.domain.combining import JOINED
from jackline.domain.secrets import REDACTED
from jackline.domain.states import CallClass, ReasonCode, Replay
from jackline.engine import probing
from jackline.engine.command import CommandResult, Wanted, always, run_command
from jackline.engine.probing.finding import DID_NOT, HAPPENED, SENT_AGAIN, UNKNOWN, Finding, together, unknown
from jackline.engine.probing.scene import Scene, how_it_ended, parsed, told_by
from jackline.engine.process import SpawnFailed, WardenLost
from jackline.store.contract import Settlement

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jackline.domain.records import Call, Spec
    from jackline.domain.rule import Rule
    from jackline.engine.process import Warden

_VERDICTS = {0: HAPPENED, 1: DID_NOT}
_EVIDENCE = 65_536
_REASON = 2_000


class Prober:
    """Judges calls in doubt; what it cannot judge is a person's to say."""

    def __init__(
        self,
        spec: Spec,
        env: Mapping[str, str],
        timeout_s: float,
        warden: Callable[[], Warden],
        *,
        whole: Callable[[Call], str] = lambda call: call.input,
        wanted: Wanted = always,
    ) -> None:
        """Probes run without the gate, below the attempt's warden; `whole` gives an input that was too long to show.

        When the judgement is not `wanted` any more, the probe that runs is ended, and no other begins.
        """
        self._spec, self._env, self._timeout_s, self._warden = spec, env, timeout_s, warden
        self._whole, self._wanted = whole, wanted

    def judge(self, call: Call, at: int) -> Settlement | None:
        """What a probe found, or what the rule's replay allows without one; None if nothing could be looked at.

        A probe that does not know leaves the call in doubt, with its evidence as the reason.
        """
        findings = [self._finding(call, rule) for rule in _parts(self._spec, call) if self._wanted()]
        seen = [one for one in findings if one is not None]
        if not seen or not self._wanted():  # who was interrupted has not looked at all of it
            return None
        finding = together([one or unknown("the rule has no probe") for one in findings])
        return _settlement(call, at, finding)

    def _finding(self, call: Call, rule: Rule) -> Finding | None:
        if rule.probe:
            probe = self._built_in if probing.is_built_in(rule.probe) else self._shell
            finding = self._guarded(probe, call, rule)
            faults.reach("probe.finished")
            if finding.verdict != UNKNOWN:
                return finding
            # To send again is harmless by the rule's own word, whatever the probe could not see.
            again = finding._replace(verdict=DID_NOT, evidence=f"{SENT_AGAIN}; {finding.evidence}", again=True)
            return again if rule.replay is Replay.IDEMPOTENT else finding
        if rule.replay is Replay.IDEMPOTENT:
            return Finding(DID_NOT, SENT_AGAIN, again=True)
        return None

    def _guarded(self, probe: Callable[[Call, Rule, Warden], Finding], call: Call, rule: Rule) -> Finding:
        """A probe that cannot be run at all finds nothing out, and the reason why is its evidence."""
        try:
            finding = probe(call, rule, self._warden())
        except (SpawnFailed, WardenLost) as error:
            finding = unknown(f"it could not be run: {error}")
        return finding if finding.probe else finding._replace(probe=rule.probe)

    def _built_in(self, call: Call, rule: Rule, warden: Warden) -> Finding:
        look = probing.function_of(rule.probe)
        if look is None:
            return unknown("this version has no such probe")
        deadline = boot_ms() + int(self._timeout_s * 1000)
        whole = self._whole(call)
        place = (self._spec.workspace, self._env, deadline, warden, self._wanted)
        scene = Scene(call, parsed(whole), told_by(call), *place)
        finding = look(scene)
        if finding.verdict == DID_NOT and probing.compares(rule.probe) and REDACTED in whole:
            return unknown(f"{finding.evidence}; but the call had a secret, which is not kept, and cannot be compared")
        return finding

    def _shell(self, call: Call, rule: Rule, warden: Warden) -> Finding:
        result = run_command(
            ["/bin/sh", "-c", rule.probe],
            cwd=self._spec.workspace,
            env={**self._env, "JACKLINE_CALL_ID": call.id, "JACKLINE_CALL_KEY": call.key},
            stdin=_question(call, parsed(self._whole(call))),
            timeout_s=self._timeout_s,
            output_limit=_EVIDENCE,
            below=warden,
            wanted=self._wanted,
        )
        verdict = _verdict(result)
        if verdict == UNKNOWN:
            return unknown(how_it_ended(result))
        said = result.stdout_tail.decode("utf-8", "replace").strip()
        return Finding(verdict, said, said.partition("\n")[0], f"{rule.probe} (exit {result.exit_code})")


def _parts(spec: Spec, call: Call) -> list[Rule]:
    """The rules that met in the call. A project that nobody trusts may tighten, and shall have no program run."""
    from jackline.domain import policy  # nothing is in doubt where a run begins, and the agent need not wait for it

    names = (name for name in call.rule.split(JOINED) if name != CallClass.READ)
    return [rule for rule in (policy.named(spec.rules, name) for name in names) if not rule.tightens]


def _verdict(result: CommandResult) -> str:
    if result.timed_out or result.exit_code is None:
        return UNKNOWN
    return _VERDICTS.get(result.exit_code, UNKNOWN)


def _settlement(call: Call, at: int, finding: Finding) -> Settlement:
    origin = "probe" if finding.probe else "rule"
    if finding.verdict == UNKNOWN:  # the call keeps the output that it had
        reason = f"nobody knows whether it took effect. Probe {finding.probe}: {finding.evidence}"
        return Settlement(call.id, "doubt", at, origin=origin, reason=reason[:_REASON])
    reason = finding.probe or finding.evidence
    if finding.again:
        reason = f"{finding.evidence}; probe {finding.probe}" if finding.probe else finding.evidence
    output = finding.evidence if finding.probe else ""
    return Settlement(
        call.id,
        finding.verdict,
        at,
        output,
        external_id=finding.external_id,
        origin=origin,
        reason=reason[:_REASON],
        reason_code=ReasonCode.SEND_AGAIN if finding.again else "",
    )


def _question(call: Call, given: Any) -> bytes:  # noqa: ANN401
    asked = {
        "call": call.id,
        "tool": call.tool,
        "input": given,
        "target": call.target,
        "key": call.key,
        "rule": call.rule,
        "external": told_by(call),
    }
    return json.dumps(asked).encode()
