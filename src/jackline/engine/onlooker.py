"""Records the calls of an agent without a gate, as its output reports them. It blocks nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.engine.ledger import Report, Wish

if TYPE_CHECKING:
    from jackline.domain.outcome import Heard
    from jackline.engine.ledger import Ledger

DOOR = "stream"
_EXIT_CODE_LIMIT = 1 << 31
_OUTPUT = 20_000  # characters; the transcript has all of them


class Onlooker:
    """Records the calls of one turn."""

    def __init__(self, ledger: Ledger) -> None:
        """Start with no open calls."""
        self._ledger = ledger
        self._open: dict[str, str] = {}  # the agent's id of a call → ours

    def see(self, heard: Heard) -> None:
        """Record the start or the end of a call."""
        name = str(heard.data.get("call", ""))
        if heard.kind == "call.started" and name not in self._open and not self._ledger.knows(name):
            wish = Wish(str(heard.data.get("tool", "")), heard.data.get("input"), DOOR, name)
            self._open[name] = self._ledger.observe(wish)
        if heard.kind == "call.finished" and name in self._open:
            self._ledger.finish(_build_observed_report(self._open.pop(name), heard))


def _build_observed_report(call_id: str, heard: Heard) -> Report:
    code = heard.data.get("exit_code")
    return Report(
        call_id=call_id,
        ok=heard.data.get("ok") is True,
        exit_code=code if type(code) is int and abs(code) < _EXIT_CODE_LIMIT else None,
        output=str(heard.data.get("output", ""))[:_OUTPUT],
    )
