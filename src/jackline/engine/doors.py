"""The doors of one attempt: each agent asks the gate by the one that it can use. They close with the attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.engine.door import Door

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.domain.adapter import Adapter, Hooks
    from jackline.engine.http_door import HttpDoor
    from jackline.engine.ledger import Ledger


class Doors:
    """Opened when an agent first needs them."""

    def __init__(self, folder: str, ledger: Ledger, token: str, on_error: Callable[[BaseException], None]) -> None:
        """Nothing listens yet."""
        self._folder, self._ledger, self._token, self._on_error = folder, ledger, token, on_error
        self._open: dict[str, Door | HttpDoor] = {}

    def address(self, adapter: Adapter) -> str:
        """Where this agent finds the gate."""
        kind = adapter.declaration.door
        if kind not in self._open:
            door = self._open[kind] = self._made(adapter)
            door.open()
        return self._open[kind].address

    def close(self) -> None:
        """Stop answering: a call that comes later finds no gate and must not run."""
        for door in self._open.values():
            door.close()

    def _made(self, adapter: Adapter) -> Door | HttpDoor:
        hooks = hooks_of(adapter)
        if hooks is None:
            return Door(self._folder, self._ledger, self._token, self._on_error)
        from jackline.engine.http_door import HttpDoor

        return HttpDoor(self._ledger, self._token, hooks, self._on_error)


def hooks_of(adapter: Adapter) -> Hooks | None:
    """How the agent speaks when it asks before a call; None for one that asks by the socket, or not at all."""
    hooks: Hooks | None = getattr(adapter, "hooks", None)  # adapters of other packages have no such word
    return hooks
