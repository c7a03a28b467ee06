"""The policy that comes with jackline: its tables are sound, and the tools that the CLIs offer are in them."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from jackline.domain.states import CallClass, Decision, Replay
from jackline.policy import builtin, rule_lookup, tool_names
from jackline.policy.call_context import CallContext
from jackline.policy.classify import classify_call
from jackline.policy.rules import POLICY_VERSION
from tests.support.repositories import Work

WORKSPACE = "/home/dev/project"
PROBES = {"builtin:git-push", "builtin:gh-pr-create", "builtin:gh-issue-create", "builtin:file", "builtin:http"}
EFFECTS = [rule for rule in rule_lookup.BUILT_IN_RULES if rule.call_class is CallClass.EFFECT]


def test_a_name_means_one_thing() -> None:
    """A call remembers its rule by name: what is decided by it later must not depend on which of them it was."""
    seen: dict[str, tuple[object, ...]] = {}
    for rule in rule_lookup.BUILT_IN_RULES:
        told = (rule.call_class, rule.decision, rule.replay, rule.probe, rule.nothing_happened, rule.most, rule.hint)
        assert seen.setdefault(rule.name, told) == told, rule.name


def test_no_name_can_be_mistaken_for_a_users_or_for_a_joined_one() -> None:
    for rule in rule_lookup.BUILT_IN_RULES:
        assert "." in rule.name or rule.name == "unparsed"
        assert " " not in rule.name
        assert "," not in rule.name


def test_every_effect_says_what_it_touches_and_asks_or_denies() -> None:
    assert [rule.name for rule in EFFECTS if not rule.target] == []
    assert {rule.decision for rule in EFFECTS} == {Decision.ASK, Decision.DENY}
    assert [rule.name for rule in EFFECTS if rule.replay is Replay.EXACT] == []


def test_everything_else_is_allowed_but_the_loss_of_the_work_and_what_runs_later() -> None:
    held = {rule.name for rule in rule_lookup.BUILT_IN_RULES if rule.decision is not Decision.ALLOW} - {
        r.name for r in EFFECTS
    }
    assert held == {"workspace.delete", "workspace.discard", "workspace.hooks"}


def test_probes_and_patterns_are_ones_that_exist() -> None:
    assert {rule.probe for rule in rule_lookup.BUILT_IN_RULES if rule.probe} <= PROBES
    for rule in rule_lookup.BUILT_IN_RULES:
        for name, pattern in rule.external:
            assert name in {"url", "pr", "issue", "commit", "message", "digest"}
            re.compile(pattern)


@pytest.mark.parametrize(
    ("name", "output", "found"),
    [
        ("gh.pr.create", "https://github.com/o/r/pull/12\n", {"url": "https://github.com/o/r/pull/12", "pr": "12"}),
        (
            "gh.issue.create",
            "https://github.com/o/r/issues/7\n",
            {"url": "https://github.com/o/r/issues/7", "issue": "7"},
        ),
        (
            "gh.release.create",
            "https://github.com/o/r/releases/tag/v1",
            {"url": "https://github.com/o/r/releases/tag/v1"},
        ),
        ("git.push", "   0123abc..4567def  main -> main\n", {"commit": "4567def"}),
        ("mail.send", "250 2.0.0 Ok: queued as 4F1A\n", {"message": "4F1A"}),
        ("mail.send", "Message-ID: <a@b>\n", {"message": "<a@b>"}),
    ],
)
def test_what_others_call_an_effect_is_found_in_its_output(name: str, output: str, found: dict[str, str]) -> None:
    rule = rule_lookup.find_rule((), name)
    for key, value in found.items():
        match = re.compile(dict(rule.external)[key], re.MULTILINE).search(output)
        assert match is not None
        assert (match[1] if match.re.groups else match[0]) == value


# As the CLIs themselves told a model, with the class that each has.
OFFERED = {
    CallClass.READ: "Read ToolSearch ListAgents view_image get_goal glob grep_search list_agents read_file tool_search "
    "webfetch board_read cron_list kilo_local_recall WebFetch WebSearch Grep Glob TaskOutput BashOutput",
    CallClass.LOCAL: "Agent Task Edit Skill Write ReportFindings create_goal update_goal request_user_input agent "
    "skill write_file edit task todowrite write TodoWrite ExitPlanMode KillShell apply_patch replace",
    CallClass.UNKNOWN: "ScheduleWakeup Workflow write_stdin board_post cron_create cron_delete mcp__any__thing x",
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in OFFERED.items() for name in names.split()])
def test_the_tools_of_the_clis(kind: CallClass, name: str) -> None:
    assert rule_lookup.find_tool_rule((), name).call_class is kind


def test_a_subagent_is_launched_again_by_what_it_was_told() -> None:
    for name in ("Task", "Agent", "task", "agent"):
        rule = rule_lookup.find_tool_rule((), name)
        assert (rule.replay, rule.key) == (Replay.RELAUNCH, ("subagent_type", "prompt"))


def test_no_shell_has_a_rule_of_its_own() -> None:
    assert {
        tool for tool in tool_names.SHELL_TOOLS if rule_lookup.find_tool_rule((), tool) is not rule_lookup.UNMATCHED
    } == set()


def test_the_index_holds_every_command_rule() -> None:
    for rule in builtin.COMMAND_RULES:
        for program in rule.command[0].split("|"):
            assert rule in builtin.find_program_rules(program, POLICY_VERSION)


def test_it_is_loaded_without_a_library() -> None:
    code = "import sys; import jackline.policy.builtin; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"tomllib", "json", "dataclasses", "inspect", "logging"} & set(loaded)


@pytest.mark.parametrize("tool", ["TaskOutput", "TaskResult", "BashOutput"])
def test_what_asks_for_the_output_of_something_that_died_is_never_forced(tool: str) -> None:
    rule = rule_lookup.find_tool_rule((), tool)
    assert (rule.call_class, rule.replay) == (CallClass.READ, Replay.ASK)


def test_git_writes_no_file_in_a_call_that_counts_as_read(tmp_path: Path) -> None:
    """Real git is asked, because the commands that share the options of `git log` are easily forgotten."""
    work, written = Work(tmp_path), tmp_path / "written"
    (work.tree / "a").write_text("a")
    work.git("stash", "--include-untracked")
    verbs = {
        verb
        for rule in rule_lookup.BUILT_IN_RULES
        if rule.command[:1] == ("git",) and rule.call_class is CallClass.READ
        for verb in product(*(word.split("|") for word in rule.command[1:]))
    }
    writing = set()
    for verb in verbs:
        words = ["git", *verb, f"--output={written}"]
        subprocess.run(words, cwd=work.tree, env=work.env, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if written.exists():
            written.unlink()
            writing.add(verb)
            for version in range(1, POLICY_VERSION + 1):
                where = CallContext(WORKSPACE, WORKSPACE, version=version)
                found = classify_call((), "Bash", {"command": " ".join(("git", *verb, "--output=a"))}, where)
                assert found.rule.call_class is not CallClass.READ, (verb, version)
    assert {("log",), ("reflog", "show"), ("stash", "list"), ("stash", "show")} <= writing


@pytest.mark.parametrize("words", ["commit -m x", "config core.fsmonitor x", "--output=a"])
def test_bisect_view_runs_any_command_of_git(words: str) -> None:
    found = classify_call((), "Bash", {"command": f"git bisect view {words}"}, CallContext(WORKSPACE, WORKSPACE))
    assert found.rule.call_class is CallClass.UNKNOWN
