"""What a push would do, by its words and by the settings of the repository."""

from __future__ import annotations

import pytest

from jackline.policy.git_push_args import (
    Push,
    Refspec,
    find_git_folder,
    parse_push,
    parse_push_fields,
    parse_push_settings,
    remove_credentials,
    skip_git_options,
)


@pytest.mark.parametrize(
    ("words", "push"),
    [
        ("", Push()),
        ("origin", Push("origin")),
        ("-u origin main", Push("origin", (Refspec("main"),))),
        ("origin HEAD:refs/heads/x v1", Push("origin", (Refspec("HEAD", "refs/heads/x"), Refspec("v1")))),
        ("origin +main", Push("origin", (Refspec("main", "", force=True),), force=True)),
        ("-uf origin main", Push("origin", (Refspec("main"),), force=True)),
        ("--force-with-lease=main:abc origin main", Push("origin", (Refspec("main"),), force=True)),
        ("--delete origin old", Push("origin", (Refspec("", "old"),))),
        ("-d origin old", Push("origin", (Refspec("", "old"),))),
        ("origin :old", Push("origin", (Refspec("", "old"),))),
        ("origin tag v1", Push("origin", (Refspec("refs/tags/v1"),))),
        ("--tags", Push(several=True)),
        ("origin refs/heads/*:refs/heads/*", Push("origin", (Refspec("refs/heads/*", "refs/heads/*"),), several=True)),
        ("--mirror", Push(several=True, force=True)),
        ("-o ci.skip --receive-pack x origin main", Push("origin", (Refspec("main"),))),
        ("--repo=up", Push("up")),
        ("-- origin -x", Push("origin", (Refspec("-x"),))),
    ],
)
def test_the_words_of_a_push(words: str, push: Push) -> None:
    assert parse_push(words.split()) == push


def test_only_a_push_of_git_is_one() -> None:
    assert parse_push_fields({"program": "git", "arguments": ["-C", "sub", "push", "origin", "x"]}) == Push(
        "origin", (Refspec("x"),)
    )
    assert parse_push_fields({"program": "git", "arguments": ["tag", "push"]}) is None
    assert parse_push_fields({"program": "gh", "arguments": ["push"]}) is None
    assert parse_push_fields({"program": "git", "arguments": "push"}) is None
    assert parse_push_fields({}) is None


def test_gits_own_options_are_passed_over() -> None:
    assert skip_git_options(["-C", "x", "--no-pager", "-c", "a=b", "push", "-f"]) == ["push", "-f"]
    assert skip_git_options(["--version"]) == []


@pytest.mark.parametrize(
    ("words", "folder"),
    [
        ("push", "."),
        ("-C sub push", "./sub"),
        ("-C sub -C ../other push", "./sub/../other"),
        ("-C /abs push", "/abs"),
        ("--no-pager push", "."),
        ("-c remote.origin.url=x push", None),
        ("--git-dir=x push", None),
        ("--work-tree x push", None),
    ],
)
def test_where_git_works(words: str, folder: str | None) -> None:
    assert find_git_folder(words.split()) == folder


def listed(*settings: str) -> str:
    return "".join(f"{setting.replace('=', chr(10), 1)}\0" for setting in settings)


ORIGIN = "remote.origin.url=x"
TRACKED = (ORIGIN, "branch.main.remote=origin", "branch.main.merge=refs/heads/main")


@pytest.mark.parametrize(
    ("settings", "remote", "upstream"),
    [
        ((), "", ""),
        ((ORIGIN,), "origin", ""),
        (("remote.up.url=x",), "up", ""),
        (("remote.up.url=x", "remote.down.url=y"), "", ""),
        (TRACKED, "origin", "main"),
        ((*TRACKED, "push.default=nothing"), "origin", ""),
        ((ORIGIN, "push.default=current"), "origin", "main"),
        ((ORIGIN, "push.autosetupremote"), "origin", "main"),
        ((ORIGIN, "branch.main.remote=origin", "branch.main.merge=refs/heads/trunk"), "origin", ""),
        (
            (ORIGIN, "branch.main.remote=origin", "branch.main.merge=refs/heads/trunk", "push.default=upstream"),
            "origin",
            "trunk",
        ),
        ((*TRACKED, "remote.fork.url=y", "remote.pushdefault=fork"), "fork", "main"),
        ((*TRACKED, "remote.fork.url=y", "remote.pushdefault=fork", "push.default=upstream"), "fork", ""),
        ((*TRACKED, "remote.pushdefault=a", "branch.main.pushremote=b"), "b", "main"),
    ],
)
def test_where_a_push_without_words_goes(settings: tuple[str, ...], remote: str, upstream: str) -> None:
    found = parse_push_settings(listed(*settings), "main")
    assert (found.remote, found.upstream) == (remote, upstream)
    assert not found.several


@pytest.mark.parametrize(
    "setting",
    ["push.default=matching", "push.followtags=true", "remote.origin.mirror", "remote.origin.push=refs/heads/*:x/*"],
)
def test_settings_that_push_more_than_one_branch(setting: str) -> None:
    assert parse_push_settings(listed(*TRACKED, setting), "main").several


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://ada:token@example.org/r.git", "https://example.org/r.git"),
        ("https://token@example.org/r.git", "https://example.org/r.git"),
        ("https://a@b:p@ss@example.org/r", "https://example.org/r"),
        ("ssh://git:pw@example.org/r", "ssh://git@example.org/r"),
        ("ssh://git@example.org/r", "ssh://git@example.org/r"),
        ("git@example.org:o/r.git", "git@example.org:o/r.git"),
        ("../r.git", "../r.git"),
        ("https://example.org/a@b", "https://example.org/a@b"),
        ("", ""),
    ],
)
def test_no_password_in_an_address(address: str, shown: str) -> None:
    assert remove_credentials(address) == shown
