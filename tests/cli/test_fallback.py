"""Fallback to the next agent in the middle of a run, with the recorded facts; rate-limit resets are respected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.place import Place

FUTURE = 4_000_000_000  # seconds
# Each prints jackline's own event lines; `good` shows its prompt, so that the test sees the packet.
TIRED = f"""echo '{{"type":"limit","detail":"five-hour limit","resets_at":{FUTURE}}}'; exit 1"""
GOOD = """
echo '{"type":"usage","input":5,"output":2}'
cat > seen.txt
echo '{"type":"message","text":"took over"}'
echo '{"type":"end"}'
"""
CUT_OFF = """
echo '{"type":"call.started","call":"c1","tool":"deploy","input":{"to":"prod"}}'
echo '{"type":"limit","detail":"later"}'
"""
LOCKED = """echo '{"type":"error","class":"authentication","detail":"log in"}'; exit 1"""
ALL = {"tired": TIRED, "locked": LOCKED, "good": GOOD, "cutoff": CUT_OFF, "broken": "exit 3", "gone": ""}


@pytest.fixture
def agents(place: Place) -> Place:
    folder = place.folder / ".config" / "jackline"
    folder.mkdir(parents=True)
    tables = [
        f"[agents.{name}]\ncommand = {json.dumps(['sh', '-c', program])}\nformat = 'lines'\n"
        for name, program in ALL.items()
        if program
    ]
    tables.append("[agents.gone]\ncommand = ['no-such-program-anywhere']\ninstall = 'get it here'\n")
    (folder / "config.toml").write_text("\n".join(tables))
    return place


def kinds(place: Place, run: str) -> list[str]:
    return [row["kind"] for row in place.type("logs", run, "--events", "--json").rows]


def test_a_limit_hands_the_run_to_the_next_agent(agents: Place) -> None:
    ended = agents.type("run", "fix it", "--agent", "tired", "--fallback", "good", "--json")
    assert (ended.code, ended.json["agent"], ended.json["state"]) == (0, "good", "succeeded")
    assert "agent.switched" in kinds(agents, ended.json["id"])
    assert (agents.repository / "seen.txt").read_text().startswith("fix it\n")
    shown = agents.type("show", ended.json["id"], "--json").json
    assert [turn["agent"] for turn in shown["turns"]] == ["tired", "good"]


def test_a_known_reset_is_honoured_by_the_next_run(agents: Place) -> None:
    agents.type("run", "one", "--agent", "tired", "--fallback", "good")
    second = agents.type("run", "two", "--agent", "tired", "--fallback", "good", "--json").json
    shown = agents.type("show", second["id"], "--json").json
    assert [turn["agent"] for turn in shown["turns"]] == ["good"]
    (tired,) = [one for one in agents.type("agents", "--json").json["agents"] if one["name"] == "tired"]
    assert tired["health"] == "resting"


def test_a_named_agent_is_retried_after_a_refusal_and_auto_tries_it_last(agents: Place) -> None:
    words = ("--agent", "locked", "--fallback", "good", "--json")
    for prompt in ("one", "two"):
        run = agents.type("run", prompt, *words).json
        shown = agents.type("show", run["id"], "--json").json
        assert [turn["agent"] for turn in shown["turns"]] == ["locked", "good"]
    agents.environ["JACKLINE_AUTO"] = "locked,good"
    run = agents.type("run", "three", "--agent", "auto", "--json").json
    assert agents.type("show", run["id"], "--json").json["spec"]["agent"] == "good"


def test_with_no_agent_left_the_run_waits_for_the_reset(agents: Place) -> None:
    ended = agents.type("run", "fix it", "--agent", "tired", "--json")
    assert (ended.code, ended.json["reason"]) == (10, "limit")
    assert ended.json["wake_at"] is not None


def test_a_missing_program_hands_over_too(agents: Place) -> None:
    ended = agents.type("run", "fix it", "--agent", "gone", "--fallback", "good", "--json")
    assert (ended.code, ended.json["agent"]) == (0, "good")


def test_a_missing_program_alone_is_recorded_with_the_command_that_installs_it(agents: Place) -> None:
    ended = agents.type("run", "fix it", "--agent", "gone", "--json")
    assert (ended.code, ended.json["failure"]) == (13, "unavailable")
    assert "get it here" in ended.json["detail"]


def test_the_second_agent_learns_what_the_first_left_open(agents: Place) -> None:
    ended = agents.type("run", "fix it", "--agent", "cutoff", "--fallback", "good", "--json")
    assert ended.code == 0
    told = (agents.repository / "seen.txt").read_text()
    assert "Interrupted, outcome unknown" in told
    assert "deploy to=prod" in told


def test_auto_takes_the_first_that_is_ready(agents: Place) -> None:
    agents.environ["JACKLINE_AUTO"] = "gone,tired,good"
    ended = agents.type("run", "fix it", "--agent", "auto", "--json")
    assert (ended.code, ended.json["agent"]) == (0, "good")
    shown = agents.type("show", ended.json["id"], "--json").json
    assert [turn["agent"] for turn in shown["turns"]] == ["tired", "good"]


def test_auto_leaves_a_resting_agent_for_the_end(agents: Place) -> None:
    agents.environ["JACKLINE_AUTO"] = "tired,good"
    agents.type("run", "one", "--agent", "auto")
    second = agents.type("run", "two", "--agent", "auto", "--json").json
    assert agents.type("show", second["id"], "--json").json["spec"]["agent"] == "good"


def test_auto_with_nothing_installed_points_to_the_list_of_agents(agents: Place) -> None:
    agents.environ["JACKLINE_AUTO"] = "gone"
    ended = agents.type("run", "fix it", "--agent", "auto")
    assert (ended.code, ended.err.count("\n")) == (13, 1)
    assert "jackline agents" in ended.err


def test_an_agent_that_is_simply_wrong_is_not_replaced(agents: Place) -> None:
    ended = agents.type("run", "fix it", "--agent", "broken", "--fallback", "good", "--json")
    assert (ended.code, ended.json["failure"]) == (1, "agent_error")


def test_the_scripted_agent_cannot_take_over_without_a_script(agents: Place) -> None:
    ended = agents.type("run", "fix it", "--agent", "tired", "--fallback", "scripted")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "no script" in ended.err
    assert not agents.type("list", "--json").rows


def test_the_cost_of_an_agent_that_tells_none_is_an_estimate_everywhere(agents: Place) -> None:
    run = agents.type("run", "fix it", "--agent", "good", "--json").json
    shown = (run, agents.type("show", run["id"], "--json").json, agents.type("list", "--json").rows[0])
    assert {(one["cost_usd"], one["cost_estimated"]) for one in shown} == {(run["cost_usd"], True)}
    assert (run["tokens"], run["cost_usd"] > 0) == (7, True)
    folder = Path(run["folder"])
    assert json.loads((folder / "metadata.json").read_text())["cost_usd"] == run["cost_usd"]
    assert "≈$0.0002" in agents.type("show", run["id"]).out
    assert "≈0.0002 USD" in (folder / "summary.txt").read_text()
    assert "≈$0.0002" in agents.type("run", "again", "--agent", "good").out


@pytest.mark.parametrize("words", [["--agent", "tird"], ["--agent", "tired", "--fallback", "goood"]])
def test_an_unknown_agent_is_refused_with_the_nearest_name(agents: Place, words: list[str]) -> None:
    ended = agents.type("run", "fix it", *words)
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "did you mean" in ended.err
