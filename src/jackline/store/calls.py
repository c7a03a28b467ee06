"""Reads of the ledger: calls, receipts, and the calls that are still open. It changes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from jackline.domain.call_gate import HOST
from jackline.domain.records import Call, Receipt
from jackline.domain.run_totals import Tally
from jackline.domain.states import CallClass, CallState, Decision, ReasonCode, Replay, Role
from jackline.named import NamedTuple
from jackline.store import rows
from jackline.store.driver import Row, Statements, clean
from jackline.store.parts import StorePart

WORDS: dict[str, object] = {
    **{str(one): str(one) for one in CallState},
    **{str(one): str(one) for one in (Decision.ALLOW, Decision.STORED, Decision.ASK)},
    **{str(one): str(one) for one in (Replay.EXACT, Replay.IDEMPOTENT, Replay.RELAUNCH)},
    **{str(one): str(one) for one in (CallClass.EFFECT, CallClass.UNKNOWN)},
    **{str(one): str(one) for one in ReasonCode},
    "work": str(Role.WORK),
    "since": "",  # from the first call on
    "host": HOST,
}

_ANY_ATTEMPT = 1 << 62


class EffectRow(NamedTuple):
    """An effect that was made, or may have been made."""

    id: str
    run_id: str
    rule: str
    key: str
    target: str
    external: str


class Calls(StorePart):
    """The part of the store that reads tool calls."""

    def list_open(self, run_id: str, newest: int | None = None) -> list[Call]:
        """Calls that were allowed and have no outcome, and those in doubt; oldest first, among the `newest`."""
        return self._list_calls("open_calls", run_id, newest)

    def list_asked(self, run_id: str, newest: int | None = None) -> list[Call]:
        """Calls that need approval and have no answer; oldest first, among the `newest`."""
        return self._list_calls("asked_calls", run_id, newest)

    def list_forced(self, run_id: str, newest: int | None = None) -> list[Call]:
        """Calls that a recovery gave up and that were not made again since; oldest first, among the `newest`."""
        return self._list_calls("forced_calls", run_id, newest)

    def list_undone(self, run_id: str, *, since: int | None, answered_since: int) -> list[Call]:
        """Calls known since then not to have happened, or by an answer since a time, and not made again."""
        values = {**WORDS, "run_id": clean(run_id), "known_since": since, "answered_since": answered_since}
        return [rows.parse_call(row) for row in self._all("undone_calls", values)]

    def list_all(self, run_id: str) -> list[Call]:
        """The whole ledger of a run, oldest first; a large input or output is its beginning and a reference."""
        return self._list_calls("all_calls", run_id)

    def get(self, run_id: str, call_id: str) -> Call | None:
        """One call of a run."""
        row = self._one("get_call", {"run_id": clean(run_id), "id": clean(call_id)})
        return None if row is None else rows.parse_call(row)

    def list_effects(self, run_id: str, before: tuple[int, int] | None) -> list[EffectRow]:
        """Effects that were made or may have been made, oldest first; `before` an attempt or a turn, or all."""
        attempt, turn = before or (_ANY_ATTEMPT, 0)
        values = {**WORDS, "run_id": clean(run_id), "attempt": attempt, "turn": turn}
        return [EffectRow(*row) for row in self._all("effects_before", values)]

    def find_effect(self, run_ids: Sequence[str], key: str) -> Call | None:
        """The newest effect of this key that was made or may have been made, in the first run that has one."""
        for run_id in run_ids:
            row = self._one("effect_of_key", {**WORDS, "run_id": clean(run_id), "key": key})
            if row is not None:
                return rows.parse_call(row)
        return None

    def list_ancestors(self, run_id: str) -> list[str]:
        """The runs that this one was forked from, nearest first."""
        return [str(row[0]) for row in self._all("ancestors", {"run_id": clean(run_id)})]

    def find_newest_attempt(self, run_id: str) -> int:
        """The newest attempt with a call that no earlier attempt had made; 0 if there is none."""
        row = self._one("newest_attempt_with_new_call", {"run_id": clean(run_id)})
        return int(row[0]) if row else 0

    def count_cut_off(self, run_id: str, key: str) -> int:
        """How often a recovery found a call of this key without an outcome."""
        row = self._one("count_cut_off", {"run_id": clean(run_id), "key": key})
        return int(row[0]) if row else 0

    def list_receipts(self, run_id: str) -> list[Receipt]:
        """Every receipt of a run, oldest first."""
        return [Receipt(*row) for row in self._all("all_receipts", {"run_id": clean(run_id)})]

    def tally(self, run_id: str) -> Tally:
        """The outcomes of the run's calls, counted by the database."""
        row = self._one("tally", {**WORDS, "run_id": clean(run_id)})
        return Tally(*(number or 0 for number in row)) if row else Tally()

    def _list_calls(self, name: str, run_id: str, newest: int | None = None) -> list[Call]:
        """`newest` bounds the calls that are searched: a ledger can be long, and open calls have no index."""
        values: dict[str, object] = {**WORDS, "run_id": clean(run_id)}

        def read(statements: Statements) -> list[Row]:
            oldest = statements.one("nth_newest_call", {**values, "others": newest - 1}) if newest else None
            return statements.all(name, values if oldest is None else {**values, "since": oldest[0]})

        return [rows.parse_call(row) for row in self._driver.read(read)]
