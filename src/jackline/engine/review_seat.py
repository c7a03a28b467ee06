"""The review of one seat: a copy of the work, the prompt, and the verdict in the answer. It decides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.events import Fact
from jackline.domain.review import (
    MalformedReview,
    ReviewTurn,
    apply_review,
    build_review_facts,
    merge_findings,
    parse_review,
)
from jackline.domain.review_prompts import MOST_DIFF, DiffText, ReviewRequest, build_retry_prompt, build_review_prompt
from jackline.domain.states import Role
from jackline.engine.git import GitFailed
from jackline.engine.review_copy import ReviewCopyFailed
from jackline.engine.tree_id import TreeUnreadable, verify_objects
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from jackline.domain.records import Check, Run, Turn
    from jackline.domain.review_records import Finding, Verdict
    from jackline.domain.run_inputs import StartTurn
    from jackline.engine.git import Git
    from jackline.engine.review_copy import ReviewCopies, ReviewCopy
    from jackline.store.store import Store

_MOST_OUTPUT = 8 * 1024 * 1024  # characters; `Git` keeps only the end of a longer one
_QUIET = ("--no-ext-diff", "--no-textconv", "--no-color")


class SeatResult(NamedTuple):
    """What one review has shown."""

    tree: str  # of the worker's workspace after the review
    facts: tuple[Fact, ...] = ()
    verdict: Verdict | None = None
    changed: tuple[Finding, ...] = ()  # new ones, and those that were resolved
    findings: tuple[Finding, ...] = ()  # all of the run
    verdict_problem: str = ""  # why the answer is not a verdict


class ReviewSeat:
    """One review, from its copy of the work to its verdict."""

    def __init__(self, store: Store, run: Run, order: StartTurn, copies: ReviewCopies, git: Git) -> None:
        """Make the copy. ReviewCopyFailed if that is not possible."""
        self._store, self._run, self._order, self._copies, self._git = store, run, order, copies, git
        try:
            state = copies.trees.compute()
        except TreeUnreadable as error:
            raise ReviewCopyFailed(f"the work cannot be read for a review: {error}") from error
        if state is None:
            raise ReviewCopyFailed("a review needs a git repository, and the workspace is not in one")
        self._left_out = state.left_out
        tree = run.status.tree or state.id
        restores = not run.spec.share_workspace
        self._copy: ReviewCopy = copies.prepare_review(tree, order.review_round, order.seat, restores=restores)

    @property
    def workspace(self) -> str:
        """Where the reviewer works."""
        return self._copy.workspace

    def build_prompt(self, *, knows_task: bool) -> str:
        """The prompt of the review; `knows_task`: its session has it, and only a clear verdict is missing."""
        run, seat = self._run, self._order.seat
        findings = self._store.reviews.list_findings(run.id)
        retry = build_retry_prompt(self._order.asks_again, findings, seat) if self._order.asks_again else ""
        if knows_task and retry:
            return retry
        git = self._git._replace(workspace=self._copy.path)
        turns = self._store.records.list_turns(run.id)
        worked = [turn for turn in turns if turn.role == Role.WORK and turn.last_message]
        prompt = build_review_prompt(
            ReviewRequest(
                task=run.spec.prompt,
                seat=seat,
                diff=read_work_diff(git),
                check=self._find_proof(),
                findings=findings,
                since=self._read_changes_since(git),
                message=worked[-1].last_message if worked else "",
                left_out=self._left_out,
                added=[one.text for one in self._store.amendments.list_messages(run.id)],
            )
        )
        return f"{prompt}\n\n{retry}" if retry else prompt

    def _read_changes_since(self, git: Git) -> DiffText | None:
        """What has changed since the last review of this seat."""
        verdicts = [one for one in self._store.reviews.list_verdicts(self._run.id) if one.seat == self._order.seat]
        tree = verdicts[-1].tree if verdicts else ""
        if not tree:
            return None
        try:
            verify_objects(git, tree, self._copy.tree)
        except GitFailed:  # some are gone, or false
            return None
        return read_diff(git, tree, self._copy.tree)

    def _find_proof(self) -> Check | None:
        checks = [one for one in self._store.records.list_checks(self._run.id) if one.command == self._run.spec.proof]
        return checks[-1] if checks else None

    def finish(self, turn: Turn, at: int, *, has_answered: bool) -> SeatResult:
        """Remove the copy, restore the worker's workspace if it was changed, and read the answer of the reviewer."""
        end = self._copies.finish_review(self._copy)
        facts: list[Fact] = []
        if end.written or end.restored:
            data = {"patch": end.patch, "written": list(end.written[:20]), "restored": list(end.restored[:20])}
            facts.append(Fact("review.undone", {**data, "refs": list(end.refs)}))
        findings = tuple(self._store.reviews.list_findings(self._run.id))
        tree = self._copies.trees.read_id()
        result = SeatResult(tree=tree, facts=tuple(facts), findings=findings)
        if not has_answered:
            return result
        about = ReviewTurn(
            run_id=turn.run_id,
            turn=turn.number,
            iteration=turn.iteration,
            review_round=turn.review_round,
            seat=turn.seat,
            agent=turn.agent,
            tree=self._copy.tree,
            at=at,
        )
        try:
            answer = parse_review(turn.last_message, findings, turn.seat, self._copy.path)
        except MalformedReview as error:
            return result._replace(verdict_problem=str(error))
        verdict, changed = apply_review(answer, about, findings)
        return result._replace(
            facts=(*facts, *build_review_facts(verdict, changed)),
            verdict=verdict,
            changed=changed,
            findings=tuple(merge_findings(findings, changed)),
        )


def read_diff(git: Git, old: str, new: str) -> DiffText | None:
    """The differences between two commits or trees, with a summary first if it is long; None if git cannot tell.

    Run it in a repository that has both, such as the copy of a reviewer.
    """
    command = f"git diff {old} {new}"
    patch = git.run("diff-tree", "-r", "-p", "-M", *_QUIET, old, new, "--")
    if patch is None:
        return None
    if len(patch) <= MOST_DIFF:
        return DiffText(text=patch, length=len(patch), command=command)
    summary = git.run("diff-tree", "-r", "--stat=120", "--stat-count=200", "-M", *_QUIET, old, new, "--") or ""
    has_start = len(patch) < _MOST_OUTPUT
    text = f"{summary}\n{patch[:MOST_DIFF] if has_start else ''}"[:MOST_DIFF]
    return DiffText(text=text, length=max(len(patch), len(text) + 1), command=command)


def read_work_diff(git: Git) -> DiffText | None:
    """The work in the copy of a reviewer: its last commit, compared with the one before, if there is one."""
    has_parent = git.run("rev-parse", "-q", "--verify", "HEAD~1") is not None
    empty = "" if has_parent else (git.run("hash-object", "-t", "tree", "/dev/null") or "").strip()
    return read_diff(git, empty or "HEAD~1", "HEAD")
