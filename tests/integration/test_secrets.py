"""No secret reaches the disk: whatever an agent says, a call is given, a proof prints, and whenever it dies."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.place import Ended, Place, is_one_line
from tests.conftest import SLOW_BACKENDS
from tests.support.helpers import wait_until
from tests.support.secrets import NAMED, PEM, PEM_LINES, TELEGRAM, TOKENS

MARKER = "unmistakable-marker"
VARIABLE = "value/of the 'variable'"
PASSWORD = "pw-under-a-name"
SAID = "\n".join([MARKER, *TOKENS.values(), TELEGRAM, *(text for text, _ in NAMED), f"it is {VARIABLE}", PEM])
GONE = {*TOKENS.values(), TELEGRAM.partition(":")[2], *PEM_LINES, VARIABLE, PASSWORD, *(one for _, one in NAMED)}
RULE = (
    '[[rule]]\ntool = "send"\nclass = "effect"\ndecision = "allow"\nkey = ["text"]\ntarget = "mail:{to}"\n'
    'external = { url = "https://\\\\S+" }\n'
)
HALF = TOKENS["anthropic"][:60]


def spellings(secret: str) -> set[bytes]:
    return {one.encode() for one in (secret, json.dumps(secret)[1:-1], json.dumps(json.dumps(secret))[3:-3])}


def found_in(place: Path, content: bytes, *more: str) -> list[str]:
    return [f"{place}: {one}" for one in {*GONE, *more} for spelling in spellings(one) if spelling in content]


def hidden(value: object) -> str:
    """JSON with every character of its texts escaped: a script is kept as it is, and must not hold a secret itself."""
    if isinstance(value, str):
        return '"' + "".join(f"\\u{ord(one):04x}" for one in value) + '"'
    if isinstance(value, dict):
        return "{" + ",".join(f"{hidden(name)}:{hidden(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(hidden(one) for one in value) + "]"
    return json.dumps(value)


class SecretPlace(Place):
    """A place whose scripts show nothing."""

    def script(self, *steps: dict[str, Any], name: str = "script.json") -> str:
        path = self.folder / name
        path.write_text(hidden({"version": 1, "steps": list(steps)}))
        return str(path)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = SecretPlace(tmp_path)
    made.repository.mkdir()
    (tmp_path / "secrets.txt").write_text(SAID)
    made.environ["MY_SERVICE_TOKEN"] = VARIABLE
    yield made
    made.close()


@pytest.fixture(params=SLOW_BACKENDS)
def backend(request: pytest.FixtureRequest, place: Place) -> str:
    if request.param == "postgres":
        place.environ["JACKLINE_DATABASE"] = request.getfixturevalue("postgres_database")
    return str(request.param)


def texts_of_database(url: str) -> bytes:
    """Every text of every table."""
    import psycopg

    columns = (
        "SELECT table_name, column_name FROM information_schema.columns"
        " WHERE table_schema = current_schema() AND data_type = 'text'"
    )
    with psycopg.connect(url) as connection:
        found = [
            row[0]
            for table, column in connection.execute(columns).fetchall()
            for row in connection.execute(f'SELECT "{column}" FROM "{table}"').fetchall()
        ]
    return "\n".join(str(one) for one in found).encode()


def leaks(place: Place, *more: str) -> list[str]:
    """Every secret in every file below the home, and in every text of the database."""
    found: list[str] = []
    kept = b""
    for folder, _, names in os.walk(place.home):
        for name in names:
            path = Path(folder) / name
            if path.is_file():
                content = path.read_bytes()
                kept += content if name.startswith("state") else b""
                found += found_in(path, content, *more)
    if "JACKLINE_DATABASE" in place.environ:
        kept = texts_of_database(place.environ["JACKLINE_DATABASE"])
        found += found_in(Path("database"), kept, *more)
    assert MARKER.encode() in kept  # else nothing was looked at
    return found


def steps(place: Place) -> list[dict[str, Any]]:
    path = place.path("secrets.txt")
    return [
        {"say": SAID},
        {"think": SAID},
        {
            "call": {
                "tool": "send",
                "input": {"text": SAID, "password": PASSWORD, "to": f"https://ada:{PASSWORD}@host/x"},
                "run": f"cat {path}; cat {path} >&2",
                "external_id": f"{{stdout}} {TOKENS['openai']}",
            }
        },
        {"call": {"tool": "look", "input": {"argv": ["x", "--api-key", PASSWORD]}, "run": f"cat {path}; exit 3"}},
        {"edit": {"path": "notes.txt", "content": SAID}},
    ]


def play(place: Place, *played: dict[str, Any], words: tuple[str, ...] = ()) -> Ended:
    return place.play(*played, words=("--policy", place.policy(RULE), "--run-id", "r", *words))


def raw(place: Place, stream: str) -> bytes:
    return (place.home / "runs" / "r" / "turns" / f"0001-work.{stream}").read_bytes()


def test_nothing_that_a_run_writes_holds_a_secret(place: Place, backend: str) -> None:
    proof = f"cat {place.path('secrets.txt')}"
    ended = play(place, *steps(place), words=("--proof", proof, f"use {TOKENS['openai']} for it"))
    assert ended.code == 0, ended
    assert leaks(place) == []
    assert "the prompt seems to contain a secret" in ended.err
    for stream in ("stdout", "stderr"):
        assert MARKER.encode() in raw(place, stream)
        assert b"[redacted***" in raw(place, stream)
    for words in (("show", "r", "--json"), ("logs", "r"), ("receipts", "r"), ("export", "r")):
        shown = place.type(*words)
        assert shown.code == 0, shown
        assert not found_in(Path("shown"), (shown.out + shown.err).encode())
    checked = place.type("db", "check")
    assert checked.code == 0, checked
    assert place.type("verify", "r").code == 0


def test_lines_of_a_raw_transcript_stay_json_at_their_offsets(place: Place) -> None:
    assert play(place, *steps(place)).code == 0
    lines = raw(place, "stdout").splitlines(keepends=True)
    kinds = [json.loads(line)["type"] for line in lines]
    assert kinds.count("call.finished") == 3
    starts = {sum(map(len, lines[:number])) for number in range(len(lines))}
    with contextlib.closing(sqlite3.connect(place.home / "state.sqlite")) as database:
        events = [json.loads(row[0]) for row in database.execute("SELECT data FROM events")]
    offsets = {event["offset"] for event in events if "offset" in event}
    assert len(offsets) > 3
    assert offsets <= starts


def test_nothing_is_left_of_a_failure_that_quotes_secrets(place: Place, backend: str) -> None:
    ended = play(place, {"error": {"class": "authentication", "detail": SAID}})
    assert ended.code != 0
    assert leaks(place) == []
    assert not found_in(Path("shown"), (ended.out + ended.err).encode())


@pytest.mark.parametrize("stream", ["1", "2"])
def test_nothing_is_left_when_everything_dies_in_the_middle_of_a_secret(
    place: Place, backend: str, stream: str
) -> None:
    """The supervisor is killed while half a token stands at the end of the output."""
    file = place.path("secrets.txt")
    command = f"cat {file} >&2; printf '%s' {HALF} >&{stream}; touch {place.path('said')}; sleep 60"
    process = place.start_playing(
        {"say": SAID},
        {"call": {"tool": "look", "input": {"text": SAID}, "run": command}},
        words=("--policy", place.policy(RULE), "--run-id", "r"),
    )
    place.wait_for("said")
    wait_until(lambda: MARKER.encode() in raw(place, "stdout"))  # the tool may be quicker than who reads its agent
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert leaks(place, HALF[:30]) == []


def test_a_call_with_a_secret_is_still_known_by_its_key(place: Place, backend: str) -> None:
    """Keys are made before anything is redacted: two inputs that look alike on disk are two calls."""

    def send(secret: str) -> dict[str, Any]:
        run = f"echo {secret[-4:]} >> {place.path('sent')}"
        return {"call": {"tool": "send", "input": {"text": secret, "to": "a"}, "run": run}}

    first, second = TOKENS["openai"], TOKENS["anthropic"]
    ended = play(place, {"say": MARKER}, send(first), send(second), send(first))
    assert ended.code == 0, ended
    assert Path(place.path("sent")).read_text().split() == [first[-4:], second[-4:]]
    assert leaks(place) == []


def test_the_text_of_a_job_file_is_kept_without_its_secrets(place: Place) -> None:
    job = Path(place.path("job.toml"))
    script = place.script({"say": MARKER})
    job.write_text(f'prompt = "log in with {TOKENS["gitlab"]}"\nagent = "scripted"\nscript = "{script}"\n')
    ended = place.type("run", "--job", str(job), "--run-id", "r")
    assert ended.code == 0, ended
    assert "job file seems to contain a secret" in ended.err
    assert leaks(place) == []


def test_a_proof_with_a_secret_in_it_is_refused(place: Place) -> None:
    ended = play(place, {"say": MARKER}, words=("--proof", f"curl -u ada:x -H 'X-Api-Key: {TOKENS['google']}' h"))
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    assert TOKENS["google"] not in ended.err
    assert not (place.home / "runs" / "r").exists()


def test_the_log_of_an_unexpected_mistake_holds_no_secret(place: Place) -> None:
    program = (
        "import sys; from jackline.app.diagnostics import log_unexpected\n"
        "try:\n    raise RuntimeError(sys.argv[2])\n"
        "except RuntimeError as error:\n    log_unexpected(sys.argv[1], error)\n"
    )
    place.home.mkdir()
    assert place.end_of(place.python(program, str(place.home), SAID)).code == 0
    log = next(path for path in place.home.iterdir() if path.is_file())
    assert MARKER in log.read_text()
    assert not found_in(log, log.read_bytes())


def test_a_file_is_not_compared_with_what_was_redacted(tmp_path: Path) -> None:
    """It could only say that the file is another one: then the call would be made again."""
    from jackline.engine.probes import file
    from jackline.engine.probes.findings import HAPPENED, UNKNOWN, ProbeContext

    (tmp_path / "notes.txt").write_text("token: something")
    given = {"file_path": "notes.txt", "content": "token: [redacted]"}
    nothing: Any = None
    scene = ProbeContext(nothing, given, {}, str(tmp_path), {}, 0, nothing)
    assert file.probe_file(scene).verdict == UNKNOWN
    assert file.probe_file(scene._replace(input={**given, "content": "token: something"})).verdict == HAPPENED
