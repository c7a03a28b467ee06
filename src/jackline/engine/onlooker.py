"""Writes down the calls of an agent that does not ask: what its output tells, as it tells it. It holds nothing back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.engine.ledger import Report, Wish

if TYPE_CHECKING:
    from jackline.domain.outcome import Heard
    from jackline.engine.ledger import Ledger

DOOR = "stream"
_NO_EXIT_CODE = 1 << 31
_OUTPUT = 20_000  # characters; the transcript has them all


class Onlooker:
    """Knows which calls of this turn are open, by the names that the agent gives them."""

    def __init__(self, ledger: Ledger) -> None:
        """Nothing was seen yet."""
        self._ledger = ledger
        self._open: dict[str, str] = {}

    def see(self, heard: Heard) -> None:
        """Write down what a line tells of a call."""
        name = str(heard.data.get("call", ""))
        if heard.kind == "call.started" and name not in self._open and not self._ledger.knows(name):
            wish = Wish(str(heard.data.get("tool", "")), heard.data.get("input"), DOOR, name)
            self._open[name] = self._ledger.observe(wish)
        if heard.kind == "call.finished" and name in self._open:
            self._ledger.finish(_report(self._open.pop(name), heard))


def _report(call_id: str, heard: Heard) -> Report:
    code = heard.data.get("exit_code")
    return Report(
        call_id=call_id,
        ok=heard.data.get("ok") is True,
        exit_code=code if type(code) is int and abs(code) < _NO_EXIT_CODE else None,
        output=str(heard.data.get("output", ""))[:_OUTPUT],
    )
