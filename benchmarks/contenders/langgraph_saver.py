"""LangGraph's SqliteSaver: one checkpoint before a tool call and one after it, of a small conversation."""

from __future__ import annotations

import os
import sqlite3
from typing import Any

from langgraph.checkpoint.base import empty_checkpoint  # type: ignore[import-not-found]  # only in .venv-bench
from langgraph.checkpoint.sqlite import SqliteSaver  # type: ignore[import-not-found]  # only in .venv-bench

from benchmarks.contenders import Prepared, pragmas

_CONVERSATION = [{"role": "user", "content": "x" * 100}]


def prepare(folder: str, variant: str) -> Prepared:
    """`variant` is the synchronous setting, or `shipped`."""
    connection = sqlite3.connect(os.path.join(folder, "langgraph.db"), check_same_thread=False)
    if variant != "shipped":
        connection.execute(f"PRAGMA synchronous={variant}")
    saver = SqliteSaver(connection)
    saver.setup()
    config: dict[str, Any] = {"configurable": {"thread_id": "run", "checkpoint_ns": ""}}

    def pair() -> None:
        nonlocal config
        for step in range(2):
            checkpoint = {**empty_checkpoint(), "channel_values": {"messages": _CONVERSATION}}
            config = saver.put(config, checkpoint, {"source": "loop", "step": step, "parents": {}}, {})

    return Prepared(pair, pragmas.describe(connection), connection.close)
