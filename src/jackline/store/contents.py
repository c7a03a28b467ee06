"""Large texts of the ledger: kept once a run by their digest; the row keeps their beginning. It decides nothing."""

from __future__ import annotations

import hashlib

from jackline.domain.records import Call
from jackline.named import NamedTuple
from jackline.store.driver import Statements

LARGE = 16 * 1024  # bytes of UTF-8 above which a text does not stand in its row
SHOWN = 2 * 1024  # bytes of it that do
MOST = 8 * 1024 * 1024
_NOTE = 128  # room for the line that says how much was left out
_ALWAYS_SMALL = LARGE // 4  # characters; none takes more than four bytes


class Text(NamedTuple):
    """A text as the ledger keeps it; a small one stands in its row, and nowhere else."""

    shown: str
    ref: str | None = None
    whole: str = ""


def text_of(text: str) -> Text:
    """How a storable text is kept. An enormous one loses its middle, and says so."""
    if len(text) <= _ALWAYS_SMALL:
        return Text(text)
    data = text.encode()
    if len(data) <= LARGE:
        return Text(text)
    if len(data) > MOST:
        data = _without_middle(data)
    return Text(beginning(data), hashlib.sha256(data).hexdigest(), data.decode())


def beginning(data: bytes) -> str:
    """What a row shows of a content: whole characters only."""
    return data[:SHOWN].decode("utf-8", "ignore")


def keep(statements: Statements, run_id: str, text: Text) -> None:
    """Write a large text down, unless the run has it already."""
    if text.ref is not None:
        statements.run("add_content", {"run_id": run_id, "digest": text.ref, "content": text.whole})


def content(statements: Statements, run_id: str, ref: str) -> str | None:
    """The content of a digest."""
    row = statements.one("get_content", {"run_id": run_id, "digest": ref})
    return None if row is None else str(row[0])


def whole(statements: Statements, run_id: str, shown: str, ref: str | None) -> str:
    """The text of a row with its reference; one whose content is lost says so, and is never passed off as whole."""
    if ref is None:
        return shown
    found = content(statements, run_id, ref)
    return f"{shown}\n[the rest of this text, {ref}, is missing from the database]\n" if found is None else found


def whole_call(statements: Statements, call: Call) -> Call:
    """The call with its large texts in full."""
    return call._replace(
        input=whole(statements, call.run_id, call.input, call.input_ref),
        output=whole(statements, call.run_id, call.output, call.output_ref),
    )


def _without_middle(data: bytes) -> bytes:
    half = (MOST - _NOTE) // 2
    first, last = data[:half].decode("utf-8", "ignore"), data[-half:].decode("utf-8", "ignore")
    left_out = len(data) - len(first.encode()) - len(last.encode())
    return f"{first}\n[{left_out} of {len(data)} bytes were left out here]\n{last}".encode()
