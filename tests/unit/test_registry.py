"""Which agents there are: built in, described, or brought by other packages, some of them broken."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jackline.agents import json_fields, registry
from jackline.agents.scripted import scripted_adapter as scripted
from jackline.agents.toml_agents import TomlAgent, parse_tables
from jackline.domain.adapter import TurnRequest
from jackline.domain.outcome import AgentEvent, Exit
from jackline.domain.states import Failure
from jackline.errors import AgentUnavailable, ConfigError, UsageError

ADAPTER = """
from jackline.plugin import Declaration, Launch, classify_by_events, parse_event_line

class Agent:
    declaration = Declaration("{name}", "agent", "advisory", "", chooses_session=True, resumes=True)
    def launch(self, request):
        return Launch(("agent",))
    def parse(self, line):
        return parse_event_line(line)
    def classify(self, exit_, events, tail):
        return classify_by_events(exit_, events, tail)

ADAPTER = Agent()
CLASS = Agent
"""
RAISES = (
    ADAPTER.replace("return Launch", "raise KeyError('a\\nb') or Launch")
    .replace("        return parse_event_line", "        raise OSError or parse_event_line")
    .replace("return classify_by_events", "raise OSError or classify_by_events")
)
CONFUSED = (
    ADAPTER.replace('return Launch(("agent",))', "return 1")
    .replace("return parse_event_line", "return 1 or parse_event_line")
    .replace("return classify_by_events", "return 1 or classify_by_events")
)
REQUEST = TurnRequest("r1", 1, 1, "work", "p", "/w", "/f", "/g", "t")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with packages, as pip would leave them there."""
    sources = {
        "good": ADAPTER.format(name="good"),
        "other": ADAPTER.format(name="another"),
        "syntax": "def",
        "missing": "import no_such_module",
        "exits": "raise Exception('line one\\nline two')",
        "empty": "ADAPTER = None",
        "raises": RAISES.format(name="raises"),
        "confused": CONFUSED.format(name="confused"),
        "ollama": "raise AssertionError",
    }
    for name, source in sources.items():
        install(tmp_path, f"jackline-{name}", name, f"foreign_{name}:ADAPTER")
        (tmp_path / f"foreign_{name}.py").write_text(source)
    install(tmp_path, "jackline-class", "class", "foreign_good:CLASS")
    install(tmp_path, "jackline-twin", "twin", "foreign_good:ADAPTER")
    install(tmp_path, "jackline-twin2", "twin", "foreign_good:ADAPTER")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for module in [one for one in sys.modules if one.startswith("foreign_")]:
        del sys.modules[module]


def install(folder: Path, package: str, name: str, place: str) -> None:
    info = folder / f"{package.replace('-', '_')}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[jackline.agents]\n{name} = {place}\n")


def test_the_built_in_ones() -> None:
    assert set(registry.list_agents()) >= {"acp", "command", "ollama", "scripted"}
    assert list(registry.list_agents()) == sorted(registry.list_agents())
    assert registry.load_adapter("scripted") is scripted.ADAPTER


@pytest.mark.parametrize("name", sorted(registry.AGENTS))
def test_each_is_declared_by_its_name(name: str) -> None:
    assert registry.load_adapter(name).declaration.name == name


def test_unknown_agent_names_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"there is no agent 'scriptd': did you mean scripted\?") as caught:
        registry.load_adapter("scriptd")
    assert caught.value.exit_code == 2
    with pytest.raises(UsageError, match=r"'zzz': choose one of: acp, .*command, .*ollama"):
        registry.load_adapter("zzz")


def test_described_ones_are_known_and_suggested() -> None:
    described = parse_tables({"heron": {"command": ["heron"]}})
    assert "heron" in registry.list_agents(described)
    assert registry.load_adapter("heron", described).declaration.name == "heron"
    with pytest.raises(UsageError, match=r"did you mean heron\?"):
        registry.load_adapter("herron", described)
    with pytest.raises(UsageError, match="there is no agent 'heron'"):
        registry.load_adapter("heron")


def test_a_built_in_agent_cannot_be_described_anew() -> None:
    with pytest.raises(ConfigError, match=r"\[agents.ollama\] defines an agent that is built in"):
        registry.load_adapter("ollama", {"ollama": TomlAgent("ollama", ("x",))})


def test_an_agent_of_another_package(packages: Path) -> None:
    assert "good" in registry.list_agents()
    good = registry.load_adapter("good")
    assert good.declaration.name == "good"
    assert good.launch(REQUEST).argv == ("agent",)
    assert good.parse(b'{"type": "end"}') == (AgentEvent("end"),)
    assert good.classify(Exit(0), (AgentEvent("end"),), "").failure is None


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("syntax", "jackline-syntax cannot be loaded: SyntaxError"),
        ("missing", "jackline-missing cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'"),
        ("exits", "jackline-exits cannot be loaded: Exception: line one line two"),
        ("empty", "jackline-empty provides no valid adapter: foreign_empty:ADAPTER has no `declaration`"),
        ("class", "jackline-class provides no valid adapter: foreign_good:CLASS is a class"),
        ("other", "is declared as 'another', not as 'other'"),
        ("twin", "jackline-twin and jackline-twin2 both provide it"),
    ],
)
def test_a_broken_one_gives_one_clear_line(packages: Path, name: str, why: str) -> None:
    with pytest.raises(AgentUnavailable) as caught:
        registry.load_adapter(name)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 13


def test_broken_ones_hide_no_other(packages: Path) -> None:
    broken = registry.find_broken()
    assert set(broken) == {"syntax", "missing", "exits", "empty", "class", "other", "twin"}
    assert {"good", *registry.AGENTS} <= set(registry.list_agents())


def test_a_name_that_is_built_in_stays_so(packages: Path) -> None:
    assert type(registry.load_adapter("ollama")).__module__ == "jackline.agents.ollama"


def test_what_a_stranger_raises_stays_within_the_contract(packages: Path) -> None:
    for name, words in (("raises", "launch raised KeyError"), ("confused", "launch returned int, not Launch")):
        agent = registry.load_adapter(name)
        with pytest.raises(AgentUnavailable, match=words) as caught:
            agent.launch(REQUEST)
        assert "\n" not in str(caught.value)
        assert agent.parse(b"line") == json_fields.RAW
        outcome = agent.classify(Exit(0), (), "")
        assert outcome.failure is Failure.AGENT_ERROR
        assert f"jackline-{name}: classify" in outcome.detail


def test_a_built_in_agent_needs_no_look_at_what_is_installed() -> None:
    """It takes longer than most commands."""
    program = """
import sys
from jackline.agents import registry
for name in registry.AGENTS:
    registry.load_adapter(name)
print(sorted({"importlib.metadata", "http.client", "subprocess", "json.tool"} & set(sys.modules)))
"""
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(registry.__file__))))
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": source}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
