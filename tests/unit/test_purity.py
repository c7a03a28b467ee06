"""The domain, the policy, the shell parser and the redaction are pure: their imports are known and do nothing."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from functools import cache

import jackline

PURE = ("domain", "policy", "secrets", "shell")
FOLDER = os.path.dirname(str(jackline.__file__))
SOURCE = os.path.dirname(FOLDER)
FILES = (
    os.path.join(folder, name)
    for package in PURE
    for folder, _, names in os.walk(os.path.join(FOLDER, package))
    for name in names
    if name.endswith(".py")
)
MODULES = sorted(os.path.relpath(file, FOLDER).removesuffix(".py").replace(os.sep, ".") for file in FILES)
IMPURE = {
    *("os", "time", "random", "secrets", "socket", "subprocess", "sqlite3", "pathlib"),
    *("threading", "logging", "tempfile", "io", "signal", "uuid", "asyncio", "fcntl", "shutil", "select"),
}
BUILTINS = {"open", "input", "print", "exec", "eval", "__import__", "breakpoint"}

# Everything that Python itself would report if an import touched the world outside the interpreter.
WATCHED = """
import sys, threading
before = set(sys.modules)
touched = []
def watch(event, args):
    first = args[0] if args else None
    if event == "open":
        writes = isinstance(args[1], str) and set(args[1]) & set("wax+")
        if writes or not str(first).endswith((".py", ".pyc", ".so")) and not isinstance(first, int):
            touched.append((event, str(first)))
    elif event.partition(".")[0] in {"socket", "subprocess", "shutil", "sqlite3", "tempfile"} \\
            or event in {"os.mkdir", "os.remove", "os.rename", "os.putenv", "os.system", "os.fork"}:
        touched.append((event, str(first)))
sys.dont_write_bytecode = True
sys.addaudithook(watch)
import importlib
for name in sys.argv[1:]:
    importlib.import_module(f"jackline.{name}")
assert not touched, touched
assert threading.active_count() == 1
others = sorted(name for name in set(sys.modules) - before if name.startswith("jackline."))
print("\\n".join(others))
"""


@cache
def tree(module: str) -> ast.Module:
    with open(os.path.join(FOLDER, f"{module.replace('.', os.sep)}.py"), encoding="utf-8") as file:
        return ast.parse(file.read())


@cache
def imported(module: str) -> set[str]:
    """Everything the module imports, wherever in it, by its whole name."""
    names: set[str] = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    return names


def test_the_pure_packages_were_found() -> None:
    pure = {"domain.run_machine", "domain.call_gate", "policy.keys", "domain.transitions", "domain.diagram"}
    assert pure <= set(MODULES)


def test_no_clock_no_chance_no_input_and_no_output() -> None:
    allowed = {*sys.stdlib_module_names, "jackline"} - IMPURE
    roots = {(module, name.partition(".")[0]) for module in MODULES for name in imported(module)}
    assert {(module, root) for module, root in roots if root not in allowed} == set()


def test_of_jackline_only_pure_packages_and_the_errors() -> None:
    pure = tuple(f"jackline.{package}." for package in PURE)
    allowed = (*pure, "jackline.digests.", "jackline.errors.", "jackline.formatting.", "jackline.named.")
    named = {(module, name) for module in MODULES for name in imported(module) if name.startswith("jackline.")}
    assert {(module, name) for module, name in named if not f"{name}.".startswith(allowed)} == set()


def test_nothing_is_opened_printed_or_evaluated() -> None:
    nodes = [(module, node) for module in MODULES for node in ast.walk(tree(module))]
    calls = [(module, node.func) for module, node in nodes if isinstance(node, ast.Call)]
    assert [(module, one.id) for module, one in calls if isinstance(one, ast.Name) and one.id in BUILTINS] == []


def test_only_the_diagram_knows_standard_output() -> None:
    assert [module for module in MODULES if "sys" in imported(module)] == ["domain.diagram"]


def test_importing_has_no_side_effect() -> None:
    env = {"PATH": os.defpath, "PYTHONPATH": SOURCE}
    names = [name.removesuffix(".__init__") for name in MODULES]
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, *names],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert (done.returncode, done.stderr) == (0, "")
    loaded = set(done.stdout.split())
    below = {"jackline.digests", "jackline.errors", "jackline.formatting", "jackline.named", "jackline.version"}
    assert loaded == {*below, *(f"jackline.{name}" for name in names)}
