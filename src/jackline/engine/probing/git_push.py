"""Whether a `git push` took place: by what the remote has now, and by git's own record of the push. It only reads.

The remote is asked from outside the repository, so that only the user's settings count: the repository's own, which an
agent may have written, cannot make a probe start a program.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.domain import pushing
from jackline.engine import ingredients, probing
from jackline.engine.probing import words
from jackline.engine.probing.finding import DID_NOT, HAPPENED, Finding, together, unknown
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackline.domain.pushing import Push
    from jackline.domain.shell import Command
    from jackline.engine.changes import Git
    from jackline.engine.probing.scene import Scene

_OUTSIDE = "/"
_PROTOCOLS = "file:git:http:https:ssh"
_SAID = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT")
# Beside a push these move no branch: the commit that was written down before the call is the one that it pushed.
_STEADY = frozenset(
    {"cd", "echo", "printf", "true", ":", "cat", "head", "tail", "grep", "sleep", "date", "pwd", "ls", "test", "[",
     "gh", "set", "export", "wc", "sort", "sed", "awk", "exit", "false"}
)  # fmt: skip
_STEADY_GIT = frozenset(
    {"push", "status", "log", "diff", "show", "fetch", "rev-parse", "remote", "ls-remote", "config"}
)


class _Wanted(NamedTuple):
    """A ref that the push was to move, and where to."""

    name: str
    commit: str


def look(scene: Scene) -> Finding:
    """Compare what was to be pushed with what the remote has."""
    found = words.commands(scene)
    command = words.the_one(found, _is_push)
    if found is None or command is None:
        return unknown("the call is not one push that can be read")
    typed = [word.text for word in command.words[1:]]
    there = pushing.folder_of_git(typed)
    if there is None or not all(word.exact for word in command.words) or _has_settings(command):
        return unknown("only the shell, or git's own options, knew what was pushed")
    push = pushing.push_of(pushing.arguments_of_git(typed)[1:])
    git = scene.git._replace(workspace=os.path.join(scene.folder, there))
    before = _wanted(scene.told)
    if not before or not _fits(push, before, scene.told):
        return unknown("it was not written down which commit was to be pushed where")
    if all(_is_steady(one) for one in found):
        return _compared(scene, git, push, before)
    return _after_other_commands(scene, git, typed, before)


def _is_push(command: Command) -> bool:
    return _subcommand(command) == "push"


def _subcommand(command: Command) -> str:
    return next((word.text for word in words.git_arguments(command) or ()), "")


def _has_settings(command: Command) -> bool:
    """Whether git was given settings, or another repository, by variables of the command's own."""
    return any(word.text.startswith("GIT_") for word in command.assignments)


def _is_steady(command: Command) -> bool:
    if not command.words:  # it only opens files
        return True
    return _subcommand(command) in _STEADY_GIT if words.program(command) == "git" else words.program(command) in _STEADY


def _wanted(told: Mapping[str, str]) -> tuple[_Wanted, ...]:
    """What was written down, if it is all of it: a push of more refs than have a name cannot be compared."""
    names, commits = told.get("git.refs", "").split(), told.get("git.commit", "").split()
    whole = len(names) == len(commits)
    return tuple(map(_Wanted, names, commits)) if whole else ()


def _fits(push: Push, before: Sequence[_Wanted], told: Mapping[str, str]) -> bool:
    """Whether what was written down is about this push: of several commands in one call it may be another's."""
    if push.several or push.remote not in {"", told.get("git.remote", "")}:
        return False
    if not push.refspecs:
        return True
    named = [one.destination or one.source for one in push.refspecs]
    names = [told.get("git.branch", "") if one in {"HEAD", "@"} else one for one in named]
    return len(names) == len(before) and all(
        one.name == name or one.name.endswith(f"/{name}") for one, name in zip(before, names, strict=True)
    )


def _after_other_commands(scene: Scene, git: Git, typed: list[str], before: Sequence[_Wanted]) -> Finding:
    """A push behind a `git commit`: what it pushed was made by the call itself, so what is there now is looked for."""
    fields = {"program": "git", "arguments": typed}
    wants = probing.wants(f"{probing.PREFIX}git-push")
    now = _wanted(ingredients.read(wants, fields, scene.folder, scene.workspace, scene.env, scene.warden))
    if not now or now == tuple(before):
        return unknown("nobody knows how far the commands beside the push came")
    finding = _compared(scene, git, pushing.push_of(pushing.arguments_of_git(typed)[1:]), now)
    if finding.verdict == HAPPENED:
        return finding
    return unknown(f"nobody knows how far the commands beside the push came; {finding.evidence}")


def _compared(scene: Scene, git: Git, push: Push, wanted: Sequence[_Wanted]) -> Finding:
    listed = _listed(scene, _address(scene, git), wanted)
    return together([_one(scene, git, push, one, listed) for one in wanted])


def _address(scene: Scene, git: Git) -> str:
    """The remote's address as it was; as it is now if that differs only by a password, which is never written down."""
    recorded = scene.told.get("git.url", "")
    now = ingredients.address_of(git, scene.told.get("git.remote", ""))
    address = now if pushing.without_password(now) == recorded else recorded
    if "://" in address or address.startswith("/") or _is_remote_path(address):
        return address
    top = (git.ask("rev-parse", "--show-toplevel") or git.workspace).rstrip("\n")
    return f"{top}/{address}" if address else ""


def _is_remote_path(address: str) -> bool:
    """`host:path`, as ssh has it: a colon before the first slash."""
    return ":" in address.partition("/")[0]


def _listed(scene: Scene, address: str, wanted: Sequence[_Wanted]) -> dict[str, str] | str:
    """The remote's refs by name, tags by the commit that they stand for; or why the remote cannot be asked."""
    if not address:
        return "nobody knows where the remote is"
    patterns = [name for one in wanted for name in (one.name, f"{one.name}^{{}}")]
    scene = scene._replace(env={name: value for name, value in scene.env.items() if name not in _SAID})
    result = scene.ask(
        ["git", "ls-remote", "--quiet", "--", address, *patterns],
        folder=_OUTSIDE,
        GIT_ALLOW_PROTOCOL=_PROTOCOLS,
        **_ssh(scene),
    )
    if isinstance(result, str):
        return result.replace(address, pushing.without_password(address))
    rows = (line.partition("\t") for line in result.stdout_tail.decode("utf-8", "replace").splitlines())
    # A tag's commit follows the tag itself.
    return {name.removesuffix("^{}"): commit for commit, _, name in rows}


def _ssh(scene: Scene) -> dict[str, str]:
    """The user's own ssh, told never to ask."""
    if "GIT_SSH" in scene.env and "GIT_SSH_COMMAND" not in scene.env:
        return {}
    own = scene.env.get("GIT_SSH_COMMAND") or scene.git._replace(workspace=_OUTSIDE).ask("config", "core.sshCommand")
    return {"GIT_SSH_COMMAND": f"{(own or 'ssh').strip()} -oBatchMode=yes"}


def _one(scene: Scene, git: Git, push: Push, wanted: _Wanted, listed: Mapping[str, str] | str) -> Finding:
    if isinstance(listed, str):
        recorded = _recorded(scene, git, wanted)
        return recorded or unknown(f"the remote cannot be asked: {listed}")
    there = listed.get(wanted.name, "")
    if wanted.commit == ingredients.GONE:
        said = f"{wanted.name} is {f'still at {there}' if there else 'not there'}"
        return Finding(DID_NOT if there else HAPPENED, said)
    if there == wanted.commit:
        return Finding(HAPPENED, f"{wanted.name} of the remote is at {there}", there)
    finding = _moved(git, push, wanted, there) if there else Finding(DID_NOT, f"the remote has no {wanted.name}")
    return finding if finding.verdict == HAPPENED else _recorded(scene, git, wanted) or finding


def _moved(git: Git, push: Push, wanted: _Wanted, there: str) -> Finding:
    """The remote's ref is at another commit: it went on from ours, or never came to it."""
    said = f"{wanted.name} of the remote is at {there}"
    if git.ask("cat-file", "-e", f"{there}^{{commit}}") is None:
        return unknown(f"{said}, which this repository does not know")
    base = git.ask("merge-base", "--all", wanted.commit, there)
    holds = base is not None and wanted.commit in base.split()
    if holds and push.force:  # a push that takes commits back is contained in what it takes back
        return unknown(f"{said}, which holds {wanted.commit}; a forced push may not have come there yet")
    if holds:
        return Finding(HAPPENED, f"{said}, which holds {wanted.commit}", wanted.commit)
    if git.ask("cat-file", "-e", f"{wanted.commit}^{{commit}}") is None:
        return unknown(f"{said}; this repository no longer has {wanted.commit}")
    return Finding(DID_NOT, f"{said}, which does not hold {wanted.commit}")


def _recorded(scene: Scene, git: Git, wanted: _Wanted) -> Finding | None:
    """What git wrote down when the remote said that its branch was moved: that outlives the branch there."""
    branch = wanted.name.removeprefix(pushing.HEADS)
    ref = f"refs/remotes/{scene.told.get('git.remote', '')}/{branch}"
    if branch == wanted.name or wanted.commit == ingredients.GONE:
        return None
    listed = git.ask("log", "--walk-reflogs", "--date=unix", "--format=%H %gd %gs", "--no-patch", ref, "--")
    since = scene.call.prepared_at // 1000  # git knows whole seconds: one of the same second may have been before
    for line in (listed or "").splitlines():
        commit, _, rest = line.partition(" ")
        place, _, said = rest.partition(" ")
        at = place.rpartition("@{")[2].rstrip("}")
        if commit == wanted.commit and said == "update by push" and at.isdigit() and int(at) > since:
            return Finding(HAPPENED, f"git wrote down that {wanted.name} of the remote was moved to {commit}", commit)
    return None
