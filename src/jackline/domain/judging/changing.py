"""Which paths a command writes or deletes, as its words name them. Pure: it reads no disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.judging import archives, given, scripts
from jackline.domain.judging.given import HERE, Change
from jackline.domain.shell import Word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from jackline.domain.judging.arguments import Line

_MODE_FIRST = frozenset({"chmod", "chown", "chgrp"})
_WRITES_ALL = frozenset(
    {"touch", "mkdir", "mkdirp", "tee", "mkfifo", "gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "dos2unix"}
)
_DELETES_ALL = frozenset({"rm", "rmdir", "unlink", "shred", "truncate", "rimraf"})
_INTO_LAST = frozenset({"cp", "mv", "ln"})
_SECOND = frozenset({"uniq", "xxd", "json.tool", "pdftotext", "convert", "magick", "split", "lz4"})
# They change the very files that they are given: where these lie elsewhere, it counts.
_FORMATS = """
black isort ruff autopep8 yapf pyupgrade djlint compileall venv virtualenv prettier eslint biome dprint stylelint
standard xo rustfmt gofmt goimports gofumpt shfmt clang-format swift-format swiftformat swiftlint ktlint scalafmt
ormolu rubocop standardrb php-cs-fixer phpcbf pint rector taplo codespell typos sqlfluff strip objcopy ranlib
unix2dos sass sassc tailwindcss postcss esbuild swc babel
"""
_FORMATTERS = frozenset(_FORMATS.split())
_WHEN_TOLD = frozenset(
    {"eslint", "prettier", "gofmt", "goimports", "gofumpt", "shfmt", "clang-format", "biome", "stylelint", "rubocop"}
    | {"standardrb", "codespell", "swiftlint", "ktlint", "typos", "sqlfluff", "autopep8", "yapf", "djlint", "standard"}
)
_CHECKING = frozenset({"--check", "--diff", "--check-only", "--list-different", "--dry-run"})
_TELLING = frozenset(
    {"--fix", "--fix-only", "--fix-type", "--unsafe-fixes", "--write", "--write-changes", "-w", "-i", "--in-place"}
    | {"--apply", "--apply-unsafe", "-a", "-A", "--auto-correct", "--autocorrect", "--autocorrect-all", "-F"}
    | {"--format", "--reformat", "fix", "-iw"}
)
_ELSEWHERE = ("/", "~", "..", "$HOME", "${HOME}")
# Flags of programs that build or test, by which they are told where to write.
_RESULTS = (
    *("--output", "--output-file", "--output-dir", "--out-dir", "--outDir", "--outdir", "--outfile", "--out-file"),
    *("--junitxml", "--junit-xml", "--basetemp", "--dest", "--destdir", "--target-dir", "--prefix", "--html"),
    *("--report-dir", "--build-dir", "--log-file", "--result-log", "--save-xml", "-out", "-chdir"),
)
# Flags whose value is what is written.
_OUTPUT: Mapping[str, tuple[str, ...]] = {
    name: tuple(given.split())
    for names, given in {
        "sort tree iconv base64 http pandoc": "-o --output",
        "gcc cc clang g++ clang++ c++ go dot ld as nasm swiftc ghc flex bison yacc": "-o",
        "coverage": "-d -o",
        "strip objcopy": "-o --output",
        "csplit": "-f --prefix",
        "rustc": "-o --out-dir",
        "curl": "-o --output -D --dump-header -c --cookie-jar --output-dir --trace --trace-ascii --stderr --libcurl "
        "--etag-save --hsts --alt-svc",
        "wget": "-O --output-document -P --directory-prefix -o --output-file -a --append-output --warc-file "
        "--save-cookies --rejected-log --hsts-file",
        "npm pnpm yarn bun": "-C --prefix --dir --cwd",
        "uv": "-o --out-dir --directory --project",
        "poetry": "-C --directory -P --project",
        "unzip javac": "-d",
        "find": "-fprint -fprint0 -fprintf -fls",
        "pip": "-d --dest -w --wheel-dir",
        "cmake": "-B",
        "xmllint": "--output",
    }.items()
    for name in names.split()
}
_GIT_OUTPUTS = ("--output", "--output-directory", "--git-dir", "--separate-git-dir")
_GIT_OUTPUTS_OF = {"format-patch": ("-o",), "archive": ("-o",), "checkout-index": ("--prefix",)}
_FIND_ENDS = ("-", "(", "!", ")")


def changes(line: Line) -> Iterator[Change]:
    """Every path that a program which changes files is told to change; the folder it works in where none is named."""
    named = given.named(line)
    program = line.program
    if program in _DELETES_ALL:
        yield from _each(named, deletes=True)
    elif program in _WRITES_ALL:
        yield from _each(named, deletes=False)
    elif program in _MODE_FIRST:
        yield from _each(named[1:] if not given.has(line, "--reference") else named, deletes=False)
    elif program in _INTO_LAST:
        yield from _into_last(line, named)
    else:
        yield from _others(line, named)


def reading_changes(line: Line) -> Iterator[Change]:
    """What a program that only reads writes nevertheless: the second name of those that have one."""
    if line.program in _SECOND:
        named = given.named(line)
        yield from (Change(word) for word in named[1:2] if word.text != "-")


def _others(line: Line, named: Sequence[Word]) -> Iterator[Change]:
    special = _SPECIAL.get(line.program)
    if special is not None:
        yield from special(line, named)
        return
    outputs = list(given.values(line, _OUTPUT.get(line.program, ())))
    yield from (Change(word) for word in outputs if word.text != "-")
    yield from (Change(word, is_container=True) for word in _results(line, named))
    if line.program in _SECOND:
        yield from reading_changes(line)
    elif not outputs or line.program in {"git", "go", "cmake", "pip"}:
        yield Change(HERE, is_container=True)


def _results(line: Line, named: Sequence[Word]) -> Iterator[Word]:
    """Paths of another place that a program which builds, tests or formats is told to write."""
    makes = _formats(line, named) or (line.program == "uv" and [word.text for word in named[:1]] == ["venv"])
    written = [*given.values(line, _RESULTS), *(named if makes else ())]
    yield from (word for word in written if word.text.startswith(_ELSEWHERE))


def _formats(line: Line, named: Sequence[Word]) -> bool:
    """Whether it changes the files that it is given: some do unless they are to check, some only when told."""
    texts = {word.text.partition("=")[0] for word in line.words}
    if line.program not in _FORMATTERS or texts & _CHECKING:
        return False
    only_looks = line.program in _WHEN_TOLD or [word.text for word in named[:1]] == ["check"]
    return not only_looks or bool(texts & _TELLING)


def _each(named: Sequence[Word], *, deletes: bool) -> Iterator[Change]:
    yield from (Change(word, deletes) for word in named if word.text != "-")


def _into_last(line: Line, named: Sequence[Word]) -> Iterator[Change]:
    folders = list(given.values(line, ("-t", "--target-directory")))
    several = len(named) > 1
    # `ln -s there` makes its link here, under the same name.
    yield from (Change(word, is_container=True) for word in folders or (named[-1:] if several else (HERE,)))
    if line.program == "mv":
        sources = named if folders else named[:-1]
        yield from (Change(word, deletes=True) for word in sources)


def _install(line: Line, named: Sequence[Word]) -> Iterator[Change]:
    if given.has_letter(line, "d") or given.has(line, "--directory"):
        yield from _each(named, deletes=False)
    else:
        yield from _into_last(line, named)


def _rsync(line: Line, named: Sequence[Word]) -> Iterator[Change]:
    yield from _into_last(line, named)
    if any(word.text.startswith("--del") for word in line.words):
        yield from (Change(word, deletes=True, is_container=True) for word in named[-1:])
    if given.has(line, "--remove-source-files"):
        yield from _each(named[:-1], deletes=True)


def _in_place(line: Line, named: Sequence[Word]) -> Iterator[Change]:
    """`yq -i expression file`: an expression is no path of another place."""
    del line
    yield from _each(named, deletes=False)


def _mktemp(line: Line, named: Sequence[Word]) -> Iterator[Change]:
    folders = given.values(line, ("-p", "--tmpdir"))
    yield from (Change(word) for word in (*folders, *named) if "/" in word.text)


def _pre_commit(line: Line, named: Sequence[Word]) -> Iterator[Change]:
    del line
    installs = bool(named) and named[0].text in {"install", "uninstall"}
    yield Change(Word(".git/hooks/pre-commit") if installs else HERE, is_container=not installs)


def _second(_: Line, named: Sequence[Word]) -> Iterator[Change]:
    """`ar r archive file`."""
    yield from (Change(word) for word in named[1:2])


def _first(_: Line, named: Sequence[Word]) -> Iterator[Change]:
    yield from (Change(word) for word in named[:1])


def _dd(line: Line, _: Sequence[Word]) -> Iterator[Change]:
    outputs = (word for word in line.words if word.text.startswith("of="))
    yield from (Change(word._replace(text=word.text.removeprefix("of="))) for word in outputs)


def _sed(line: Line, _: Sequence[Word]) -> Iterator[Change]:
    yield from (Change(word) for word in scripts.sed_files(line.words))


def _find(line: Line, _: Sequence[Word]) -> Iterator[Change]:
    deletes = given.has(line, "-delete")
    if deletes:
        yield from (Change(word, deletes=True, is_container=True) for word in find_starts(line))
    yield from (Change(word) for word in given.values(line, _OUTPUT["find"]))


def find_starts(line: Line) -> tuple[Word, ...]:
    """The folders that find begins in."""
    starts: list[Word] = []
    for word in line.words:
        if word.text in {"-H", "-L", "-P"}:
            continue
        if word.text.startswith(_FIND_ENDS):
            break
        starts.append(word)
    return tuple(starts) or (HERE,)


def _git(line: Line, named: Sequence[Word]) -> Iterator[Change]:
    verb = named[0].text if named else ""
    top = next(given.values(line, ("-C", "--work-tree")), HERE)
    after = tuple(named[1:])
    if verb == "clean":
        yield Change(top, deletes=True, is_container=True)
        yield from (Change(word, deletes=True, is_container=True) for word in after)
    elif verb in {"clone", "init"}:
        where = after[1:2] if verb == "clone" else after[:1]
        yield Change(where[0] if where else top, is_container=True)
    elif verb == "worktree":
        yield from _worktree(after)
    else:
        yield Change(top, is_container=True)
    if verb == "bundle":
        yield from (Change(word) for word in after[1:2])
    yield from (Change(word) for word in given.values(line, (*_GIT_OUTPUTS, *_GIT_OUTPUTS_OF.get(verb, ()))))


def _worktree(after: tuple[Word, ...]) -> Iterator[Change]:
    """`add path`, `move from to`, `remove path`: worktrees often lie beside the workspace."""
    done = after[0].text if after else ""
    if done in {"move", "remove"}:
        yield from (Change(word, deletes=True) for word in after[1:2])
    yield from (Change(word, is_container=True) for word in (after[2:3] if done == "move" else after[1:2]))


def _docker(line: Line, named: Sequence[Word]) -> Iterator[Change]:
    """`docker cp container:/path file` writes here; a word with a colon is in the container."""
    if named and named[0].text == "cp":
        yield from (Change(word) for word in named[2:3] if ":" not in word.text and word.text != "-")
    elif named and named[0].text in {"save", "export"}:
        yield from (Change(word) for word in given.values(line, ("-o", "--output")))
    else:
        yield Change(HERE, is_container=True)


def _patch(line: Line, named: Sequence[Word]) -> Iterator[Change]:
    folder = next(given.values(line, ("-d", "--directory")), HERE)
    yield Change(folder, is_container=True)
    yield from (Change(word) for word in (*named[:1], *given.values(line, ("-o", "--output", "-r", "--reject-file"))))


def _aws(line: Line, _: Sequence[Word]) -> Iterator[Change]:
    """`aws s3api get-object … file`: the file is its last word."""
    yield from (Change(word) for word in line.words[-1:])


def _nothing(_: Line, __: Sequence[Word]) -> Iterator[Change]:
    yield from ()


_SPECIAL: dict[str, Callable[[Line, Sequence[Word]], Iterator[Change]]] = {
    "dd": _dd, "sed": _sed, "find": _find, "git": _git, "patch": _patch, "mktemp": _mktemp, "sqlite3": _first,
    "apply_patch": _nothing, "aws": _aws, "docker": _docker, "yq": _in_place, "dasel": _in_place, "ar": _second,
    "pre-commit": _pre_commit, "install": _install, "rsync": _rsync, "tar": archives.tar, "zip": archives.zip_,
    "7z": archives.seven, "zstd": archives.zstd,
}  # fmt: skip
