"""What the host knows of a call before the gate decides: the ingredients of its key, and what its probe will need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.engine.process import SpawnFailed, Warden, WardenLost

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jackline.domain.judging import Judgement

FOLDER = "folder"  # where the call runs: its probe looks there


def known(
    workspace: str, env: Mapping[str, str], warden: Callable[[], Warden], judged: Judgement, given: object
) -> dict[str, str]:
    """By name; empty for a call of which nothing is wanted, which is nearly every one."""
    from jackline.engine import ingredients, probing

    wants = judged.wants | probing.wants(judged.rule.probe)
    if not wants:
        return {}
    fields = {**(given if isinstance(given, dict) else {}), **judged.fields}
    told = ingredients.read(wants, fields, judged.folder, workspace, env, _ready(warden))
    return {**told, FOLDER: judged.folder}


def _ready(warden: Callable[[], Warden]) -> Warden | None:
    try:
        return warden()
    except (SpawnFailed, WardenLost):
        return None
