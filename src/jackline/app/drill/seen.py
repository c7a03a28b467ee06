"""What is there after a case: the world outside first, then what jackline says of itself. It only looks.

The number of effects comes from the outbox alone, never from jackline's database.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import TYPE_CHECKING, Any

from jackline.app.drill.place import write
from jackline.app.drill.processes import running
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.app.drill.acts import Fact
    from jackline.app.drill.commands import Commands, Ended
    from jackline.app.drill.place import Place


class Seen(NamedTuple):
    """One case after its end."""

    facts: tuple[Fact, ...] = ()
    problem: str = ""  # why it could not be played to its end
    effects: Mapping[str, int] = {}  # by name, as the outbox has them
    runs: Mapping[tuple[str, str], tuple[int, int]] = {}  # by tool and name: begun and ended
    order: tuple[tuple[str, str], ...] = ()  # name and "begun" or "ended", as it happened
    state: str = ""
    doubts: int = 0  # effects that nobody knows about
    origins: Mapping[str, str] = {}  # by name: who gave the receipt
    replayed: int = 0
    refused: int = 0
    left: tuple[str, ...] = ()  # commands of processes that still run
    chain: str = ""  # what is wrong with the run's chain of events


def look(place: Place, commands: Commands, run_id: str, facts: tuple[Fact, ...], problem: str) -> Seen:
    """All of it, also after a case that could not be played to its end; what jackline printed is kept as evidence."""
    left = tuple(running(place).values())
    outside = _outside(place)._replace(facts=facts, problem=problem, left=left)
    shown = commands.type("show", run_id, "--json")
    write(place.at("show.json"), shown.out)
    if shown.code != 0:
        return outside._replace(problem=problem or f"`jackline show` failed: {shown.err.strip()}")
    reports = {name: commands.type(name, run_id, "--json") for name in ("receipts", "verify")}
    for name, report in reports.items():
        write(place.at(f"{name}.json"), report.out)
    return _told(outside, json.loads(shown.out))._replace(chain=_chain(reports["verify"]))


def _told(outside: Seen, shown: Mapping[str, Any]) -> Seen:
    calls = shown["calls"]
    replayed = [one for one in calls if one["original"] and one["decision"] in {"allow", "stored"}]
    return outside._replace(
        state=shown["state"],
        doubts=sum(one["state"] == "in_doubt" and one["call_class"] == "effect" for one in calls),
        origins={one["target"]: one["origin"] for one in shown["receipts"]},
        replayed=len(replayed),
        refused=sum(one["decision"] == "deny" for one in calls),
    )


def _chain(ended: Ended) -> str:
    return "" if ended.code == 0 else " ".join((ended.err or ended.out).split())


def _outside(place: Place) -> Seen:
    journal = _lines(place, "journal.jsonl")
    what = Counter((line["tool"], line["name"], line["what"]) for line in journal)
    return Seen(
        effects=Counter(line["name"] for line in _lines(place, "outbox.jsonl")),
        runs={(tool, name): (what[tool, name, "begun"], what[tool, name, "ended"]) for tool, name, _ in what},
        order=tuple((line["name"], line["what"]) for line in journal),
    )


def _lines(place: Place, name: str) -> list[dict[str, Any]]:
    try:
        with open(os.path.join(place.world, name), encoding="utf-8") as file:
            return [json.loads(line) for line in file]
    except FileNotFoundError:
        return []
