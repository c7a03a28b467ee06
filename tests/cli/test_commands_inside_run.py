"""Every command declares whether it works inside a run; each is tried below a real one."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module

import pytest

from jackline.cli.inside_run import WHOLE_COMMAND, works_inside_run
from jackline.cli.main import COMMAND_GROUPS, COMMANDS
from jackline.cli.output import open_output
from jackline.cli.parser import CommandParser, iterate_actions
from tests.cli.place import EFFECT_RULE, SAY, Ended, Place, is_one_line
from tests.conftest import SLOW_BACKENDS

linux = pytest.mark.skipif(sys.platform != "linux", reason="without /proc only the process's own variables are known")
REFUSED = "is refused inside a run of this home"
# The arguments with which each command is tried; "done" is a run that has ended.
WORDS = {
    "run": "x --agent scripted", "resume": "done", "answer": "done allow", "cancel": "done", "fork": "done",
    "enqueue": "x --agent scripted", "hold": "done", "attach": "done", "sessions": "", "compare": "agent done",
    "inbox": "--list", "tasks show": "agent_management", "tasks new": "t", "show": "done", "logs": "done",
    "receipts": "done", "verify": "done", "export": "done", "work enqueue": "--kind k --id one", "work claim": "three",
    "work renew": "three", "work resolve": "two", "work release": "three", "work annotate": "one --notes n",
    "work get": "one", "work wait-human": "one --question why?", "work answer": "three because",
    "events append": "build.done", "events since": "1h", "events search": "build", "case start": "c",
    "case hypothesis": "add h", "case evidence": "add e", "case command": "run -- true",
    "case learning": "review", "case close": "--summary s --verification true --force why", "case switch": "20",
    "case hook": "claude", "policy explain": "--command ls", "policy check": "{folder}/policy.toml",
    "trust": "--show", "scaffold": "{folder}/instance --host h --agent a", "import": "{folder}", "completion": "bash",
    "worktree open": "done", "worktree merge": "done", "worktree salvage": "done",
    "channel add": "phone", "channel reopen": "phone",
    "service install": "--no-start",
    "trigger add": "t --run-end x --agent scripted", "trigger show": "t", "trigger pause": "t", "trigger resume": "t",
    "trigger remove": "t", "trigger history": "t",
    "schedule add": "m @daily x --agent claude", "schedule show": "n", "schedule pause": "n", "schedule resume": "n",
    "schedule remove": "n", "schedule history": "n", "schedule run-now": "n",
    "db backup": "{folder}/copy", "demo": "--keep {folder}/demo", "drill": "--case read-only --keep {folder}/drill",
    "notify": "hello", "bridge": "done", "findings": "done",
}  # fmt: skip
# Allowed with these flags only.
PARTLY = {"run": "--dry-run", "inbox": "--list", "trust": "--show"}


def build_parser(name: str) -> CommandParser:
    parser = CommandParser(prog=name, out=open_output(json=False, colour=False))
    import_module(COMMANDS[name][0]).configure(parser)
    return parser


def list_actions(parser: argparse.ArgumentParser) -> list[str]:
    """The actions of a command: the names of its first subparsers."""
    found = (action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return [name for choices in found for name in choices]


def list_forms(names: Iterable[str]) -> Iterator[tuple[str, ...]]:
    for name in names:
        actions = list_actions(build_parser(name))
        yield from ((name, action) for action in actions)
        if not actions:
            yield (name,)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_declares_itself_with_names_that_exist(name: str) -> None:
    declared = import_module(COMMANDS[name][0]).INSIDE_RUN
    parser = build_parser(name)
    flags = {flag for action in iterate_actions(parser) for flag in action.option_strings}
    assert set(declared) <= {WHOLE_COMMAND, *list_actions(parser), *flags}


@pytest.fixture(params=SLOW_BACKENDS)
def any_place(place: Place, request: pytest.FixtureRequest) -> Place:
    """A place with each kind of store, and what the commands look for."""
    if request.param == "postgres":
        place.environ["JACKLINE_DATABASE"] = request.getfixturevalue("postgres_database")
    place.policy(EFFECT_RULE)
    assert place.play(SAY, words=("--run-id", "done")).code == 0
    for item in ("two", "three"):
        assert place.type("work", "enqueue", "--kind", "k", "--id", item).code == 0
    words = ("trigger", "add", "t", "--run-end", "x", "--agent", "scripted", "--script", place.script(SAY))
    assert place.type(*words).code == 0
    assert place.type("schedule", "add", "n", "@daily", "x", "--agent", "claude").code == 0
    return place


def try_below_run(place: Place, *commands: str) -> list[Ended]:
    """What each shell command says to a program of a run's agent; {jackline}, {folder} and {home} are filled in."""
    told = place.folder / "told"
    told.mkdir(exist_ok=True)
    names = {"jackline": f"{sys.executable} -m jackline", "folder": place.folder, "home": place.home}
    lines = [
        f"({command.format(**names)}) </dev/null >{told}/{number}.out 2>{told}/{number}.err\necho $? >{told}/{number}"
        for number, command in enumerate(commands)
    ]
    (told / "try.sh").write_text("\n".join(lines))
    call = {"tool": "try", "input": {}, "run": f"cd {place.repository} && sh {told}/try.sh"}
    played = place.play({"call": call}, SAY, words=("--run-id", "agent"))
    assert played.code == 0, played
    read = [[(told / f"{number}{end}").read_text() for end in ("", ".out", ".err")] for number in range(len(commands))]
    return [Ended(int(code), out, err) for code, out, err in read]


def is_allowed(form: str) -> bool:
    name, _, action = form.partition(" ")
    words = [*([action] if action else []), *WORDS.get(form, "").split()]
    return works_inside_run(import_module(COMMANDS[name][0]), build_parser(name).parse_words(words))


# Commands that are tried below one run, in this order; each of those that agents use has one of its own.
GROUPS = [list(names) for title, names in COMMAND_GROUPS.items() if title != "Use from inside an agent"]
GROUPS += [[name] for name in COMMAND_GROUPS["Use from inside an agent"]]


@linux
@pytest.mark.parametrize("names", GROUPS, ids=" ".join)
def test_below_a_run_every_command_does_what_it_declares(any_place: Place, names: list[str]) -> None:
    forms = [" ".join(form) for form in list_forms(names)]
    tried = try_below_run(any_place, *(f"{{jackline}} {form} {WORDS.get(form, '')}" for form in forms))
    for form, ended in zip(forms, tried, strict=True):
        if is_allowed(form):
            assert (ended.code, REFUSED in ended.err) == (0, False), (form, ended)
        else:
            assert (ended.code, is_one_line(ended)) == (2, True), (form, ended)
            assert f"`jackline {form}` {REFUSED}" in ended.err
    assert not (any_place.folder / "instance").exists()
    assert [run["id"] for run in any_place.type("list", "--json").rows] == ["agent", "done"]


@linux
def test_without_the_flag_that_only_reads_a_command_is_refused(place: Place) -> None:
    plain = [f"{{jackline}} {name} {'x --agent scripted' if name == 'run' else ''}" for name in PARTLY]
    flagged = [f"{line} {flag}" for line, flag in zip(plain, PARTLY.values(), strict=True)]
    flagged[0] += f" --script {place.script(SAY)}"
    tried = try_below_run(place, *plain, *flagged, "{jackline} --version", "{jackline} run --help")
    assert [ended.code for ended in tried] == [2, 2, 2, 0, 0, 0, 0, 0]
    assert all(REFUSED in ended.err for ended in tried[:3])


@linux
def test_notices_are_read_and_not_sent(place: Place) -> None:
    tried = try_below_run(place, "{jackline} notices --deliver", "{jackline} notices --retry all", "{jackline} notices")
    assert [ended.code for ended in tried] == [2, 2, 0]
    assert all(REFUSED in ended.err for ended in tried[:2])


def test_a_new_command_and_a_new_action_are_refused() -> None:
    args = argparse.Namespace(action="fresh", show=True)
    assert not works_inside_run(object(), args)
    assert not works_inside_run(argparse.Namespace(INSIDE_RUN=("old", "--list")), args)
    assert works_inside_run(argparse.Namespace(INSIDE_RUN=("--show",)), args)


# --- another home


RUN = "run --agent scripted --script {folder}/other.json --run-id inner"


@linux
def test_another_home_is_not_the_home_of_the_run(any_place: Place) -> None:
    """A proof may test jackline with a home of its own, and there also answer, cancel and resume."""
    any_place.script({"call": {"tool": "send", "input": {"to": "ada"}, "run": "true"}}, SAY, name="other.json")
    rule = EFFECT_RULE.replace('decision = "allow"', 'decision = "ask"')
    any_place.policy(rule)
    own = "JACKLINE_HOME={folder}/other JACKLINE_DATABASE= {jackline}"
    tried = try_below_run(
        any_place,
        f"{own} {RUN} --policy {{folder}}/policy.toml --share-workspace",
        f"{own} answer inner allow",
        f"{own} resume inner --share-workspace",
        "env -i HOME={folder} {jackline} --home {folder}/third " + RUN + " --share-workspace",
    )
    assert [ended.code for ended in tried] == [14, 0, 0, 0], tried


@linux
def test_the_home_of_the_run_under_another_name_is_the_same(any_place: Place) -> None:
    any_place.script(SAY, name="other.json")
    (any_place.folder / "link").symlink_to(any_place.home)
    (any_place.folder / "other").mkdir()
    is_sqlite = "JACKLINE_DATABASE" not in any_place.environ
    if is_sqlite:
        os.link(any_place.home / "state.sqlite", any_place.folder / "other" / "state.sqlite")
        address = f"{any_place.home}/state.sqlite"
    else:
        address = any_place.environ["JACKLINE_DATABASE"]
    clear = f"env -i HOME={{folder}} JACKLINE_DATABASE={shlex.quote(address)}"
    tried = try_below_run(
        any_place,
        "{jackline} --home {folder}/link " + RUN,
        "{jackline} --home {home}/../home/. " + RUN,
        "JACKLINE_HOME={folder}/link {jackline} " + RUN,
        f"{clear} JACKLINE_HOME={{folder}}/link {{jackline}} " + RUN,
        f"{clear} JACKLINE_HOME={{folder}}/other {{jackline}} " + RUN,
        f"{clear} JACKLINE_MARK=x JACKLINE_RUN=y JACKLINE_HOME={{folder}}/other {{jackline}} answer done allow",
        "JACKLINE_DATABASE={folder}/fresh.sqlite {jackline} trust",
        *(["JACKLINE_HOME={folder}/other {jackline} " + RUN] if is_sqlite else []),
    )
    assert [(ended.code, REFUSED in ended.err) for ended in tried] == [(2, True)] * len(tried), tried


@linux
def test_a_home_that_was_moved_away_is_still_the_home_of_the_run(place: Place) -> None:
    tried = try_below_run(
        place,
        "mv {home} {folder}/moved && JACKLINE_DATABASE={folder}/fresh.sqlite {jackline} --home {folder}/moved trust",
        "mv {folder}/moved {home}",
    )
    assert [(ended.code, REFUSED in ended.err) for ended in tried] == [(2, True), (0, False)], tried


@linux
def test_a_run_inside_a_run_counts_for_both_homes(place: Place) -> None:
    inner = f"env JACKLINE_HOME={place.home} {sys.executable} -m jackline cancel agent > {place.path('inner')} 2>&1"
    place.script({"call": {"tool": "try", "input": {}, "run": f"{inner}; true"}}, SAY, name="other.json")
    (tried,) = try_below_run(place, "JACKLINE_HOME={folder}/other {jackline} " + RUN + " --share-workspace")
    assert tried.code == 0
    assert REFUSED in (place.folder / "inner").read_text()


# --- the library


PROGRAM = """
from jackline import open_home, Request
from jackline.errors import Refused

def attempt(name, act):
    try:
        act()
    except Refused as error:
        print(name, error)

with open_home() as home:
    run = home.get_run("asks")
    attempt("answer", lambda: run.answer("allow"))
    attempt("resume", lambda: run.resume("go on"))
    attempt("work", run.work)
    attempt("follow", lambda: list(run.follow()))
    attempt("cancel", run.cancel)
    attempt("new_run", lambda: home.new_run(Request(prompt="x", agent="scripted")))
    from jackline.app.fork import fork_run
    attempt("fork", lambda: fork_run(home, home.find("asks")))
"""


@linux
def test_the_library_refuses_the_same(any_place: Place) -> None:
    rule = any_place.policy(EFFECT_RULE.replace('decision = "allow"', 'decision = "ask"'))
    send = {"call": {"tool": "send", "input": {"to": "ada"}, "run": "true"}}
    assert any_place.play(send, SAY, words=("--policy", rule, "--run-id", "asks")).code == 14
    before = any_place.type("show", "asks", "--json").json
    (any_place.folder / "program.py").write_text(PROGRAM)
    unset = "env -u JACKLINE_MARK -u JACKLINE_RUN -u JACKLINE_RUN_ID -u JACKLINE_ATTEMPT"
    program = f"{sys.executable} {any_place.folder}/program.py"
    for ended in try_below_run(any_place, program, f"{unset} {program}"):
        lines = ended.out.splitlines()
        assert [line.split()[0] for line in lines] == [
            "answer", "resume", "work", "follow", "cancel", "new_run", "fork",
        ], ended  # fmt: skip
        assert all(REFUSED in line for line in lines)
    assert any_place.type("show", "asks", "--json").json == before
