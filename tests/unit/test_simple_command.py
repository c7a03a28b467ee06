"""One simple command: its exit code is that of its program. Anything else proves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from jackline.engine.exit_evidence import find_impossible_codes
from jackline.policy.simple_command import CURL_NOT_SENT, is_single_request, parse_simple_command

NOT_STARTED = frozenset({126, 127})


@pytest.mark.parametrize(
    "text",
    [
        "nosuch a b",
        "nosuch 'a; b' \"c | d\"",
        "nosuch $X 2>&1",
        "nosuch a > /dev/null",
        "A=1 nosuch",
        "bash -lc 'nosuch a'",
        "nosuch <<E\nhello\nE",
        "# why\nnosuch a\n",
    ],
)
def test_a_simple_command(text: str) -> None:
    command = parse_simple_command(text)
    assert command is not None
    assert command.words[0].text == "nosuch"


@pytest.mark.parametrize(
    "text",
    [
        "true; nosuch",
        "true && nosuch",
        "nosuch || true",
        "echo x | nosuch",
        "nosuch &",
        "nosuch $(date)",
        "nosuch `date`",
        "nosuch <(date)",
        "(nosuch)",
        "for i in 1 2; do nosuch; done",
        "nosuch > out.txt",
        "nosuch < in.txt",
        "$PROGRAM x",
        "sudo nosuch",
        "env A=1 nosuch",
        "timeout 5 nosuch",
        "xargs nosuch",
        "ssh host nosuch",
        "npm run deploy",
        "make deploy",
        "docker run image nosuch",
        "bash deploy.sh",
        "bash -lc 'true; nosuch'",
        'bash -lc "$X"',
        "nosuch 'unclosed",
        "",
    ],
)
def test_not_a_simple_command(text: str) -> None:
    assert parse_simple_command(text) is None


@pytest.mark.parametrize(
    ("words", "single"),
    [
        ("-d x https://a.test/", True),
        ("-sS -X POST -H 'A: b' --data @f https://a.test/", True),
        ("-XPOST localhost:8080/deploy", True),
        ("--url https://a.test/ -d '{\"a\": [1]}'", True),
        ("-q -d x https://a.test/ -o /dev/null", True),
        ("-d x https://a.test/ https://b.test/", False),
        ("-L -d x https://a.test/", False),
        ("-sSLd x https://a.test/", False),
        ("--location-trusted -d x https://a.test/", False),
        ("--loc -d x https://a.test/", False),
        ("-d x https://a.test/ --next https://b.test/", False),
        ("-d x https://a.test/ -: https://b.test/", False),
        ("--retry 3 -d x https://a.test/", False),
        ("--retry-all-errors -d x https://a.test/", False),
        ("-K conf -d x https://a.test/", False),
        ("--config conf https://a.test/", False),
        ("-d x 'https://{a,b}.test/'", False),
        ("-d x 'https://a.test/[1-3]'", False),
        ("-T '{a,b}' https://a.test/", False),
        ("-T file ftp://a.test/", False),
        ("-d x ftp.a.test/x", False),
        ("-d x $URL", False),
        ("-d x https://a.test/ --unheard value", False),
        ("-d x", False),
        ("--follow -d x https://a.test/", False),
        ("--url @urls -d x", False),
        ("--expand-url https://a.test/", False),
        ("--tls-earlydata -d x https://a.test/", False),
    ],
)
def test_one_request_of_curl(words: str, *, single: bool) -> None:
    command = parse_simple_command(f"curl {words}")
    assert command is not None
    assert is_single_request(command) is single


def test_another_program_or_a_changed_environment_is_not_curl() -> None:
    others = ("wget https://a.test/", "CURL_HOME=/x curl -d x https://a.test/", "./curl -d x https://a.test/")
    for text in others:
        command = parse_simple_command(text)
        assert command is not None
        assert not is_single_request(command)


def codes(text: str, folder: Path, **environ: str) -> frozenset[int]:
    return find_impossible_codes("Bash", {"command": text}, str(folder), {"PATH": str(folder / "bin"), **environ})


def add_program(path: Path, mode: int = 0o755) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\nexit 127\n")
    path.chmod(mode)


def test_a_program_that_the_host_cannot_start_was_not_started(tmp_path: Path) -> None:
    assert codes("nomail a@b.test", tmp_path) == NOT_STARTED
    assert codes("./deploy now", tmp_path) == NOT_STARTED
    assert codes("true; nomail a@b.test", tmp_path) == frozenset()
    add_program(tmp_path / "bin" / "nomail", 0o644)
    assert codes("nomail a@b.test", tmp_path) == NOT_STARTED


def test_a_program_that_can_be_started_may_end_with_these_codes_itself(tmp_path: Path) -> None:
    add_program(tmp_path / "bin" / "nomail")
    add_program(tmp_path / "deploy")
    assert codes("nomail a@b.test", tmp_path) == frozenset()
    assert codes("./deploy now", tmp_path) == frozenset()


def test_curl_that_sent_nothing(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "curl").symlink_to("/bin/true")
    home = {"HOME": str(tmp_path / "home")}
    assert codes("curl -d x https://a.test/", tmp_path, **home) == CURL_NOT_SENT
    assert codes("curl -L -d x https://a.test/", tmp_path, **home) == frozenset()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".curlrc").write_text("location\n")
    assert codes("curl -d x https://a.test/", tmp_path, **home) == frozenset()
    assert codes("curl -q -d x https://a.test/", tmp_path, **home) == CURL_NOT_SENT


def test_a_wrapper_of_curl_may_end_with_any_code(tmp_path: Path) -> None:
    add_program(tmp_path / "bin" / "curl")
    assert codes("curl -d x https://a.test/", tmp_path, HOME=str(tmp_path)) == frozenset()


@pytest.mark.parametrize(
    "line", ["deploy() { push; nosuch; }", "alias deploy='push; nosuch'", "function deploy { push; }", "deploy () {"]
)
def test_a_function_or_an_alias_is_not_a_program_that_is_missing(tmp_path: Path, line: str) -> None:
    (tmp_path / ".bashrc").write_text(f"# other\n{line}\n")
    assert codes("deploy now", tmp_path, HOME=str(tmp_path)) == frozenset()
    assert codes("deploy-nowhere now", tmp_path, HOME=str(tmp_path)) == NOT_STARTED
    assert codes("curl -d x https://a.test/", tmp_path, HOME=str(tmp_path)) == CURL_NOT_SENT
    (tmp_path / ".bashrc").write_text("alias curl='curl --retry 3 --location'\n")
    assert codes("curl -d x https://a.test/", tmp_path, HOME=str(tmp_path)) == frozenset()


def test_an_exported_function_is_not_a_program_that_is_missing(tmp_path: Path) -> None:
    assert codes("deploy now", tmp_path, **{"BASH_FUNC_deploy%%": "() { push; }"}) == frozenset()


def test_a_shell_may_search_more_folders_than_jackline(tmp_path: Path) -> None:
    assert codes("PATH=/opt/tools/bin deploy now", tmp_path) == frozenset()
    home = {"HOME": str(tmp_path)}
    for folder in (".local", "go"):
        (tmp_path / folder).mkdir()
    add_program(tmp_path / ".local" / "bin" / "deploy")
    assert codes("bash -lc 'deploy now'", tmp_path, **home) == frozenset()
    add_program(tmp_path / "go" / "bin" / "ship")
    assert codes("ship now", tmp_path, **home) == NOT_STARTED
    (tmp_path / ".profile").write_text('export PATH="$HOME/go/bin:$PATH"\n')
    assert codes("ship now", tmp_path, **home) == frozenset()


def test_a_tool_that_is_not_a_shell_has_no_such_codes(tmp_path: Path) -> None:
    assert find_impossible_codes("send_mail", {"to": "a"}, str(tmp_path), {}) == frozenset()
