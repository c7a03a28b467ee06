"""Looks at pull requests on GitHub, and finds what is new in them for their runs. It only reads.

Texts of checks and people are untrusted: they are cut here, redacted when they are stored, and quoted in a prompt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.pull_request import (
    CHECK,
    CHECK_FIELDS,
    FIELDS,
    Feedback,
    PullRequest,
    PullRequestVerdict,
    PullRequestView,
    compute_next_look,
    judge_pull_request,
    parse_pull_request,
)
from jackline.domain.run_inputs import OPEN, RED, PullRequestSeen
from jackline.domain.spec import APPROVED
from jackline.engine.github_client import GitHubFailed
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from jackline.domain.pull_request import CheckState, Remark
    from jackline.domain.records import Run
    from jackline.engine.github_client import GitHubClient
    from jackline.store.store import Store

_MOST_LOG_BYTES = 12_000
_MOST_TEXT = 12_000
_MOST_CHECKS = 5
_MOST_TOGETHER = 20  # pull requests that are asked for with one request
_FAILURES_IN_A_ROW = 2
_MOST_REMARKS = 20  # that are read at once; those after one with a text at the next look
_MOST_LISTED = 1000  # checks of a commit


class PullRequestLook(NamedTuple):
    """The result of one look at the pull request of a run."""

    request: PullRequest  # as it is now
    verdict: PullRequestVerdict
    ignored: tuple[Feedback, ...] = ()  # of people who may not write to the repository, or without a text

    @property
    def has_decision(self) -> bool:
        """Whether the run has something to do."""
        return self.verdict.state != OPEN


def read_views(client: GitHubClient, numbers: Iterable[int]) -> dict[int, PullRequestView | GitHubFailed]:
    """The pull requests of one repository, or why one of them cannot be read, with few requests.

    One bad pull request must not hide the others: if a request for several fails, each is asked for alone, until two
    in a row fail. Those that were not asked for are left out; name them first the next time.
    """
    wanted = list(dict.fromkeys(numbers))
    found: dict[int, PullRequestView | GitHubFailed] = {}
    for start in range(0, len(wanted), _MOST_TOGETHER):
        part = wanted[start : start + _MOST_TOGETHER]
        try:
            found |= _read_together(client, part)
        except GitHubFailed as error:
            if len(part) == 1:
                return {**found, part[0]: error}
            alone = _read_alone(client, part)
            found |= alone
            if len(alone) < len(part):
                return found
    return found


def _read_alone(client: GitHubClient, numbers: Iterable[int]) -> dict[int, PullRequestView | GitHubFailed]:
    found: dict[int, PullRequestView | GitHubFailed] = {}
    failures = 0
    for number in numbers:
        try:
            found |= _read_together(client, [number])
            failures = 0
        except GitHubFailed as error:
            found[number] = error
            failures += 1
        if failures == _FAILURES_IN_A_ROW:
            break
    return found


def _read_together(client: GitHubClient, numbers: Sequence[int]) -> dict[int, PullRequestView | GitHubFailed]:
    fields = " ".join(f"pr{number}: pullRequest(number: {number}) {{ {FIELDS} }}" for number in numbers)
    nodes, failed = client.query_each(fields)
    found: dict[int, PullRequestView | GitHubFailed] = {}
    for number in numbers:
        node, why = nodes.get(f"pr{number}"), failed.get(f"pr{number}")
        view = parse_pull_request(node) if isinstance(node, dict) else None
        if view is None:
            found[number] = GitHubFailed(why or "it is gone, or this login may not read it")
            continue
        try:
            found[number] = _read_all_checks(client, view)
        except GitHubFailed as error:
            found[number] = error
    return found


def _read_all_checks(client: GitHubClient, view: PullRequestView) -> PullRequestView:
    """The same pull request with the checks of the other pages; GitHubFailed if one cannot be read."""
    while view.next_checks:
        if len(view.checks) >= _MOST_LISTED:
            raise GitHubFailed(f"pull request {view.number} has more than {_MOST_LISTED} checks, which is too many")
        fields = f"pullRequest(number: {view.number}) {{ {CHECK_FIELDS} }}"
        node = client.query(fields, {"after": view.next_checks}).get("pullRequest")
        page = parse_pull_request(node) if isinstance(node, dict) else None
        if page is None or page.head != view.head or not page.checks:
            raise GitHubFailed(f"the checks of pull request {view.number} changed while they were read")
        view = view._replace(checks=view.checks + page.checks, next_checks=page.next_checks)
    return view


def look_at_view(
    client: GitHubClient, known: PullRequest, view: PullRequestView, until: str, reported: Collection[str], at: int
) -> PullRequestLook:
    """Judge what GitHub says about the pull request of a run; GitHubFailed if the rights of an author are unknown."""
    new = [one for one in view.remarks if one.origin not in reported]
    # Where GitHub requires reviews, it decides itself whose count.
    voters = {*view.approvals, *view.objections} if until == APPROVED and not view.decision else set()
    rights = {login: client.may_write(login) for login in voters.union(one.author for one in new)}
    read = _read_remarks(client, [one for one in new if rights[one.author]])
    heard = tuple(one for one in read if one.text)
    mute = [one for one in new if not rights[one.author]] + [one for one in read if not one.text]
    ignored = tuple(_build_feedback(known, one, "", at, turn=0) for one in mute)
    allowed = view._replace(
        remarks=heard,
        approvals=tuple(login for login in view.approvals if rights.get(login)),
        objections=tuple(login for login in view.objections if rights.get(login)),
    )
    verdict = judge_pull_request(known, allowed, until, reported, at)
    quiet = known.quiet + 1 if view.digest == known.seen else 0
    looked = known._replace(
        state=verdict.state,
        seen=view.digest,
        looked_at=at,
        next_at=compute_next_look(at, quiet),
        quiet=quiet,
        failures=0,
    )
    return PullRequestLook(looked, verdict, ignored)


def _read_remarks(client: GitHubClient, remarks: Sequence[Remark]) -> list[Remark]:
    """The first of the remarks, with their texts, up to those that say something.

    A review may have no text: each comment on a line comes with such a one, and many of them must not hide the rest.
    """
    read: list[Remark] = []
    while len(read) < len(remarks) and not any(one.text for one in read):
        part = remarks[len(read) : len(read) + _MOST_REMARKS]
        nodes = client.read_nodes([one.node for one in part], "... on Comment { body }")
        texts = [text.strip() if isinstance(text := node.get("body"), str) else "" for node in nodes]
        read += [one._replace(text=text) for one, text in zip(part, texts, strict=True)]
    return read


class PullRequestWatcher(NamedTuple):
    """Looks at the pull request of one run, for its worker."""

    store: Store
    run: Run
    connect: Callable[[str], GitHubClient]
    now: Callable[[], int]

    def look(self) -> tuple[PullRequestSeen, PullRequest | None, tuple[Feedback, ...]]:
        """What the run machine has to know, and what is stored with it."""
        known, at = self.store.pull_requests.get(self.run.id), self.now()
        if known is None:
            return PullRequestSeen(at=at, state=OPEN, detail="the pull request is not open yet", wake_at=at), None, ()
        client = self.connect(known.repository)
        try:
            look = self._look_now(client, known, self.run.spec.until, at)
            feedback = self._collect_feedback(client, look)
        except GitHubFailed as error:
            failures = known.failures + 1
            next_at = compute_next_look(at, failures)
            missed = known._replace(looked_at=at, next_at=next_at, failures=failures)
            detail = f"{known.url}: GitHub does not answer: {error}"
            return PullRequestSeen(at=at, state=OPEN, detail=detail, wake_at=next_at), missed, ()
        seen = PullRequestSeen(
            at=at,
            state=look.verdict.state,
            detail=look.verdict.detail,
            wake_at=look.request.next_at if look.verdict.state == OPEN else None,
            digest=_name_failures(look.verdict),
        )
        return seen, look.request, (*look.ignored, *feedback)

    def read_state(self, known: PullRequest, until: str) -> str:
        """What the pull request is now for a run until then, without its feedback; GitHubFailed if that is unknown."""
        return self._look_now(self.connect(known.repository), known, until, self.now()).verdict.state

    def _look_now(self, client: GitHubClient, known: PullRequest, until: str, at: int) -> PullRequestLook:
        view = read_views(client, [known.number])[known.number]
        if isinstance(view, GitHubFailed):
            raise view
        reported = {one.origin for one in self.store.pull_requests.list_feedback(self.run.id)}
        return look_at_view(client, known, view, until, reported, at)

    def _collect_feedback(self, client: GitHubClient, look: PullRequestLook) -> list[Feedback]:
        if look.verdict.state != RED:
            return []
        known, at = look.request, look.request.looked_at
        found = [_build_feedback(known, one, _cut_remark(one), at) for one in look.verdict.remarks]
        for check in look.verdict.failed[:_MOST_CHECKS]:
            origin = f"{CHECK}-{known.head}/{check.key or check.name}"
            text = _read_check_text(client, check)
            found.append(
                Feedback(
                    run_id=known.run_id, number=0, source=CHECK, origin=origin, author=check.name, text=text, at=at
                )
            )
        return found


def _read_check_text(client: GitHubClient, check: CheckState) -> str:
    """The end of the log of a failed check, or what the check itself reports."""
    parts = [check.text[:_MOST_TEXT]]
    if check.node:
        try:
            (node,) = client.read_nodes([check.node], "... on CheckRun { title summary }")
            parts += [str(node.get(name) or "")[:_MOST_TEXT] for name in ("title", "summary")]
        except GitHubFailed as error:
            parts.append(f"(its report cannot be read: {error})")
    if check.job:
        try:
            parts.append(client.read_text(f"actions/jobs/{check.job}/logs", _MOST_LOG_BYTES))
        except GitHubFailed as error:  # logs expire; the name of the check is known anyway
            parts.append(f"(its log cannot be read: {error})")
    return "\n".join(filter(None, parts)) or f"(no text; see {check.url})"


def _cut_remark(remark: Remark) -> str:
    place = f"{remark.place}\n" if remark.place else ""
    return f"{place}{remark.text}"[:_MOST_TEXT]


def _build_feedback(known: PullRequest, remark: Remark, text: str, at: int, turn: int | None = None) -> Feedback:
    return Feedback(
        run_id=known.run_id,
        number=0,  # the store counts
        source=remark.source,
        origin=remark.origin,
        author=remark.author,
        text=text,
        at=at,
        turn=turn,
    )


def _name_failures(verdict: PullRequestVerdict) -> str:
    names: Sequence[str] = sorted(check.name for check in verdict.failed)
    return " ".join((*names, *sorted(remark.origin for remark in verdict.remarks)))
