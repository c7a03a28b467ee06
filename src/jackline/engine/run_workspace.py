"""What an attempt reads in the workspace of its run, with git below the warden. It starts no turn and no check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline import clock
from jackline.domain.events import Fact
from jackline.engine.git import Git, read_changes, unbind_git_env
from jackline.engine.launch import ReviewUnavailable
from jackline.store.models import RunChange

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.changes import Changes
    from jackline.domain.records import Lease, Run
    from jackline.domain.run_inputs import StartTurn
    from jackline.engine.review_copy import ReviewCopies
    from jackline.engine.review_seat import ReviewSeat
    from jackline.engine.settings import EngineSettings
    from jackline.engine.warden_holder import WardenHolder
    from jackline.engine.work_backup import Backup
    from jackline.engine.work_trees import WorkTrees
    from jackline.policy.classify import Classification
    from jackline.policy.discarded_work import Discard
    from jackline.store.store import Store

_BACKUP_SECONDS = 30.0  # for one step of a backup, while the agent waits


class RunWorkspace:
    """The workspace of one attempt; a run keeps its folder."""

    def __init__(
        self,
        store: Store,
        lease: Lease,
        run: Run,
        settings: EngineSettings,
        env: Mapping[str, str],
        warden: WardenHolder,
    ) -> None:
        self._store, self._lease, self._run_id, self._path = store, lease, run.id, run.spec.workspace
        self._settings, self._env, self._warden = settings, env, warden

    def survey(self) -> Changes | None:
        """Return the changes of the run in its repository; None if git cannot tell."""
        known = self._store.records.get_changes(self._run_id)
        warden = self._warden.ready_or_none()
        return read_changes(self._run_id, self._path, self._env, warden, known) if warden else None

    def open_trees(self) -> WorkTrees:
        """Open the trees of the workspace: what is proved, reviewed and copied."""
        from jackline.engine.work_trees import WorkTrees

        git = Git(workspace=self._path, env=unbind_git_env(self._env), warden=self._warden.ready_or_none())
        return WorkTrees(git, self._settings.build_folder(self._run_id))

    def open_copies(self) -> ReviewCopies:
        """Open the copies of the workspace for its reviewers."""
        from jackline.engine.review_copy import ReviewCopies

        return ReviewCopies(self.open_trees(), self._run_id, self._settings.cache)

    def read_tree(self) -> str:
        """Return the id of what the workspace holds now; empty if git cannot tell."""
        return self.open_trees().read_id()

    def open_seat(self, run: Run, order: StartTurn) -> ReviewSeat:
        """Copy the work for a reviewer; ReviewUnavailable if that is not possible."""
        from jackline.engine.review_copy import ReviewCopyFailed
        from jackline.engine.review_seat import ReviewSeat

        git = Git(workspace=run.spec.workspace, env=unbind_git_env(self._env), warden=self._warden.ready())
        try:
            return ReviewSeat(self._store, run, order, self.open_copies(), git)
        except ReviewCopyFailed as error:
            raise ReviewUnavailable(str(error)) from error

    def read_key_inputs(self, judged: Classification, tool_input: object) -> dict[str, str]:
        """Return what the key of a call depends on besides its input."""
        from jackline.engine.key_inputs import read_call_inputs  # not needed before the first call

        return read_call_inputs(self._path, self._env, self._warden.ready, judged, tool_input)

    def keep_work(self, discards: tuple[Discard, ...], call_id: str) -> Backup:
        """Keep the work that a call would discard, and record where."""
        from jackline.engine.work_backup import keep_work  # hardly any run needs it

        warden, env = self._warden.ready_or_none(), unbind_git_env(self._env)
        backup = keep_work(
            discards,
            self._run_id,
            lambda folder: Git(workspace=folder, env=env, warden=warden, timeout_s=_BACKUP_SECONDS),
        )
        facts = tuple(
            Fact("backup.made", {"call": call_id, "ref": ref, "command": discards[0].command}) for ref in backup.refs
        )
        if facts:
            self._store.leases.write_change(self._lease, RunChange(at=clock.wall_ms(), facts=facts))
        return backup
