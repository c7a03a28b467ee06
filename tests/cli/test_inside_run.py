"""Inside a run no process can trust a project or answer a call, even with its variables unset."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest

from jackline.app import trust
from tests.cli.place import EFFECT_RULE, SAY, SEND, Place
from tests.support.skips import NOT_POSSIBLE

WAITS = 14
ASK_RULE = EFFECT_RULE.replace('decision = "allow"', 'decision = "ask"')
UNSET = "env -u JACKLINE_MARK -u JACKLINE_RUN -u JACKLINE_RUN_ID -u JACKLINE_ATTEMPT"
linux = pytest.mark.skipif(sys.platform != "linux", reason=f"{NOT_POSSIBLE}needs /proc")

UNSHARE = ("unshare", "--map-root-user", "--pid", "--fork")


def can_unshare() -> bool:
    return bool(shutil.which("unshare")) and subprocess.run([*UNSHARE, "true"], check=False).returncode == 0


# Each writes what jackline said to the file `said`, then its exit code to the file `code`.
WAYS = {
    "plain": "{jackline}",
    "unset": f"{UNSET} {{jackline}}",
    "empty": "env -i HOME={folder} JACKLINE_HOME={home} {jackline}",
    "script": "env -i HOME={folder} JACKLINE_HOME={home} sh -c 'sh -c \"{jackline}; exit\"; exit'",
}
DETACHED = (
    "import os, subprocess, sys\n"
    "if os.fork(): os._exit(0)\n"
    "os.setsid()\n"
    "if os.fork(): os._exit(0)\n"
    "while os.getppid() == int(sys.argv[1]): pass\n"
    "subprocess.run(['sh', '-c', sys.argv[2]], env={'HOME': sys.argv[3], 'JACKLINE_HOME': sys.argv[4]})\n"
)


@pytest.fixture
def project(place: Place) -> Place:
    subprocess.run(["git", "init", "-q"], cwd=place.repository, check=True)
    place.task("mend")  # a file that needs trust, and stops no run
    return place


def try_below_a_run(place: Place, way: str, *words: str) -> tuple[int, str]:
    """The exit code and output that a program of the agent gets for the command."""
    command = f"{sys.executable} -m jackline {' '.join(words)}"
    folder, home = place.folder, place.home
    line = WAYS[way].format(jackline=command, folder=folder, home=home)
    place.play(
        {"call": {"tool": "try", "input": {}, "run": f"{line} > {folder}/said 2>&1; echo $? > {folder}/code"}},
        SAY,
        words=("--run-id", "agent"),
    )
    return int((folder / "code").read_text()), (folder / "said").read_text()


def ask(place: Place) -> str:
    """A run that waits for approval; its call."""
    ended = place.play(SEND, SAY, words=("--policy", place.policy(ASK_RULE), "--run-id", "asks"))
    assert ended.code == WAITS
    (call,) = re.findall(r"jackline answer asks (\S+) allow\n", ended.out)
    return str(call)


def answers(place: Place) -> list[str]:
    return [call["answer"] for call in place.type("show", "asks", "--json").json["calls"]]


@linux
@pytest.mark.parametrize("way", WAYS)
def test_a_project_is_not_trusted_below_a_run(project: Place, way: str) -> None:
    code, said = try_below_a_run(project, way, "trust")
    assert (code, len(said.splitlines())) == (2, 1), said
    assert "`jackline trust` is refused inside a run" in said
    assert not trust.is_trusted(str(project.home), "", str(project.repository))
    assert project.trust().code == 0
    assert trust.is_trusted(str(project.home), "", str(project.repository))


@linux
@pytest.mark.parametrize("way", WAYS)
def test_another_run_s_call_is_not_answered_below_a_run(place: Place, way: str) -> None:
    call = ask(place)
    code, said = try_below_a_run(place, way, "answer", "asks", call, "allow")
    assert (code, len(said.splitlines())) == (2, 1), said
    assert "`jackline answer` is refused inside a run" in said
    assert answers(place) == [""]
    assert place.type("answer", "asks", call, "allow").code == 0
    assert answers(place) == ["allow"]


@linux
def test_a_process_that_left_its_parents_and_cleared_its_environment_is_still_below_the_run(place: Place) -> None:
    call = ask(place)
    said, code = place.path("said"), place.path("code")
    answer = f"{sys.executable} -m jackline answer asks {call} allow > {said} 2>&1"
    answer = f"{answer}; echo $? > {code}.new; mv {code}.new {code}"
    (place.folder / "detach.py").write_text(DETACHED)
    detach = f"{sys.executable} {place.path('detach.py')} $$ '{answer}' {place.folder} {place.home}"
    wait = f"until [ -e {code} ]; do sleep 0.01; done"
    place.play({"call": {"tool": "try", "input": {}, "run": f"{detach}; {wait}"}}, SAY, words=("--run-id", "agent"))
    assert ((place.folder / "code").read_text(), answers(place)) == ("2\n", [""])
    assert "is refused inside a run" in (place.folder / "said").read_text()


@linux
@pytest.mark.skipif(not can_unshare(), reason="needs unshare(1) and the right to make a process namespace")
def test_a_process_namespace_does_not_hide_the_run_in_the_same_proc(
    project: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    way = f"{' '.join(UNSHARE)} env -i HOME={{folder}} JACKLINE_HOME={{home}} {{jackline}}"
    monkeypatch.setitem(WAYS, "namespace", way)
    code, said = try_below_a_run(project, "namespace", "trust")
    assert (code, "`jackline trust` is refused inside a run" in said) == (2, True), said


def test_what_only_shows_the_trust_works_below_a_run(project: Place) -> None:
    code, said = try_below_a_run(project, "plain", "trust", "--show")
    assert (code, "not trusted" in said) == (0, True), said


def test_trust_is_not_revoked_below_a_run(project: Place) -> None:
    assert project.trust().code == 0
    code, _ = try_below_a_run(project, "plain", "trust", "--revoke")
    assert code == 2
    assert trust.is_trusted(str(project.home), "", str(project.repository))


@pytest.mark.parametrize("name", ["JACKLINE_MARK", "JACKLINE_RUN"])
def test_a_variable_of_a_run_is_enough(project: Place, name: str) -> None:
    assert project.type("trust", environ={name: "0123456789"}).code == 2
    assert project.trust().code == 0
