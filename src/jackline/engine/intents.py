"""Applies the policy: builds an intent from a call request, and a settlement from a call result. It stores nothing.

Loaded while the agent starts, not before: it is the only part of the launch path that imports the policy.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from jackline.domain import external
from jackline.domain.call_gate import Intent, IntentEffect, RuleLimit
from jackline.domain.call_text import EFFECTS, FOLDER, KEPT
from jackline.domain.events import canonical
from jackline.domain.spec import INSIST
from jackline.domain.states import CallClass, Decision, Replay
from jackline.engine.asked_parts import build_asked_parts
from jackline.engine.exit_evidence import find_impossible_codes
from jackline.engine.program_links import make_resolver
from jackline.named import NamedTuple
from jackline.policy import agreements, builtin, classify, keys, profiles, rule_lookup
from jackline.policy.agreements import AskedPart
from jackline.policy.call_context import build_context
from jackline.policy.reader_turns import LimitedCall, limit_to_reading
from jackline.policy.rules import merge_rules
from jackline.store.models import Settlement

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jackline.domain.records import Call, Run
    from jackline.domain.spec import Spec
    from jackline.engine.call_ledger import CallRequest, CallResult
    from jackline.engine.work_backup import Backup
    from jackline.policy.classify import Classification
    from jackline.policy.discarded_work import Discard
    from jackline.policy.effect_parts import EffectPart
    from jackline.policy.reader_turns import ReaderTurn
    from jackline.policy.rules import Rule


class TurnFacts(NamedTuple):
    """What the gate knows about the turn that asks, besides its run."""

    workspace: str = ""  # empty: the run's
    closed_ports: frozenset[int] = frozenset()  # on loopback: our own listeners, and docker's
    environ: Mapping[str, str] = os.environ  # what the agent's programs are looked up in
    reader: ReaderTurn | None = None  # it may only read


def build_intent(
    request: CallRequest,
    run: Run,
    secret: bytes,
    call_id: str,
    read_inputs: Callable[[Classification, object], Mapping[str, str]],
    keep_work: Callable[[tuple[Discard, ...], str], Backup] | None,
    facts: TurnFacts,
) -> tuple[Intent, Classification]:
    """Build the intent of a call: its rule, its key, its target. `keep_work` keeps what the call would discard."""
    reader = facts.reader
    run = run._replace(spec=run.spec._replace(workspace=facts.workspace or run.spec.workspace))
    spec, folder = run.spec, request.folder or run.spec.workspace
    where = build_context(spec, folder, make_resolver(spec.workspace), facts.closed_ports)
    classified = classify.classify_call(spec.rules, request.tool, request.input, where)
    limited = LimitedCall(classified)
    if reader is not None:
        limited = limit_to_reading(reader, classified, request.tool, request.input, where)
        classified = limited.classified
        if limited.is_prevented:  # its calls are never those of the worker, whatever their words
            run = run._replace(lineage=f"{run.lineage}:{reader.role}")
    known = read_inputs(classified, request.input)
    backup = None
    if classified.discards and keep_work is not None and classified.rule.decision is not Decision.DENY:
        backup = keep_work(classified.discards, call_id)
    decided = _decide_call(request, spec, classified, known, read_inputs, backup)
    rule, fields = decided.rule, decided.fields
    impossible: frozenset[int] = frozenset()
    if rule.call_class is CallClass.EFFECT and classified.folder:
        impossible = find_impossible_codes(request.tool, request.input, classified.folder, facts.environ)
    normal = keys.normalize_input(request.input, spec.workspace)
    effects = tuple(_build_effect(one, classified, request, run, secret, read_inputs) for one in classified.effects)
    notes = {**known, **_build_notes(decided, effects, backup, folder, spec)}
    intent = Intent(
        call_id=call_id,
        tool=request.tool,
        rule=rule,
        key=_join_keys(secret, effects) or keys.build_key(secret, run.lineage, rule, request.tool, normal, fields),
        target=_join_targets(effects) or keys.build_target(rule, normal, fields),
        input=canonical(normal),
        door=request.door,
        agent_call=request.agent_call,
        mistake=classified.mistake,
        external=canonical(notes) if notes else "",
        run_id=run.id,
        impossible=impossible,
        limits=_build_limits(spec, rule, classified) if rule.most is not None else (),
        parts=decided.parts,
        is_unattended=decided.is_unattended or reader is not None,
        effects=effects,
        company="; ".join(classified.company),
        refusal=limited.refusal,
        is_prevented=limited.is_prevented,
    )
    return intent, classified


class _DecidedCall(NamedTuple):
    """What the policy and the user's agreements decide about a call."""

    rule: Rule
    parts: tuple[AskedPart, ...]  # what a person is asked about, or was
    fields: Mapping[str, object]
    is_unattended: bool


def _decide_call(
    request: CallRequest,
    spec: Spec,
    classified: Classification,
    known: Mapping[str, str],
    read_inputs: Callable[[Classification, object], Mapping[str, str]],
    backup: Backup | None,
) -> _DecidedCall:
    """Apply what was agreed and the profile to the rule of a call, and ask about work that could not be kept."""
    rule, fields = classified.rule, {**classified.fields, **known}
    parts: tuple[AskedPart, ...] = ()
    if rule.decision is Decision.ASK and spec.policy_version > 1:
        parts = build_asked_parts(classified, request.input, spec, read_inputs)
    if backup is not None and backup.problem:
        rule, fields = _ask_about_discard(rule), {**fields, "discarded": backup.problem}
        target = keys.build_target(builtin.WORK_DISCARD, {}, fields)
        parts = (*parts, AskedPart(rule=builtin.WORK_DISCARD.name, targets=(target,), is_plain=True))
    rule = agreements.apply_agreements(rule, parts, spec.allowed, spec.policy_version)
    is_unattended = bool(spec.profile)
    if spec.profile and rule.decision is Decision.ASK:
        decision = profiles.decide_parts(spec.profile, parts, spec.allowed)
        is_unattended = decision is not Decision.ASK
        rule = rule if decision is Decision.DENY else rule._replace(decision=decision)
    if spec.replay == INSIST and rule.replay is Replay.REPORT:
        rule = rule._replace(replay=Replay.EXACT)
    return _DecidedCall(rule=rule, parts=parts, fields=fields, is_unattended=is_unattended)


def _build_notes(
    decided: _DecidedCall, effects: Sequence[IntentEffect], backup: Backup | None, folder: str, spec: Spec
) -> dict[str, object]:
    """What is stored with the call besides its input: where it starts, what is asked, its effects, the work kept."""
    notes: dict[str, object] = {}
    if os.path.normpath(folder) != os.path.normpath(spec.workspace):
        notes[FOLDER] = folder
    if decided.rule.decision is Decision.ASK and decided.parts:
        notes[agreements.ASKS] = agreements.dump_parts(decided.parts)
    if len(effects) > 1:
        notes[EFFECTS] = [[one.rule, one.key, one.target] for one in effects if one.key]
    if backup is not None and backup.refs:
        notes[KEPT] = " ".join(backup.refs)
    return notes


def _build_effect(
    part: EffectPart,
    classified: Classification,
    request: CallRequest,
    run: Run,
    secret: bytes,
    read_inputs: Callable[[Classification, object], Mapping[str, str]],
) -> IntentEffect:
    """One effect of the call, with the inputs that the host knows about it."""
    own = classified._replace(
        rule=part.rule._replace(probe=""),
        fields=part.fields,
        host_inputs=part.host_inputs,
        folder=part.folder,
        effects=(),
    )
    fields = {**part.fields, **(read_inputs(own, request.input) if part.host_inputs else {})}
    normal = keys.normalize_input(request.input, run.spec.workspace)
    is_known = part.is_identified
    return IntentEffect(
        rule=part.rule.name,
        key=keys.build_effect_key(secret, run.lineage, part.rule, normal, fields) if is_known else "",
        target="" if part.unclear else keys.build_target(part.rule, normal, fields),
        words=part.words,
        unclear=part.unclear,
    )


def _join_keys(secret: bytes, effects: Sequence[IntentEffect]) -> str:
    """The key of a call whose effects are all identified; empty if its text has to identify it."""
    if not effects or not all(one.key for one in effects):
        return ""
    return effects[0].key if len(effects) == 1 else keys.join_effect_keys(secret, [one.key for one in effects])


def _join_targets(effects: Sequence[IntentEffect]) -> str:
    """The target that several effects have in common."""
    targets = {one.target for one in effects}
    return targets.pop() if len(effects) > 1 and len(targets) == 1 else ""


def _ask_about_discard(rule: Rule) -> Rule:
    """Add the question about work that cannot be kept to the rule of the call."""
    if rule.call_class in {CallClass.READ, CallClass.LOCAL} and rule.decision is Decision.ALLOW:
        return builtin.WORK_DISCARD
    merged = merge_rules([rule, builtin.WORK_DISCARD])
    return merged if merged.target else merged._replace(target=builtin.WORK_DISCARD.target)


def _build_limits(spec: Spec, rule: Rule, classified: Classification) -> tuple[RuleLimit, ...]:
    """The limits of each rule in the call: combining commands, or repeating one, must not evade a limit."""
    used = [match.rule for match in classified.matches]
    return tuple(
        RuleLimit(rule=one.name, most=one.most, times=max(1, used.count(one.name)))
        for one in rule_lookup.split_merged_rules(spec.rules, rule.name)
        if one.most is not None
    )


def build_settlement(
    result: CallResult, call: Call, spec: Spec, at: int, impossible: frozenset[int] = frozenset()
) -> Settlement:
    """Build the settlement of a call, with the external ids that its rule finds in the output.

    `impossible` are exit codes with which this call did not happen.
    """
    rule = rule_lookup.find_rule(spec.rules, call.rule)
    found = external.find_external_ids(rule, result.output) if call.call_class is CallClass.EFFECT else {}
    known = json.loads(call.external) if call.external else {}
    return Settlement(
        call_id=result.call_id,
        change=_choose_change(result, call, impossible.union(rule.nothing_happened)),
        at=at,
        output=result.output,
        exit_code=result.exit_code,
        external_id=result.external_id or external.choose_primary_id(found),
        duration_ms=max(0, at - call.prepared_at) if result.duration_ms is None else result.duration_ms,
        external=canonical({**known, **found}) if known or found else "",
    )


def _choose_change(result: CallResult, call: Call, harmless: frozenset[int]) -> str:
    """A failed effect is in doubt unless its exit code means that nothing happened."""
    if result.ok:
        return "succeed"
    return "doubt" if call.call_class is CallClass.EFFECT and result.exit_code not in harmless else "fail"
