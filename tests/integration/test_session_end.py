"""The end of a test session: no server outlives it, a test that hangs fails alone, and CI skips nothing in silence."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.support.helpers import wait_until

ROOT = Path(__file__).parents[2]
LIMIT_S = 120
HANGING = """
    import os, time
    from urllib.parse import parse_qs, urlsplit

    def test_that_never_ends(postgres_server):
        folder = parse_qs(urlsplit(postgres_server).query)["host"][0]
        with open(os.path.join(folder, "postmaster.pid")) as page:
            number = page.readline().strip()
        with open({told!r} + ".new", "w") as told:
            told.write(number + " " + folder)
        os.rename({told!r} + ".new", {told!r})
        while True:
            time.sleep(60)
"""


def start_session(page: Path, *words: str, **variables: str) -> subprocess.Popen[str]:
    """Start pytest with this project's fixtures on a page outside of the project."""
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "--rootdir", str(ROOT), "-c", "pyproject.toml"]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.Popen(
        [*command, "-p", "no:cacheprovider", str(page), *words],
        cwd=ROOT,
        env={**environ, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("number", "workers"),
    [
        (signal.SIGTERM, "-n0"),
        (signal.SIGKILL, "-n0"),
        pytest.param(signal.SIGKILL, "-n2", marks=pytest.mark.full),
        pytest.param(signal.SIGTERM, "-n2", marks=pytest.mark.full),
        pytest.param(signal.SIGINT, "-n0", marks=pytest.mark.full),
        pytest.param(signal.SIGINT, "-n2", marks=pytest.mark.full),
    ],
)
def test_no_server_outlives_a_session(tmp_path: Path, number: signal.Signals, workers: str) -> None:
    page, told = tmp_path / "test_hanging.py", tmp_path / "told"
    page.write_text(textwrap.dedent(HANGING).format(told=str(told)))
    session = start_session(page, workers)
    try:
        wait_until(lambda: told.exists() or session.poll() is not None, LIMIT_S)
        assert told.exists(), session.communicate()
        pid, folder = told.read_text().split()
        server = os.pidfd_open(int(pid))
        session.send_signal(number)
        ended, _, _ = select.select([server], [], [], LIMIT_S)
        os.close(server)
        assert ended, f"the server {pid} in {folder} is still alive"
        wait_until(lambda: not os.path.exists(folder) and not os.path.exists(f"{folder}.users"), LIMIT_S)
    finally:
        session.kill()
        session.communicate()


def test_a_test_that_hangs_fails_with_its_stack_and_leaves_no_process(tmp_path: Path) -> None:
    page = tmp_path / "test_hanging.py"
    program = """
        import subprocess, pytest

        @pytest.fixture
        def program():
            with subprocess.Popen(["sleep", "600"]) as process:
                yield process
                process.kill()
                print("killed", process.wait())

        @pytest.mark.timeout(1)
        def test_that_hangs(program):
            program.wait()

        def test_another():
            pass
    """
    page.write_text(textwrap.dedent(program))
    session = start_session(page, "-n0")
    output, _ = session.communicate(timeout=LIMIT_S)
    assert session.returncode == 1
    assert output.startswith("F."), output
    assert [words in output for words in ("Timeout", "program.wait()", "killed -9")] == [True] * 3, output


@pytest.mark.parametrize(("ci", "marks"), [("true", "EFsF"), pytest.param("", "ssss", marks=pytest.mark.full)])
def test_on_ci_only_what_is_not_possible_is_skipped(tmp_path: Path, ci: str, marks: str) -> None:
    program = """
        import pytest
        from tests.support.skips import NOT_POSSIBLE

        @pytest.mark.skipif(True, reason="git is not installed")
        def test_a_mark():
            pass

        def test_a_call():
            pytest.skip("this container may not mount")

        def test_of_another_system():
            pytest.skip(NOT_POSSIBLE + "this is not Plan 9")

        def test_a_missing_module():
            pytest.importorskip("no_such_module")
    """
    (tmp_path / "test_skips.py").write_text(textwrap.dedent(program))
    (tmp_path / "test_whole_page.py").write_text("import pytest\npytest.skip('never', allow_module_level=True)\n")
    output, _ = start_session(tmp_path / "test_skips.py", "-n0", CI=ci).communicate(timeout=LIMIT_S)
    assert output.startswith(marks), output
    output, _ = start_session(tmp_path / "test_whole_page.py", "-n0", CI=ci).communicate(timeout=LIMIT_S)
    assert ("must not be skipped on CI" in output) is bool(ci), output
