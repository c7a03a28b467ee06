"""Reads labelled issues and review comments of one repository with `gh`: one request for all its triggers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jackline.engine.github_client import GitHubClient, GitHubFailed
from jackline.features.triggers.trigger_model import COMMENTS, ISSUES, TriggerFinding, build_event_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jackline.features.triggers.trigger_model import Trigger

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/-]{0,199}")  # names that need no quotes
_ISSUES = "issues(labels: [${0}], states: OPEN, first: 50, orderBy: {{field: UPDATED_AT, direction: DESC}})"
# Without their bodies: strangers may write as much as they like.
_ISSUE_FIELDS = "{ nodes { id number title url author { login } } }"
_COMMENT_FIELDS = "{ nodes { id databaseId url createdAt author { login } "
_PULLS = (
    "pullRequests(states: OPEN, first: 30, orderBy: {field: UPDATED_AT, direction: DESC}) { nodes { number title url "
    f"headRefName reviews(last: 20) {_COMMENT_FIELDS} state }} }} "
    f"reviewThreads(last: 30) {{ nodes {{ isResolved comments(last: 10) {_COMMENT_FIELDS} path line }} }} }} }} }} }}"
)


_MOST_UNKNOWN = 5  # people about whom gh cannot tell, in one poll


class GitHub:
    """One repository on GitHub, asked through `gh`, which knows the person's login, for one poll.

    Anybody can write there: what cannot be read about one event is one of the `problems`, and does not keep the others
    from starting.
    """

    def __init__(self, repository: str, environ: Mapping[str, str]) -> None:
        self.repository = repository
        self.problems: list[str] = []
        self._client = GitHubClient(repository, environ)
        self._writers: dict[str, bool | None] = {}

    def find(self, triggers: Sequence[Trigger]) -> dict[str, list[TriggerFinding]]:
        """What the triggers of this repository find now, by the name of the trigger; GitHubFailed if gh fails."""
        labels = sorted({one.definition.label for one in triggers if one.definition.kind == ISSUES})
        wants_comments = any(one.definition.kind == COMMENTS for one in triggers)
        answer = self._ask(labels, wants_comments=wants_comments)
        found: dict[str, list[TriggerFinding]] = {}
        for trigger in triggers:
            if trigger.definition.kind == ISSUES:
                nodes = _list_nodes(answer, f"label{labels.index(trigger.definition.label)}")
                found[trigger.name] = [self._build_issue(node) for node in nodes if _is_number(node.get("number"))]
            else:
                comments = self._iterate_comments(_list_nodes(answer, "pullRequests"))
                found[trigger.name] = [one for one in comments if one.at >= trigger.created_at]
        return found

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
            (node,) = self._client.read_nodes([finding.node], "... on Comment { body }")
        except GitHubFailed as error:
            self.problems.append(f"{finding.source}: {error}")
            return None
        return finding._replace(texts={**finding.texts, "body": _get_text(node, "body")})

    def _ask(self, labels: Sequence[str], *, wants_comments: bool) -> dict[str, Any]:
        parts = [f"label{place}: {_ISSUES.format(f'label{place}')} {_ISSUE_FIELDS}" for place in range(len(labels))]
        parts += [_PULLS] if wants_comments else []
        values = {f"label{place}": label for place, label in enumerate(labels)}
        return self._client.query(" ".join(parts), values)

    def _build_issue(self, node: Mapping[str, Any]) -> TriggerFinding:
        number = str(node["number"])
        return TriggerFinding(
            delivery=build_event_id(self.repository, f"issue-{number}"),
            variables={"repository": self.repository, "number": number, "url": _get_url(node)},
            texts={"title": _get_text(node, "title")},
            author=_get_login(node),
            node=_get_text(node, "id"),
            source=f"issue #{number} of {self.repository}",
        )

    def _iterate_comments(self, pulls: Sequence[Mapping[str, Any]]) -> Iterator[TriggerFinding]:
        for pull in pulls:
            if not _is_number(pull.get("number")):
                continue
            threads = [one for one in _list_nodes(pull, "reviewThreads") if one.get("isResolved") is not True]
            comments = [comment for thread in threads for comment in _list_nodes(thread, "comments")]
            for kind, nodes in (("comment", comments), ("review", _list_nodes(pull, "reviews"))):
                for node in nodes:
                    if _is_number(node.get("databaseId")):
                        yield self._build_comment(kind, pull, node)

    def _build_comment(self, kind: str, pull: Mapping[str, Any], node: Mapping[str, Any]) -> TriggerFinding:
        number = str(pull["number"])
        what = "a review comment" if kind == "comment" else "a review"
        names = {"branch": _get_text(pull, "headRefName")}
        if kind == "comment":
            names |= {"path": _get_text(node, "path"), "line": str(node.get("line") or "")}
        plain = {name: text for name, text in names.items() if _PLAIN.fullmatch(text)}
        others = {name: text for name, text in names.items() if text and name not in plain}
        return TriggerFinding(
            delivery=build_event_id(self.repository, f"{kind}-{node['databaseId']}"),
            variables={"repository": self.repository, "number": number, "url": _get_url(node), **plain},
            texts={"title": _get_text(pull, "title"), **others},
            author=_get_login(node),
            node=_get_text(node, "id"),
            source=f"{what} on pull request #{number} of {self.repository}",
            at=_parse_time(_get_text(node, "createdAt")),
        )


def _list_nodes(holder: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    connection = holder.get(name)
    nodes = connection.get("nodes") if isinstance(connection, dict) else None
    return [node for node in nodes if isinstance(node, dict)] if isinstance(nodes, list) else []


def _get_text(node: Mapping[str, Any], name: str) -> str:
    value = node.get(name)
    return value if isinstance(value, str) else ""


def _get_login(node: Mapping[str, Any]) -> str:
    author = node.get("author")
    return _get_text(author, "login") if isinstance(author, dict) else ""


def _get_url(node: Mapping[str, Any]) -> str:
    url = _get_text(node, "url")
    return url if url.startswith("https://") and url.isascii() and url.isprintable() and " " not in url else ""


def _parse_time(text: str) -> int:
    from datetime import datetime

    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        return 0


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
