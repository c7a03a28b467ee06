"""Environment files: parsed as systemd does, private to the user, never part of a project, and never quoted."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackline.app import environment
from jackline.app.env_file import parse_env_file, read_env_file, read_secret_file
from jackline.errors import ConfigError, UsageError

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,20}", fullmatch=True)
VALUES = st.text(st.characters(exclude_characters="\0\r", codec="utf-8"), max_size=60)
SECRET = "sk-ant-c9b4f81d2e6a7f30"


def in_double_quotes(value: str) -> str:
    return '"' + "".join(f"\\{one}" if one in '"\\`$' else one for one in value) + '"'


def plain(value: str) -> str:
    return "".join("" if one == "\n" else f"\\{one}" if not one.isalnum() else one for one in value)


@given(st.dictionaries(NAMES, VALUES, max_size=5))
def test_what_is_quoted_is_read_as_it_was(variables: dict[str, str]) -> None:
    text = "".join(f"# a comment\n\n {name} = {in_double_quotes(value)}\n" for name, value in variables.items())
    assert parse_env_file(text) == variables


@given(st.dictionaries(NAMES, VALUES.map(lambda text: text.replace("\n", "")), max_size=5))
def test_what_is_escaped_is_read_as_it_was(variables: dict[str, str]) -> None:
    assert parse_env_file("\n".join(f"{name}={plain(value)}" for name, value in variables.items())) == variables


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(UsageError):
        assert all(name.isidentifier() for name in parse_env_file(text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("A=b", "b"),
        ("A=", ""),
        ("A=  b c  ", "b c"),
        ("A='b # c'", "b # c"),
        ("A=b # c", "b # c"),
        ("A=$HOME ${B} `id`", "$HOME ${B} `id`"),
        ('A="b" "c"', "bc"),
        ("A='b'c", "bc"),
        (r'A="\x \" \$ \\"', r'\x " $ ' + "\\"),
        ("A='two\nlines'", "two\nlines"),
        ("A=two \\\nlines", "two lines"),
        ("A=b\\ ", "b "),
        ("; c\n#A=x\n  A=b\r\n", "b"),
        ("A=1\nA=2", "2"),
    ],
)
def test_values(text: str, value: str) -> None:
    assert parse_env_file(text) == {"A": value}


@pytest.mark.parametrize("text", ["A", "export A=b", "A B=c", "=b", "1A=b", "A='b", 'A="b', "A=\0"])
def test_a_line_that_is_no_variable_is_named_by_its_number(text: str) -> None:
    with pytest.raises(UsageError, match=r"^line 2 is not NAME=VALUE") as caught:
        parse_env_file(f"B={SECRET}\n{text}\n")
    assert SECRET not in str(caught.value)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "keys.env"
    path.write_text(f"ANTHROPIC_API_KEY={SECRET}\n")
    path.chmod(0o600)
    return path


def test_a_private_file_is_read(file: Path) -> None:
    assert read_env_file(str(file), "env_file") == {"ANTHROPIC_API_KEY": SECRET}
    file.chmod(0o400)
    assert read_env_file(str(file), "env_file") == {"ANTHROPIC_API_KEY": SECRET}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o606, 0o610, 0o601, 0o777])
def test_a_file_that_is_open_to_others_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)
    for read in (read_env_file, read_secret_file):
        with pytest.raises(ConfigError, match=f"open to other users: chmod 600 {file}") as caught:
            read(str(file), "env_file")
        assert SECRET not in str(caught.value)


def test_a_file_of_another_user_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid + 1)
    with pytest.raises(ConfigError, match="belongs to another user"):
        read_env_file(str(file), "env_file")


def test_a_file_in_a_repository_is_refused_even_behind_a_link(file: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    inside = project / "keys.env"
    inside.write_bytes(file.read_bytes())
    inside.chmod(0o600)
    link = tmp_path / "link.env"
    link.symlink_to(inside)
    for path in (inside, link):
        with pytest.raises(ConfigError, match=f"is in the repository {project}"):
            read_env_file(str(path), "env_file")


def test_a_file_beside_the_settings_may_be_in_their_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "dotfiles"))
    (tmp_path / "dotfiles" / ".git").mkdir(parents=True)
    (tmp_path / "dotfiles" / "jackline").mkdir()
    path = tmp_path / "dotfiles" / "jackline" / "keys.env"
    path.touch(0o600)
    assert read_env_file(str(path), "env_file") == {}


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "long", "latin"])
def test_what_cannot_be_read_is_one_line(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "keys.env"
    match kind:
        case "folder":
            path.mkdir(0o700)
        case "pipe":
            os.mkfifo(path, 0o600)
        case "long":
            path.write_text("#" * 100_001)
            path.chmod(0o600)
        case "latin":
            path.write_bytes(b"A=\xe9")
            path.chmod(0o600)
    with pytest.raises(ConfigError, match=r"^env_file: ") as caught:
        read_env_file(str(path), "env_file")
    assert str(caught.value).count("env_file") == 1
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name",
    ["PATH", "LD_PRELOAD", "NODE_OPTIONS", "BASH_ENV", "HOME", "JACKLINE_HOME", "XDG_CONFIG_HOME", "PYTHONPATH",
     "GIT_SSH_COMMAND", "DYLD_INSERT_LIBRARIES", "PERL5OPT", "NPM_CONFIG_USERCONFIG"],
)  # fmt: skip
def test_a_variable_that_makes_programs_run_other_code_is_refused(file: Path, name: str) -> None:
    file.write_text(f"{name}=/tmp/x\n")
    with pytest.raises(ConfigError, match=f"sets {name}, which can make programs run other code"):
        read_env_file(str(file), "env_file")


def test_values_that_may_be_secrets_are_known_to_the_redactor(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_learned", {})
    secrets = ("open sesame 42", "correct horse battery staple", "https://hooks.example.org/T01/B02/abcdef")
    plain = ("production", "https://proxy.example.org/api", "claude-work")
    headers, phrase, hook = secrets
    file.write_text(
        f"ANTHROPIC_CUSTOM_HEADERS='X-Auth: {headers}'\nDEPLOY='{phrase}'\nHOOK={hook}\n"
        + "".join(f"PLAIN_{number}={value}\n" for number, value in enumerate(plain))
    )
    environment._read_file(str(file), "env_file")
    assert set(secrets) < set(environment.list_learned())
    assert set(plain).isdisjoint(environment.list_learned())


def test_a_secret_file_has_one_line(file: Path) -> None:
    file.write_text(f"{SECRET}\n")
    assert read_secret_file(str(file), "key") == SECRET
    for text in ("", "\n", "a\nb\n"):
        file.write_text(text)
        with pytest.raises(ConfigError, match="must have one line"):
            read_secret_file(str(file), "key")
