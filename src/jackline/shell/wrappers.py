"""Removes wrappers such as `sudo`, `env` and `xargs` from the command that they run. It runs nothing."""

from __future__ import annotations

import re

from jackline.shell import special_wrappers
from jackline.shell.model import NestedText, Redirect, Unwrapped, Word
from jackline.shell.options import ParsedOptions, WrapperOptions, parse_options

_SIMPLE_WORDS = re.compile(r"[A-Za-z0-9_ \t./=:@%+,-]*")

_SUDO = WrapperOptions(
    alone="ABbEHKkNnPSsi",
    valued="CDghpRrTtUu",
    long_alone=(
        "--askpass", "--background", "--bell", "--login", "--no-update", "--non-interactive", "--preserve-env",
        "--preserve-groups", "--reset-timestamp", "--set-home", "--shell", "--stdin",
    ),
    long_valued=(
        "--chdir", "--chroot", "--close-from", "--command-timeout", "--group", "--host", "--other-user", "--prompt",
        "--role", "--type", "--user",
    ),
    idle=("-e", "--edit", "-l", "--list", "-v", "--validate", "-V", "--version", "--help", "--remove-timestamp"),
    assigns=True,
)  # fmt: skip
_ENV = WrapperOptions(
    alone="-0iv",
    valued="CSuaP",
    long_alone=(
        "--block-signal", "--debug", "--default-signal", "--ignore-environment", "--ignore-signal",
        "--list-signal-handling", "--null",
    ),
    long_valued=("--argv0", "--chdir", "--split-string", "--unset"),
    idle=("--help", "--version"),
    assigns=True,
)  # fmt: skip
_TIMEOUT = WrapperOptions(
    alone="fpv",
    valued="ks",
    long_alone=("--foreground", "--preserve-status", "--verbose"),
    long_valued=("--kill-after", "--signal"),
    idle=("--help", "--version"),
    operands=1,
)
_XARGS = WrapperOptions(
    alone="0oprtx",
    valued="adEIJLnPRSs",
    joined="eil",
    long_alone=(
        "--eof", "--exit", "--interactive", "--max-lines", "--no-run-if-empty", "--null", "--open-tty", "--replace",
        "--show-limits", "--verbose",
    ),
    long_valued=("--arg-file", "--delimiter", "--max-args", "--max-chars", "--max-procs", "--process-slot-var"),
    idle=("--help", "--version"),
)  # fmt: skip
_COMPILER_LAUNCHER = WrapperOptions(idle=(
    "-c", "-C", "-F", "-h", "-M", "-o", "-p", "-s", "-V", "-x", "-z", "--cleanup", "--clear", "--show-stats",
    "--zero-stats", "--version", "--help", "--show-config", "--start-server", "--stop-server",
))  # fmt: skip
_WRAPPERS = {
    **dict.fromkeys(("ccache", "sccache", "distcc", "icecc"), _COMPILER_LAUNCHER),
    "bear": WrapperOptions(
        alone="av",
        valued="o",
        long_alone=("--append", "--verbose"),
        long_valued=("--output", "--config"),
        idle=("-h", "--help", "--version"),
    ),
    "sudo": _SUDO,
    "doas": WrapperOptions(alone="nsL", valued="aCu", assigns=True),
    "env": _ENV,
    "nohup": WrapperOptions(idle=("--help", "--version")),
    "nice": WrapperOptions(valued="n", long_valued=("--adjustment",), idle=("--help", "--version"), numbers=True),
    "ionice": WrapperOptions(
        alone="t",
        valued="cn",
        long_alone=("--ignore",),
        long_valued=("--class", "--classdata"),
        idle=("-p", "-P", "-u", "--pid", "--pgid", "--uid", "-h", "--help", "-V", "--version"),
    ),
    "time": WrapperOptions(
        alone="alpqv",
        valued="fo",
        long_alone=("--append", "--portability", "--quiet", "--verbose"),
        long_valued=("--format", "--output"),
        idle=("-h", "--help", "-V", "--version"),
        assigns=True,
    ),
    "timeout": _TIMEOUT,
    "gtimeout": _TIMEOUT,
    "stdbuf": WrapperOptions(
        valued="eio", long_valued=("--error", "--input", "--output"), idle=("--help", "--version")
    ),
    "setsid": WrapperOptions(
        alone="cfw", long_alone=("--ctty", "--fork", "--wait"), idle=("-h", "--help", "-V", "--version")
    ),
    "chroot": WrapperOptions(
        long_alone=("--skip-chdir",),
        long_valued=("--groups", "--userspec"),
        idle=("--help", "--version"),
        operands=1,
    ),
    "command": WrapperOptions(alone="p", idle=("-v", "-V")),
    "builtin": WrapperOptions(),
    "exec": WrapperOptions(alone="cl", valued="a"),
    "-": WrapperOptions(),  # zsh precommand modifiers, like the next two
    "noglob": WrapperOptions(),
    "nocorrect": WrapperOptions(),
    "busybox": WrapperOptions(idle=("--help", "--list", "--list-full", "--install")),
    "toybox": WrapperOptions(idle=("--help", "--version", "--long")),
    "xargs": _XARGS,
    "unbuffer": WrapperOptions(alone="p"),
    "caffeinate": WrapperOptions(alone="dimsu", valued="tw"),
}
_FOLDERS = ("-C", "-D", "--chdir")
_ELSEWHERE = ("-i", "--login", "-R", "--chroot")


def unwrap_command(words: tuple[Word, ...], stdin: Word | None) -> Unwrapped | None:
    """Return the command inside a wrapper, or None if the program is not a wrapper."""
    if not words or not words[0].exact:
        return None
    program = words[0].text.rsplit("/", 1)[-1]
    if program in _WRAPPERS:
        return _unwrap(program, words)
    if program in special_wrappers.SHELLS:
        return special_wrappers.unwrap_shell(words, stdin)
    special = special_wrappers.UNWRAPPERS.get(program)
    return special(words) if special else None


def is_wrapper(program: str) -> bool:
    """Check whether a program of this name runs another one."""
    return program in _WRAPPERS or program in special_wrappers.SHELLS or program in special_wrappers.UNWRAPPERS


def _unwrap(program: str, words: tuple[Word, ...]) -> Unwrapped:
    options = _WRAPPERS[program]
    reading = parse_options(options, words[1:])
    split = reading.find_value("-S", "--split-string") if program == "env" else None
    if split is not None:
        return _unwrap_split_string(words, split, reading)
    if any(name in options.idle for name, _ in reading.values):
        return Unwrapped(kept=_keep_wrapper(words, sure=reading.sure))
    if not reading.rest:
        flags = {name for name, _ in reading.values} & {"-s", "-i", "--shell", "--login"}
        starts_shell = program == "chroot" or (program in ("sudo", "doas") and bool(flags))
        return Unwrapped(kept=_keep_wrapper(words, sure=reading.sure and not starts_shell))
    kept = None if reading.sure else _keep_wrapper(words, sure=False)
    output = reading.find_value("-o", "--output") if program in ("time", "bear") else None
    inner = _unwrap_xargs(reading) if program == "xargs" else reading.rest
    return Unwrapped(
        kept=kept,
        calls=(inner,),
        through=program,
        assignments=reading.assignments,
        folder=_find_folder(program, reading),
        redirects=() if output is None else (Redirect(">", output),),
    )


def _keep_wrapper(words: tuple[Word, ...], *, sure: bool) -> tuple[Word, ...]:
    """Return the wrapper as a command; its program is not exact if it may run anything."""
    return words if sure else (Word(words[0].text, exact=False), *words[1:])


def _find_folder(program: str, reading: ParsedOptions) -> Word | None:
    """Return the folder of the command, if it differs from the folder of its wrapper."""
    if program == "chroot" or (program == "sudo" and reading.find_value(*_ELSEWHERE) is not None):
        return Word("", exact=False)
    return reading.find_value(*_FOLDERS) if program in ("sudo", "env") else None


def _unwrap_split_string(words: tuple[Word, ...], split: Word, reading: ParsedOptions) -> Unwrapped:
    """Unwrap `env -S 'git push'`. env has its own splitting rules, which match ours for plain words only."""
    if not reading.sure or not _SIMPLE_WORDS.fullmatch(split.text):
        guess = NestedText(split.text, guess=True)
        calls = (reading.rest,) if reading.rest else ()
        return Unwrapped(kept=_keep_wrapper(words, sure=False), calls=calls, text=guess, through="env")
    again = tuple(Word(part) for part in split.text.split())
    inner = (words[0], *again, *reading.assignments, *reading.rest)
    return Unwrapped(calls=(inner,), through="env -S", folder=_find_folder("env", reading))


def _unwrap_xargs(reading: ParsedOptions) -> tuple[Word, ...]:
    """Return the command of xargs, with an inexact word in place of its input."""
    place = reading.find_value("-I", "-J", "-i", "--replace")
    if place is None:
        return (*reading.rest, Word("{}", exact=False))
    mark = place.text or "{}"
    return tuple(Word(word.text, word.exact and mark not in word.text) for word in reading.rest)
