"""Read all that a flood writes, and print how much memory that took: `drink.py MODE MEGABYTES FILE`."""

from __future__ import annotations

import json
import os
import resource
import sys

from jackline.clock import boot_ms
from jackline.engine.process import Warden
from jackline.engine.streams import LineSplitter, TranscriptFile

FLOOD = """
import sys
mode, megabytes = sys.argv[1], int(sys.argv[2])
line = {"lines": b"x" * 99 + b"\\n", "endless": b"y" * 100, "binary": bytes(range(256))}[mode]
block = line * (1000000 // len(line) + 1)
for _ in range(megabytes):
    sys.stdout.buffer.write(block[:1000000])
"""


def main(mode: str, megabytes: str, path: str) -> None:
    splitter = LineSplitter(limit=1 << 20)
    lines = 0
    with Warden.start(deadline_ms=boot_ms() + 120_000, marker={"JACKLINE_TEST": "drink"}) as warden:
        child = warden.spawn([sys.executable, "-I", "-S", "-c", FLOOD, mode, megabytes], {}, "/")
        with TranscriptFile(path) as raw:
            while not child.drained:
                for chunk in child.read():
                    raw.write(chunk.data)
                    lines += len(splitter.feed(chunk.data))
            raw.sync()
            lines += len(splitter.end())
        child.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    report = {"lines": lines, "bytes": os.path.getsize(path), "peak_kb": peak}
    os.write(1, json.dumps(report).encode())


main(*sys.argv[1:4])
