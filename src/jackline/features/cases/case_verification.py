"""Verification of cases: the rows of a case and its entries against their newest digests. It only reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.features.cases.case_model import LETTERS, EntryKind, get_case_stream
from jackline.features.cases.case_queries import CASE, CASE_COLUMNS, ENTRY_COLUMNS
from jackline.store.rows import columns
from jackline.store.verify import StreamKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.store.driver import Row, Statements
    from jackline.store.verify import RowDigests

# The events that write rows of a case, and the keys by which those of older versions, without digests, are known.
_ENTRY_KEYS = ("id", "text", "status")
_KINDS: dict[str, tuple[str, ...]] = {
    "case.started": ("request", "user", "run", "problem", "repository", "path"),
    "case.imported": ("request", "status"),
    "case.closed": (),
    "case.reopened": (),
    "case.switched": (),
    "case.moved": ("repository", "path"),
    **{
        f"case.{kind}.{done}": ("id", "text", "status")
        for kind in EntryKind
        for done in ("added", "changed", "resolved")
    },
}
_PAGE = 100  # entries: the output of a command may be large


def _find_altered(statements: Statements, case_id: str, digests: RowDigests) -> Iterator[str]:
    row = statements.one("get_case", {"id": case_id})
    if row is not None and digests.is_altered(CASE, dict(zip(columns("case"), row, strict=True)), CASE_COLUMNS):
        yield "its row was altered after it had been written"
    missing = {name: None for name in digests.newest if name != CASE}
    for row in _read_entries(statements, case_id):
        values = dict(zip(columns("entry"), row, strict=True))
        kind, number = values["kind"], values["number"]
        name = f"{LETTERS[EntryKind(kind)]}{number:03}" if kind in set(EntryKind) else ""
        if name not in digests.newest and not (name and digests.has_unlisted_rows):
            yield f"{kind} {number} is among its entries, and no event records it"
            continue
        missing.pop(name, None)
        if digests.is_altered(name, values, ENTRY_COLUMNS):
            yield f"{name} was altered after it had been written"
    yield from (f"{name} is missing from its entries" for name in missing)


def _read_entries(statements: Statements, case_id: str) -> Iterator[Row]:
    values: dict[str, object] = {"case_id": case_id, "kind": "", "after": 0, "limit": _PAGE}
    while found := statements.all("page_of_entries", values):
        yield from found
        values["kind"], values["after"] = found[-1][1:3]


CASE_STREAMS = StreamKind(
    query="case_chains", label="case", build_stream=get_case_stream, row=CASE, kinds=_KINDS, find_altered=_find_altered
)
