"""The store: its parts put together over one driver. Nothing else stands here."""

from __future__ import annotations

from jackline.store.answers import Answers
from jackline.store.leases import Leases
from jackline.store.ledger import Ledger
from jackline.store.ledger_reading import LedgerReading
from jackline.store.reading import Reading
from jackline.store.runs import Runs
from jackline.store.upkeep import Upkeep


class SqlStore(Runs, Leases, Ledger, LedgerReading, Answers, Reading, Upkeep):
    """The contract of `store.contract`, over whichever driver it was given."""
