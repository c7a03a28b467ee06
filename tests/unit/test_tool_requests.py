"""Tools that fetch may also send, and tools that edit may name a path for each edit."""

from __future__ import annotations

from typing import Any

import pytest

from jackline.policy.call_context import CallContext
from jackline.policy.classify import classify_call

WHERE = CallContext("/home/dev/project", "/home/dev/project")
URL = "https://example.org/items"


def judged(tool: str, given: Any) -> tuple[str, str]:
    rule = classify_call((), tool, given, WHERE).rule
    return rule.name, str(rule.decision)


@pytest.mark.parametrize("tool", ["fetch", "WebFetch", "web_fetch", "webfetch"])
@pytest.mark.parametrize(
    "more",
    [
        {"method": "POST"},
        {"method": "delete"},
        {"http_method": "PUT"},
        {"body": "x"},
        {"json": {"a": 1}},
        {"options": {"method": "PATCH"}},
        {"request": [{"init": {"body": "x"}}]},
        {"headers": {"X-HTTP-Method-Override": "DELETE"}},
    ],
)
def test_a_fetch_with_a_method_or_a_body_is_an_effect(tool: str, more: dict[str, Any]) -> None:
    assert judged(tool, {"url": URL, **more}) == ("fetch.send", "ask")


@pytest.mark.parametrize(
    "more", [{}, {"method": "GET"}, {"method": "head"}, {"prompt": "post it"}, {"body": ""}, {"headers": {"A": "b"}}]
)
def test_a_plain_fetch_is_a_read(more: dict[str, Any]) -> None:
    assert judged("fetch", {"url": URL, **more}) == ("builtin.fetch", "allow")


def test_the_target_of_a_fetch_is_its_address() -> None:
    found = classify_call((), "fetch", {"url": URL, "method": "POST"}, WHERE)
    assert found.rule.target.startswith("http:{url")


@pytest.mark.parametrize("tool", ["MultiEdit", "multiedit", "edit", "replace", "Write"])
@pytest.mark.parametrize("name", ["file_path", "filePath", "path", "file", "uri"])
def test_the_path_of_each_edit_counts(tool: str, name: str) -> None:
    edits = [{name: "src/a.py", "old": "a"}, {name: "/home/dev/.bashrc", "old": "b"}]
    assert judged(tool, {"edits": edits}) == ("outside.file", "ask")
    assert judged(tool, {"file_path": "a", "edits": edits[:1]}) == (f"builtin.{tool}", "allow")


def test_the_strictest_of_several_paths_counts() -> None:
    patch = "*** Begin Patch\n*** Add File: ../a\n+x\n*** Delete File: ../b\n*** End Patch\n"
    assert judged("apply_patch", {"input": patch}) == ("outside.delete", "deny")


@pytest.mark.parametrize(
    ("patch", "rule"),
    [
        ("*** Begin Patch\n  *** Add File: /etc/x\n+a\n*** End Patch", "outside.file"),
        ("--- a/src/x\n+++ b/../../x\n", "outside.file"),
        ("diff --git a/x b/x\nrename to /etc/x\n", "outside.file"),
        ("--- /dev/null\n+++ b/src/x\n", "builtin.apply_patch"),
    ],
)
def test_a_patch_is_judged_by_the_files_that_it_names(patch: str, rule: str) -> None:
    assert judged("apply_patch", {"input": patch})[0] == rule
    assert judged("apply_patch", patch)[0] == rule
