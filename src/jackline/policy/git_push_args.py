"""Determines what a `git push` would do, from its arguments and the git configuration. Pure: it does not run git."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Any

from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

HEADS = "refs/heads/"
TAGS = "refs/tags/"
_WITH_VALUE = frozenset({"-o", "--push-option", "--receive-pack", "--exec", "--recurse-submodules", "--repo"})
_GIT_WITH_VALUE = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"})
_GIT_PLAIN = frozenset({"--no-pager", "-P", "-p", "--paginate", "--no-optional-locks", "--no-replace-objects"})
_SEVERAL = frozenset({"--all", "--branches", "--mirror", "--tags", "--follow-tags", "--prune"})
_FORCE = frozenset({"-f", "--force", "--force-with-lease", "--force-if-includes", "--mirror"})
_DELETE = frozenset({"-d", "--delete"})
_USER = re.compile(r"^(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?P<user>[^/?#\s]*)@")


class Refspec(NamedTuple):
    """One `source:destination` of a push. An empty source deletes; an empty destination has the name of the source."""

    source: str
    destination: str = ""
    force: bool = False


class Push(NamedTuple):
    """The parsed arguments of a push."""

    remote: str = ""
    refspecs: tuple[Refspec, ...] = ()
    several: bool = False  # pushes more refs than it names, such as with --all or --tags
    force: bool = False


class PushSettings(NamedTuple):
    """What a push without arguments does, by the git configuration."""

    remote: str = ""
    upstream: str = ""  # the remote branch; empty if git would refuse or it is unknown
    refspecs: tuple[Refspec, ...] = ()  # from `remote.<name>.push`
    several: bool = False


def parse_push(words: Sequence[str]) -> Push:
    """Parse the arguments after the word `push`."""
    flags, named = _split_flags(words)
    deletes = bool(_DELETE & flags.keys())
    remote, refs = (named[0] if named else flags.get("--repo", "")), _join_tags(named[1:])
    refspecs = tuple(Refspec(source="", destination=ref) if deletes else parse_refspec(ref) for ref in refs)
    force = bool(_FORCE & flags.keys()) or any(one.force for one in refspecs)
    several = bool(_SEVERAL & flags.keys()) or any("*" in ref or ref in {":", "+:"} for ref in refs)
    return Push(remote=remote, refspecs=refspecs, several=several, force=force)


def parse_push_fields(fields: Mapping[str, Any]) -> Push | None:
    """Parse the push in the fields of a call; None if it is another command."""
    words = fields.get("arguments")
    if fields.get("program") != "git" or not isinstance(words, list) or not all(isinstance(one, str) for one in words):
        return None
    arguments = skip_git_options(words)
    return parse_push(arguments[1:]) if arguments[:1] == ["push"] else None


def skip_git_options(words: Sequence[str]) -> list[str]:
    """Return the subcommand and its arguments, without git's global options."""
    place = 0
    while place < len(words) and words[place].startswith("-"):
        place += 2 if words[place] in _GIT_WITH_VALUE else 1
    return list(words[place:])


def find_git_folder(words: Sequence[str]) -> str | None:
    """Return the folder given by `-C`, relative to the start folder; None if other options may change it."""
    own = list(words[: len(words) - len(skip_git_options(words))])
    folder = "."
    while own:
        option = own.pop(0)
        if option == "-C" and own:
            folder = posixpath.join(folder, own.pop(0))
        elif option not in _GIT_PLAIN:
            return None
    return folder


def parse_refspec(text: str) -> Refspec:
    """Parse a refspec."""
    plain = text.removeprefix("+")
    source, _, destination = plain.partition(":")
    return Refspec(source=source, destination=destination, force=plain != text)


def parse_push_settings(listed: str, branch: str) -> PushSettings:
    """Parse the output of `git config -z --list`; `branch` is the current branch."""
    values = _parse_config(listed)
    pattern = re.compile(r"remote\.(.+)\.(?:url|pushurl)")
    remotes = {match[1]: None for name in values if (match := pattern.fullmatch(name))}
    fetched = _get_last(values, f"branch.{branch}.remote")
    alone = next(iter(remotes)) if len(remotes) == 1 else "origin" if "origin" in remotes else ""
    remote = (
        _get_last(values, f"branch.{branch}.pushremote") or _get_last(values, "remote.pushdefault") or fetched or alone
    )
    refspecs = tuple(parse_refspec(text) for text in values.get(f"remote.{remote}.push", ()))
    several = (
        _get_last(values, "push.default") == "matching"
        or _is_true(_get_last(values, "push.followtags"))
        or _is_true(_get_last(values, f"remote.{remote}.mirror"))
        or any("*" in one.source or not one.source for one in refspecs)
    )
    triangular = remote != (fetched or alone)
    return PushSettings(
        remote=remote,
        upstream=_find_upstream(values, branch, fetched, triangular=triangular),
        refspecs=refspecs,
        several=several,
    )


def rewrite_push_url(listed: str, url: str) -> str:
    """Rewrite a URL as git does before it pushes: `pushInsteadOf`, else `insteadOf`; the longest prefix wins."""
    values = _parse_config(listed)
    for setting in (".pushinsteadof", ".insteadof"):
        rewrites = [
            (prefix, name.removeprefix("url.").removesuffix(setting))
            for name, prefixes in values.items()
            if name.startswith("url.") and name.endswith(setting)
            for prefix in prefixes
            if url.startswith(prefix)
        ]
        if rewrites:
            prefix, base = max(rewrites, key=lambda one: len(one[0]))
            return base + url.removeprefix(prefix)
    return url


def has_forcing_settings(listed: str) -> bool:
    """Whether a remote is a mirror or has a forced refspec, so that a plain push may overwrite or delete branches."""
    values = _parse_config(listed)
    mirrors = [value for name, given in values.items() if re.fullmatch(r"remote\..+\.mirror", name) for value in given]
    pushes = [value for name, given in values.items() if re.fullmatch(r"remote\..+\.push", name) for value in given]
    return any(map(_is_true, mirrors)) or any(text.startswith(("+", ":")) for text in pushes)


def find_default_repositories(listed: str) -> list[str]:
    """The repositories that `gh` takes if a command names none, from the output of `git config -z --list`."""
    return [
        value for name, values in _parse_config(listed).items() if name.endswith(".gh-resolved") for value in values
    ]


def remove_credentials(address: str) -> str:
    """Remove credentials from a URL. The user may be a token, so only ssh keeps it."""
    match = _USER.match(address)
    if match is None:
        return address
    kept = match["user"].partition(":")[0] + "@" if "ssh" in match["scheme"] else ""
    return f"{match['scheme']}{kept}{address[match.end() :]}"


def _split_flags(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Split words into flags with their values, and operands."""
    flags: dict[str, str] = {}
    named: list[str] = []
    left = iter(words)
    for word in left:
        if word == "--":
            named.extend(left)
        elif word.startswith("--"):
            name, equals, value = word.partition("=")
            flags[name] = value if equals else next(left, "") if name in _WITH_VALUE else ""
        elif word.startswith("-") and len(word) > 1:
            if word == "-o":
                next(left, "")
            elif not word.startswith("-o"):
                flags.update({f"-{letter}": "" for letter in word[1:]})
        else:
            named.append(word)
    return flags, named


def _join_tags(words: Iterable[str]) -> list[str]:
    """Replace `tag NAME` by refs/tags/NAME."""
    refs: list[str] = []
    left = iter(words)
    for word in left:
        name = next(left, "") if word == "tag" else ""
        refs.append(f"{TAGS}{name}" if name else word)
    return refs


def _parse_config(listed: str) -> dict[str, list[str]]:
    """Parse every setting with its values; the last value wins. git prints section and variable in lower case."""
    values: dict[str, list[str]] = {}
    for record in listed.split("\0"):
        name, newline, value = record.partition("\n")
        values.setdefault(name, []).append(value if newline else "true")
    return values


def _get_last(values: Mapping[str, Sequence[str]], name: str) -> str:
    found = values.get(name, ())
    return found[-1] if found else ""


def _find_upstream(values: Mapping[str, Sequence[str]], branch: str, fetched: str, *, triangular: bool) -> str:
    merges = _get_last(values, f"branch.{branch}.merge").removeprefix(HEADS)
    match _get_last(values, "push.default") or "simple":
        case "current":
            return branch
        case "upstream" | "tracking":
            return "" if triangular else merges
        case "simple" if triangular or merges == branch:
            return branch
        case "simple" if not (fetched and merges) and _is_true(_get_last(values, "push.autosetupremote")):
            return branch
    return ""


def _is_true(value: str) -> bool:
    return value.lower() in {"true", "yes", "on", "1"}
