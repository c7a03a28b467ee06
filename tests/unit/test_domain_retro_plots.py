"""The plots: well-formed, to scale, and with nothing of anybody else's markup in them."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from jackline.domain.reporting import Spending
from jackline.domain.retro import plots
from jackline.domain.retro.report import Read, fold
from tests.unit.test_domain_dashboard import EVIL
from tests.unit.test_domain_retro import FULL, NOW, W46, finished

SVG = "{http://www.w3.org/2000/svg}"


def bars(svg: str) -> list[tuple[str, str, float]]:
    """Of each piece of a bar: its name, its colour, its width."""
    pieces = ET.fromstring(svg).iter(f"{SVG}rect")  # noqa: S314 - our own text
    return [
        (title.text or "", piece.attrib["fill"], float(piece.attrib["width"]))
        for piece in pieces
        if (title := piece.find(f"{SVG}title")) is not None
    ]


def words(svg: str) -> list[str]:
    return [one.text or "" for one in ET.fromstring(svg).iter(f"{SVG}text")]  # noqa: S314 - our own text


def test_a_full_week_has_three_plots_that_are_to_scale() -> None:
    made = plots.plots(fold(W46, FULL, NOW))
    assert list(made) == ["success", "cost", "time"]
    cost = bars(made["cost"])
    assert [name for name, _, _ in cost] == ["claude", "codex"]
    assert cost[0][2] == 4 * cost[1][2]  # 2 dollars and half a one
    assert cost[0][1] != cost[1][1]
    assert {"2026-11-09", "$2.00", "2026-11-15", "$0.00"} <= set(words(made["cost"]))
    success = bars(made["success"])
    assert [name for name, _, _ in success] == ["succeeded", "failed", "cancelled", "failed"]
    assert success[0][2] == 2 * success[1][2]
    assert "claude · mend" in words(made["success"])
    time = {name: width for name, _, width in bars(made["time"])}
    assert time["waiting for people"] == 2 * time["running"]


def test_colours_are_explained_where_the_labels_do_not() -> None:
    made = plots.plots(fold(W46, FULL, NOW))
    assert {"claude", "codex"} <= set(words(made["cost"]))
    assert words(made["time"]).count("running") == 1
    one_agent = plots.plots(fold(W46, FULL._replace(spending=FULL.spending[:1]), NOW))
    assert "claude" not in words(one_agent["cost"])


def test_nothing_to_show_is_no_plot() -> None:
    assert plots.plots(fold(W46, Read(), NOW)) == {}


def test_the_longest_bar_stays_inside() -> None:
    many = plots.Bar("x", (plots.Part("a", "#000000", 10**18),), "a lot")
    none = plots.Bar("y", (plots.Part("a", "#000000", 0),), "none")
    made = plots.svg("title", [many, none])
    assert [width <= 760 for _, _, width in bars(made)] == [True]


def test_foreign_text_stays_text() -> None:
    runs = [finished("failed", agent=EVIL + "\x00\x1b]\ud800", task="<&\">'"), finished("succeeded", agent="x" * 500)]
    made = plots.plots(fold(W46, Read(runs=runs), NOW))["success"]
    root = ET.fromstring(made)  # noqa: S314 - our own text
    assert {one.tag for one in root.iter()} == {f"{SVG}{name}" for name in ("svg", "title", "rect", "text")}
    assert max(len(one) for one in words(made)) < 100
    made.encode()


def places(svg: str) -> list[tuple[float, float]]:
    found = ET.fromstring(svg).iter(f"{SVG}text")  # noqa: S314 - our own text
    return [(float(one.attrib["x"]), float(one.attrib["y"])) for one in found]


def test_a_long_legend_takes_more_lines_and_many_agents_become_few() -> None:
    spending = [Spending(W46.days[0], f"agent-with-a-long-name-{one}", 1_000_000 + one, 1) for one in range(12)]
    made = plots.plots(fold(W46, Read(spending=spending), NOW))["cost"]
    height = float(ET.fromstring(made).attrib["viewBox"].split()[3])  # noqa: S314 - our own text
    assert all(left < 760 and bottom < height for left, bottom in places(made))
    assert [name for name, _, _ in bars(made)][:2] == ["agent-with-a-long-name-11", "agent-with-a-long-name-10"]
    assert bars(made)[-1][0] == "others"
    assert len({colour for _, colour, _ in bars(made)}) == len(bars(made)) == 8


def test_numbers_and_names_of_any_size_have_room() -> None:
    runs = [finished("failed", agent="ÄÖÜ" * 30, task="\u4ed5\u4e8b" * 30)]
    success = plots.plots(fold(W46, Read(runs=runs), NOW))["success"]
    label = next(one for one in words(success) if one.endswith("…"))
    assert len(label) <= 21
    rich = [Spending(W46.days[0], "claude", 9_629_629_540_000_000, 1)]
    assert "$9629.6M" in words(plots.plots(fold(W46, Read(spending=rich), NOW))["cost"])


def test_a_small_part_beside_a_large_one_is_seen() -> None:
    spending = [Spending(W46.days[0], "claude", 10**12, 1), Spending(W46.days[1], "codex", 1, 1)]
    assert bars(plots.plots(fold(W46, Read(spending=spending), NOW))["cost"])[1][2] == 1.0
