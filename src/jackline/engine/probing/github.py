"""Whether `gh pr create` or `gh issue create` took place: by what `gh` lists now. It asks with the user's own login."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from jackline.engine.probing import words
from jackline.engine.probing.finding import DID_NOT, HAPPENED, Finding, unknown
from jackline.engine.probing.scene import parsed

if TYPE_CHECKING:
    from jackline.domain.shell import Word
    from jackline.engine.probing.scene import Scene

_SKEW_MS = 120_000  # two clocks need not agree
_MOST = 100
_PULL_REQUEST = "url,number,headRefName,baseRefName,headRefOid,state,createdAt"
_ISSUE = "url,number,title,createdAt"
_WITH_VALUE = frozenset(
    {"--title", "-t", "--body", "-b", "--body-file", "-F", "--base", "-B", "--head", "-H", "--assignee", "-a",
     "--label", "-l", "--milestone", "-m", "--project", "-p", "--reviewer", "-r", "--template", "-T", "--repo", "-R",
     "--recover"}
)  # fmt: skip


class _Unsaid(Exception):
    """A value that only the shell knew, or that cannot be told."""


def look_for_pull_request(scene: Scene) -> Finding:
    """The pull request of the call's branch."""
    try:
        asked = _asked(scene, "pr")
        branch = (_value(asked, scene, "head", "-H") or scene.told.get("git.branch", "")).rpartition(":")[2]
        base = _value(asked, scene, "base", "-B")
        repository = _repository(asked, scene)
    except _Unsaid as error:
        return unknown(str(error))
    if not branch:
        return unknown("nobody knows from which branch the pull request was to be")
    listed = _listed(scene, "pr", ["--head", branch, "--json", _PULL_REQUEST, *repository])
    if isinstance(listed, str):
        return unknown(listed)
    of_branch = [one for one in listed if one.get("headRefName") == branch and base in {"", one.get("baseRefName")}]
    return _pull_request(scene, branch, of_branch)


def _pull_request(scene: Scene, branch: str, listed: list[dict[str, Any]]) -> Finding:
    commit = scene.told.get("git.commit", "")
    for one in listed:
        is_ours = one.get("state") == "OPEN" and one.get("headRefOid") == commit != ""
        if _is_since(scene, one) or is_ours:
            return _there(one)
    older = next((one for one in listed if one.get("state") == "OPEN"), None)
    if older is not None:  # of another fork, or of an earlier day: GitHub would refuse a second one, or not
        return unknown(f"an older pull request of {branch} is open: {older.get('url')}")
    return Finding(DID_NOT, f"no pull request of {branch} was made since the call")


def look_for_issue(scene: Scene) -> Finding:
    """An issue with the call's title that was made since."""
    try:
        asked = _asked(scene, "issue")
        title = _value(asked, scene, "title", "-t").strip()
        repository = _repository(asked, scene)
    except _Unsaid as error:
        return unknown(str(error))
    if not title:
        return unknown("the call does not tell the title of the issue")
    listed = _listed(scene, "issue", ["--json", _ISSUE, *repository])
    if isinstance(listed, str):
        return unknown(listed)
    since = [one for one in listed if _is_since(scene, one)]
    same = next((one for one in since if str(one.get("title", "")).strip() == title), None)
    if same is not None:
        return _there(same)
    if len(since) >= _MOST:
        return unknown(f"more than {_MOST} issues were made since the call")
    return Finding(DID_NOT, f"no issue with the title '{title}' was made since the call")


def _asked(scene: Scene, kind: str) -> tuple[Word, ...] | None:
    """The words after `gh KIND create`; None for a tool whose input has fields instead."""
    if scene.shell_text() is None:
        return None
    command = words.the_one(words.commands(scene), lambda one: words.is_of(one, "gh", kind, "create"))
    command = command or words.the_one(words.commands(scene), lambda one: words.is_of(one, "gh", kind, "new"))
    if command is None:
        raise _Unsaid(f"the call is not one `gh {kind} create` that can be read")
    if any(word.text.startswith("GH_") for word in command.assignments):
        raise _Unsaid("the call had an environment of its own")
    return command.words[3:]


def _value(asked: tuple[Word, ...] | None, scene: Scene, name: str, short: str) -> str:
    if asked is None:
        return scene.field(name) or ""
    found = words.values(asked, f"--{name}", short, others=_WITH_VALUE)
    if found and not found[-1].exact:
        raise _Unsaid(f"only the shell knew the value of --{name}")
    return found[-1].text if found else ""


def _repository(asked: tuple[Word, ...] | None, scene: Scene) -> list[str]:
    if asked is not None:
        named = _value(asked, scene, "repo", "-R")
    else:
        owner, name = scene.field("owner") or "", scene.field("repo") or ""
        named = f"{owner}/{name}" if owner and name else name
    return ["--repo", named] if named else []


def _listed(scene: Scene, kind: str, words_after: list[str]) -> list[dict[str, Any]] | str:
    """What gh lists, or why it cannot be asked."""
    result = scene.ask(["gh", kind, "list", "--state", "all", "--limit", str(_MOST), *words_after])
    if isinstance(result, str):
        return result
    listed = parsed(result.stdout_tail.decode("utf-8", "replace"))
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        return f"gh {kind} list: its answer cannot be read"
    return listed


def _is_since(scene: Scene, one: dict[str, Any]) -> bool:
    try:
        made = datetime.fromisoformat(str(one.get("createdAt")))
    except ValueError:
        return False
    return made.timestamp() * 1000 >= scene.call.prepared_at - _SKEW_MS


def _there(one: dict[str, Any]) -> Finding:
    url = str(one.get("url", ""))
    return Finding(HAPPENED, f"{url} was made at {one.get('createdAt')}", url)
