"""Read-only commands must start fast: their imports are pinned."""

from __future__ import annotations

import pytest

from tests.cli.place import Place

HEAVY = (
    "jackline.engine", "jackline.exports", "jackline.agents", "jackline.app.worker", "jackline.app.request",
    "jackline.store.postgres", "psycopg", "logging", "subprocess", "tomllib", "asyncio", "tempfile", "shutil",
    "socket", "ssl", "pathlib", "importlib.metadata", "importlib.resources", "multiprocessing", "difflib",
    "jackline.features.mcp", "mcp", "mcp_types", "pydantic", "anyio", "signal",
)  # fmt: skip
FOR_WRITING = (
    "jackline.store.ledger",
    "jackline.store.redaction",
    "jackline.secrets",
    "jackline.features.cases.case_model",
)
PROGRAM = """
import sys
from jackline.cli.main import main
code = main(sys.argv[1:])
print("\\n" + " ".join(sorted(sys.modules)))
sys.exit(code)
"""


@pytest.mark.parametrize("words", [("list",), ("list", "--json", "--active"), ("show", "1"), ("show", "1", "--json")])
def test_a_state_command_imports_nothing_heavy(place: Place, words: tuple[str, ...]) -> None:
    assert place.type("run", "x", "--agent", "command", "--", "true").code == 0  # a script would be redacted
    ended = place.end_of(place.python(PROGRAM, *words))
    assert ended.code == 0, ended
    loaded = ended.out.splitlines()[-1].split()
    assert "jackline.store.open" in loaded
    needless = (*HEAVY, *FOR_WRITING)
    heavy = [name for name in loaded if any(name == one or name.startswith(f"{one}.") for one in needless)]
    assert heavy == []


def test_a_folder_in_a_variable_does_not_import_the_names_of_secrets(place: Place) -> None:
    """Every shell has a PWD, which sounds like a password and is a path."""
    process = place.python(PROGRAM, "work", "enqueue", "--kind", "a", environ={"PWD": "/a", "OLDPWD": "/b/c/d/e"})
    loaded = place.end_of(process).out.splitlines()[-1].split()
    assert "jackline.secrets.redactor" in loaded
    assert "jackline.secrets.names" not in loaded


def test_help_and_version_import_no_command(place: Place) -> None:
    for words in (("--help",), ("--version",)):
        loaded = place.end_of(place.python(PROGRAM, *words)).out.splitlines()[-1].split()
        assert not [
            name for name in loaded if name.startswith(("jackline.cli.commands.", "jackline.store", "argparse"))
        ]


def test_the_help_names_every_command(place: Place) -> None:
    shown = place.type("--help").out
    for name in ("run", "resume", "cancel", "answer", "list", "show", "logs", "export", "db", "demo"):
        assert f"\n  {name} " in shown
        assert place.type(name, "--help").code == 0
    assert place.type("--version").out.startswith("jackline ")
