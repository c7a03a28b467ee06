"""How reports say times, amounts and text that somebody else wrote: in UTC, in Markdown, in one line. Pure."""

from __future__ import annotations

import re

_SECOND, _MINUTE, _HOUR, DAY_MS = 1_000, 60_000, 3_600_000, 86_400_000
_THOUSAND, _MILLION = 1_000, 1_000_000
_SHOWN = 160
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-")


def day(at: int) -> str:
    """The day of a moment, in UTC."""
    return f"{_date(at // DAY_MS)}"


def moment(at: int | None) -> str:
    """A moment, in UTC."""
    if at is None:
        return "-"
    days, rest = divmod(at, DAY_MS)
    return f"{_date(days)} {rest // _HOUR:02}:{rest % _HOUR // _MINUTE:02}:{rest % _MINUTE // _SECOND:02}"


def _date(days: int) -> str:
    """The date so many days after 1970-01-01, by eras of 400 years that begin in March."""
    era, of_era = divmod(days + 719_468, 146_097)
    year = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9  # noqa: PLR2004 - March is the first of an era's months
    return f"{year + era * 400 + (month <= 2):04}-{month:02}-{of_year - (153 * shifted + 2) // 5 + 1:02}"  # noqa: PLR2004


def duration(ms: int) -> str:
    """How long, in at most two units."""
    if ms < _MINUTE:
        return f"{max(0, ms) // _SECOND}s"
    if ms < _HOUR:
        return f"{ms // _MINUTE}m {ms % _MINUTE // _SECOND:02}s"
    if ms < DAY_MS:
        return f"{ms // _HOUR}h {ms % _HOUR // _MINUTE:02}m"
    return f"{ms // DAY_MS}d {ms % DAY_MS // _HOUR:02}h"


def usd(micros: int) -> str:
    """Money; below a dollar also a hundredth of a cent."""
    value = micros / _MILLION
    return f"${value:.2f}" if value >= 1 or not micros else f"${value:.4f}"


def cost(micros: int) -> str:
    """What was spent; what nobody told is not nothing."""
    return usd(micros) if micros else "-"


def amount(number: int) -> str:
    """A count in few characters."""
    if number < 10 * _THOUSAND:
        return str(number)
    return f"{number / _THOUSAND:.1f}k" if number < _MILLION else f"{number / _MILLION:.1f}M"


def plural(count: int, word: str) -> str:
    """A count with its word."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def line(text: str, most: int = _SHOWN) -> str:
    """Foreign text in one line, cut, without anything that a terminal would obey."""
    text = text.lstrip()  # before the cut: what is left of blanks alone is an empty span, and those can be combined
    shown = " ".join(text[: 4 * most].split())
    if not shown.isprintable():
        shown = "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in shown)
    return shown if len(shown) <= most and len(text) <= 4 * most else f"{shown[: most - 1]}…"


def code(text: str, most: int = _SHOWN) -> str:
    """Foreign text as a span of code: in it Markdown knows no HTML, no link, no emphasis and no table."""
    return span(line(text, most)) if text.strip() else "-"


def span(text: str) -> str:
    """A span of code whose marks are longer than any in the text."""
    longest = max(map(len, re.findall("`+", text))) if "`" in text else 0
    marks, gap = "`" * (longest + 1), " " if text.startswith("`") or text.endswith("`") else ""
    return f"{marks}{gap}{text}{gap}{marks}"


def table(titles: str, rows: list[list[str]]) -> list[str]:
    """A table; `titles` has a `|` between two columns. A column ends nowhere inside a cell, not even in code."""
    names = titles.split("|")
    # With a gap behind a backslash: some readers take two of them together, and the bar for the end of the column.
    cells = [[cell.replace("\\|", "\\ |").replace("|", "\\|") for cell in row] for row in rows]
    return [
        f"| {' | '.join(names)} |",
        f"|{'---|' * len(names)}",
        *(f"| {' | '.join(row)} |" for row in cells),
        "",
    ]


def answering(item_id: str) -> tuple[str, ...]:
    """The words of the command that answers a work item; an id that looks like a flag must not become one."""
    named = f"--id={item_id}" if item_id.startswith("-") else item_id
    return ("work", "answer", named, "YOUR ANSWER")


def typed(*words: str) -> str:
    """A command exactly as it is to be typed into a shell."""
    return " ".join(one if _is_plain(one) else "'" + one.replace("'", "'\"'\"'") + "'" for one in words)


def _is_plain(word: str) -> bool:
    """Whether no shell sees anything in it; zsh looks for a program behind a `=` at the beginning."""
    return _PLAIN.issuperset(word) and not word.startswith("=") and bool(word)
