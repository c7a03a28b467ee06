"""What predecessors left, written down once: what is here already is never changed by an import.

Few commands need it, so the work is done by modules that are loaded on use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.store.base import Base

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.domain.case import Case, Entry
    from jackline.domain.work import WorkItem
    from jackline.store.import_contract import Import, ImportedEvent, ImportedRun
    from jackline.store.importing_state import Writer


class Imports(Base):
    """The part of the store that takes over what others wrote."""

    def import_run(self, new: ImportedRun, at: int, actor: str, *, rehearse: bool = False) -> Import:
        """Write a run with all that is known of it; its chain goes from `run.created` to `run.imported`."""
        from jackline.store import importing_runs

        if rehearse:
            return self._driver.read(lambda one: importing_runs.look(one, new))
        wanted, told = importing_runs.redacted(self.redactor, new, at, actor)
        return self._driver.write(lambda one: importing_runs.write(one, wanted, told))

    def import_item(
        self, item: WorkItem, events: Sequence[ImportedEvent], at: int, actor: str, *, rehearse: bool = False
    ) -> Import:
        """Write an item with the events that it had, then `work.imported`; TAKEN if kind or payload are others."""
        return self._writer(rehearse=rehearse).item(item, events, at, actor)

    def import_case(
        self, case: Case, entries: Sequence[Entry], at: int, actor: str, *, rehearse: bool = False
    ) -> Import:
        """Write a case with its entries, active nowhere; TAKEN if its request or its repository is another."""
        return self._writer(rehearse=rehearse).case(case, entries, at, actor)

    def import_events(self, stream: str, events: Sequence[tuple[int, ImportedEvent]], *, rehearse: bool = False) -> int:
        """Write numbered events at the end of a stream, if their numbers are above the last one there; how many."""
        return self._writer(rehearse=rehearse).events(stream, events)

    def _writer(self, *, rehearse: bool) -> Writer:
        from jackline.store.importing_state import Writer

        return Writer(self._driver, self.redactor, rehearse=rehearse)
