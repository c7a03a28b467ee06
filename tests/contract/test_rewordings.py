"""After a crash, an effect in other words gives its stored result or asks; it is never made again."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jackline.clock import wall_ms
from jackline.domain.states import Decision
from jackline.engine.call_ledger import CallLedger, CallRequest, CallResult, GateAnswer
from jackline.engine.key_inputs import read_key_inputs
from jackline.engine.settings import new_id
from jackline.policy.classify import Classification
from jackline.policy.toml_rules import parse_policy, require_valid
from jackline.store.store import Store
from tests.conftest import SLOW_BACKENDS
from tests.support.rewordings import VARIANTS, WORDINGS, write_workspace
from tests.support.stores import AT, LEASE_MS, claimed, made, owner

pytestmark = pytest.mark.parametrize("database", SLOW_BACKENDS, indirect=True)

PLAIN = 'name = "send"\ncommand = "send"\nclass = "effect"\ndecision = "allow"\n'
RULES = {
    "plain": PLAIN,
    "key": PLAIN + 'key = ["1"]\n',
    "target": PLAIN + 'target = "message:{1}"\n',
    "both": PLAIN + 'key = ["1"]\ntarget = "message:{1}"\n',
}
# Nothing but quotes, wrappers and harmless company: the stored result.
SAME = (
    'send "E1"', "bash -c 'send E1'", "send E1 2>&1", "send E1 | tee log", "echo sending; send E1",
    "send E1 && echo ok", "(send E1)", "{ send E1; }", "if true; then send E1; fi", "time send E1",
    "timeout 10 send E1", "nohup send E1", "command send E1", "exec send E1", "eval send E1", "sh <<X\nsend E1\nX",
)  # fmt: skip
HELD = {Decision.STORED, Decision.ASK}


class Sessions:
    """One run with a ledger for each of its attempts."""

    def __init__(self, store: Store, folder: Path, rules: str, allowed: tuple[str, ...] = (), **more: Any) -> None:
        run_id = more.pop("run_id", "run-1")
        made(store, run_id, **more)
        self.store, self.folder, self._lease = store, folder, claimed(store, run_id)
        run = store.runs.get(self._lease.run_id)
        assert run is not None
        spec = run.spec._replace(
            rules=require_valid(parse_policy(f"[[rule]]\n{rules}", "run"), "test") if rules else (),
            workspace=str(folder), policy_version=2, allowed=allowed,
        )  # fmt: skip
        self.run = run._replace(spec=spec)
        self.ledger = self._open()

    def _open(self) -> CallLedger:
        prober: Any = SimpleNamespace(probe_call=lambda _call, _at, _host="": None)
        return CallLedger(
            self.store, self._lease, self.run, prober, now=wall_ms, new_id=new_id, stop=lambda _why, _detail: None,
            read_inputs=self._read_inputs,
        )  # fmt: skip

    def _read_inputs(self, classified: Classification, _input: object) -> dict[str, str]:
        return read_key_inputs(classified.host_inputs, classified.fields, classified.folder, str(self.folder), {}, None)

    def crash(self) -> None:
        self._lease, _ = self.store.leases.claim(
            self.run.id, owner("worker-2"), LEASE_MS, AT + 2, dead=self._lease.token
        )
        self.ledger = self._open()
        self.ledger.current_step = (self._lease.token, self._lease.token)

    def approve(self) -> None:
        """Approve everything that was asked."""
        self.store.approvals.expire(self._lease, wall_ms(), "allow", wall_ms() + 1)

    def ask(self, command: str, tool: str = "Bash") -> GateAnswer:
        return self.ledger.prepare(CallRequest(tool=tool, input={"command": command}, door="gate"))

    def make(self, command: str, *, ok: bool = True) -> str:
        answer = self.ask(command)
        assert answer.decision is Decision.ALLOW, (command, answer)
        self.ledger.finish(CallResult(call_id=answer.call_id, ok=ok, exit_code=0 if ok else 1, output="sent E1"))
        return answer.call_id


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    write_workspace(workspace)
    return workspace


@pytest.mark.parametrize("rules", RULES)
def test_no_wording_is_sent_after_a_crash(store: Store, folder: Path, rules: str) -> None:
    sessions = Sessions(store, folder, RULES[rules])
    sessions.make("send E1")
    sessions.crash()
    program = str(folder / "bin" / "send")
    answers = {one: sessions.ask(one.replace("{S}", program)) for one in (*WORDINGS, *VARIANTS)}
    assert {one: answer.reason for one, answer in answers.items() if answer.decision not in HELD} == {}
    assert {one for one in SAME if answers[one].decision is not Decision.STORED} == set()


@pytest.mark.parametrize("rules", RULES)
def test_a_new_message_is_not_asked_about_without_a_crash(store: Store, folder: Path, rules: str) -> None:
    sessions = Sessions(store, folder, RULES[rules])
    sessions.make("send E1")
    others = (one for one in (*WORDINGS, *VARIANTS) if "E9" not in one and "cat " not in one and "id" not in one)
    asked = {one for other in others if sessions.ask(one := other.replace("E1", "E2")).decision is Decision.ASK}
    assert asked == set()


@pytest.mark.parametrize("rules", RULES)
def test_an_effect_in_doubt_is_not_sent_in_other_words(store: Store, folder: Path, rules: str) -> None:
    sessions = Sessions(store, folder, RULES[rules])
    sessions.make("send E1", ok=False)
    sessions.crash()
    program = str(folder / "bin" / "send")
    answers = {one: sessions.ask(one.replace("{S}", program)) for one in (*WORDINGS, *VARIANTS)}
    assert {one for one, answer in answers.items() if answer.decision is Decision.ALLOW} == set()


@pytest.mark.parametrize(
    "others",
    [
        ("ID=E1 send", "ID=E2 send"), ("export ID=E1; send", "export ID=E2; send"), ("send < a", "send < b"),
        ("send <<< a", "send <<< b"), ("cd x && send E1", "cd y && send E1"), ("./a/send E1", "./b/send E1"),
        ("echo a | send", "echo b | send"), ("cat a | send", "cat b | send"), ("sudo -u ada send", "sudo -u bob send"),
        ("send 'E1 E2'", "send E1 E2"), ("send E1 ''", "send E1"), ("chroot /a send", "chroot /b send"),
        ("send E1; send E2", "send E1; send E3"), ("echo a > m; send < m", "echo b > m; send < m"),
    ],
)  # fmt: skip
def test_different_effects_of_one_session_never_share_a_result(
    store: Store, folder: Path, others: tuple[str, str]
) -> None:
    """Else the second one would be lost in silence."""
    sessions = Sessions(store, folder, PLAIN)
    sessions.make(others[0])
    assert sessions.ask(others[1]).decision is not Decision.STORED


HARMLESS = (
    "ls bin", "cat bin/send", "echo send E1", "grep -r send .", "./build.sh", "sh build.sh", "make test", "npm test",
    "npm run resend", "git status", "sed -i s/send/x/ id", "chmod +x bin/send", "git commit -m 'add send'",
)  # fmt: skip


def test_other_work_continues_after_a_crash(store: Store, folder: Path) -> None:
    sessions = Sessions(store, folder, RULES["both"])
    sessions.make("send E1")
    sessions.crash()
    assert {one for one in (*HARMLESS, "send E2", "send E3 && ./build.sh") if not is_allowed(sessions, one)} == set()


def is_allowed(sessions: Sessions, command: str) -> bool:
    return sessions.ask(command).decision is Decision.ALLOW


def test_what_was_not_run_with_a_stored_result_is_named(store: Store, folder: Path) -> None:
    sessions = Sessions(store, folder, PLAIN)
    sessions.make("./build.sh && send E1")
    answer = sessions.ask("send E1 && make test")
    assert answer.decision is Decision.STORED
    assert "run 'make test' without it" in answer.output
    assert answer.output.endswith("sent E1")
    assert sessions.ask("send E1").output == "sent E1"


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("crashes", [True, False])
def test_each_of_several_effects_is_known_alone(store: Store, folder: Path, rules: str, *, crashes: bool) -> None:
    sessions = Sessions(store, folder, RULES[rules])
    together = sessions.make("send E1; send E9")
    if crashes:
        sessions.crash()
    answer = sessions.ask("send E9")
    assert (answer.decision, together in answer.reason, "send E9" in answer.reason) == (Decision.ASK, True, True)
    assert sessions.ask("send E9 && send E5").decision is Decision.ASK
    assert sessions.ask("send E1 && send E9").decision is Decision.STORED


def test_a_part_that_was_done_is_named(store: Store, folder: Path) -> None:
    sessions = Sessions(store, folder, RULES["both"])
    done = sessions.make("send E1")
    answer = sessions.ask("send E9; send E1")
    assert answer.decision is Decision.ASK
    assert answer.reason.startswith(f"call {done} made this effect already: 'send E1'")
    sessions.approve()
    assert sessions.ask("send E9; send E1").decision is Decision.ALLOW


def test_an_unclear_call_says_what_to_write_out_and_may_be_approved(store: Store, folder: Path) -> None:
    sessions = Sessions(store, folder, RULES["both"])
    sessions.make("send E1")
    assert sessions.ask("send $(cat other)").decision is Decision.ALLOW  # this session knows what it made
    sessions.crash()
    answer = sessions.ask("send $(cat id)")
    assert answer.decision is Decision.ASK
    assert "'$(cat id)' is only known when it runs. Write it out" in answer.reason
    assert sessions.ask("sh go.sh").decision is Decision.ASK
    sessions.approve()
    assert sessions.ask("send $(cat id)").decision is Decision.ALLOW
    assert sessions.ask("sh go.sh").decision is Decision.ALLOW


def test_a_fork_knows_the_effects_of_its_parent_in_other_words(store: Store, folder: Path) -> None:
    sessions = Sessions(store, folder, RULES["both"])
    sessions.make("send E1; send E9")
    assert [row.id for row in store.calls.list_effects(sessions.run.id, None)] != []
    child = Sessions(store, folder, RULES["both"], run_id="run-2", parent=sessions.run.id)
    asked = ["send E1", "send E9 && send E5", "send $(cat id)", "sh go.sh"]
    assert {one for one in asked if child.ask(one).decision is not Decision.ASK} == set()
    assert is_allowed(child, "send E7")


@pytest.mark.parametrize(
    "command",
    ["cp f /etc/x", "cat f > /etc/x", "cat f | tee /etc/x", "gsutil cp f gs://b/f", "gh gist create f", "surge dist"],
)
def test_the_same_words_about_a_file_that_changed_are_another_effect(store: Store, folder: Path, command: str) -> None:
    sessions = Sessions(store, folder, "", ("outside.write", "cloud.change", "gh.gist=gh:create:*", "deploy.send"))
    sessions.run = sessions.run._replace(spec=sessions.run.spec._replace(policy_version=3))
    sessions.crash()
    (folder / "dist").mkdir()
    (folder / "dist" / "page").write_text("1")
    (folder / "f").write_text("1")
    sessions.make(command)
    assert sessions.ask(command).decision is Decision.STORED
    (folder / "f").write_text("12")
    (folder / "dist" / "page").write_text("12")
    sessions.make(command)
    (folder / "f").write_text("123")
    (folder / "dist" / "page").write_text("123")
    sessions.crash()
    assert sessions.ask(command).decision is Decision.ASK


def test_an_older_run_keeps_its_keys(store: Store, folder: Path) -> None:
    sessions = Sessions(store, folder, PLAIN)
    sessions.run = sessions.run._replace(spec=sessions.run.spec._replace(policy_version=1))
    sessions.ledger = sessions._open()
    sessions.make("send E1")
    sessions.crash()
    assert sessions.ask("send E1").decision is Decision.STORED
    assert sessions.ask("send $(cat id)").decision is Decision.ALLOW


# --- requests

URL = "https://api.example.com/messages"
REQUEST = f"""curl -X POST {URL} -d '{{"to": "bob"}}'"""
BODY = '\'{"to":"bob"}\''
SAME_REQUEST = (
    f"curl -s -X POST '{URL}' -d {BODY}", f"curl -d {BODY} -X POST {URL}", f"curl {URL} --data-raw {BODY}",
    f"curl --json {BODY} {URL}", f"curl -sSfd {BODY} {URL}", f"curl -XPOST -d {BODY} --url {URL}",
    f"curl -d {BODY} HTTPS://API.Example.COM/messages", f"curl -d {BODY} https://api.example.com:443/messages",
    f"curl -d {BODY} https://api.example.com/x/../%6dessages#top", f"curl -d {BODY} {URL} | jq .",
    f"curl -H 'Content-Type: application/json' -d {BODY} {URL} -o /dev/null", f"wget -qO- --post-data={BODY} {URL}",
    f"wget --method=POST --body-data={BODY} {URL}", f"http POST {URL} to=bob", "https api.example.com/messages to=bob",
    f"/usr/bin/curl -d {BODY} {URL}", f"bash -c \"curl -d '{{\\\"to\\\":\\\"bob\\\"}}' {URL}\"",
)  # fmt: skip
LIKE_REQUEST = (
    f"curl -X POST {URL}/ -d {BODY}", f"curl -d @body.json {URL}", f"curl -F to=bob {URL}", f"curl -d x {URL}",
    f"curl -X PUT -d {BODY} {URL}", f'U={URL}; curl -d {BODY} "$U"', f'curl -d "$(cat body.json)" {URL}',
    f"curl -d {BODY} https://user:word@api.example.com/messages", f"curl --data-urlencode to=bob {URL}",
    f"curl -H 'X-Other: 1' -d {BODY} {URL}", f"python3 -c 'import requests; requests.post(\"{URL}\")'",
    f"cat body.json | curl -d @- {URL}", f"curl -K- {URL} -d {BODY}", f"xargs curl -d {BODY} {URL}",
    f"wget --post-file=body.json {URL}", f"curl -d {BODY} {URL} --next -d x {URL}2", "sh post.sh",
)  # fmt: skip


def test_a_request_in_other_words_is_the_same_request(store: Store, folder: Path) -> None:
    (folder / "body.json").write_text('{"to":"bob"}')
    (folder / "post.sh").write_text(f"#!/bin/sh\ncurl -d x {URL}\n")
    sessions = Sessions(store, folder, "", allowed=("http.send=any",))
    sessions.make(REQUEST)
    sessions.crash()
    answers = {one: sessions.ask(one) for one in (*SAME_REQUEST, *LIKE_REQUEST)}
    assert {one: answer for one, answer in answers.items() if answer.decision not in HELD} == {}
    assert {one for one in SAME_REQUEST if answers[one].decision is not Decision.STORED} == set()


@pytest.mark.parametrize(
    "others",
    [
        (f"curl -d x {URL.replace('//', '//ada:1@')}", f"curl -d x {URL.replace('//', '//bob:1@')}"),
        (f"curl -d '[0.10000000000000000001]' {URL}", f"curl -d '[0.1]' {URL}"),
        (f"curl -d '[1e400]' {URL}", f"curl -d '[1e500]' {URL}"),
        (f"curl -d @/dev/stdin {URL} < a", f"curl -d @/dev/stdin {URL} < b"),
        (f"curl -d @/dev/fd/3 {URL} 3< a", f"curl -d @/dev/fd/3 {URL} 3< b"),
        (f"wget --post-file=/dev/stdin {URL} < a", f"wget --post-file=/dev/stdin {URL} < b"),
        (f"http POST {URL} < a", f"http POST {URL} < b"), (f"http POST {URL} <<< a", f"http POST {URL} <<< b"),
        (f"echo a | http POST {URL}", f"echo b | http POST {URL}"), (f"http {URL} a=1 a=2", f"http {URL} a=3 a=2"),
        ("AWS_PROFILE=a aws s3 rm s3://x/y", "AWS_PROFILE=b aws s3 rm s3://x/y"),
        ("export AWS_PROFILE=a; aws s3 rm s3://x/y", "export AWS_PROFILE=b; aws s3 rm s3://x/y"),
        ("GH_REPO=a/b gh pr comment 1 -b x", "GH_REPO=a/c gh pr comment 1 -b x"),
        ("KUBECONFIG=a kubectl delete pod x", "KUBECONFIG=b kubectl delete pod x"),
    ],
)  # fmt: skip
def test_different_built_in_effects_never_share_a_result(store: Store, folder: Path, others: tuple[str, str]) -> None:
    sessions = Sessions(store, folder, "", allowed=("effects=any",))
    sessions.make(others[0])
    assert sessions.ask(others[0]).decision is Decision.STORED
    assert sessions.ask(others[1]).decision is not Decision.STORED
    assert sessions.ask(f"export LANG=C; {others[0]}").decision is Decision.STORED


def test_a_request_whose_address_is_not_clear_is_asked_about(store: Store, folder: Path) -> None:
    (folder / "options").write_text(f"url = {URL}\n")
    elsewhere = "https://other.example.com/"
    sessions = Sessions(store, folder, "", allowed=("http.send=any",))
    sessions.make(REQUEST)
    sessions.crash()
    held = (
        f"curl -d {BODY} -K options", f"curl -d {BODY} {elsewhere} {URL}", f"curl --proxy http://x:1 -d {BODY} {URL}",
        f"curl -d {BODY} {elsewhere} --next -d x {URL}", f"curl -d {BODY} 'https://api.example.com/{{messages,x}}'",
        f"curl -d {BODY} 'https://api.example.com/message[s-s]'", f"curl -d {BODY} https:/api.example.com/messages",
        f"curl -d {BODY} {elsewhere} --connect-to ::api.example.com:443", f"curl -sx http://x:1 -d {BODY} {URL}",
        f"curl -d {BODY} https:///api.example.com/messages", f"curl -d x -H 'Host: api.example.com' {elsewhere}",
        f"wget --post-data=x -i options {elsewhere}", f"http --proxy http:http://x:1 POST {URL} to=bob",
    )  # fmt: skip
    assert {one for one in held if sessions.ask(one).decision not in HELD} == set()
    others = (f"curl -d y {elsewhere}", f"curl -F a=1 {elsewhere}2", f"curl -b c=d -d y {elsewhere}3")
    assert {one for one in others if not is_allowed(sessions, one)} == set()
