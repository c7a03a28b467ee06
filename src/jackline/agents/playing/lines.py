"""What the player says: JSON lines on its standard output, unbuffered. Must not decide anything."""

from __future__ import annotations

import json
import os


class Stop(Exception):
    """The turn ends here: with this exit code, after this last line."""

    def __init__(self, code: int, kind: str, **fields: object) -> None:
        super().__init__(kind)
        self.code, self.kind, self.fields = code, kind, fields


def failed(word: str, detail: str, **facts: object) -> Stop:
    return Stop(1, "error", **{"class": word, "detail": detail, **facts})


def tell(kind: str, **fields: object) -> None:
    write(1, json.dumps({"type": kind, **fields}).encode() + b"\n")


def write(descriptor: int, data: bytes | memoryview) -> None:
    """All of it, past every buffer: a kill at any instant must lose nothing that was said before."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
