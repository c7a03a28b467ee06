"""Reads labelled issues and review comments of one repository with `gh`: one request for all its triggers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jackline.domain.graphql_answer import get_dict, get_login, get_text, get_time, is_draft, is_number, list_nodes
from jackline.engine.github_client import GitHubClient, GitHubFailed
from jackline.features.triggers.trigger_model import COMMENTS, ISSUES, TriggerFinding, build_event_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from jackline.features.triggers.trigger_model import Trigger

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/-]{0,199}")  # names that need no quotes
_NEWEST_FIRST = "orderBy: {field: UPDATED_AT, direction: DESC}"
_NEXT = "pageInfo { more: hasNextPage cursor: endCursor }"
_BEFORE = "pageInfo { more: hasPreviousPage cursor: startCursor }"
# Without their bodies and paths: strangers may write as much as they like.
_ISSUES = (
    f"issues(labels: [$%s], states: OPEN, first: 100%s, {_NEWEST_FIRST}) "
    f"{{ nodes {{ id number title url author {{ __typename login }} }} {_NEXT} }}"
)
_COMMENT_FIELDS = f"{{ nodes {{ id databaseId url state createdAt author {{ __typename login }} }} {_BEFORE} }}"
_REVIEWS = f"reviews(last: 50%s) {_COMMENT_FIELDS}"
_THREADS = f"reviewThreads(last: 30%s) {{ nodes {{ id isResolved comments(last: 20) {_COMMENT_FIELDS} }} {_BEFORE} }}"
_LONG_THREAD = f"... on PullRequestReviewThread {{ comments(last: 100) {_COMMENT_FIELDS} }}"
_PULLS = (
    f"pullRequests(states: OPEN, first: 30%s, {_NEWEST_FIRST}) {{ nodes {{ number title headRefName updatedAt "
    f"{_REVIEWS % ''} {_THREADS % ''} }} {_NEXT} }}"
)
_TEXTS = "... on Comment { body } ... on PullRequestReviewComment { path line }"
_MOST_PAGES = 20  # that one poll reads after the first ones, so that a repository cannot use up the person's requests
_MOST_PULL_PAGES = 5  # of pull requests, each as expensive as ten usual requests, and of the comments of one
_MOST_UNKNOWN = 5  # people about whom gh cannot tell, in one poll


class GitHubEvents:
    """The events of one repository on GitHub, asked through `gh`, which knows the person's login, for one poll.

    Anybody can write there: what cannot be read about one event is one of the `problems`, and does not keep the others
    from starting.
    """

    def __init__(self, repository: str, environ: Mapping[str, str]) -> None:
        self.repository = repository
        self.problems: list[str] = []
        self._client = GitHubClient(repository, environ)
        self._writers: dict[str, bool | None] = {}
        self._pages_left = _MOST_PAGES

    def find(self, triggers: Sequence[Trigger]) -> dict[str, list[TriggerFinding]]:
        """What the triggers of this repository find now, by the name of the trigger; GitHubFailed if gh fails."""
        labels = sorted({one.definition.label for one in triggers if one.definition.kind == ISSUES})
        places = {label: f"label{place}" for place, label in enumerate(labels)}
        created = [one.created_at for one in triggers if one.definition.kind == COMMENTS]
        parts = [f"{place}: {_ISSUES % (place, '')}" for place in places.values()] + [_PULLS % ""] * bool(created)
        answer = self._client.query(" ".join(parts), {place: label for label, place in places.items()})
        issues = {label: self._read_issues(place, label, answer) for label, place in places.items()}
        comments = self._read_comments(answer, min(created)) if created else []
        return {
            one.name: issues[one.definition.label]
            if one.definition.kind == ISSUES
            else [comment for comment in comments if comment.at >= one.created_at]
            for one in triggers
        }

    def may_write(self, login: str) -> bool | None:
        """Whether this person may write to the repository; None if gh cannot tell."""
        unknown = [known for known, answer in self._writers.items() if answer is None]
        if login not in self._writers and len(unknown) < _MOST_UNKNOWN:
            try:
                self._writers[login] = self._client.may_write(login)
            except GitHubFailed as error:
                self._writers[login] = None
                who = f"whether {login} may write to {self.repository}"
                self.problems.append(f"gh cannot tell {who}: {error}; name trusted people with --author")
        return self._writers.get(login)

    def read_body(self, finding: TriggerFinding) -> TriggerFinding | None:
        """The finding with its text, which a review may not have; None if gh cannot read it."""
        try:
            (node,) = self._client.read_nodes([finding.node], _TEXTS)
        except GitHubFailed as error:
            self.problems.append(f"{finding.source}: {error}")
            return None
        plain, others = _split_names({"path": get_text(node, "path"), "line": str(node.get("line") or "")})
        return finding._replace(
            variables={**finding.variables, **plain},
            texts={**finding.texts, "body": get_text(node, "body"), **others},
        )

    def _read_issues(self, place: str, label: str, answer: Mapping[str, Any]) -> list[TriggerFinding]:
        fields = f"{place}: {_ISSUES % (place, ', after: $cursor')}"
        nodes = self._read_pages(answer, (place,), fields, {place: label})
        return [self._build_issue(node) for node in reversed(nodes) if is_number(node.get("number"))]

    def _read_comments(self, answer: Mapping[str, Any], since: int) -> list[TriggerFinding]:
        """The comments and reviews since a time and some before, oldest first."""

        def is_over(page: Sequence[Mapping[str, Any]]) -> bool:
            return not page or get_time(page[-1], "updatedAt") < since

        fields = _PULLS % ", after: $cursor"
        pulls = self._read_pages(answer, ("pullRequests",), fields, {}, is_over, _MOST_PULL_PAGES)
        found = [one for pull in pulls if is_number(pull.get("number")) for one in self._read_pull(pull, since)]
        return sorted({one.delivery: one for one in found}.values(), key=lambda one: one.at)

    def _read_pull(self, pull: Mapping[str, Any], since: int) -> Iterator[TriggerFinding]:
        """The comments of unresolved threads and the reviews of a pull request."""

        def is_over(page: Sequence[Mapping[str, Any]]) -> bool:
            return not page or get_time(page[0], "createdAt") < since

        known, place = {"pullRequest": pull}, f"pullRequest(number: {pull['number']})"
        fields = [f"{place} {{ {one % ', before: $cursor'} }}" for one in (_REVIEWS, _THREADS)]
        reviews = self._read_pages(known, ("pullRequest", "reviews"), fields[0], {}, is_over, _MOST_PULL_PAGES)
        threads = self._read_pages(known, ("pullRequest", "reviewThreads"), fields[1], {}, most=_MOST_PULL_PAGES)
        unresolved = [thread for thread in threads if thread.get("isResolved") is not True]
        comments = [comment for thread in unresolved for comment in self._read_thread(thread, since)]
        for kind, nodes in (("comment", comments), ("review", reviews)):
            for node in nodes:
                if is_number(node.get("databaseId")) and not is_draft(node):
                    yield self._build_comment(kind, pull, node)

    def _read_thread(self, thread: Mapping[str, Any], since: int) -> list[dict[str, Any]]:
        """The comments of a thread: the newest hundred, if there are so many since a time."""
        comments = list_nodes(thread, "comments")
        is_all = not _get_cursor(get_dict(thread, "comments")) or not comments
        if not is_all and get_time(comments[0], "createdAt") >= since and self._pages_left:
            self._pages_left -= 1
            try:
                (whole,) = self._client.read_nodes([get_text(thread, "id")], _LONG_THREAD)
            except GitHubFailed as error:
                self.problems.append(str(error))
            else:
                return list_nodes(whole, "comments")
        return comments

    def _read_pages(
        self,
        answer: Mapping[str, Any],
        path: Sequence[str],
        fields: str,
        values: Mapping[str, str],
        is_over: Callable[[Sequence[Mapping[str, Any]]], bool] = lambda _page: False,
        most: int = _MOST_PAGES,
    ) -> list[dict[str, Any]]:
        """The nodes at a path of the answer, and those of the pages after it, for which `fields` asks."""
        nodes: list[dict[str, Any]] = []
        for is_last in [False] * (most - 1) + [True]:
            *parents, name = path
            holder = answer
            for parent in parents:
                holder = get_dict(holder, parent)
            page = list_nodes(holder, name)
            nodes += page
            cursor = _get_cursor(get_dict(holder, name))
            if is_last or not cursor or is_over(page) or not self._pages_left:
                break
            self._pages_left -= 1
            try:
                answer = self._client.query(fields, {**values, "cursor": cursor})
            except GitHubFailed as error:
                self.problems.append(str(error))
                break
        return nodes

    def _build_issue(self, node: Mapping[str, Any]) -> TriggerFinding:
        number = str(node["number"])
        return TriggerFinding(
            delivery=build_event_id(self.repository, f"issue-{number}"),
            variables={"repository": self.repository, "number": number, "url": _get_url(node)},
            texts={"title": get_text(node, "title")},
            author=get_login(node),
            node=get_text(node, "id"),
            source=f"issue #{number} of {self.repository}",
        )

    def _build_comment(self, kind: str, pull: Mapping[str, Any], node: Mapping[str, Any]) -> TriggerFinding:
        number = str(pull["number"])
        what = "a review comment" if kind == "comment" else "a review"
        plain, others = _split_names({"branch": get_text(pull, "headRefName")})
        return TriggerFinding(
            delivery=build_event_id(self.repository, f"{kind}-{node['databaseId']}"),
            variables={"repository": self.repository, "number": number, "url": _get_url(node), **plain},
            texts={"title": get_text(pull, "title"), **others},
            own_texts=("body",),  # others opened the pull request, and named its branch
            author=get_login(node),
            node=get_text(node, "id"),
            source=f"{what} on pull request #{number} of {self.repository}",
            at=get_time(node, "createdAt"),
        )


def _split_names(names: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The names that need no quotes, and the others; without empty ones."""
    plain = {name: text for name, text in names.items() if _PLAIN.fullmatch(text)}
    return plain, {name: text for name, text in names.items() if text and name not in plain}


def _get_cursor(connection: Mapping[str, Any]) -> str:
    """Where the next page begins; empty if there is none."""
    page = get_dict(connection, "pageInfo")
    return get_text(page, "cursor") if page.get("more") is True else ""


def _get_url(node: Mapping[str, Any]) -> str:
    url = get_text(node, "url")
    return url if url.startswith("https://") and url.isascii() and url.isprintable() and " " not in url else ""
