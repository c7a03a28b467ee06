"""The known state of a person's own files: one record per host and home, changed together with its event."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jackline.domain.events import canonical
from jackline.store.driver import Statements, clean
from jackline.store.journal import append_to_journal
from jackline.store.parts import StorePart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from jackline.domain.events import Fact
    from jackline.domain.records import SubjectNotice

    Record = dict[str, Any]

_PREFIX = "settings:"


class SettingsRecords(StorePart):
    """The part of the store with these records; it does not know what is in them."""

    def read(self, name: str) -> Record:
        """The record; empty if there is none."""
        row = self._one("instance_value", {"name": _PREFIX + clean(name)})
        return _parse(row[0]) if row else {}

    def update(
        self,
        name: str,
        change: Callable[[Record], Iterable[Fact]],
        at: int,
        actor: str,
        build_notice: Callable[[list[Fact]], SubjectNotice | None] = lambda _facts: None,
    ) -> Record:
        """Change the record in place, append the facts to the journal, and write the notice of them, if there is one.

        All in one transaction; returns the record.
        """

        def write(statements: Statements) -> Record:
            row_name = _PREFIX + clean(name)
            statements.run("add_instance_value", {"name": row_name, "value": "{}"})
            row = statements.one("lock_instance_value", {"name": row_name})
            before = str(row[0]) if row else "{}"
            record = _parse(before)
            facts = list(change(record))
            after = canonical(record)
            if after != before:
                statements.run("set_instance_value", {"name": row_name, "value": after})
            for fact in facts:
                append_to_journal(statements, fact, at, actor)
            if notice := build_notice(facts):
                self._store.notices.add_within(statements, notice)
            return record

        return self._driver.write(write)


def _parse(text: str) -> Record:
    found = json.loads(text)
    return found if isinstance(found, dict) else {}
