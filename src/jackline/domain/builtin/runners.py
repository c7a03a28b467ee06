"""Programs of a language's tool chain that run another one: what they run is judged in their place. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jackline.domain.judging.arguments import Line
    from jackline.domain.shell import Word

# The words up to the command that is run; flags with a value before it.
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
_ALONE = frozenset(
    {
        "--yes",
        "-y",
        "--no-install",
        "--frozen",
        "--locked",
        "--offline",
        "--no-sync",
        "--isolated",
        "-q",
        "--quiet",
        "--",
        "--no-project",
        "--all-extras",
        "--dev",
        "--no-dev",
    }
)
_PYTHON_ALONE = frozenset({"-u", "-B", "-E", "-s", "-S", "-I", "-O", "-OO", "-P", "-q", "-b"})


def inner(line: Line) -> tuple[Word, ...] | None:
    """The words of the command that is run, or None; its program is not exact if a flag before it is not known."""
    words = [word for word in line.words if word.exact or word.text]
    for runner, valued in _RUNNERS.items():
        if line.program != runner[0] or tuple(word.text for word in words[: len(runner) - 1]) != runner[1:]:
            continue
        rest = tuple(words[len(runner) - 1 :])
        return (
            _of_python(rest)
            if runner[-1] in {"python", "run"} and line.program in {"python", "coverage"}
            else _behind(rest, frozenset(valued.split()))
        )
    return None


def _of_python(words: tuple[Word, ...]) -> tuple[Word, ...] | None:
    """`python -m program`; everything else that it runs is a script, which nobody can judge."""
    for index, word in enumerate(words):
        if word.text == "-m":
            return words[index + 1 :] or None
        if word.text.startswith("-m"):
            return (word._replace(text=word.text[2:]), *words[index + 1 :])
        if word.text not in _PYTHON_ALONE:
            return None
    return None


def _behind(words: tuple[Word, ...], valued: frozenset[str]) -> tuple[Word, ...] | None:
    sure, skip = True, False
    for index, word in enumerate(words):
        if skip:
            skip = False
        elif not word.text.startswith("-"):
            # What stands behind a package's version is its program: `npx cowsay@1` runs cowsay.
            program = word._replace(text=word.text.partition("@")[0] or word.text, exact=word.exact and sure)
            return (program, *words[index + 1 :])
        elif word.text in {"-m", "--module"}:
            return words[index + 1 :] or None
        elif word.text in {"-c", "--call", "-s", "--script"}:
            return None
        else:
            skip = word.text in valued
            sure = sure and (skip or word.text in _ALONE or word.text.partition("=")[0] in valued)
    return None
