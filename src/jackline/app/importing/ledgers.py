"""The ledger of a predecessor, call by call, with its receipts: what each became here. It changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.app.importing import values
from jackline.app.importing.databases import MOST_CELL, Asked, Cells, Database
from jackline.app.importing.kinds import UNIVERSAL_AGENT, Troubles, digits
from jackline.domain.records import Call
from jackline.domain.states import CallClass, CallState, Decision, Replay
from jackline.store.import_contract import ImportedCall

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jackline.domain.records import Turn

_CALLS = (
    "tool_call_id", "step_id", "created_at", "updated_at", "raw_tool_name", "tool_name", "tool_namespace",
    "side_effect_class", "replay_policy", "policy_rule_id", "idempotency_key", "status", "request_ref",
    "response_ref", "external_correlation_id", "error_code", "error_detail",
)  # fmt: skip
_RECEIPTS = (
    "tool_call_id", "tool_name", "tool_namespace", "idempotency_key", "created_at", "response_ref",
    "external_correlation_id",
)  # fmt: skip
_CLASSES = {
    "read_only": CallClass.READ,
    "local": CallClass.LOCAL,
    "external": CallClass.EFFECT,
    "memory": CallClass.EFFECT,
}
_REPLAYS = {
    "REPLAY_EXACT": Replay.EXACT,
    "REPLAY_IDEMPOTENT": Replay.IDEMPOTENT,
    "RELAUNCH": Replay.RELAUNCH,
}
_STATES = {"succeeded": CallState.DONE, "failed": CallState.FAILED, "abandoned_on_resume": CallState.ABANDONED}
_REPEATS_FREELY = frozenset({CallClass.READ, CallClass.LOCAL})
_DOOR = "imported"
_MOST_CALLS = 20_000
_LONGEST_ID = 200
_LITTLE = 1_000  # characters of a text, where there is too much of it
_BY_RECEIPT = "its receipt says so; the call itself could not be read"


def read(
    database: Database, run_id: str, steps: Mapping[str, int], turns: Sequence[Turn], troubles: Troubles
) -> tuple[ImportedCall, ...]:
    """The calls of a run; a receipt whose call is missing is a call that was done."""
    receipts = {
        str(cells["tool_call_id"]): cells for cells in _rows(database, "tool_receipts", _RECEIPTS, run_id, troubles)
    }
    ledger = _Ledger(steps, turns)
    for cells in _rows(database, "tool_calls", _CALLS, run_id, troubles):
        ledger.add(cells, receipts.pop(str(cells["tool_call_id"]), None))
    for cells in receipts.values():
        ledger.add({**dict.fromkeys(_CALLS), **cells, "side_effect_class": "external", "status": "succeeded",
                    "error_detail": _BY_RECEIPT}, cells)  # fmt: skip
    return tuple(ledger.calls)


def _rows(database: Database, table: str, columns: tuple[str, ...], run_id: str, troubles: Troubles) -> Iterator[Cells]:
    if not database.has(table, "run_id", "tool_call_id"):
        return
    asked = Asked(table, columns, "run_id = ?", (run_id,), _MOST_CALLS)
    for row, cells in database.rows(asked, troubles):
        if not isinstance(cells["tool_call_id"], str) or not cells["tool_call_id"]:
            troubles.add(database.path, f"row {row} of {table}", "its tool_call_id is not a name")
        else:
            yield cells


class _Ledger:
    """Calls as they go by."""

    def __init__(self, steps: Mapping[str, int], turns: Sequence[Turn]) -> None:
        self._steps, self._turns = steps, turns
        self._ids: set[str] = set()
        self._keys: dict[str, int] = {}
        self._room = values.Room()
        self.calls: list[ImportedCall] = []

    def add(self, cells: Cells, receipt: Cells | None) -> None:
        began = values.moment(cells["created_at"]) or (self._turns[0].started_at if self._turns else 0)
        ended = (
            values.moment(cells["updated_at"]) or (values.moment(receipt["created_at"]) if receipt else None) or began
        )
        call = self._call(cells, receipt, began)
        external = values.name(cells["external_correlation_id"], "", 500)
        if not external and receipt is not None:
            external = values.name(receipt["external_correlation_id"], "", 500)
        self.calls.append(ImportedCall(call, max(began, ended), external))

    def _call(self, cells: Cells, receipt: Cells | None, began: int) -> Call:
        call_id = self._unique(str(cells["tool_call_id"]))
        kind = _CLASSES.get(str(cells["side_effect_class"]), CallClass.UNKNOWN)
        key = values.name(cells["idempotency_key"], "", 200) or digits(UNIVERSAL_AGENT, call_id)
        turn = self._turn(began)
        return Call(
            id=call_id,
            run_id="",
            attempt=turn.attempt if turn else 1,
            turn=turn.number if turn else 1,
            step=self._steps.get(str(cells["step_id"]), 0),
            occurrence=self._occurrence(key, kind),
            tool=values.name(cells["raw_tool_name"], "") or values.name(cells["tool_name"], "unknown"),
            call_class=kind,
            replay=_replay(cells, kind),
            decision=Decision.ALLOW,
            rule=values.name(cells["policy_rule_id"], ""),
            door=_DOOR,
            key=key,
            target="",
            input=self._text(cells["request_ref"]),
            state=_state(cells, receipt, kind),
            prepared_at=began,
            agent_call=call_id,
            reason=values.text(cells["error_detail"]) or values.text(cells["error_code"]),
            output=self._text(cells["response_ref"] or (receipt or cells)["response_ref"]),
        )

    def _text(self, told: object) -> str:
        whole = values.text(told, MOST_CELL)
        return whole if self._room.takes(whole) else values.text(whole, _LITTLE)

    def _unique(self, told: str) -> str:
        call_id = values.name(told, "", _LONGEST_ID)
        if call_id != told or call_id in self._ids:
            call_id = f"{call_id[:100]}-{digits(told, str(len(self._ids)))}"
        self._ids.add(call_id)
        return call_id

    def _occurrence(self, key: str, kind: CallClass) -> int:
        if kind in _REPEATS_FREELY:
            return 0
        self._keys[key] = self._keys.get(key, 0) + 1
        return self._keys[key]

    def _turn(self, at: int) -> Turn | None:
        """The last turn that had begun."""
        return next((turn for turn in reversed(self._turns) if turn.started_at <= at), next(iter(self._turns), None))


def _replay(cells: Cells, kind: CallClass) -> Replay:
    """An effect is never replayed exactly, also if the old policy allowed it."""
    told = _REPLAYS.get(str(cells["replay_policy"]), Replay.ASK)
    return Replay.ASK if told is Replay.EXACT and kind not in _REPEATS_FREELY else told


def _state(cells: Cells, receipt: Cells | None, kind: CallClass) -> CallState:
    """A receipt proves a call; a call in flight is in doubt, unless it can be repeated freely."""
    known = CallState.DONE if receipt is not None else _STATES.get(str(cells["status"]))
    if known is not None:
        return known
    return CallState.ABANDONED if kind in _REPEATS_FREELY else CallState.IN_DOUBT
