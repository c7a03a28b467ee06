"""The task of a channel in a service: a dead channel is left alone for a while, and nothing is lost meanwhile."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

import pytest

from jackline import clock
from jackline.app.config import load_config
from jackline.app.home import Home
from jackline.app.service_tasks import ServiceTask
from jackline.domain.records import SubjectNotice
from jackline.features.notify.delivery_store import DeliveryStore
from jackline.features.notify.service_task import list_service_tasks
from tests.support.ntfy_server import NtfyServer
from tests.support.stores import by_hand


class Context(NamedTuple):
    """A service around one task."""

    home: Home
    service_id: str = "service-1"
    is_stopping: bool = False

    def wait(self, _seconds: float) -> bool:
        return False


def open_home(folder: Path, *servers: NtfyServer) -> Home:
    path = folder / ".config" / "jackline" / "config.toml"
    path.parent.mkdir(parents=True)
    tables = [
        f'[channels.c{number}]\ntype = "ntfy"\nurl = "{server.url}"\ntopic = "watch"\n'
        for number, server in enumerate(servers)
    ]
    path.write_text("\n".join(tables))
    home = Home(load_config({"HOME": str(folder), "JACKLINE_HOME": str(folder / "home")}, "/", project=False))
    home.store(create=True)
    return home


def list_channel_tasks(home: Home) -> list[ServiceTask]:
    return [task for task in list_service_tasks(home) if task.name.startswith("notify-")]


def add_notice(home: Home, name: str) -> None:
    home.store().notices.add(SubjectNotice(name, "home", "test", f"title of {name}", "", clock.wall_ms()))


def test_a_dead_channel_is_left_alone_and_then_gets_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with NtfyServer() as server, open_home(tmp_path, server) as home:
        (task,) = list_channel_tasks(home)
        context = Context(home)
        server.fail(503)
        add_notice(home, "a")
        add_notice(home, "b")
        pause = task.run(context)
        assert len(server.requests) == 1  # the second message would have met the same fate
        assert 0 < pause <= 5
        assert 0 < task.run(context) <= pause  # woken too early
        assert len(server.requests) == 1
        later = time.monotonic() + 60
        monkeypatch.setattr(time, "monotonic", lambda: later)
        task.run(context)
        assert [one["title"] for one in server.list_messages("watch")] == ["title of b"]  # the first one backs off
        wall = clock.wall_ms() + 60_000
        monkeypatch.setattr(clock, "wall_ms", lambda: wall)
        assert task.run(context) > 30
        assert [one["title"] for one in server.list_messages("watch")] == ["title of b", "title of a"]
        assert DeliveryStore(home.store()).list_notices(clock.wall_ms(), stuck_only=True) == []


def test_a_retry_of_a_person_ends_the_pause_of_a_dead_channel(tmp_path: Path) -> None:
    with NtfyServer() as server, open_home(tmp_path, server) as home:
        (task,) = list_channel_tasks(home)
        context, deliveries = Context(home), DeliveryStore(home.store())
        server.fail(503)
        add_notice(home, "a")
        task.run(context)
        add_notice(home, "b")
        task.run(context)
        assert server.list_messages("watch") == []
        assert deliveries.retry("", clock.wall_ms()) == 1
        task.run(context)
        assert {one["title"] for one in server.list_messages("watch")} == {"title of a", "title of b"}


def test_one_message_that_is_refused_stops_no_other(tmp_path: Path) -> None:
    with NtfyServer() as server, open_home(tmp_path, server) as home:
        (task,) = list_channel_tasks(home)
        server.fail(413)
        add_notice(home, "a")
        add_notice(home, "b")
        task.run(Context(home))
        assert [one["title"] for one in server.list_messages("watch")] == ["title of b"]
        (stuck,) = DeliveryStore(home.store()).list_notices(clock.wall_ms(), stuck_only=True)
        assert stuck.notice.id == "a"
        assert "413" in stuck.deliveries[0].error


def test_a_service_without_channels_closes_what_a_removed_one_did_not_take(tmp_path: Path) -> None:
    with NtfyServer() as server, open_home(tmp_path, server) as home:
        server.fail(413)
        add_notice(home, "a")
        list_channel_tasks(home)[0].run(Context(home))
        by_hand(home.store(), "UPDATE deliveries SET state = 'stuck'")
        home.config = home.config._replace(channels={})
        (task, _ping) = list_service_tasks(home)
        assert task.run(Context(home)) > 0
        assert DeliveryStore(home.store()).list_stuck(clock.wall_ms()) == []


def test_each_channel_has_a_task_and_a_stopping_service_sends_no_more(tmp_path: Path) -> None:
    with NtfyServer() as one, NtfyServer() as two, open_home(tmp_path, one, two) as home:
        tasks = list_channel_tasks(home)
        assert [task.name for task in tasks] == ["notify-c0", "notify-c1"]
        add_notice(home, "a")
        tasks[0].run(Context(home, is_stopping=True))
        assert one.requests == []
        for task in tasks:
            task.run(Context(home))
        assert (len(one.requests), len(two.requests)) == (1, 1)
