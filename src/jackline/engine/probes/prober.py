"""Runs the probe of a rule to find out whether an effect happened. If that stays unknown, a person decides.

A probe is built in (`builtin:NAME`) or a shell command: exit code 0 means that the effect happened, 1 that it did not,
any other that it is unknown.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jackline import crash_points
from jackline.clock import boot_ms
from jackline.domain.call_gate import HOST
from jackline.domain.states import CallClass, ReasonCode, Replay
from jackline.engine import probes
from jackline.engine.command_runner import StillWanted, always_wanted, run_command
from jackline.engine.probes.findings import (
    DID_NOT,
    HAPPENED,
    SENT_AGAIN,
    UNKNOWN,
    ProbeContext,
    ProbeFinding,
    build_unknown,
    combine_findings,
    describe_exit,
    parse_json,
    read_stored_inputs,
)
from jackline.engine.process import SpawnFailed, WardenLost
from jackline.policy.rules import NAME_SEPARATOR
from jackline.secrets.redactor import REDACTED
from jackline.store.models import Settlement

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jackline.domain.records import Call
    from jackline.domain.spec import Spec
    from jackline.engine.process import Warden
    from jackline.policy.rules import Rule

_VERDICTS = {0: HAPPENED, 1: DID_NOT}
_EVIDENCE = 65_536
_REASON = 2_000


class Prober:
    """Settles calls in doubt; those it cannot settle are left to a person."""

    def __init__(
        self,
        spec: Spec,
        env: Mapping[str, str],
        timeout_s: float,
        warden: Callable[[], Warden],
        *,
        whole: Callable[[Call], str] = lambda call: call.input,
        wanted: StillWanted = always_wanted,
        wait_for_host: Callable[[], bool] = lambda: False,
        host_env: Mapping[str, str] | None = None,
    ) -> None:
        """Probes run ungated, below the attempt's warden. `whole` returns the full input of a call.

        Once the result is not `wanted` any more, the running probe is killed and no other starts. `wait_for_host` waits
        out the grace time of another host; it returns False if there is none. `host_env` is the environment of the
        host's own effects.
        """
        self._spec, self._env, self._timeout_s, self._warden = spec, env, timeout_s, warden
        self._whole, self._wanted, self._wait_for_host = whole, wanted, wait_for_host
        self._host_env = env if host_env is None else host_env

    def probe_call(self, call: Call, at: int, other_host: str = "") -> Settlement | None:
        """Settle a call by its probe, or by its rule's replay; None if there is neither.

        A probe without a verdict leaves the call in doubt, with its evidence as the reason. `other_host` is the host
        that made the call, if it is not this one.
        """
        rules = _find_rules(self._spec, call)
        if other_host and any(map(_can_be_late, rules)) and self._wait_for_host():
            other_host = ""
        findings = [self._find(call, rule, other_host) for rule in rules if self._wanted()]
        seen = [one for one in findings if one is not None]
        if not seen or not self._wanted():  # interrupted: not every rule was probed
            return None
        finding = combine_findings([one or build_unknown("the rule has no probe") for one in findings])
        return _build_settlement(call, at, finding)

    def _find(self, call: Call, rule: Rule, other_host: str) -> ProbeFinding | None:
        if rule.probe:
            probe = self._run_built_in if probes.is_built_in(rule.probe) else self._run_shell
            finding = self._run_probe(probe, call, rule)
            crash_points.crash_point("probe.finished")
            if finding.verdict == DID_NOT and other_host and _can_be_late(rule):
                # Nothing here can kill its processes: a suspended machine makes the call when it wakes up.
                late = f"host {other_host} made the call; if it is only suspended, it may still do so: check it first"
                return finding._replace(
                    verdict=UNKNOWN, evidence=f"{late}. The probe found nothing: {finding.evidence}"
                )
            if finding.verdict != UNKNOWN:
                return finding
            # By its rule the call may be sent again, whatever the probe could not find out.
            again = finding._replace(verdict=DID_NOT, evidence=f"{SENT_AGAIN}; {finding.evidence}", again=True)
            return again if rule.replay is Replay.IDEMPOTENT else finding
        if rule.replay is Replay.IDEMPOTENT:
            return ProbeFinding(verdict=DID_NOT, evidence=SENT_AGAIN, again=True)
        return None

    def _run_probe(self, probe: Callable[[Call, Rule, Warden], ProbeFinding], call: Call, rule: Rule) -> ProbeFinding:
        """Run a probe; if it cannot be started, the reason is its evidence."""
        try:
            try:
                finding = probe(call, rule, self._warden())
            except WardenLost:  # it reached its deadline while this process was suspended: try below a new one
                finding = probe(call, rule, self._warden())
        except (SpawnFailed, WardenLost) as error:
            finding = build_unknown(f"it could not be started: {error}")
        return finding if finding.probe else finding._replace(probe=rule.probe)

    def _run_built_in(self, call: Call, rule: Rule, warden: Warden) -> ProbeFinding:
        probe = probes.load_probe(rule.probe)
        if probe is None:
            return build_unknown("this version has no such probe")
        deadline = boot_ms() + int(self._timeout_s * 1000)
        whole = self._whole(call)
        env = self._host_env if call.door == HOST else self._env
        context = (self._spec.workspace, env, deadline, warden, self._wanted)
        finding = probe(ProbeContext(call, parse_json(whole), read_stored_inputs(call), *context))
        if finding.verdict == DID_NOT and probes.compares_input(rule.probe) and REDACTED in whole:
            return build_unknown(
                f"{finding.evidence}; but the call has a secret, which is not stored and cannot be compared"
            )
        return finding

    def _run_shell(self, call: Call, rule: Rule, warden: Warden) -> ProbeFinding:
        result = run_command(
            ["/bin/sh", "-c", rule.probe],
            cwd=self._spec.workspace,
            env={**self._env, "JACKLINE_CALL_ID": call.id, "JACKLINE_CALL_KEY": call.key},
            stdin=_build_stdin(call, parse_json(self._whole(call))),
            timeout_s=self._timeout_s,
            output_limit=_EVIDENCE,
            below=warden,
            wanted=self._wanted,
        )
        code = None if result.timed_out else result.exit_code
        verdict = UNKNOWN if code is None else _VERDICTS.get(code, UNKNOWN)
        if verdict == UNKNOWN:
            return build_unknown(describe_exit(result))
        output = result.stdout_tail.decode("utf-8", "replace").strip()
        return ProbeFinding(
            verdict=verdict,
            evidence=output,
            external_id=output.partition("\n")[0],
            probe=f"{rule.probe} (exit {result.exit_code})",
        )


def _find_rules(spec: Spec, call: Call) -> list[Rule]:
    """The rules of the call whose probes may run: an untrusted project may tighten rules, but not run programs."""
    from jackline.policy import rule_lookup  # not needed before a call is in doubt

    names = (name for name in call.rule.split(NAME_SEPARATOR) if name != CallClass.READ)
    return [rule for rule in (rule_lookup.find_rule(spec.rules, name) for name in names) if not rule.tightens]


def _can_be_late(rule: Rule) -> bool:
    """Whether a call that its host makes after the probe would be a second one that does harm."""
    return bool(rule.probe) and rule.replay is not Replay.IDEMPOTENT


def _build_settlement(call: Call, at: int, finding: ProbeFinding) -> Settlement:
    origin = "probe" if finding.probe else "rule"
    if finding.verdict == UNKNOWN:  # the call keeps its output
        reason = f"it is unknown whether it took effect: {finding.evidence} (probe {finding.probe})"
        return Settlement(call_id=call.id, change="doubt", at=at, origin=origin, reason=reason[:_REASON])
    reason = finding.probe or finding.evidence
    if finding.again:
        reason = f"{finding.evidence}; probe {finding.probe}" if finding.probe else finding.evidence
    output = finding.evidence if finding.probe else ""
    return Settlement(
        call_id=call.id,
        change=finding.verdict,
        at=at,
        output=output,
        external_id=finding.external_id,
        origin=origin,
        reason=reason[:_REASON],
        reason_code=ReasonCode.SEND_AGAIN if finding.again else "",
    )


def _build_stdin(call: Call, tool_input: Any) -> bytes:  # noqa: ANN401
    asked = {
        "call": call.id,
        "tool": call.tool,
        "input": tool_input,
        "target": call.target,
        "key": call.key,
        "rule": call.rule,
        "external": read_stored_inputs(call),
    }
    return json.dumps(asked).encode()
