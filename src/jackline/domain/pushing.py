"""What a `git push` would do, by its own words and the repository's settings. Pure: it asks no git, reads no file."""

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
    """One `source:destination` of a push; an empty source deletes, an empty destination is the source's own name."""

    source: str
    destination: str = ""
    force: bool = False


class Push(NamedTuple):
    """The words of a push."""

    remote: str = ""
    refspecs: tuple[Refspec, ...] = ()
    several: bool = False  # more refs than the words name, such as --all or --tags
    force: bool = False


class Settings(NamedTuple):
    """What the repository says that a push without words does."""

    remote: str = ""
    upstream: str = ""  # the name of the branch there; empty: it would be refused, or nobody can say
    refspecs: tuple[Refspec, ...] = ()  # of the remote's own `push` lines
    several: bool = False


def push_of(words: Sequence[str]) -> Push:
    """The push whose arguments these are: everything after the word `push`."""
    flags, named = _sorted(words)
    deletes = bool(_DELETE & flags.keys())
    remote, refs = (named[0] if named else flags.get("--repo", "")), _tags_joined(named[1:])
    refspecs = tuple(Refspec("", ref) if deletes else refspec_of(ref) for ref in refs)
    force = bool(_FORCE & flags.keys()) or any(one.force for one in refspecs)
    several = bool(_SEVERAL & flags.keys()) or any("*" in ref or ref in {":", "+:"} for ref in refs)
    return Push(remote, refspecs, several, force)


def push_of_fields(fields: Mapping[str, Any]) -> Push | None:
    """The push whose command the fields tell of; None if it is another command."""
    words = fields.get("arguments")
    if fields.get("program") != "git" or not isinstance(words, list) or not all(isinstance(one, str) for one in words):
        return None
    arguments = arguments_of_git(words)
    return push_of(arguments[1:]) if arguments[:1] == ["push"] else None


def arguments_of_git(words: Sequence[str]) -> list[str]:
    """The subcommand with what follows it: git's own options, which come first, are passed over."""
    place = 0
    while place < len(words) and words[place].startswith("-"):
        place += 2 if words[place] in _GIT_WITH_VALUE else 1
    return list(words[place:])


def folder_of_git(words: Sequence[str]) -> str | None:
    """Where git works, seen from where it is started: by its `-C`; None if other options lead it elsewhere."""
    own = list(words[: len(words) - len(arguments_of_git(words))])
    folder = "."
    while own:
        option = own.pop(0)
        if option == "-C" and own:
            folder = posixpath.join(folder, own.pop(0))
        elif option not in _GIT_PLAIN:
            return None
    return folder


def refspec_of(text: str) -> Refspec:
    """A refspec as it is typed."""
    plain = text.removeprefix("+")
    source, _, destination = plain.partition(":")
    return Refspec(source, destination, force=plain != text)


def settings_of(listed: str, branch: str) -> Settings:
    """The settings from `git config -z --list`; the branch is the one that is checked out."""
    values = _values(listed)
    remotes = _remotes(values)
    fetched = _one(values, f"branch.{branch}.remote")
    alone = next(iter(remotes)) if len(remotes) == 1 else "origin" if "origin" in remotes else ""
    remote = _one(values, f"branch.{branch}.pushremote") or _one(values, "remote.pushdefault") or fetched or alone
    refspecs = tuple(refspec_of(text) for text in values.get(f"remote.{remote}.push", ()))
    several = (
        _one(values, "push.default") == "matching"
        or _is_true(_one(values, "push.followtags"))
        or _is_true(_one(values, f"remote.{remote}.mirror"))
        or any("*" in one.source or not one.source for one in refspecs)
    )
    triangular = remote != (fetched or alone)
    return Settings(remote, _upstream(values, branch, fetched, triangular=triangular), refspecs, several)


def without_password(address: str) -> str:
    """An address that may be shown and compared: a token may stand in the user's place, too; ssh needs its user."""
    match = _USER.match(address)
    if match is None:
        return address
    kept = match["user"].partition(":")[0] + "@" if "ssh" in match["scheme"] else ""
    return f"{match['scheme']}{kept}{address[match.end() :]}"


def _sorted(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Flags with their values, and the other words."""
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


def _tags_joined(words: Iterable[str]) -> list[str]:
    """`tag NAME` is git's other spelling of refs/tags/NAME."""
    refs: list[str] = []
    left = iter(words)
    for word in left:
        name = next(left, "") if word == "tag" else ""
        refs.append(f"{TAGS}{name}" if name else word)
    return refs


def _values(listed: str) -> dict[str, list[str]]:
    """Every setting with its values, the last one counts; git gives section and variable in small letters."""
    values: dict[str, list[str]] = {}
    for record in listed.split("\0"):
        name, newline, value = record.partition("\n")
        values.setdefault(name, []).append(value if newline else "true")
    return values


def _one(values: Mapping[str, Sequence[str]], name: str) -> str:
    found = values.get(name, ())
    return found[-1] if found else ""


def _remotes(values: Mapping[str, Sequence[str]]) -> dict[str, None]:
    pattern = re.compile(r"remote\.(.+)\.(?:url|pushurl)")
    return {match[1]: None for name in values if (match := pattern.fullmatch(name))}


def _upstream(values: Mapping[str, Sequence[str]], branch: str, fetched: str, *, triangular: bool) -> str:
    merges = _one(values, f"branch.{branch}.merge").removeprefix(HEADS)
    match _one(values, "push.default") or "simple":
        case "current":
            return branch
        case "upstream" | "tracking":
            return "" if triangular else merges
        case "simple" if triangular or merges == branch:
            return branch
        case "simple" if not (fetched and merges) and _is_true(_one(values, "push.autosetupremote")):
            return branch
    return ""


def _is_true(value: str) -> bool:
    return value.lower() in {"true", "yes", "on", "1"}
