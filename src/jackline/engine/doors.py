"""The gate servers of one attempt: a unix socket or HTTP, whichever the agent uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.engine.door import Door

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.domain.adapter import Adapter, Hooks
    from jackline.engine.http_door import HttpDoor
    from jackline.engine.ledger import Ledger


class Doors:
    """Opens each server when an agent first needs it."""

    def __init__(self, folder: str, ledger: Ledger, token: str, on_error: Callable[[BaseException], None]) -> None:
        """Start with no server."""
        self._folder, self._ledger, self._token, self._on_error = folder, ledger, token, on_error
        self._open: dict[str, Door | HttpDoor] = {}

    def address(self, adapter: Adapter) -> str:
        """The address of the gate for this agent; opens the server if needed."""
        kind = adapter.declaration.door
        if kind not in self._open:
            door = self._open[kind] = self._build_server(adapter)
            door.open()
        return self._open[kind].address

    def close(self) -> None:
        """Stop answering: a later call finds no gate and must not run."""
        for door in self._open.values():
            door.close()

    def _build_server(self, adapter: Adapter) -> Door | HttpDoor:
        hooks = hooks_of(adapter)
        if hooks is None:
            return Door(self._folder, self._ledger, self._token, self._on_error)
        from jackline.engine.http_door import HttpDoor

        return HttpDoor(self._ledger, self._token, hooks, self._on_error)


def hooks_of(adapter: Adapter) -> Hooks | None:
    """The hook format of the agent; None if it uses the socket, or has no gate."""
    hooks: Hooks | None = getattr(adapter, "hooks", None)  # adapters of other packages may lack it
    return hooks
