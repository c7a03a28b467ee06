"""What can be read of the ledger: calls, receipts, large texts, and what is still open. It changes nothing."""

from __future__ import annotations

from jackline.domain.records import Call, Receipt
from jackline.domain.states import CallClass, CallState, Decision, ReasonCode, Replay
from jackline.domain.tally import Tally
from jackline.store import contents, lineage, rows
from jackline.store.base import Base
from jackline.store.driver import Row, Statements, clean

WORDS: dict[str, object] = {
    **{str(one): str(one) for one in CallState},
    **{str(one): str(one) for one in (Decision.ALLOW, Decision.STORED, Decision.ASK)},
    **{str(one): str(one) for one in (Replay.EXACT, Replay.IDEMPOTENT, Replay.RELAUNCH)},
    **{str(one): str(one) for one in (CallClass.EFFECT, CallClass.UNKNOWN)},
    **{str(one): str(one) for one in ReasonCode},
    "since": "",  # from the first call on
}


class LedgerReading(Base):
    """The part of the store that shows what went through the gate."""

    def open_calls(self, run_id: str, newest: int | None = None) -> list[Call]:
        """Calls that were allowed and have no outcome, and those in doubt; oldest first."""
        return self._calls("open_calls", run_id, newest)

    def asked(self, run_id: str, newest: int | None = None) -> list[Call]:
        """Calls that a person was asked about and has not answered; oldest first."""
        return self._calls("asked_calls", run_id, newest)

    def forced(self, run_id: str, newest: int | None = None) -> list[Call]:
        """Calls that a recovery gave up and that were not made again since; oldest first."""
        return self._calls("forced_calls", run_id, newest)

    def calls(self, run_id: str) -> list[Call]:
        """The whole ledger of a run, oldest first."""
        return self._calls("all_calls", run_id)

    def call(self, run_id: str, call_id: str) -> Call | None:
        """One call of a run."""
        values = {"run_id": clean(run_id), "id": clean(call_id)}
        row = self._driver.read(lambda statements: statements.one("get_call", values))
        return None if row is None else rows.to_call(row)

    def cut_off_times(self, run_id: str, key: str) -> int:
        """How often a recovery found a call of this key without an outcome."""
        values = {"run_id": clean(run_id), "key": key}
        row = self._driver.read(lambda statements: statements.one("cut_off_times", values))
        return int(row[0]) if row else 0

    def receipts(self, run_id: str) -> list[Receipt]:
        """Every proof of an effect, oldest first."""
        values = {"run_id": clean(run_id)}
        return [Receipt(*row) for row in self._driver.read(lambda one: one.all("all_receipts", values))]

    def content(self, run_id: str, digest: str) -> str | None:
        """The large text that a call's reference names."""
        return self._driver.read(lambda statements: contents.content(statements, clean(run_id), clean(digest)))

    def digests(self, run_id: str) -> list[str]:
        """Which large texts the run has."""
        values = {"run_id": clean(run_id)}
        return [row[0] for row in self._driver.read(lambda statements: statements.all("all_digests", values))]

    def whole(self, call: Call) -> Call:
        """The call with its large texts in full."""
        if call.input_ref is None and call.output_ref is None:
            return call
        return self._driver.read(lambda statements: contents.whole_call(statements, call))

    def tally(self, run_id: str) -> Tally:
        """How the run's calls came out, counted by the database."""
        values = {**WORDS, "run_id": clean(run_id)}
        row = self._driver.read(lambda statements: statements.one("tally", values))
        return Tally(*(number or 0 for number in row)) if row else Tally()

    def ancestors(self, run_id: str) -> list[tuple[str, int | None]]:
        """The runs that this one was forked from, nearest first, each with the last step that the fork knows."""
        found = self._driver.read(lambda statements: lineage.ancestors(statements, clean(run_id)))
        return [(one.id, one.forked_at) for one in found]

    def _calls(self, name: str, run_id: str, newest: int | None = None) -> list[Call]:
        """`newest`: among so many of the last ones. A ledger can be long, and no index knows what is open in it."""
        values: dict[str, object] = {**WORDS, "run_id": clean(run_id)}

        def read(statements: Statements) -> list[Row]:
            oldest = statements.one("nth_newest_call", {**values, "others": newest - 1}) if newest else None
            return statements.all(name, values if oldest is None else {**values, "since": oldest[0]})

        return [rows.to_call(row) for row in self._driver.read(read)]
