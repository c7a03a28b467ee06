"""Finds the command inside toolchain runners such as `uv run` and `npx`, which is classified instead. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jackline.domain.judging.arguments import Line
    from jackline.domain.shell import Word

# The runner, and its flags with a value.
_RUNNERS = {
    (
        "uv",
        "run",
    ): "--with --python -p --extra --group --directory --project --env-file --package --index --default-index",
    ("uvx",): "--from --with --python -p",
    ("poetry", "run"): "",
    ("pipenv", "run"): "",
    ("pdm", "run"): "-p --project",
    ("rye", "run"): "",
    ("hatch", "run"): "",
    ("bundle", "exec"): "",
    ("npx",): "-p --package",
    ("bunx",): "-p --package",
    ("npm", "exec"): "-p --package",
    ("npm", "x"): "-p --package",
    ("pnpm", "exec"): "",
    ("pnpm", "dlx"): "--package",
    ("yarn", "exec"): "",
    ("yarn", "dlx"): "-p --package",
    ("pixi", "run"): "-e --environment",
    ("mise", "exec"): "",
    ("dotenv", "run"): "-f",
    ("op", "run"): "--env-file",
    ("doppler", "run"): "-p --project -c --config",
    ("python",): "",
    ("coverage", "run"): "",
}
_RUNNER_SWITCHES = frozenset(
    {"--yes", "-y", "--no-install", "--frozen", "--locked", "--offline", "--no-sync", "--isolated", "-q", "--quiet"}
    | {"--", "--no-project", "--all-extras", "--dev", "--no-dev"}
)
_PYTHON_SWITCHES = frozenset({"-u", "-B", "-E", "-s", "-S", "-I", "-O", "-OO", "-P", "-q", "-b"})


def inner(line: Line) -> tuple[Word, ...] | None:
    """Return the inner command, or None. Its program is not exact if an unknown flag precedes it."""
    words = [word for word in line.words if word.exact or word.text]
    for runner, valued in _RUNNERS.items():
        if line.program != runner[0] or tuple(word.text for word in words[: len(runner) - 1]) != runner[1:]:
            continue
        rest = tuple(words[len(runner) - 1 :])
        if line.program in {"python", "coverage"}:
            return _find_python_module(rest)
        return _skip_runner_flags(rest, frozenset(valued.split()))
    return None


def _find_python_module(words: tuple[Word, ...]) -> tuple[Word, ...] | None:
    """Return the command of `python -m program`; a script cannot be classified."""
    for index, word in enumerate(words):
        if word.text == "-m":
            return words[index + 1 :] or None
        if word.text.startswith("-m"):
            return (word._replace(text=word.text[2:]), *words[index + 1 :])
        if word.text not in _PYTHON_SWITCHES:
            return None
    return None


def _skip_runner_flags(words: tuple[Word, ...], valued: frozenset[str]) -> tuple[Word, ...] | None:
    sure, skip = True, False
    for index, word in enumerate(words):
        if skip:
            skip = False
        elif not word.text.startswith("-"):
            # `npx cowsay@1` runs cowsay.
            program = word._replace(text=word.text.partition("@")[0] or word.text, exact=word.exact and sure)
            return (program, *words[index + 1 :])
        elif word.text in {"-m", "--module"}:
            return words[index + 1 :] or None
        elif word.text in {"-c", "--call", "-s", "--script"}:
            return None
        else:
            skip = word.text in valued
            sure = sure and (skip or word.text in _RUNNER_SWITCHES or word.text.partition("=")[0] in valued)
    return None
