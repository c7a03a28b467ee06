"""The store with the method names of `protocol`, until every call site uses the parts of `store.Store`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from jackline.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.domain.secrets import Redactor
    from jackline.store.driver import Driver

# Old name: the part and its method; a part with a colon is built by a feature.
NAMES = {
    "create_run": "runs create",
    "request_cancel": "runs request_cancel",
    "run": "runs get",
    "matching_runs": "runs find_matching",
    "list_runs": "runs list_page",
    "repositories": "runs list_repositories",
    "ancestors": "runs list_ancestors",
    "claim": "leases claim",
    "renew": "leases renew",
    "cancel_wanted": "leases is_cancel_requested",
    "note_warden": "leases record_warden",
    "write": "leases write_change",
    "admit": "ledger admit",
    "settle": "ledger settle",
    "open_calls": "calls list_open",
    "asked": "calls list_asked",
    "forced": "calls list_forced",
    "calls": "calls list_all",
    "call": "calls get",
    "cut_off_times": "calls count_cut_off",
    "receipts": "calls list_receipts",
    "tally": "calls tally",
    "content": "blobs get",
    "digests": "blobs list_digests",
    "whole": "blobs load_call",
    "answer": "approvals answer",
    "expire_asked": "approvals expire",
    "events": "records list_events",
    "turns": "records list_turns",
    "attempts": "records list_attempts",
    "checks": "records list_checks",
    "sessions": "records get_sessions",
    "health": "records list_health",
    "changes": "records get_changes",
    "checkpoints": "records list_checkpoints",
    "notices": "records list_notices",
    "append_event": "journal append",
    "timeline": "journal list_timeline",
    "name_instance": "admin name_instance",
    "status": "admin get_status",
    "backup": "admin backup",
    "archivable": "admin list_archivable",
    "drop_archived_events": "admin drop_archived_events",
    "check": "verify check_all",
    "verify": "verify verify_run",
    "item": "jackline.store.work_reading:WorkItems get",
    "items": "jackline.store.work_reading:WorkItems list_page",
    "unfinished_items": "jackline.store.work_reading:WorkItems list_unfinished",
    "item_counts": "jackline.store.work_reading:WorkItems count_open",
    "enqueue": "jackline.store.work:WorkQueue enqueue",
    "claim_item": "jackline.store.work:WorkQueue claim",
    "claim_next": "jackline.store.work:WorkQueue claim_next",
    "renew_item": "jackline.store.work:WorkQueue renew",
    "resolve_item": "jackline.store.work:WorkQueue resolve",
    "release_item": "jackline.store.work:WorkQueue release",
    "requeue_item": "jackline.store.work:WorkQueue requeue",
    "annotate_item": "jackline.store.work:WorkQueue annotate",
    "park_item": "jackline.store.work:WorkQueue park",
    "answer_item": "jackline.store.work:WorkQueue answer",
    "case": "jackline.store.case_reading:Cases get",
    "matching_cases": "jackline.store.case_reading:Cases find_matching",
    "cases": "jackline.store.case_reading:Cases list_page",
    "active_case": "jackline.store.case_reading:Cases get_active",
    "entries": "jackline.store.case_reading:Cases list_entries",
    "start_case": "jackline.store.cases:CaseNotebook start",
    "switch_case": "jackline.store.cases:CaseNotebook switch",
    "add_entry": "jackline.store.cases:CaseNotebook add_entry",
    "change_entry": "jackline.store.cases:CaseNotebook change_entry",
    "close_case": "jackline.store.cases:CaseNotebook close",
    "reopen_case": "jackline.store.cases:CaseNotebook reopen",
    "relocate_case": "jackline.store.cases:CaseNotebook relocate",
    "runs_in": "jackline.store.reporting:ReportQueries list_runs_in",
    "runs_waiting": "jackline.store.reporting:ReportQueries list_runs_waiting",
    "runs_failed": "jackline.store.reporting:ReportQueries list_runs_failed",
    "count_runs": "jackline.store.reporting:ReportQueries count_runs",
    "items_in": "jackline.store.reporting:ReportQueries list_items_in",
    "items_dead": "jackline.store.reporting:ReportQueries list_dead_items",
    "kinds_in": "jackline.store.reporting:ReportQueries count_kinds",
    "spending": "jackline.store.reporting:ReportQueries list_spending",
    "newest_events": "jackline.store.reporting:ReportQueries list_newest_events",
    "newest_learnings": "jackline.store.reporting:ReportQueries list_newest_learnings",
    "learnings_between": "jackline.store.looking_back:RetroQueries iter_learnings",
    "runs_finished": "jackline.store.looking_back:RetroQueries iter_finished_runs",
    "runs_alive": "jackline.store.looking_back:RetroQueries iter_live_runs",
    "run_moves": "jackline.store.looking_back:RetroQueries iter_state_changes",
    "last_move": "jackline.store.looking_back:RetroQueries get_last_state_change",
    "next_move": "jackline.store.looking_back:RetroQueries get_next_state_change",
    "turn_lines": "jackline.store.looking_back:RetroQueries list_turns",
    "check_lines": "jackline.store.looking_back:RetroQueries list_checks",
    "import_run": "jackline.store.importing:Imports import_run",
    "import_item": "jackline.store.importing:Imports import_item",
    "import_case": "jackline.store.importing:Imports import_case",
    "import_events": "jackline.store.importing:Imports import_events",
}


class SqlStore:
    """Maps the old names to parts."""

    def __init__(self, driver: Driver, make_redactor: Callable[[], Redactor] | None = None) -> None:
        self.parts = Store(driver, make_redactor)
        self.driver = driver
        self.close = self.parts.close

    @property
    def secret(self) -> bytes:
        return self.parts.secret

    @property
    def redactor(self) -> Redactor:
        return self.parts.redactor

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any method of any part
        if name not in NAMES:
            raise AttributeError(name=name, obj=self)
        part, method = NAMES[name].split()
        module, _, feature = part.partition(":")
        owner = getattr(import_module(module), feature)(self.parts) if feature else getattr(self.parts, part)
        found = getattr(owner, method)
        setattr(self, name, found)
        return found
