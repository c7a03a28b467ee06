"""Prints tables on a terminal, plain lines in a pipe, and JSON with --json. It knows nothing about runs.

A reader that goes away (`| head -1`, a closed terminal) never disturbs the work: printing stops silently.
"""

from __future__ import annotations

import errno
import json as json_module
import os
import re
import sys
from typing import TYPE_CHECKING, TextIO

from jackline.errors import JacklineError
from jackline.formatting import (
    escape_json,
    make_encodable,
    make_printable,
    make_readable,
    measure_width,
    shorten_text,
)
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterable, Sequence

STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
STATE_STYLES = {
    "succeeded": "green", "failed": "red", "waiting": "yellow", "running": "cyan", "queued": "cyan", "lost": "yellow",
    "stopped": "yellow",
    "pending": "cyan", "in_flight": "cyan", "waiting_human": "yellow",
    "cancelled": "dim", "done": "green", "in_doubt": "yellow", "denied": "red", "asked": "yellow",
    "confirmed": "green", "in doubt": "yellow", "approved": "green",
    "ok": "green", "warn": "yellow", "fail": "red",
    "ready": "green", "resting": "yellow", "unusable": "red", "missing": "dim",
    "not logged in": "yellow",
}  # fmt: skip
STATE_MARKS = {
    "succeeded": "✓", "failed": "✗", "waiting": "!", "lost": "!", "stopped": "!", "running": "▶", "queued": "○",
    "cancelled": "-",
}  # fmt: skip
_DEFAULT_WIDTH = 100
_MIN_FLEXIBLE_WIDTH = 16
_MIN_WIDTH = 8  # of another column that is shortened because the table does not fit
_MARKS = "".join((" ·", *STATE_MARKS.values()))  # in front of a state
_CLOSED_ERRORS = frozenset({errno.EPIPE, errno.EIO, errno.EBADF})


class Column(NamedTuple):
    """A column of a table; the flexible one is shortened to fit the terminal."""

    title: str
    right: bool = False
    flexible: bool = False
    state: bool = False


def parse_columns(titles: str) -> tuple[Column, ...]:
    """Parse columns from titles: `>` marks a right-aligned one, `~` the flexible one, `*` one with states."""
    return tuple(
        Column(title=title.rstrip(">~*"), right=">" in title, flexible="~" in title, state="*" in title)
        for title in titles.split()
    )


class Printer:
    """Writes to stdout or stderr, and stops silently when the reader has gone."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self.is_closed = stream is None
        self.is_terminal = stream is not None and stream.isatty()
        self._encoding = (stream.encoding if stream is not None else None) or "utf-8"
        self.is_unicode = self._encoding.lower().replace("-", "").startswith("utf")

    def write(self, text: str) -> None:
        """Write text and flush."""
        if self._stream is not None and not self.is_closed:
            encodable = self.make_encodable(text)
            self._write_safely(self._stream, lambda stream: stream.write(encodable))

    def make_encodable(self, text: str) -> str:
        """Return the text as `write` writes it."""
        return text if self.is_unicode else make_encodable(text, self._encoding)

    def write_bytes(self, data: bytes) -> None:
        """Write bytes unchanged."""
        if self._stream is not None and not self.is_closed:
            self._write_safely(self._stream, lambda stream: _write_all(stream.fileno(), data))

    def _write_safely(self, stream: TextIO, write: Callable[[TextIO], object]) -> None:
        try:
            write(stream)
            stream.flush()
        except OSError as error:
            self.is_closed = True
            # Python flushes again at exit, and would print an error.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
            if error.errno not in _CLOSED_ERRORS:
                raise JacklineError(f"the output cannot be written: {error.strerror}") from None


class Output:
    """The standard output and standard error of one command."""

    def __init__(self, out: Printer, errors: Printer, *, json: bool, colour: bool) -> None:
        self.stdout, self.stderr = out, errors
        self.json = json
        self.quiet = False  # of a run, only its figures are printed
        self._colour = colour
        self._home: str | None = None
        self.typed: tuple[str, ...] = ()  # the words of the current command

    def apply_flags(self, args: Namespace, typed: Sequence[str]) -> None:
        """Apply the global flags."""
        self.json = args.json
        self._colour = self._colour and not args.no_color
        self._home = args.home
        self.typed = tuple(typed)

    # printing

    def print_line(self, text: str = "") -> None:
        """Print text and a newline."""
        self.stdout.write(make_harmless(text) + "\n")

    def print_note(self, text: str) -> None:
        """Print a line for people to stderr; nothing with --json."""
        if not self.json:
            self.stderr.write(make_harmless(text) + "\n")

    def print_warnings(self, warnings: list[str]) -> None:
        """Print what a person should know, and take it off the list."""
        while warnings:
            self.print_note(f"jackline: {make_printable(warnings.pop(0))}")

    def print_json(self, value: object) -> None:
        """Print one JSON value on one line."""
        self.print_json_lines((value,))

    def print_json_lines(self, values: Iterable[object]) -> None:
        """Print newline-delimited JSON; control and format characters are escaped."""
        escapes_all = not self.stdout.is_unicode
        lines = (escape_json(json_module.dumps(value, ensure_ascii=escapes_all)) for value in values)
        self.stdout.write("".join(f"{line}\n" for line in lines))

    def print_error(self, message: str, code: int) -> int:
        """Print an error as one line, with --json also as an object, and return the exit code."""
        message = make_printable(message)
        if self.json:
            self.print_json({"error": message, "exit_code": code})
        self.stderr.write(f"jackline: {message}\n")
        return code

    # formatting

    def colorize(self, text: str, style: str | None, *, errors: bool = False) -> str:
        """Add color on a terminal: that of stdout, or that of stderr."""
        if not (style and self._colour and (self.stderr if errors else self.stdout).is_terminal):
            return text
        return f"\x1b[{STYLES[style]}m{text}\x1b[0m"

    def colorize_state(self, text: str) -> str:
        """Add the color of a state."""
        return self.colorize(text, STATE_STYLES.get(text.partition(":")[0].strip(_MARKS)))

    def format_command(self, *words: str) -> str:
        """Return a jackline command that can be pasted into a shell, with --home if it was given."""
        from shlex import join

        return join(("jackline", *words, *(("--home", self._home) if self._home else ())))

    def print_table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]], *, titled: bool = True) -> None:
        """Print a table: aligned and with titles on a terminal, else complete and separated by tabs."""
        cells = [[make_printable(cell) for cell in row] for row in rows]
        if not self.stdout.is_terminal:
            self.stdout.write("".join("\t".join(row) + "\n" for row in cells))
            return
        titles = [column.title if titled else "" for column in columns]
        widths = _fit_widths(columns, [titles, *cells], self.terminal_width())
        lines = [self._format_row(columns, widths, row) for row in cells]
        heading = [self._format_row(columns, widths, titles, title=True)] if titled else []
        self.print_line("\n".join((*heading, *lines)))

    def open_table(self, columns: Sequence[Column], widest: Sequence[str]) -> Callable[[Sequence[str]], None]:
        """Print the titles of a table on a terminal; returns a function that prints one row at once.

        `widest` has the widest expected cell of each column; the flexible one, the last, gets the rest of the line. A
        cell that does not fit there follows on a separate line.
        """
        titles = [column.title for column in columns]
        widths = [max(map(measure_width, both)) for both in zip(titles[:-1], widest[:-1], strict=True)]
        widths.append(max(len(titles[-1]), self.terminal_width() - sum(widths) - 2 * len(widths)))
        self.print_line(self._format_row(columns, widths, titles, title=True))

        def print_row(row: Sequence[str]) -> None:
            cells = [make_printable(cell) for cell in row]
            fits = measure_width(cells[-1]) <= widths[-1]
            self.print_line(self._format_row(columns, widths, cells if fits else [*cells[:-1], ""]))
            if not fits:
                self.print_line(f"    {cells[-1]}")

        return print_row

    def _format_row(
        self, columns: Sequence[Column], widths: Sequence[int], row: Sequence[str], *, title: bool = False
    ) -> str:
        shown = []
        for column, room, cell in zip(columns, widths, row, strict=True):
            text = shorten_text(cell, room)
            gap = " " * (room - measure_width(text))
            text = self.colorize_state(text) if column.state and not title else text
            shown.append(gap + text if column.right else text + gap)
        line = "  ".join(shown).rstrip()
        return self.colorize(line, "bold") if title else line

    def terminal_width(self, stream: int = 1) -> int:
        """Return the width of the terminal in columns."""
        columns = os.environ.get("COLUMNS", "")
        if columns.isdigit() and int(columns):
            return int(columns)
        try:
            return os.get_terminal_size(stream).columns or _DEFAULT_WIDTH
        except OSError:
            return _DEFAULT_WIDTH


def make_harmless(text: str) -> str:
    """Replace control characters that were overlooked where the text comes from; colors pass."""
    if text.isprintable():
        return text
    parts = re.split(r"(\x1b\[\d+m)", text)
    return "".join(part if index % 2 else make_readable(part) for index, part in enumerate(parts))


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def open_output(*, json: bool, colour: bool) -> Output:
    """Open the streams of this process; characters that their encoding lacks are escaped."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return Output(Printer(sys.stdout), Printer(sys.stderr), json=json, colour=colour and not plain)


def _fit_widths(columns: Sequence[Column], rows: Sequence[Sequence[str]], room: int) -> list[int]:
    """Shorten the flexible column until the table fits, then the widest of the others."""
    widths = [max(measure_width(row[index]) for row in rows) for index in range(len(columns))]
    too_much = sum(widths) + 2 * (len(columns) - 1) - room
    for index, column in enumerate(columns):
        if column.flexible:
            too_much -= _shorten_column(widths, index, _MIN_FLEXIBLE_WIDTH, too_much)
    while too_much > 0 and max(widths) > _MIN_WIDTH:
        too_much -= _shorten_column(widths, widths.index(max(widths)), _MIN_WIDTH, 1)
    return widths


def _shorten_column(widths: list[int], index: int, least: int, columns: int) -> int:
    taken = max(0, min(columns, widths[index] - least))
    widths[index] -= taken
    return taken
