"""`jackline policy`, the layers of rules of a run, and approval in advance."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.cli.place import SAY, SEND, Ended, Place, is_one_line

ASKED = '[[rule]]\nname = "mail"\ntool = "send"\nclass = "effect"\nkey = ["to"]\ntarget = "mail:{to}"\n'
DENIED = ASKED + 'decision = "deny"\n'
LOOKING = (("list",), ("policy", "show"), ("policy", "explain", "send"), ("policy", "audit"), ("config",))


@pytest.fixture
def project(place: Place) -> Place:
    subprocess.run(["git", "init", "-q"], cwd=place.repository, check=True)
    (place.repository / ".agents").mkdir()
    return place


def user_policy(place: Place, text: str) -> Path:
    path = place.folder / ".config" / "jackline" / "policy.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def project_policy(place: Place, text: str) -> Path:
    path = place.repository / ".agents" / "policy.toml"
    path.write_text(text)
    return path


def refused(ended: Ended) -> str:
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    return ended.err


# --- layers around a run -------------------------------------------------------------------------------------


@pytest.mark.parametrize("layer", ["user", "project"])
def test_a_broken_layer_refuses_work_with_its_line_and_reading_still_works(project: Place, layer: str) -> None:
    write = user_policy if layer == "user" else project_policy
    path = write(project, ASKED + 'tol = "x"\n')
    said = refused(project.play(SAY))
    assert f"{path}:7: rule 1 'mail': unknown key 'tol'" in said
    assert f"jackline policy check {path}" in said
    assert not project.home.exists()
    assert refused(project.play(SAY, words=("--dry-run",))) == said
    for words in LOOKING:
        assert project.type(*words).code == 0, words
    problems = project.type("policy", "show", "--json").json["problems"]
    assert [str(path) in one for one in problems] == [True]
    assert str(path) in project.type("policy", "explain", "send").err
    doctor = {one["part"]: one for one in project.type("doctor", "--json").json["findings"]}
    assert doctor["policy"]["state"] == "fail"
    assert f"{path}:7: " in doctor["policy"]["found"]


def test_a_users_rule_counts_in_a_run(project: Place) -> None:
    user_policy(project, DENIED)
    ended = project.play({"call": {"tool": "send", "input": {"to": "ada"}, "run": ["touch", "ran"]}})
    assert ended.code in {0, 1}
    assert not (project.repository / "ran").exists()


def test_an_untrusted_project_tightens_and_does_not_loosen(project: Place) -> None:
    user_policy(project, DENIED)
    path = project_policy(project, ASKED.replace('"mail"', '"theirs"') + 'decision = "allow"\nprobe = "touch probed"\n')
    told = project.type("policy", "explain", "send", "--input", '{"to": "ada"}', "--json").json
    assert (told["decision"], told["probe"]) == ("deny", "")
    ended = project.play(SEND)
    assert f"{path}: its rules can only tighten" in ended.err
    assert "jackline trust" in ended.err
    assert project.trust().code == 0
    trusted = project.type("policy", "explain", "send", "--input", '{"to": "ada"}', "--json").json
    assert (trusted["rule"], trusted["decision"], trusted["probe"]) == ("theirs", "allow", "touch probed")
    assert trusted["problems"] == []


def test_an_untrusted_project_may_forbid_what_the_user_allows(project: Place) -> None:
    user_policy(project, ASKED + 'decision = "allow"\n')
    project_policy(project, DENIED)
    told = project.type("policy", "explain", "send", "--input", '{"to": "ada"}', "--json").json
    assert told["decision"] == "deny"


def test_rules_are_frozen_when_the_run_starts(project: Place) -> None:
    user_policy(project, ASKED)
    assert project.play(SEND, words=("--run-id", "r")).code == 14
    user_policy(project, "broken")
    assert project.type("resume", "r").code == 14
    assert project.type("cancel", "r").code == 0


# --- agreed beforehand ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mail", "effects", "mail,effects"])
def test_what_was_agreed_to_is_not_asked(project: Place, name: str) -> None:
    user_policy(project, ASKED)
    assert project.play(SEND).code == 14
    assert project.play(SEND, words=("--allow", name)).code == 0


def test_a_name_that_is_no_rule_gets_the_nearest_ones(project: Place) -> None:
    user_policy(project, ASKED)
    said = refused(project.play(SEND, words=("--allow", "mial")))
    assert "there is no rule 'mial': did you mean mail" in said
    assert "jackline policy show" in said
    assert "--allow is empty" in refused(project.play(SEND, words=("--allow", "")))
    assert not project.home.exists()


def test_what_denies_cannot_be_agreed_to(project: Place) -> None:
    user_policy(project, DENIED)
    assert "rule 'mail' denies" in refused(project.play(SEND, words=("--allow", "mail")))
    ended = project.play({"call": {**SEND["call"], "run": ["touch", "ran"]}}, words=("--allow", "effects"))
    assert not (project.repository / "ran").exists(), ended


def test_a_job_and_a_task_agree_beforehand_and_an_untrusted_task_does_not(project: Place) -> None:
    user_policy(project, ASKED)
    job = project.folder / "job.toml"
    script = project.script(SEND)
    job.write_text(f'script = "{script}"\nallow = ["mail"]\n[settings]\nstrict = true\n')
    assert project.type("run", "--job", str(job)).code == 0
    job.write_text(f'script = "{script}"\nallow = ["mial"]\n')
    assert "did you mean mail" in refused(project.type("run", "--job", str(job)))
    project.task("sender", "---\nallow: [mail]\nstrict: true\n---\nSend.")
    words = ("--task", "sender")
    asked = project.play(SEND, words=words)
    assert asked.code == 14
    assert "ignoring allow = mail" in asked.err
    assert project.trust().code == 0
    assert project.play(SEND, words=words).code == 0


# --- settings ------------------------------------------------------------------------------------------------


def settings_of(place: Place, *words: str) -> dict[str, str]:
    shown = place.type("config", *words, "--json").json
    return {name: shown[name]["value"] for name in ("approval_timeout", "approval_answer", "strict")}


def test_an_untrusted_project_tightens_the_answer_and_never_loosens_it(project: Place) -> None:
    file = project.repository / "jackline.toml"
    file.write_text('approval_answer = "allow"\napproval_timeout = 1\nstrict = true\n')
    assert settings_of(project) == {"approval_timeout": 0, "approval_answer": "deny", "strict": "true"}
    noted = project.type("config").err
    assert "approval_answer stays deny, not allow" in noted
    assert "approval_timeout stays 0, not 1" in noted
    assert project.trust().code == 0
    assert settings_of(project) == {"approval_timeout": 1, "approval_answer": "allow", "strict": "true"}
    (project.folder / ".config" / "jackline").mkdir(parents=True)
    mine = project.folder / ".config" / "jackline" / "config.toml"
    mine.write_text('approval_answer = "allow"\nstrict = true\napproval_timeout = 5\n')
    file.write_text('approval_answer = "deny"\nstrict = false\napproval_timeout = 0\n')
    assert settings_of(project) == {"approval_timeout": 0, "approval_answer": "deny", "strict": "true"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--approval-answer", "perhaps"), "perhaps"),
        (("--approval-timeout", "-1"), "approval_timeout"),
        (("--approval-timeout", "soon"), "approval_timeout"),
        (("--mode", "party"), "party"),
    ],
)
def test_a_wrong_value_is_refused(place: Place, words: tuple[str, ...], said: str) -> None:
    assert said in refused(place.play(SAY, words=words))
    assert "strict must be true or false" in refused(place.play(SAY, environ={"JACKLINE_STRICT": "maybe"}))


def test_flags_are_frozen_into_the_run(place: Place) -> None:
    words = ("--strict", "--approval-timeout", "90", "--approval-answer", "allow", "--mode", "interactive")
    ended = place.play({"limit": {"resets_in": 3600}}, words=(*words, "--run-id", "r"))
    assert ended.code == 10, ended
    program = (
        "from jackline import open_home\n"
        "spec = open_home().find('r').spec\n"
        "print(spec.strict, spec.approval_timeout_ms, spec.approval_answer, spec.mode, spec.allowed)"
    )
    assert place.end_of(place.python(program)).out.split() == ["True", "90000", "allow", "interactive", "()"]


# --- check ---------------------------------------------------------------------------------------------------


def test_a_good_file_is_summed_up(place: Place) -> None:
    path = place.policy("\ufeff" + (ASKED + '\n[[rule]]\ntool = "look"\nclass = "read"\n').replace("\n", "\r\n"))
    ended = place.type("policy", "check", path)
    assert (ended.code, ended.err) == (0, "")
    assert "2 rules (1 effect, 1 read)" in ended.out
    assert place.type("policy", "check", path, "--json").json == {
        "file": path, "ok": True, "rules": 2, "mistakes": [],
    }  # fmt: skip


def test_every_mistake_is_reported_with_its_line(place: Place) -> None:
    path = place.policy('[[rule]]\ntool = "a"\nclass = "rad"\nx = 1\n\n[[rule]]\nname = "b"\nclass = "read"\n')
    ended = place.type("policy", "check", path)
    assert ended.code == 2
    assert [line.split(": ")[1] for line in ended.err.splitlines()] == [f"{path}:{line}" for line in (3, 4, 6)]
    told = place.type("policy", "check", path, "--json")
    assert (told.code, [one["line"] for one in told.json["mistakes"]]) == (2, [3, 4, 6])


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "binary", "syntax", "large", "empty name"])
def test_what_cannot_be_read_is_one_line(place: Place, kind: str) -> None:
    path = Path(place.path("policy.toml"))
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "binary":
            path.write_bytes(b"\xff\xfe\x00")
        case "syntax":
            path.write_text("[[rule]]\ntool = \n")
        case "large":
            path.write_text("# " + "x" * 1_000_001)
    given = "" if kind == "empty name" else str(path)
    ended = place.type("policy", "check", given)
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    assert (f"{path}:2: " if kind == "syntax" else given) in ended.err
    json.loads(place.type("policy", "check", given, "--json").out)


# --- show, explain -------------------------------------------------------------------------------------------


def test_rules_are_shown_in_the_order_of_matching(project: Place) -> None:
    user_policy(project, ASKED)
    project_policy(project, ASKED.replace('"mail"', '"theirs"'))
    rules = project.type("policy", "show", "--json").json["rules"]
    layers = list(dict.fromkeys(rule["layer"] for rule in rules))
    assert layers == ["project", "user", "built-in"]
    shown = tomllib.loads(project.type("policy", "show").out)["rule"]
    named = [rule["name"] for rule in rules if rule["tool"] or rule["command"]]  # others are found by what they touch
    assert [rule["name"] for rule in shown] == named
    mine = project.type("policy", "show", "--layer", "user")
    assert project.type("policy", "check", project.policy(mine.out)).code == 0
    assert [rule["name"] for rule in tomllib.loads(mine.out)["rule"]] == ["mail"]
    assert "layer" in refused(project.type("policy", "show", "--layer", "mine"))


def test_a_call_is_explained(project: Place) -> None:
    user_policy(project, ASKED + 'probe = "true"\nmax = 2\n')
    told = project.type("policy", "explain", "send", "--input", '{"to": "ada"}', "--json").json
    assert (told["rule"], told["layer"], told["class"], told["decision"]) == ("mail", "user", "effect", "ask")
    assert (told["key"], told["target_here"], told["max"]) == (["to"], "mail:ada", 2)
    assert told["after_a_crash"].startswith("the probe checks whether it happened")
    shown = project.type("policy", "explain", "send", "--input", '{"to": "ada"}')
    assert (shown.code, shown.err) == (0, "")
    assert "mail (user)" in shown.out
    assert "mail:ada" in shown.out
    assert not project.home.exists()


def test_each_command_of_a_shell_is_explained(place: Place) -> None:
    told = place.type("policy", "explain", "--command", "cd sub && ls | grep x; git push origin main", "--json").json
    assert (told["tool"], told["class"]) == ("Bash", "effect")
    assert told["decision"] in {"ask", "deny"}
    assert [match["words"].split()[0] for match in told["matches"]] == ["cd", "ls", "grep", "git"]
    assert all(match["why"] for match in told["matches"])
    same = place.type("policy", "explain", "Bash", "--input", '{"command": "git push origin main"}', "--json").json
    assert same["rule"] in told["rule"]
    read = place.type("policy", "explain", "--command", "git status", "--json").json
    assert (read["class"], read["decision"]) == ("read", "allow")


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (("git", "push"), "git.push"),
        (("git push --force",), "git.push.force"),
        (("curl -X POST -d a https://a.test/",), "http.send"),
        (("--", "git", "push", "--force"), "git.push.force"),
        (("--", "ls"), "read.ls"),
        (("rg", "a b"), "read.rg"),
        (("Edit",), "builtin.Edit"),
        (("mcp__issues__create",), "mcp.effect"),
    ],
)
def test_a_bare_command_or_tool_is_explained(place: Place, words: tuple[str, ...], rule: str) -> None:
    assert place.type("policy", "explain", "--json", *words).json["rule"] == rule


def test_a_flag_of_the_command_needs_the_separator(place: Place) -> None:
    assert "flags of another program go after --" in refused(place.type("policy", "explain", "git", "push", "-f"))


def test_a_malformed_call_is_explained_as_denied(place: Place) -> None:
    told = place.type("policy", "explain", "Write", "--input", '{"file_path": "a"}', "--json").json
    assert told["decision"] == "deny"
    assert "Write needs 'content'" in told["mistake"]


@pytest.mark.parametrize(
    "words",
    [(), ("send", "--input", "{"), ("Bash", "--input", "{}", "--command", "x"), ("send", "--input", "[" * 9999)],
)
def test_what_cannot_be_explained_is_refused(place: Place, words: tuple[str, ...]) -> None:
    refused(place.type("policy", "explain", *words))


# --- audit ---------------------------------------------------------------------------------------------------


def test_an_empty_home_has_nothing_to_show_and_is_not_created(place: Place) -> None:
    ended = place.type("policy", "audit")
    assert (ended.code, ended.err) == (0, "")
    assert "0 runs, 0 calls" in ended.out
    told = place.type("policy", "audit", "--format", "json").json
    assert (told["runs"], told["calls"], told["tools"]) == (0, 0, [])
    assert not place.home.exists()


def test_the_ledgers_of_all_runs_are_counted(project: Place) -> None:
    user_policy(project, ASKED + 'decision = "allow"\n')
    calls = [
        {"call": {"tool": "strange", "input": {"a": number % 2, "b": "same|x"}, "run": "true"}} for number in range(3)
    ]
    shell = {"call": {"tool": "Bash", "input": {"command": "ls && frobnicate --now; frobnicate"}, "run": "true"}}
    torn = {"call": {"tool": "Bash", "input": {"command": "echo $(frobnicate"}, "run": "true"}}
    assert project.play(*calls, shell, torn, SEND, SEND).code == 0
    assert project.play(*calls).code == 0
    told = project.type("policy", "audit", "--json").json
    assert (told["runs"], told["calls"], told["unread"]) == (2, 10, 1)
    tools = {tool["tool"]: tool for tool in told["tools"]}
    strange = tools["strange"]
    assert (strange["calls"], strange["unknown"], strange["inputs"], strange["repeated"]) == (6, 6, 2, 2)
    assert strange["fields"] == {"a": 2, "b": 1}
    assert json.loads(strange["example"])["b"] == "same|x"
    assert told["programs"] == {"frobnicate": 2}
    assert told["default"] == {"allow": 8}
    mail = next(rule for rule in told["rules"] if rule["rule"] == "mail")
    assert (mail["calls"], mail["allowed"], mail["stored"], mail["denied"]) == (2, 1, 1, 0)
    page = project.type("policy", "audit").out
    assert "| strange | 6 | 6 |" in page
    assert "| frobnicate | 2 |" in page
    assert "same\\|x" in page
    assert project.type("policy", "audit", "--since", "2100-01-01", "--json").json["runs"] == 0
    refused(project.type("policy", "audit", "--since", "whenever"))


def test_asked_and_denied_are_counted(project: Place) -> None:
    user_policy(project, ASKED)
    assert project.play(SEND).code == 14
    rules = {rule["rule"]: rule for rule in project.type("policy", "audit", "--json").json["rules"]}
    assert (rules["mail"]["asked"], rules["mail"]["calls"]) == (1, 1)


def test_a_built_in_rule_is_agreed_to_by_its_name(place: Place) -> None:
    push = {"call": {"tool": "Bash", "input": {"command": "git push && ls"}, "run": "true"}}
    assert place.play(push).code == 14
    assert place.play(push, words=("--allow", "git.push=any")).code == 0
    force = {"call": {"tool": "Bash", "input": {"command": "git push --force"}, "run": ["touch", "ran"]}}
    place.play(force, words=("--allow", "effects"))
    assert not (place.repository / "ran").exists()
    assert "rule 'git.push.force' denies" in refused(place.play(force, words=("--allow", "git.push.force")))


@pytest.mark.parametrize(
    ("command", "flags"),
    [("git push && npm publish", "--allow git.push --allow npm.publish"), ("ls", ""), ("git push --force", "")],
)
def test_explain_says_how_to_agree_in_advance(place: Place, command: str, flags: str) -> None:
    assert place.type("policy", "explain", "--json", "--command", command).json["agree"] == flags
