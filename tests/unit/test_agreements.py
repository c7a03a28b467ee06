"""What `--allow RULE`, `RULE=PATTERN` and `RULE=any` cover."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackline.policy import own_remotes
from jackline.policy.agreements import (
    AskedPart,
    dump_parts,
    format_agreements,
    is_agreed,
    load_parts,
    matches_target,
    split_agreement,
    suggest_agreements,
)

OWN = {"https://github.com/me/tool": "main", "ssh://git@example.org/me/tool": "", "/srv/git/tool": ""}


@pytest.mark.parametrize(
    ("pattern", "target", "matches"),
    [
        ("git:origin/refs/heads/x", "git:origin/refs/heads/x", True),
        ("git:origin/*", "git:origin/refs/heads/a/b", True),
        ("git:origin/refs/heads/fix-*", "git:origin/refs/heads/fix-1", True),
        ("git:origin/refs/heads/fix-*", "git:origin/refs/heads/main", False),
        ("git:Origin/*", "git:origin/refs/heads/x", False),
        ("git:*/refs/heads/x", "git:origin/refs/heads/x", True),
        ("git:*/refs/heads/x", "git:a/b/refs/heads/x", False),
        ("http:https://*.example.com/*", "http:https://api.example.com/v1/x", True),
        ("http:https://*.example.com/*", "http:https://evil.org/a.example.com/", False),
        ("http:https://*.example.com/*", "http:https://evil.org?a.example.com/", False),
        ("http:https://*.example.com/*", "http:https://evil.org#a.example.com/", False),
        ("http:https://*.example.com/*", "http:https://me@evil.org\\.example.com/", False),
        ("http:https://api.example.com/*", "http:https://api.example.com@evil.org/", False),
        ("http:https://api.example.com/v1/*", "http:https://api.example.com/v1/../admin", False),
        ("http:https://api.example.com/v1/*", "http:https://api.example.com/v1/%2e%2E/admin", False),
        ("http:https://api.example.com/v1/../x", "http:https://api.example.com/v1/../x", True),
        ("file:/srv/app/*", "file:/srv/app/a", True),
        ("file:/srv/app/*", "file:/srv/app/../../etc/passwd", False),
        ("file:/srv/app/*", "file:/srv/apple", False),
        ("mail:*", "mail:ada\nbob", False),
        ("mail:?da", "mail:ada", True),
        ("mail:[a]da", "mail:ada", False),
        ("mail:.da", "mail:ada", False),
        ("*", "anything at all", True),
    ],
)
def test_a_pattern_matches_a_whole_target(pattern: str, target: str, matches: bool) -> None:
    assert matches_target(pattern, target) is matches


def part(rule: str, *targets: str, is_plain: bool = False) -> AskedPart:
    return AskedPart(rule=rule, targets=targets, is_plain=is_plain)


@pytest.mark.parametrize(
    ("asked", "allowed", "agreed"),
    [
        (part("git.push", "git:origin/refs/heads/x", is_plain=True), ("git.push",), True),
        (part("git.push", "git:origin/refs/heads/x"), ("git.push",), False),
        (part("git.push", "git:origin/refs/heads/x"), ("git.push=any",), True),
        (part("git.push", "git:origin/refs/heads/x"), ("effects",), False),
        (part("git.push", "git:origin/refs/heads/x"), ("effects=any",), True),
        (part("git.push", "git:origin/a", "git:origin/b"), ("git.push=git:origin/a",), False),
        (part("git.push", "git:origin/a", "git:origin/b"), ("git.push=git:origin/*",), True),
        (part("git.push"), ("git.push=git:*", "git.push=*"), False),
        (part("git.push"), ("git.push=any",), True),
        (part("git.push.again", "git:origin/a", is_plain=True), ("git.push",), False),
        (part("git.push.lease", "git:origin/a", is_plain=True), ("effects", "effects=any", "git.push=any"), False),
        (part("git.push.lease", "git:origin/a", is_plain=True), ("git.push.lease",), True),
        (part("unmatched", "", is_plain=True), ("effects", "effects=any"), False),
        (part("a + b", "x", is_plain=True), ("a",), False),
        (part("a + b", "x", is_plain=True), ("a", "b=any"), True),
        (part("a=b", "x", is_plain=True), ("a=b",), True),
        (part("others", is_plain=True), ("effects",), False),
    ],
)
def test_what_is_agreed(asked: AskedPart, allowed: tuple[str, ...], agreed: bool) -> None:
    assert is_agreed(asked, allowed) is agreed


def test_a_name_may_contain_an_equals_sign() -> None:
    known = ("a", "a=b", "c")
    assert split_agreement("a=b", known) == ("a=b", "")
    assert split_agreement("a=b=x*", known) == ("a=b", "x*")
    assert split_agreement("a=x", known) == ("a", "x")
    assert split_agreement("d=x", known) == ("d", "x")


def test_the_advice_can_be_pasted() -> None:
    assert format_agreements([part("git.push", "git:origin/refs/heads/x", is_plain=True)]) == (
        "--allow git.push=git:origin/refs/heads/x"
    )
    assert format_agreements([part("mail", "mail:a b; rm", is_plain=True)]) == "--allow 'mail=mail:a b; rm'"
    assert format_agreements([part("mail", "", is_plain=True)]) == "--allow mail"
    assert format_agreements([part("git.push")]) == "--allow git.push=any"
    assert format_agreements([part("mail", "mail:\x1b[1m", is_plain=True)]) == "--allow mail"


TARGETS = st.text(st.sampled_from("ab:/.,*?[]= @#\n'\"\\-\x1b"), max_size=12)


@given(st.lists(TARGETS, max_size=3), st.booleans())
def test_the_advice_covers_the_call_and_no_comma_or_star_widens_it(targets: list[str], plain: bool) -> None:
    asked = part("rule", *targets, is_plain=plain)
    advice = suggest_agreements([asked])
    assert is_agreed(asked, advice)
    assert all("," not in text and "*" not in text and text.isprintable() for text in advice)
    assert load_parts('{"asks": ' + __import__("json").dumps(dump_parts([asked])) + "}") == (asked,)


# --- addresses


@pytest.mark.parametrize(
    ("address", "normal"),
    [
        ("https://github.com/me/tool.git", "https://github.com/me/tool"),
        ("https://GitHub.com:443/me/tool/", "https://github.com/me/tool"),
        ("https://token@github.com/me/tool", "https://github.com/me/tool"),
        ("https://me:token@github.com/me/tool", "https://github.com/me/tool"),
        ("https://github.com@evil.org/me/tool", "https://evil.org/me/tool"),
        ("https://github.com/Me/tool", "https://github.com/Me/tool"),
        ("https://github.com:8443/me/tool", "https://github.com:8443/me/tool"),
        ("http://github.com/me/tool", "http://github.com/me/tool"),
        ("https://github.com/me/tool?x", ""),
        ("git@github.com:me/tool.git", "ssh://git@github.com/me/tool"),
        ("ssh://git@github.com:22/me/tool", "ssh://git@github.com/me/tool"),
        ("ssh://git@github.com:2222/me/tool", "ssh://git@github.com:2222/me/tool"),
        ("other@github.com:me/tool", "ssh://other@github.com/me/tool"),
        ("forge:me/tool", "ssh://forge/me/tool"),
        ("file:///srv/git/tool.git", "/srv/git/tool"),
        ("../tool.git", "/w/tool"),
        ("https://github.com/me/../you/tool", "https://github.com/me/../you/tool"),
        ("a\nb", ""),
        ("", ""),
    ],
)
def test_the_normal_form_of_an_address(address: str, normal: str) -> None:
    assert own_remotes.normalize_address(address, "/w/here") == normal


def gh(*words: str, flags: dict[str, str] | None = None, known: dict[str, str] | None = None) -> bool:
    fields = {"program": "gh", "arguments": list(words), "words": "\n".join(words[2:]), **(flags or {})}
    here = {"git.remotes": "https://github.com/me/tool", **(known or {})}
    own = {"https://github.com/me/tool"}
    return own_remotes.is_own_place(fields, here, own, "pr:{--repo|-R|}:{1}")


def test_a_forge_command_is_own_if_every_repository_that_it_may_change_is() -> None:
    repo = {"--repo": "me/tool"}
    assert gh("pr", "create")
    assert gh("pr", "create", flags=repo)
    assert gh("pr", "create", flags={"--repo": "github.com/me/tool"})
    assert gh("pr", "create", flags={"-R": "https://github.com/me/tool"})
    assert gh("pr", "merge", "https://github.com/me/tool/pull/3")
    assert gh("pr", "merge", "feature/x")
    assert gh("pr", "create", known={"git.gh": "base"})


@pytest.mark.parametrize(
    ("words", "flags", "known"),
    [
        (("pr", "create"), {"--repo": "evil/tool"}, {}),
        (("pr", "create"), {"--repo": "me/tool\nevil/tool"}, {}),
        (("pr", "create"), {"--repo": "evil.org/me/tool"}, {}),
        (("pr", "create"), {"-R": "https://evil.org/me/tool"}, {}),
        (("pr", "merge", "https://github.com/evil/tool/pull/3"), {}, {}),
        (("pr", "merge", "https://github.com/me/tool-evil/pull/3"), {}, {}),
        (("pr", "merge", "https://github.com@evil.org/me/tool/pull/3"), {}, {}),
        (("pr", "create"), {}, {"git.gh": "evil/tool"}),
        (("pr", "create"), {}, {"git.remotes": "https://github.com/me/tool https://github.com/evil/tool"}),
        (("pr", "create"), {}, {"git.remotes": ""}),
        (("pr", "create", "--hostname=evil.org"), {}, {}),
        (("repo", "delete", "me/tool"), {}, {}),
        (("api", "-X", "repos/evil/tool/issues"), {}, {}),
        (("--repo", "pr", "create"), {}, {}),
    ],
)
def test_a_forge_command_that_may_change_another_repository_is_not_own(
    words: tuple[str, ...], flags: dict[str, str], known: dict[str, str]
) -> None:
    assert not gh(*words, flags=flags, known=known)


@pytest.mark.parametrize(
    ("arguments", "words", "own"),
    [
        (["-d", "x", "https://github.com/me"], "https://github.com/me", True),
        (["-d", "x", "https://github.com/me", "https://evil.org"], "https://github.com/me\nhttps://evil.org", False),
        (["-d", "x", "https://github.com/me", "evil.org"], "https://github.com/me\nevil.org", False),
        (["-d", "x", "https://github.com@evil.org/me"], "https://github.com@evil.org/me", False),
        (["-sx", "evil.org", "https://github.com/me"], "https://github.com/me", False),
        (["--connect-to", "::evil.org:", "https://github.com/me"], "https://github.com/me", False),
        (["--resolve=github.com:443:1.2.3.4", "https://github.com/me"], "https://github.com/me", False),
        (["--url", "https://evil.org", "https://github.com/me"], "https://github.com/me", False),
        (["-K", "f", "https://github.com/me"], "https://github.com/me", False),
        (["ftp://github.com/me"], "ftp://github.com/me", False),
        (["https://api.github.com/me"], "https://api.github.com/me", False),
    ],
)
def test_a_request_is_own_if_all_its_hosts_are(arguments: list[str], words: str, own: bool) -> None:
    fields = {"program": "curl", "arguments": arguments, "words": words}
    assert own_remotes.is_own_place(fields, {}, OWN, "http:{url}") is own


@pytest.mark.parametrize("target", ["git:null/null", "git:origin/null", "pr::null"])
def test_a_target_that_is_not_known_is_not_suggested_as_a_pattern(target: str) -> None:
    assert suggest_agreements([AskedPart("git.push", (target,))]) == ["git.push=any"]
    assert suggest_agreements([AskedPart("git.push", (target,), is_plain=True)]) == ["git.push"]
