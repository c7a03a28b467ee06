"""What supervisor and warden say to each other, as bytes, and what the warden's exit codes mean. It sends nothing.

A message is a JSON object behind its length. The descriptors of a spawn order travel with its first byte.
"""

from __future__ import annotations

import json
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

EXIT_QUIT, EXIT_DEADLINE, EXIT_ALONE, EXIT_SURVIVORS = 0, 3, 4, 5
STREAMS = 3  # standard input, output and error
HEADER = struct.Struct(">I")


def pack(message: Mapping[str, object]) -> bytes:
    body = json.dumps(message).encode()
    return HEADER.pack(len(body)) + body


def next_message(heard: bytearray) -> dict[str, Any] | None:
    """Take the first message out of what was heard; None while it is not all there."""
    if len(heard) < HEADER.size:
        return None
    end = HEADER.size + HEADER.unpack_from(heard)[0]
    if len(heard) < end:
        return None
    message: dict[str, Any] = json.loads(heard[HEADER.size : end])
    del heard[:end]
    return message
