"""What is printed, and how: tables on a terminal, plain lines in a pipe, JSON on demand. It knows no run.

A reader that goes away (`| head -1`, a closed terminal) never disturbs the work: nothing is printed then.
"""

from __future__ import annotations

import errno
import json as json_module
import os
import sys
from typing import IO, TYPE_CHECKING

from jackline.errors import JacklineError
from jackline.formatting import make_printable, measure_width, shorten_text
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterable, Sequence

STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
STATE_STYLES = {
    "succeeded": "green", "failed": "red", "waiting": "yellow", "running": "cyan", "queued": "cyan",
    "pending": "cyan", "in_flight": "cyan", "waiting_human": "yellow",
    "cancelled": "dim", "done": "green", "in_doubt": "yellow", "denied": "red", "asked": "yellow",
    "ok": "green", "warn": "yellow", "fail": "red",
    "ready": "green", "resting": "yellow", "unusable": "red", "missing": "dim",
}  # fmt: skip
_WIDTH = 100
_LEAST_FLEXIBLE = 10
_GONE = frozenset({errno.EPIPE, errno.EIO, errno.EBADF})


class Column(NamedTuple):
    """A column of a table; the flexible one is cut where the terminal ends."""

    title: str
    right: bool = False
    flexible: bool = False
    state: bool = False


def columns(titles: str) -> tuple[Column, ...]:
    """Columns from their titles; `>` marks a number, `~` the flexible one, `*` a state."""
    return tuple(Column(title.rstrip(">~*"), ">" in title, "~" in title, "*" in title) for title in titles.split())


class Printer:
    """One of the two streams; it falls silent when nobody reads it any more."""

    def __init__(self, stream: IO[str] | None) -> None:
        self._stream = stream
        self.gone = stream is None
        self.terminal = stream is not None and stream.isatty()

    def write(self, text: str) -> None:
        """Print, at once."""
        if self._stream is not None and not self.gone:
            self._attempt(self._stream, lambda stream: stream.write(text))

    def write_bytes(self, data: bytes) -> None:
        """Print bytes as they are."""
        if self._stream is not None and not self.gone:
            self._attempt(self._stream, lambda stream: _write_all(stream.fileno(), data))

    def _attempt(self, stream: IO[str], write: Callable[[IO[str]], object]) -> None:
        try:
            write(stream)
            stream.flush()
        except OSError as error:
            self.gone = True
            # Python flushes once more when it ends, and would complain then.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
            if error.errno not in _GONE:
                raise JacklineError(f"the output cannot be written: {error.strerror}") from None


class Output:
    """Standard output and standard error of one command."""

    def __init__(self, out: Printer, errors: Printer, *, json: bool, colour: bool) -> None:
        self.out, self.errors = out, errors
        self.json = json
        self._colour = colour
        self._home: str | None = None
        self.typed: tuple[str, ...] = ()  # the words of this very command

    def follow(self, args: Namespace, typed: Sequence[str]) -> None:
        """Do as the flags say."""
        self.json = args.json
        self._colour = self._colour and not args.no_color
        self._home = args.home
        self.typed = tuple(typed)

    # printing

    def line(self, text: str = "") -> None:
        """One line, or several."""
        self.out.write(text + "\n")

    def note(self, text: str) -> None:
        """A line for people only, beside the output."""
        if not self.json:
            self.errors.write(text + "\n")

    def json_line(self, value: object) -> None:
        """One JSON value on one line."""
        self.out.write(json_module.dumps(value, ensure_ascii=False) + "\n")

    def json_lines(self, values: Iterable[object]) -> None:
        """Newline-delimited JSON."""
        self.out.write("".join(json_module.dumps(value, ensure_ascii=False) + "\n" for value in values))

    def fail(self, message: str, code: int) -> int:
        """One line that says what went wrong; for programs the same as JSON."""
        message = make_printable(message)
        if self.json:
            self.json_line({"error": message, "exit_code": code})
        self.errors.write(f"jackline: {message}\n")
        return code

    # shaping

    def paint(self, text: str, style: str | None) -> str:
        """Coloured on a terminal, else as it is."""
        if not (style and self._colour and self.out.terminal):
            return text
        return f"\x1b[{STYLES[style]}m{text}\x1b[0m"

    def state(self, text: str) -> str:
        """A state in its colour."""
        return self.paint(text, STATE_STYLES.get(text.partition(":")[0].strip()))

    def command(self, *words: str) -> str:
        """A jackline command exactly as it has to be typed here."""
        from shlex import join

        return join(("jackline", *words, *(("--home", self._home) if self._home else ())))

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
        """Aligned, with titles, on a terminal; in a pipe one row a line with tabs between, nothing cut."""
        cells = [[make_printable(cell) for cell in row] for row in rows]
        if not self.out.terminal:
            self.out.write("".join("\t".join(row) + "\n" for row in cells))
            return
        widths = _fitted(columns, cells, self.width())
        titles = self._row(columns, widths, [column.title for column in columns], title=True)
        self.line("\n".join((titles, *(self._row(columns, widths, row) for row in cells))))

    def _row(self, columns: Sequence[Column], widths: Sequence[int], row: Sequence[str], *, title: bool = False) -> str:
        shown = []
        for column, room, cell in zip(columns, widths, row, strict=True):
            text = shorten_text(cell, room)
            gap = " " * (room - measure_width(text))
            text = self.state(text) if column.state and not title else text
            shown.append(gap + text if column.right else text + gap)
        line = "  ".join(shown).rstrip()
        return self.paint(line, "bold") if title else line

    def width(self, stream: int = 1) -> int:
        """How many columns the terminal has."""
        given = os.environ.get("COLUMNS", "")
        if given.isdigit() and int(given):
            return int(given)
        try:
            return os.get_terminal_size(stream).columns or _WIDTH
        except OSError:
            return _WIDTH


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def standard(*, json: bool, colour: bool) -> Output:
    """The streams of this process; text that their encoding cannot say is escaped, never an error."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return Output(Printer(sys.stdout), Printer(sys.stderr), json=json, colour=colour and not plain)


def _fitted(columns: Sequence[Column], rows: Sequence[Sequence[str]], room: int) -> list[int]:
    widths = [
        max(measure_width(text) for text in (column.title, *(row[index] for row in rows)))
        for index, column in enumerate(columns)
    ]
    for index, column in enumerate(columns):
        if column.flexible:
            rest = sum(widths) - widths[index] + 2 * (len(columns) - 1)
            widths[index] = min(widths[index], max(_LEAST_FLEXIBLE, room - rest))
    return widths
