"""Agents from TOML: what a table may say, and what becomes of it."""

from __future__ import annotations

import sys
import tomllib

import pytest

from jackline.agents import acp, cli_args, registry
from jackline.agents.toml_agents import FORMATS, TomlAgent, parse_tables
from jackline.domain.adapter import Adapter, TurnRequest
from jackline.domain.outcome import AgentEvent, Exit
from jackline.domain.states import Failure
from jackline.errors import ConfigError

TOML = """
[agents.claude]
binary = "/opt/claude"
env = ["AWS_*"]

[agents.amp]
command = ["amp", "-x", "--session={session}"]
resume = ["amp", "continue", "{session}"]
format = "lines"
minimum = "1.2"
env = ["AMP_API_KEY", "AMP_*"]
install = "npm i -g amp"
model_arguments = ["--model", "{model}"]
model = "large"

[agents.zed]
acp = ["zed-agent", "--acp"]
env = []
"""


def tables(text: str = TOML) -> dict[str, object]:
    found: dict[str, object] = tomllib.loads(text)["agents"]
    return found


def request(**facts: object) -> TurnRequest:
    given = {"session": "s1", "arguments": ("--fast",), **facts}
    return TurnRequest("r1", 1, 1, "work", "do it", "/w", "/f", "/g", "t0", **given)  # type: ignore[arg-type]


def load(name: str) -> Adapter:
    return registry.load_adapter(name, parse_tables(tables()))


def test_only_a_table_with_a_command_describes_an_agent() -> None:
    found = parse_tables(tables())
    assert list(found) == ["amp", "zed"]
    assert found["amp"] == TomlAgent(
        "amp",
        command=("amp", "-x", "--session={session}"),
        resume=("amp", "continue", "{session}"),
        format="lines",
        minimum=(1, 2),
        env=("AMP_API_KEY", "AMP_*"),
        install="npm i -g amp",
        model_arguments=("--model", "{model}"),
        version=("--version",),
    )


def test_a_described_agent() -> None:
    amp = load("amp")
    facts = amp.declaration
    assert (facts.name, facts.binary, facts.minimum, facts.install) == ("amp", "amp", (1, 2), "npm i -g amp")
    assert (facts.gate, facts.chooses_session, facts.resumes, facts.structured) == ("advisory", True, True, True)
    assert facts.passes == ("AMP_API_KEY", "AMP_*")
    first = amp.launch(request(binary="/bin/amp", model="m"))
    assert first.argv == ("/bin/amp", "-x", "--session=s1", "--model", "m", "--fast")
    assert (first.env, first.stdin) == (cli_args.helper_env(request(binary="/bin/amp", model="m")), b"do it")
    assert amp.launch(request(resume=True)).argv == ("amp", "continue", "s1", "--fast")
    assert amp.parse(b"plain words") == (AgentEvent("raw"),)
    assert amp.classify(Exit(0), (), "").failure is Failure.NO_TERMINAL_EVENT


def test_a_described_agent_that_prints_text() -> None:
    plain = registry.load_adapter("plain", parse_tables({"plain": {"command": ["agent"]}}))
    facts = plain.declaration
    assert (facts.chooses_session, facts.resumes, facts.structured, facts.version_arguments) == (
        False,
        False,
        False,
        (),
    )
    assert plain.parse(b"plain words") == (AgentEvent("message", "plain words", {"line": True}),)
    assert plain.classify(Exit(0), (), "").failure is None


def test_a_described_agent_that_speaks_acp() -> None:
    zed = load("zed")
    assert (zed.declaration.name, zed.declaration.binary, zed.declaration.passes) == ("zed", "zed-agent", ())
    assert (zed.declaration.gate, zed.declaration.resumes) == ("advisory", True)
    launch = zed.launch(request(binary="/opt/zed-agent"))
    assert launch.argv == (sys.executable, "-IS", cli_args.HELPER, "acp", "/opt/zed-agent", "--acp", "--fast")
    assert acp.ADAPTER.declaration.name == "acp"


@pytest.mark.parametrize("format_", [one for one in FORMATS if one in registry.AGENTS])
def test_a_format_is_read_by_the_agent_of_that_name(format_: str) -> None:
    mine = registry.load_adapter("mine", parse_tables({"mine": {"command": ["agent"], "format": format_}}))
    its = registry.load_adapter(format_)
    for line in (b'{"type":"system","subtype":"init","session_id":"s"}', b"garbage", b'{"type":"thread.started"}'):
        assert mine.parse(line) == its.parse(line)
    assert mine.classify(Exit(1), (), "") == its.classify(Exit(1), (), "")
    assert mine.declaration.gate == "advisory"


def test_every_format_is_known_to_somebody() -> None:
    assert set(FORMATS) <= {"text", "lines", *registry.AGENTS}


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('command = "amp"', r"\[agents\.x\] has a command that is not a list of strings"),
        ("command = []", "has a command that is not a list"),
        ('command = ["amp", 3]', "has a command that is not a list"),
        ('acp = [""]', "has a acp that is not a list"),
        ('command = ["a"]\nacp = ["a"]', "both command and acp"),
        ('acp = ["a"]\nresume = ["a", "{session}"]', "speaks ACP, which does not use 'resume'"),
        ('command = ["a"]\nformat = "xml"', "has the unknown format 'xml'; known formats are text, lines, claude"),
        ('command = ["a"]\nminimum = "new"', "has the minimum 'new', which is not a version"),
        ('command = ["a"]\nminimum = 1', "has a minimum that is not a string"),
        ('command = ["a"]\nenv = ["A=B"]', "list of variable names"),
        ('command = ["a"]\nmodel_arguments = ["-m"]', "model_arguments without {model}"),
        ('command = ["a", "{session}"]\nresume = ["a", "-r"]', "resume command without {session}"),
        ('command = ["a"]\nresume = ["a", "{session}"]', "prints text, which reports no session"),
        ('command = ["a", "{session}"]\nresume = ["b", "{session}"]', "starts a different program"),
        ('command = ["a"]\nresumes = true', "has an unknown key 'resumes'; known keys are acp, arguments"),
    ],
)
def test_what_is_wrong_is_named(lines: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        parse_tables(tables(f"[agents.x]\n{lines}\n"))
    assert "\n" not in str(caught.value)


def test_names_and_shapes() -> None:
    with pytest.raises(ConfigError, match="is not a valid agent name"):
        parse_tables({"../x": {"command": ["a"]}})
    with pytest.raises(ConfigError, match="is not a table"):
        parse_tables({"x": "amp"})
