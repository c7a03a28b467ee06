"""`make mutants`: applies each listed mutant to a copy of the tree and runs the tests that must fail.

Exit code 1 if a mutant survives, if one no longer fits the source, or if the test that failed fails without it, too.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tools.mutants.patches import Mutant, apply_mutant, find_misfits, load_mutants, restore_files

ROOT = Path(__file__).parents[2]
PATIENCE_S = 300  # for the tests of one mutant; a single test has a shorter timeout
_FAILED = 1  # the exit code of pytest after a failed test; others mean that the tests did not run
_TAIL = 25  # lines of output that are shown


class PytestEnd(NamedTuple):
    """How a run of pytest ended."""

    code: int | None  # None: not in time
    output: str
    failed: tuple[str, ...]  # node ids

    @property
    def has_failed_test(self) -> bool:
        """Whether a test failed, and not the run itself."""
        return self.code == _FAILED and bool(self.failed)


class TreeCopy:
    """A copy of the tree with an environment whose `jackline` is the copy's, not the working tree's."""

    def __init__(self, folder: Path, root: Path = ROOT) -> None:
        self.root = folder / "tree"
        # Of a file that is not tracked yet, too: a new test has to be found.
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=root, check=True, stdout=subprocess.PIPE).stdout
        for name in os.fsdecode(names).split("\0"):
            if name and (root / name).is_file():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, self.root / name, follow_symlinks=False)
        environment = folder / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
        self.python = str(environment / "bin" / "python")
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        # The .pth files in a folder that a .pth file names are not read: the working tree stays out.
        names_to_add = f"{self.root / 'src'}\n{sysconfig.get_path('purelib')}\n"
        (environment / "lib" / version / "site-packages" / "copy.pth").write_text(names_to_add, encoding="utf-8")
        self._moments = itertools.count(int(time.time()) - 1_000_000)

    def require_own_package(self) -> None:
        """Fail if the environment imports another `jackline` than the copy's."""
        command = [self.python, "-P", "-c", "import jackline; print(jackline.__file__)"]
        found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        if not Path(found).is_relative_to(self.root):
            sys.exit(f"the copy imports {found}, so its tests would not see a mutant")

    def test(self, tests: Sequence[str]) -> PytestEnd:
        """Run the tests until one fails."""
        cache = self.root.parent / "cache"
        shutil.rmtree(cache, ignore_errors=True)
        command = [self.python, "-m", "pytest", "-x", "-q", "-n0", "--no-header", "-o", f"cache_dir={cache}", *tests]
        process = subprocess.Popen(
            command,
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=PATIENCE_S)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                return PytestEnd(code=None, output=output, failed=())
            raise
        names = cache / "v" / "cache" / "lastfailed"
        failed = json.loads(names.read_text(encoding="utf-8")) if names.exists() else ()
        return PytestEnd(code=process.returncode, output=output, failed=tuple(failed))

    def test_mutant(self, mutant: Mutant) -> PytestEnd:
        """Run the tests of a mutant with its edits, which are taken back afterwards."""
        originals = apply_mutant(mutant, self.root, next(self._moments))
        try:
            return self.test(mutant.tests)
        finally:
            restore_files(originals, next(self._moments))


def report_misfits(mutants: list[Mutant], root: Path) -> int:
    """Print the mutants that do not fit the source; return their number."""
    count = 0
    for mutant in mutants:
        for misfit in find_misfits(mutant, root):
            count += 1
            print(f"DOES NOT FIT  {mutant.name}: {misfit}")
            print(f"  Write the same mistake into today's code: edit its `old` and `new` in {mutant.listed_in}.")
    return count


def run_mutants(mutants: list[Mutant], jobs: int, root: Path = ROOT) -> int:
    """Test each mutant in one of `jobs` copies of the tree; return how many things went wrong."""
    if misfits := report_misfits(mutants, root):
        return misfits
    with tempfile.TemporaryDirectory(prefix="jackline-mutants-") as folder, ThreadPoolExecutor(jobs) as pool:
        copies: queue.SimpleQueue[TreeCopy] = queue.SimpleQueue()
        for number in range(jobs):
            copies.put(TreeCopy(Path(folder) / str(number), root))
        first = copies.get()
        first.require_own_package()
        copies.put(first)

        def judge(mutant: Mutant) -> PytestEnd:
            copy, started = copies.get(), time.monotonic()
            try:
                end = copy.test_mutant(mutant)
            finally:
                copies.put(copy)
            print(describe_end(mutant, end, time.monotonic() - started), flush=True)
            return end

        ends = list(pool.map(judge, mutants))
        # What fails without a mutant has killed none.
        kills = list(dict.fromkeys(test for end in ends if end.has_failed_test for test in end.failed))
        copy = copies.get()
        unmutated = copy.test(kills) if kills else None
    failures = sum(not end.has_failed_test for end in ends)
    if unmutated is not None and unmutated.code != 0:
        print(f"FAILS WITHOUT A MUTANT, TOO: {' '.join(unmutated.failed)}\n{show_tail(unmutated.output)}")
        failures += 1
    return failures


def describe_end(mutant: Mutant, end: PytestEnd, seconds: float) -> str:
    """One line for a mutant that was killed; for another one what to do about it."""
    if end.has_failed_test:
        return f"killed    {mutant.name} ({seconds:.0f} s)"
    names = " ".join(mutant.tests)
    if end.code == 0:
        return f"SURVIVED  {mutant.name}: {mutant.breaks}\n  None of its tests failed; add an assertion: {names}"
    why = "no end in time" if end.code is None else f"pytest ended with {end.code}"
    return f"UNCLEAR   {mutant.name}: {why}\n{show_tail(end.output)}"


def show_tail(output: str) -> str:
    """The last lines, indented."""
    return "\n".join(f"  {line}" for line in output.splitlines()[-_TAIL:])


def main(arguments: list[str] | None = None) -> int:
    """Select and run the mutants; return the exit code."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="run only the mutants whose name contains one of these")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many to test at a time")
    options = parser.parse_args(arguments)
    mutants = [one for one in load_mutants() if not options.names or any(name in one.name for name in options.names)]
    if not mutants:
        parser.error(f"no mutant is named {' or '.join(options.names)}")
    started = time.monotonic()
    failures = run_mutants(mutants, options.jobs)
    print(f"{len(mutants)} mutants, {failures} not killed, {time.monotonic() - started:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
