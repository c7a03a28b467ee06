"""Cases on both stores: numbers, one active case for each place, closed means closed, events that explain the rows."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from jackline.domain.events import broken_at
from jackline.errors import NotFound, Refused
from jackline.features.cases.case_model import (
    Case,
    CaseEntry,
    CaseQuery,
    CaseStatus,
    EntryKind,
    NewCase,
    Problem,
    get_case_stream,
)
from jackline.features.cases.case_queries import Cases
from jackline.features.cases.case_store import CaseNotebook
from jackline.features.reports.retro_queries import RetroQueries
from jackline.secrets.redactor import REDACTED, Redactor
from jackline.store.open import open_store
from jackline.store.store import Store
from tests.support.secrets import TOKENS
from tests.support.stores import AT, by_hand, made

PLACE, OTHER = "repo-1:ann", "repo-1:bob"
H, E, C, L = EntryKind.HYPOTHESIS, EntryKind.EVIDENCE, EntryKind.COMMAND, EntryKind.LEARNING
Open = Callable[..., Store]


def new(case_id: str = "case-1", **more: Any) -> NewCase:
    values = {"repository": "repo-1", "path": "/srv/r", "user_name": "ann", "request": "mend it", "problem": Problem()}
    return NewCase(case_id, **(values | more))


def started(store: Store, case_id: str = "case-1", place: str = PLACE, **more: Any) -> Case:
    return CaseNotebook(store).start(new(case_id, **more), place, AT)


def line(kind: EntryKind = H, text: str = "the router", status: str = "open", /, **data: Any) -> CaseEntry:
    return CaseEntry("", kind, 99, 0, 0, text, status, data)


def kinds(store: Store, case_id: str = "case-1") -> list[str]:
    return [event.kind for event in store.records.list_events(get_case_stream(case_id))]


def intact(store: Store, case_id: str = "case-1") -> bool:
    events = store.records.list_events(get_case_stream(case_id), limit=100_000)
    case = Cases(store).get(case_id)
    assert case is not None
    return broken_at(events) is None and (case.event_seq, case.chain_head) == (len(events), events[-1].hash)


def test_a_case_begins_with_its_capsule_and_is_the_active_one(store: Store) -> None:
    problem = Problem("find it", ("quick",), {"plan": [1]}, ("pytest -q",), ("risk",), ("no",), (" M a.py",))
    case = started(store, problem=problem)
    assert case.problem == problem
    assert case.counts == {"hypothesis": 0, "evidence": 0, "command": 0, "learning": 0}
    assert case == Cases(store).get("case-1") == Cases(store).get_active(PLACE)
    assert Cases(store).get_active(OTHER) is None
    event = store.records.list_events(get_case_stream("case-1"))[0]
    assert (event.kind, event.actor) == ("case.started", "ann")
    assert json.loads(event.data)["problem"]["expected_verification"] == ["pytest -q"]
    assert intact(store)


def test_who_acts_stands_in_the_events(store: Store) -> None:
    CaseNotebook(store).start(new(), PLACE, AT, "claude")
    CaseNotebook(store).switch(OTHER, "case-1", AT, "codex")
    assert [event.actor for event in store.records.list_events(get_case_stream("case-1"))] == ["claude", "codex"]


def test_an_id_that_is_taken_gets_a_number(store: Store) -> None:
    ids = [started(store, place=place).id for place in ("a", "b", "c")]
    assert ids == ["case-1", "case-1-2", "case-1-3"]


def test_only_one_case_is_active_in_a_place(store: Store) -> None:
    started(store)
    with pytest.raises(Refused, match="case case-1 is open and active here"):
        started(store, "case-2")
    assert Cases(store).get("case-2") is None
    started(store, "case-2", OTHER)
    assert Cases(store).get_active(OTHER) == Cases(store).get("case-2")


def test_a_case_of_a_run_that_is_not_known_is_refused(store: Store) -> None:
    with pytest.raises(NotFound, match="no run matches 'run-7'"):
        started(store, run_id="run-7")
    made(store, "run-7")
    assert started(store, run_id="run-7").run_id == "run-7"


def test_each_kind_has_its_own_numbers(store: Store) -> None:
    started(store)
    added = [CaseNotebook(store).add_entry("case-1", line(kind), AT + 1, "ann").id for kind in (H, H, E, C, L, E)]
    assert added == ["H001", "H002", "E001", "C001", "L001", "E002"]
    case = Cases(store).get("case-1")
    assert case is not None
    assert case.counts == {"hypothesis": 2, "evidence": 2, "command": 1, "learning": 1}
    assert [entry.id for entry in Cases(store).list_entries("case-1")] == [
        "C001",
        "E001",
        "E002",
        "H001",
        "H002",
        "L001",
    ]
    assert [entry.id for entry in Cases(store).list_entries("case-1", H, after=1)] == ["H002"]
    assert intact(store)


def test_an_entry_is_given_back_as_it_was_added(store: Store) -> None:
    started(store)
    added = CaseNotebook(store).add_entry(
        "case-1", line(C, "pytest -q", "fail", exit_code=1, output="1 failed"), AT + 1, "ann"
    )
    assert Cases(store).list_entries("case-1") == [added]
    assert (added.number, added.at, added.data["exit_code"]) == (1, AT + 1, 1)
    told = json.loads(store.records.list_events(get_case_stream("case-1"))[-1].data)
    assert told["exit_code"] == 1
    assert told["output"] != "1 failed"  # a digest


def test_evidence_belongs_to_a_hypothesis_that_is_there(store: Store) -> None:
    started(store)
    for wrong in ("H001", "E001", "H", "nonsense", "H" + "9" * 30):
        with pytest.raises(NotFound, match="no hypothesis matches"):
            CaseNotebook(store).add_entry("case-1", line(E, hypothesis=wrong), AT, "ann")
    CaseNotebook(store).add_entry("case-1", line(), AT, "ann")
    assert CaseNotebook(store).add_entry("case-1", line(E, hypothesis="h1"), AT, "ann").data == {"hypothesis": "H001"}
    assert kinds(store) == ["case.started", "case.hypothesis.added", "case.evidence.added"]


def test_a_hypothesis_is_resolved_with_a_note(store: Store) -> None:
    started(store)
    CaseNotebook(store).add_entry("case-1", line(), AT, "ann")
    resolved = CaseNotebook(store).change_entry("case-1", H, 1, "accepted", AT + 5, "ann", {"note": "seen"})
    assert (resolved.status, resolved.data, resolved.at, resolved.updated_at) == (
        "accepted",
        {"note": "seen"},
        AT,
        AT + 5,
    )
    assert Cases(store).list_entries("case-1") == [resolved]
    assert kinds(store)[-1] == "case.hypothesis.resolved"
    with pytest.raises(NotFound, match="no hypothesis matches 'H002'"):
        CaseNotebook(store).change_entry("case-1", H, 2, "accepted", AT, "ann")
    assert intact(store)


def test_a_closed_case_refuses_every_write_and_is_active_nowhere(store: Store) -> None:
    started(store)
    CaseNotebook(store).switch(OTHER, "case-1", AT)
    CaseNotebook(store).add_entry("case-1", line(), AT, "ann")
    closed = CaseNotebook(store).close("case-1", {"summary": "done"}, AT + 9, "ann")
    assert (closed.status, closed.closed_at, closed.closeout) == (CaseStatus.CLOSED, AT + 9, {"summary": "done"})
    assert Cases(store).get_active(PLACE) is None
    assert Cases(store).get_active(OTHER) is None
    before = Cases(store).get("case-1"), Cases(store).list_entries("case-1"), kinds(store)
    for write in (
        lambda: CaseNotebook(store).add_entry("case-1", line(), AT, "ann"),
        lambda: CaseNotebook(store).change_entry("case-1", H, 1, "accepted", AT, "ann"),
        lambda: CaseNotebook(store).close("case-1", {}, AT, "ann"),
        lambda: CaseNotebook(store).switch(PLACE, "case-1", AT),
    ):
        with pytest.raises(Refused, match="case case-1 is closed: `jackline case reopen case-1`"):
            write()
    assert before == (Cases(store).get("case-1"), Cases(store).list_entries("case-1"), kinds(store))
    assert intact(store)


def test_a_case_that_was_written_to_meanwhile_is_not_closed(store: Store) -> None:
    seen = started(store).event_seq
    CaseNotebook(store).add_entry("case-1", line(), AT, "bob")
    with pytest.raises(Refused, match="was changed in the meantime"):
        CaseNotebook(store).close("case-1", {"event_seq": seen}, AT, "ann")
    assert Cases(store).get_active(PLACE) is not None
    assert "event_seq" not in CaseNotebook(store).close("case-1", {"event_seq": seen + 1}, AT, "ann").closeout


def test_a_closed_case_can_be_opened_again_where_nothing_is_active(store: Store) -> None:
    started(store)
    with pytest.raises(Refused, match="case case-1 is open"):
        CaseNotebook(store).reopen("case-1", PLACE, AT, "ann")
    CaseNotebook(store).close("case-1", {"summary": "done"}, AT, "ann")
    started(store, "case-2")
    with pytest.raises(Refused, match="case case-2 is open and active here"):
        CaseNotebook(store).reopen("case-1", PLACE, AT, "ann")
    CaseNotebook(store).close("case-2", {}, AT, "ann")
    opened = CaseNotebook(store).reopen("case-1", PLACE, AT, "ann")
    assert (opened.status, opened.closed_at, dict(opened.closeout)) == (CaseStatus.OPEN, None, {})
    assert Cases(store).get_active(PLACE) == opened == Cases(store).get("case-1")
    assert kinds(store) == ["case.started", "case.closed", "case.reopened"]
    assert intact(store)


def test_switching_leaves_the_other_case_open(store: Store) -> None:
    started(store)
    started(store, "case-2", OTHER)
    assert CaseNotebook(store).switch(PLACE, "case-2", AT + 1).id == "case-2"
    assert Cases(store).get_active(PLACE) == Cases(store).get_active(OTHER)
    first = Cases(store).get("case-1")
    assert first is not None
    assert first.status is CaseStatus.OPEN
    CaseNotebook(store).switch(PLACE, "case-2", AT + 2)
    assert kinds(store, "case-2") == ["case.started", "case.switched"]  # the second time changed nothing


def test_a_case_goes_with_its_repository_and_is_active_nowhere(store: Store) -> None:
    started(store)
    CaseNotebook(store).add_entry("case-1", line(), AT, "ann")
    moved = CaseNotebook(store).relocate("case-1", "repo-2", "/srv/moved", AT + 1, "bob")
    assert (moved.repository, moved.path) == ("repo-2", "/srv/moved")
    assert Cases(store).get("case-1") == moved
    assert Cases(store).get_active(PLACE) is None
    assert [case.id for case in Cases(store).list_page(CaseQuery(repository="repo-2"))] == ["case-1"]
    CaseNotebook(store).close("case-1", {}, AT, "ann")
    CaseNotebook(store).relocate("case-1", "repo-1", "/srv/r", AT + 2, "bob")  # what is closed may be moved, too
    assert [one for one in kinds(store) if one == "case.moved"] == ["case.moved"] * 2
    assert intact(store)
    with pytest.raises(NotFound, match="no case matches 'x'"):
        CaseNotebook(store).relocate("x", "repo-1", "/srv/r", AT, "bob")


def test_what_is_not_there_is_said(store: Store) -> None:
    for ask in (
        lambda: CaseNotebook(store).add_entry("x", line(), AT, "ann"),
        lambda: CaseNotebook(store).close("x", {}, AT, "ann"),
        lambda: CaseNotebook(store).reopen("x", PLACE, AT, "ann"),
        lambda: CaseNotebook(store).switch(PLACE, "x", AT),
    ):
        with pytest.raises(NotFound, match="no case matches 'x'; see `jackline case list`"):
            ask()
    assert Cases(store).get("x") is None
    assert Cases(store).list_entries("x") == []


def test_cases_are_found_by_the_beginning_of_their_id(store: Store) -> None:
    for place, case_id in enumerate(("2026-a", "2026-a-b", "2027")):
        started(store, case_id, str(place))
    assert [case.id for case in Cases(store).find_matching("2026-a")] == ["2026-a"]
    assert [case.id for case in Cases(store).find_matching("2026-")] == ["2026-a", "2026-a-b"]
    assert Cases(store).find_matching("a") == []


def test_cases_are_listed_newest_first_and_page_by_page(store: Store) -> None:
    made(store, "run-1")
    for number in range(4):
        place = str(number)
        run_id = "run-1" if number == 3 else None
        CaseNotebook(store).start(
            new(f"case-{number}", repository=f"repo-{number % 2}", run_id=run_id), place, AT + number
        )
    CaseNotebook(store).close("case-2", {}, AT + 9, "ann")

    def listed(**query: Any) -> list[str]:
        return [case.id for case in Cases(store).list_page(CaseQuery(**query))]

    assert listed() == ["case-3", "case-2", "case-1", "case-0"]
    assert listed(limit=2) == ["case-3", "case-2"]
    assert listed(limit=2, before=(AT + 2, "case-2")) == ["case-1", "case-0"]
    assert listed(repository="repo-0") == ["case-2", "case-0"]
    assert listed(status="open", repository="repo-0") == ["case-0"]
    assert listed(status="closed") == ["case-2"]
    assert listed(run_id="run-1") == ["case-3"]
    assert listed(run_id="run-1", repository="repo-0") == []


def test_learnings_of_all_cases_are_read_by_time(store: Store) -> None:
    for number in (1, 2):
        started(store, f"case-{number}", str(number))
    for at, case_id in ((AT + 3, "case-1"), (AT + 1, "case-2"), (AT + 2, "case-1")):
        CaseNotebook(store).add_entry(
            case_id, line(L, f"at {at - AT}", "none", kind="doc-gap", reason="small"), at, "ann"
        )
    found = RetroQueries(store).iter_learnings(AT + 2, AT + 4)
    assert [(one.case_id, one.summary) for one in found] == [("case-1", "at 2"), ("case-1", "at 3")]
    assert [one.case_id for one in RetroQueries(store).iter_learnings(0, AT + 2)] == ["case-2"]


def test_odd_text_is_stored(store: Store) -> None:
    started(store, request="a \x00 b \ud800", user_name="j\ud800")
    entry = CaseNotebook(store).add_entry("case-1", line(H, "n\x00l", note="\ud800 \x00"), AT, "an\x00n")
    assert entry.number == 1
    assert Cases(store).list_entries("case-1")[0].text == "n\N{REPLACEMENT CHARACTER}l"
    assert intact(store)


@pytest.mark.parametrize("same_case", [True, False])
def test_many_writers_double_no_number_and_lose_nothing(opened: Open, same_case: bool) -> None:
    stores = [opened() for _ in range(6)]
    ids = [started(stores[0], f"case-{n}", str(n)).id for n in range(6)]

    def add(place: int) -> list[str]:
        case_id = ids[0] if same_case else ids[place]
        return [
            CaseNotebook(stores[place]).add_entry(case_id, line(H, f"{place}-{n}"), AT, "ann").id for n in range(25)
        ]

    results = together(*(partial(add, place) for place in range(6)))
    assert not [one for one in results if isinstance(one, BaseException)]
    counted = Cases(stores[0]).list_entries(ids[0], H)
    assert [entry.number for entry in counted] == list(range(1, (150 if same_case else 25) + 1))
    assert len({entry.text for entry in counted}) == len(counted)
    assert all(intact(stores[0], case_id) for case_id in ids)


def test_one_of_many_starts_and_the_others_are_refused(opened: Open) -> None:
    stores = [opened() for _ in range(6)]
    for turn in range(8):
        place = f"place-{turn}"
        results = together(*(partial(started, store, f"case-{turn}", place) for store in stores))
        assert sum(isinstance(one, Refused) for one in results) == 5
        active = Cases(stores[0]).get_active(place)
        assert [one for one in results if isinstance(one, Case)] == [active]


def test_an_entry_and_a_close_never_both_win_unseen(opened: Open) -> None:
    one, two = opened(), opened()
    for turn in range(12):
        case = started(one, f"case-{turn}", f"place-{turn}")
        closing = partial(CaseNotebook(one).close, case.id, {"event_seq": case.event_seq}, AT, "ann")
        results = together(closing, partial(CaseNotebook(two).add_entry, case.id, line(), AT, "bob"))
        assert sum(isinstance(result, Refused) for result in results) == 1
        assert intact(one, case.id)


def together(*actions: Callable[[], object]) -> list[object]:
    """Run the actions at the same moment; what each returned or raised."""
    results: list[object] = [None] * len(actions)
    begin = threading.Barrier(len(actions))

    def act(place: int) -> None:
        begin.wait()
        try:
            results[place] = actions[place]()
        except (Refused, NotFound) as error:
            results[place] = error

    threads = [threading.Thread(target=act, args=(place,)) for place in range(len(actions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


KNOWN, TOKEN = "a value of ours", TOKENS["github p"]
SAID = f"it is {KNOWN}, or {TOKEN}"


@pytest.fixture
def redacting(database: str) -> Iterator[Store]:
    opened = open_store(database, create=False, redactor=Redactor([KNOWN]))
    yield opened
    opened.close()


def test_everything_that_is_written_is_redacted(redacting: Store) -> None:
    problem = Problem(SAID, (SAID,), {"plan": SAID, "password": "y"}, (SAID,), (SAID,), (SAID,), (SAID,))
    case = started(redacting, request=SAID, problem=problem)
    assert case == Cases(redacting).get("case-1")  # what is given back is what was kept
    entry = CaseNotebook(redacting).add_entry("case-1", line(C, SAID, "fail", output=SAID, note=SAID), AT, "ann")
    assert entry == Cases(redacting).list_entries("case-1")[0]
    CaseNotebook(redacting).change_entry("case-1", C, 1, "pass", AT, "ann", {"note": SAID})
    CaseNotebook(redacting).close("case-1", {"summary": SAID, "verification": [{"command": SAID}]}, AT, "ann")
    rows = [
        row for table in ("cases", "case_entries", "events") for row in by_hand(redacting, f"SELECT * FROM {table}")
    ]
    assert [row for row in rows if REDACTED in str(row)]
    assert [row for row in rows if KNOWN in str(row) or TOKEN in str(row)] == []
    assert intact(redacting)
