"""A little gate in a thread, as helper programs meet it: it answers as it is told, and remembers every question."""

from __future__ import annotations

import json
import os
import queue
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

SECONDS = 60  # for what should take a fraction of one
Json = dict[str, Any]
Answer = Callable[[Json], Json | None]


def allow(question: Json) -> Json:
    return {"decision": "allow", "call": "c-" + question["agent_call"]}


def deny(_question: Json) -> Json:
    return {"decision": "deny", "call": "c1", "reason": "not today"}


def ask(_question: Json) -> Json:
    return {"decision": "ask", "call": "c1", "reason": "a person must agree"}


class FakeGate:
    """Answers `prepare` as it is told (None: hangs up) and `finish` with ok; remembers every question."""

    def __init__(self, prepare: Answer = allow, finish: Answer = lambda _question: {"ok": True}) -> None:
        self.prepare, self.finish = prepare, finish
        self.asked: list[Json] = []
        self.news: queue.Queue[Json] = queue.Queue()
        self.connections = 0
        self.folder = tempfile.mkdtemp(prefix="gate")
        self.address = os.path.join(self.folder, "s")
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(self.address)
        self._socket.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(SECONDS)
        shutil.rmtree(self.folder)

    def ops(self, op: str) -> list[Json]:
        return [question for question in self.asked if question["op"] == op]

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self.connections += 1
                with connection, suppress(OSError):
                    self._talk(connection)

    def _talk(self, connection: socket.socket) -> None:
        with connection.makefile("rwb") as stream:
            for line in stream:
                question = json.loads(line)
                self.asked.append(question)
                self.news.put(question)
                answer = (self.prepare if question["op"] == "prepare" else self.finish)(question)
                if answer is None:
                    return
                stream.write(json.dumps(answer).encode() + b"\n")
                stream.flush()
