"""The store: its parts put together over one driver, each loaded when it is first asked for.

Most commands need one or two of them, and every one that is imported delays them all. A store grows by a part when one
of its methods is called for the first time; for a type checker it has them all from the beginning.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from jackline.store.base import Base

PARTS = {
    "finding:Finding": "run matching_runs list_runs repositories",
    "runs:Runs": "create_run request_cancel",
    "leases:Leases": "claim renew cancel_wanted note_warden write",
    "ledger:Ledger": "admit settle",
    "ledger_reading:LedgerReading": "open_calls asked forced calls call cut_off_times receipts content digests whole"
    " tally ancestors",
    "answers:Answers": "answer expire_asked",
    "reading:Reading": "events turns attempts checks sessions health changes checkpoints notices",
    "work_reading:WorkReading": "item items unfinished_items item_counts",
    "work:Work": "enqueue claim_item claim_next renew_item resolve_item release_item requeue_item annotate_item"
    " park_item answer_item",
    "journal:Journal": "append_event timeline",
    "case_reading:CaseReading": "case matching_cases cases active_case entries",
    "cases:Cases": "start_case switch_case add_entry change_entry close_case reopen_case relocate_case",
    "reporting:Reporting": "runs_in runs_waiting runs_failed count_runs items_in items_dead kinds_in spending"
    " newest_events newest_learnings",
    "looking_back:LookingBack": "learnings_between runs_finished runs_alive run_moves last_move next_move turn_lines"
    " check_lines",
    "naming:Naming": "name_instance",
    "importing:Importing": "import_run import_item import_case import_events",
    "upkeep:Upkeep": "status check verify backup archivable drop_archived_events",
}
_PART_OF = {method: part for part, methods in PARTS.items() for method in methods.split()}

if TYPE_CHECKING:
    from jackline.store.answers import Answers
    from jackline.store.cases import Cases
    from jackline.store.finding import Finding
    from jackline.store.importing import Importing
    from jackline.store.journal import Journal
    from jackline.store.leases import Leases
    from jackline.store.ledger import Ledger
    from jackline.store.ledger_reading import LedgerReading
    from jackline.store.looking_back import LookingBack
    from jackline.store.naming import Naming
    from jackline.store.reading import Reading
    from jackline.store.reporting import Reporting
    from jackline.store.runs import Runs
    from jackline.store.upkeep import Upkeep
    from jackline.store.work import Work

    class _Runs(Finding, Runs, Leases, Ledger, LedgerReading, Answers, Reading, Upkeep):
        """What is kept of runs."""

    class SqlStore(_Runs, Work, Journal, Cases, Reporting, LookingBack, Naming, Importing):
        """The contract of `store.contract`, over whichever driver it was given."""

else:

    class SqlStore(Base):
        """The contract of `store.contract`, over whichever driver it was given."""

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any method of any part
            """Become a store that has the part, and ask it; two threads that do it at once do it twice, at worst."""
            part = _PART_OF.get(name)
            if part is None:
                raise AttributeError(name=name, obj=self)
            self.__class__ = _grown(type(self), part)
            return getattr(self, name)


@cache
def _grown(store: type, part: str) -> type:
    """The class of a store with one part more."""
    module, _, name = part.partition(":")
    return type(store.__name__, (store, getattr(import_module(f"jackline.store.{module}"), name)), {})
