"""List prices of models, for the cost of turns whose agent reports tokens but no cost. Pure data; estimates, not bills.

The table is from September 2026: the prices of the providers themselves, as collected by models.dev. Users override
it in their `config.toml`. The source of each update is in docs/decisions/0015-price-table.md.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from jackline.domain.outcome import Usage
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.records import Turn

PRICES_DATE = "2026-09"


class Price(NamedTuple):
    """USD per million tokens, which is millionths of a dollar per token."""

    input: float
    cached: float
    output: float

    def compute_cost(self, usage: Usage) -> float:
        """The cost of this usage in millionths of a dollar; `tokens_input` includes the cached ones."""
        fresh = max(0, usage.tokens_input - usage.tokens_cached)
        return fresh * self.input + usage.tokens_cached * self.cached + usage.tokens_output * self.output


# The first match wins. Claude's input is at the price of writing to its cache, which it does with nearly all of it.
_CLAUDE = (
    ("*claude-fable-*", Price(12.5, 1.0, 50)),
    ("*claude-mythos-*", Price(12.5, 1.0, 50)),
    ("*claude-opus-5-5*", Price(5, 0.2, 20)),
    ("*claude-opus-4-[5-9]*", Price(6.25, 0.5, 25)),
    ("*claude-opus-4*", Price(18.75, 1.5, 75)),
    ("*claude-opus-*", Price(6.25, 0.5, 25)),
    ("*claude-sonnet-5*", Price(2.5, 0.2, 10)),
    ("*claude-*sonnet*", Price(3.75, 0.3, 15)),
    ("*claude-haiku-*", Price(1.25, 0.1, 5)),
    ("*claude-*haiku*", Price(1, 0.08, 4)),
)
_GPT = (
    ("*gpt-6*-astra*", Price(10, 1, 50)),
    ("*gpt-6*-sol*", Price(2, 0.2, 10)),
    ("*gpt-6*-luna*", Price(0.1, 0.01, 0.5)),
    ("*gpt-5.6-terra*", Price(2.5, 0.25, 15)),
    ("*gpt-5.6-luna*", Price(1, 0.1, 6)),
    ("*gpt-5.[56]*", Price(5, 0.5, 30)),
    ("*gpt-5.4-mini*", Price(0.75, 0.075, 4.5)),
    ("*gpt-5.4-nano*", Price(0.2, 0.02, 1.25)),
    ("*gpt-5.4*", Price(2.5, 0.25, 15)),
    ("*gpt-5.[23]*", Price(1.75, 0.175, 14)),
    ("*gpt-5*-mini*", Price(0.25, 0.025, 2)),
    ("*gpt-5*-nano*", Price(0.05, 0.005, 0.4)),
    ("*gpt-5*", Price(1.25, 0.125, 10)),
    ("*codex-mini*", Price(1.5, 0.375, 6)),
    ("*gpt-4.1-mini*", Price(0.4, 0.1, 1.6)),
    ("*gpt-4.1-nano*", Price(0.1, 0.025, 0.4)),
    ("*gpt-4.1*", Price(2, 0.5, 8)),
)
_GEMINI = (
    ("*gemini-*-pro*", Price(2, 0.2, 12)),
    ("*gemini-pro*", Price(2, 0.2, 12)),
    ("*gemini-2.5-flash-lite*", Price(0.1, 0.01, 0.4)),
    ("*gemini-*-flash-lite*", Price(0.3, 0.03, 2.5)),
    ("*gemini-2.5-flash*", Price(0.3, 0.03, 2.5)),
    ("*gemini-3-flash*", Price(0.5, 0.05, 3)),
    ("*gemini-3.[78]-flash*", Price(0.75, 0.075, 3.75)),
    ("*gemini-*flash*", Price(1.5, 0.15, 9)),
)
_QWEN = (
    ("*qwen3-coder-flash*", Price(0.3, 0.06, 1.5)),
    ("*qwen3-coder*", Price(1, 0.2, 5)),
    ("*qwen3.8-max*", Price(2, 0.25, 6)),
    ("*qwen3*-max*", Price(2.5, 0.5, 7.5)),
    ("*qwen*-max*", Price(1.6, 1.6, 6.4)),
    ("*qwen*-plus*", Price(0.5, 0.05, 3)),
    ("*qwen*-flash*", Price(0.25, 0.05, 1.5)),
)
_OTHERS = (
    ("*gpt-*-pro*", Price(30, 30, 180)),
    ("o1-pro*", Price(150, 150, 600)),
    ("o3-pro*", Price(20, 20, 80)),
    ("o1-mini*", Price(1.1, 0.55, 4.4)),
    ("o1*", Price(15, 7.5, 60)),
    ("o[34]-mini*", Price(1.1, 0.55, 4.4)),
    ("o3*", Price(2, 0.5, 8)),
    ("*gpt-oss-*", Price(0.15, 0.15, 0.6)),
    ("*deepseek-*", Price(1.32, 0.044, 3.96)),
    ("*kimi-k3*", Price(3, 0.3, 15)),
    ("*kimi-*", Price(0.95, 0.19, 4)),
    ("*minimax-*", Price(0.6, 0.12, 2.4)),
    ("*glm-4*", Price(0.6, 0.11, 2.2)),
)
_USUAL = (*_CLAUDE, *_GPT, *_GEMINI, *_QWEN)
_FAMILIES = {"claude": _CLAUDE, "gpt": _GPT, "gemini": _GEMINI, "qwen": _QWEN}
_BUILT_IN = (*_OTHERS, *_USUAL)
# What a request has besides the conversation (instructions and tools), and the size of a token.
_BASE_TOKENS = 10_000
_TOKEN_CHARS = 4


class FoundPrice(NamedTuple):
    """The price of a model, and whether it is known or the dearest one of a family."""

    price: Price
    known: bool


class PriceTable:
    """The built-in prices, overridden by those that a person configured."""

    def __init__(self, own: Mapping[str, Price] | None = None) -> None:
        """`own` are the configured prices by pattern; the first match wins."""
        self._own = tuple((own or {}).items())

    def find_price(self, family: str, model: str) -> FoundPrice:
        """Find the price of a model; an unknown one gets the dearest of the family, so that a budget holds."""
        name = model.lower().rpartition("/")[2]  # without the provider
        for pattern, price in (*((pattern.lower(), price) for pattern, price in self._own), *_BUILT_IN):
            if fnmatchcase(name, pattern):
                return FoundPrice(price, known=True)
        prices = (price for _, price in _FAMILIES.get(family, _USUAL))
        return FoundPrice(max(prices, key=lambda price: price.output), known=False)

    def estimate_unreported(self, family: str, model: str, turn: Turn, calls: int) -> Usage:
        """Estimate the usage of a turn that was cut off before its agent reported any: a request, and one per call."""
        text = turn.stdout_bytes // _TOKEN_CHARS
        context = _BASE_TOKENS + len(turn.prompt) // _TOKEN_CHARS + text
        usage = Usage(tokens_input=context * (1 + calls), tokens_output=text, tokens_cached=context * calls)
        cost = round(self.find_price(family, model).price.compute_cost(usage))
        return usage._replace(usd_micros=cost, usd_estimated=cost)
