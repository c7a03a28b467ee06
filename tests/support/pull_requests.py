"""A pull request of a run, for tests."""

from __future__ import annotations

from typing import Any

from jackline.domain.pull_request import PullRequest

AT = 1_800_000_000_000
HEAD = "c" * 40
URL = "https://github.com/octo/garden/pull/1"


def build_pull_request(**fields: Any) -> PullRequest:
    values = {"run_id": "run-1", "repository": "github.com/octo/garden", "number": 1, "url": URL, "branch": "topic"}
    values |= {"base": "main", "head": HEAD, "commits": HEAD, "state": "open", "seen": "", "published_at": AT}
    values |= {"pushed_at": AT, "looked_at": AT, "next_at": AT}
    return PullRequest(**{**values, **fields})
