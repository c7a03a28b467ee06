"""Notices about work items, agents that need a log-in and changed settings: one per event, in its transaction."""

from __future__ import annotations

import pytest

from jackline.domain.agent_health import AgentHealth
from jackline.domain.events import Fact
from jackline.domain.notices import build_settings_notice
from jackline.domain.records import Notice, SubjectNotice
from jackline.domain.states import Failure
from jackline.features.work.item_store import WorkQueue
from jackline.features.work.work_item import Hold, NewItem
from jackline.store.models import RunChange
from jackline.store.store import Store
from tests.support.stores import AT, LEASE_MS, begun, made

TOKEN = "ghp_" + "a1B2" * 9


def list_kinds(store: Store) -> list[str]:
    return [one.kind for one in reversed(store.notices.list_newest())]


def test_an_item_that_waits_for_a_person_is_a_notice_each_time(store: Store) -> None:
    queue = WorkQueue(store)
    new = NewItem("one", "mail", question=f"may I send {TOKEN}?\nnow")
    queue.enqueue(new, AT, "ada")
    queue.enqueue(new, AT + 1, "ada")  # the same item
    (notice,) = store.notices.list_newest()
    assert (notice.subject, notice.kind, notice.labels) == ("work:one", "question", "mail")
    assert notice.title.startswith("mail one asks: may I send ")
    assert "jackline work answer one TEXT" in notice.body
    assert TOKEN not in notice.title + notice.body
    queue.answer("one", "yes", AT + 2, "ada")
    item = queue.claim("one", "bob", LEASE_MS, AT + 3)
    queue.park(Hold("one", "bob", item.token), "and this?", AT + 4)
    assert list_kinds(store) == ["question", "question"]
    assert len({one.id for one in store.notices.list_newest()}) == 2


def test_a_question_of_a_run_has_the_labels_and_the_command_of_the_run(store: Store) -> None:
    made(store, "run-1", spec={"agent": "claude", "task": "nightly", "labels": ("release",)})
    WorkQueue(store).enqueue(NewItem("q", "question", '{"run":"run-1"}', question="which one?"), AT, "agent")
    (notice,) = store.notices.list_newest()
    assert notice.title == "claude/nightly asks: which one?"
    assert notice.labels.split() == ["question", "nightly", "claude", "release"]
    assert "jackline answer run-1 TEXT" in notice.body


@pytest.mark.parametrize("ending", ["release", "takeover", "requeue"])
def test_an_item_without_attempts_left_is_a_notice_once(store: Store, ending: str) -> None:
    queue = WorkQueue(store)
    queue.enqueue(NewItem("one", "mail", max_attempts=1), AT, "ada")
    item = queue.claim("one", "bob", 0, AT)  # its lease is over at once
    if ending == "release":
        queue.release(Hold("one", "bob", item.token), AT + 1, "no luck")
    elif ending == "takeover":
        assert queue.claim_next((), "eve", LEASE_MS, AT + 2) is None
    else:
        queue.requeue("one", AT + 2, AT + 2, "ada")
    (notice,) = store.notices.list_newest()
    assert (notice.kind, notice.subject) == ("work.failed", "work:one")
    assert "failed after 1 of 1 attempts" in notice.body


def test_an_agent_that_needs_a_log_in_is_a_notice_when_it_begins(store: Store) -> None:
    lease = begun(store)
    refused = AgentHealth("claude@work", str(Failure.AUTHENTICATION), f"401 {TOKEN}", AT + 9, AT + 1)
    store.leases.write_change(lease, RunChange(at=AT + 1, health=refused))
    store.leases.write_change(lease, RunChange(at=AT + 2, health=refused._replace(at=AT + 2)))
    (notice,) = store.notices.list_newest()
    assert (notice.kind, notice.title, notice.labels) == ("log_in", "claude@work is not logged in", "claude@work")
    assert TOKEN not in notice.body
    store.leases.write_change(lease, RunChange(at=AT + 3, health=AgentHealth("claude@work", at=AT + 3)))
    store.leases.write_change(lease, RunChange(at=AT + 4, health=refused._replace(at=AT + 4)))
    assert list_kinds(store) == ["log_in", "log_in"]


def test_a_run_that_fails_for_the_log_in_says_so_itself(store: Store) -> None:
    lease = begun(store)
    refused = AgentHealth("claude", str(Failure.AUTHENTICATION), "401", AT + 9, AT + 1)
    own = Notice(id="n", run_id="run-1", kind="run.failed", title="t", body="b", chain_head="", created_at=AT + 1)
    store.leases.write_change(lease, RunChange(at=AT + 1, health=refused, notice=own))
    assert store.notices.list_newest() == []


def test_changed_settings_are_a_notice_of_their_transaction(store: Store) -> None:
    def build(facts: list[Fact]) -> SubjectNotice | None:
        return build_settings_notice([str(fact.data["file"]) for fact in facts], ["run-1"], AT) if facts else None

    store.settings.update("host:/home", lambda _record: [], AT, "engine", build)
    assert store.notices.list_newest() == []
    store.settings.update("host:/home", lambda _record: [Fact("a.b", {"file": "/config.toml"})], AT, "engine", build)
    (notice,) = store.notices.list_newest()
    assert (notice.kind, notice.subject) == ("settings.changed", "home")
    assert "changed during run run-1: /config.toml" in notice.body
