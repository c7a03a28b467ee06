"""Registries name modules and objects as strings, so that they are imported on use: every such name must exist."""

from __future__ import annotations

import ast
import importlib
import os
import re

import pytest

import jackline

SOURCE = os.path.dirname(str(jackline.__file__))
DOTTED = re.compile(r"jackline(?:\.[a-z_]\w*)+(?::[A-Za-z_]\w*)?")
QUOTED = re.compile(r"""["']jackline\.""")
# A settings file, a log file, rules of the built-in policy, and types of events.
OTHERS = {"jackline.toml", "jackline.log", "jackline.answer", "jackline.change"}
OTHERS |= {f"jackline.{name}" for name in ("settings_changed", "settings_confirmed", "trusted", "trust_revoked")}


def find_names() -> list[str]:
    names = set()
    for folder, _, files in os.walk(SOURCE):
        for name in files:
            if name.endswith(".py"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    source = file.read()
                if not QUOTED.search(source):  # parsing all of them would take seconds, in each worker
                    continue
                texts = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
                names |= {text for text in texts if isinstance(text, str) and DOTTED.fullmatch(text)}
    return sorted(names - OTHERS)


NAMES = find_names()


def test_the_registries_were_found() -> None:
    assert {"jackline.cli.commands.run", "jackline.features.work.work_commands"} <= set(NAMES)
    assert any(name.startswith("jackline.features.cases.learning_check:") for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_dotted_name_exists(name: str) -> None:
    module, _, attribute = name.partition(":")
    found = importlib.import_module(module)
    assert not attribute or hasattr(found, attribute)
