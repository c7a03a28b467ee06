"""Questions to a person: waited for or not, asked twice, answered by the command line, never by an agent."""

from __future__ import annotations

import shlex
from functools import partial

import anyio
from mcp.client import Client

from tests.cli.place import SAY, Place
from tests.mcp.client import call, talk


def test_a_question_waits_for_a_person_and_its_answer_is_found_later(any_place: Place) -> None:
    async def ask(client: Client) -> str:
        asked = await call(client, "ask_human", question="shall I merge?")
        assert (asked["answered"], asked["status"]) == (False, "waiting_human")
        assert (await call(client, "ask_human_result", id=asked["id"]))["answered"] is False
        assert (await call(client, "work_next"))["item"] is None
        return str(asked["id"])

    async def look(client: Client) -> None:
        found = await call(client, "ask_human_result", id=item)
        assert (found["answered"], found["answer"], found["status"]) == (True, "yes", "done")
        assert (await call(client, "ask_human_result", id=item))["answer"] == "yes"
        assert (await call(client, "work_next"))["item"] is None, "an answered question is no work for anybody"

    item = talk(any_place, ask)
    assert any_place.type("work", "answer", item, "yes").code == 0
    talk(any_place, look)


def test_who_waits_gets_the_answer_as_soon_as_it_is_there(place: Place) -> None:
    async def ask(client: Client) -> None:
        async def answer() -> None:
            items: list[dict[str, str]] = []
            while not items:  # each look is a call: nothing here spins
                items = (await call(client, "work_list", statuses=["waiting_human"]))["items"]
            typed = await anyio.to_thread.run_sync(lambda: place.type("work", "answer", items[0]["id"], "blue"))
            assert typed.code == 0, typed

        async with anyio.create_task_group() as group:
            group.start_soon(answer)
            asked = await call(client, "ask_human", question="which colour?", wait_seconds=60)
        assert (asked["answered"], asked["answer"]) == (True, "blue")

    talk(place, ask)


def test_the_wait_is_bounded_and_the_question_stays(place: Place) -> None:
    async def ask(client: Client) -> None:
        asked = await call(client, "ask_human", question="anybody?", wait_seconds=1)
        assert (asked["answered"], asked["status"]) == (False, "waiting_human")
        home = shlex.quote(str(place.home))
        assert f"jackline work answer {asked['id']} 'YOUR ANSWER' --home {home};" in asked["next"]

    talk(place, ask)


def test_a_wait_that_is_given_up_leaves_the_question(place: Place) -> None:
    async def ask(client: Client) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(partial(call, client, "ask_human", question="anybody?", wait_seconds=300))
            while not (await call(client, "work_list"))["items"]:  # each look is a call: nothing here spins
                pass
            group.cancel_scope.cancel()
        (item,) = (await call(client, "work_list"))["items"]
        assert (item["kind"], item["status"], item["question"]) == ("question", "waiting_human", "anybody?")

    talk(place, ask)


def test_inside_a_run_the_same_question_is_asked_once(place: Place) -> None:
    assert place.play(SAY, words=("--run-id", "the-run")).code == 0

    async def ask(client: Client) -> str:
        first = await call(client, "ask_human", question="shall I merge?")
        second = await call(client, "ask_human", question="shall I merge?")
        other = await call(client, "ask_human", question="shall I push?")
        assert first["id"] == second["id"] != other["id"]
        return str(first["id"])

    async def again(client: Client) -> None:
        for _ in range(2):
            assert (await call(client, "ask_human", question="shall I merge?"))["answer"] == "yes"

    item = talk(place, ask, JACKLINE_RUN="the-run")
    assert place.type("work", "answer", item, "yes").code == 0
    talk(place, again, JACKLINE_RUN="the-run")


def test_outside_of_a_run_every_question_is_one_of_its_own(place: Place) -> None:
    async def ask(client: Client) -> None:
        first = await call(client, "ask_human", question="shall I merge?")
        assert first["id"] != (await call(client, "ask_human", question="shall I merge?"))["id"]

    talk(place, ask)
