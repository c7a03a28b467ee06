"""The bars of a retro: to scale, explained, and with no text that could end their code block."""

from __future__ import annotations

from jackline.features.reports import retro_page
from jackline.features.reports.lines import Spending
from jackline.features.reports.retro_report import WeekData, build_report
from jackline.formatting import measure_width
from tests.unit.test_dashboard_page import EVIL
from tests.unit.test_retro_report import FULL, NOW, W46, finished


def bars(lines: list[str]) -> dict[str, str]:
    """The marks of each bar, by its label."""
    found = [line.strip() for line in lines if line.strip()]
    return {line.partition("  ")[0]: "".join(one for one in line if one in "█▓▒░") for line in found}


def test_bars_are_to_scale() -> None:
    report = build_report(W46, FULL, NOW)
    cost = bars(retro_page.plot_cost(report))
    assert (cost["2026-11-09"], cost["2026-11-10"], cost["2026-11-15"]) == ("█" * 40, "▓" * 10, "")
    assert bars(retro_page.plot_success(report))["claude · mend"] == "█" * 20 + "▓" * 10 + "▒" * 10
    time = bars(retro_page.plot_time(report))
    assert len(time["waiting for people"]) == 2 * len(time["running"])


def test_marks_are_explained_if_there_are_several() -> None:
    report = build_report(W46, FULL, NOW)
    assert retro_page.plot_cost(report)[-2] == "    █ claude  ▓ codex"
    assert retro_page.plot_cost(report)[0].endswith(" $2.00")
    assert "█" not in retro_page.plot_time(report)[-2].partition("other waits")[0]
    one_agent = retro_page.plot_cost(build_report(W46, FULL._replace(spending=FULL.spending[:1]), NOW))
    assert not any("claude" in line for line in one_agent)


def test_an_empty_week_has_no_bars() -> None:
    report = build_report(W46, WeekData(), NOW)
    assert (retro_page.plot_success(report), retro_page.plot_cost(report), retro_page.plot_time(report)) == ([], [], [])


def test_foreign_text_stays_in_its_line_of_the_code_block() -> None:
    evil = EVIL + "\x00\x1b]\ud800\n```\n"
    runs = [finished("failed", agent=evil, task="<&\">'"), finished("succeeded", agent="x" * 500)]
    lines = retro_page.plot_success(build_report(W46, WeekData(runs=runs), NOW))
    assert all(line == "" or line.startswith("    ") for line in lines)
    assert all(line.isprintable() and len(line) < 100 for line in lines)


def test_many_agents_become_few() -> None:
    spending = [Spending(W46.days[0], f"agent-{one}", 1_000_000 + one, 1) for one in range(12)]
    lines = retro_page.plot_cost(build_report(W46, WeekData(spending=spending), NOW))
    assert lines[-2] == "    █ agent-11  ▓ agent-10  ▒ agent-9  ░ agent-8  · others"


def test_wide_letters_keep_the_bars_aligned() -> None:
    runs = [finished("failed", agent="\u4ed5\u4e8b" * 30), finished("failed", agent="a")]
    first, second = (line for line in retro_page.plot_success(build_report(W46, WeekData(runs=runs), NOW))[:2])
    assert measure_width(first.partition("▓")[0]) == measure_width(second.partition("▓")[0])


def test_a_small_part_beside_a_large_one_is_shown() -> None:
    spending = [Spending(W46.days[0], "claude", 10**12, 1), Spending(W46.days[1], "codex", 1, 1)]
    assert bars(retro_page.plot_cost(build_report(W46, WeekData(spending=spending), NOW)))[W46.days[1]] == "▓"
