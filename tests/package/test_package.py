"""What is shipped: wheel and source archive are built here, and the wheel works alone on an empty machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from jackline.version import __version__

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
SECONDS = 120
# Where packages come from is each machine's own affair.
REGISTRIES = re.compile(
    rb"--(?:extra-)?index-url|--find-links|pypi\.org|pythonhosted\.org|://[^/\s]*(?:artifact|nexus|devpi)"
)
SAYS_IT = "tests/package/test_package.py"  # this very file names what it looks for


@dataclass(frozen=True)
class Built:
    """What the builder made."""

    wheel: Path
    sdist: Path


def build(source: Path, into: Path, *words: str) -> None:
    argv = [sys.executable, "-m", "hatchling", "build", "-d", str(into), *words]
    ended = subprocess.run(argv, cwd=source, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert ended.returncode == 0, ended.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("dist")
    build(ROOT, folder)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return Built(wheel, sdist)


def shipped_sources() -> set[str]:
    """Every file of the package in the tree."""
    files = (path for path in (SOURCE / "jackline").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(SOURCE).as_posix() for path in files}


def contents(sdist: Path) -> dict[str, bytes]:
    """The files of the source archive, by their path in the project."""
    with tarfile.open(sdist) as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
        return {member.name.partition("/")[2]: _read(archive, member) for member in members}


def _read(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    assert file is not None
    return file.read()


# --- the wheel -----------------------------------------------------------------------------------------------


def test_the_wheel_has_every_file_of_the_package_and_no_other(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert names == shipped_sources()


@pytest.mark.parametrize(
    "name",
    [
        "py.typed",
        "agents/scripted/scripted.schema.json",
        "agents/scripted/scripted_player.py",
        "agents/helpers/start.py",
        "agents/scripted/playback/player.py",
        "scenarios/sandbox_tools.py",
        "scenarios/subagents.py",
        "persona/CLAUDE.md",
        "skills/jackline.md",
        "store/migrations/0001_runs.sql",
        "store/queries/runs.sql",
        "store/queries/postgres/upkeep.sql",
    ],
)
def test_the_wheel_has_what_is_read_or_started_as_a_file(built: Built, name: str) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        assert f"jackline/{name}" in wheel.namelist()


def test_the_wheel_needs_only_the_base_dependencies(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        head = wheel.read(name).decode().partition("\n\n")[0].splitlines()
    assert f"Version: {__version__}" in head
    assert "Requires-Python: >=3.11" in head
    needed = [line for line in head if line.startswith("Requires-Dist:") and "extra ==" not in line]
    wanted = ("apprise>=1.9", "cronsim>=2.6", "fastjsonschema>=2.22", "mcp>=2.3", "shtab>=1.13", "tzdata")
    assert needed == [f"Requires-Dist: {one}" for one in wanted]
    extras = {line.partition(": ")[2] for line in head if line.startswith("Provides-Extra:")}
    assert extras == {"otel", "postgres"}


@dataclass(frozen=True)
class Installed:
    """The wheel in an empty environment; commands have an empty HOME and only the system's own programs."""

    folder: Path

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def type(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        argv = [str(self.folder / "venv" / "bin" / "jackline"), *words]
        env = {"PATH": os.defpath, "HOME": str(self.home), **more}
        return subprocess.run(
            argv, cwd=self.home, env=env, capture_output=True, text=True, timeout=SECONDS, check=False
        )


@pytest.fixture(scope="module")
def installed(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    made = Installed(tmp_path_factory.mktemp("installed"))
    made.home.mkdir()
    venv = str(made.folder / "venv")
    pip = [sys.executable, "-m", "pip", "--python", f"{venv}/bin/python", "--quiet", "--disable-pip-version-check"]
    for argv in (
        [sys.executable, "-m", "venv", "--without-pip", venv],
        # Without its dependencies: nothing is downloaded here, and no command below needs them.
        [*pip, "install", "--no-index", "--no-deps", str(built.wheel)],
    ):
        subprocess.run(argv, check=True, timeout=SECONDS, capture_output=True)
    return made


def test_the_installed_wheel_plays_the_demo(installed: Installed) -> None:
    assert installed.type("--version").stdout == f"jackline {__version__}\n"
    demo = installed.type("demo", "--keep", str(installed.folder / "kept"))
    assert (demo.returncode, demo.stderr) == (0, ""), demo
    assert "exactly once" in demo.stdout
    assert list(installed.home.iterdir()) == []


def test_without_the_extra_a_line_says_what_to_install(installed: Installed) -> None:
    elsewhere = str(installed.folder / "elsewhere")
    ended = installed.type("list", JACKLINE_DATABASE="postgresql://127.0.0.1:1/nothing", JACKLINE_HOME=elsewhere)
    assert (ended.returncode, len(ended.stderr.splitlines())) == (1, 1), ended
    assert "pip install 'jackline[postgres]'" in ended.stderr


# --- the source archive --------------------------------------------------------------------------------------


def test_the_source_archive_builds_the_same_wheel(built: Built, tmp_path: Path) -> None:
    with tarfile.open(built.sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    build(source, tmp_path / "dist", "-t", "wheel")
    (again,) = (tmp_path / "dist").glob("*.whl")
    assert again.read_bytes() == built.wheel.read_bytes()


def test_the_source_archive_has_code_tests_docs_and_licence(built: Built) -> None:
    names = contents(built.sdist).keys()
    assert names >= {f"src/{name}" for name in shipped_sources()}
    assert names >= {"README.md", "LICENSE", "CHANGELOG.md", "Makefile", "pyproject.toml", "docs/promise.md"}
    assert names >= {"examples/scripts/hello.json", "requirements/dev.txt", "tests/conftest.py", SAYS_IT}


def test_the_source_archive_names_no_place_of_this_machine(built: Built) -> None:
    places = {str(ROOT), sys.prefix, os.path.expanduser("~")}
    wanted = [f"{place}/".encode() for place in places if len(place) > 1]
    found = [name for name, data in contents(built.sdist).items() if any(place in data for place in wanted)]
    assert found == []


def test_the_source_archive_names_no_registry(built: Built) -> None:
    files = {name: data for name, data in contents(built.sdist).items() if name != SAYS_IT}
    assert [name for name, data in files.items() if REGISTRIES.search(data)] == []
    locked = [data for name, data in files.items() if name.startswith("requirements/") and b"://" in data]
    assert locked == []


def test_the_version_of_the_archive_is_that_of_the_package(built: Built) -> None:
    project = tomllib.loads(contents(built.sdist)["pyproject.toml"].decode())
    assert project["tool"]["hatch"]["version"]["path"] == "src/jackline/version.py"
    assert built.sdist.name == f"jackline-{__version__}.tar.gz"
