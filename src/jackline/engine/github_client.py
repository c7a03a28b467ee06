"""Asks GitHub through `gh`, which knows the person's login. It only reads."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from jackline.engine.command_runner import StillWanted, always_wanted, run_command
from jackline.engine.process import SpawnFailed, WardenLost
from jackline.formatting import format_line
from jackline.named import NamedTuple
from jackline.policy import own_remotes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackline.engine.command_runner import CommandResult
    from jackline.engine.process import Warden

_SECONDS = 60.0
_OUTPUT_BYTES = 8 * 1024 * 1024
_MOST_REASON = 500
_GONE = "NOT_FOUND"
_MAY_WRITE = frozenset({"admin", "maintain", "write"})
_LOGIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,99})")
SILENT = {"GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1", "GH_PAGER": "cat", "NO_COLOR": "1"}
NOT_INSTALLED = "gh is not installed: see https://cli.github.com, then `gh auth login`"


class GitHubFailed(Exception):
    """`gh` could not answer; the text says why."""


class _QueryError(NamedTuple):
    """An error in an answer: where, which kind, and why."""

    path: tuple[str, ...]
    kind: str
    text: str


class GitHubClient(NamedTuple):
    """One repository on GitHub: OWNER/NAME, or HOST/OWNER/NAME."""

    repository: str
    environ: Mapping[str, str]
    warden: Warden | None = None
    wanted: StillWanted = always_wanted

    @property
    def name(self) -> str:
        """OWNER/NAME."""
        return "/".join(self.repository.split("/")[-2:])

    @property
    def host(self) -> str:
        """The host, if it is named."""
        return self.repository.removesuffix(self.name).rstrip("/")

    def query(self, fields: str, parameters: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Ask for fields of the repository by GraphQL; GitHubFailed if gh fails. `parameters` are texts."""
        found, failed = self.query_each(fields, parameters)
        if failed:
            raise GitHubFailed(next(iter(failed.values())))
        return found

    def query_each(
        self, fields: str, parameters: Mapping[str, str] | None = None
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Ask for fields that may fail one by one: those that could be read, and why the others could not.

        A field with an error anywhere in it is left out: half an answer would look like a commit without checks.
        """
        owner, _, name = self.name.partition("/")
        given = {"owner": owner, "name": name, **(parameters or {})}
        declared = ", ".join(f"${one}: String!" for one in given)
        query = f"query({declared}) {{ repository(owner: $owner, name: $name) {{ {fields} }} }}"
        data, errors = self._ask(query, given)
        found = data.get("repository")
        if not isinstance(found, dict):
            raise GitHubFailed(f"GitHub does not know {self.repository}, or this login may not read it")
        failed: dict[str, str] = {}
        for error in errors:
            if error.path[:1] != ("repository",) or len(error.path) == 1:
                raise GitHubFailed(error.text)  # it does not say what is missing
            failed.setdefault(error.path[1], error.text)
        return {name: value for name, value in found.items() if name not in failed}, failed

    def read_nodes(self, ids: Sequence[str], fields: str) -> list[dict[str, Any]]:
        """Ask for objects by their GraphQL ids, in this order; one that does not exist any more is empty."""
        given = {f"id{place}": one for place, one in enumerate(ids)}
        declared = ", ".join(f"${one}: ID!" for one in given)
        nodes = " ".join(f"node{place}: node(id: $id{place}) {{ {fields} }}" for place in range(len(ids)))
        data, errors = self._ask(f"query({declared}) {{ {nodes} }}", given)
        for error in errors:
            if error.kind != _GONE:
                raise GitHubFailed(error.text)
        found = [data.get(f"node{place}") for place in range(len(ids))]
        return [node if isinstance(node, dict) else {} for node in found]

    def _ask(self, query: str, given: Mapping[str, str]) -> tuple[dict[str, Any], list[_QueryError]]:
        """The data of an answer and the errors in it. gh fails if there is any error, and prints the data all the same.

        GitHubFailed if there are no data.
        """
        words = [word for field, value in {"query": query, **given}.items() for word in ("-f", f"{field}={value}")]
        done = self._run_api("graphql", *words)
        try:
            answer = _parse(done.stdout_tail)
        except GitHubFailed:
            _require(done)
            raise
        data, listed = answer.get("data"), answer.get("errors")
        errors = [_parse_error(one) for one in listed] if isinstance(listed, list) else []
        if not isinstance(data, dict) or not errors:
            _require(done)
        return data if isinstance(data, dict) else {}, errors

    def may_write(self, login: str) -> bool:
        """Whether this person may write to the repository; GitHubFailed if gh cannot tell."""
        if not _LOGIN.fullmatch(login):
            return False
        done = self._run_api(f"repos/{self.name}/collaborators/{login}/permission")
        if done.exit_code != 0 and b"(HTTP 404)" in done.stderr_tail:  # a person who is not a collaborator
            return False
        return _parse(_require(done)).get("permission") in _MAY_WRITE

    def read_text(self, path: str, most: int) -> str:
        """The end of a text below the repository's address, such as a log; GitHubFailed if gh fails."""
        done = self._run_api(f"repos/{self.name}/{path}", output_limit=most)
        return _require(done).decode("utf-8", "replace")

    def _run_api(self, *words: str, output_limit: int = _OUTPUT_BYTES) -> CommandResult:
        host = {"GH_HOST": self.host} if self.host else {}  # the flag takes no port
        try:
            return run_command(
                ("gh", "api", *words),
                cwd="/",
                env={**self.environ, **SILENT, **host},
                timeout_s=_SECONDS,
                output_limit=output_limit,
                below=self.warden,
                wanted=self.wanted,
            )
        except SpawnFailed:
            raise GitHubFailed(NOT_INSTALLED) from None
        except WardenLost as error:
            raise GitHubFailed(str(error)) from None


def _parse_error(error: object) -> _QueryError:
    values = error if isinstance(error, dict) else {}
    path, text = values.get("path"), values.get("message")
    return _QueryError(
        path=tuple(str(one) for one in path) if isinstance(path, list) else (),
        kind=str(values.get("type")),
        text=format_line(text if isinstance(text, str) else "GitHub reports an error", _MOST_REASON),
    )


def _require(done: CommandResult) -> bytes:
    if done.exit_code != 0:
        text = format_line(done.stderr_tail.decode(errors="replace"), _MOST_REASON)
        raise GitHubFailed("gh took too long" if done.timed_out else text or f"gh ended with {done.exit_code}")
    return done.stdout_tail


def _parse(text: bytes) -> dict[str, Any]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        raise GitHubFailed("gh printed something that is not JSON") from None
    return values if isinstance(values, dict) else {}


def find_github_repository(address: str) -> str:
    """HOST/OWNER/NAME of a remote's address in normal form; empty if it cannot be one."""
    parts = own_remotes.find_repository(address).split("/")
    return "/".join(parts) if len(parts) == len(("host", "owner", "name")) and all(parts) else ""
