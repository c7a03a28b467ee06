"""Judging a call: which rule, which fields, which ingredients, and why, in words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackline.domain.states import CallClass, Decision, Replay
from jackline.policy import rule_lookup
from jackline.policy.call_context import CallContext
from jackline.policy.classify import Classification, classify_call
from jackline.policy.rules import Rule

UNHURRIED = settings(deadline=None)
WORKSPACE = "/home/dev/project"
WHERE = CallContext(WORKSPACE, WORKSPACE)
PATCH = "*** Begin Patch\n*** {0}: {1}\n*** End Patch\n"


def shell(command: str, *rules: Rule, where: CallContext = WHERE, tool: str = "Bash") -> Classification:
    return classify_call(rules, tool, {"command": command}, where)


def told(judgement: Classification) -> tuple[str, str, str]:
    rule = judgement.rule
    return rule.name, str(rule.call_class), str(rule.decision)


# --- which text a shell would read


@pytest.mark.parametrize(
    ("tool", "given_"),
    [
        ("Bash", {"command": "git push"}),
        ("bash", {"command": "git push"}),
        ("shell", {"command": ["bash", "-lc", "git push"]}),
        ("shell", {"command": ["git", "push"]}),
        ("local_shell", {"cmd": "git push"}),
        ("exec_command", {"cmd": "git push", "yield_time_ms": 1}),
        ("run_shell_command", {"command": "git push", "description": "x"}),
        ("execute_command", {"script": "git push"}),
        ("run_terminal_cmd", {"command": "git push"}),
        ("background_process", {"action": "start", "command": "git push"}),
        ("shell", "git push"),
        ("tool_call", {"name": "run_shell_command", "arguments": {"command": "git push"}}),
    ],
)
def test_every_shell_is_judged_by_its_command(tool: str, given_: Any) -> None:
    assert classify_call((), tool, given_, WHERE).rule.name == "git.push"


@pytest.mark.parametrize("given_", [{}, {"command": 1}, {"command": []}, {"command": [1]}, None, [], {"cmd": None}])
def test_a_shell_without_a_command_is_unknown(given_: Any) -> None:
    judged = classify_call((), "Bash", given_, WHERE)
    assert judged.rule.call_class is CallClass.UNKNOWN
    assert judged.mistake


@pytest.mark.parametrize("tool", ["exec_command", "Bash", "shell"])
@pytest.mark.parametrize("names", [("command", "cmd"), ("cmd", "command"), ("script", "command")])
def test_a_harmless_field_beside_the_command_hides_nothing(tool: str, names: tuple[str, str]) -> None:
    """Which of the two a tool runs, only the tool knows."""
    harmless, other = names
    assert classify_call((), tool, {harmless: "ls", other: "git push"}, WHERE).rule.name == "git.push"
    assert classify_call((), tool, {harmless: "git push", other: "git push"}, WHERE).rule.name == "git.push"


@pytest.mark.parametrize("names", [("workdir", "directory"), ("directory", "workdir"), ("cwd", "dir_path")])
def test_of_two_folders_the_one_outside_counts(names: tuple[str, str]) -> None:
    given_ = {"command": "rm -rf x", names[0]: WORKSPACE, names[1]: "/srv"}
    assert classify_call((), "run_shell_command", given_, WHERE).rule.name == "outside.delete"
    inside = {"command": "rm -rf x", names[0]: WORKSPACE, names[1]: f"{WORKSPACE}/sub"}
    assert classify_call((), "run_shell_command", inside, WHERE).rule.name == "local.rm"


def test_another_tool_with_a_command_is_no_shell() -> None:
    assert classify_call((), "explain", {"command": "git push"}, WHERE).rule is rule_lookup.UNMATCHED


def test_what_cannot_be_parsed_is_unknown_and_says_so() -> None:
    judged = shell("git push 'unfinished")
    assert told(judged) == ("unparsed", "unknown", "allow")
    assert "cannot be parsed with certainty" in judged.matches[0].why


# --- the strictest of all commands


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("ls; cat x", "read"),
        ("ls; touch x", "local"),
        ("touch x; ./y", "unknown"),
        ("./y; touch x; ls", "unknown"),
        ("ls; ./y; git push; touch x", "effect"),
    ],
)
def test_the_strictest_class_counts(command: str, kind: str) -> None:
    assert str(shell(command).rule.call_class) == kind


def test_two_effects_are_one_call_with_the_whole_command_as_its_key() -> None:
    judged = shell("git push && gh pr create --fill")
    assert told(judged) == ("git.push + gh.pr.create", "effect", "ask")
    assert judged.rule.key[:2] == ("command", "folder")
    assert {"git.commit", "git.branch"} <= set(judged.rule.key)
    assert {"git.commit", "git.branch"} <= judged.host_inputs
    assert (judged.rule.probe, judged.rule.replay, judged.rule.target) == ("", Replay.ASK, "")


def test_one_denied_effect_denies_all_of_them() -> None:
    judged = shell("curl -X POST https://x.y; git push --force; ls")
    assert told(judged) == ("http.send + git.push.force", "effect", "deny")
    assert "without --force" in judged.rule.hint


def test_a_stricter_decision_counts_whatever_the_class_it_comes_with() -> None:
    careful = Rule("look", "", CallClass.READ, Replay.EXACT, Decision.DENY, command=("cat",), hint="no", layer="user")
    assert told(shell("cat x | ./y", careful)) == ("unmatched + look", "unknown", "deny")
    assert told(shell("cat x; git push", careful)) == ("git.push + look", "effect", "deny")
    assert rule_lookup.find_rule((careful,), "git.push + look").decision is Decision.DENY


@pytest.mark.parametrize(
    "command",
    ["git push", "cd . && git push 2>&1 | tail -3", "git push > push.log", "git status; git push; git log -1"],
)
def test_an_effect_among_reads_keeps_its_probe_and_its_key(command: str) -> None:
    rule = shell(command).rule
    assert (rule.name, rule.probe) == ("git.push", "builtin:git-push")
    assert "command" not in rule.key


@pytest.mark.parametrize(
    "command",
    [
        "git commit -am x && git push",
        "./build.sh; git push",
        "git push origin a; git push origin b",
        "git push origin $BRANCH",
        "echo main | xargs git push origin",
        "cd $DIR && git push",
        "GIT_DIR=/x git push",
        "git --git-dir=/x/.git push",
        "$SUDO git push",
        "echo x > body && git push",
    ],
)
def test_what_nobody_can_tell_beforehand_has_the_whole_command_as_its_key(command: str) -> None:
    """The commit that is to be pushed may not exist yet."""
    rule = shell(command).rule
    assert (rule.name, rule.probe, rule.replay) == ("git.push + others", "builtin:git-push", Replay.ASK)
    assert rule.key[:2] == ("command", "folder")
    again = rule_lookup.find_rule((), rule.name)
    assert (again.probe, again.replay, again.call_class) == (rule.probe, Replay.ASK, CallClass.EFFECT)


def test_a_probe_of_a_rule_of_ones_own_speaks_for_its_command_alone() -> None:
    own = DEPLOY._replace(probe="./probe", replay=Replay.IDEMPOTENT, nothing_happened=(64,))
    assert shell("acme deploy", own).rule.probe == "./probe"
    beside = shell("acme deploy | cat", own).rule
    assert (beside.name, beside.probe, beside.nothing_happened) == ("deploy + read", "./probe", ())
    mixed = shell("./x; acme deploy", own).rule
    assert (mixed.name, mixed.probe, mixed.replay) == ("deploy + others", "", Replay.ASK)
    for rule in (beside, mixed):
        again = rule_lookup.find_rule((own,), rule.name)
        assert (again.probe, again.replay, again.nothing_happened) == (rule.probe, rule.replay, ())


def test_what_an_effect_sends_may_come_from_the_command_before_it() -> None:
    one, other = shell("echo a | mail -s x bob@b.c"), shell("echo b | mail -s x bob@b.c")
    assert one.rule.name == other.rule.name == "mail.send"
    assert (one.fields["stdin"], other.fields["stdin"]) == ("a", "b")
    assert not any(part.unclear for part in (*one.effects, *other.effects))
    assert shell("fortune | mail -s x bob@b.c").effects[0].unclear == "its input comes from another program"


# --- own rules


DEPLOY = Rule("deploy", "", CallClass.EFFECT, Replay.ASK, Decision.ALLOW, command=("acme", "deploy"), layer="run")


@pytest.mark.parametrize(
    "command",
    ["acme deploy", "acme -v deploy", "acme --to x deploy", "sudo acme deploy", "/opt/acme deploy", "$X acme deploy"],
)
def test_an_own_effect_is_found_behind_flags_that_nobody_knows(command: str) -> None:
    assert "deploy" in shell(command, DEPLOY).rule.name


@pytest.mark.parametrize("command", ["acme plan", "acme plan deploy-all", "echo acme deploy", "deploy", "acmedeploy"])
def test_an_own_effect_is_not_found_where_it_is_not(command: str) -> None:
    assert "deploy" not in shell(command, DEPLOY).rule.name


def test_an_own_read_has_to_fit_without_a_doubt() -> None:
    look = Rule("look", "", CallClass.READ, Replay.EXACT, command=("acme", "show"), lacking=("--fix",), layer="run")
    assert shell("acme show all", look).rule is look
    for command in ("acme --to show deploy", "acme show --fix", "acme show $X", "./acme show", "PATH=. acme show"):
        assert shell(command, look).rule is rule_lookup.UNMATCHED, command


def test_a_call_is_insisted_on_if_one_of_its_commands_is() -> None:
    exact = Rule("build", "", CallClass.LOCAL, Replay.EXACT, command=("acme", "build"), layer="user")
    assert shell("mkdir -p out && acme build", exact).rule.replay is Replay.EXACT
    assert shell("mkdir -p out", exact).rule.replay is Replay.REPORT
    assert shell("acme build && git push", exact).rule.replay is Replay.ASK


def test_flags_choose_between_rules_in_the_order_of_the_file() -> None:
    live = DEPLOY._replace(name="live", having=("--live", "-l"), decision=Decision.DENY)
    dry = DEPLOY._replace(name="dry", call_class=CallClass.READ, having=("--dry-run",))
    rules = (live, dry, DEPLOY)
    assert shell("acme deploy --live=yes", *rules).rule.name == "live"
    assert shell("acme deploy -xl", *rules).rule.name == "live"
    assert shell("acme deploy --dry-run", *rules).rule is dry
    assert shell("acme deploy --dry-run --live", *rules).rule.name == "live"
    assert shell("acme deploy", *rules).rule.name == "deploy"


def test_a_rule_for_a_whole_shell_speaks_for_each_of_its_commands() -> None:
    whole = Rule("whole", "Bash", CallClass.EFFECT, Replay.ASK, Decision.DENY, layer="user")
    for command in ("ls", "git push", "x", "", "A=1", "'unfinished"):
        assert shell(command, whole).rule.decision is Decision.DENY, command
    assert shell("ls", whole, tool="shell").rule.name == "read.ls"


def test_a_command_of_a_rule_for_one_shell_is_not_one_of_another() -> None:
    only = DEPLOY._replace(tool="bash")
    assert shell("acme deploy", only, tool="bash").rule.name == "deploy"
    assert shell("acme deploy", only).rule is rule_lookup.UNMATCHED


def test_the_layers_own_rule_comes_before_the_built_in_one_but_opens_no_foreign_file() -> None:
    own = Rule("push", "", CallClass.LOCAL, Replay.EXACT, command=("git", "push"), layer="user")
    assert shell("git push --force", own).rule is own
    assert told(shell("git push > /etc/x", own)) == ("outside.write + others", "effect", "ask")


def test_a_project_that_nobody_trusts_only_tightens_commands() -> None:
    loose = DEPLOY._replace(name="loose", command=("git", "push"), layer="project", tightens=True)
    assert shell("git push", loose).rule.name == "git.push"
    tight = loose._replace(name="tight", decision=Decision.DENY, hint="ask first")
    judged = shell("git push", tight)
    assert told(judged) == ("git.push + tight", "effect", "deny")
    assert "tightened by" in judged.matches[0].why
    reads = tight._replace(command=("cat",), decision=Decision.ASK, probe="x", replay=Replay.IDEMPOTENT, key=("a",))
    rule = shell("cat x", reads).rule
    assert (rule.call_class, rule.decision, rule.probe, rule.replay) == (CallClass.EFFECT, Decision.ASK, "", Replay.ASK)
    assert "a" not in rule.key


# --- fields and ingredients


def test_the_fields_of_a_command() -> None:
    judged = shell("git push -uo ci.skip --signed=yes origin -- main")
    assert judged.fields == {
        "program": "git", "arguments": ["push", "-uo", "ci.skip", "--signed=yes", "origin", "--", "main"],
        "1": "origin", "2": "main", "words": "origin\nmain", "-u": True, "-uo": True, "-o": "ci.skip",
        "--signed": "yes",
        "command": "git push -uo ci.skip --signed=yes origin -- main", "folder": ".",
    }  # fmt: skip


def test_a_flag_that_a_rule_names_takes_a_value() -> None:
    rule = DEPLOY._replace(key=("--to", "1"), target="{--to|-t|}:{1}")
    assert shell("acme deploy --to live web", rule).fields["1"] == "web"
    assert shell("acme deploy --on live web", rule).fields["1"] == "live"


def test_what_is_fed_to_a_command_is_a_field() -> None:
    assert shell("mail bob <<< hello").fields["stdin"].strip() == "hello"
    assert shell("mail bob < body.txt").fields["<"] == "body.txt"
    assert shell("mail bob < body.txt").host_inputs == {"file:<"}
    judged = shell("curl -F a=@x.bin -d @y.json https://h/p")
    assert (judged.fields["@"], judged.fields["url"]) == ("x.bin\ny.json", "https://h/p")
    assert "file:@" in judged.host_inputs


@pytest.mark.parametrize(
    ("command", "name", "value"),
    [
        ("curl -d@x https://h", "@", "x"),
        ("curl -F a=@x -F b=@y -F c=@z https://h", "@", "x\ny\nz"),
        ("curl -F 'a=<x' https://h", "@", "x"),
        ("http POST h file@x", "@", "x"),
        ("kubectl apply -f a.yaml -f b.yaml", "-f", "a.yaml\nb.yaml"),
        ("kubectl apply -fa.yaml -fb.yaml", "-f", "a.yaml\nb.yaml"),
        ("gh api x --input body.json", "--input", "body.json"),
        ("scp a b host:c", "words", "a\nb\nhost:c"),
        ("twine upload a b c", "words", "a\nb\nc"),
    ],
)
def test_every_file_that_is_sent_is_wanted(command: str, name: str, value: str) -> None:
    judged = shell(command)
    assert judged.fields[name] == value
    assert f"file:{name}" in judged.host_inputs


def test_only_ingredients_that_are_not_known_already_are_wanted() -> None:
    assert shell("git push origin main").host_inputs == {"git.commit", "git.refs", "git.url"}
    assert shell("git push").host_inputs == {"git.commit", "git.refs", "git.remote", "git.upstream", "git.url"}
    assert shell("ls").host_inputs == frozenset()
    assert shell("gh pr create --body-file b.md --head x").host_inputs == {"git.branch", "file:--body-file"}


@pytest.mark.parametrize(
    ("command", "folder"),
    [
        ("git push", WORKSPACE),
        ("cd sub && git push", f"{WORKSPACE}/sub"),
        ("git -C sub -C deeper push", f"{WORKSPACE}/sub/deeper"),
        ("cd sub; git -C .. push", WORKSPACE),
        ("cd /srv/x && git push", "/srv/x"),
        ("cd $X && git push", ""),
        ("git -C $X push", ""),
        ("git --work-tree=/x push", ""),
    ],
)
def test_the_folder_in_which_ingredients_are_looked_for(command: str, folder: str) -> None:
    judged = shell(command)
    assert judged.folder == folder
    assert bool(judged.host_inputs) == bool(folder)


def test_a_shell_may_be_told_its_folder() -> None:
    judged = classify_call((), "exec_command", {"cmd": "git push", "workdir": "sub"}, WHERE)
    assert (judged.folder, judged.fields["folder"]) == (f"{WORKSPACE}/sub", "sub")
    assert classify_call((), "exec_command", {"cmd": "touch x", "workdir": "/etc"}, WHERE).rule.name == "outside.write"


# --- files


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("rm -rf build/$X", "local.rm"),
        ("rm -rf build/../../x", "outside.delete"),
        ("rm -rf build/*/../../..", "outside.delete"),
        ("rm -rf {build,dist}", "local.rm"),
        ("rm -rf {build,/etc}", "outside.delete"),
        ("rm -rf {build,.git}", "workspace.delete"),
        ("rm -rf .*", "outside.delete"),
        ("rm -rf '~'", "local.rm"),
        ("rm -rf -- -x /etc", "outside.delete"),
        ("rm -rf /home/dev", "outside.delete"),
        ("rm -rf /home/dev/project2", "outside.delete"),
        ("rm -rf /home/dev/project", "workspace.delete"),
        ("rm -rf /home/dev/project/x", "local.rm"),
        ("rm -rf $(mktemp -d)", "local.mktemp"),
        ("rm -rf /tmp/$X", "outside.delete"),
        ("rm -f .git/index.lock", "local.rm"),
        ("mv a ../b", "outside.write"),
        ("cp -t /etc a b", "outside.write"),
        ("cp --target-directory=out a b", "local.cp"),
        ("echo x 2> err.txt", "local.write"),
        ("echo x &> /srv/all.log", "outside.write"),
        ("echo x > $OUT", "inexact.write"),
        ("echo x > $TMPDIR/y", "local.write"),
        ("sort -o/etc/x y", "outside.write"),
        ("git log --output=/etc/x", "outside.write"),
        ("git worktree add ../wt", "local.git"),
        ("git worktree add /srv/wt", "outside.write"),
        ("cd $X; touch y", "inexact.write"),
        ("cd $X; rm y", "outside.delete"),
        ("cd sub && rm ../y", "local.rm"),
        ("cd sub && rm ../../y", "outside.delete"),
        ("find . -name x | xargs rm", "local.rm"),
        ("find /etc -name x | xargs rm", "outside.delete"),
        ("cat list | xargs rm", "outside.delete"),
        ("find . | xargs -I{} cp {} /etc/", "outside.write + others"),
    ],
)
def test_where_a_command_writes_and_deletes(command: str, rule: str) -> None:
    assert shell(command).rule.name == rule


@pytest.mark.parametrize(
    ("tool", "given_", "rule"),
    [
        ("Write", {"file_path": f"{WORKSPACE}/a", "content": "x"}, "builtin.Write"),
        ("Write", {"file_path": "a", "content": "x"}, "builtin.Write"),
        ("Write", {"file_path": "/tmp/a", "content": "x"}, "builtin.Write"),
        ("Write", {"file_path": "/etc/a", "content": "x"}, "outside.file"),
        ("Edit", {"file_path": "../a", "old_string": "x", "new_string": "y"}, "outside.file"),
        ("NotebookEdit", {"notebook_path": "/x/a.ipynb", "new_source": ""}, "outside.file"),
        ("write", {"filePath": "/etc/a", "content": ""}, "outside.file"),
        ("write_file", {"path": "~/a", "content": ""}, "outside.file"),
        ("replace", {"absolute_path": "/etc/a", "old_string": "", "new_string": ""}, "outside.file"),
        ("apply_patch", {"input": PATCH.format("Update File", "a")}, "builtin.apply_patch"),
        ("apply_patch", {"input": PATCH.format("Add File", "/etc/a")}, "outside.file"),
        ("apply_patch", {"input": PATCH.format("Move to", "../a")}, "outside.file"),
        ("apply_patch", {"input": PATCH.format("Delete File", "/etc/a")}, "outside.delete"),
        ("apply_patch", PATCH.format("Delete File", "a"), "builtin.apply_patch"),
        ("delete_file", {"target_file": "/etc/a"}, "outside.delete"),
        ("str_replace_based_edit_tool", {"command": "view", "path": "/etc/a"}, "builtin.str_replace_based_edit_tool"),
        ("str_replace_based_edit_tool", {"command": "create", "path": "/etc/a"}, "outside.file"),
        ("Read", {"file_path": "/etc/passwd"}, "builtin.Read"),
    ],
)
def test_where_the_file_tools_write(tool: str, given_: Any, rule: str) -> None:
    assert classify_call((), tool, given_, WHERE).rule.name == rule


def test_a_file_outside_can_be_probed_and_written_again() -> None:
    judged = classify_call((), "Write", {"file_path": "/etc/a", "content": "x"}, WHERE)
    assert (judged.rule.probe, judged.rule.replay, judged.rule.decision) == (
        "builtin:file", Replay.IDEMPOTENT, Decision.ASK,
    )  # fmt: skip
    assert judged.fields["path"] == "/etc/a"
    assert "outside the workspace" in judged.matches[0].why


def test_an_own_rule_for_a_file_tool_speaks_for_every_path() -> None:
    own = Rule("own", "Write", CallClass.LOCAL, layer="user")
    assert classify_call((own,), "Write", {"file_path": "/etc/a", "content": "x"}, WHERE).rule is own


# --- words for people


def test_each_command_says_which_rule_and_why() -> None:
    judged = shell("sudo git push | tee /etc/x; ./y; $Z")
    assert [(match.words, match.rule) for match in judged.matches] == [
        ("git push (through sudo)", "git.push"),
        ("tee /etc/x", "outside.write"),
        ("./y", "unmatched"),
        ("$Z", "unmatched"),
    ]
    assert [match.why for match in judged.matches] == [
        "the command matches 'git push' (built-in)",
        "it writes /etc/x, outside the workspace",
        "no rule matches 'y' with these arguments",
        "the program is only known at run time",
    ]


# --- robustness

SIGNS = [
    "'",
    '"',
    "$(",
    ")",
    "`",
    "|",
    "&&",
    ";",
    "\n",
    ">",
    "<",
    "<<EOF\n",
    "{",
    "}",
    "~",
    "*",
    "=",
    "\\",
    " ",
    "/",
    "..",
]
WORDS = [
    "git",
    " push",
    "-m",
    "sed ",
    "s/a/b/",
    "awk ",
    "find ",
    "-exec ",
    "xargs ",
    "curl ",
    "-d",
    "tar ",
    "rm ",
    "python -m ",
]
PIECES = st.sampled_from([*SIGNS, *WORDS])
NAMES = st.sampled_from(["command", "cmd", "path", "file_path", "name", "arguments", "x"])
JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner)
)


@UNHURRIED
@given(st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=30))
def test_whatever_the_text_there_is_a_judgement(command: str) -> None:
    judged = shell(command)
    assert rule_lookup.find_rule((), judged.rule.name).call_class is judged.rule.call_class


@UNHURRIED
@given(JSON, st.sampled_from(["Bash", "Write", "apply_patch", "tool_call", "str_replace_editor", "x"]))
def test_whatever_the_input_there_is_a_judgement(given_: Any, tool: str) -> None:
    assert classify_call((), tool, given_, WHERE).rule.name


@pytest.mark.parametrize(
    "command", ["sed '" + "s/a/b/;" * 140 + "e'", "sed '" + "a" * 900 + "}" * 90 + "'", "awk '" + "{" * 5000 + "'"]
)
def test_no_script_keeps_the_gate_busy(command: str) -> None:
    assert shell(command).rule.name


LONG = {
    "what is fed by a search": "find . | xargs rm; " * 1_500,
    "statements without an end": "sqlite3 x '" + "vacuum " * 14_000 + "'",
    "empty statements": "sqlite3 x '" + " \n" * 45_000 + "'",
    "numbers": "((" + "a" * 90_000 + "))",
    "variables": "".join(f"X{number}=1;ls;" for number in range(4_000)),
    "letters": f"awk '{'ENVIRON [' * 11_000}'",
    "paths of the workspace": f"{WORKSPACE} cd " * 500_000,
}


@pytest.mark.parametrize("command", LONG.values(), ids=LONG)
def test_a_long_command_of_one_thing_is_judged(command: str) -> None:
    """Whoever goes back over it would not live to see the end."""
    assert shell(command[:99_990] if len(command) < 1_000_000 else command).rule.name


def test_a_long_line_in_a_patch_is_read_once() -> None:
    patch = PATCH.format("Add File", "a" + " " * 300_000 + "x")
    assert classify_call((), "apply_patch", {"input": patch}, WHERE).rule.name == "builtin.apply_patch"
