"""`python -m benchmarks`: measures the requested rows and prints them. A missed goal is not a failure.

Writes only temporary files, unless --write puts the tables into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sqlite3
import sys
import tempfile
from importlib import metadata

from benchmarks import report

ROWS = (
    "durable-call",
    "state-command",
    "many-runs",
    "many-events",
    "agent-overhead",
    "run-memory",
    "gate-cost",
    "service",
)
PAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs", "benchmarks.md")
_PEERS = {"jackline": "jackline", "DBOS": "dbos", "LangGraph SqliteSaver": "langgraph-checkpoint-sqlite"}


def main() -> None:
    options = _parse_options()
    tables = []
    for row in options.rows or ROWS:
        print(f"measuring {row} ...", file=sys.stderr)
        tables.append(_measure(row, options.folder, quick=options.quick))
        if not options.json:
            print(report.render_terminal(tables[-1]), end="\n\n", flush=True)
    if options.json:
        print(report.render_json(tables, _find_versions()))
    if options.write:
        _update_page(tables)


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="What durability costs, as ratios.")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"{', '.join(ROWS)}; default: all")
    parser.add_argument(
        "--quick", action="store_true", help="few rounds, 10,000 runs, two agents: to check that it works"
    )
    parser.add_argument("--json", action="store_true", help="print everything as one JSON object")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/benchmarks.md")
    parser.add_argument("--folder", help="where to make the temporary databases, to measure another disk")
    options = parser.parse_args()
    for row in options.rows:
        if row not in ROWS:
            parser.error(f"unknown row '{row}': choose from {', '.join(ROWS)}")
    if options.quick and options.write:
        parser.error("--quick is too rough to publish")
    return options


def _measure(row: str, folder: str | None, *, quick: bool) -> report.Table:
    module = importlib.import_module(f"benchmarks.rows.{row.replace('-', '_')}")
    with tempfile.TemporaryDirectory(prefix="jackline-bench-", dir=folder) as own:
        table = module.measure(os.path.realpath(own), quick=quick)
    assert isinstance(table, report.Table)  # noqa: S101 - the module was found by name, so its type is not checked
    return table


def _find_versions() -> dict[str, str]:
    peers = {name: metadata.version(package) for name, package in _PEERS.items()}
    return {"Python": platform.python_version(), "SQLite": sqlite3.sqlite_version, **peers}


def _update_page(tables: list[report.Table]) -> None:
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    for table in tables:
        page = report.replace_block(page, table.key, report.render_markdown(table))
    page = report.replace_block(page, "versions", report.render_versions(_find_versions()))
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page)


if __name__ == "__main__":
    main()
