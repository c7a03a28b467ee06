"""`make agents` with a stand-in for Node and npm: whole or not at all, once, one line for each failure."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests import real_agents
from tools.agents import install, pins

ONE = pins.Pin("one", "the-one", "1.2.3", ("none/at/all", "the-one/run"))
SCRIPT = pins.Pin("two", "the-two", "4.5.6", ("the-two/cli.js",), node=True)
ELSEWHERE = pins.Pin("far", "the-far", "1.0.0", ("x",), platforms=("plan9-mips",))
# Called as `node npm-cli.js ci ...` it installs, called with a program it is what runs it.
NODE = """#!/bin/sh
case "$2" in
ci) echo installed >> "$LOG"; [ -z "$BROKEN" ] || { echo "no such package" >&2; exit 1; }
    for one in the-one/run:1.2.3 the-two/cli.js:4.5.6; do
        mkdir -p "node_modules/${one%%/*}"
        printf '#!/bin/sh\\necho it is %s really\\n' "${one##*:}" > "node_modules/${one%%:*}"
        chmod +x "node_modules/${one%%:*}"
    done ;;
*) program=$1; shift; exec /bin/sh "$program" "$@" ;;
esac
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    node = tmp_path / "node"
    node.write_text(NODE)
    node.chmod(0o700)
    for pin in (ONE, SCRIPT, ELSEWHERE):
        (tmp_path / "locks" / pin.name).mkdir(parents=True)
        for name in ("package.json", "package-lock.json"):
            (tmp_path / "locks" / pin.name / name).write_text("{}")
    monkeypatch.setattr(install, "_ensure_node", lambda _: str(node))
    monkeypatch.setattr(install, "LOCKS", str(tmp_path / "locks"))
    monkeypatch.setattr(install, "read", lambda: {pin.name: pin for pin in (ONE, SCRIPT, ELSEWHERE)})
    monkeypatch.setenv("JACKLINE_AGENTS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    return tmp_path / "cache"


def installs(cache: Path) -> int:
    log = cache.parent / "log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def test_each_is_installed_once_and_has_its_entry(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (install.main([]), install.main([])) == (0, 0)
    assert installs(cache) == 2
    assert os.path.realpath(cache / "bin" / "one") == str(cache / "one-1.2.3" / "node_modules" / "the-one" / "run")
    wrapper = (cache / "bin" / "two").read_text().splitlines()
    script = cache / "two-4.5.6" / "node_modules" / "the-two" / "cli.js"
    assert wrapper == ["#!/bin/sh", f'exec "{cache.parent / "node"}" "{script}" "$@"']
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.count(str(cache / "one-1.2.3" / "bin" / "one")) == 2
    assert "skipped: the pinned package is for plan9-mips" in said.out
    # What `jackline uninstall` may take away, and nothing that was there before.
    (cache / "theirs-1.0").mkdir()
    assert install.main([]) == 0
    assert (cache / install.MARK).read_text().split() == ["one-1.2.3", "two-4.5.6"]
    (cache / install.MARK).unlink()  # a cache of the time before there was a list
    assert install.main([]) == 0
    assert (cache / install.MARK).read_text().split() == ["one-1.2.3", "two-4.5.6"]


def test_a_failure_is_one_line_and_leaves_nothing(
    cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROKEN", "1")
    assert install.main([]) == 1
    assert [line.split()[:4] for line in capsys.readouterr().err.splitlines()] == [
        ["one", "1.2.3", "FAILED:", "no"],
        ["two", "4.5.6", "FAILED:", "no"],
    ]
    assert sorted(os.listdir(cache)) == ["lock"]
    monkeypatch.delenv("BROKEN")
    assert install.main([]) == 0


def test_a_program_of_another_version_is_refused(
    cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = pins.Pin("one", "the-one", "1.2", ("the-one/run",))
    monkeypatch.setattr(install, "read", lambda: {"one": wrong})
    assert install.main([]) == 1
    assert "none of the-one/run prints the version 1.2" in capsys.readouterr().err
    assert not (cache / "one-1.2").exists()


def test_what_a_killed_installer_left_is_swept(cache: Path) -> None:
    (cache / ".new-abandoned").mkdir(parents=True)
    assert install.main([]) == 0
    assert not (cache / ".new-abandoned").exists()


@pytest.mark.parametrize("pin", pins.read().values(), ids=lambda pin: pin.name)
def test_the_lock_is_that_of_the_pin_and_names_no_registry(pin: pins.Pin) -> None:
    folder = Path(install.LOCKS) / pin.name
    assert json.loads((folder / "package.json").read_text())["dependencies"] == {pin.package: pin.version}
    packages = json.loads((folder / "package-lock.json").read_text())["packages"]
    assert packages[f"node_modules/{pin.package}"]["version"] == pin.version
    assert [name for name, one in packages.items() if name and "integrity" not in one] == []
    assert [name for name, one in packages.items() if "resolved" in one] == []


def test_a_missing_one_is_skipped(cache: Path) -> None:
    with pytest.raises(pytest.skip.Exception, match=r"qwen .* is not installed: run `make agents`"):
        real_agents.binary("qwen")
