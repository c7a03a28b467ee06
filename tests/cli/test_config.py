"""`jackline config`: values with their sources, tables of agents, masked passwords and suggestions for typos."""

from __future__ import annotations

import pytest

from tests.cli.place import Place, is_one_line


def user_settings(place: Place, text: str) -> str:
    path = place.folder / ".config" / "jackline" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def test_each_value_names_its_source(place: Place) -> None:
    user = user_settings(place, "max_calls = 7\nretries = 1\n")
    project = place.repository / "jackline.toml"
    project.write_text("max_steps = 8\nretries = 0\n")
    shown = place.type("config", "--json", environ={"JACKLINE_RETRIES": "3"}).json
    assert shown["max_calls"] == {"value": 7, "from": user}
    assert shown["max_steps"] == {"value": 8, "from": str(project)}
    assert shown["retries"] == {"value": 3, "from": "JACKLINE_RETRIES"}
    assert shown["idle_seconds"] == {"value": 900.0, "from": "default"}
    assert shown["home"] == {"value": str(place.home), "from": "JACKLINE_HOME"}
    assert "retries\t0\t" in place.type("config").out
    assert not place.home.exists()


def test_settings_of_agents_are_shown(place: Place) -> None:
    text = '[agents.claude]\nbinary = "bin/claude"\nmodel = "m"\narguments = ["--x", "y"]\nenv = ["TOKEN"]\n'
    user = user_settings(place, text)
    shown = place.type("config", "--json", environ={"JACKLINE_CODEX_BINARY": "/opt/codex"}).json
    assert shown["agents.claude.binary"] == {
        "value": str(place.folder / ".config" / "jackline" / "bin" / "claude"),
        "from": user,
    }
    assert shown["agents.claude.arguments"]["value"] == ["--x", "y"]
    assert shown["agents.codex.binary"] == {"value": "/opt/codex", "from": "JACKLINE_CODEX_BINARY"}
    assert 'agents.claude.arguments\t["--x", "y"]\t' in place.type("config").out


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ada:s3cret@db.example:5432/runs",
        "postgresql://db.example/runs?user=ada&password=s3cret",
        "postgresql://ada:s3cret@[broken/runs",
    ],
)
def test_a_password_is_masked(place: Place, address: str) -> None:
    for words in ((), ("--json",)):
        ended = place.type("config", *words, environ={"JACKLINE_DATABASE": address})
        assert ended.code == 0
        assert "***" in ended.out
        assert "s3cret" not in ended.out + ended.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("max_step = 3\n", "did you mean max_steps"),
        ("agent = 3\nagnts = 3\n", "did you mean agents"),
        ('[agents.claude]\nbinray = "x"\n', "did you mean binary?"),
        ("[agents.claude]\nbinary = 3\n", "agents.claude.binary must be text"),
        ('[agents.claude]\nenv = "HOME"\n', "agents.claude.env must be a list of strings"),
        ("agents = 3\n", "agents must be tables"),
        ("env_file = 3\n", "env_file must be the path of a file, not 3"),
        ("env_file = false\n", "env_file must be the path of a file, not False"),
        ("[agents]\nclaude = 3\n", "agents.claude must be a table"),
    ],
)
def test_a_mistake_in_the_file_names_its_place(place: Place, text: str, said: str) -> None:
    path = user_settings(place, text)
    ended = place.type("config")
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    assert path in ended.err
    assert said in ended.err


def test_an_agent_of_ones_own_may_say_more(place: Place) -> None:
    user_settings(place, '[agents.mine]\ncommand = ["mine", "{prompt}"]\nformat = "text"\n')
    shown = place.type("config", "--json").json
    assert shown["agents.mine.command"]["value"] == ["mine", "{prompt}"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("list", "--al-repos"), "did you mean --all-repos"),
        (("list", "--state", "runing"), "did you mean running?"),
        (("db", "archive", "--older-then", "3d"), "did you mean --older-than"),
        (("db", "statsu"), "did you mean status"),
        (("--jsn",), "did you mean --json"),
        (("lst",), "did you mean list?"),
    ],
)
def test_the_nearest_name_is_suggested(place: Place, words: tuple[str, ...], said: str) -> None:
    ended = place.type(*words)
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    assert said in ended.err


def test_every_digit_of_a_number_is_shown(place: Place) -> None:
    user_settings(place, "max_tokens = 99999999\nmax_usd = 99999999\nretry_seconds = 0.5\n")
    shown = place.type("config").out
    for line in ("max_tokens\t99999999\t", "max_usd\t99999999\t", "retry_seconds\t0.5\t", "case_seconds\t900\t"):
        assert line in shown
