"""Compares what a call changes with the remotes of its workspace's repository. Pure: it does not run git.

The remotes are read when the run starts, and frozen: an agent that adds or changes one does not make it the user's own.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Any

from jackline.policy import git_push_args
from jackline.policy.agreements import SIDE_BRANCH, UNKNOWN_BRANCH
from jackline.policy.git_push_args import HEADS, TAGS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?P<rest>.*)", re.DOTALL
)
_SCP = re.compile(r"(?P<authority>[^/:\s]+):(?P<path>(?!//).+)", re.DOTALL)
_PORTS = {"http": "80", "https": "443", "ssh": "22", "git": "9418"}
# Where the remote has such a ref, git takes `heads/main` for its branch `main`.
_SIDE_REF = re.compile(rf"{HEADS}(?!(?:refs|heads|tags|remotes)/)(?!.*(?:\.\.|/$|[:\\]))\S+")
_FORGES = frozenset({"gh", "glab"})
_FORGE_NOUNS = frozenset({"pr", "issue", "release", "workflow", "run", "mr", "label", "ci"})
_API = re.compile(r"/?repos/(?:\{owner\}/\{repo\}|(?P<repo>[^/]+/[^/]+))(?:/.*)?")
_WEB = frozenset({"curl", "wget", "http"})
# Options that send the request elsewhere, or to more places than the words name.
_ELSEWHERE = (
    "-x", "--proxy", "--preproxy", "--socks", "--connect-to", "--resolve", "-K", "--config", "--url", "--next", "-:",
    "--unix-socket", "--abstract-unix-socket", "--doh-url", "-i", "--input-file", "--base", "-e", "--execute",
    "--interface",
)  # fmt: skip
_NO_COMMIT = "refs:"  # instead of the commit of a ref that does not exist: the digest of all refs
_CREATE_BRANCH = frozenset({("checkout", "-b"), ("switch", "-c"), ("switch", "--create")})
_NO_TAGS = frozenset({"checkout", "switch", "add", "commit", "push", "status", "diff", "log", "rm", "mv"})
# Options of a push whose full names are known to change neither the place nor the program there. git also takes the
# beginning of a name, so that `--rep` is another repository.
_PUSH_OPTIONS = frozenset(
    {
        "--all", "--branches", "--tags", "--follow-tags", "--no-follow-tags", "--set-upstream", "--verbose", "--quiet",
        "--progress", "--no-progress", "--porcelain", "--atomic", "--no-atomic", "--thin", "--no-thin", "--verify",
        "--no-verify", "--signed", "--no-signed", "--push-option", "--ipv4", "--ipv6", "--force-with-lease",
        "--force-if-includes", "--delete", "--no-recurse-submodules", "--dry-run", "--prune", "--mirror", "--repo",
    }
)  # fmt: skip


def normalize_address(address: str, folder: str = "") -> str:
    """The normal form of a remote's address: no credentials, no default port, no `.git`. Empty if it has none."""
    text = address.strip()
    if not text or not text.isprintable():
        return ""
    url = _URL.fullmatch(text)
    if "::" in text.partition("/")[0]:  # a remote helper: a program
        return ""
    if url is None and (scp := _SCP.fullmatch(text)) is not None:
        return _join("ssh", scp["authority"], scp["path"])
    if url is None:
        return _trim_path(_resolve(text, folder))
    scheme = url["scheme"].lower()
    if scheme == "file":
        return _trim_path(url["path"])
    return "" if url["rest"] else _join(scheme, url["authority"], url["path"])


def _join(scheme: str, authority: str, path: str) -> str:
    user, _, place = authority.rpartition("@")
    host, colon, port = place.partition(":") if not place.startswith("[") else (place, "", "")
    kept = f":{port}" if colon and port != _PORTS.get(scheme) else ""
    who = f"{user.partition(':')[0]}@" if user and scheme == "ssh" else ""  # elsewhere it may be a token
    return f"{scheme}://{who}{host.lower()}{kept}/{_trim_path(path).lstrip('/')}"


def _trim_path(path: str) -> str:
    return path.rstrip("/").removesuffix(".git").rstrip("/")


def _resolve(path: str, folder: str) -> str:
    return posixpath.normpath(posixpath.join(folder, path)) if folder else path


def find_repository(address: str) -> str:
    """The host and path of an address, such as `github.com/me/tool`; empty for a folder of this machine."""
    url = _URL.fullmatch(address)
    return "" if url is None else f"{url['authority'].rpartition('@')[2]}{url['path']}"


def list_hosts(own: Iterable[str]) -> set[str]:
    """The hosts of these addresses."""
    return {host for one in own if (host := find_repository(one).partition("/")[0])}


def list_push_targets(
    target: str, fields: Mapping[str, Any], known: Mapping[str, str], own: Collection[str]
) -> tuple[tuple[str, ...], bool]:
    """What a push would change: one target for each ref, and whether it only reaches own remotes.

    A remote whose address is not the user's own is named by its address, whatever its name is. Unknown: no target.
    """
    push = git_push_args.parse_push_fields(fields)
    addresses, refs = known.get("git.urls", "").split(), known.get("git.refs", "").split()
    if push is None or not addresses or not _has_known_options(fields):
        return (), False
    is_own = all(address in own for address in addresses)
    if not refs or push.several or known.get("git.several"):
        return (), is_own
    name = target.partition(":")[2].removesuffix(f"/{' '.join(refs)}")
    places = [name] if is_own and not {"/", ":"} & set(name) else addresses
    return tuple(f"git:{place}/{ref}" for place in places for ref in refs), is_own


def name_new_branches(known: Mapping[str, str], commands: Iterable[str]) -> Mapping[str, str]:
    """Name a pushed ref that does not exist yet as the branch that another command of the call creates.

    Before the call runs, such a name could also be a tag, so the call may contain nothing that makes one.
    """
    refs, commits = known.get("git.refs", "").split(), known.get("git.commit", "").split()
    git = [words.split()[1:] for words in commands if words.startswith("git ")]
    is_unresolved = bool(refs) and all(one.startswith(_NO_COMMIT) for one in commits)
    if not is_unresolved or not all(_NO_TAGS.issuperset(words[:1]) for words in git):
        return known
    created = {name for words in git if tuple(words[:2]) in _CREATE_BRANCH for name in words[2:3]}
    named = [f"{HEADS}{name}" if (name := one.removeprefix(TAGS)) in created else one for one in refs]
    return {**known, "git.refs": " ".join(named)}


def _has_known_options(fields: Mapping[str, Any]) -> bool:
    words = git_push_args.skip_git_options([str(word) for word in fields.get("arguments", ())])
    return all(word.partition("=")[0] in _PUSH_OPTIONS for word in words if word.startswith("--") and word != "--")


def find_branch_kind(fields: Mapping[str, Any], known: Mapping[str, str], own: Mapping[str, str]) -> str:
    """Whether a push to own remotes only changes branches other than the default one of each."""
    refs = known.get("git.refs", "").split()
    if not refs or not all(_SIDE_REF.fullmatch(ref) for ref in refs):
        return ""
    # With an option of the server, such as `merge_request.merge_when_pipeline_succeeds`, it may change others.
    if {"-o", "--push-option"} & fields.keys():
        return ""
    defaults = {own.get(address, "") for address in known.get("git.urls", "").split()}
    if {ref.removeprefix(HEADS) for ref in refs} & defaults:
        return ""
    return UNKNOWN_BRANCH if "" in defaults or not defaults else SIDE_BRANCH


def is_own_place(fields: Mapping[str, Any], known: Mapping[str, str], own: Collection[str], pattern: str) -> bool:
    """Whether a call of a forge's program or a web client only changes own repositories, or asks their hosts.

    `pattern` is the target of its rule.
    """
    program = fields.get("program")
    words = [word for word in str(fields.get("words", "")).split("\n") if word]
    if program in _FORGES:
        return _is_own_forge_call(fields, words, known, own, pattern)
    if program not in _WEB or not words or any(_leads_elsewhere(str(one)) for one in fields.get("arguments", ())):
        return False
    hosts = list_hosts(own)
    urls = [_URL.fullmatch(word) for word in words]
    return all(url is not None and url["scheme"].lower() in {"http", "https"} for url in urls) and all(
        url is not None and url["authority"].lower() in hosts for url in urls
    )


def find_single_url(fields: Mapping[str, Any]) -> str:
    """The only URL that a web client would ask, as it is written; empty if there may be others."""
    words = [word for word in str(fields.get("words", "")).split("\n") if word]
    leads_on = any(_leads_elsewhere(str(one)) for one in fields.get("arguments", ()))
    return words[0] if len(words) == 1 and not leads_on and not set("{}[]") & set(words[0]) else ""


def find_api_path(fields: Mapping[str, Any]) -> str:
    """The path that `gh api` would ask; empty if another word could be one."""
    paths = [word for word in str(fields.get("words", "")).split("\n") if "/" in word]
    return paths[0] if len(paths) == 1 else ""


def is_own_project(target: str, own: Iterable[str]) -> bool:
    """Whether a target such as `github:me/tool` is one of these repositories, on a host of this name."""
    kind, _, path = target.partition(":")
    repositories = [find_repository(address).partition("/") for address in own]
    return bool(path) and any(host.startswith(f"{kind}.") and path == one for host, _, one in repositories)


def _leads_elsewhere(word: str) -> bool:
    is_joined = word.startswith("-") and not word.startswith("--") and bool({"x", "K", ":"} & set(word))
    return is_joined or word.startswith(_ELSEWHERE)


def _is_own_forge_call(
    fields: Mapping[str, Any], words: list[str], known: Mapping[str, str], own: Collection[str], pattern: str
) -> bool:
    repositories = {one for address in own if (one := find_repository(address))}
    # Without a repository, the program takes one of the remotes, or the one that a setting names.
    remotes = known.get("git.remotes", "").split()
    if not repositories or not remotes or not all(one in own for one in remotes):
        return False
    default = known.get("git.gh", "")
    if default and not all(one == "base" or _is_own_repository(one, repositories) for one in default.split()):
        return False
    arguments = [str(one) for one in fields.get("arguments", ())]
    if any(one.startswith(("--hostname", "--target-project")) for one in arguments):
        return False
    if arguments[:1] == ["api"]:
        path = _API.fullmatch(find_api_path(fields))
        return path is not None and (path["repo"] is None or _is_own_repository(path["repo"], repositories))
    if "{--repo|-R|}" not in pattern or not _FORGE_NOUNS.intersection(arguments[:1]) or "transfer" in arguments:
        return False
    named = [one for flag in ("--repo", "-R") for one in str(fields.get(flag, "")).split("\n") if one]
    urls = [word for word in words if "://" in word]
    return all(_is_own_repository(one, repositories) for one in named) and all(
        any(find_repository(url.partition("?")[0].partition("#")[0]).startswith(f"{one}/") for one in repositories)
        for url in urls
    )


def _is_own_repository(name: str, repositories: Collection[str]) -> bool:
    """Whether `[HOST/]OWNER/NAME` or a URL is one of these; without a host, on any of their hosts."""
    if "://" in name or name.startswith("git@"):
        return find_repository(normalize_address(name)) in repositories
    if name in repositories:
        return True
    paths = [one.partition("/")[2] for one in repositories]
    hosts = {one.partition("/")[0] for one in repositories}
    return name in paths and len(hosts) == 1
