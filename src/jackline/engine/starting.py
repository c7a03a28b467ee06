"""The last steps before an agent is started: its command line, how that is told, and its files. It spawns nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.errors import AgentUnavailable, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackline.domain.adapter import Adapter, Launch, TurnRequest

_LONGEST_WORD = 200


def shown(argv: Sequence[str]) -> list[str]:
    """A prompt may be a word of it; an event only points to things."""
    return [word if len(word) <= _LONGEST_WORD else f"{word[:_LONGEST_WORD]}…" for word in argv]


def launch_of(adapter: Adapter, request: TurnRequest) -> Launch:
    """How the adapter starts it; AgentUnavailable if this agent cannot be started so."""
    try:
        return adapter.launch(request)
    except UsageError as error:  # an argument, a model or a session that this agent cannot take
        raise AgentUnavailable(adapter.declaration.name, why=error) from None


def write_files(files: Mapping[str, bytes]) -> None:
    """What the agent reads besides its prompt, for its owner only."""
    for path, content in files.items():
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
