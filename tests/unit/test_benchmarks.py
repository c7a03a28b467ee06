"""The benchmark's arithmetic and its tables. Nothing is timed here: that is what `make bench` is for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from benchmarks import __main__ as program
from benchmarks import gate_process, report
from benchmarks.measure import Contender, Sample, Spread, difference, interleave, ratio, spread
from benchmarks.rows import gate_cost
from jackline.agents.claude.claude_hooks import build_settings
from jackline.domain.states import CallClass
from jackline.fake_model.script import Reply
from jackline.policy.call_context import CallContext
from jackline.policy.classify import Classification, classify_call
from jackline.policy.keys import build_key


def playing(name: str, seconds: list[float], heard: list[str]) -> Contender:
    left: Iterator[float] = iter(seconds)

    def turn() -> float:
        heard.append(name)
        return next(left)

    return Contender(name, turn)


def table(median: float, goal: float | None = 1.5) -> report.Table:
    line = report.Line(
        "a pair | of commits",
        "raw",
        Spread(median, 1.2, 1.4),
        Spread(0.0013, 0.0012, 0.0014),
        Spread(0.001, 0.001, 0.001),
        goal,
    )
    return report.Table("durable-call", "A durable call", (line,), ("raw: synchronous=FULL",))


# measuring


def test_contenders_take_turns_in_every_round() -> None:
    heard: list[str] = []
    interleave([playing("A", [1] * 3, heard), playing("B", [1] * 3, heard)], rounds=2, warm_up=1)
    assert "".join(heard) == "ABABAB"


def test_the_warm_up_is_forgotten() -> None:
    samples = interleave([playing("A", [99, 98, 1, 2], [])], rounds=2, warm_up=2)
    assert samples == {"A": Sample("A", (1, 2))}


def test_two_contenders_of_one_name_are_refused_before_anything_is_measured() -> None:
    heard: list[str] = []
    with pytest.raises(ValueError, match="share a name"):
        interleave([playing("A", [1], heard), playing("A", [1], heard)], rounds=1)
    assert heard == []


def test_spread_is_the_median_between_its_quartiles() -> None:
    assert spread([5, 1, 4, 2, 3]) == Spread(median=3, low=2, high=4)


def test_spread_of_one_value_is_that_value() -> None:
    assert spread([7.0]) == Spread(7.0, 7.0, 7.0)


def test_one_slow_round_does_not_move_the_median() -> None:
    assert spread([1, 1, 1, 1, 500]).median == 1


def test_ratio_is_made_round_by_round() -> None:
    """A slow round hits both, so it is no difference between them; the medians alone would give 1."""
    ours, raw = Sample("ours", (3, 30, 3)), Sample("raw", (3, 15, 1.5))
    assert ratio(ours, raw) == Spread(median=2, low=1.5, high=2)


def test_difference_is_made_round_by_round() -> None:
    ours, raw = Sample("ours", (3, 30, 3)), Sample("raw", (3, 15, 1.5))
    assert difference(ours, raw) == Spread(median=1.5, low=0.75, high=8.25)


@pytest.mark.parametrize("compared", [ratio, difference])
def test_samples_of_different_rounds_cannot_be_compared(compared: Callable[[Sample, Sample], Spread]) -> None:
    with pytest.raises(ValueError, match="longer"):
        compared(Sample("ours", (1,)), Sample("raw", (1, 2)))


# reporting


def test_compare_keeps_ratio_and_seconds() -> None:
    line = report.compare(Sample("ours", (3, 3)), Sample("raw", (2, 2)), goal=1.5)
    assert (line.name, line.yardstick, line.ratio.median) == ("ours", "raw", 1.5)
    assert (line.seconds.median, line.yardstick_seconds.median) == (3, 2)


@pytest.mark.parametrize(
    ("median", "goal", "verdict"),
    [(1.5, 1.5, "met"), (1.51, 1.5, "missed"), (9.0, None, "")],
)
def test_verdict_is_the_medians(median: float, goal: float | None, verdict: str) -> None:
    assert table(median, goal).lines[0].verdict == verdict


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [(11.1, "met"), (1.1, "met"), (11.6, "missed")],
)
def test_of_two_goals_one_is_enough(ours: float, verdict: str) -> None:
    """Ten seconds and a little; and one second of which a little is more than the ratio allows."""
    raw = 10.0 if ours > 10 else 0.9
    line = report.compare(Sample("ours", (ours,)), Sample("raw", (raw,)), goal=1.15, goal_seconds=0.25)
    assert (line.verdict, line.goal_text) == (verdict, "≤ 1.15 × or 250 ms more")


@pytest.mark.parametrize(("ours", "verdict"), [(0.059, "met"), (0.061, "missed")])
def test_a_goal_may_be_in_seconds_alone(ours: float, verdict: str) -> None:
    line = report.compare(Sample("ours", (ours,)), Sample("raw", (0.05,)), goal_seconds=0.01)
    assert (line.verdict, line.goal_text) == (verdict, "≤ 10.0 ms more")


@pytest.mark.parametrize(
    ("raw", "text"), [(0.0123, "ours: +7.7 ms"), (0.0212, "ours: -1.2 ms"), (0.3, "ours: -280 ms")]
)
def test_what_is_more_is_told_with_its_sign(raw: float, text: str) -> None:
    line = report.compare(Sample("ours", (0.02,)), Sample("raw", (raw,)))
    assert report.describe_difference(line).startswith(text)


@pytest.mark.parametrize("written", [report.render_terminal, report.render_markdown])
def test_tables_show_ratio_spread_goal_and_a_miss(written: Callable[[report.Table], str]) -> None:
    text = written(table(1.7))
    for part in ("1.70 ×", "1.20 – 1.40", "≤ 1.5 ×", "missed", "1.30 ms", "raw: synchronous=FULL"):
        assert part in text


def test_terminal_columns_are_aligned() -> None:
    title, head, line, _ = report.render_terminal(table(1.3)).splitlines()
    assert title == "A durable call"
    assert head.index("ratio") == line.index("1.30 ×")


def test_markdown_has_as_many_cells_in_every_row() -> None:
    rows = [row for row in report.render_markdown(table(1.3)).splitlines() if row.startswith("|")]
    assert {row.replace("\\|", "").count("|") for row in rows} == {len(report.HEAD) + 1}


def test_json_has_everything() -> None:
    data = json.loads(report.render_json([table(1.3)], {"SQLite": "3"}))
    assert data["versions"] == {"SQLite": "3"}
    assert data["rows"][0]["key"] == "durable-call"
    assert data["rows"][0]["lines"][0]["verdict"] == "met"
    assert data["rows"][0]["lines"][0]["ratio"] == {"median": 1.3, "low": 1.2, "high": 1.4}


def test_replace_touches_only_what_lies_between_its_marks() -> None:
    page = "one\n<!-- x: begin -->\nold\n<!-- x: end -->\ntwo\n<!-- y: begin -->\nkept\n<!-- y: end -->\n"
    new = report.replace_block(page, "x", "new")
    assert new == page.replace("old", "new")
    assert report.replace_block(new, "x", "new") == new


@pytest.mark.parametrize(
    "page",
    [
        "",
        "<!-- x: begin -->",
        "<!-- x: end --><!-- x: begin -->",
        "<!-- x: begin -->" * 2 + "<!-- x: end -->",
    ],
)
def test_a_page_without_its_marks_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="x: begin"):
        report.replace_block(page, "x", "new")


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0004, "0.400 ms"), (0.0013, "1.30 ms"), (0.0456, "45.6 ms"), (1.5, "1500 ms")]
)
def test_duration_shows_three_digits_that_matter(seconds: float, text: str) -> None:
    assert report.format_duration(seconds) == text


def test_versions_are_one_sentence() -> None:
    assert report.render_versions({"Python": "3.11", "DBOS": "2"}) == "Measured with Python 3.11, DBOS 2."


@pytest.mark.parametrize("row", program.ROWS)
def test_the_page_has_a_place_for_every_row(row: str) -> None:
    with open(program.PAGE, encoding="utf-8") as page:
        assert "a new table" in report.replace_block(page.read(), row, "a new table")


# the cost of the gate


def judged(command: str) -> Classification:
    return classify_call(
        (gate_process.SEND,), "Bash", {"command": command}, CallContext("/srv/repository", "/srv/repository")
    )


def key_of(command: str) -> str:
    found = judged(command)
    return build_key(b"secret", "lineage", found.rule, "Bash", {"command": command}, found.fields)


def test_the_calls_are_what_the_table_calls_them() -> None:
    assert judged(gate_process.plain()).rule.call_class is CallClass.READ
    assert judged(gate_process.effect()).rule.call_class is CallClass.EFFECT
    assert judged(gate_process.repeated()).rule.call_class is CallClass.EFFECT


def test_an_effect_is_new_each_time_and_a_repeated_one_never() -> None:
    effects = {key_of(gate_process.effect()) for _ in range(3)}
    assert len(effects) == 3
    assert {key_of(gate_process.repeated()), key_of(gate_process.repeated())} - effects == {
        key_of(gate_process.repeated())
    }


def test_a_call_lasts_from_one_request_to_the_next() -> None:
    script = gate_cost.TimedScript((Reply(shell="true"),))
    script.at = [0.04 * number for number in range(gate_cost.CALLS)] + [99.0]
    assert script.measure_call() == pytest.approx(0.04)


def test_a_call_that_is_missing_is_no_measurement() -> None:
    script = gate_cost.TimedScript(())
    script.at = [0.0] * gate_cost.CALLS
    with pytest.raises(RuntimeError, match=f"asked {gate_cost.CALLS} times"):
        script.measure_call()


def test_the_yardstick_has_the_same_settings_but_for_the_hooks() -> None:
    settings = build_settings("http://127.0.0.1:1/hook", "TOKEN")
    (bare,) = gate_cost.remove_hooks({"settings.json": json.dumps(settings).encode()}).values()
    assert json.loads(bare) == {name: value for name, value in settings.items() if name != "hooks"}
    assert "hooks" in settings
