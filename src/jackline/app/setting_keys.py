"""The settings: name, default, valid values, and whether a project may set each. Pure: reads no file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.agent_ref import is_account
from jackline.errors import ConfigError
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    Setting = str | int | float

_PREFIX = "JACKLINE_"
_RUN_VARIABLE = "JACKLINE_RUN_ID"  # a shell inside a run has variables that are not settings
_SIMILARITY = 0.8
_MAXIMUM = 10**12  # in milliseconds or millionths, more would not fit a database's integer


class SettingKey(NamedTuple):
    """One setting: its type, default, and whether a project may set it."""

    name: str
    default: Setting
    help: str
    project: bool = True
    least: float = 0
    bounds: bool = False  # a limit of a run: an untrusted project can only lower it
    open_at_zero: bool = False  # 0 means no limit, so it is the largest value
    grows: bool = False  # a larger value is stricter
    choices: tuple[str, ...] = ()  # valid words, the strictest first
    only_tightens: bool = False  # even a trusted project can only make it stricter
    program: bool = False  # it names a program: only a trusted project may set it


KEYS = (
    SettingKey(name="home", default="", help="the folder of this instance", project=False),
    SettingKey(
        name="database",
        default="",
        help="a postgresql:// address, or the absolute path of a file; empty: SQLite in the home",
        project=False,
    ),
    SettingKey(name="agent", default="", help="the agent to use; auto: the first ready agent of the ranking"),
    SettingKey(
        name="account",
        default="",
        help="the agent's account; auto: one without a current limit, then the others when it reaches one",
        project=False,
    ),
    SettingKey(
        name="env_file",
        default="",
        help="a file with variables for agents, such as keys: NAME=VALUE lines, mode 0600",
        project=False,
    ),
    SettingKey(name="fallback", default="", help="agents that take over when it cannot continue, separated by commas"),
    SettingKey(
        name="auto", default="claude,codex,gemini,qwen,opencode,kilo,ollama", help="the ranking for --agent auto"
    ),
    SettingKey(
        name="timeout_seconds",
        default=0.0,
        help="how long one turn or the proof may take; 0: no limit",
        bounds=True,
        open_at_zero=True,
    ),
    SettingKey(
        name="idle_seconds",
        default=900.0,
        help="how long an agent may print nothing while no call runs; 0: no limit",
        bounds=True,
        open_at_zero=True,
    ),
    SettingKey(name="grace_seconds", default=5.0, help="time between SIGTERM and SIGKILL", bounds=True),
    SettingKey(
        name="lease_seconds", default=30.0, help="how long a silent supervisor keeps its run", project=False, least=1
    ),
    SettingKey(
        name="other_host_seconds",
        default=0.0,
        help="how long to wait before a probe is believed that a call of another host did not happen; 0: ask a person",
        project=False,
    ),
    SettingKey(
        name="ping",
        default="",
        help="an address such as https://hc-ping.com/ID that is requested when a run starts and ends",
        project=False,
    ),
    SettingKey(
        name="keep_awake",
        default="false",
        help="prevent the machine from sleeping while a run is active: true or false",
        project=False,
        choices=("false", "true"),
    ),
    SettingKey(name="retries", default=2, help="how often a transient failure is retried", bounds=True),
    SettingKey(name="retry_seconds", default=5.0, help="the wait before the first retry; it doubles"),
    SettingKey(
        name="max_usd", default=20.0, help="budget of a run in USD; 0: no limit", bounds=True, open_at_zero=True
    ),
    SettingKey(
        name="max_usd_per_day",
        default=0.0,
        help="budget of all runs of the home in USD per day (UTC); 0: no limit",
        project=False,
        open_at_zero=True,
    ),
    SettingKey(
        name="max_tokens", default=0, help="budget of a run in tokens; 0: no limit", bounds=True, open_at_zero=True
    ),
    SettingKey(
        name="max_calls",
        default=10_000,
        help="budget of a run in tool calls; 0: no limit",
        bounds=True,
        open_at_zero=True,
    ),
    SettingKey(
        name="max_steps", default=500, help="budget of a run in steps; 0: no limit", bounds=True, open_at_zero=True
    ),
    SettingKey(
        name="max_seconds",
        default=28_800.0,
        help="budget of a run in seconds of work; 0: no limit",
        bounds=True,
        open_at_zero=True,
    ),
    SettingKey(
        name="max_iterations",
        default=20,
        help="budget of a run in iterations; 0: no limit",
        bounds=True,
        open_at_zero=True,
    ),
    SettingKey(
        name="review_rounds",
        default=3,
        help="review rounds without a pass, after which a person decides",
        least=1,
        bounds=True,
    ),
    SettingKey(
        name="max_repeats",
        default=25,
        help="how often in a row the same calls may have the same results; 0: no limit",
        bounds=True,
        open_at_zero=True,
    ),
    SettingKey(
        name="approval_timeout",
        default=0.0,
        help="seconds that a call waits for a person; 0: no limit",
        bounds=True,
        open_at_zero=True,
        grows=True,
    ),
    SettingKey(
        name="approval_answer",
        default="deny",
        help="the answer after that time: deny or allow",
        bounds=True,
        choices=("deny", "allow"),
    ),
    SettingKey(
        name="on_ask",
        default="stop",
        help="when a person is needed and there is no terminal: stop, wait for the answer, or deny the call for now",
        project=False,
        choices=("stop", "wait", "deny"),
    ),
    SettingKey(
        name="strict",
        default="false",
        help="after a crash, treat a call of unknown class as in doubt, like an effect",
        bounds=True,
        choices=("true", "false"),
    ),
    SettingKey(
        name="unmatched",
        default="allow",
        help="the decision for calls that no rule matches: allow, ask or deny",
        bounds=True,
        choices=("deny", "ask", "allow"),
        only_tightens=True,
    ),
    SettingKey(
        name="profile",
        default="none",
        help="who decides about calls that need approval: a person; overnight: pushes to side branches and pull "
        "requests are allowed, the rest is denied; ci: all are denied",
        bounds=True,
        choices=("ci", "none", "overnight"),
    ),
    SettingKey(
        name="replay",
        default="report",
        help="after a crash, report interrupted reads and local calls to the agent, or insist that it repeats them",
        bounds=True,
        choices=("insist", "report"),
    ),
    SettingKey(
        name="intake",
        default="",
        help="the project's own command that plans a case; its output is stored in the case",
        program=True,
    ),
    SettingKey(
        name="worktree",
        default="false",
        help="run in a new git worktree: true or false",
        choices=("false", "true"),
    ),
    SettingKey(
        name="worktrees",
        default="",
        help="the folder of these worktrees; empty: jackline/worktrees in XDG_DATA_HOME or ~/.local/share",
        project=False,
    ),
    SettingKey(
        name="worktree_copy",
        default="",
        help="untracked files that each worktree gets a copy of, such as .env, separated by commas",
    ),
    SettingKey(
        name="worktree_setup", default="", help="a command that prepares each worktree for the agent", program=True
    ),
    SettingKey(
        name="setup_timeout",
        default=600.0,
        help="how many seconds the set-up command of a worktree may take",
        project=False,
        least=0.1,
    ),
    SettingKey(
        name="case_seconds", default=900.0, help="how long a command of a case may take", project=False, least=0.1
    ),
    SettingKey(
        name="slots", default=2, help="how many runs a service works on at the same time", project=False, least=1
    ),
    SettingKey(
        name="drain_seconds",
        default=0.0,
        help="how long a service that is stopped lets its runs continue before it interrupts them",
        project=False,
    ),
    SettingKey(
        name="poll_seconds",
        default=2.0,
        help="how often a service polls for work; a queued run also wakes it",
        project=False,
        least=0.1,
    ),
    SettingKey(
        name="mcp",
        default="auto",
        help="whether an agent gets jackline's own MCP server: auto or off",
        choices=("off", "auto"),
    ),
)
KEYS_BY_NAME = {key.name: key for key in KEYS}


def parse_setting(name: str, value: object, where: str) -> Setting:
    """Convert a value to the type of its setting; an invalid value is an error that names its source."""
    key = KEYS_BY_NAME[name]
    kind = type(key.default)
    if key.choices:
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if text not in key.choices:
            *others, last = key.choices
            raise ConfigError(f"{where}: {name} must be {', '.join(others)} or {last}, not {value!r}")
        return text
    if kind is str:
        text = str(value)
        # A mistyped address must not become a file of that name, which no other host could see.
        if name == "database" and text and not text.startswith(("postgresql://", "postgres://", "/")):
            # The value is not repeated: it may hold a password.
            wanted = "a postgresql:// address or the absolute path of a SQLite file"
            raise ConfigError(f"{where}: database must be {wanted}")
        if name == "ping" and text and ("@" in text.partition("://")[2].partition("/")[0] or not is_http_address(text)):
            wanted = "an http:// or https:// address without a password, such as https://hc-ping.com/ID"
            raise ConfigError(f"{where}: ping must be {wanted}")
        if name == "account" and text and not is_account(text):
            raise ConfigError(f"{where}: account must be the name of an account, or auto")
        return text
    try:
        number = float(str(value))
    except ValueError:
        number = -1.0
    if isinstance(value, bool) or not key.least <= number <= _MAXIMUM or (kind is int and not number.is_integer()):
        wanted = f"a {'whole ' if kind is int else ''}number of at least {key.least:g}"
        wanted += f" and at most {_MAXIMUM}" if number > _MAXIMUM else ""
        raise ConfigError(f"{where}: {name} must be {wanted}, not {value!r}")
    return int(number) if kind is int else number


def is_http_address(text: str) -> bool:
    """Whether a request can be made to this address."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(text)
        return (
            text.isascii()
            and text.isprintable()
            and " " not in text
            and bool(parts.scheme in {"http", "https"} and parts.hostname and (parts.port is None or parts.port > 0))
        )
    except ValueError:
        return False


def is_looser(name: str, value: Setting, held: Setting) -> bool:
    """Whether a value lets a run use more than the current one."""
    key = KEYS_BY_NAME[name]
    return key.bounds and _rank(key, value) > _rank(key, held)


def format_setting(value: Setting) -> str:
    """Format a value with all its digits, and a decimal point only where it is needed."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def suggest_nearest(name: str, known: Iterable[str]) -> str:
    """Suggest the nearest known words for a mistyped one; empty if none is near."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), n=3)
    return f" did you mean {' or '.join(near)}?" if near else ""


def _rank(key: SettingKey, value: Setting) -> float:
    """How permissive a value is."""
    if key.choices:
        return key.choices.index(str(value))
    number = float(value)
    limit = float("inf") if key.open_at_zero and not number else number
    return -limit if key.grows else limit


def find_mistyped_variables(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each variable that is almost a setting, with the setting that it probably misspells."""
    from difflib import get_close_matches

    if _RUN_VARIABLE in environ:
        return
    known = [key.name.upper() for key in KEYS]
    for name in sorted(environ):
        suffix = name.removeprefix(_PREFIX)
        if not name.startswith(_PREFIX) or suffix in known:
            continue
        for near in get_close_matches(suffix, known, n=1, cutoff=_SIMILARITY):
            yield name, _PREFIX + near
