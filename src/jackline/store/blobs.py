"""Large texts of the ledger: stored once per run by digest; the row of a call holds only the beginning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.digests import sha256
from jackline.named import NamedTuple
from jackline.store.driver import clean
from jackline.store.parts import StorePart

if TYPE_CHECKING:
    from jackline.domain.records import Call
    from jackline.store.driver import Statements

LARGE = 16 * 1024  # bytes of UTF-8 above which a text is not stored in its row
SHOWN = 2 * 1024  # bytes of it that are
MOST = 8 * 1024 * 1024
_NOTE = 128  # room for the line that says how much was left out
_ALWAYS_SMALL = LARGE // 4  # characters; none takes more than four bytes


class StoredText(NamedTuple):
    """A text as the ledger stores it; a small one is stored in its row only."""

    shown: str
    ref: str | None = None
    whole: str = ""


class Blobs(StorePart):
    """The part of the store that reads large texts."""

    def get(self, run_id: str, digest: str) -> str | None:
        """The large text that a call's reference names."""
        return self._driver.read(lambda statements: read_blob(statements, clean(run_id), clean(digest)))

    def list_digests(self, run_id: str) -> list[str]:
        """The digests of the run's large texts."""
        return [row[0] for row in self._all("all_digests", {"run_id": clean(run_id)})]

    def load_call(self, call: Call) -> Call:
        """The call with its large texts in full."""
        if call.input_ref is None and call.output_ref is None:
            return call
        return self._driver.read(
            lambda one: call._replace(
                input=read_whole(one, call.run_id, call.input, call.input_ref),
                output=read_whole(one, call.run_id, call.output, call.output_ref),
            )
        )


def split_text(text: str) -> StoredText:
    """How a storable text is stored. The middle of an enormous one is cut out, with a note."""
    if len(text) <= _ALWAYS_SMALL:
        return StoredText(text)
    data = text.encode()
    if len(data) <= LARGE:
        return StoredText(text)
    if len(data) > MOST:
        half = (MOST - _NOTE) // 2
        first, last = data[:half].decode("utf-8", "ignore"), data[-half:].decode("utf-8", "ignore")
        left_out = len(data) - len(first.encode()) - len(last.encode())
        data = f"{first}\n[{left_out} of {len(data)} bytes were left out here]\n{last}".encode()
    return StoredText(shown=cut_beginning(data), ref=sha256(data).hexdigest(), whole=data.decode())


def cut_beginning(data: bytes) -> str:
    """The beginning of a large text that its row holds: whole characters only."""
    return data[:SHOWN].decode("utf-8", "ignore")


def write_blob(statements: Statements, run_id: str, text: StoredText) -> None:
    """Store a large text, unless the run has it already."""
    if text.ref is not None:
        statements.run("add_content", {"run_id": run_id, "digest": text.ref, "content": text.whole})


def read_blob(statements: Statements, run_id: str, ref: str) -> str | None:
    """The large text of a digest."""
    row = statements.one("get_content", {"run_id": run_id, "digest": ref})
    return None if row is None else str(row[0])


def read_whole(statements: Statements, run_id: str, shown: str, ref: str | None) -> str:
    """The whole text of a row; if its large text is lost, the beginning with a note, never passed off as whole."""
    if ref is None:
        return shown
    found = read_blob(statements, run_id, ref)
    return f"{shown}\n[the rest of this text, {ref}, is missing from the database]\n" if found is None else found
