"""`jackline trust`: a project chooses programs only while its files are those that a person trusted."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from jackline.app import trust
from tests.cli.place import SAY, Ended, Place, is_one_line
from tests.cli.test_terminal import Terminal

TABLE = '[agents.claude]\nbinary = "/opt/theirs"\n'


@pytest.fixture
def project(place: Place) -> Place:
    subprocess.run(["git", "init", "-q"], cwd=place.repository, check=True)
    (place.repository / "jackline.toml").write_text(TABLE)
    return place


def trusted(place: Place) -> bool:
    return trust.is_trusted(str(place.home), "", str(place.repository))


def test_untrusted_it_is_refused_and_trusted_it_counts(project: Place) -> None:
    refused = project.play(SAY)
    assert (refused.code, is_one_line(refused)) == (2, True)
    assert "jackline trust" in refused.err
    assert not project.home.exists()
    said = project.trust()
    assert (said.code, "jackline.toml" in said.out) == (0, True), said
    shown = project.type("config", "--json").json["agents.claude.binary"]
    assert shown == {"value": "/opt/theirs", "from": str(project.repository / "jackline.toml")}
    assert os.stat(project.home / "trust.json").st_mode & 0o777 == 0o600
    assert os.stat(project.home).st_mode & 0o777 == 0o700


def test_any_change_of_the_files_ends_it(project: Place) -> None:
    tasks = project.repository / ".agents" / "tasks"
    tasks.mkdir(parents=True)
    changes = (
        lambda: (project.repository / "jackline.toml").write_text(TABLE + "# more\n"),
        lambda: (tasks / "new.md").write_text("new"),
        lambda: (tasks / "new.md").write_text("other"),
        lambda: (tasks / "new.md").rename(tasks / "renamed.md"),
        (tasks / "renamed.md").unlink,
        lambda: (project.repository / ".agents" / "policy.toml").write_text(""),
    )
    for change in changes:
        assert project.trust().code == 0
        assert trusted(project)
        change()
        assert not trusted(project)
        assert project.type("trust", "--show", "--json").json["changed"] is True
    assert project.play(SAY).code == 2


def test_what_runs_leave_there_does_not_matter(project: Place) -> None:
    assert project.trust().code == 0
    left = project.repository / ".agents" / "runs" / "one"
    left.mkdir(parents=True)
    (left / "log").write_text("much")
    assert trusted(project)


def test_it_can_be_taken_back_from_anywhere_in_the_project(project: Place) -> None:
    below = project.repository / "below"
    below.mkdir()
    assert project.trust(cwd=below).code == 0
    assert trusted(project)
    assert project.type("trust", "--revoke", "--json", cwd=below).json["trusted"] is False
    assert not trusted(project)
    assert project.type("trust", "--revoke").code == 0


def test_showing_writes_nothing(project: Place) -> None:
    shown = project.type("trust", "--show", "--json").json
    assert (shown["trusted"], shown["changed"], shown["files"]) == (False, False, ["jackline.toml"])
    assert not project.home.exists()


def test_one_project_is_not_another(project: Place) -> None:
    assert project.trust().code == 0
    other = project.folder / "other"
    other.mkdir()
    (other / ".git").mkdir()
    (other / "jackline.toml").write_text(TABLE)
    assert project.play(SAY, cwd=other).code == 2
    assert not trust.is_trusted(str(project.folder / "another home"), "", str(project.repository))


@pytest.mark.parametrize("damage", ["", "[]", "{", '{"PROJECT": 3}', '{"PROJECT": {"digest": null}}'])
def test_a_damaged_record_trusts_nothing(project: Place, damage: str) -> None:
    project.home.mkdir()
    (project.home / "trust.json").write_text(damage.replace("PROJECT", str(project.repository)))
    assert not trusted(project)
    assert project.trust().code == 0
    assert trusted(project)
    assert list(json.loads((project.home / "trust.json").read_text())) == [str(project.repository)]


def test_what_cannot_be_held_to_account_is_not_trusted(project: Place) -> None:
    folder = project.repository / ".agents"
    folder.mkdir()
    (folder / "tasks").symlink_to(project.folder)
    linked = project.trust()
    assert (linked.code, "is a link to a folder" in linked.out, linked.out.count("\n")) == (2, True, 1)
    (folder / "tasks").unlink()
    os.mkfifo(folder / "pipe")
    piped = project.trust()
    assert (piped.code, "is not a regular file" in piped.out, piped.out.count("\n")) == (2, True, 1)


def test_nothing_to_trust(place: Place) -> None:
    ended = place.trust()
    assert (ended.code, "nothing to trust" in ended.out, ended.out.count("\n")) == (2, True, 1)


LOOSE_RULE = (
    '[[rule]]\nname = "mail"\ntool = "send"\nclass = "effect"\ndecision = "allow"\nkey = ["to"]\n'
    'target = "mail:{to}"\nprobe = "look {to}"\n'
)


def test_it_shows_what_the_files_may_do_before_it_asks(project: Place) -> None:
    text = TABLE + 'arguments = ["--bold"]\nenv = ["SECRET_WORD"]\n[prices."x*"]\ninput = 1\noutput = 1\n'
    (project.repository / "jackline.toml").write_text("max_usd = 50\nmax_calls = 7\nintake = 'plan it'\n" + text)
    project.task("mends", "---\nproof: make \x1b[31mred\nallow: [git.push]\nagent: command\nmax_usd: 0\n---\nx")
    project.task("plain")
    (project.repository / ".agents" / "policy.toml").write_text(LOOSE_RULE)
    shown = project.type("trust", "--show").out
    asked = project.trust("n")
    assert (asked.code, trusted(project)) == (1, False)
    for line in (
        "agent claude: starts with binary = /opt/theirs", "agent claude: starts with arguments = --bold",
        "agent claude: gets the variables SECRET_WORD", "starts a program: intake = plan it",
        "raises max_usd to 50 (default 20)", "sets the prices", "the host runs its proof: make ",
        "approves calls in advance: git.push", "chooses an agent that starts any program",
        "raises max_usd to 0 (default 20)", "rule mail: starts the probe look {to}",
        "rule mail: lets its calls run without asking",
    ):  # fmt: skip
        assert (line in shown, line in asked.out) == (True, True), line
    assert "max_calls" not in shown
    assert "\x1b[31m" not in shown
    allows = project.type("trust", "--show", "--json").json["allows"]
    assert (len(allows["jackline.toml"]), allows[".agents/tasks/plain.md"]) == (6, [])


def test_it_shows_the_programs_that_settings_of_agents_name(project: Place) -> None:
    hook = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "touch \x1b[31mred"}]}]}}
    servers = {"mcpServers": {"a": {"command": "npx", "args": ["-y", "theirs", 3]}, "b": {"command": None}}}
    (project.repository / ".claude").mkdir()
    (project.repository / ".claude" / "settings.json").write_text(json.dumps({**hook, "apiKeyHelper": "./key"}))
    (project.repository / ".mcp.json").write_text(json.dumps(servers))
    many = {str(number): {"command": f"server-{number}"} for number in range(12)}
    (project.repository / "opencode.json").write_text(json.dumps({"mcp": many}))
    allows = project.type("trust", "--show", "--json").json["allows"]
    assert allows[".claude/settings.json"][1:] == ["starts a program: ./key", "starts a program: touch \x1b[31mred"]
    assert "starts a program: touch  [31mred\n" in project.type("trust", "--show").out
    assert [one for one in allows[".mcp.json"] if "starts" in one] == ["starts a program: npx -y theirs"]
    assert allows["opencode.json"][-2:] == ["starts a program: server-9", "starts 2 more programs"]


@pytest.mark.parametrize("answer", ["", "n", "\x04"])
def test_only_a_clear_yes_is_trust(project: Place, answer: str) -> None:
    ended = project.trust(answer)
    assert (ended.code, trusted(project)) == (1, False), ended
    assert "nothing was changed" in ended.out


def test_without_a_terminal_nobody_is_asked(project: Place) -> None:
    for words in ((), ("--json",)):
        ended = project.type("trust", *words, stdin="y\ny\n")
        assert (ended.code, len(ended.err.splitlines()), trusted(project)) == (2, 1, False), ended
        assert "type it at a terminal" in ended.err
    terminal = Terminal(project, "trust", redirect=(1, project.path("out")))
    assert ("type it at a terminal" in terminal.end(), terminal.process.returncode) == (True, 2)
    assert not project.home.exists()


def test_files_that_change_while_they_are_read_are_not_trusted(project: Place) -> None:
    terminal = Terminal(project, "trust")
    terminal.until(r"\[y/N\] ")
    (project.repository / "jackline.toml").write_text(TABLE + "# more\n")
    os.write(terminal.ours, b"y\n")
    assert "changed while you read them" in terminal.end()
    assert (terminal.process.returncode, trusted(project)) == (2, False)


# --- what an untrusted project cannot do -----------------------------------------------------------------------


def refused(ended: Ended) -> str:
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    return ended.err


BROKEN = [
    TABLE, "nonsense", "colour = 1\n", "max_usd = -1\n", "agent = 'command'\n", "fallback = 'codex, acp'\n",
    "x = " + "[" * 5000 + "]" * 5000, "# " + "x" * 1_000_001,
]  # fmt: skip


@pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_project_file_starts_no_work_and_every_command_reports_it(place: Place, text: str) -> None:
    file = place.repository / "jackline.toml"
    file.write_text(text)
    assert str(file) in refused(place.play(SAY))
    ended = place.type("config")
    assert (ended.code, ended.err.count(str(file)), ended.err.count("\n")) == (0, 1, 1), ended
    assert "this file is ignored" in ended.err


def test_a_projects_file_takes_no_command_away_but_those_that_start_work(place: Place) -> None:
    waiting = place.play({"limit": {"resets_in": 3600}}, words=("--run-id", "r"))
    assert waiting.code == 10
    file = place.repository / "jackline.toml"
    file.write_text(BROKEN[0])
    said = refused(place.play(SAY))
    assert str(file) in said
    assert refused(place.type("resume", "r")) == said
    for words in (("list",), ("show", "r"), ("logs", "r"), ("config",), ("tasks", "list"), ("db", "status")):
        ended = place.type(*words)
        assert (ended.code, ended.err.count(str(file)), ended.err.count("\n")) == (0, 1, 1), (words, ended)
        assert "this file is ignored" in ended.err
    doctor = {one["part"]: one for one in place.type("doctor", "--json").json["findings"]}
    assert doctor["project"]["state"] == "fail"
    assert str(file) in doctor["project"]["found"]
    assert place.type("cancel", "r").code == 0
    assert place.type("show", "r", "--json").json["state"] == "cancelled"


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_a_projects_file_that_is_none_is_not_waited_for(place: Place, kind: str) -> None:
    path = place.repository / "jackline.toml"
    os.mkfifo(path) if kind == "pipe" else path.mkdir()
    assert place.type("list").code == 0
    assert "jackline.toml" in refused(place.play(SAY))


def limits(place: Place, *words: str, **environ: str) -> dict[str, float]:
    told: dict[str, float] = place.play(SAY, words=("--dry-run", "--json", *words), environ=environ).json["limits"]
    return told


def test_an_untrusted_projects_settings_only_tighten(place: Place) -> None:
    text = "max_usd = 50\nmax_calls = 0\nmax_tokens = 9\nidle_seconds = 0\nretries = 0\ntimeout_seconds = 901\n"
    text += "max_steps = 499\ngrace_seconds = 6\n"
    (place.repository / "jackline.toml").write_text(text)
    untrusted = limits(place)
    assert untrusted == {
        "max_usd": 20, "max_calls": 10_000, "max_tokens": 9, "idle_seconds": 900, "retries": 0, "timeout_seconds": 901,
        "max_steps": 499, "grace_seconds": 5, "max_seconds": 28_800, "max_iterations": 20,
        "max_repeats": 25, "review_rounds": 3,
    }  # fmt: skip
    noted = place.type("config").err
    assert "max_usd stays 20, not 50" in noted
    assert "max_tokens" not in noted
    assert "max_usd stays 20, not 50" in place.play(SAY).err
    assert limits(place, "--max-usd", "60", JACKLINE_TIMEOUT_SECONDS="950")["max_usd"] == 60
    assert place.trust().code == 0
    trusted_now = limits(place)
    assert (trusted_now["max_usd"], trusted_now["max_calls"], trusted_now["idle_seconds"]) == (50, 0, 0)


def test_an_untrusted_projects_task_only_tightens(place: Place) -> None:
    place.task("greedy", "---\nmax_usd: 0\nmax_calls: 7\nretries: 9\n---\nx")
    words = ("--task", "greedy")
    found = limits(place, *words)
    assert (found["max_usd"], found["max_calls"], found["retries"]) == (20, 7, 2)
    assert limits(place, *words, "--max-usd", "30")["max_usd"] == 30
    assert "max_usd stays 20, not 0" in place.play(SAY, words=words).err
    assert place.trust().code == 0
    assert limits(place, *words)["max_usd"] == 0


def test_an_untrusted_projects_task_runs_no_program(place: Place) -> None:
    place.task("proves", f"---\nproof: touch {place.path('ran')}\n---\nx")
    for words in ((), ("--dry-run",)):
        said = refused(place.play(SAY, words=("--task", "proves", *words)))
        assert "review it, then run `jackline trust`" in said
    assert not place.home.exists()
    assert place.play(SAY, words=("--task", "proves", "--proof", "true")).code == 0
    assert not (place.folder / "ran").exists()
    place.task("any", "---\nagents: [claude, command]\n---\nx")
    assert "'command' can run any program" in refused(place.type("run", "--task", "any"))
    assert place.trust().code == 0
    assert place.play(SAY, words=("--task", "proves")).code == 0
    assert (place.folder / "ran").exists()


def test_a_word_for_the_project_does_not_count_below_it(project: Place) -> None:
    below = project.repository / "below"
    (below / ".agents" / "tasks").mkdir(parents=True)
    (below / ".agents" / "tasks" / "deep.md").write_text("---\nproof: 'true'\n---\nx")
    (project.repository / "jackline.toml").write_text("")
    assert project.trust().code == 0
    assert "does not cover it" in refused(project.play(SAY, words=("--task", "deep"), cwd=below))


def test_a_task_of_the_user_may_do_what_it_says(place: Place) -> None:
    folder = place.folder / ".config" / "jackline" / "tasks"
    folder.mkdir(parents=True)
    (folder / "mine.md").write_text("---\nproof: 'true'\nmax_usd: 50\n---\nx")
    assert limits(place, "--task", "mine")["max_usd"] == 50
    assert place.play(SAY, words=("--task", "mine")).code == 0


def test_a_task_that_hides_a_built_in_one_is_reported(place: Place) -> None:
    place.task("debug_hello_simple")
    ended = place.play(SAY, words=("--task", "debug_hello_simple"))
    assert ended.code == 0
    assert f"this project's own {place.repository}/.agents/tasks/debug_hello_simple.md" in ended.err
    rows = {row["name"]: row["origin"] for row in place.type("tasks", "list", "--json").rows}
    assert rows["debug_hello_simple"] == "project"


@pytest.mark.parametrize("model", ["--openai-base-url=http://x", " -x", "a\nb", "  ", "\x1b[31m"])
def test_a_model_an_effort_and_a_session_cannot_be_flags(place: Place, model: str) -> None:
    quoted = json.dumps(model)
    place.task("odd", f"---\nagent: claude\nmodel: {quoted}\n---\nx")
    for words in (
        ("run", "--task", "odd", "--dry-run"),
        ("run", "x", "--agent", "claude", f"--model={model}"),
        ("run", "x", "--agent", "claude", f"--effort={model}"),
        ("run", "x", "--agent", "claude", f"--session={model}"),
    ):
        refused(place.type(*words))
    (place.folder / "job.toml").write_text(f'prompt = "x"\nagent = "claude"\nsession = {quoted}\n')
    refused(place.type("run", "--job", place.path("job.toml")))
    refused(place.type("run", "x", "--agent", "claude", environ={"JACKLINE_CLAUDE_MODEL": model}))
    assert not place.home.exists()
