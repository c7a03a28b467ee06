"""The worktrees that jackline makes for runs: the run of each name, and its state. It touches no folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.events import PERSON
from jackline.domain.records import RunWorktree
from jackline.errors import Refused
from jackline.store import rows
from jackline.store.driver import RetryTransaction, Statements, clean
from jackline.store.parts import StorePart, append_run_events, lock_fenced_head

if TYPE_CHECKING:
    from jackline.domain.events import Fact
    from jackline.domain.records import Lease, Run


class RunWorktrees(StorePart):
    """The part of the store that knows the worktrees of runs."""

    def add_within(self, statements: Statements, run: Run) -> None:
        """Record the worktree of a new run; Refused if another run has the name in this repository."""
        spec = run.spec.worktree
        record = RunWorktree(
            run_id=run.id,
            repository=run.repository,
            name=spec.name,
            branch=spec.branch,
            base=spec.base,
            base_branch=spec.base_branch,
            path=spec.path,
        )
        if statements.run("add_worktree", rows.build_parameters(record)):
            return
        owner = statements.one("worktree_owner", {"repository": run.repository, "name": clean(spec.name)})
        if owner is None:
            raise RetryTransaction  # it was removed since
        raise Refused(f"worktree {spec.name} belongs to run {owner[0]}: choose another name with --worktree NAME")

    def get(self, run_id: str) -> RunWorktree | None:
        """The worktree of a run, if jackline made one for it."""
        row = self._one("get_worktree", {"run_id": clean(run_id)})
        return RunWorktree(*row) if row else None

    def list_present(self) -> list[RunWorktree]:
        """Those that were not removed, of all repositories, oldest first."""
        return [RunWorktree(*row) for row in self._all("list_worktrees", {})]

    def find_repository(self, run_id: str) -> str:
        """The path of a run's repository; empty if there is no such run."""
        row = self._one("repository_path", {"run_id": clean(run_id)})
        return str(row[0]) if row else ""

    def record_made(self, lease: Lease, host: str, at: int) -> None:
        """Record that the folder is there, and was not prepared yet; Fenced if the lease is lost."""
        self._record(lease, "set_worktree_made", {"run_id": lease.run_id, "host": host, "at": at})

    def record_set_up(self, lease: Lease, at: int) -> None:
        """Record that it is ready for an agent; Fenced if the lease is lost."""
        self._record(lease, "set_worktree_set_up", {"run_id": lease.run_id, "at": at})

    def record_merged(self, run_id: str, fact: Fact, at: int) -> None:
        """Record that a person merged its branch."""
        self._record_person("set_worktree_merged", run_id, fact, at)

    def record_removed(self, run_id: str, fact: Fact, at: int) -> None:
        """Record that a person removed it; its name is free again."""
        self._record_person("set_worktree_removed", run_id, fact, at)

    def _record(self, lease: Lease, query: str, values: dict[str, object]) -> None:
        def record(statements: Statements) -> None:
            lock_fenced_head(statements, lease)
            statements.run(query, values)

        self._driver.write(record)

    def _record_person(self, query: str, run_id: str, fact: Fact, at: int) -> None:
        def record(statements: Statements) -> None:
            run = self._lock_run(statements, run_id)
            append_run_events(statements, run, (fact,), at, PERSON)
            statements.run(query, {"run_id": run_id, "at": at})

        self._driver.write(record)
