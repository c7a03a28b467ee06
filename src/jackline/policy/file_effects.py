"""Finds the paths that a command writes or deletes, by its arguments. Pure: it does not read the disk."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from jackline.policy import path_args, read_only
from jackline.policy.output_flags import ELSEWHERE
from jackline.policy.path_args import HERE, UNKNOWN_PATH, PathChange
from jackline.shell.model import Word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from jackline.policy.command_line import CommandLine

_MODE_FIRST = frozenset({"chmod", "chown", "chgrp"})
_WRITES_ALL = frozenset(
    {"touch", "mkdir", "mkdirp", "tee", "mkfifo", "gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "dos2unix"}
)
_DELETES_ALL = frozenset({"rm", "rmdir", "unlink", "shred", "truncate", "rimraf"})
_INTO_LAST = frozenset({"cp", "mv", "ln"})
_SECOND = frozenset({"uniq", "xxd", "json.tool", "pdftotext", "convert", "magick", "split", "lz4"})
# Programs that rewrite the files that they are given, which matters if those are outside.
_FORMATS = """
black isort ruff autopep8 yapf pyupgrade djlint compileall venv virtualenv prettier eslint biome dprint stylelint
standard xo rustfmt gofmt goimports gofumpt shfmt clang-format swift-format swiftformat swiftlint ktlint scalafmt
ormolu rubocop standardrb php-cs-fixer phpcbf pint rector taplo codespell typos sqlfluff strip objcopy ranlib
unix2dos sass sassc tailwindcss postcss esbuild swc babel terraform sphinx-build typst javadoc
"""
_FORMATTERS = frozenset(_FORMATS.split())
_REWRITE_ON_REQUEST = frozenset(
    {"eslint", "prettier", "gofmt", "goimports", "gofumpt", "shfmt", "clang-format", "biome", "stylelint", "rubocop"}
    | {"standardrb", "codespell", "swiftlint", "ktlint", "typos", "sqlfluff", "autopep8", "yapf", "djlint", "standard"}
)
_CHECK_FLAGS = frozenset({"--check", "--diff", "--check-only", "--list-different", "--dry-run"})
_REWRITE_FLAGS = frozenset(
    {"--fix", "--fix-only", "--fix-type", "--unsafe-fixes", "--write", "--write-changes", "-w", "-i", "--in-place"}
    | {"--apply", "--apply-unsafe", "-a", "-A", "--auto-correct", "--autocorrect", "--autocorrect-all", "-F"}
    | {"--format", "--reformat", "fix", "-iw"}
)
_CREATING = frozenset({"new", "init", "create", "vendor", "devenv", "clone", "setup", "mirror"})  # they name a folder
# Flags of build and test programs that name an output path.
_RESULTS = (
    *("--output", "--output-file", "--output-dir", "--out-dir", "--outDir", "--outdir", "--outfile", "--out-file"),
    *("--junitxml", "--junit-xml", "--basetemp", "--dest", "--destdir", "--target-dir", "--prefix", "--html"),
    *("--report-dir", "--build-dir", "--log-file", "--result-log", "--save-xml", "-out", "-chdir"),
)
# Flags whose value is an output path.
_OUTPUT: Mapping[str, tuple[str, ...]] = {
    name: tuple(flags.split())
    for names, flags in {
        "sort tree iconv base64 http pandoc": "-o --output",
        "as": "-o --MD -a",
        "gh": "-D --dir -O --output",
        "gcc cc clang g++ clang++ c++ go dot ld nasm swiftc ghc flex bison yacc": "-o",
        "coverage": "-d -o --directory",
        "mkdocs": "-d --site-dir",
        "ctest": "-O --output-log --output-junit",
        "helm": "-d --destination --output-dir",
        "rollup": "-o --file --dir",
        "grype": "--file",
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


def find_changes(line: CommandLine) -> Iterator[PathChange]:
    """Yield every path that a program changes; its working folder if it names none."""
    named = path_args.find_operands(line)
    program = line.program
    if program in _DELETES_ALL:
        yield from _build_changes(named, deletes=True)
    elif program in _WRITES_ALL:
        yield from _build_changes(named, deletes=False)
    elif program in _MODE_FIRST:
        yield from _build_changes(named[1:] if not path_args.has_flag(line, "--reference") else named, deletes=False)
    elif program in _INTO_LAST:
        yield from _find_copy_changes(line, named)
    elif program in _SPECIAL:
        yield from _SPECIAL[program](line, named)
    else:
        yield from _find_outputs(line, named)


def find_request_outputs(line: CommandLine) -> Iterator[PathChange]:
    """Yield the files that an HTTP client writes; other clients write none."""
    if line.program == "wget":
        yield from find_changes(line)
        return
    outputs = path_args.find_flag_values(line, _OUTPUT.get(line.program, ()))
    yield from (PathChange(word) for word in outputs if word.text != "-")
    if any(path_args.has_flag(line, flag) for flag in ("--remote-name", "--download")) or (
        line.program in {"curl", "http"} and path_args.has_letter(line, "O" if line.program == "curl" else "d")
    ):
        yield PathChange(HERE, is_container=True)


def find_read_outputs(line: CommandLine) -> Iterator[PathChange]:
    """Yield the output file of a program that otherwise only reads: its second operand, if it has one."""
    if line.program in _SECOND:
        named = path_args.find_operands(line)
        yield from (PathChange(word) for word in named[1:2] if word.text != "-")


def _find_outputs(line: CommandLine, named: Sequence[Word]) -> Iterator[PathChange]:
    """Yield the paths that a build, test or format program writes."""
    outputs = list(path_args.find_flag_values(line, _OUTPUT.get(line.program, ())))
    yield from (PathChange(word, is_container=line.program == "unzip") for word in outputs if word.text != "-")
    makes = _rewrites_files(line, named) or (line.program == "uv" and [word.text for word in named[:1]] == ["venv"])
    makes = makes or any(word.text in _CREATING for word in named[:2])
    results = [*path_args.find_flag_values(line, _RESULTS), *(named if makes else ())]
    yield from (PathChange(word, is_container=True) for word in results if word.text.startswith(ELSEWHERE))
    if line.program in _SECOND:
        yield from find_read_outputs(line)
    elif not outputs or line.program in {"git", "go", "cmake", "pip"}:
        yield PathChange(HERE, is_container=True)


def _rewrites_files(line: CommandLine, named: Sequence[Word]) -> bool:
    """Check whether a formatter rewrites its files: some do unless they only check, some only with a flag."""
    texts = {word.text.partition("=")[0] for word in line.words}
    if line.program not in _FORMATTERS or texts & _CHECK_FLAGS:
        return False
    only_looks = line.program in _REWRITE_ON_REQUEST or [word.text for word in named[:1]] == ["check"]
    return not only_looks or bool(texts & _REWRITE_FLAGS)


def _build_changes(named: Sequence[Word], *, deletes: bool) -> Iterator[PathChange]:
    yield from (PathChange(word=word, deletes=deletes) for word in named if word.text != "-")


def _find_copy_changes(line: CommandLine, named: Sequence[Word]) -> Iterator[PathChange]:
    folders = list(path_args.find_flag_values(line, ("-t", "--target-directory")))
    several = len(named) > 1
    # `ln -s there` creates its link here, under the same name.
    yield from (PathChange(word, is_container=True) for word in folders or (named[-1:] if several else (HERE,)))
    if line.program == "ln":  # what is written through the link later is written there
        yield from map(PathChange, _select_inside(named[:-1] if several and not folders else named))
    if line.program == "mv":
        sources = named if folders else named[:-1]
        yield from (PathChange(word, deletes=True) for word in sources)


def _select_inside(named: Sequence[Word]) -> Iterator[Word]:
    """Yield the words that name a path in the workspace, if they name a path; others say nothing about the change."""
    yield from (word for word in named if word.exact and not word.text.startswith(("/", "~", "..")))


def _find_install_changes(line: CommandLine, named: Sequence[Word]) -> Iterator[PathChange]:
    if path_args.has_letter(line, "d") or path_args.has_flag(line, "--directory"):
        yield from _build_changes(named, deletes=False)
    else:
        yield from _find_copy_changes(line, named)


def _find_rsync_changes(line: CommandLine, named: Sequence[Word]) -> Iterator[PathChange]:
    yield from _find_copy_changes(line, named)
    if any(word.text.startswith("--del") for word in line.words):
        yield from (PathChange(word, deletes=True, is_container=True) for word in named[-1:])
    if path_args.has_flag(line, "--remove-source-files"):
        yield from _build_changes(named[:-1], deletes=True)


def _find_mktemp_changes(line: CommandLine, named: Sequence[Word]) -> Iterator[PathChange]:
    folders = path_args.find_flag_values(line, ("-p", "--tmpdir"))
    yield from (PathChange(word) for word in (*folders, *named) if "/" in word.text)


def _find_pre_commit_changes(line: CommandLine, named: Sequence[Word]) -> Iterator[PathChange]:
    del line
    installs = bool(named) and named[0].text in {"install", "uninstall"}
    yield PathChange(Word(".git/hooks/pre-commit") if installs else HERE, is_container=not installs)


def _find_dd_changes(line: CommandLine, _: Sequence[Word]) -> Iterator[PathChange]:
    outputs = (word for word in line.words if word.text.startswith("of="))
    yield from (PathChange(word._replace(text=word.text.removeprefix("of="))) for word in outputs)


def _find_find_changes(line: CommandLine, _: Sequence[Word]) -> Iterator[PathChange]:
    if path_args.has_flag(line, "-delete"):
        yield from (PathChange(word, deletes=True, is_container=True) for word in find_start_folders(line))
    yield from map(PathChange, path_args.find_flag_values(line, _OUTPUT["find"]))


def find_start_folders(line: CommandLine) -> tuple[Word, ...]:
    """Return the folders that find starts in."""
    starts: list[Word] = []
    for word in line.words:
        if word.text in {"-H", "-L", "-P"}:
            continue
        if word.text.startswith(_FIND_ENDS):
            break
        starts.append(word)
    return tuple(starts) or (HERE,)


def _find_git_changes(line: CommandLine, named: Sequence[Word]) -> Iterator[PathChange]:
    verb = named[0].text if named else ""
    top = next(path_args.find_flag_values(line, ("-C", "--work-tree")), HERE)
    after = tuple(named[1:])
    if verb == "clean":
        yield PathChange(top, deletes=True, is_container=True)
        yield from (PathChange(word, deletes=True, is_container=True) for word in after)
    elif verb in {"clone", "init"}:
        where = after[1:2] if verb == "clone" else after[:1]
        yield PathChange(where[0] if where else top, is_container=True)
    elif verb == "worktree":
        yield from _find_worktree_changes(after)
    else:
        yield PathChange(top, is_container=True)
    if verb in {"mv", "checkout", "restore"}:
        yield from map(PathChange, _select_inside(after[-1:] if verb == "mv" else after))
    if verb == "bundle":
        yield from map(PathChange, after[1:2])
    yield from map(PathChange, path_args.find_flag_values(line, (*_GIT_OUTPUTS, *_GIT_OUTPUTS_OF.get(verb, ()))))


def _find_worktree_changes(after: tuple[Word, ...]) -> Iterator[PathChange]:
    """Yield the paths of `add path`, `move from to`, `remove path`; worktrees are often next to the workspace."""
    done = after[0].text if after else ""
    if done in {"move", "remove"}:
        yield from (PathChange(word, deletes=True) for word in after[1:2])
    new = after[2:3] if done == "move" else after[1:2]
    yield from (PathChange(word, is_container=True, is_worktree=done == "add") for word in new)


def _find_docker_changes(line: CommandLine, named: Sequence[Word]) -> Iterator[PathChange]:
    """Yield the target of `docker cp container:/path file`; a path with a colon is in the container."""
    if named and named[0].text == "cp":
        into = named[2:3]  # inside a container, nothing is known about the path
        yield from (PathChange(UNKNOWN_PATH if ":" in word.text else word) for word in into if word.text != "-")
    elif named and named[0].text in {"save", "export"}:
        yield from map(PathChange, path_args.find_flag_values(line, ("-o", "--output")))
    else:
        yield PathChange(HERE, is_container=True)


def _find_patch_changes(line: CommandLine, named: Sequence[Word]) -> Iterator[PathChange]:
    folder = next(path_args.find_flag_values(line, ("-d", "--directory")), HERE)
    yield PathChange(folder, is_container=True)
    yield from map(
        PathChange, (*named[:1], *path_args.find_flag_values(line, ("-o", "--output", "-r", "--reject-file")))
    )


# --- archives

_TAR_VALUED = frozenset("fCFgITXbHKLNV")  # letters with a value
_TAR_LONG = {
    "--file": "f", "--directory": "C", "--create": "c", "--append": "r", "--update": "u", "--delete": "D",
    "--listed-incremental": "g", "--index-file": "g", "--one-top-level": "C", "--absolute-names": "P",
}  # fmt: skip


def _find_tar_changes(line: CommandLine, _: Sequence[Word]) -> Iterator[PathChange]:
    """Yield the folder that tar extracts to, or the archive that it writes."""
    flags = list(_parse_tar_flags(line.words))
    letters = {letter for letter, _ in flags}
    if letters & set("cruAD"):
        archive = next((word for letter, word in flags if letter == "f"), None)
        elsewhere = archive is not None and ":" in archive.text and not path_args.has_flag(line, "--force-local")
        yield PathChange(UNKNOWN_PATH if elsewhere else archive or HERE, is_container=archive is None)
        if path_args.has_flag(line, "--remove-files"):
            yield PathChange(UNKNOWN_PATH, deletes=True)
    else:
        folders = [word for letter, word in flags if letter == "C" and word.text]
        yield from (PathChange(word, is_container=True) for word in folders or (HERE,))
        if "P" in letters:  # absolute names in the archive may lead anywhere
            yield PathChange(UNKNOWN_PATH)
    yield from (PathChange(word) for letter, word in flags if letter == "g")


def _parse_tar_flags(words: Sequence[Word]) -> Iterator[tuple[str, Word]]:
    """Yield each letter with its value. The first word may lack the dash; its values follow in order."""
    left = deque(words)
    old = bool(left) and not left[0].text.startswith("-")
    while left:
        word = left.popleft()
        name, equals, value = word.text.partition("=")
        if word.text.startswith("--"):
            letter = next((short for long, short in _TAR_LONG.items() if path_args.is_flag(name, (long,))), "")
            takes = letter in _TAR_VALUED and not equals and name != "--one-top-level"
            yield letter, left.popleft() if takes and left else word._replace(text=value)
        elif old or word.text.startswith("-"):
            yield from _parse_tar_letters(word, left, old=old)
        old = False


def _parse_tar_letters(word: Word, left: deque[Word], *, old: bool) -> Iterator[tuple[str, Word]]:
    letters = word.text.removeprefix("-")
    for place, letter in enumerate(letters):
        joined = letters[place + 1 :]
        if letter not in _TAR_VALUED:
            yield letter, word._replace(text="")
        elif joined and not old:
            yield letter, word._replace(text=joined)
            return
        else:
            yield letter, left.popleft() if left else UNKNOWN_PATH


def _find_zip_changes(line: CommandLine, named: Sequence[Word]) -> Iterator[PathChange]:
    """Yield the archive; with -m, also the packed files, which are deleted."""
    yield from map(PathChange, (*named[:1], *path_args.find_flag_values(line, ("-b", "-O", "--out"))))
    if path_args.has_letter(line, "m") or path_args.has_flag(line, "--move"):
        yield from (PathChange(word, deletes=True) for word in named[1:])


def _find_7z_changes(line: CommandLine, named: Sequence[Word]) -> Iterator[PathChange]:
    """Yield the paths of `7z a archive file` and `7z x archive -ofolder`."""
    folders = [word._replace(text=word.text[2:]) for word in line.words if word.text.startswith("-o")]
    yield from (PathChange(word, is_container=True) for word in folders)
    packs = bool(named) and named[0].text in {"a", "u", "d", "rn"}
    yield from (PathChange(word) for word in named[1:2] if packs)
    if "-sdel" in {word.text for word in line.words}:
        yield from (PathChange(word, deletes=True) for word in named[2:])
    if not folders and not packs:
        yield PathChange(HERE, is_container=True)


def _find_zstd_changes(line: CommandLine, named: Sequence[Word]) -> Iterator[PathChange]:
    """Yield the output files; with --rm, also the sources, which are deleted."""
    outputs = [*path_args.find_flag_values(line, ("-o", "--output-dir-flat", "--output-dir-mirror"))]
    yield from map(PathChange, outputs or named)
    if path_args.has_flag(line, "--rm"):
        yield from (PathChange(word, deletes=True) for word in named if word not in outputs)


_SPECIAL: dict[str, Callable[[CommandLine, Sequence[Word]], Iterator[PathChange]]] = {
    "dd": _find_dd_changes,
    "sed": lambda line, _: map(
        PathChange, (*read_only.find_sed_files(line.words), *read_only.find_sed_backups(line.words))
    ),
    "find": _find_find_changes,
    "git": _find_git_changes,
    "patch": _find_patch_changes,
    "mktemp": _find_mktemp_changes,
    "sqlite3": lambda line, _: map(PathChange, read_only.find_sqlite_operands(line.words)[:1]),
    "apply_patch": lambda *_: iter(()),  # its patch is classified instead
    "aws": lambda line, _: map(PathChange, line.words[-1:]),  # `aws s3api get-object … file`
    "docker": _find_docker_changes,
    # In `yq -i expression file`, the expression does not look like a path outside.
    "yq": lambda _, named: _build_changes(named, deletes=False),
    "dasel": lambda _, named: _build_changes(named, deletes=False),
    "ar": lambda _, named: map(PathChange, named[1:2]),  # `ar r archive file`
    "jar": lambda _, named: map(PathChange, named[1:2]),
    "pre-commit": _find_pre_commit_changes,
    "install": _find_install_changes,
    "rsync": _find_rsync_changes,
    "tar": _find_tar_changes,
    "zip": _find_zip_changes,
    "7z": _find_7z_changes,
    "zstd": _find_zstd_changes,
}
