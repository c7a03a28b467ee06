"""Questions to a person: asked twice, answered by the command line, never by an agent."""

from __future__ import annotations

import shlex

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


def test_the_question_names_the_command_that_answers_it(place: Place) -> None:
    async def ask(client: Client) -> None:
        asked = await call(client, "ask_human", question="anybody?")
        home = shlex.quote(str(place.home))
        assert f"jackline work answer {asked['id']} 'YOUR ANSWER' --home {home};" in asked["next"]

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
