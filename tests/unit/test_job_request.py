"""Flag before job before task, setting by setting; job files and what is refused in them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jackline.app import config
from jackline.app.job_file import NO_JOB, Job, compose_request, load_job, parse_job, parse_variables
from jackline.app.request import Request
from jackline.domain.spec import AgentOptions
from jackline.domain.states import CallClass
from jackline.domain.task import Task
from jackline.errors import JacklineError, UsageError

TASK = Task(
    "mend", "Mend {what}.", "/t/mend.md", agent="claude", fallback=("codex",), model="opus", effort="high",
    proof="make test", mode="interactive", requires_commit=True, requires_clean=True,
    settings={"max_usd": 1, "retries": 1}, variables={"what": "it"},
)  # fmt: skip
JOB = Job(
    "text", "/t/job.toml", prompt="and quickly", mode="job", agent="qwen", model="coder", session="s", proof="true",
    workspace="/srv", fallback=("kilo",), arguments=("--a",), requires_commit=False, variables={"what": "all"},
    settings={"max_usd": 2},
)  # fmt: skip


def test_a_task_alone() -> None:
    asked = compose_request(Request("besides"), NO_JOB, TASK, {"what": "this"})
    assert asked == Request(
        "Mend this.\n\nbesides", "claude", "", "mend", "", "make test", agent_options=AgentOptions("opus", "high"),
        fallback=("codex",), mode="interactive", requires_commit=True, requires_clean=True,
        settings=(("/t/mend.md", TASK.settings), ("", {})),
    )  # fmt: skip


def test_a_job_wins_over_its_task() -> None:
    asked = compose_request(Request(""), JOB, TASK, {})
    assert asked == Request(
        "Mend all.\n\nand quickly", "qwen", "/srv", "mend", "", "true",
        agent_options=AgentOptions("coder", "", ("--a",)),
        fallback=("kilo",), session="s", mode="job", requires_commit=False, requires_clean=True, job="text",
        settings=(("/t/mend.md", TASK.settings), ("/t/job.toml", {"max_usd": 2})),
    )  # fmt: skip


def test_a_flag_wins_over_both() -> None:
    typed = Request(
        "my words", "gemini", "/here", proof="false", agent_options=AgentOptions("pro", "low", ("--b",)),
        fallback=("ollama",), session="mine",
    )  # fmt: skip
    asked = compose_request(typed, JOB, TASK, {"what": "mine"})
    assert (asked.prompt, asked.agent, asked.workspace) == ("Mend mine.\n\nmy words", "gemini", "/here")
    assert (asked.proof, asked.fallback, asked.session) == ("false", ("ollama",), "mine")
    assert asked.agent_options == AgentOptions("pro", "low", ("--a", "--b"))


@pytest.mark.parametrize(
    ("typed", "job", "expected"),
    [
        ("", NO_JOB, "opus"),
        ("claude", NO_JOB, "opus"),
        ("codex", NO_JOB, ""),
        ("", Job(agent="claude"), "opus"),
        ("", Job(agent="codex"), ""),
        ("", Job(model="sonnet"), "sonnet"),
        ("codex", Job(agent="claude", model="sonnet"), ""),
        ("codex", Job(model="gpt"), "gpt"),
    ],
)
def test_a_model_stays_with_the_agent_it_was_written_for(typed: str, job: Job, expected: str) -> None:
    assert compose_request(Request("", typed), job, TASK, {}).agent_options.model == expected


def test_variables_need_a_task() -> None:
    assert parse_variables(["a=1", "b=x=y", "c="]) == {"a": "1", "b": "x=y", "c": ""}
    with pytest.raises(UsageError, match="--var a is for a task"):
        compose_request(Request("x"), NO_JOB, None, {"a": "1"})
    for words in (["a"], ["=1"], ["a=1", "a=2"]):
        with pytest.raises(UsageError, match="--var"):
            parse_variables(words)


def test_settings_of_a_task_and_a_job_stand_between_the_environment_and_the_flags(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "JACKLINE_MAX_USD": "9", "JACKLINE_RETRIES": "9", "JACKLINE_MAX_CALLS": "9"}
    loaded = config.load_config(environ, str(tmp_path), {"max_steps": 7})
    layers = (("task", {"max_usd": 1, "retries": 1, "max_steps": 1}), ("job", {"max_usd": 2}))
    found = config.add_run_settings(loaded, layers)
    names = ("max_usd", "retries", "max_calls", "max_steps")
    assert [(found.values[name], found.sources[name]) for name in names] == [
        (2.0, "job"), (1, "task"), (9, "JACKLINE_MAX_CALLS"), (7, "--max-steps"),
    ]  # fmt: skip
    assert loaded.values["max_usd"] == 9.0, "the settings themselves stay as they were"
    with pytest.raises(JacklineError, match="task: retries must be a whole number of at least 0"):
        config.add_run_settings(loaded, (("task", {"retries": -1}),))


# --- job files -------------------------------------------------------------------------------------------------

TOML = """
task = "mend"
prompt = "and quickly"
mode = "interactive"
agents = ["claude", "codex"]
model = "opus"
effort = "high"
session = "s"
proof = "true"
workspace = "tree"
script = "/abs/script.json"
arguments = ["--a"]
requires_commit = true

[vars]
what = "all"
count = 3

[settings]
max_usd = 0.5

[[rule]]
tool = "send"
class = "effect"
"""


def test_everything_that_a_job_can_say() -> None:
    job = parse_job(TOML, "/t/job.toml")
    (rule,) = job.rules
    assert (rule.tool, rule.call_class) == ("send", CallClass.EFFECT)
    assert job._replace(rules=()) == Job(
        TOML, "/t/job.toml", "mend", "and quickly", "interactive", "claude", "opus", "high", "s", "true", "/t/tree",
        "/abs/script.json", ("codex",), ("--a",), True, None, {"what": "all", "count": "3"}, {"max_usd": 0.5},
    )  # fmt: skip


def test_json_says_the_same() -> None:
    import tomllib

    text = json.dumps(tomllib.loads(TOML))
    assert parse_job(f"\n{text}", "/t/job")._replace(text="") == parse_job(TOML, "/t/job")._replace(text="")
    assert parse_job("{}", "job.json") == Job("{}", "job.json")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("task = ", "job.toml: "),
        ("{", "job.toml: "),
        ("[1]", "job.toml: "),
        ("colour = 1", "unknown field 'colour'"),
        ("promt = 'x'", "did you mean prompt"),
        ("max_usd = 1", "put it into the table [settings]"),
        ("task = 1", "task must be non-empty text"),
        ("task = ' '", "task must be non-empty text"),
        ("mode = 'party'", "mode must be job or interactive"),
        ("agents = 'claude'", "agents must be a list of strings"),
        ("fallback = ['']", "fallback must be a list of strings"),
        ("agents = ['a']\nagent = 'b'", "either 'agents'"),
        ("requires_commit = 'yes'", "requires_commit must be true or false"),
        ("vars = 1", "vars must be a table"),
        ("[vars]\na = []", "vars.a must be text or a number"),
        ("[settings]\nhome = '/'", "settings.home is unknown: a run cannot set it"),
        ("[settings]\nmax_us = 1", "did you mean max_usd"),
        ("rule = 1", "a list of [[rule]] tables"),
        ("[[rule]]\ntool = 'x'\nclass = 'party'", "rule 1 'x'"),
        ("{" * 100_000, "job.toml: "),
    ],
)
def test_what_is_refused_in_a_job(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_job(text, "job.toml")
    assert said in str(caught.value)
    assert str(caught.value).startswith("job.toml")


def test_a_job_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"prompt = '\xe9'")
    for path, said in (("missing", "cannot be read"), ("latin", "not UTF-8 text"), (".", "cannot be read")):
        with pytest.raises(UsageError, match=said):
            load_job(str(tmp_path / path))
