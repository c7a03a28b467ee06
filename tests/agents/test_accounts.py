"""Two accounts of a real CLI: the limit of one hands the run to the other, in a session of its own."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

from jackline.fake_model.script import Reply
from tests.agents.conftest import Play
from tests.agents.stage import Stage

RESET = int(time.time()) + 5 * 3600
# As the provider answers when the five hours of a subscription are used up.
LIMIT = Reply(
    status=429,
    message="This request would exceed your account's rate limit.",
    headers={
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": str(RESET),
        "anthropic-ratelimit-unified-representative-claim": "five_hour",
        "x-should-retry": "false",
    },
)
CREDENTIALS = {
    "claudeAiOauth": {
        "accessToken": "fake-token-of-a-test",
        "refreshToken": "fake-refresh-of-a-test",
        "expiresAt": 4_102_444_800_000,
        "scopes": ["user:inference", "user:profile"],
        "subscriptionType": "max",
    }
}


def define(stage: Stage, variable: str, *names: str) -> dict[str, Path]:
    """A settings folder for each account, in the user's own settings."""
    user = Path(stage.environment["HOME"])
    config = user / ".config" / "jackline" / "config.toml"
    config.parent.mkdir(parents=True)
    folders = {name: user / f"{stage.agent}-{name}" for name in names}
    for folder in folders.values():
        folder.mkdir()
    tables = (f'[accounts.{stage.agent}.{name}]\n{variable} = "{folder}"\n' for name, folder in folders.items())
    config.write_text("\n".join(tables))
    return folders


@pytest.mark.parametrize("agent", ["claude"])
def test_claude_continues_on_the_second_account_at_a_limit(play: Play) -> None:
    commit = Reply(shell="echo one >> calls.txt && git add . && git commit -qm 'the first of two'")
    stage = play(commit, LIMIT, Reply(shell="echo two >> calls.txt"), Reply(say="done"))
    folders = define(stage, "CLAUDE_CONFIG_DIR", "work", "home")
    for folder in folders.values():
        path = folder / ".credentials.json"
        path.write_text(json.dumps(CREDENTIALS))
        path.chmod(0o600)
    ended = stage.run("write two lines", "--account", "auto")
    shown = stage.show()
    assert ended.code == 0, (ended, shown["turns"])
    assert [turn["agent"] for turn in shown["turns"]] == ["claude@work", "claude@home"]
    first, second = (turn["session"] for turn in shown["turns"])
    assert first != second
    assert list(folders["work"].glob(f"projects/*/{first}.jsonl"))
    assert list(folders["home"].glob(f"projects/*/{second}.jsonl"))
    assert (stage.repository / "calls.txt").read_text() == "one\ntwo\n"
    told = shown["turns"][1]["prompt"]  # the whole task, and what the other session has done
    assert told.startswith("write two lines\n\nYour work on this task was interrupted")
    assert "the first of two" in told
    assert any(told in one.text for one in stage.model.asked)
    health = {one["name"]: one for one in stage.type("agents", "--json").json["agents"]}
    assert (health["claude@work"]["health"], health["claude@home"]["health"]) == ("resting", "ready")
    assert time.strptime(health["claude@work"]["rests_until"][:16], "%Y-%m-%dT%H:%M") >= time.gmtime(RESET - 60)


@pytest.mark.parametrize("agent", ["claude"])
def test_an_account_that_is_not_logged_in_does_not_start_the_cli(play: Play) -> None:
    stage = play()
    folder = define(stage, "CLAUDE_CONFIG_DIR", "empty")["empty"]
    run = stage.end_of(stage.start("run", "hello", "--agent", "claude@empty", "--run-id", "lost", "--json"))
    assert (run.code, run.json["failure"]) == (1, "authentication")
    assert f"not logged in: run `CLAUDE_CONFIG_DIR={folder} claude auth login`" in run.json["detail"]
    assert not stage.model.asked
    assert not list(folder.glob("projects/*/*.jsonl"))
    (entry,) = stage.type("inbox", "--json").rows
    assert (entry["kind"], entry["agent"]) == ("log_in", "claude@empty")
    assert f"CLAUDE_CONFIG_DIR={folder} claude auth login" in entry["detail"]


@pytest.mark.parametrize("agent", ["codex"])
def test_codex_continues_on_the_second_account_at_a_limit(play: Play) -> None:
    refused = Reply(status=429, message="rate limit exceeded", headers={"retry-after-ms": "20"})
    stage = play(Reply(shell="echo one >> calls.txt"), refused, Reply(shell="echo two >> calls.txt"), Reply(say="done"))
    folders = define(stage, "CODEX_HOME", "work", "home")
    usual = Path(stage.environment["CODEX_HOME"])
    for folder in folders.values():
        settings = (usual / "config.toml").read_text().replace('env_key = "OPENAI_API_KEY"\n', "")
        (folder / "config.toml").write_text(settings)
    ended = stage.run("write two lines", "--account", "auto")
    shown = stage.show()
    assert ended.code == 0, (ended, shown["turns"])
    assert [turn["agent"] for turn in shown["turns"]] == ["codex@work", "codex@home"]
    assert all(list(folder.glob("sessions/**/*.jsonl")) for folder in folders.values())
    assert (stage.repository / "calls.txt").read_text() == "one\ntwo\n"


FOLDERS = {
    "gemini": ("GEMINI_CLI_HOME", ".gemini", ".gemini/tmp"),
    "qwen": ("QWEN_HOME", ".qwen", "projects"),
    "opencode": ("XDG_DATA_HOME", "", "opencode"),
    "kilo": ("XDG_DATA_HOME", "", "kilo"),
}


@pytest.mark.parametrize(
    "agent", [pytest.param(name, marks=pytest.mark.full) for name in ("gemini", "qwen", "opencode", "kilo")]
)
def test_each_cli_keeps_its_state_in_the_folder_of_the_account(play: Play, agent: str) -> None:
    variable, settings, state = FOLDERS[agent]
    stage = play(Reply(say="done"))
    folder = define(stage, variable, "work")["work"]
    usual = Path(stage.environment["HOME"])
    if settings:  # its settings are in the folder, too
        target = folder / settings if state.startswith(settings) else folder
        shutil.copytree(usual / settings, target, dirs_exist_ok=True)
    keys = {name: value for name, value in stage.environment.items() if name.endswith("_API_KEY")}
    if keys:
        path = usual / "keys.env"
        path.write_text("".join(f"{name}={value}\n" for name, value in keys.items()))
        path.chmod(0o600)
        config = usual / ".config" / "jackline" / "config.toml"
        config.write_text(f'{config.read_text()}env_file = "{path}"\n')
    ended = stage.end_of(stage.start("run", "hello", "--agent", f"{agent}@work", "--run-id", "first", "--json"))
    assert (ended.code, ended.json["agent"]) == (0, f"{agent}@work"), ended
    assert list((folder / state).iterdir())
