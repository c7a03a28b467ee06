"""Host checks: what the host itself verifies after a turn that ended well, one after the other.

A check runs its command in the workspace under the run's warden, or it is a function that only reads. Checks are
registered by dotted name and imported when they are used, so the engine does not depend on the features behind them.
"""

from __future__ import annotations

import signal
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from jackline import crash_points
from jackline.digests import hash_text
from jackline.domain.events import Fact
from jackline.domain.run_inputs import PROOF, CheckEnded, PendingCheck
from jackline.domain.states import Failure
from jackline.engine import threads
from jackline.engine.attempt import RunInput
from jackline.extensions import call_hook
from jackline.files import NotWritten
from jackline.named import NamedTuple
from jackline.secrets.masking import SecretMask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from jackline.domain.outcome import Exit
    from jackline.domain.records import Check, Run
    from jackline.engine.process import Child, Warden
    from jackline.engine.tree_id import TreeState
    from jackline.engine.work_trees import WorkTrees
    from jackline.store.store import Store

_TAIL = 16_384
# Signals by which a program ends itself; any other one comes from outside, and then the check has found nothing.
_CRASHES = frozenset(
    {signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV, signal.SIGSYS, signal.SIGTRAP}
)
_MOST_NAMED = 50  # files in an event

# In the order in which a run has to pass them.
HOST_CHECKS = {
    "learnings": "jackline.features.cases.learning_check:LEARNING_CHECK",
    "commit": "jackline.engine.commit_check:COMMIT_CHECK",
    PROOF: "jackline.engine.check:PROOF_CHECK",
}


class CheckResult(NamedTuple):
    """The result of a check that runs no command of the user. `detail` says why the run fails, if it does."""

    exit_code: int | None  # None: the check could not be made, which no work of the agent changes
    output: str
    detail: str
    content: str = ""  # a digest of what failed, where the same output may be about other files
    failure: Failure | None = None  # if not that of the check


class HostCheck(NamedTuple):
    """One entry of `HOST_CHECKS`."""

    failure: Failure  # of a run that does not pass
    # The command to store with the check, or "" if the check does not apply to the run.
    find_command: Callable[[Store, Run], str]
    # None: the command is run by the shell.
    read: Callable[[Store, str, Mapping[str, str], Warden | None], CheckResult] | None = None
    # For a check that changes the workspace, outside of the attempt's loop.
    work: Callable[[Store, Run, WorkTrees], CheckResult] | None = None
    # A titled list for the agent that continues the run.
    resume_section: Callable[[Store, str], tuple[str, Sequence[str]]] | None = None


PROOF_CHECK = HostCheck(failure=Failure.PROOF, find_command=lambda _store, run: run.spec.proof)


def load_check(name: str) -> HostCheck:
    """Import a registered check."""
    module, _, attribute = HOST_CHECKS[name].partition(":")
    check: HostCheck = getattr(import_module(module), attribute)
    return check


def find_pending_checks(store: Store, run: Run) -> tuple[PendingCheck, ...]:
    """The checks that the run has to pass before its proof, which the run machine plans from the spec."""
    checks = ((name, load_check(name)) for name in HOST_CHECKS if name != PROOF)
    pending = (
        PendingCheck(name=name, command=check.find_command(store, run), failure=check.failure) for name, check in checks
    )
    return tuple(check for check in pending if check.command)


def find_resume_sections(store: Store, run_id: str) -> list[tuple[str, Sequence[str]]]:
    """What the checks add to the prompt of an agent that continues the run."""
    checks = (load_check(name) for name in HOST_CHECKS)
    sections = [check.resume_section(store, run_id) for check in checks if check.resume_section is not None]
    return [*sections, *call_hook("question_answers", store, run_id)]


def build_check_ended(check: Check, result: CheckResult, at: int) -> RunInput:
    """The input that ends a check, with its record."""
    record = check._replace(ended_at=at, exit_code=result.exit_code, output=result.output)
    digest = hash_text(f"{result.content}{result.output}")
    ended = CheckEnded(at=at, exit_code=result.exit_code, detail=result.detail, digest=digest, failure=result.failure)
    return RunInput(ended, check=record)


class CheckJob:
    """A check whose command is running; posts its end as an input of the run machine."""

    def __init__(
        self,
        name: str,
        check: Check,
        now: Callable[[], int],
        post: Callable[[RunInput | BaseException], None],
        secrets: Iterable[str] = (),
        trees: WorkTrees | None = None,
    ) -> None:
        """Prepare a check that is stored already. `secrets` are masked in its output.

        `trees`: the check is bound to the files that it runs on.
        """
        self._name, self._check, self._now, self._post, self._trees = name, check, now, post, trees
        self._before: TreeState | None = None
        self._masks = {source: SecretMask(secrets) for source in ("stdout", "stderr")}
        self._tail = b""
        self.child: Child | None = None

    def start(self, warden: Warden, env: dict[str, str], workspace: str) -> None:
        """Run the command with the shell, as a person would type it. TreeUnreadable if the files cannot be read."""
        self._before = self._trees.begin_proof() if self._trees is not None else None
        self.child = warden.spawn(("/bin/sh", "-c", self._check.command), env, workspace, stdin=None)
        threads.start_thread("check", partial(self._watch, self.child), self._post)

    def _watch(self, child: Child) -> None:
        while not child.drained:
            for chunk in child.read():
                self._keep_tail(self._masks[chunk.source].feed(chunk.data))
        for mask in self._masks.values():
            self._keep_tail(mask.end())
        exit_ = child.wait()
        child.close()
        crash_points.crash_point("check.finished")
        code, output = _find_code(exit_) if exit_ else None, self._tail.decode("utf-8", "replace")
        detail = f"{self._name} failed ({f'exit {code}' if code is not None else 'killed'}): {self._check.command}"
        ended = CheckEnded(at=0, exit_code=code, detail="" if code == 0 else detail, digest=hash_text(output))
        ended, facts = self._bind(ended)
        check = self._check._replace(exit_code=ended.exit_code, output=output, tree=ended.tree)
        at = self._now()
        self._post(RunInput(ended._replace(at=at), check=check._replace(ended_at=at), facts=facts))

    def _bind(self, ended: CheckEnded) -> tuple[CheckEnded, tuple[Fact, ...]]:
        """Add the files that were checked, and those that changed meanwhile."""
        before = self._before
        if self._trees is None or before is None or ended.exit_code is None:
            return ended, ()
        from jackline.engine.tree_id import TreeUnreadable, describe_names

        try:
            changes = self._trees.end_proof(before)
        except (TreeUnreadable, NotWritten) as error:
            detail = f"the files that the {self._name} ran on cannot be read: {error}"
            return ended._replace(exit_code=None, detail=detail), ()
        data = {
            "tree": before.id,
            "untracked": list(describe_names(changes.new[:_MOST_NAMED])),
            "rewritten": list(describe_names(changes.rewritten[:_MOST_NAMED])),
            "left_out": list(describe_names(before.left_out[:_MOST_NAMED])),
            "absent": before.absent,
        }
        changed = describe_names(changes.voiding[:_MOST_NAMED])
        return ended._replace(tree=before.id, changed=changed), (Fact("check.tree", data),)

    def _keep_tail(self, masked: bytes) -> None:
        # Masked before it is cut: the mask would not recognize the second half of a secret.
        self._tail = (self._tail + masked)[-_TAIL:]


def _find_code(ended: Exit) -> int | None:
    """The exit code; of a program that crashed, that of a shell, because some shells replace themselves by it."""
    return 128 + ended.signal if ended.signal is not None and ended.signal in _CRASHES else ended.code
