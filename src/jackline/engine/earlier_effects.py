"""The effects that the asking session does not remember, and the questions that follow from them. It decides nothing.

The ledger finds an earlier effect by its key or its target. This covers what neither shows: a call with several
effects, an effect whose words are only known when it runs, and a script that names the program of an effect.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from jackline.domain.call_gate import Intent
from jackline.domain.call_text import EFFECTS
from jackline.domain.states import CallState
from jackline.engine import named_programs
from jackline.formatting import make_printable, shorten_text
from jackline.named import NamedTuple
from jackline.policy.agreements import list_rule_names
from jackline.policy.rules import REWORDED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jackline.domain.call_gate import IntentEffect
    from jackline.domain.records import Call, Run
    from jackline.engine.call_ledger import CallRequest
    from jackline.policy.classify import Classification
    from jackline.store.calls import EffectRow
    from jackline.store.store import Store

_HAPPENED = frozenset({CallState.DONE, CallState.IN_DOUBT, CallState.PREPARED})
_SHOWN = 120  # characters of a command in a question


class EarlierEffect(NamedTuple):
    """An effect that was made, or may have been made."""

    run_id: str
    call_id: str
    rule: str
    key: str
    target: str


class EarlierEffects:
    """The effects of earlier attempts and sessions of a run, and those of the runs that it was forked from."""

    def __init__(self, store: Store, run: Run, attempt: int) -> None:
        self._store, self._run, self._attempt = store, run, attempt
        self._since = -1  # the first turn of the session for which they were read
        self._by_rule: dict[str, EarlierEffect] = {}  # the newest one
        self._by_target: dict[str, EarlierEffect] = {}
        self._joined: dict[str, EarlierEffect] = {}  # by key: effects of calls with several, also of this session

    def add_question(self, intent: Intent, classified: Classification, request: CallRequest) -> Intent:
        """Add a question to an intent that may repeat an earlier effect in other words."""
        if self._run.spec.policy_version < REWORDED:
            return intent
        self._read(intent.since_turn)
        found = self._find_repeated(intent) or self._find_unclear(intent)
        if found is None and self._by_rule:
            found = self._find_named(classified, request)
        if found is None:
            return intent
        question, call = found
        return intent._replace(question=make_printable(question), question_about=call.id)

    def record(self, intent: Intent) -> None:
        """Record an allowed call with several effects: the ledger has its effects only together."""
        if len(intent.effects) > 1:
            self._add_parts(self._run.id, intent.call_id, intent.effects)

    def _add_parts(self, run_id: str, call_id: str, parts: Iterable[IntentEffect]) -> None:
        for part in parts:
            if part.key:
                self._joined[part.key] = EarlierEffect(run_id, call_id, part.rule, part.key, part.target)

    # --- what to ask

    def _find_repeated(self, intent: Intent) -> tuple[str, Call] | None:
        """An effect of this call that an earlier call made, where one of the two has several effects."""
        several = len(intent.effects) > 1
        for part in intent.effects:
            earlier = self._joined.get(part.key)
            call = self._find_happened(earlier)
            if call is None and several and part.key:
                call = self._store.calls.find_effect(self._list_runs(), part.key)
            if call is not None:
                words = shorten_text(self._store.redactor.redact(part.words), _SHOWN)
                alone = "make the other commands without it; together they need" if several else "repeating it needs"
                made = "made" if call.state is CallState.DONE else "may have made"
                return f"call {call.id} {made} this effect already: '{words}'; {alone} approval", call
        for part in intent.effects:
            earlier = self._by_target.get(self._store.redactor.redact(part.target)) if part.target else None
            if earlier is not None and (several or earlier.key in self._joined):
                call = self._find_happened(earlier)
                if call is not None:
                    touched = "may have touched" if call.state is CallState.IN_DOUBT else "touched"
                    return f"call {call.id} {touched} '{earlier.target}' before; this needs approval", call
        return None

    def _find_unclear(self, intent: Intent) -> tuple[str, Call] | None:
        """An earlier effect of the same rule, if it is unknown whether this is the same one."""
        for part in intent.effects:
            call = self._find_happened(self._by_rule.get(part.rule)) if part.unclear else None
            if call is not None:
                made = "may have made" if call.state is CallState.IN_DOUBT else "made"
                reason = f"call {call.id} {made} an effect of rule '{part.rule}' before, and this may be the same one"
                unclear = self._store.redactor.redact(part.unclear)
                return f"{reason}: {unclear}. Write it out, or it needs approval", call
        return None

    def _find_named(self, classified: Classification, request: CallRequest) -> tuple[str, Call] | None:
        """An earlier effect whose program is named by a call that no rule knows, or by a file that it runs."""
        spec = self._run.spec
        for rule, place in named_programs.find_named_rules(
            classified, request, spec, {name: one.target for name, one in self._by_rule.items()}
        ):
            call = self._find_happened(self._by_rule[rule])
            if call is not None:
                made = "may have made" if call.state is CallState.IN_DOUBT else "made"
                reason = f"call {call.id} {made} an effect of rule '{rule}' before, and {place}"
                return f"{reason}. If this does not repeat it, it needs approval", call
        return None

    def _find_happened(self, effect: EarlierEffect | None) -> Call | None:
        """The call of the effect; None if it is known since not to have happened."""
        call = self._store.calls.get(effect.run_id, effect.call_id) if effect is not None else None
        return call if call is not None and call.state in _HAPPENED else None

    # --- what happened

    def _list_runs(self) -> list[str]:
        return [self._run.id, *(self._store.calls.list_ancestors(self._run.id) if self._run.parent else ())]

    def _read(self, since: int) -> None:
        """Read them once for each session: the calls of earlier ones do not change any more."""
        if since == self._since:
            return
        self._since = since
        if self._attempt > 1 or since > 1 or self._run.parent:
            for run_id in reversed(self._list_runs()):
                before = (self._attempt, since) if run_id == self._run.id else None
                for row in self._store.calls.list_effects(run_id, before):
                    self._add(row)

    def _add(self, row: EffectRow) -> None:
        parts = _parse_parts(row.external)
        for rule in list_rule_names(row.rule):
            self._by_rule[rule] = EarlierEffect(row.run_id, row.id, rule, row.key, row.target)
        for rule, key, target in parts:
            effect = EarlierEffect(row.run_id, row.id, rule, key, target)
            self._joined[key] = effect
            self._by_target[target] = effect
            self._by_rule[rule] = effect
        if row.target:
            self._by_target[row.target] = EarlierEffect(row.run_id, row.id, row.rule, row.key, row.target)


def _parse_parts(external: str) -> list[tuple[str, str, str]]:
    """The effects of a call with several: rule, key and target of each."""
    try:
        found = json.loads(external).get(EFFECTS, []) if external else []
    except (ValueError, AttributeError, RecursionError):
        return []
    return [(str(rule), str(key), str(target)) for rule, key, target in found]
