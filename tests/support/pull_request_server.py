"""A stand-in of GitHub with pull requests: the API for the real `gh`, and a real git server for the branches."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.support.git_server import GitServer
from tests.support.github_server import GitHubServer

_NUMBER = re.compile(r"pr(\d+): pullRequest\(number: (\d+)\)")
_ONE = re.compile(r" pullRequest\(number: (\d+)\) .*after: \$after")
_PAGE = 100  # checks
_LOG = re.compile(r"/repos/octo/garden/actions/jobs/(\d+)/logs")


class PullRequestServer(GitHubServer):
    """One repository with pull requests, checks, comments and reviews. `opened` has what `gh pr create` sent."""

    def __init__(self, folder: Path) -> None:
        self.git = GitServer(folder)
        self.opened: list[dict[str, Any]] = []
        self.forge: list[dict[str, Any]] = []
        self.checks: dict[str, list[dict[str, Any]]] = {}  # by commit
        self.logs: dict[int, str] = {}
        self.bad: set[int] = set()  # pull requests that fail every request for them
        super().__init__(folder)
        self.environ["GH_ENTERPRISE_TOKEN"] = "dummy"
        self._last = 100

    def close(self) -> None:
        super().close()
        self.git.close()

    # what happens on the server

    def add_check(
        self,
        commit: str,
        name: str,
        conclusion: str = "",
        log: str = "",
        *,
        is_another: bool = False,
        ago: int = 3600,
        workflow: str = "",
    ) -> None:
        """A check that replaces the one of this name. It began and ended `ago` seconds ago, or has no conclusion.

        Another one is of another run, of the workflow if that is named.
        """
        self._last += 1
        self.logs[self._last] = log
        url = f"https://{self.git.host}/octo/garden/actions/runs/1/job/{self._last}"
        status = "COMPLETED" if conclusion else "IN_PROGRESS"
        found = {"__typename": "CheckRun", "databaseId": self._last, "name": name, "status": status}
        found |= {"id": f"N{self._last}", "conclusion": conclusion or None, "detailsUrl": url}
        at = _format_time(datetime.now(UTC) - timedelta(seconds=ago))
        run = {"event": "push", "workflow": {"name": workflow or f"workflow {self._last}"}}
        found |= {"startedAt": at, "checkSuite": {"id": f"S{self._last}", "workflowRun": run}}
        found["completedAt"] = at if conclusion else None
        others = [one for one in self.checks.get(commit, []) if is_another or one["name"] != name]
        self.checks[commit] = [*others, found]

    def add_remark(
        self, author: str, body: str, state: str = "", association: str = "MEMBER", number: int = 1, kind: str = "User"
    ) -> int:
        """A comment, or a review with a state."""
        self._last += 1
        self.bodies[f"N{self._last}"] = {"body": body}
        node = {"id": f"N{self._last}", "databaseId": self._last, "author": {"__typename": kind, "login": author}}
        node |= {"authorAssociation": association}
        pull = self.forge[number - 1]
        if state:
            pull["reviews"].append({**node, "state": state, "commit": {"oid": self.read_head(pull)}})
        else:
            pull["comments"].append(node)
        return self._last

    def read_head(self, pull: dict[str, Any]) -> str:
        return str(pull.get("head") or self.git.read_ref(f"refs/heads/{pull['headRefName']}"))

    # the API

    def answer_query(self, query: str, values: dict[str, Any]) -> dict[str, Any] | None:
        if "RepositoryInfo" in query:
            repository = {"id": "R1", "name": "garden", "owner": {"login": "octo"}, "viewerPermission": "WRITE"}
            return _wrap({**repository, "defaultBranchRef": {"name": "main"}, "parent": None})
        if "createPullRequest" in query:
            return self._create(values["input"])
        if "PullRequestForBranch" in query or "PullRequestList" in query:
            branch = values.get("headRefName") or values.get("headBranch")
            states = values.get("states") or values.get("state") or []
            found = [one for one in self.forge if one["headRefName"] == branch and one["state"] in states]
            page = {"totalCount": len(found), "pageInfo": {"hasNextPage": False, "endCursor": ""}}
            nodes = [self._build_node(one) for one in found]
            return _wrap({"pullRequests": {"nodes": nodes, **page}, "defaultBranchRef": {"name": "main"}})
        if "headRefName: $branch" in query:
            found = [one for one in self.forge if one["headRefName"] == values["branch"] and one["state"] == "OPEN"]
            return _wrap({"pullRequests": {"nodes": [self._build_node(one) for one in found]}})
        if wanted := [int(name) for name, _ in _NUMBER.findall(query)]:
            known = {one["number"]: one for one in self.forge}
            if self.bad.intersection(wanted):
                return {"data": None, "errors": [{"message": "Something went wrong"}]}
            answer = _wrap({f"pr{one}": self._build_node(known[one]) if one in known else None for one in wanted})
            missing = [one for one in wanted if one not in known]
            answer["errors"] = [_build_missing(one) for one in missing]
            return answer if missing else _wrap(answer["data"]["repository"])
        if (number := _ONE.search(query)) is not None:
            return _wrap({"pullRequest": self._build_node(self.forge[int(number[1]) - 1], int(values["after"]))})
        return None

    def find_log(self, path: str) -> str | None:
        found = _LOG.fullmatch(path)
        return self.logs.get(int(found[1])) if found else None

    def _create(self, given: dict[str, Any]) -> dict[str, Any]:
        self.opened.append(given)
        number = len(self.forge) + 1
        url = f"https://{self.git.host}/octo/garden/pull/{number}"
        at = _format_time(datetime.now(UTC))
        pull = {"number": number, "id": f"P{number}", "url": url, "state": "OPEN", "createdAt": at}
        pull |= {"headRefName": given["headRefName"], "baseRefName": given["baseRefName"], "reviewDecision": None}
        pull |= {"isDraft": given.get("draft", False), "isCrossRepository": False, "comments": [], "reviews": []}
        self.forge.append(pull)
        return {"data": {"createPullRequest": {"pullRequest": {"id": pull["id"], "url": url}}}}

    def _build_node(self, pull: dict[str, Any], after: int = 0) -> dict[str, Any]:
        head = self.read_head(pull)
        checks = self.checks.get(head, [])
        opinions = {one["author"]["login"]: one for one in pull["reviews"] if one["state"] != "COMMENTED"}
        ended = {one["conclusion"] for one in checks}
        state = "FAILURE" if {"FAILURE", "CANCELLED"} & ended else "PENDING" if None in ended else "SUCCESS"
        last = after + _PAGE
        page = {"hasNextPage": len(checks) > last, "endCursor": str(last)}
        rollup = {"state": state, "contexts": {"pageInfo": page, "nodes": checks[after:last]}}
        commit = {"oid": head, "statusCheckRollup": rollup if checks else None}
        return {
            **pull,
            "headRefOid": head,
            "commits": {"nodes": [{"commit": commit}]},
            "comments": {"nodes": pull["comments"]},
            "reviews": {"nodes": pull["reviews"]},
            "latestOpinionatedReviews": {"nodes": list(opinions.values())},  # of strangers, too
            "reviewThreads": {"nodes": []},
        }


def _format_time(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")


def _build_missing(number: int) -> dict[str, Any]:
    message = f"Could not resolve to a PullRequest with the number of {number}."
    return {"type": "NOT_FOUND", "path": ["repository", f"pr{number}"], "message": message}


def _wrap(repository: dict[str, Any]) -> dict[str, Any]:
    return {"data": {"repository": repository}}
