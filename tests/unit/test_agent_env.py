"""Which database an agent is told of: one that it would not find by itself, and never one with a password."""

from __future__ import annotations

import pytest

from jackline.app.agent_env import find_agent_database, has_password
from jackline.app.config import Config


def configured(address: str, source: str) -> Config:
    return Config({"database": address}, {"database": source}, {})


@pytest.mark.parametrize("source", ["JACKLINE_DATABASE", "--database"])
@pytest.mark.parametrize("address", ["/srv/state.sqlite", "postgresql://ada@db.example/jackline"])
def test_one_that_only_this_process_was_told_is_handed_over(address: str, source: str) -> None:
    assert find_agent_database(configured(address, source)) == address


@pytest.mark.parametrize("source", ["default", "/home/ada/.config/jackline/config.toml"])
def test_one_that_every_jackline_finds_is_not(source: str) -> None:
    assert find_agent_database(configured("postgresql://ada@db.example/jackline", source)) == ""


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ada:s3cret@db.example/jackline",
        "postgres://db.example/jackline?user=ada&password=s3cret",
        "postgresql://db.example/jackline?sslpassword=s3cret",
        "postgresql://[broken",
    ],
)
def test_a_password_is_kept_from_agents(address: str) -> None:
    assert has_password(address)
    assert find_agent_database(configured(address, "JACKLINE_DATABASE")) == ""
