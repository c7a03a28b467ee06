"""Calls that a SIGKILL cut off: reported once, or insisted on: made again before anything else, and bounded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.place import Ended, Place

WAITS = 14
POLICY = """
[[rule]]
tool = "build"
class = "local"
[[rule]]
tool = "look"
class = "read"
[[rule]]
tool = "once"
class = "local"
max = 1
[[rule]]
tool = "send"
class = "effect"
decision = "allow"
key = ["to", "text"]
target = "mail:{to}"
[[rule]]
tool = "upsert"
class = "effect"
decision = "allow"
key = ["id"]
target = "row:{id}"
replay = "idempotent"
[[rule]]
tool = "charge"
class = "effect"
decision = "allow"
key = ["id"]
target = "charge:{id}"
replay = "idempotent"
probe = "echo nobody answers >&2; exit 9"
[[rule]]
tool = "post"
class = "effect"
decision = "allow"
target = "url:{url}"
probe = "builtin:http"
"""


class Stage(Place):
    """A place with a world outside: each call that really ran left a line there."""

    def world(self) -> list[str]:
        path = self.folder / "world"
        return path.read_text().splitlines() if path.exists() else []

    def call(self, tool: str, given: dict[str, Any], *halts: int, when: dict[str, Any] | None = None) -> dict[str, Any]:
        """A call that leaves a line outside, and in these attempts waits in the middle of it to be killed."""
        name = "-".join([tool, *map(str, given.values())]).replace(" ", "-")
        ran = f"echo {name} >> {self.path('world')}; "
        halted = "".join(
            f"[ $JACKLINE_ATTEMPT = {one} ] && touch {self.path(f'here-{one}')} && sleep 600; " for one in halts
        )
        step: dict[str, Any] = {"call": {"tool": tool, "input": given, "run": f"{ran}{halted}echo did {name}"}}
        return {**step, "when": when} if when else step

    def begin(
        self, *steps: dict[str, Any], words: tuple[str, ...] = (), session: bool = True, replay: str = "insist"
    ) -> None:
        """Play until the agent is in the middle of a call, and kill its supervisor there."""
        words = (*words, "--replay", replay)
        path = self.folder / "script.json"
        path.write_text(json.dumps({"version": 1, "session": session, "steps": list(steps)}))
        self.kill_in(1, "run", "--script", str(path), "--policy", self.policy(POLICY), "--run-id", "r", *words)

    def kill_in(self, attempt: int, *words: str) -> None:
        """A command whose attempt reaches the middle of a call, and is killed there."""
        process = self.start(*words)
        self.wait_for(f"here-{attempt}")
        process.kill()
        process.communicate(timeout=30)

    def resume(self, *words: str) -> Ended:
        return self.type("resume", "r", *words)

    def show(self) -> dict[str, Any]:
        return self.type("show", "r", "--json").json

    def calls(self, *names: str) -> list[tuple[Any, ...]]:
        return [tuple(call[name] for name in names) for call in self.show()["calls"]]

    def kinds(self) -> list[str]:
        return [row["kind"] for row in self.type("logs", "r", "--events", "--json").rows]

    def told(self) -> str:
        """What the agent's last turn was told."""
        prompt: str = self.show()["turns"][-1]["prompt"]
        return prompt


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    made.repository.mkdir()
    yield made
    made.close()


BUILD = {"target": "all"}
ADA = {"to": "ada", "text": "hello"}


REPORTED = "Interrupted, outcome unknown; repeat a call only if you still need it:\n- build"


def test_what_was_cut_off_is_reported_once_and_holds_nothing_back(stage: Stage) -> None:
    stage.begin(
        stage.call("build", BUILD, 1, when={"attempt": 1}),
        stage.call("look", {"path": "a"}),
        stage.call("look", {"path": "b"}, 2),
        stage.call("send", ADA),
        session=False,
        replay="report",
    )
    stage.kill_in(2, "resume", "r")
    assert REPORTED in stage.told()
    assert "Make each of them again" not in stage.told()
    ended = stage.resume("--json")
    assert ended.code == 0, ended
    assert "- build" not in stage.told()
    assert '- look {"path":"b"}' in stage.told()
    assert [row[:2] for row in stage.calls("tool", "state")] == [
        ("build", "abandoned"),
        ("look", "done"),
        ("look", "abandoned"),
        ("look", "done"),
        ("look", "done"),
        ("send", "done"),
    ]
    assert len(stage.show()["turns"]) == 3


def test_an_agent_that_repeats_what_was_reported_may_do_so_within_the_limit_of_its_rule(stage: Stage) -> None:
    stage.begin(stage.call("once", BUILD, 1), stage.call("once", {"target": "more"}), replay="report")
    assert stage.resume().code == 0
    rows = stage.calls("state", "original", "id")
    assert [row[:2] for row in rows] == [("abandoned", None), ("done", rows[0][2]), ("denied", None)]


@pytest.mark.full
def test_a_report_that_no_agent_has_read_is_made_again(stage: Stage) -> None:
    stage.begin(stage.call("build", BUILD, 1, when={"attempt": 1}), {"say": "done"}, replay="report")
    stage.environ["JACKLINE_SCRIPTED_BINARY"] = "/nonexistent"
    assert stage.resume().code == 13
    del stage.environ["JACKLINE_SCRIPTED_BINARY"]
    assert stage.resume().code == 0
    assert REPORTED in stage.told()


def test_a_rule_that_says_exact_is_insisted_on(stage: Stage) -> None:
    policy = POLICY.replace('tool = "build"\nclass = "local"', 'tool = "build"\nclass = "local"\nreplay = "exact"')
    script = {"version": 1, "session": False, "steps": [
        stage.call("look", {"path": "a"}, when={"attempt": 2}), stage.call("build", BUILD, 1)
    ]}  # fmt: skip
    path = stage.folder / "script.json"
    path.write_text(json.dumps(script))
    stage.kill_in(1, "run", "--script", str(path), "--policy", stage.policy(policy), "--run-id", "r")
    assert stage.resume().code == 0
    assert stage.calls("tool", "state") == [("build", "abandoned"), ("look", "denied"), ("build", "done")]


def test_a_subagent_task_is_insisted_on_in_any_run(stage: Stage) -> None:
    task = {"subagent_type": "writer", "prompt": "write it"}
    stage.begin(
        stage.call("look", {"path": "a"}, when={"attempt": 2}),
        stage.call("Task", task, 1),
        session=False,
        replay="report",
    )
    assert stage.resume().code == 0
    assert stage.calls("tool", "state") == [("Task", "abandoned"), ("look", "denied"), ("Task", "done")]


def test_what_was_cut_off_is_told_and_made_again_before_anything_else(stage: Stage) -> None:
    look = {"path": "a"}
    stage.begin(
        stage.call("send", ADA),
        stage.call("look", look, when={"attempt": 2}),
        stage.call("build", BUILD, 1),
        stage.call("look", {"path": "b"}),
        session=False,
    )
    ended = stage.resume("--json")
    assert ended.code == 0, ended
    told = stage.told()
    assert 'Make each of them again now, exactly as shown, before anything else:\n- build {"target":"all"}\n' in told
    assert "do not repeat it" in told
    rows = stage.calls("tool", "state", "decision", "original", "id")
    first = rows[1]
    assert [row[:4] for row in rows] == [
        ("send", "done", "allow", None),
        ("build", "abandoned", "allow", None),
        ("send", "done", "stored", rows[0][4]),
        ("look", "denied", "deny", None),
        ("build", "done", "allow", first[4]),
        ("look", "done", "allow", None),
    ]
    refused = stage.calls("reason")[3][0]
    assert refused == 'a crash interrupted these calls; make them again first: build {"target":"all"}'
    assert stage.world() == ["send-ada-hello", "build-all", "build-all", "look-b"]
    assert stage.kinds().count("replay.drained") == 1
    tally = ended.json["completion"]
    assert (tally["tools"], tally["replayed"], tally["abandoned"], tally["denied"]) == (4, 2, 1, 1)


def test_an_agent_that_leaves_it_undone_is_told_three_times_and_then_a_person_is(stage: Stage) -> None:
    stage.begin(stage.call("build", BUILD, 1, when={"attempt": 1}), {"say": "done"})
    ended = stage.resume()
    assert ended.code == WAITS
    assert "waiting: human" in ended.out
    assert "the agent did not repeat 1 interrupted call in 3 turns" in ended.out
    prompts = [turn["prompt"] for turn in stage.show()["turns"]][1:]
    assert len(prompts) == 3
    assert all("- build" in prompt for prompt in prompts)
    assert stage.kinds().count("replay.left") == 2


def left_undone(stage: Stage) -> str:
    """A run that waits because its agent never makes the call again; gives back the call."""
    stage.begin(stage.call("build", BUILD, 1, when={"attempt": [1, 4]}), {"say": "done"}, session=False)
    assert stage.resume().code == WAITS
    ((call,),) = stage.calls("id")
    return str(call)


def test_a_person_can_say_that_what_was_left_undone_is_not_wanted_any_more(stage: Stage) -> None:
    call = left_undone(stage)
    shown = stage.type("show", "r").out
    assert f"jackline answer r {call} skip" in shown
    page = (stage.home / "runs" / "r" / "RESUME.md").read_text()
    assert f"jackline answer r {call} skip" in page
    totals = "1 tool call, 1 abandoned"
    summary = (stage.home / "runs" / "r" / "summary.txt").read_text()
    assert all(totals in text for text in (shown, page, summary))
    answered = stage.type("answer", "r", call, "skip")
    assert (answered.code, "continue: jackline resume r" in answered.out) == (0, True), answered
    assert stage.show()["state"] == "queued"
    assert stage.resume().code == 0
    assert stage.calls("state", "answer") == [("abandoned", "skip")]
    assert "A person decided to skip:\n- build" in stage.told()
    assert stage.type("answer", "r", call, "skip").code == 2


@pytest.mark.full
def test_a_plain_resume_tells_the_agent_again(stage: Stage) -> None:
    call = left_undone(stage)
    assert stage.resume().code == WAITS  # attempt 3: three more turns
    assert len(stage.show()["turns"]) == 7
    assert stage.resume().code == 0  # attempt 4: it listens at last
    assert stage.calls("state", "original") == [("abandoned", None), ("done", call)]


@pytest.mark.parametrize("verdict", ["happened", "allow"])
def test_what_was_left_undone_has_no_other_answer(stage: Stage, verdict: str) -> None:
    call = left_undone(stage)
    refused = stage.type("answer", "r", call, verdict)
    assert (refused.code, "answer skip" in refused.err) == (2, True), refused


@pytest.mark.full
def test_twenty_refusals_in_one_turn_are_enough(stage: Stage) -> None:
    others = [stage.call("look", {"path": str(number)}, when={"attempt": 2}) for number in range(40)]
    stage.begin(*others, stage.call("build", BUILD, 1, when={"attempt": 1}), {"say": "done"}, session=False)
    ended = stage.resume()
    assert (ended.code, "waiting: human" in ended.out) == (WAITS, True), ended
    assert "the agent does not make the interrupted calls again: build" in ended.out
    assert stage.world() == ["build-all"]
    assert len(stage.show()["turns"]) == 2


def cut_off_three_times(stage: Stage) -> str:
    stage.begin(stage.call("build", BUILD, 1, 2, 3), {"say": "done"})
    stage.kill_in(2, "resume", "r")
    stage.kill_in(3, "resume", "r")
    ended = stage.resume()
    assert (ended.code, "waiting: in_doubt" in ended.out) == (WAITS, True), ended
    assert "cut off 3 times" in ended.out
    rows = stage.calls("id", "state", "original")
    assert [row[1:] for row in rows] == [
        ("abandoned", None),
        ("abandoned", rows[0][0]),
        ("in_doubt", rows[1][0]),
    ]
    return str(rows[-1][0])


@pytest.mark.parametrize(
    ("verdict", "state", "told"),
    [
        ("happened", "done", ""),
        pytest.param("did-not", "void", "Known not to have happened:\n- build", marks=pytest.mark.full),
        pytest.param("retry", "void", "a person decided: do it again", marks=pytest.mark.full),
        ("skip", "abandoned", "A person decided to skip:\n- build"),
    ],
)
def test_one_that_was_cut_off_three_times_is_a_persons(stage: Stage, verdict: str, state: str, told: str) -> None:
    call = cut_off_three_times(stage)
    assert stage.type("answer", "r", call, verdict).code == 0
    ended = stage.resume()
    assert ended.code == 0, ended
    assert told in stage.told()
    assert "Make each of them again" not in stage.told()
    assert stage.calls("id", "state", "answer")[2] == (call, state, verdict)


@pytest.mark.full
def test_a_call_that_was_cut_off_twice_is_made_again_once(stage: Stage) -> None:
    stage.begin(stage.call("build", BUILD, 1, 2), stage.call("look", {"path": "a"}))
    stage.kill_in(2, "resume", "r")
    assert stage.resume().code == 0
    rows = stage.calls("tool", "state", "original", "id")
    assert [row[:3] for row in rows] == [
        ("build", "abandoned", None),
        ("build", "abandoned", rows[0][3]),
        ("build", "done", rows[1][3]),
        ("look", "done", None),
    ]
    assert stage.told().count("\n- build") == 1
    assert stage.world() == ["build-all"] * 3 + ["look-a"]


def test_a_supervisor_killed_in_the_middle_of_the_drain_leaves_the_same_queue(stage: Stage) -> None:
    """What was made again is not told again; what was cut off again is."""
    task = {"subagent_type": "writer", "prompt": "write it"}
    stage.begin(
        stage.call("build", BUILD, 1, 2),
        stage.call("look", {"path": "a"}),
        stage.call("Task", task, 3),
        stage.call("look", {"path": "b"}),
    )
    first = stage.show()["calls"]
    stage.kill_in(2, "resume", "r")  # in the middle of making it again
    stage.kill_in(3, "resume", "r")  # it is made; the next one is cut off
    assert "- build" in stage.told()
    assert stage.resume().code == 0
    assert "- build" not in stage.told()
    assert "- Task" in stage.told()
    assert [row for row in stage.calls("tool", "state") if row[1] != "done"] == [
        ("build", "abandoned"),
        ("build", "abandoned"),
        ("Task", "abandoned"),
    ]
    assert len(first) == 1


def test_a_call_that_may_be_made_once_may_be_made_again(stage: Stage) -> None:
    stage.begin(stage.call("once", BUILD, 1), stage.call("once", {"target": "more"}))
    assert stage.resume().code == 0
    assert stage.calls("state") == [("abandoned",), ("done",), ("denied",)]
    assert stage.world() == ["once-all", "once-all"]


def test_a_task_in_other_words_takes_the_place_and_the_key_of_the_first(stage: Stage) -> None:
    first, second = ({"subagent_type": "writer", "prompt": text} for text in ("write it", "please write it"))
    stage.begin(
        stage.call("Task", first, 1, when={"attempt": 1}),
        stage.call("Task", second, when={"attempt": 2}),
        session=False,
    )
    assert stage.resume().code == 0
    rows = stage.calls("state", "key", "original", "id")
    assert (rows[0][0], rows[1][0]) == ("abandoned", "done")
    assert (rows[1][1], rows[1][2]) == (rows[0][1], rows[0][3])


def test_the_output_of_a_finished_task_is_used_again(stage: Stage) -> None:
    tasks = [{"subagent_type": "writer", "prompt": text} for text in ("one", "two")]
    stage.begin(stage.call("Task", tasks[0]), stage.call("Task", tasks[1], 1), session=False)
    assert stage.resume().code == 0
    assert stage.world() == ["Task-writer-one", "Task-writer-two", "Task-writer-two"]
    rows = stage.calls("decision", "state", "original", "id")
    assert [row[:2] for row in rows] == [
        ("allow", "done"),
        ("allow", "abandoned"),
        ("stored", "done"),
        ("allow", "done"),
    ]
    assert (rows[2][2], rows[3][2]) == (rows[0][3], rows[1][3])
    logs = stage.type("logs", "r", "--events", "--json").out
    assert "did Task-writer-one" in logs


def test_while_a_run_lives_locals_and_unknowns_repeat_and_an_effect_does_not(stage: Stage) -> None:
    steps = [stage.call(tool, given) for tool, given in (("build", BUILD), ("mystery", {}), ("send", ADA))]
    ended = stage.play(*steps, *steps, words=("--policy", stage.policy(POLICY), "--run-id", "r"))
    assert ended.code == 0, ended
    assert stage.world() == ["build-all", "mystery", "send-ada-hello", "build-all", "mystery"]
    assert [row for row in stage.calls("tool", "decision") if row[1] == "stored"] == [("send", "stored")]


def test_a_reworded_effect_for_the_same_target_is_asked_after_a_resume(stage: Stage) -> None:
    stage.begin(
        stage.call("send", ADA, when={"attempt": 1}),
        stage.call("build", BUILD, 1),
        stage.call("send", {"to": "ada", "text": "dear ada"}, when={"attempt_from": 2}),
        session=False,
    )
    ended = stage.resume()
    assert (ended.code, "waiting: approval" in ended.out) == (WAITS, True), ended
    asked = stage.calls("tool", "decision", "reason", "id")[-1]
    assert asked[:2] == ("send", "ask")
    assert "'mail:ada' was already touched by call" in asked[2]
    assert stage.type("answer", "r", asked[3], "deny").code == 0
    assert stage.resume().code == 0
    assert stage.world().count("send-ada-hello") == 1
    assert "send-ada-dear-ada" not in stage.world()


def test_an_unknown_call_that_was_cut_off_is_told_and_denied_once(stage: Stage) -> None:
    stage.begin(stage.call("mystery", {}, 1), stage.call("mystery", {}))
    assert stage.resume().code == 0
    assert "Interrupted, outcome unknown; check before you repeat:\n- mystery" in stage.told()
    assert stage.calls("state") == [("in_doubt",), ("denied",), ("done",)]
    assert "check first" in stage.calls("reason")[1][0]


@pytest.mark.parametrize(
    "verdict", ["happened", *(pytest.param(one, marks=pytest.mark.full) for one in ("did-not", "retry", "skip"))]
)
def test_a_strict_run_waits_for_a_word_on_an_unknown_call(stage: Stage, verdict: str) -> None:
    stage.begin(stage.call("mystery", {}, 1), {"say": "done"}, words=("--strict",))
    ended = stage.resume()
    assert (ended.code, "waiting: in_doubt" in ended.out) == (WAITS, True), ended
    ((call,),) = stage.calls("id")
    assert stage.type("answer", "r", call, verdict, "--resume").code == 0


REQUEST = {"headers": {"Idempotency-Key": "7f3a"}, "url": "x"}


@pytest.mark.parametrize(
    ("tool", "given"),
    [("upsert", {"id": 7}), ("charge", {"id": 7}), ("post", REQUEST)],
    ids=["no probe", "a probe that does not know", "a request with its key"],
)
def test_an_idempotent_effect_is_sent_again_with_its_key_before_anything_else(
    stage: Stage, tool: str, given: dict[str, Any]
) -> None:
    stage.begin(stage.call("look", {"path": "a"}, when={"attempt": 2}), stage.call(tool, given, 1), session=False)
    assert stage.resume().code == 0
    rows = stage.calls("tool", "state", "original", "key", "id")
    assert [row[:2] for row in rows] == [(tool, "void"), ("look", "denied"), (tool, "done")]
    assert (rows[2][2], rows[2][3]) == (rows[0][4], rows[0][3])
    told = stage.told()
    assert f"- {tool} {json.dumps(given, separators=(',', ':'))}" in told
    assert "Known not to have happened" not in told
    assert len(stage.show()["receipts"]) == 1


def test_an_effect_that_was_cut_off_parks_the_run_with_the_call_and_its_evidence(stage: Stage) -> None:
    stage.begin(stage.call("send", ADA, 1), {"say": "done"})
    ended = stage.resume()
    assert (ended.code, "waiting: in_doubt" in ended.out) == (WAITS, True), ended
    ((call,),) = stage.calls("id")
    page = (stage.home / "runs" / "r" / "RESUME.md").read_text()
    for text in (ended.out, stage.type("show", "r").out, page):
        assert f"answer r {call}" in text
        assert "mail:ada" in text
    notice = stage.show()["notices"][-1]
    assert notice["kind"] == "run.waiting.in_doubt"
    assert call in notice["body"]
    assert "send text=hello to=ada → mail:ada" in notice["body"]
    assert stage.type("answer", "r", call, "retry", "--resume").code == 0
    assert stage.world() == ["send-ada-hello"] * 2
    assert "Known not to have happened:\n- send" in stage.told()


AGENT = """
started='{"type":"call.started","call":"c1","tool":"build","input":{"target":"all"}}'
cat > seen.txt
if [ ! -e once ]; then touch once; echo "$started"; sleep 0.1; kill -9 $$; fi
echo '{"type":"call.started","call":"c0","tool":"look","input":{"path":"a"}}'
echo '{"type":"call.finished","call":"c0","tool":"look","ok":true}'
if [ ! -e twice ]; then echo "$started"; echo '{"type":"call.finished","call":"c1","tool":"build","ok":true}'; fi
touch twice
echo '{"type":"error","class":"agent_error","detail":"no"}'
exit 1
"""


def test_an_agent_that_nobody_holds_is_only_told_and_what_it_makes_again_is_noted(stage: Stage) -> None:
    folder = stage.folder / ".config" / "jackline"
    folder.mkdir(parents=True)
    command = json.dumps(["sh", "-c", AGENT])
    (folder / "config.toml").write_text(f"[agents.free]\ncommand = {command}\nformat = 'lines'\n")
    words = ("--agent", "free", "--policy", stage.policy(POLICY), "--run-id", "r", "--retries", "0")
    assert stage.type("run", "build it", *words).code == 1
    assert stage.calls("tool", "state") == [("build", "abandoned")]
    assert stage.resume().code == 1
    seen = stage.repository / "seen.txt"
    assert '- build {"target":"all"}' in seen.read_text()
    assert "refused" not in seen.read_text()
    rows = stage.calls("tool", "state", "original", "id")
    assert [row[:3] for row in rows[1:]] == [("look", "done", None), ("build", "done", rows[0][3])]
    assert stage.resume().code == 1
    assert "- build" not in seen.read_text()
