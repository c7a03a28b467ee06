"""Pull requests: what is stored about one, what GitHub says about it, and what follows from that for its run. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.digests import hash_text
from jackline.domain.graphql_answer import get_dict, get_login, get_text, get_time, is_draft, is_number, list_nodes
from jackline.domain.limits import compute_wait
from jackline.domain.run_inputs import BLOCKED, CLOSED, OPEN, REACHED, RED
from jackline.domain.spec import APPROVED, GREEN, MERGED
from jackline.formatting import format_line, join_some, pluralize
from jackline.named import NamedTuple, stored_as

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

FIRST_LOOK_MS = 60_000
_LONGEST_WAIT_MS = 600_000
_MOST_NAME = 80  # characters of a check's name
_MOST_NAMED = 3  # checks or people in a message
SETTLED_MS = 60_000  # after a check; within it, CI registers the jobs that waited for it
NO_CHECKS_MS = 900_000  # after which a commit without any check will not get one
_ALL_PASSED = "SUCCESS"
_FAILED_ROLLUPS = frozenset({"FAILURE", "ERROR"})
_PASSED = frozenset({"SUCCESS", "NEUTRAL", "SKIPPED"})
_MAY_BE_HEARD = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})  # others cannot have write access
_ANSWERS = frozenset({"CHANGES_REQUESTED", "COMMENTED"})  # states of reviews that ask for something

# The sources of feedback.
CHECK, COMMENT, REVIEW = "check", "comment", "review"


@stored_as(
    "run_id repository number url branch base head commits state seen published_at pushed_at looked_at next_at quiet "
    "failures told_at"
)
class PullRequest(NamedTuple):
    """The pull request of a run, as it was last seen."""

    run_id: str
    repository: str  # HOST/OWNER/NAME
    number: int
    url: str
    branch: str
    base: str
    head: str  # the commit that the host pushed last
    commits: str  # all that it pushed, separated by spaces
    state: str  # one of those in `run_inputs`
    seen: str  # a digest of what GitHub said last
    published_at: int
    pushed_at: int
    looked_at: int
    next_at: int  # when to look again
    quiet: int = 0  # looks in a row that found nothing new
    failures: int = 0  # looks in a row that failed
    told_at: int | None = None  # when a person was last reminded


@stored_as("run_id number source origin author text at turn")
class Feedback(NamedTuple):
    """A text from outside that the worker's next turn gets, quoted: a failing check, a comment."""

    run_id: str
    number: int
    source: str
    origin: str  # its id: the same text is never given twice
    author: str
    text: str
    at: int
    turn: int | None = None  # that got it; 0: none, because its author may not write to the repository


class CheckState(NamedTuple):
    """One check of a commit."""

    name: str  # one printable line: anyone may choose it
    is_over: bool
    is_passed: bool
    key: str = ""  # what tells it from another one of the same name
    job: int = 0  # of GitHub Actions, which has a log
    node: str = ""  # its GraphQL id, by which its report can be read
    text: str = ""  # its description
    url: str = ""
    ended_at: int = 0  # 0: unknown
    needs_person: bool = False  # it waits for what no commit can give, such as an approval of the workflow
    source: str = ""  # its name, workflow and event, if a later run of that replaces it; empty for other programs
    suite: str = ""  # the run of its workflow
    started_at: int = 0  # 0: not yet


class Remark(NamedTuple):
    """A comment or a review of a person."""

    source: str
    origin: str
    author: str
    node: str = ""  # its GraphQL id, by which its text can be read
    text: str = ""  # empty until it is read: strangers may write as much as they like
    place: str = ""  # file and line


class PullRequestView(NamedTuple):
    """A pull request as GitHub describes it."""

    number: int
    state: str  # OPEN, CLOSED or MERGED
    head: str
    url: str = ""
    decision: str = ""  # of the required reviews; empty if none is required
    approvals: tuple[str, ...] = ()  # people whose last opinion approves this head
    objections: tuple[str, ...] = ()  # people whose last opinion requests changes
    checks: tuple[CheckState, ...] = ()  # of the head
    rollup: str = ""  # GitHub's summary of all of them; empty if there are none
    next_checks: str = ""  # where the next page of them begins; empty if all are here
    remarks: tuple[Remark, ...] = ()

    @property
    def digest(self) -> str:
        """Equal if nothing has changed that a run could wait for."""
        return hash_text(repr(self))


class PullRequestVerdict(NamedTuple):
    """What a pull request is for its run, and the new feedback in it."""

    state: str
    detail: str
    failed: tuple[CheckState, ...] = ()
    remarks: tuple[Remark, ...] = ()


def build_url(repository: str, number: int) -> str:
    """The address of a pull request: not the one that an answer names, because it goes into prompts."""
    return f"https://{repository}/pull/{number}"


def describe_set_back(branch: str, found: str, pushed: str) -> str:
    """Say that the branch of the remote has lost what was pushed: the host pushes each commit once."""
    where = f"is at {found[:12]}" if found else "is gone"
    return f"{branch} {where} on the remote, without {pushed[:12]}, which was pushed: push it again, then resume"


def judge_pull_request(
    known: PullRequest, view: PullRequestView, until: str, reported: Collection[str], at: int
) -> PullRequestVerdict:
    """Decide what a pull request is for its run. `reported` are the origins of feedback that is stored already."""
    if view.state == "MERGED":
        return PullRequestVerdict(REACHED, f"{known.url} was merged")
    if view.state == "CLOSED":
        return PullRequestVerdict(CLOSED, f"{known.url} was closed without a merge")
    if view.head != known.head:  # checks and reviews of another commit say nothing about the one that was proved
        if view.head in known.commits.split():
            return _judge_older_head(known, view, at)
        detail = f"someone else pushed {view.head[:12]} to {known.branch}: merge it into the workspace, then resume"
        return PullRequestVerdict(BLOCKED, f"{known.url}: {detail}")
    view = _leave_out_replaced(view)
    running = [check.name for check in view.checks if not check.is_over]
    failed = tuple(check for check in view.checks if check.is_over and not check.is_passed)
    remarks = tuple(one for one in view.remarks if one.origin not in reported)
    if failed and not running and not remarks and all(check.needs_person for check in failed):
        names = join_some([check.name for check in failed], _MOST_NAMED)
        return PullRequestVerdict(BLOCKED, f"{known.url}: GitHub waits for a person: {names}: see to it, then resume")
    if remarks or (failed and not running):
        return _build_red(known, () if running else failed, remarks)
    if running:
        return PullRequestVerdict(OPEN, f"{known.url}: waiting for {join_some(running, _MOST_NAMED)}")
    return _judge_finished(known, view, until, at)


def _judge_older_head(known: PullRequest, view: PullRequestView, at: int) -> PullRequestVerdict:
    """GitHub is late after a push, or somebody has set the branch back to an older commit of the run."""
    if at - known.pushed_at < NO_CHECKS_MS:
        return PullRequestVerdict(OPEN, f"{known.url}: GitHub does not show the pushed commit yet")
    detail = describe_set_back(known.branch, view.head, known.head)
    return PullRequestVerdict(BLOCKED, f"{known.url}: {detail}")


def _leave_out_replaced(view: PullRequestView) -> PullRequestView:
    """The same pull request without the checks that a later run of their workflow has made again.

    GitHub's summary of all checks may still count those that failed or were cancelled.
    """
    newest: dict[str, CheckState] = {}
    for check in filter(lambda one: one.source, view.checks):
        before = newest.get(check.source)
        if before is None or _get_start(check) > _get_start(before):
            newest[check.source] = check
    replaced = [one for one in view.checks if one.source and one.suite != newest[one.source].suite]
    kept = tuple(one for one in view.checks if not one.source or one.suite == newest[one.source].suite)
    is_explained = view.rollup in _FAILED_ROLLUPS and not all(one.is_passed for one in replaced)
    return view._replace(checks=kept, rollup=_ALL_PASSED if is_explained else view.rollup)


def _get_start(check: CheckState) -> tuple[bool, int]:
    """What orders the runs of a check: one that has not begun yet is the newest."""
    return not check.started_at and not check.is_over, check.started_at


def _build_red(known: PullRequest, failed: tuple[CheckState, ...], remarks: tuple[Remark, ...]) -> PullRequestVerdict:
    names = [f"{join_some([check.name for check in failed], _MOST_NAMED)} failed"] if failed else []
    people = sorted({one.author for one in remarks})
    names += [f"{join_some(people, _MOST_NAMED)} commented"] if people else []
    return PullRequestVerdict(RED, f"{known.url}: {'; '.join(names)}", failed, remarks)


def _judge_finished(known: PullRequest, view: PullRequestView, until: str, at: int) -> PullRequestVerdict:
    """Judge a head whose checks have all passed, if it has any."""
    if until == MERGED:
        return PullRequestVerdict(OPEN, f"{known.url}: waiting for the merge")
    if view.next_checks or (view.checks and view.rollup != _ALL_PASSED):
        said = format_line(view.rollup, _MOST_NAME) or "nothing"
        detail = f"no check that GitHub lists has failed, but its summary of all checks is {said}"
        return PullRequestVerdict(OPEN, f"{known.url}: {detail}")
    if any(abs(at - check.ended_at) < SETTLED_MS for check in view.checks):  # GitHub's clock may be ahead of this one
        passed = pluralize(len(view.checks), "check")
        return PullRequestVerdict(OPEN, f"{known.url}: {passed} passed; waiting a minute for checks that follow them")
    if until == APPROVED:
        is_approved = view.decision == "APPROVED" or (
            not view.decision and bool(view.approvals) and not view.objections
        )
        if is_approved:
            return PullRequestVerdict(REACHED, f"{known.url} was approved")
        return PullRequestVerdict(OPEN, f"{known.url}: waiting for an approval")
    if view.checks:
        return PullRequestVerdict(REACHED, f"{known.url}: {pluralize(len(view.checks), 'check')} passed")
    if at - known.pushed_at < NO_CHECKS_MS:
        return PullRequestVerdict(OPEN, f"{known.url}: no check has started yet")
    minutes = NO_CHECKS_MS // 60_000
    detail = f"{known.head[:12]} has no check after {minutes} minutes, so it never becomes {GREEN}"
    return PullRequestVerdict(BLOCKED, f"{known.url}: {detail}; does the repository have CI? Resume to look again")


def compute_next_look(at: int, quiet: int) -> int:
    """When to look again after so many looks that found nothing new: after one minute, at most after ten."""
    return at + compute_wait(FIRST_LOOK_MS, quiet, _LONGEST_WAIT_MS)


# --- what GitHub's GraphQL API answers

_COMMENT = "id databaseId author { __typename login } authorAssociation"
_CHECKS = (
    "commits(last: 1) {{ nodes {{ commit {{ oid statusCheckRollup {{ state contexts({}) {{ "
    "pageInfo {{ hasNextPage endCursor }} nodes {{ __typename "
    "... on CheckRun {{ id databaseId name status conclusion startedAt completedAt detailsUrl "
    "checkSuite {{ id workflowRun {{ event workflow {{ name }} }} }} }} "
    "... on StatusContext {{ context state createdAt description targetUrl }} }} }} }} }} }} }}"
)
CHECK_FIELDS = f"number headRefOid {_CHECKS.format('first: 100, after: $after')}"  # of a page after the first
FIELDS = (
    f"number state url headRefOid reviewDecision {_CHECKS.format('first: 100')} "
    f"comments(last: 50) {{ nodes {{ {_COMMENT} }} }} "
    f"reviews(last: 50) {{ nodes {{ {_COMMENT} state commit {{ oid }} }} }} "
    "latestOpinionatedReviews(last: 50, writersOnly: true) { nodes { state author { __typename login } "
    "authorAssociation commit { oid } } } "
    "reviewThreads(last: 50) { nodes { isResolved "
    f"comments(last: 20) {{ nodes {{ {_COMMENT} state path line }} }} }} }}"
)


def parse_pull_request(node: Mapping[str, Any]) -> PullRequestView | None:
    """A pull request from GitHub's answer; None if it is none."""
    number = node.get("number")
    head = get_text(node, "headRefOid")
    if not is_number(number) or not head:
        return None
    reviews = list_nodes(node, "reviews")
    opinions = [one for one in list_nodes(node, "latestOpinionatedReviews") if _is_persons(one)]
    rollup = _find_rollup(node, head)
    page = get_dict(get_dict(rollup, "contexts"), "pageInfo")
    return PullRequestView(
        number=number,
        state=get_text(node, "state"),
        head=head,
        url=get_text(node, "url"),
        decision=get_text(node, "reviewDecision"),
        approvals=tuple(
            get_login(one)
            for one in opinions
            if get_text(one, "state") == "APPROVED" and get_text(get_dict(one, "commit"), "oid") == head
        ),
        objections=tuple(get_login(one) for one in opinions if get_text(one, "state") == "CHANGES_REQUESTED"),
        checks=tuple(_parse_check(one) for one in list_nodes(rollup, "contexts")),
        rollup=get_text(rollup, "state"),
        next_checks=get_text(page, "endCursor") if page.get("hasNextPage") is True else "",
        remarks=tuple(_list_remarks(node, reviews)),
    )


def _find_rollup(node: Mapping[str, Any], head: str) -> dict[str, Any]:
    """The checks of the head; those of an older commit, which GitHub may still show after a push, are left out."""
    commits = [get_dict(one, "commit") for one in list_nodes(node, "commits")]
    rollups = [get_dict(one, "statusCheckRollup") for one in commits if get_text(one, "oid") == head]
    return rollups[0] if rollups else {}


def _parse_check(node: Mapping[str, Any]) -> CheckState:
    if node.get("__typename") == "StatusContext":
        state = get_text(node, "state")
        return CheckState(
            name=_get_name(node, "context"),
            is_over=state not in {"PENDING", "EXPECTED"},
            is_passed=state == "SUCCESS",
            text=get_text(node, "description"),
            url=get_text(node, "targetUrl"),
            ended_at=get_time(node, "createdAt"),
        )
    job = node.get("databaseId")
    url = get_text(node, "detailsUrl")
    suite = get_dict(node, "checkSuite")
    run = get_dict(suite, "workflowRun")
    workflow = get_text(get_dict(run, "workflow"), "name")
    return CheckState(
        name=_get_name(node, "name"),
        is_over=get_text(node, "status") == "COMPLETED",
        is_passed=get_text(node, "conclusion") in _PASSED,
        key=str(job) if is_number(job) else "",
        job=job if is_number(job) and "/actions/" in url else 0,
        node=get_text(node, "id"),
        url=url,
        ended_at=get_time(node, "completedAt"),
        needs_person=get_text(node, "conclusion") == "ACTION_REQUIRED",
        source=repr((get_text(node, "name"), workflow, get_text(run, "event"))) if workflow else "",
        suite=get_text(suite, "id"),
        started_at=get_time(node, "startedAt"),
    )


def _list_remarks(node: Mapping[str, Any], reviews: Sequence[Mapping[str, Any]]) -> list[Remark]:
    threads = [one for one in list_nodes(node, "reviewThreads") if one.get("isResolved") is not True]
    inline = [comment for thread in threads for comment in list_nodes(thread, "comments")]
    asking = [one for one in reviews if get_text(one, "state") in _ANSWERS]
    found = ((COMMENT, "comment", list_nodes(node, "comments")), (REVIEW, "review", asking), (COMMENT, "line", inline))
    return [
        Remark(
            source=source,
            origin=f"{kind}-{one['databaseId']}",
            author=get_login(one),
            node=get_text(one, "id"),
            place=_format_place(one),
        )
        for source, kind, nodes in found
        for one in nodes
        if _is_persons(one) and is_number(one.get("databaseId")) and not is_draft(one)
    ]


def _is_persons(node: Mapping[str, Any]) -> bool:
    author = get_dict(node, "author")
    return author.get("__typename") == "User" and get_text(node, "authorAssociation") in _MAY_BE_HEARD


def _format_place(node: Mapping[str, Any]) -> str:
    path, line = get_text(node, "path"), node.get("line")
    return f"{path}:{line}" if path and isinstance(line, int) else path


def _get_name(node: Mapping[str, Any], name: str) -> str:
    return format_line(get_text(node, name), _MOST_NAME)
