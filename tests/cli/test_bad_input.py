"""Bad input of all kinds: one line, the right exit code, no traceback, nothing created or lost."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from tests.cli.place import SAY, Place, is_one_line

WRONG_WORDS = [
    (),
    ("rnu",),
    ("--colour", "list"),
    ("list", "--wrong"),
    ("list", "--limit", "many"),
    ("list", "--since", "yesterday"),
    ("list", "--state", "sleeping"),
    ("list", "--active", "--state", "failed"),
    ("show",),
    ("show", "nothing"),
    ("logs", "nothing"),
    ("export", "nothing"),
    ("resume", "nothing"),
    ("cancel", "nothing"),
    ("answer", "nothing", "x", "skip"),
    ("db",),
    ("db", "mend"),
    ("db", "status"),
    ("db", "check"),
    ("db", "archive", "--older-than", "long"),
    ("run",),
    ("run", "do it"),
    ("run", "do it", "--agent", "nobody"),
    ("run", "do it", "--agent", "scripted"),
    ("run", "--script", "/nonexistent"),
    ("run", "  ", "--agent", "scripted"),
]


@pytest.mark.parametrize("words", WRONG_WORDS, ids=" ".join)
def test_wrong_arguments(place: Place, words: tuple[str, ...]) -> None:
    ended = place.type(*words)
    assert (ended.code, ended.out, is_one_line(ended)) == (2, "", True), ended
    assert not place.home.exists()


def test_the_nearest_command_is_named(place: Place) -> None:
    assert "did you mean list?" in place.type("lst").err


def test_errors_are_json_too(place: Place) -> None:
    for words in (("--json", "show", "nothing"), ("show", "--json"), ("--json", "rnu")):
        ended = place.type(*words)
        assert (ended.json["exit_code"], is_one_line(ended)) == (2, True)
        assert ended.json["error"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--workspace", "/etc/passwd"), "not a folder"),
        (("--task", "../../up"), "task"),
        (("--run-id", "../up"), "cannot be a run's id"),
        (("--max-usd", "much"), "--max-usd"),
        (("--retries", "-1"), "--retries"),
        (("--timeout-seconds", "nan"), "--timeout-seconds"),
        (("--max-tokens", "inf"), "--max-tokens"),
        (("--policy", "/nonexistent"), "/nonexistent"),
        (("--agent", "claude"), "claude"),
    ],
)
def test_a_wrong_flag_of_run(place: Place, words: tuple[str, ...], said: str) -> None:
    ended = place.type("run", "--script", place.script(SAY), *words)
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    assert said in ended.err


@pytest.mark.parametrize(
    "text",
    ["no json", "[]", '{"version": 1, "steps": []}', '{"version": 1, "steps": [{"dance": true}]}', "\0"],
)
def test_a_bad_script(place: Place, text: str) -> None:
    path = Path(place.path("bad.json"))
    path.write_text(text)
    ended = place.type("run", "--agent", "scripted", "--script", str(path))
    assert (ended.code, is_one_line(ended)) == (2, True)
    assert "bad.json" in ended.err


@pytest.mark.parametrize(
    "text",
    [
        "[[rule]\n",
        '[[rule]]\ntool = "x"\n',
        "rules = []\n",
        '[[rule]]\ntool = "x"\nclass = "effect"\nreplay = "exact"\n',
    ],
)
def test_a_bad_policy(place: Place, text: str) -> None:
    ended = place.play(SAY, words=("--policy", place.policy(text)))
    assert (ended.code, is_one_line(ended)) == (2, True)
    assert "policy.toml" in ended.err


@pytest.mark.parametrize("data", [b"\xff\xfe", b"a\0b"], ids=["not UTF-8", "NUL"])
def test_a_prompt_that_is_no_text(place: Place, data: bytes) -> None:
    Path(place.path("prompt")).write_bytes(data)
    with open(place.path("prompt"), "rb") as prompt:
        ended = place.end_of(place.start("run", "-", "--script", place.script(SAY), stdin=prompt))
    assert (ended.code, is_one_line(ended)) == (2, True), ended


def test_a_megabyte_of_prompt_is_kept_whole(place: Place) -> None:
    prompt = "please fix it\n" + "é" * 1_000_000
    run = place.play(SAY, words=("-", "--json"), stdin=prompt)
    assert run.code == 0
    assert place.type("show", run.json["id"], "--json").json["spec"]["prompt"] == prompt
    assert len(place.type("list").out) < 500


@pytest.mark.parametrize(
    ("variable", "value"),
    [("JACKLINE_TIMEOUT_SECONDS", "soon"), ("JACKLINE_MAX_USD", "-1"), ("JACKLINE_RETRIES", "1.5")],
)
def test_a_bad_setting_names_its_place(place: Place, variable: str, value: str) -> None:
    ended = place.type("list", environ={variable: value})
    assert (ended.code, is_one_line(ended)) == (2, True)
    assert variable in ended.err


@pytest.mark.parametrize("text", ["nonsense", 'home = "/elsewhere"\n', "colour = 1\n", b"\xff\xfe"])
def test_a_bad_file_of_the_project(place: Place, text: str | bytes) -> None:
    path = place.repository / "jackline.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    ended = place.play(SAY)
    assert (ended.code, is_one_line(ended)) == (2, True)
    assert str(path) in ended.err


def test_settings_by_layer(place: Place) -> None:
    (place.folder / ".config" / "jackline").mkdir(parents=True)
    (place.folder / ".config" / "jackline" / "config.toml").write_text("max_calls = 1\nmax_steps = 2\nretries = 3\n")
    (place.repository / "jackline.toml").write_text("max_steps = 20\nretries = 30\n")
    assert place.trust().code == 0
    run = place.play(SAY, words=("--max-tokens", "4", "--json"), environ={"JACKLINE_RETRIES": "300"}).json
    spec = place.type("show", run["id"], "--json").json["spec"]
    assert (spec["limits"]["calls"], spec["limits"]["steps"], spec["limits"]["tokens"]) == (1, 20, 4)
    assert spec["retry"]["most"] == 300


@pytest.mark.parametrize("damage", ["text", "folder", "foreign"])
def test_a_damaged_database_is_left_untouched(place: Place, damage: str) -> None:
    database = place.home / "state.sqlite"
    place.home.mkdir()
    match damage:
        case "text":
            database.write_bytes(b"this is not a database" * 100)
        case "folder":
            database.mkdir()
        case _:
            with sqlite3.connect(database) as connection:
                connection.execute("CREATE TABLE theirs (x)")
            connection.close()
    before = database.read_bytes() if database.is_file() else b""
    for words in (
        ("list",),
        ("show", "x"),
        ("run", "--script", place.script(SAY)),
        ("db", "check"),
        ("db", "status"),
    ):
        ended = place.type(*words)
        assert (ended.code, is_one_line(ended)) == (1, True), (words, ended)
    assert (database.read_bytes() if database.is_file() else b"") == before


def test_a_home_that_cannot_be(place: Place) -> None:
    ended = place.play(SAY, words=("--home", "/dev/null/home"))
    assert (ended.code, is_one_line(ended)) == (2, True)
    assert "/dev/null/home" in ended.err


def test_a_current_folder_that_is_gone(place: Place) -> None:
    gone = place.folder / "gone"
    gone.mkdir()
    program = "import os, sys; os.rmdir(os.getcwd()); from jackline.cli.main import main; sys.exit(main(['list']))"
    ended = place.end_of(place.python(program, cwd=gone))
    assert (ended.code, is_one_line(ended)) == (2, True)
    assert "the current directory cannot be used" in ended.err


def test_a_mistake_of_jackline_itself_goes_to_the_log(place: Place) -> None:
    """A command that breaks: one line for the person, the traceback in the home's log."""
    program = (
        "import sys; from jackline.cli import main; from jackline.app.home import Home\n"
        "def broken(self, query): raise ZeroDivisionError('broken on purpose')\n"
        "Home.list_runs = broken; sys.exit(main.main(['list', '--json']))"
    )
    ended = place.end_of(place.python(program))
    log = place.home / "jackline.log"
    assert ended.err == f"jackline: unexpected ZeroDivisionError: broken on purpose; see {log}\n"
    assert (ended.code, ended.json["exit_code"]) == (1, 1)
    assert "Traceback" in log.read_text()
    assert os.stat(log).st_mode & 0o077 == 0


def test_a_log_that_cannot_be_written_stops_no_work(place: Place) -> None:
    (place.home / "jackline.log").mkdir(parents=True)
    warning = f"{place.home}/jackline.log cannot be written (Is a directory): nothing is logged"
    ended = place.play(SAY)
    assert (ended.code, warning in ended.err) == (0, True), ended
    ended = place.type("serve", "--once", "--quiet")
    assert (ended.code, warning in ended.out) == (0, True), ended


@pytest.mark.parametrize("kind", ["pipe", "large", "deep"])
def test_a_policy_that_is_no_file_or_too_much(place: Place, kind: str) -> None:
    path = Path(place.path("policy.toml"))
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.write_text("# " + "x" * 1_000_001 if kind == "large" else "x = " + "[" * 5000 + "]" * 5000)
    ended = place.play(SAY, words=("--policy", str(path)))
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    assert "policy.toml" in ended.err


def test_reading_creates_no_home(place: Place) -> None:
    database = place.folder / "elsewhere.db"
    environ = {"JACKLINE_DATABASE": str(database)}
    assert place.play(SAY, environ=environ).code == 0
    for words in (("list",), ("show", "1"), ("db", "status"), ("doctor",)):
        ended = place.type(*words, environ={**environ, "JACKLINE_HOME": place.path("other")})
        assert ended.code == 0, ended
        assert not (place.folder / "other").exists(), words


def test_an_empty_home_variable_is_not_the_root_of_the_disk(place: Place) -> None:
    import pwd

    shown = place.type("config", "--json", environ={"HOME": "", "JACKLINE_HOME": ""}).json["home"]["value"]
    assert shown.startswith(pwd.getpwuid(os.getuid()).pw_dir)
    assert shown != "/.local/state/jackline"


def test_an_unreadable_settings_file_is_reported_without_numbers(place: Place) -> None:
    folder = place.folder / ".config" / "jackline" / "config.toml"
    folder.mkdir(parents=True)
    ended = place.type("list")
    assert (ended.code, is_one_line(ended)) == (2, True)
    assert "Errno" not in ended.err
