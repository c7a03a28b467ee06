"""Budgets in USD: estimated where no cost is reported, kept in the middle of a turn, refused where none can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.test_agent_edges import END, describe, says

if TYPE_CHECKING:
    from tests.cli.place import Place

USAGE = {"type": "usage", "input": 10_000, "output": 0}  # 18.75 USD per million tokens: the dearest price
PRICES = '\n[prices."cheap*"]\ninput = 1\noutput = 2\n'
SPENT = 15


def settings(place: Place, text: str) -> None:
    path = place.folder / ".config" / "jackline" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(text)


def kinds(place: Place) -> list[str]:
    return [row["kind"] for row in place.type("logs", "1", "--events", "--json").rows]


def test_tokens_without_a_cost_are_estimated_and_shown_as_such(place: Place) -> None:
    describe(place, "quiet", says(USAGE, {"type": "message", "text": "hi"}, END))
    ended = place.type("run", "x", "--agent", "quiet", "--json")
    assert (ended.code, ended.json["cost_usd"], ended.json["cost_estimated"]) == (0, 0.1875, True)
    assert "≈$0.19" in place.type("show", "1").out
    assert "≈$0.19" in place.type("list").out
    shown = place.type("show", "1", "--json").json
    assert shown["turns"][0]["spent"]["usd_estimated"] == shown["life"]["spent"]["usd_estimated"] == 187_500
    assert kinds(place).count("cost.assumed") == 1
    assert "budget.late" in kinds(place)


def test_own_prices_replace_the_table(place: Place) -> None:
    describe(place, "quiet", says({**USAGE, "model": "cheap-1"}, END))
    settings(place, PRICES)
    ended = place.type("run", "x", "--agent", "quiet", "--json")
    assert (ended.code, ended.json["cost_usd"]) == (0, 0.01)
    assert "cost.assumed" not in kinds(place)
    assert place.type("config", "--json").json["prices.cheap*"]["value"] == {"input": 1, "output": 2}


def test_an_estimate_stops_a_turn_in_its_middle(place: Place) -> None:
    """The program would print for ever."""
    describe(place, "greedy", 'while :; do echo \'{"type":"usage","input":2600}\'; sleep 0.05; done')
    ended = place.type("run", "x", "--agent", "greedy", "--max-usd", "1", "--json")
    assert (ended.code, ended.json["reason"]) == (SPENT, "budget")
    assert ended.json["detail"].startswith("budget spent: $1.0"), ended.json
    assert 1 <= ended.json["cost_usd"] < 1.5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prices = 3\n", "prices must be tables"),
        ('[prices."x"]\ninput = 1\n', "is not complete"),
        ('[prices."x"]\ninput = -1\noutput = 1\n', "input is not a price"),
        ('[prices."x"]\ninput = true\noutput = 1\n', "input is not a price"),
        ('[prices."x"]\ninputs = 1\n', "inputs is not a price"),
    ],
)
def test_a_price_that_is_none_is_refused(place: Place, text: str, said: str) -> None:
    settings(place, text)
    ended = place.type("list")
    assert (ended.code, said in ended.err, ended.err.count("\n")) == (2, True, 1), ended


def test_an_untrusted_project_sets_no_prices(place: Place) -> None:
    (place.repository / "jackline.toml").write_text(PRICES)
    describe(place, "quiet", says({**USAGE, "model": "cheap-1"}, END))
    assert "[prices] is ignored" in place.type("run", "x", "--agent", "quiet").err
    assert place.type("list", "--json").rows[0]["cost_usd"] == 0.1875
    assert place.trust().code == 0
    assert place.type("run", "x", "--agent", "quiet", "--json").json["cost_usd"] == 0.01


def test_a_budget_that_nothing_can_keep_is_refused(place: Place) -> None:
    words = ("run", "x", "--agent", "command", "--max-usd", "1", "--", "true")
    ended = place.type(*words)
    assert (ended.code, ended.err.count("\n"), "reports no usage" in ended.err) == (2, 1, True), ended


def test_the_default_budget_of_such_an_agent_is_dropped_with_a_line(place: Place) -> None:
    ended = place.type("run", "x", "--agent", "command", "--", "true")
    assert ended.code == 0, ended
    assert "command reports no usage: the budget of $20.00 does not apply to it" in ended.err
    assert place.type("show", "1", "--json").json["spec"]["limits"]["usd_micros"] is None


# --- the budget of a day

DAY = {"JACKLINE_MAX_USD_PER_DAY": "1"}


def spend(usd: float) -> dict[str, object]:
    return {"usage": {"input": 10, "output": 1, "usd": usd}}


def elsewhere(place: Place) -> tuple[str, str]:
    """A workspace in which nothing else works."""
    folder = place.folder / "elsewhere"
    folder.mkdir()
    return "--workspace", str(folder)


def find_waiting(place: Place) -> str:
    (row,) = place.type("list", "--all-repos", "--state", "waiting", "--json").rows
    return str(row["id"])


def test_a_day_that_is_spent_parks_every_run_until_the_next_one(place: Place) -> None:
    assert place.play(spend(0.7), environ=DAY).code == 0
    ended = place.play(spend(0.2), {"hang": True}, spend(0.2), words=("--idle-seconds", "1"), environ=DAY)
    assert ended.code == 11, "0.2 of the 0.3 that were left"
    ended = place.play(spend(0.2), {"hang": True}, words=("--json",), environ=DAY)
    assert (ended.code, ended.json["reason"]) == (SPENT, "budget"), ended
    assert "day's budget is spent" in ended.json["detail"]
    assert ended.json["wake_at"].endswith("T00:00:00.000Z")
    shown = place.play({"say": "hello"}, environ=DAY)
    assert (shown.code, "the day's budget is spent: $1.10 of $1.00" in shown.out) == (SPENT, True), shown
    assert place.type("show", "4", "--json").json["turns"] == [], "nothing was started"
    assert place.type("resume", "4", environ={"JACKLINE_MAX_USD_PER_DAY": "2"}).code == 0


def test_queued_runs_stay_in_the_queue_while_the_day_is_spent(place: Place) -> None:
    assert place.play(spend(1.1)).code == 0
    script = place.script({"say": "hello"}, name="queued.json")
    for name in ("one", "two"):
        assert place.type("enqueue", "--script", script, "--run-id", name, environ=DAY).code == 0
    free = ("enqueue", "free", "--agent", "command", "--run-id", "free", *elsewhere(place), "--", "true")
    assert place.type(*free, environ=DAY).code == 0
    assert place.type("serve", "--once", environ=DAY).code == 0
    rows = {row["id"]: row for row in place.type("list", "--all-repos", "--json").rows}
    assert [rows[name]["state"] for name in ("one", "two", "free")] == ["queued", "queued", "succeeded"]
    assert "the day's budget is spent" in place.type("list", "--queue", environ=DAY).out
    assert place.type("serve", "--once", environ={"JACKLINE_MAX_USD_PER_DAY": "2"}).code == 0
    assert place.type("show", "two", "--json").json["state"] == "succeeded"


def test_a_running_turn_reserves_its_budget_for_itself(place: Place) -> None:
    waits = {"wait_for": {"file": place.path("go"), "seconds": 60}}
    first = place.start_playing({"touch": place.path("begun")}, waits, spend(0.1), environ=DAY)
    place.wait_for("begun")
    ended = place.play({"say": "hello"}, words=elsewhere(place), environ=DAY)
    assert (ended.code, "is reserved by turns of " in ended.out) == (SPENT, True), ended
    place.let_go("go")
    assert first.wait(60) == 0
    assert place.type("resume", find_waiting(place), environ=DAY).code == 0


def test_a_killed_run_gives_its_reservation_back_when_it_is_taken_over(place: Place) -> None:
    first = place.start_playing({"touch": place.path("begun")}, spend(0.1), {"hang": True}, environ=DAY)
    place.wait_for("begun")
    first.kill()
    first.communicate()
    ended = place.play({"say": "hello"}, words=elsewhere(place), environ=DAY)
    assert ended.code == SPENT, "it may have spent all of it"
    place.type("cancel", "1")
    assert place.type("resume", find_waiting(place), environ=DAY).code == 0
