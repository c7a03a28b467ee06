"""The protocol between supervisor, warden and guards, and the warden's exit codes. It sends nothing.

A message is a dictionary after its length, as `marshal` writes it: both ends are the same Python, of the same user, and
`json` would take a megabyte in each of them. The descriptors of a spawn order are sent with its first byte.
"""

from __future__ import annotations

import marshal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

EXIT_QUIT, EXIT_DEADLINE, EXIT_ALONE, EXIT_SURVIVORS = 0, 3, 4, 5
STREAMS = 3  # standard input, output and error
_HEADER_BYTES = 4


def pack_message(message: Mapping[str, object]) -> bytes:
    body = marshal.dumps(dict(message))
    return len(body).to_bytes(_HEADER_BYTES, "big") + body


def next_message(received: bytearray) -> dict[str, Any] | None:
    """Remove the first message from the received bytes; None while it is incomplete."""
    end = _HEADER_BYTES + int.from_bytes(received[:_HEADER_BYTES], "big")
    if len(received) < _HEADER_BYTES or len(received) < end:
        return None
    message: dict[str, Any] = marshal.loads(received[_HEADER_BYTES:end])  # noqa: S302 - of our own process
    del received[:end]
    return message
