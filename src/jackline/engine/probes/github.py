"""Probe: did `gh pr create` or `gh issue create` happen? Compares with the list of `gh`, under the user's login."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from jackline.engine.probes import shell_commands
from jackline.engine.probes.findings import DID_NOT, HAPPENED, ProbeFinding, build_unknown, parse_json

if TYPE_CHECKING:
    from jackline.engine.probes.findings import ProbeContext
    from jackline.shell.model import Word

_SKEW_MS = 120_000  # two clocks may differ
_MOST = 100
_PULL_REQUEST = "url,number,headRefName,baseRefName,headRefOid,state,createdAt"
_ISSUE = "url,number,title,createdAt"
_WITH_VALUE = frozenset(
    {"--title", "-t", "--body", "-b", "--body-file", "-F", "--base", "-B", "--head", "-H", "--assignee", "-a",
     "--label", "-l", "--milestone", "-m", "--project", "-p", "--reviewer", "-r", "--template", "-T", "--repo", "-R",
     "--recover"}
)  # fmt: skip


class _UnknownValue(Exception):
    """A value that only the shell knew, or that is missing."""


def probe_pull_request(scene: ProbeContext) -> ProbeFinding:
    """Find the pull request of the call's branch."""
    try:
        arguments = _find_arguments(scene, "pr")
        branch = (_find_value(arguments, scene, "head", "-H") or scene.stored.get("git.branch", "")).rpartition(":")[2]
        base = _find_value(arguments, scene, "base", "-B")
        repository = _find_repository(arguments, scene)
    except _UnknownValue as error:
        return build_unknown(str(error))
    if not branch:
        return build_unknown("the branch of the pull request is unknown")
    listed = _list_items(scene, "pr", ["--head", branch, "--json", _PULL_REQUEST, *repository])
    if isinstance(listed, str):
        return build_unknown(listed)
    of_branch = [one for one in listed if one.get("headRefName") == branch and base in {"", one.get("baseRefName")}]
    return _compare_pull_requests(scene, branch, of_branch)


def _compare_pull_requests(scene: ProbeContext, branch: str, listed: list[dict[str, Any]]) -> ProbeFinding:
    commit = scene.stored.get("git.commit", "")
    for one in listed:
        is_ours = one.get("state") == "OPEN" and one.get("headRefOid") == commit != ""
        if _is_newer_than_call(scene, one) or is_ours:
            return _build_happened(one)
    older = next((one for one in listed if one.get("state") == "OPEN"), None)
    if older is not None:  # of another fork, or older: GitHub may or may not refuse a second one
        return build_unknown(f"an older pull request of {branch} is open: {older.get('url')}")
    return ProbeFinding(verdict=DID_NOT, evidence=f"no pull request of {branch} was made since the call")


def probe_issue(scene: ProbeContext) -> ProbeFinding:
    """Find an issue with the call's title that was created since."""
    try:
        arguments = _find_arguments(scene, "issue")
        title = _find_value(arguments, scene, "title", "-t").strip()
        repository = _find_repository(arguments, scene)
    except _UnknownValue as error:
        return build_unknown(str(error))
    if not title:
        return build_unknown("the call does not contain the title of the issue")
    listed = _list_items(scene, "issue", ["--json", _ISSUE, *repository])
    if isinstance(listed, str):
        return build_unknown(listed)
    since = [one for one in listed if _is_newer_than_call(scene, one)]
    same = next((one for one in since if str(one.get("title", "")).strip() == title), None)
    if same is not None:
        return _build_happened(same)
    if len(since) >= _MOST:
        return build_unknown(f"more than {_MOST} issues were created since the call")
    return ProbeFinding(verdict=DID_NOT, evidence=f"no issue with the title '{title}' was made since the call")


def _find_arguments(scene: ProbeContext, kind: str) -> tuple[Word, ...] | None:
    """The arguments of `gh KIND create`; None for a tool whose input has fields instead."""
    if scene.find_shell_text() is None:
        return None
    command = shell_commands.find_only_command(
        shell_commands.parse_commands(scene), lambda one: shell_commands.has_subcommands(one, "gh", kind, "create")
    )
    command = command or shell_commands.find_only_command(
        shell_commands.parse_commands(scene), lambda one: shell_commands.has_subcommands(one, "gh", kind, "new")
    )
    if command is None:
        raise _UnknownValue(f"the call is not a single `gh {kind} create` that can be parsed")
    if any(word.text.startswith("GH_") for word in command.assignments):
        raise _UnknownValue("the call set its own GH_ variables")
    return command.words[3:]


def _find_value(arguments: tuple[Word, ...] | None, scene: ProbeContext, name: str, short: str) -> str:
    if arguments is None:
        return scene.find_field(name) or ""
    found = shell_commands.find_flag_values(arguments, f"--{name}", short, others=_WITH_VALUE)
    if found and not found[-1].exact:
        raise _UnknownValue(f"only the shell knew the value of --{name}")
    return found[-1].text if found else ""


def _find_repository(arguments: tuple[Word, ...] | None, scene: ProbeContext) -> list[str]:
    if arguments is not None:
        named = _find_value(arguments, scene, "repo", "-R")
    else:
        owner, name = scene.find_field("owner") or "", scene.find_field("repo") or ""
        named = f"{owner}/{name}" if owner and name else name
    return ["--repo", named] if named else []


def _list_items(scene: ProbeContext, kind: str, words_after: list[str]) -> list[dict[str, Any]] | str:
    """List pull requests or issues; or why that failed."""
    result = scene.run_program(["gh", kind, "list", "--state", "all", "--limit", str(_MOST), *words_after])
    if isinstance(result, str):
        return result
    listed = parse_json(result.stdout_tail.decode("utf-8", "replace"))
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        return f"gh {kind} list: invalid output"
    return listed


def _is_newer_than_call(scene: ProbeContext, one: dict[str, Any]) -> bool:
    try:
        made = datetime.fromisoformat(str(one.get("createdAt")))
    except ValueError:
        return False
    return made.timestamp() * 1000 >= scene.call.prepared_at - _SKEW_MS


def _build_happened(one: dict[str, Any]) -> ProbeFinding:
    url = str(one.get("url", ""))
    return ProbeFinding(verdict=HAPPENED, evidence=f"{url} was made at {one.get('createdAt')}", external_id=url)
