"""The price table: the models that agents use today, one's own prices, and models that it does not know."""

from __future__ import annotations

import pytest

from jackline.agents import registry
from jackline.domain.limits import Spent
from jackline.domain.outcome import Usage
from jackline.domain.prices import Price, PriceTable
from jackline.domain.records import Turn
from jackline.engine.recovery import estimate_unreported_usage

TABLE = PriceTable()


@pytest.mark.parametrize(
    ("model", "output"),
    [
        ("claude-opus-5-5", 20),
        ("claude-opus-4-6", 25),
        ("claude-opus-4-1-20250805", 75),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 15),
        ("anthropic/claude-haiku-4-5", 5),
        ("GPT-6.1-Sol", 10),
        ("gpt-5.5-pro", 180),
        ("gpt-5.6-sol", 30),
        ("gpt-5-mini", 2),
        ("gemini-3.1-pro-preview", 12),
        ("gemini-2.5-flash-lite", 0.4),
        ("qwen3-coder-plus", 5),
    ],
)
def test_known_models(model: str, output: float) -> None:
    found = TABLE.find_price("", model)
    assert (found.known, found.price.output) == (True, output)


def test_an_unknown_model_costs_as_much_as_the_dearest_of_its_family() -> None:
    assert TABLE.find_price("gpt", "") == (Price(10, 1, 50), False)
    assert TABLE.find_price("claude", "claude-next").price.output == 75
    assert TABLE.find_price("", "my-model").price.output == 75


def test_own_prices_come_first_in_their_order() -> None:
    own = PriceTable({"Claude-Opus-5*": Price(1, 1, 1), "*": Price(2, 2, 2)})
    assert own.find_price("claude", "claude-opus-5-5") == (Price(1, 1, 1), True)
    assert own.find_price("claude", "claude-haiku-4-5") == (Price(2, 2, 2), True)


def test_cached_input_has_its_own_price() -> None:
    assert Price(10, 1, 50).compute_cost(Usage(tokens_input=100, tokens_cached=90, tokens_output=2)) == 100 + 90 + 100


def test_a_turn_that_reported_nothing_is_not_free() -> None:
    turn = Turn(
        run_id="r", number=1, step=1, attempt=1, role="work", agent="codex", session="s", prompt="x" * 400,
        started_at=1, stdout_bytes=4_000,
    )  # fmt: skip
    usage = TABLE.estimate_unreported("gpt", "", turn, 2)
    assert (usage.tokens_input, usage.tokens_cached, usage.tokens_output) == (3 * 11_100, 2 * 11_100, 1_000)
    assert usage.usd_micros == usage.usd_estimated == 11_100 * 10 + 22_200 + 50_000
    # Only the cost is charged: the agent may report the tokens with the totals of its next turn.
    charged = estimate_unreported_usage(turn, TABLE, "gpt", "", 2)
    assert charged.spent == Spent(usd_micros=usage.usd_micros, usd_estimated=usage.usd_micros)
    reported = turn._replace(spent=Spent(tokens_output=1))
    assert estimate_unreported_usage(reported, TABLE, "gpt", "", 2) == reported
    assert estimate_unreported_usage(turn, TABLE, "gpt", "", 0) == turn  # the model had not answered


def test_every_agent_says_when_it_reports_usage_and_what_its_models_cost() -> None:
    """Observed with the real CLIs; an agent that reports while it works needs no warning."""
    declared = {name: registry.load_adapter(name).declaration for name in registry.list_agents()}
    assert {name for name, one in declared.items() if one.live_usage} == {
        "claude", "qwen", "opencode", "kilo", "ollama", "scripted",
    }  # fmt: skip
    assert {name: one.prices for name, one in declared.items() if one.prices} == {
        "claude": "claude", "codex": "gpt", "gemini": "gemini", "qwen": "qwen", "opencode": "all", "kilo": "all",
    }  # fmt: skip
