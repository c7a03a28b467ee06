"""Notices that are not about a run: written in the transaction of what they report. Delivery is a feature."""

from __future__ import annotations

from jackline.domain.records import SubjectNotice
from jackline.store import rows
from jackline.store.driver import Statements, clean
from jackline.store.parts import PING_CHANNEL, StorePart


class NoticeStore(StorePart):
    """The part of the store with the notices about everything but runs."""

    def add(self, notice: SubjectNotice) -> None:
        """Write one notice in a separate transaction."""
        self._driver.write(lambda statements: self.add_within(statements, notice))

    def add_within(self, statements: Statements, notice: SubjectNotice) -> None:
        """Write one notice in the transaction that changes its subject; the same id is written once."""
        title, body = (self.redactor.redact(text) for text in (notice.title, notice.body))
        values = rows.build_parameters(notice._replace(title=title, body=body))
        statements.run("add_subject_notice", values)

    def find_ping(self, run_id: str) -> str:
        """The address that is requested when the run starts and ends; empty if it has none."""
        row = self._one("get_ping", {"run_id": clean(run_id)})
        return "" if row is None else str(row[0])

    def has_open_ping(self) -> bool:
        """Whether an address is still to be requested."""
        return self._one("has_open_ping", {"channel": PING_CHANNEL}) is not None

    def list_newest(self, limit: int = 100) -> list[SubjectNotice]:
        """The newest notices first."""
        return [SubjectNotice(*row) for row in self._all("newest_subject_notices", {"limit": max(0, limit)})]
