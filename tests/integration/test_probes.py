"""Probes, run for real: GitHub by a program that answers as gh does, files, requests with a key, and shell commands."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from jackline.clock import boot_ms
from jackline.domain.spec import Spec
from jackline.domain.states import CallClass, ReasonCode, Replay
from jackline.engine import probes
from jackline.engine.probes.findings import DID_NOT
from jackline.engine.probes.prober import Prober
from jackline.engine.process import Warden, WardenLost
from jackline.policy.rules import NAME_SEPARATOR, Rule
from tests.support.probing import AT, Doubt

# It knows the flags that gh's manual has for `pr list` and `issue list`, and refuses any other.
GH = """\
#!{python}
import json, os, sys
place = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(place, "asked"), "a") as file:
    told = {{"argv": sys.argv[1:], "prompt": os.environ.get("GH_PROMPT_DISABLED"), "cwd": os.getcwd()}}
    file.write(json.dumps(told) + "\\n")
with open(os.path.join(place, "world.json")) as file:
    world = json.load(file)
if "fails" in world:
    print(world["fails"], file=sys.stderr)
    sys.exit(world["code"])
if "says" in world:
    print(world["says"])
    sys.exit(0)
kind, verb, *words = sys.argv[1:]
assert kind in ("pr", "issue") and verb == "list", sys.argv
flags = dict(zip(words[::2], words[1::2]))
known = {{"--state", "--limit", "--json", "--repo"}} | ({{"--head", "--base"}} if kind == "pr" else set())
assert set(flags) <= known, flags
rows = [row for row in world[kind] if flags.get("--head") in (None, row.get("headRefName"))]
fields = flags["--json"].split(",")
print(json.dumps([{{name: row[name] for name in fields}} for row in rows[: int(flags["--limit"])]]))
"""


@pytest.fixture(scope="module")
def warden() -> Iterator[Warden]:
    with Warden.start(deadline_ms=boot_ms() + 600_000, marker={"JACKLINE_COMMAND": "test-probes"}) as one:
        yield one


def when(offset_s: int) -> str:
    return datetime.fromtimestamp(AT / 1000 + offset_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class GitHub:
    """The program on the PATH, and what it knows."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        (self.bin / "gh").write_text(GH.format(python=sys.executable))
        (self.bin / "gh").chmod(0o755)
        self.env = {"PATH": f"{self.bin}:{os.environ['PATH']}", "HOME": str(folder)}

    def knows(self, **world: Any) -> None:
        (self.bin / "world.json").write_text(json.dumps({"pr": [], "issue": [], **world}))

    def asked(self) -> dict[str, Any]:
        lines = (self.bin / "asked").read_text().splitlines()
        last: dict[str, Any] = json.loads(lines[-1])
        return last


def pull_request(number: int, offset_s: int, **more: str) -> dict[str, object]:
    return {
        "url": f"https://github.com/o/r/pull/{number}", "number": number, "headRefName": "topic",
        "baseRefName": "main", "headRefOid": "abc", "state": "OPEN", "createdAt": when(offset_s), **more,
    }  # fmt: skip


def issue(number: int, offset_s: int, title: str = "It breaks") -> dict[str, object]:
    url = f"https://github.com/o/r/issues/{number}"
    return {"url": url, "number": number, "title": title, "createdAt": when(offset_s)}


@pytest.fixture
def github(tmp_path: Path) -> GitHub:
    return GitHub(tmp_path)


@pytest.fixture
def pull_requests(github: GitHub, tmp_path: Path, warden: Warden) -> Doubt:
    return Doubt("builtin:gh-pr-create", tmp_path, github.env, warden)


@pytest.fixture
def issues(github: GitHub, tmp_path: Path, warden: Warden) -> Doubt:
    return Doubt("builtin:gh-issue-create", tmp_path, github.env, warden)


CREATE = {"command": "gh pr create --title 'A thing' --body \"-t no title\" --base main"}
TOPIC = {"git.branch": "topic", "git.commit": "abc"}


# --- pull requests ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["OPEN", "MERGED", "CLOSED"])
def test_a_pull_request_that_was_made(github: GitHub, pull_requests: Doubt, tmp_path: Path, state: str) -> None:
    github.knows(pr=[pull_request(7, 3, state=state)])
    settlement = pull_requests.judge(pull_requests.call(CREATE, TOPIC))
    assert settlement is not None
    assert (settlement.change, settlement.external_id) == ("happened", "https://github.com/o/r/pull/7")
    assert github.asked()["argv"][:8] == ["pr", "list", "--state", "all", "--limit", "100", "--head", "topic"]
    assert (github.asked()["prompt"], github.asked()["cwd"]) == ("1", str(tmp_path))


def test_no_pull_request_was_made(github: GitHub, pull_requests: Doubt) -> None:
    old = pull_request(3, -9_000, state="CLOSED")
    github.knows(pr=[old, pull_request(4, 5, baseRefName="release"), pull_request(5, 5, headRefName="other")])
    call = pull_requests.call(CREATE, TOPIC)
    assert pull_requests.found(call) == ("did_not", "no pull request of topic was made since the call")


def test_an_older_one_that_is_open_is_ours_only_if_it_is_of_our_commit(github: GitHub, pull_requests: Doubt) -> None:
    github.knows(pr=[pull_request(3, -9_000)])
    assert pull_requests.found(pull_requests.call(CREATE, TOPIC))[0] == "happened"
    change, evidence = pull_requests.found(pull_requests.call(CREATE, {"git.branch": "topic", "git.commit": "def"}))
    assert change == "doubt"
    assert "an older pull request of topic is open: https://github.com/o/r/pull/3" in evidence


@pytest.mark.parametrize(
    ("words", "head", "repository"),
    [
        ("--head other -R o/r", "other", "o/r"),
        ("--head=ada:other --repo=h/o/r", "other", "h/o/r"),
        ("-Hother", "other", None),
        ("--fill", "topic", None),
    ],
)
def test_the_branch_and_the_repository_of_the_call(
    github: GitHub, pull_requests: Doubt, words: str, head: str, repository: str | None
) -> None:
    github.knows()
    assert pull_requests.found(pull_requests.call({"command": f"gh pr create {words}"}, TOPIC))[0] == "did_not"
    argv = github.asked()["argv"]
    assert argv[argv.index("--head") + 1] == head
    assert (argv[argv.index("--repo") + 1] if "--repo" in argv else None) == repository


def test_a_tool_with_fields_instead_of_a_command(github: GitHub, pull_requests: Doubt) -> None:
    github.knows(pr=[pull_request(7, 3)])
    given = {"owner": "o", "repo": "r", "head": "topic", "base": "main", "title": "A thing"}
    assert pull_requests.found(pull_requests.call(given))[0] == "happened"
    assert github.asked()["argv"][-2:] == ["--repo", "o/r"]


@pytest.mark.parametrize(
    "world",
    [
        {"fails": "To get started with GitHub CLI, please run:  gh auth login", "code": 4},
        {"fails": "error connecting to api.github.com", "code": 1},
        {"says": "no JSON"},
        {"says": '{"a": 1}'},
        {"says": "[1, 2]"},
    ],
)
def test_a_github_that_cannot_be_asked_is_shown(github: GitHub, pull_requests: Doubt, world: dict[str, Any]) -> None:
    github.knows(**world)
    change, evidence = pull_requests.found(pull_requests.call(CREATE, TOPIC))
    assert change == "doubt"
    assert world.get("fails", "invalid output") in evidence


def test_without_the_program(tmp_path: Path, warden: Warden) -> None:
    doubt = Doubt("builtin:gh-pr-create", tmp_path, {"PATH": str(tmp_path)}, warden)
    change, evidence = doubt.found(doubt.call(CREATE, TOPIC))
    assert change == "doubt"
    assert "gh" in evidence


@pytest.mark.parametrize(
    "command",
    [
        "gh pr create --head $X",
        "gh pr list",
        "gh pr create; gh pr create",
        "echo 'unfinished",
        "GH_REPO=a/b gh pr create",
    ],
)
def test_a_command_that_does_not_tell_its_pull_request(github: GitHub, pull_requests: Doubt, command: str) -> None:
    github.knows()
    assert pull_requests.found(pull_requests.call({"command": command}, TOPIC))[0] == "doubt"


def test_without_a_branch_nobody_knows(github: GitHub, pull_requests: Doubt) -> None:
    github.knows()
    assert pull_requests.found(pull_requests.call(CREATE))[0] == "doubt"


# --- issues ----------------------------------------------------------------------------------------------------

BREAKS = {"command": "gh issue create --title 'It breaks' --body 'badly'"}


def test_an_issue_is_known_by_its_title_and_its_time(github: GitHub, issues: Doubt) -> None:
    github.knows(issue=[issue(9, 60, "Another"), issue(8, 30), issue(2, -100_000)])
    assert issues.found(issues.call(BREAKS)) == ("happened", f"https://github.com/o/r/issues/8 was made at {when(30)}")
    github.knows(issue=[issue(9, 60, "Another"), issue(2, -100_000)])
    assert issues.found(issues.call(BREAKS))[0] == "did_not"


def test_among_too_many_issues_nobody_knows(github: GitHub, issues: Doubt) -> None:
    github.knows(issue=[issue(number, 60, "Another") for number in range(150)])
    assert issues.found(issues.call(BREAKS))[0] == "doubt"


@pytest.mark.parametrize("command", ["gh issue create --body x", 'gh issue create -t "$(date)"'])
def test_an_issue_without_a_known_title(github: GitHub, issues: Doubt, command: str) -> None:
    github.knows()
    assert issues.found(issues.call({"command": command}))[0] == "doubt"


def test_a_title_with_a_secret_cannot_be_compared(github: GitHub, issues: Doubt) -> None:
    github.knows()
    change, evidence = issues.found(issues.call({"command": "gh issue create -t 'token [redacted] leaks'"}))
    assert change == "doubt"
    assert "has a secret" in evidence


# --- files -----------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path, warden: Warden) -> Doubt:
    return Doubt("builtin:file", tmp_path, {}, warden)


@pytest.mark.parametrize(
    ("before", "change"),
    [("one\ntwo\n", "happened"), ("one\r\ntwo\r\n", "happened"), ("one\n", "did_not"), (None, "did_not")],
)
def test_a_file_that_was_to_be_written(files: Doubt, tmp_path: Path, before: str | None, change: str) -> None:
    if before is not None:
        (tmp_path / "a.txt").write_bytes(before.encode())
    assert files.found(files.call({"file_path": "a.txt", "content": "one\ntwo\n"}))[0] == change
    assert files.found(files.call({"filePath": str(tmp_path / "a.txt"), "content": "one\ntwo\n"}))[0] == change


@pytest.mark.parametrize(
    ("text", "old", "new", "change"),
    [
        ("a NEW b", "OLD", "NEW", "happened"),
        ("a OLD b", "OLD", "NEW", "did_not"),
        ("OLD NEW", "OLD", "NEW", "doubt"),
        ("neither", "OLD", "NEW", "doubt"),
        ("line\nmore", "line", "line\nmore", "happened"),  # only adds: the old text is still there
        ("line\n", "line", "line\nmore", "did_not"),
        ("long", "long word", "long", "happened"),  # only takes away: the new text was there before
        ("long word", "long word", "long", "did_not"),
        ("kept", "gone", "", "happened"),
        ("kept gone", "gone", "", "did_not"),
        ("made", "", "made", "happened"),
    ],
)
def test_an_edit(files: Doubt, tmp_path: Path, text: str, old: str, new: str, change: str) -> None:
    (tmp_path / "a.txt").write_text(text)
    given = {"file_path": "a.txt", "old_string": old, "new_string": new}
    assert files.found(files.call(given))[0] == change


def test_several_edits_are_all_there_or_none_is(files: Doubt, tmp_path: Path) -> None:
    given = {
        "file_path": "a",
        "edits": [{"old_string": "a", "new_string": "x"}, {"old_string": "b", "new_string": "y"}],
    }
    for text, change in (("x y", "happened"), ("a b", "did_not"), ("x b", "doubt")):
        (tmp_path / "a").write_text(text)
        assert files.found(files.call(given))[0] == change


@pytest.mark.parametrize(
    "given",
    [
        {},
        [],
        "text",
        {"file_path": "a"},
        {"content": "x"},
        {"file_path": "a", "old_string": "x"},
        {"file_path": "a\0b", "content": "x"},
    ],
)
def test_an_input_that_tells_nothing(files: Doubt, tmp_path: Path, given: object) -> None:
    (tmp_path / "a").write_text("x")
    assert files.found(files.call(given))[0] == "doubt"


def test_an_edit_of_a_file_that_is_not_there(files: Doubt) -> None:
    assert files.found(files.call({"file_path": "a", "old_string": "x", "new_string": "y"}))[0] == "doubt"


def test_a_pipe_is_not_read(files: Doubt, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert files.found(files.call({"file_path": "pipe", "content": "x"}))[0] == "doubt"


def test_a_long_input_is_compared_whole(files: Doubt, tmp_path: Path) -> None:
    whole = json.dumps({"file_path": "a", "content": "x" * 100_000})
    (tmp_path / "a").write_text("x" * 100_000)
    call = files.call({})._replace(input=whole[:4_000], input_ref="the-digest")
    assert files.found(call)[0] == "doubt"
    assert files.found(call, whole=lambda one: whole)[0] == "happened"


def test_a_content_with_a_secret_cannot_be_compared(files: Doubt, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("KEY=sesame")
    assert files.found(files.call({"file_path": "a", "content": "KEY=[redacted]"}))[0] == "doubt"


# --- requests --------------------------------------------------------------------------------------------------


@pytest.fixture
def requests(tmp_path: Path, warden: Warden) -> Doubt:
    return Doubt("builtin:http", tmp_path, {}, warden)


@pytest.mark.parametrize(
    "command",
    [
        "curl -X POST -H 'Idempotency-Key: 7f3a' https://api.example.org/charges -d amount=5",
        "curl --header='x-idempotency-key:7f3a' https://api.example.org/charges -d @body",
        "curl -sS -H'Idempotency-Key: 7f3a' -H \"Authorization: Bearer $TOKEN\" https://api.example.org | tail -1",
        "http POST api.example.org/charges Idempotency-Key:7f3a amount=5",
        "wget --header 'Idempotency-Key: 7f3a' --post-data x https://api.example.org",
    ],
)
def test_a_request_with_its_key_may_be_sent_again(requests: Doubt, command: str) -> None:
    change, evidence = requests.found(requests.call({"command": command}))
    assert (change, evidence) == ("did_not", "idempotent: sent again with its key (7f3a)")


@pytest.mark.parametrize(
    "command",
    [
        "curl -X POST https://api.example.org -d x",
        "curl -H 'Idempotency-Key: '$(uuidgen) https://api.example.org -d x",
        'curl -H "Idempotency-Key: $KEY" https://api.example.org -d x',
        "curl -H 'Idempotency-Key:' https://api.example.org -d x",
        "curl -H 'X-Request-Id: 7f3a' https://api.example.org -d x",
        "curl -H 'Idempotency-Key: 1' https://a.example -d x; curl https://b.example -d y",
        "python send.py 'Idempotency-Key: 1'",
        "curl 'unfinished",
    ],
)
def test_any_other_request_is_asked_about(requests: Doubt, command: str) -> None:
    assert requests.found(requests.call({"command": command}))[0] == "doubt"


def test_headers_of_a_tool(requests: Doubt) -> None:
    assert requests.found(requests.call({"url": "x", "headers": {"Idempotency-Key": "1"}}))[0] == "did_not"
    assert requests.found(requests.call({"url": "x", "headers": ["Idempotency-Key: 1"]}))[0] == "did_not"
    assert requests.found(requests.call({"url": "x", "headers": "Idempotency-Key: 1"}))[0] == "doubt"
    assert requests.found(requests.call({"url": "x"}))[0] == "doubt"


# --- shell commands --------------------------------------------------------------------------------------------


def shell(probe: str, folder: Path, warden: Warden, **rule: Any) -> Doubt:
    return Doubt(probe, folder, {"PATH": os.environ["PATH"]}, warden, **rule)


@pytest.mark.parametrize(("code", "change"), [(0, "happened"), (1, "did_not"), (2, "doubt"), (127, "doubt")])
def test_the_exit_decides(tmp_path: Path, warden: Warden, code: int, change: str) -> None:
    doubt = shell(f"echo msg-1; echo more; echo oops >&2; exit {code}", tmp_path, warden)
    settlement = doubt.judge(doubt.call({"to": "ada"}))
    assert settlement is not None
    assert (settlement.change, settlement.origin) == (change, "probe")
    if change == "doubt":
        assert f"exit {code}: oops" in settlement.reason
        assert (settlement.output, settlement.external_id) == ("", "")  # the call keeps its own
    else:
        assert (settlement.output, settlement.external_id) == ("msg-1\nmore", "msg-1")
        assert settlement.reason.endswith(f"(exit {code})")


def test_it_gets_the_call_as_json(tmp_path: Path, warden: Warden) -> None:
    doubt = shell("cat > asked; echo $JACKLINE_CALL_ID $JACKLINE_CALL_KEY", tmp_path, warden)
    assert doubt.found(doubt.call({"to": "ada"}, {"git.commit": "abc"})) == ("happened", "c1 the-key")
    assert json.loads((tmp_path / "asked").read_text()) == {
        "call": "c1",
        "tool": "Bash",
        "input": {"to": "ada"},
        "target": "the-target",
        "key": "the-key",
        "rule": "the-rule",
        "external": {"git.commit": "abc"},
    }


def test_one_that_hangs_is_given_up_and_ended(tmp_path: Path, warden: Warden) -> None:
    doubt = shell("echo looking >&2; echo $$ > pid; exec sleep 600", tmp_path, warden)
    doubt.timeout_s = 3.0
    change, evidence = doubt.found(doubt.call({}))
    assert change == "doubt"
    assert "no answer within 3 s: looking" in evidence
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_one_that_is_killed(tmp_path: Path, warden: Warden) -> None:
    doubt = shell("echo half; kill -9 $$", tmp_path, warden)
    change, evidence = doubt.found(doubt.call({}))
    assert change == "doubt"
    assert f"killed by signal {signal.SIGKILL.value}: half" in evidence


def test_one_that_cannot_be_run(tmp_path: Path, warden: Warden) -> None:
    doubt = shell("true", tmp_path / "nowhere", warden)
    change, evidence = doubt.found(doubt.call({}))
    assert change == "doubt"
    assert "it could not be started" in evidence


def test_one_whose_warden_is_gone_runs_below_a_new_one(tmp_path: Path, warden: Warden) -> None:
    """A warden that reached its deadline while its supervisor was suspended says nothing about the call."""
    doubt, lost = shell("exit 1", tmp_path, warden), [WardenLost("its deadline has passed")]

    def find_warden() -> Warden:
        if lost:
            raise lost.pop()
        return warden

    spec = Spec("do it", str(tmp_path), rules=doubt.rules)
    settled = Prober(spec, doubt.env, 30.0, find_warden).probe_call(doubt.call({}), AT + 1)
    assert settled is not None
    assert settled.change == DID_NOT


def test_one_that_never_reads_and_says_too_much(tmp_path: Path, warden: Warden) -> None:
    doubt = shell("yes | head -c 3000000; exit 3", tmp_path, warden)
    settlement = doubt.judge(doubt.call({"text": "x" * 3_000_000}))
    assert settlement is not None
    assert settlement.change == "doubt"
    assert len(settlement.reason) <= 2_000


def test_one_that_nobody_waits_for_any_more_is_ended_and_proves_nothing(tmp_path: Path, warden: Warden) -> None:
    """Also where it had begun with several rules, and the first of them has its answer already."""
    doubt = shell("touch first; exit 0", tmp_path, warden)
    other = Rule("other", "Bash", CallClass.EFFECT, probe="touch second; exec >&- 2>&-; sleep 600")
    doubt.rules = (doubt.rule, other, other._replace(name="third", probe="touch third"))
    call = doubt.call({}, rule=f"the-rule{NAME_SEPARATOR}other{NAME_SEPARATOR}third")
    assert doubt.judge(call, wanted=lambda: not (tmp_path / "second").exists()) is None
    assert {path.name for path in tmp_path.iterdir()} == {"first", "second"}


# --- rules -----------------------------------------------------------------------------------------------------


def test_a_rule_without_a_probe(tmp_path: Path, warden: Warden) -> None:
    doubt = shell("", tmp_path, warden)
    assert doubt.judge(doubt.call({})) is None
    again = shell("", tmp_path, warden, replay=Replay.IDEMPOTENT)
    settlement = again.judge(again.call({}))
    assert settlement is not None
    assert (settlement.change, settlement.origin) == ("did_not", "rule")
    assert settlement.reason == "idempotent: sent again with its key"


def test_what_is_harmless_to_send_again_needs_no_person_where_the_probe_does_not_know(
    tmp_path: Path, warden: Warden
) -> None:
    doubt = shell("echo nobody there >&2; exit 9", tmp_path, warden, replay=Replay.IDEMPOTENT)
    change, evidence = doubt.found(doubt.call({}))
    assert change == "did_not"
    assert evidence.startswith("idempotent: sent again with its key; exit 9: nobody there")
    known = shell("exit 0", tmp_path, warden, replay=Replay.IDEMPOTENT)
    assert known.found(known.call({}))[0] == "happened"


def test_what_is_to_be_sent_again_says_so_whatever_its_parts_found(tmp_path: Path, warden: Warden) -> None:
    """The ledger knows by its code that the agent has to make the call again."""
    doubt = shell("exit 9", tmp_path, warden, replay=Replay.IDEMPOTENT)
    doubt.rules = (doubt.rule, Rule("other", "Bash", CallClass.EFFECT, probe="echo not there; exit 1"))
    for rule in ("the-rule", f"the-rule{NAME_SEPARATOR}other"):
        settlement = doubt.judge(doubt.call({}, rule=rule))
        assert settlement is not None
        assert (settlement.change, settlement.origin) == ("did_not", "probe")
        assert settlement.reason_code == ReasonCode.SEND_AGAIN
        assert "idempotent: sent again with its key; " in settlement.reason


def test_a_built_in_probe_that_this_version_does_not_have(tmp_path: Path, warden: Warden) -> None:
    doubt = shell("builtin:fax", tmp_path, warden)
    assert "this version has no such probe" in doubt.found(doubt.call({}))[1]


@pytest.mark.parametrize(
    ("first", "second", "change"), [(0, 0, "happened"), (1, 1, "did_not"), (0, 1, "doubt"), (0, 2, "doubt")]
)
def test_several_rules_in_one_call(tmp_path: Path, warden: Warden, first: int, second: int, change: str) -> None:
    doubt = shell(f"echo one; exit {first}", tmp_path, warden)
    doubt.rules = (doubt.rule, Rule("other", "Bash", CallClass.EFFECT, probe=f"echo two; exit {second}"))
    for name in (f"the-rule{NAME_SEPARATOR}other", f"the-rule{NAME_SEPARATOR}other{NAME_SEPARATOR}read"):
        assert doubt.found(doubt.call({}, rule=name))[0] == change


def test_a_part_that_nobody_can_probe_leaves_the_whole_in_doubt(tmp_path: Path, warden: Warden) -> None:
    doubt = shell("exit 0", tmp_path, warden)
    assert doubt.found(doubt.call({}, rule=f"the-rule{NAME_SEPARATOR}others"))[0] == "doubt"


def test_a_project_that_nobody_trusts_has_no_program_run(tmp_path: Path, warden: Warden) -> None:
    doubt = shell("exit 0", tmp_path, warden)
    theirs = Rule("theirs", "Bash", CallClass.EFFECT, probe="touch witness; exit 1", tightens=True)
    doubt.rules = (doubt.rule, theirs)
    assert doubt.found(doubt.call({}, rule=f"the-rule{NAME_SEPARATOR}theirs"))[0] == "happened"
    assert doubt.judge(doubt.call({}, rule="theirs")) is None
    assert not (tmp_path / "witness").exists()


def test_every_probe_can_be_loaded_and_says_what_it_wants() -> None:
    assert all(probes.load_probe(f"builtin:{name}") is not None for name in probes.PROBES)
    assert "git.commit" in probes.find_wanted_inputs("builtin:git-push")
    assert (
        probes.find_wanted_inputs("builtin:fax")
        == probes.find_wanted_inputs("git-push")
        == probes.find_wanted_inputs("")
        == frozenset()
    )
