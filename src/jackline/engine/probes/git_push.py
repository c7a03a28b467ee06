"""Probe: did a `git push` happen? Compares with the refs of the remote, and with the reflog. It only reads.

The remote is queried from outside the repository, so that only the user's settings apply: those of the repository,
which an agent may have written, cannot make the probe start a program.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.engine import key_inputs, probes
from jackline.engine.probes import shell_commands
from jackline.engine.probes.findings import DID_NOT, HAPPENED, ProbeFinding, build_unknown, combine_findings
from jackline.named import NamedTuple
from jackline.policy import git_push_args

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackline.engine.git import Git
    from jackline.engine.probes.findings import ProbeContext
    from jackline.policy.git_push_args import Push
    from jackline.shell.model import ShellCommand

_OUTSIDE = "/"
_PROTOCOLS = "file:git:http:https:ssh"
_REPOSITORY_VARIABLES = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
)
# Commands that move no branch: beside them, the push is of the commit that was stored before the call.
_STEADY = frozenset(
    {"cd", "echo", "printf", "true", ":", "cat", "head", "tail", "grep", "sleep", "date", "pwd", "ls", "test", "[",
     "gh", "set", "export", "wc", "sort", "sed", "awk", "exit", "false"}
)  # fmt: skip
_STEADY_GIT = frozenset(
    {"push", "status", "log", "diff", "show", "fetch", "rev-parse", "remote", "ls-remote", "config"}
)


class _Wanted(NamedTuple):
    """A ref that the push would move, and its new commit."""

    name: str
    commit: str


def probe_git_push(scene: ProbeContext) -> ProbeFinding:
    """Compare the refs to push with those of the remote."""
    found = shell_commands.parse_commands(scene)
    command = shell_commands.find_only_command(found, lambda one: _find_subcommand(one) == "push")
    if found is None or command is None:
        return build_unknown("the call is not a single push that can be parsed")
    typed = [word.text for word in command.words[1:]]
    there = git_push_args.find_git_folder(typed)
    has_settings = any(word.text.startswith("GIT_") for word in command.assignments)
    if there is None or not all(word.exact for word in command.words) or has_settings:
        return build_unknown("what was pushed depends on the shell or on git options")
    push = git_push_args.parse_push(git_push_args.skip_git_options(typed)[1:])
    git = scene.git._replace(workspace=os.path.join(scene.folder, there))
    before = _parse_wanted(scene.stored)
    if not before or not _matches_push(push, before, scene.stored):
        return build_unknown("the commit and the ref to push were not stored")
    if all(_is_steady(one) for one in found):
        return _compare_with_remote(scene, git, push, before)
    return _compare_after_commands(scene, git, typed, before)


def _find_subcommand(command: ShellCommand) -> str:
    return next((word.text for word in shell_commands.find_git_arguments(command) or ()), "")


def _is_steady(command: ShellCommand) -> bool:
    if not command.words:  # only redirections
        return True
    return (
        _find_subcommand(command) in _STEADY_GIT
        if shell_commands.find_program(command) == "git"
        else shell_commands.find_program(command) in _STEADY
    )


def _parse_wanted(stored: Mapping[str, str]) -> tuple[_Wanted, ...]:
    """The stored refs and commits; empty if they are incomplete and cannot be compared."""
    names, commits = stored.get("git.refs", "").split(), stored.get("git.commit", "").split()
    whole = len(names) == len(commits)
    return tuple(map(_Wanted, names, commits)) if whole else ()


def _matches_push(push: Push, before: Sequence[_Wanted], stored: Mapping[str, str]) -> bool:
    """Whether the stored refs belong to this push, not to another command of the call."""
    if push.several or push.remote not in {"", stored.get("git.remote", "")}:
        return False
    if not push.refspecs:
        return True
    named = [one.destination or one.source for one in push.refspecs]
    names = [stored.get("git.branch", "") if one in {"HEAD", "@"} else one for one in named]
    return len(names) == len(before) and all(
        one.name == name or one.name.endswith(f"/{name}") for one, name in zip(before, names, strict=True)
    )


def _compare_after_commands(scene: ProbeContext, git: Git, typed: list[str], before: Sequence[_Wanted]) -> ProbeFinding:
    """Compare a push after a `git commit` in the same call: it pushed the current commit, if the call got that far."""
    fields = {"program": "git", "arguments": typed}
    wants = probes.find_wanted_inputs(f"{probes.PREFIX}git-push")
    now = _parse_wanted(
        key_inputs.read_key_inputs(wants, fields, scene.folder, scene.workspace, scene.env, scene.warden)
    )
    if not now or now == tuple(before):
        return build_unknown("it is unknown how far the other commands of the call got")
    finding = _compare_with_remote(scene, git, git_push_args.parse_push(git_push_args.skip_git_options(typed)[1:]), now)
    if finding.verdict == HAPPENED:
        return finding
    return build_unknown(f"it is unknown how far the other commands of the call got; {finding.evidence}")


def _compare_with_remote(scene: ProbeContext, git: Git, push: Push, wanted: Sequence[_Wanted]) -> ProbeFinding:
    listed = _list_remote_refs(scene, _find_address(scene, git), wanted)
    return combine_findings([_compare_ref(scene, git, push, one, listed) for one in wanted])


def _find_address(scene: ProbeContext, git: Git) -> str:
    """The stored address of the remote; the current one if it differs only by a password, which is never stored."""
    recorded = scene.stored.get("git.url", "")
    now = key_inputs.read_push_address(git, scene.stored.get("git.remote", ""))
    address = now if git_push_args.remove_credentials(now) == recorded else recorded
    if (
        "://" in address or address.startswith("/") or ":" in address.partition("/")[0]
    ):  # the last one is `host:path` of ssh
        return address
    top = git.find_top() or git.workspace
    return f"{top}/{address}" if address else ""


def _list_remote_refs(scene: ProbeContext, address: str, wanted: Sequence[_Wanted]) -> dict[str, str] | str:
    """The refs of the remote by name, tags by their commit; or why the remote cannot be queried."""
    if not address:
        return "the address of the remote is unknown"
    patterns = [name for one in wanted for name in (one.name, f"{one.name}^{{}}")]
    scene = scene._replace(env={name: value for name, value in scene.env.items() if name not in _REPOSITORY_VARIABLES})
    result = scene.run_program(
        ["git", "ls-remote", "--quiet", "--", address, *patterns],
        folder=_OUTSIDE,
        GIT_ALLOW_PROTOCOL=_PROTOCOLS,
        **_build_ssh_env(scene),
    )
    if isinstance(result, str):
        return result.replace(address, git_push_args.remove_credentials(address))
    rows = (line.partition("\t") for line in result.stdout_tail.decode("utf-8", "replace").splitlines())
    # A tag's commit follows the tag itself.
    return {name.removesuffix("^{}"): commit for commit, _, name in rows}


def _build_ssh_env(scene: ProbeContext) -> dict[str, str]:
    """The user's ssh command, which must never prompt."""
    if "GIT_SSH" in scene.env and "GIT_SSH_COMMAND" not in scene.env:
        return {}
    own = scene.env.get("GIT_SSH_COMMAND") or scene.git._replace(workspace=_OUTSIDE).run("config", "core.sshCommand")
    return {"GIT_SSH_COMMAND": f"{(own or 'ssh').strip()} -oBatchMode=yes"}


def _compare_ref(
    scene: ProbeContext, git: Git, push: Push, wanted: _Wanted, listed: Mapping[str, str] | str
) -> ProbeFinding:
    if isinstance(listed, str):
        return _search_reflog(scene, git, wanted) or build_unknown(f"the remote cannot be queried: {listed}")
    there = listed.get(wanted.name, "")
    if wanted.commit == key_inputs.GONE:
        evidence = f"{wanted.name} is {f'still at {there}' if there else 'not there'}"
        return ProbeFinding(verdict=DID_NOT if there else HAPPENED, evidence=evidence)
    if there == wanted.commit:
        return ProbeFinding(verdict=HAPPENED, evidence=f"{wanted.name} of the remote is at {there}", external_id=there)
    finding = (
        _compare_moved_ref(git, push, wanted, there)
        if there
        else ProbeFinding(verdict=DID_NOT, evidence=f"the remote has no {wanted.name}")
    )
    return finding if finding.verdict == HAPPENED else _search_reflog(scene, git, wanted) or finding


def _compare_moved_ref(git: Git, push: Push, wanted: _Wanted, there: str) -> ProbeFinding:
    """Compare a remote ref at another commit: it may contain ours, or have never been there."""
    evidence = f"{wanted.name} of the remote is at {there}"
    if git.run("cat-file", "-e", f"{there}^{{commit}}") is None:
        return build_unknown(f"{evidence}, which this repository does not know")
    base = git.run("merge-base", "--all", wanted.commit, there)
    contained = base is not None and wanted.commit in base.split()
    if contained and push.force:  # a forced push to an older commit is contained in the newer one
        return build_unknown(f"{evidence}, which contains {wanted.commit}; a forced push may not have happened yet")
    if contained:
        return ProbeFinding(
            verdict=HAPPENED, evidence=f"{evidence}, which contains {wanted.commit}", external_id=wanted.commit
        )
    if git.run("cat-file", "-e", f"{wanted.commit}^{{commit}}") is None:
        return build_unknown(f"{evidence}; this repository no longer has {wanted.commit}")
    return ProbeFinding(verdict=DID_NOT, evidence=f"{evidence}, which does not contain {wanted.commit}")


def _search_reflog(scene: ProbeContext, git: Git, wanted: _Wanted) -> ProbeFinding | None:
    """Look for the push in the reflog of the remote-tracking branch, which survives the branch on the remote."""
    branch = wanted.name.removeprefix(git_push_args.HEADS)
    ref = f"refs/remotes/{scene.stored.get('git.remote', '')}/{branch}"
    if branch == wanted.name or wanted.commit == key_inputs.GONE:
        return None
    listed = git.run("log", "--walk-reflogs", "--date=unix", "--format=%H %gd %gs", "--no-patch", ref, "--")
    since = scene.call.prepared_at // 1000  # git stores whole seconds: an entry of the same second may be older
    for line in (listed or "").splitlines():
        commit, _, rest = line.partition(" ")
        selector, _, message = rest.partition(" ")
        at = selector.rpartition("@{")[2].rstrip("}")
        if commit == wanted.commit and message == "update by push" and at.isdigit() and int(at) > since:
            return ProbeFinding(
                verdict=HAPPENED,
                evidence=f"the reflog records a push of {commit} to {wanted.name} of the remote",
                external_id=commit,
            )
    return None
