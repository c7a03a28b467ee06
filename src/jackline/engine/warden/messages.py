"""The protocol between supervisor and warden, and the warden's exit codes. It sends nothing.

A message is a JSON object after its length. The descriptors of a spawn order are sent with its first byte.
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


def pack_message(message: Mapping[str, object]) -> bytes:
    body = json.dumps(message).encode()
    return HEADER.pack(len(body)) + body


def next_message(received: bytearray) -> dict[str, Any] | None:
    """Remove the first message from the received bytes; None while it is incomplete."""
    if len(received) < HEADER.size:
        return None
    end = HEADER.size + HEADER.unpack_from(received)[0]
    if len(received) < end:
        return None
    message: dict[str, Any] = json.loads(received[HEADER.size : end])
    del received[:end]
    return message
