"""What holds for every adapter, whatever its CLI prints, however it ends and whatever is asked of it."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackline.agents import agent_events, json_fields, registry
from jackline.domain.adapter import Launch, TurnRequest
from jackline.domain.outcome import AgentEvent, Exit, Outcome, Usage
from jackline.engine.launch import build_unprotected
from tests.support.recordings import RECORDINGS, TELLING, Recording

NAMES = sorted(registry.AGENTS)
KINDS = TELLING | {"message", "thinking", "call.started", "call.finished", "usage", "retry", "raw"}
FOLDER = "/home/ada/runs/r1/agent"
SESSION = "1b4e28ba-2fa1-41d2-883f-0016d3cca427"
MEGABYTE = 2**20
LONGEST_WORD = 128 * 1024  # of a command line, on Linux
# Name as much as anybody might look for; a value of this kind must never be found in a launch.
NOWHERE = "value-from-nowhere"
MODEL = re.compile(
    r"\b(gpt-|codex-m|o[134]-|claude-\d|sonnet|opus|haiku|gemini-\d|gemini-pro|flash|qwen\d|coder|llama)"
)
# What keeps a CLI from calling home and from replacing itself during a run, as it stands in its launch.
SWITCHES = {
    "acp": (),  # which agent it is, is only known when its command is
    "claude": ("DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"),
    "codex": ("analytics.enabled=false", "check_for_update_on_startup=false"),
    "command": (),
    "gemini": ("GEMINI_TELEMETRY_ENABLED=false", '"enableAutoUpdate": false', '"usageStatisticsEnabled": false'),
    "kilo": ("KILO_TELEMETRY_LEVEL=off", "KILO_DISABLE_AUTOUPDATE=1", '"autoupdate": false', '"share": "disabled"'),
    "ollama": (),  # our own programs
    "opencode": ("OPENCODE_DISABLE_AUTOUPDATE=1", '"autoupdate": false', '"share": "disabled"'),
    "qwen": ("QWEN_TELEMETRY_ENABLED=false", "QWEN_USAGE_STATISTICS_ENABLED=false", '"enableAutoUpdate": false'),
    "scripted": (),
}


def asked(name: str, **more: object) -> TurnRequest:
    given = {
        "run_id": "r1", "attempt": 1, "turn": 1, "role": "work", "prompt": "hello", "workspace": "/home/ada/project",
        "folder": FOLDER, "gate": "/run/gate", "token": "t", "session": SESSION,
        "arguments": ("agent",) if name in {"acp", "command"} else (),
    }  # fmt: skip
    return TurnRequest(**{**given, **more})  # type: ignore[arg-type]


def launched(name: str, **more: object) -> Launch:
    return registry.load_adapter(name).launch(asked(name, **more))


def words(launch: Launch) -> str:
    """All that a launch says, but for the prompt."""
    env = [f"{name}={value}" for name, value in launch.env.items()]
    return "\n".join([*launch.argv, *env, *(content.decode() for content in launch.files.values())])


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each agent, for root: some files are written for root alone."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return str(request.param)


# --- launch


def test_the_declaration_has_the_name_of_the_registry(name: str) -> None:
    assert registry.load_adapter(name).declaration.name == name
    assert registry.load_adapter(name).declaration.gate in {"enforced", "advisory"}


BYPASS = re.compile(r"--(yolo|auto|dangerously|skip-permissions|allow-all|trust)[\w-]*\Z|-y\Z|--approval-mode.*")


def test_every_flag_that_switches_a_protection_off_is_declared(name: str) -> None:
    declared = registry.load_adapter(name).declaration.switches_off
    assert {word for word in launched(name).argv if BYPASS.match(word)} == set(declared)


_YOLO = ("--yolo", "-y", "--approval-mode", "yolo", "--approval-mode=yolo", "--allowed-tools", "a", "b")
LOOSENING = {
    "codex": (
        "-s",
        "danger-full-access",
        "--sandbox=x",
        "--dangerously-bypass-approvals-and-sandbox",
        "--add-dir",
        "/",
    ),
    "gemini": _YOLO,
    "kilo": ("--auto", "--agent", "x"),
    "opencode": ("--auto", "--agent=x"),
    "qwen": _YOLO,
}


@pytest.mark.parametrize("role", ["review", "plan"])
def test_nothing_is_switched_off_in_a_turn_that_only_reads(name: str, role: str) -> None:
    declaration = registry.load_adapter(name).declaration
    for session in ({"session": None}, {"session": SESSION, "resume": True}):
        argv = launched(name, role=role, **session).argv
        assert not set(argv) & set(declaration.switches_off)
        if declaration.read_only:
            loosened = launched(name, role=role, arguments=("--kept", "y", *LOOSENING[name]), **session).argv
            assert [word for word in loosened if word not in {"--kept", "y"}] == list(argv)
    assert bool(declaration.switches_off) == bool(declaration.read_only)


def test_what_is_switched_off_is_named_in_the_first_turn_only() -> None:
    declaration, argv = registry.load_adapter("codex").declaration, launched("codex").argv
    (fact,) = build_unprotected(declaration, argv, is_first=True)
    assert (fact.data["agent"], fact.data["flags"]) == ("codex", "--dangerously-bypass-approvals-and-sandbox")
    assert "sandbox" in str(fact.data["protection"])
    assert build_unprotected(declaration, argv, is_first=False) == ()


@pytest.mark.parametrize(
    ("name", "arguments"), [("codex", ("--sandbox", "read-only")), ("gemini", ("--approval-mode=plan",))]
)
def test_a_protection_that_a_person_keeps_is_not_named(name: str, arguments: tuple[str, ...]) -> None:
    argv = launched(name, arguments=arguments).argv
    assert build_unprotected(registry.load_adapter(name).declaration, argv, is_first=True) == ()


def test_a_long_prompt_is_no_word_of_the_command_line(name: str) -> None:
    launch = launched(name, prompt="é" * MEGABYTE)
    assert launch.stdin == ("é" * MEGABYTE).encode()
    assert "éé" not in words(launch)
    assert max(map(len, (*launch.argv, *launch.env.values()))) < LONGEST_WORD


def test_a_prompt_that_is_no_unicode_is_no_mistake(name: str) -> None:
    assert launched(name, prompt="half \ud800").stdin == b"half ?"


@pytest.mark.parametrize("more", [{}, {"resume": True}, {"session": None}, {"effort": "low"}, {"attempt": 2}])
def test_no_model_is_chosen_for_the_cli(name: str, more: dict[str, object]) -> None:
    assert not MODEL.search(words(launched(name, **more)).lower())


def test_a_model_that_was_chosen_reaches_the_cli_and_nothing_else_changes(name: str) -> None:
    chosen, own = words(launched(name, model="gpt-x")).splitlines(), words(launched(name)).splitlines()
    more = [word for word in chosen if word not in own]
    if name not in {"acp", "command", "scripted", "ollama"}:  # they read it from JACKLINE_MODEL
        assert more == ["--model=gpt-x"]
    else:
        assert more == ["JACKLINE_MODEL=gpt-x"]


def test_a_model_that_looks_like_a_flag_is_never_a_word_of_its_own(name: str) -> None:
    assert "--yolo-mode" not in launched(name, model="--yolo-mode").argv


def test_its_files_are_in_the_folder_of_the_run(name: str) -> None:
    launch = launched(name, effort="low", model="m")
    assert all(os.path.dirname(os.path.normpath(path)) == FOLDER for path in launch.files)
    assert all(isinstance(content, bytes) for content in launch.files.values())


def test_nothing_comes_from_our_own_environment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = launched(name)
    declaration = registry.load_adapter(name).declaration
    further = [one for names in declaration.passes_if.values() for one in names]
    for variable in (*declaration.passes, *declaration.passes_if, *further, "HOME", "USER", "PWD", "TMPDIR", "LANG"):
        monkeypatch.setenv(variable.rstrip("*") or "X", NOWHERE)
    after = launched(name)
    assert NOWHERE not in repr(after)
    assert after == before


def test_no_variable_of_a_launch_is_empty_or_holds_what_a_variable_cannot(name: str) -> None:
    for variable, value in launched(name, model="m", effort="low", resume=True).env.items():
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", variable)
        assert isinstance(value, str)
        assert "\0" not in value


def test_it_neither_calls_home_nor_replaces_itself(name: str) -> None:
    said = words(launched(name))
    assert [switch for switch in SWITCHES[name] if switch not in said] == []


def test_the_session_is_named_where_it_is_known(name: str) -> None:
    declaration = registry.load_adapter(name).declaration
    begun, resumed = words(launched(name)), words(launched(name, resume=True))
    if declaration.chooses_session:
        assert SESSION in begun
    if declaration.resumes:
        assert SESSION in resumed
        assert begun != resumed
    if declaration.forks:
        assert SESSION in words(launched(name, session=None, fork_of=SESSION))


# --- parse and classify

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)
EXITS = st.builds(Exit, st.none() | st.integers(-1, 256), st.none() | st.integers(0, 64), lost=st.booleans())
FLAGS = dict.fromkeys(("ok", "session_lost", "asked", "gave_up", "notice"), st.booleans())
TEXTS = dict.fromkeys(("class", "ref"), st.text(max_size=9))
NUMBERS = dict.fromkeys(("resets_at", "status"), st.integers(0, 10**15))
TOLD = st.fixed_dictionaries({}, optional={**FLAGS, **TEXTS, **NUMBERS})
TAILS = st.text(max_size=200) | st.sampled_from([one.stderr for one in RECORDINGS])


@st.composite
def mutated(draw: st.DrawFn) -> tuple[Recording, list[bytes]]:
    """A recording of which some lines have another value somewhere, or lost a piece."""
    recording = draw(st.sampled_from([one for one in RECORDINGS if one.lines]))
    changed = recording.lines
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(changed) - 1))
        changed[at] = draw(st.sampled_from([_other_value, _other_bytes]))(draw, changed[at])
    return recording, changed


def _other_bytes(draw: st.DrawFn, line: bytes) -> bytes:
    start = draw(st.integers(0, len(line)))
    return line[:start] + draw(st.binary(max_size=4)) + line[start + draw(st.integers(0, 9)) :]


def _other_value(draw: st.DrawFn, line: bytes) -> bytes:
    try:
        fields = json.loads(line)
    except ValueError:
        return line
    place: Any = fields
    while place:
        key = draw(st.sampled_from(sorted(place))) if isinstance(place, dict) else draw(st.integers(0, len(place) - 1))
        if not isinstance(place[key], dict | list) or not draw(st.booleans()):
            place[key] = draw(JSON)
            break
        place = place[key]
    return json.dumps(fields).encode()


def is_proper(heard: AgentEvent) -> None:
    """In the vocabulary, and such that every database takes it."""
    assert heard.kind in KINDS
    assert "\0" not in heard.text
    heard.text.encode()
    assert (heard.kind == "usage") is (heard.usage is not None)
    usage = heard.usage or Usage()
    for figure in (usage.tokens_input, usage.tokens_output, usage.tokens_cached, usage.usd_micros):
        assert isinstance(figure, int)
        assert 0 <= figure < 2**63
    if heard.data.get("resets_at") is not None:
        assert isinstance(heard.data["resets_at"], int)


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        (b'{"a":"\xed\xa0\x80"}', {"a": "\ufffd\ufffd\ufffd"}),  # half a surrogate, which json itself would take
        (b'{"a":"\\ud800\\u0000"}', {"a": "?\ufffd"}),
        (b'{"a":"\xff"}', {"a": "\ufffd"}),
        ('{"a":"\\u0000"}'.encode("utf-16-le"), None),  # and this it would guess
    ],
)
def test_no_text_comes_in_that_a_database_refuses(line: bytes, fields: dict[str, str] | None) -> None:
    assert json_fields.parse_object(line) == fields


@pytest.mark.parametrize("name", NAMES)
@given(line=st.binary(max_size=300) | st.binary(max_size=300).map(lambda data: b'{"type":"' + data))
def test_no_bytes_raise(name: str, line: bytes) -> None:
    for heard in registry.load_adapter(name).parse(line):
        is_proper(heard)


@given(
    st.sampled_from(sorted(KINDS)),
    st.dictionaries(
        st.sampled_from(["text", "detail", "call", "class", "resets_at", "session_lost", "input", "usd"]), JSON
    ),
    EXITS,
)
def test_no_event_line_of_a_stranger_raises(kind: str, fields: dict[str, object], exit_: Exit) -> None:
    """Anybody may print these: what stands in them is what the adapter hears."""
    heard = agent_events.parse_event_line(json.dumps({"type": kind, **fields}).encode())
    for one in heard:
        is_proper(one)
    outcome = agent_events.classify_by_events(exit_, heard, "")
    assert outcome.resets_at is None or isinstance(outcome.resets_at, int)


@given(mutated(), EXITS, TAILS)
def test_no_change_of_what_was_recorded_raises(change: tuple[Recording, list[bytes]], exit_: Exit, tail: str) -> None:
    recording, changed = change
    heard = recording.hear(changed)
    for one in heard:
        is_proper(one)
    outcome = registry.load_adapter(recording.agent).classify(
        exit_, tuple(one for one in heard if one.kind in TELLING), tail
    )
    outcome.detail.encode("utf-8", "replace")
    assert outcome.resets_at is None or isinstance(outcome.resets_at, int)


@pytest.mark.parametrize("name", NAMES)
@given(
    heard=st.lists(st.builds(AgentEvent, st.sampled_from(sorted(TELLING)), st.text(max_size=20), TOLD), max_size=4),
    exit_=EXITS,
    tail=TAILS,
)
def test_no_end_raises(name: str, heard: list[AgentEvent], exit_: Exit, tail: str) -> None:
    assert isinstance(registry.load_adapter(name).classify(exit_, tuple(heard), tail), Outcome)


@pytest.mark.parametrize("name", NAMES)
def test_a_process_that_was_killed_did_not_end_well(name: str) -> None:
    classify = registry.load_adapter(name).classify
    assert classify(Exit(None, 9), (), "").failure == "crashed"
    assert classify(Exit(None, lost=True), (), "").failure == "crashed"
    assert classify(Exit(1), (), "something broke").failure == "agent_error"
    silent = None if name == "command" else "no_terminal_event"  # for a command the exit code says it all
    assert classify(Exit(0), (), "").failure == silent
