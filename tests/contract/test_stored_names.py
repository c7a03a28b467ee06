"""Compares every stored or printed name with `stored_names.toml`, so that a rename in the code cannot change one.

A difference is a change of the storage format or of the JSON output. A new name is added to the file with the change
that introduces it; a name that is there is never renamed or removed without a migration.
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from jackline.app.setting_keys import KEYS
from jackline.domain import states
from jackline.domain.records import RunStatus
from jackline.domain.spec import AgentOptions, Spec
from jackline.domain.states import CallClass
from jackline.features.cases import case_model
from jackline.policy.rules import Rule
from jackline.store import rows
from jackline.store.store import Store
from tests.cli.place import Place
from tests.fixtures.make_old_home import FIRST, environment
from tests.support.old_home import unpacked
from tests.support.stores import by_hand

RECORDED = tomllib.loads((Path(__file__).parent / "stored_names.toml").read_text())
SOURCE = Path(__file__).parents[2] / "src" / "jackline"
# Of event kinds and crash points, which share their first words.
KIND = re.compile(
    r"(?:advance|agent|backup|bridge|budget|call|cancel|case|check|cost|finding|gate|import|iteration|leftovers|mcp|probe|publishing|pull_request|recovery"
    r"|replay|review|run|session|step|stop|turn|views|work|worktree)(?:\.[a-z_]+)+"
)
FILE = re.compile(r".*\.(?:json|jsonl|md|py|sh|sock|sqlite|toml|txt|loop|turn)")
VARIABLE = re.compile(r"JACKLINE_[A-Z_]*[A-Z]\b")
# Objects whose keys are data of the user.
SORTED = frozenset({"kinds", "environment"})  # sections whose names have no order; one per line avoids conflicts
FREE = frozenset(
    {"sessions", "options", "manners", "payload", "settings", "variables", "programs", "default", "counts"}
)
COMMANDS = (
    "agents", "case hypothesis list", "case list", "config", "dashboard", "db check", "db status", "events tail",
    "inbox", "list", "policy show", "receipts lost-after", "show asks", "show checked", "show lost-after", "tasks list",
    "tasks show agent_management", "trust --show", "verify parent", "work list",
)  # fmt: skip


def words(names: Iterable[str]) -> str:
    return " ".join(names)


def check(section: str, found: dict[str, str]) -> None:
    """Fail with the lines that the file would need."""
    in_order = sorted if section in SORTED else list
    recorded = {name: words(in_order(text.split())) for name, text in RECORDED[section].items()}
    changed = {name: text for name, text in found.items() if recorded.get(name) != text}
    missing = sorted(recorded.keys() - found.keys())
    lines = "\n".join(f"{json.dumps(name)} = {json.dumps(text)}" for name, text in changed.items())
    assert not changed, f"stored names differ from stored_names.toml; found for [{section}]:\n{lines}"
    assert not missing, f"[{section}] has no {missing} any more"


def test_tables_and_columns(store: Store) -> None:
    check("tables", dict(_tables(store)))


def test_columns_in_the_order_that_digests_cover() -> None:
    check("columns", {record: words(rows.columns(record)) for record in RECORDED["columns"]})


def test_keys_of_the_frozen_spec_and_of_a_checkpoint() -> None:
    rule = Rule("mail", "send", CallClass.EFFECT)
    spec = Spec(prompt="p", workspace="/w", rules=(rule,), agent_options={"claude": AgentOptions()}).to_dict()
    nested = {"limits": spec["limits"], "retry": spec["retry"], "rule": spec["rules"][0], "worktree": spec["worktree"]}
    life = RunStatus().to_dict()
    objects = {"spec": spec, **nested, "manner": spec["manners"]["claude"], "life": life, "spent": life["spent"]}
    check("objects", {name: words(one) for name, one in objects.items()})


def test_words_of_closed_sets() -> None:
    sets = [one for module in (states, case_model) for one in vars(module).values() if isinstance(one, type)]
    closed = {words(one) for one in sets if issubclass(one, StrEnum) and list(one)}
    assert closed == set(RECORDED["words"]["sets"])


def test_kinds_of_events_and_crash_points() -> None:
    files = [
        path for path in SOURCE.rglob("*.py") if SOURCE / "policy" not in path.parents
    ]  # names of rules look alike
    texts = {text for path in files for text in _constants(path)}
    found = {text for text in texts if KIND.fullmatch(text) and not FILE.fullmatch(text)}
    check("kinds", {"kinds": words(sorted(found))})


def test_environment_variables_and_settings() -> None:
    files = [path for path in SOURCE.rglob("*") if path.suffix in {".py", ".sh", ".js", ".md"}]
    found = {name for path in files for name in VARIABLE.findall(path.read_text(encoding="utf-8"))}
    check("environment", {"variables": words(sorted(found)), "settings": words(sorted(one.name for one in KEYS))})


@pytest.fixture
def old() -> Iterator[Place]:
    """The home of an older version, which has something of everything."""

    class OldPlace(Place):
        def environment(self, **more: str) -> dict[str, str]:
            return environment(self.folder, **{**self.environ, **more})

    with unpacked(FIRST, "sqlite") as folder:
        place = OldPlace(folder)
        try:
            assert place.type("db", "migrate").code == 0
            yield place
        finally:
            place.close()


def test_json_output_and_files_of_a_run(old: Place) -> None:
    request = ("run", "look", "--agent", "command", "--run-id", "checked", "--proof", "true", "--json", "--", "true")
    refuted = ("--run-id", "refuted", "--proof", "false", "--max-iterations", "1")
    # The dashboard lists only failures since yesterday, and those of the fixture are older.
    assert old.type("run", "look", "--agent", "command", *refuted, "--", "true").code == 16
    printed = {"run": old.type(*request).rows, "resume": _printed(old, "resume", "lost-after")}
    for command in COMMANDS:
        name = "show" if command.startswith("show ") else command
        printed[name] = [*printed.get(name, ()), *_printed(old, *command.split())]
    (settings,) = printed["config"]
    assert set(settings) == {one.name for one in KEYS}  # each is in the list of settings
    printed["config"] = list(settings.values())
    check("json", {name: _keys(values) for name, values in printed.items()})
    folder = old.folder / "home" / "runs" / "lost-after"
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    check("run_folder", {"files": words(name for name in names if not name.startswith("agent/"))})


def _printed(place: Place, *command: str) -> list[dict[str, Any]]:
    ended = place.type(*command, "--json")
    assert ended.out.strip(), (command, ended)
    assert '"error"' not in ended.out.partition(":")[0], (command, ended)
    return ended.rows


def _keys(printed: object) -> str:
    """The names of every object, as paths; where objects differ, all of them."""
    return words(dict.fromkeys(_paths(printed, "")))


def _paths(value: object, above: str) -> Iterator[str]:
    if isinstance(value, list):
        for one in value:
            yield from _paths(one, above)
    if isinstance(value, dict):
        for name, inner in value.items():
            yield f"{above}{name}"
            if name not in FREE:
                yield from _paths(inner, f"{above}{name}.")


def _tables(store: Store) -> Iterator[tuple[str, str]]:
    if store.admin.get_status().backend == "sqlite":
        tables = by_hand(store, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        for (table,) in sorted(tables):
            yield table, words(row[1] for row in by_hand(store, f"PRAGMA table_info({table})"))
        return
    sql = (
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"
        " ORDER BY table_name, ordinal_position"
    )
    columns: dict[str, list[str]] = {}
    for table, column in by_hand(store, sql):
        columns.setdefault(table, []).append(column)
    yield from ((table, words(names)) for table, names in columns.items())


def _constants(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    yield from (one.value for one in ast.walk(tree) if isinstance(one, ast.Constant) and isinstance(one.value, str))
