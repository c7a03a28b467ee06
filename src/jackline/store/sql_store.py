"""The store: its parts put together over one driver. Nothing else stands here."""

from __future__ import annotations

from jackline.store.answers import Answers
from jackline.store.cases import Cases
from jackline.store.journal import Journal
from jackline.store.leases import Leases
from jackline.store.ledger import Ledger
from jackline.store.ledger_reading import LedgerReading
from jackline.store.reading import Reading
from jackline.store.reporting import Reporting
from jackline.store.runs import Runs
from jackline.store.upkeep import Upkeep
from jackline.store.work import Work


class SqlStore(Runs, Leases, Ledger, LedgerReading, Answers, Reading, Work, Journal, Cases, Reporting, Upkeep):
    """The contract of `store.contract`, over whichever driver it was given."""
