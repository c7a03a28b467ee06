"""Wrappers are taken off with their own options, and a `cd` moves what comes after it, as far as anybody can know."""

from __future__ import annotations

import pytest

from jackline.shell import list_commands
from jackline.shell.model import NotParsed, ShellCommand, Word


def line(command: ShellCommand) -> str:
    return " ".join(word.text if word.exact else f"«{word.text}»" for word in command.words)


def shown(text: str) -> list[str]:
    return [line(command) for command in list_commands(text)]


PUSHES = {
    "sudo": [
        "sudo git push",
        "sudo -u bob git push",
        "sudo -ubob -E git push",
        "sudo -nE -- git push",
        "sudo A=1 git push",
        "sudo --user=bob --preserve-env git push",
        "sudo --user bob git push",
        "/usr/bin/sudo git push",
        "sudo -i git push",
    ],
    "doas": ["doas git push", "doas -u bob git push", "doas -nu bob git push"],
    "env": [
        "env git push",
        "env -i A=1 B='x y' git push",
        "env -u HOME git push",
        "env --unset=A git push",
        "env - git push",
        "/usr/bin/env -C sub git push",
        "env -iu A git push",
    ],
    "nohup": ["nohup git push", "nohup git push &"],
    "nice": [
        "nice git push",
        "nice -n 10 git push",
        "nice -10 git push",
        "nice --adjustment=5 git push",
        "nice -n10 git push",
    ],
    "ionice": ["ionice -c 3 git push", "ionice -c3 -n 7 git push"],
    "time": ["time git push", "time -p git push", "/usr/bin/time -v git push", "\\time -o f git push"],
    "timeout": [
        "timeout 5 git push",
        "timeout -k 5 10s git push",
        "timeout --signal=KILL -k5 1m git push",
        "timeout --foreground 5 git push",
        "timeout -s KILL 5 git push",
    ],
    "stdbuf": ["stdbuf -oL git push", "stdbuf -o L -e 0 git push", "stdbuf --output=L git push"],
    "setsid": ["setsid git push", "setsid -w git push"],
    "chroot": ["chroot /x git push", "chroot --userspec=a:b /x git push"],
    "command": ["command git push", "command -p git push", "command -- git push"],
    "builtin": ["builtin git push"],
    "exec": ["exec git push", "exec -a name git push"],
    "busybox": ["busybox git push"],
    "watch": [
        "watch git push",
        "watch -n 1 -d git push",
        "watch -n1 'git push'",
        "watch -x git push",
        "watch --interval=5 git push",
    ],
    "flock": ["flock /x git push", "flock -n /x git push", "flock -w 5 /x git push"],
    "flock -c": ["flock /x -c 'git push'"],
    "bash -c": [
        "bash -c 'git push'",
        "bash -lc 'git push'",
        "bash -ec 'git push' name x",
        "/bin/bash -c 'git push'",
        "bash -euo pipefail -c 'git push'",
        "bash -x -c 'git push'",
        "bash --norc -c 'git push'",
        "bash +x -c 'git push'",
        "bash -o pipefail -c 'git push'",
        "bash --rcfile f -c 'git push'",
        "bash -c $'git push'",
        "bash -c git\\ push",
        "bash -c -x 'git push'",
        "bash -ceu 'git push'",
    ],
    "sh -c": ["sh -c 'git push'", 'sh -ec "git push"'],
    "zsh -c": ["zsh -ic 'git push'"],
    "dash -c": ["dash -c 'git push'"],
    "bash <<": [
        "bash <<'E'\ngit push\nE\n",
        "bash <<E\ngit push\nE\n",
        "bash <<< 'git push'",
        "bash -s x <<'E'\ngit push\nE\n",
        "bash -eu <<'E'\ngit push\nE\n",
    ],
    "sh <<": ["sh <<'E'\ngit push\nE\n"],
    "eval": ["eval git push", "eval 'git push'", "eval -- git 'push'"],
    "su -c": [
        "su -c 'git push'",
        "su bob -c 'git push'",
        "su - bob -c 'git push'",
        "su -c 'git push' bob",
        "su -l --command='git push' bob",
    ],
    "trap": ["trap 'git push' EXIT", "trap -- 'git push' INT TERM"],
    "uv run": ["uv run git push", "uv run -- git push"],
    "poetry run": ["poetry run git push"],
}
CASES = [(wrapper, text) for wrapper, texts in PUSHES.items() for text in texts]


@pytest.mark.parametrize(("wrapper", "text"), CASES, ids=[text for _, text in CASES])
def test_a_wrapper_is_taken_off_with_its_own_options(wrapper: str, text: str) -> None:
    (command,) = list_commands(text)
    assert command.words == (Word("git"), Word("push"))
    assert command.through == (wrapper,)


NESTED = [
    ("jackline case command run -- git push", ["git push"]),
    ("jackline case command run 'cd x && git push'", ["cd x", "git push"]),
    ("jackline --home /x case --json command run --case c1 -- git push", ["git push"]),
    (
        "jackline case close --summary s --verification 'git push' 'ls -l' --risk none",
        ["jackline case close --summary s --verification git push ls -l --risk none", "git push", "ls -l"],
    ),
    ("jackline case start x --verify='git push'", ["jackline case start x --verify=git push", "git push"]),
    ("sudo -u bob env A=1 timeout 5 git push", ["git push"]),
    ("sudo bash -c 'cd x && env A=1 git push'", ["cd x", "git push"]),
    ("bash -c \"bash -c 'a; b' && c\"", ["a", "b", "c"]),
    ("bash -c 'a | b; $(c)'", ["a", "b", "c", "«$(c)»"]),
    ("env -S 'A=1 git push' now", ["git push now"]),
    ("env -S'git push'", ["git push"]),
    ("env bash <<E\ngit push\nE\n", ["git push"]),
    ("eval \"eval 'git push'\"", ["git push"]),
    ("if command sudo git push; then a; fi", ["git push", "a"]),
    ("find . -name '*.pyc' -delete", ["find . -name *.pyc -delete"]),
    ("find . -exec rm -f {} \\;", ["find . -exec rm -f {} ;", "rm -f «{}»"]),
    (
        "find . -exec rm {} + -o -execdir git push ';'",
        ["find . -exec rm {} + -o -execdir git push ;", "rm «{}»", "git push"],
    ),
    ("find . -ok sh -c 'git push' \\;", ["find . -ok sh -c git push ;", "git push"]),
    ("find . -exec sh -c 'rm {}' \\;", ["find . -exec sh -c rm {} ;", "sh -c «rm {}»", "rm «{}»"]),
    ("fd -e py -x git push", ["fd -e py -x git push", "git push «{}»"]),
    ("a | xargs rm", ["a", "rm «{}»"]),
    ("a | xargs -0 -n 1 -P4 rm -f", ["a", "rm -f «{}»"]),
    ("a | xargs -r --max-args=1 sudo rm", ["a", "rm «{}»"]),
    ("a | xargs -I {} mv {} b/{} c", ["a", "mv «{}» «b/{}» c"]),
    ("a | xargs -I% git push % x", ["a", "git push «%» x"]),
    ("a | xargs -i git push {}", ["a", "git push «{}»"]),
    ("a | xargs --replace=X git X", ["a", "git «X»"]),
    ("a | xargs -I{} sh -c 'rm {}'", ["a", "sh -c «rm {}»", "rm «{}»"]),
    ("a | xargs sh -c 'git push'", ["a", "git push"]),
    ("a | xargs", ["a", "xargs"]),
    ("nohup bash -c 'git push' > log 2>&1 &", ["", "git push"]),
    ("watch git push '|' sh", ["git push", "sh"]),
]


@pytest.mark.parametrize(("text", "lines"), NESTED, ids=[text for text, _ in NESTED])
def test_wrappers_inside_of_wrappers_are_taken_off(text: str, lines: list[str]) -> None:
    assert shown(text) == lines


KEPT = [
    "jackline list",
    "jackline work answer case command run ls",
    "jackline work enqueue --verify ls",
    "jackline case command add ls",
    "command -v git",
    "command -V git",
    "env",
    "sudo -l",
    "sudo -v",
    "exec",
    "time",
    "trap",
    "trap - INT",
    "trap '' INT",
    "eval",
    "bash",
    "bash script.sh -c x",
    "sh -x script.sh",
    "bash --version",
    "bash -s x",
    "zsh",
    "su",
    "su - bob",
    "xargs",
    "nohup --help",
    "ssh host git push",
    "ssh host 'git push; ls'",
    "parallel git push ::: a",
    "flock 9",
    "uv sync",
    "uv run --with x git push",
    "docker run x git push",
    "watch --help",
    "uv run x.py",
    "ionice -p 5",
]


@pytest.mark.parametrize("text", KEPT)
def test_what_wraps_nothing_stays_a_command_of_its_own(text: str) -> None:
    (command,) = list_commands(text)
    assert (line(command), command.through) == (text.replace("'", ""), ())


UNKNOWN = [
    ('bash -c "$X"', "«$X»"),
    ('bash -c "$X" name', "«$X»"),
    ('bash -c "git push $X"', "git push «$X»"),
    ('bash -o pipefail -lc "git push $X"', "git push «$X»"),
    ('eval "$X"', "«$X»"),
    ("eval git $X", "git «$X»"),
    ('trap "$X" EXIT', "«$X»"),
    ('su -c "$X"', "«$X»"),
    ("bash <<E\n$X\nE\n", "«$X»"),
    ('watch "git push $X"', "git push «$X»"),
    ("sh <<< $X", "«$X»"),
    ('flock /x -c "$X"', "«$X»"),
    ("xargs -I{} sh -c 'git push {}'", "git push «{}»"),
    ("env -S '\"git\" push'", "git push"),
    ('git rebase -x "$X" main', "«$X»"),
    ("script -qc 'git push' log", "git push"),
]


@pytest.mark.parametrize(("text", "guess"), UNKNOWN)
def test_a_text_that_nobody_knows_leaves_its_wrapper_and_what_it_may_run(text: str, guess: str) -> None:
    wrapper, inner = list_commands(text)
    assert wrapper.words[0].text in text
    assert line(inner) == guess


@pytest.mark.parametrize("text", ['bash -c "alias x=$X"', 'eval "\'$X"', 'bash -c "(( $X"'])
def test_a_guess_that_cannot_be_read_takes_nothing_away(text: str) -> None:
    assert [line(command) for command in list_commands(f"git push; {text}")][:1] == ["git push"]


JOINED = ["git rebase -x'git push' main", "git rebase --exec='git push' main", "git rebase -x 'git push'"]


@pytest.mark.parametrize("text", JOINED)
def test_a_rebase_runs_its_command_however_it_is_joined(text: str) -> None:
    assert [line(command) for command in list_commands(text)][1:] == ["git push"]


PIPED = ["echo git push | bash -", "printf 'git push' | sh", "runuser -u bob -- git push", "time -o log git push"]


@pytest.mark.parametrize("text", PIPED)
def test_other_ways_to_run_a_command(text: str) -> None:
    assert line(list_commands(text)[-1]) == "git push"


SETTING = [
    "for PATH in /x; do ls; done",
    "PATH+=:/x; ls",
    "export PATH=/x; ls",
    "printf -v PATH /x; ls",
    "read -r PATH < x; ls",
    "mapfile PATH < x; ls",
    ": ${PATH:=/x}; ls",
    "((PATH=1)); ls",
    "let PATH=1; ls",
    "echo $((PATH=1)); ls",
]


@pytest.mark.parametrize("text", SETTING)
def test_a_variable_that_the_shell_sets_stands_before_every_later_command(text: str) -> None:
    last = list_commands(text)[-1]
    assert line(last) == "ls"
    assert [word.text.rstrip(":/x") for word in last.assignments][:1] in (["PATH="], ["PATH+="])


def test_many_variables_are_refused_and_one_many_times_is_not() -> None:
    """Every command is given all of them: a text of nothing else would fill the memory."""
    with pytest.raises(NotParsed):
        list_commands("".join(f"X{number}=1;a;" for number in range(300)))
    assert len(list_commands("X=1;a;" * 300)) == 300


UNSURE = [
    "sudo $X git push",
    "sudo -u $X git push",
    "timeout $X git push",
    "env A=$X git push",
    "sudo --unheard git push",
    "nice -z git push",
    "flock $X git push",
]


@pytest.mark.parametrize("text", UNSURE)
def test_options_that_nobody_knows_leave_both_the_wrapper_and_a_guess(text: str) -> None:
    wrapper, inner = list_commands(text)
    assert not wrapper.words[0].exact
    assert line(inner) == "git push"


SHELLS = ["sudo -s", "sudo -i", "doas -s", "chroot /x", "sudo -s <<E\ngit push\nE\n", "fd -Hxgit", "fd --exec=git"]


@pytest.mark.parametrize("text", SHELLS)
def test_a_wrapper_that_starts_what_is_not_seen_is_not_exact(text: str) -> None:
    (command,) = list_commands(text)
    assert not command.words[0].exact


def test_what_env_and_sudo_assign_is_kept_with_the_command() -> None:
    (command,) = list_commands("A=1 sudo B=2 env C=3 git push")
    assert command.assignments == (Word("A=1"), Word("B=2"), Word("C=3"))


def test_files_and_input_go_on_to_the_command_behind_a_wrapper() -> None:
    (command,) = list_commands("sudo tee x > y <<E\nz\nE\n")
    assert (command.redirects[0].target, command.stdin) == (Word("y"), "z\n")


@pytest.mark.parametrize(
    "text",
    [
        "sh -c '[[ a || reboot ]]'",
        "dash -c '((reboot))'",
        "sh -c \"echo $'a'\"",
        "sh <<E\n((a))\nE\n",
        "sh -c 'a &>f b'",
        "sh -c \"eval '((reboot))'\"",
    ],
)
def test_syntax_of_bash_is_not_trusted_to_mean_the_same_to_sh(text: str) -> None:
    from jackline.shell.model import NotParsed

    with pytest.raises(NotParsed):
        list_commands(text)


FOLDERS = [
    ("x", "."),
    ("cd a; x", "a"),
    ("cd a && x", "a"),
    ("cd a\nx", "a"),
    ("cd a && cd b/../c && x; y", "a/c"),
    ("cd -- a; x", "a"),
    ("cd ..; x", ".."),
    ("cd a/..; x", "."),
    ("cd a; cd ../..; x", ".."),
    ("cd /tmp/../x; x", "/x"),
    ("pushd a > /dev/null; x", "a"),
    ("command cd a; x", "a"),
    ("eval 'cd a'; x", "a"),
    ("{ cd a; x; }", "a"),
    ("cd a; (x)", "a"),
    ("cd a; echo $(x)", "a"),
    ("bash -c 'cd a; x'", "a"),
    ("cd a; bash -c 'cd b && x'", "a/b"),
    ("cd a || exit 1; x", "a"),
    ("mkdir a && cd a && x", "a"),
    ("if cd a; then x; fi", "a"),
    ("if b; then cd a && x; fi", "a"),
    ("env -C a x", "a"),
    ("cd b; sudo -D a x", "b/a"),
    ("source .venv/bin/activate && x", "."),
    ("(cd a); x", "."),
    ("cd a & x", "."),
    ("cd a | b; x", "."),
    ("b=$(cd a); x", "."),
    ("bash -c 'cd a'; x", "."),
    ("sudo cd a; x", "."),
    ("echo cd a; x", "."),
    ("f() { b; }; x", "."),
    ("if b; then c; fi; x", "."),
    ("cd; x", None),
    ("cd -; x", None),
    ("cd ~; x", None),
    ("cd $a; x", None),
    ('cd "$a" && x', None),
    ("cd a b; x", None),
    ("cd -P a; x", None),
    ("popd; x", None),
    ("b && cd a; x", None),
    ("b || cd a; x", None),
    ("cd a || b; x", None),
    ("cd a || x", None),
    ("if b; then cd a; fi; x", None),
    ("if cd a; then b; fi; x", None),
    ("case b in c) cd a;; esac; x", None),
    ("while b; do x; cd a; done", None),
    ("for b in c; do cd a; done; x", None),
    ("f() { cd a; }; x", None),
    ("f() { x; }", None),
    ("cd() { :; }; cd a; x", None),
    ("b | cd a; x", None),
    (". ./b; x", None),
    ('eval "$b"; x', None),
    ("$b a; x", None),
    ("trap 'cd a' EXIT; x", None),
    ("trap x EXIT", None),
    ("CDPATH=/b; cd a; x", None),
    ("time cd a; x", None),
    ("find . -execdir x ';'", None),
    ("su -c x", None),
    ("chroot /a x", None),
    ("env -C $a x", None),
    ("env -C a -S x", "a"),
    ("xargs -I {} x", "."),
    ("cd a; popd; cd b; x", None),
    ("cd $a; cd /b; x", "/b"),
]


@pytest.mark.parametrize(("text", "folder"), FOLDERS, ids=[text for text, _ in FOLDERS])
def test_a_command_runs_where_a_literal_cd_led_and_nowhere_for_sure_otherwise(text: str, folder: str | None) -> None:
    found = [command.folder for command in list_commands(text) if command.words and command.words[0].text == "x"]
    assert found == [folder]
