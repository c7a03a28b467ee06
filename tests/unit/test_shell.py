"""Every command that a shell's text may run is given, and nothing else: quotes, lists, substitutions, documents."""

from __future__ import annotations

import pytest

from jackline.shell import list_commands
from jackline.shell.model import NotParsed, Redirect, ShellCommand, Word


def shown(text: str) -> list[str]:
    """Each command as one line; a word that is not exact stands in guillemets."""
    return [line(command) for command in list_commands(text)]


def line(command: ShellCommand) -> str:
    return " ".join(word.text if word.exact else f"«{word.text}»" for word in command.words)


def only(text: str) -> ShellCommand:
    (command,) = list_commands(text)
    return command


WORDS = [
    ("git push origin main", ["git", "push", "origin", "main"]),
    ("  git\tpush  ", ["git", "push"]),
    ("/usr/bin/git push", ["/usr/bin/git", "push"]),
    ("echo 'a;b' \"c && d\" e\\;f", ["echo", "a;b", "c && d", "e;f"]),
    ("echo 'it'\\''s'", ["echo", "it's"]),
    ('echo "a\\"b\\$c\\`d\\\\e\\f"', ["echo", 'a"b$c`d\\e\\f']),
    ("echo 'a\nb' \"c\nd\"", ["echo", "a\nb", "c\nd"]),
    ("ec\\\nho a\\\nb", ["echo", "ab"]),
    ('echo "a\\\nb"', ["echo", "ab"]),
    ("git \\\n  push \\\n  origin", ["git", "push", "origin"]),
    ("echo $'a\\nb\\t\\x41\\101\\u0042\\'c'", ["echo", "a\nb\tAAB'c"]),
    ("echo '' \"\" x''y", ["echo", "", "", "xy"]),
    ("echo a#b '#c' \\#d # e; git push", ["echo", "a#b", "#c", "#d"]),
    ("echo hé ☃ 'ü ß'", ["echo", "hé", "☃", "ü ß"]),
    ("echo a\u00a0b", ["echo", "a\u00a0b"]),
    (
        "echo {} HEAD~1 stash@{0} a=b a[ { } ! if then",
        ["echo", "{}", "HEAD~1", "stash@{0}", "a=b", "a[", *["{", "}", "!", "if", "then"]],
    ),
    ("echo $ a$ '$x' \\$x \"$\"", ["echo", "$", "a$", "$x", "$x", "$"]),
    ("'if' x", ["if", "x"]),
    ("\\git push", ["git", "push"]),
    ("g'i't pu\"sh\"", ["git", "push"]),
    ("[ -f x ]", ["[", "-f", "x", "]"]),
    ("echo 'a\r\nb'", ["echo", "a\r\nb"]),
]


@pytest.mark.parametrize(("text", "words"), WORDS, ids=[text for text, _ in WORDS])
def test_quotes_are_taken_off_and_the_words_are_exact(text: str, words: list[str]) -> None:
    assert only(text).words == tuple(Word(word) for word in words)


OPEN = ["$x", "${x}", '"$x"', "a$1", "$(a)", "`a`", "*.py", "a?", "[ab]c", "~/x", "--to=~/x", "{a,b}", "{1..3}", "$@"]
OPEN += [
    "$((1+1))",
    "<(a)",
    '$"a"',
    "a'b'$c",
    '"a${b:-c}"',
    "$'\\xc3\\xa9'",
    "$?",
    "$$",
    "${x%.py}",
    "${#x}",
    "${a[@]}",
]


@pytest.mark.parametrize("word", OPEN)
def test_a_word_that_a_shell_still_changes_is_not_exact(word: str) -> None:
    assert [found.exact for found in list_commands(f"git {word}")[-1].words] == [True, False]


def test_a_word_that_is_not_exact_is_shown_as_written() -> None:
    assert only('rm "$HOME/x" *.py').words[1:] == (Word("$HOME/x", exact=False), Word("*.py", exact=False))


LISTS = [
    ("a;b", ["a", "b"]),
    ("a && b || c", ["a", "b", "c"]),
    ("a & b &", ["a", "b"]),
    ("a | b |& c", ["a", "b", "c"]),
    ("a\nb\n\n\nc", ["a", "b", "c"]),
    ("a &&\n b |\n # why\n c", ["a", "b", "c"]),
    ("! a | b", ["a", "b"]),
    ("! ! a", ["a"]),
    ("a;", ["a"]),
    ("(a; b) && { c; d; }", ["a", "b", "c", "d"]),
    ("((a)) ; ( (b) )", ["b"]),
    ("", []),
    ("  # only a comment", []),
    ("A=1", []),
    ("A=1 B=$x git push", ["git push"]),
    ("a=(x y) b+=(z) a[1]=2 c", ["c"]),
    ("echo \"a;b\" 'c|d' e\\&f", ["echo a;b c|d e&f"]),
    ("if git push; then b; elif c; then d; else e; fi", ["git push", "b", "c", "d", "e"]),
    ("if a\nthen b\nfi", ["a", "b"]),
    ("while a; do b; done; until c; do d; done", ["a", "b", "c", "d"]),
    ("for x in 1 2 $(a); do b; done", ["a", "b"]),
    ("for x; do b; done\nfor y do c; done", ["b", "c"]),
    ("for x in a b\ndo\n c\ndone", ["c"]),
    ("for ((i=0; i<$(a); i++)); do b; done", ["a", "b"]),
    ("select x in a b; do c; done", ["c"]),
    ("case $(a) in x|y) b;; (z) c; d;; *) e; esac", ["a", "b", "c", "d", "e"]),
    ("case x in\n a)\n  b\n  ;;\n c) ;;\nesac; d", ["b", "d"]),
    ("case x in a) b ;& c) d ;;& e) f; esac", ["b", "d", "f"]),
    ("case x in $(a)) b;; 'esac') c;; esac", ["a", "b", "c"]),
    ("f() { git push; }; f", ["git push", "f"]),
    ("function f { a; }; function g() (b)", ["a", "b"]),
    ("f() if a; then b; fi", ["a", "b"]),
    ("[[ -n $(a) && x == y* || ! ( z > w ) ]] && b", ["a", "b"]),
    ("[[ $x =~ ^(a|b c)+$ ]] && d", ["d"]),
    ("[[ a =~ [0-9]$(b)\\ (c) ]]\nd", ["b", "d"]),
    ("(( x = $(a) + `b` )) && c", ["a", "b", "c"]),
    ("{ a; } | { b; }", ["a", "b"]),
    ("if (a) then (b) fi", ["a", "b"]),
    ("{ { a; } }", ["a"]),
    ("time a | b; time { c; }; time -p ( d )", ["a", "b", "c", "d"]),
    ("coproc a b; coproc NAME { c; }", ["a b", "c"]),
    ("if a; then\n# no\n  b # then c\nfi", ["a", "b"]),
    ("a; # b; c\nd", ["a", "d"]),
    ("a && (b || { c; }) & d", ["a", "b", "c", "d"]),
    ("do_it; done_it; ifx; finish", ["do_it", "done_it", "ifx", "finish"]),
]


@pytest.mark.parametrize(("text", "lines"), LISTS, ids=[text for text, _ in LISTS])
def test_every_command_of_a_list_is_given_in_order(text: str, lines: list[str]) -> None:
    assert shown(text) == lines


SUBSTITUTIONS = [
    ('echo "$(git push)"', ["git push", "echo «$(git push)»"]),
    ("echo `git push`", ["git push", "echo «`git push`»"]),
    ('echo "`git push`"', ["git push", "echo «`git push`»"]),
    ("echo `a \\`b\\``", ["b", "a «`b`»", "echo «`a \\`b\\``»"]),
    ('echo "$(a "$(b ")")")"', ["b )", 'a «$(b ")")»', 'echo «$(a "$(b ")")")»']),
    ("echo $(case x in x) a;; esac)", ["a", "echo «$(case x in x) a;; esac)»"]),
    ("echo $(a # )\nb)", ["a", "b", "echo «$(a # )\nb)»"]),
    ("A=$(git push)", ["git push"]),
    ("A=(x $(git push))", ["git push"]),
    ("export A=$(git push)", ["git push", "export «A=$(git push)»"]),
    ("declare -a A=(x $(a))", ["a", "declare -a «A=(x $(a))»"]),
    ("echo ${x:-$(git push)}", ["git push", "echo «${x:-$(git push)}»"]),
    ('echo "${x:-`git push`}"', ["git push", "echo «${x:-`git push`}»"]),
    ("echo ${x//'}'/$(a)}", ["a", "echo «${x//'}'/$(a)}»"]),
    ("echo ${a[$(b)]}", ["b", "echo «${a[$(b)]}»"]),
    ("echo $((1 + $(a)))", ["a", "echo «$((1 + $(a)))»"]),
    ("diff <(a | b) >(c)", ["a", "b", "c", "diff «<(a | b)» «>(c)»"]),
    ("cat --from=<(a)", ["a", "cat «--from=<(a)»"]),
    ("> $(a) b", ["a", "b"]),
    ('x <<< "$(a)"', ["a", "x"]),
    ("echo '$(git push)' '`a`' \\$\\(b\\)", ["echo $(git push) `a` $(b)"]),
    ('echo "\\$(git push)" "\\`a\\`"', ["echo $(git push) `a`"]),
    ("$(which git) push", ["which git", "«$(which git)» push"]),
    ("echo $( )", ["echo «$( )»"]),
    ("echo $(<file)", ["", "echo «$(<file)»"]),
]


@pytest.mark.parametrize(("text", "lines"), SUBSTITUTIONS, ids=[text for text, _ in SUBSTITUTIONS])
def test_what_is_substituted_is_run_and_so_it_is_given(text: str, lines: list[str]) -> None:
    assert shown(text) == lines


DOCUMENTS = [
    ("cat <<EOF\nrm -rf /\nEOF\n", ["cat"], "rm -rf /\n"),
    ("cat <<EOF\nrm -rf /\nEOF", ["cat"], "rm -rf /\n"),
    ("cat <<'EOF'\n$(git push) `a`\nEOF\n", ["cat"], "$(git push) `a`\n"),
    ('cat <<"E F"\n$(a)\nE F\nb', ["cat", "b"], "$(a)\n"),
    ("cat <<\\EOF\n$(a)\nEOF\nb", ["cat", "b"], "$(a)\n"),
    ("cat <<EOF\n$(git push)\nEOF\n", ["git push", "cat"], "$(git push)\n"),
    ('cat <<EOF\nit\'s "x" `a` ${y:-$(b)}\nEOF\n', ["a", "b", "cat"], 'it\'s "x" `a` ${y:-$(b)}\n'),
    ("cat <<EOF\n\\$(a) \\`b\\` \\\\\nEOF\n", ["cat"], "$(a) `b` \\\n"),
    ("cat <<-EOF\n\t\ta\n\tEOF\nb", ["cat", "b"], "a\n"),
    ("cat <<EOF && b\nc\nEOF\nd", ["cat", "b", "d"], "c\n"),
    ("cat <<EOF | sh\ngit push\nEOF\n", ["cat", "git push"], "git push\n"),
    ("cat <<EOF\n EOF\nEOF \nEOF\nb", ["cat", "b"], " EOF\nEOF \n"),
    ("cat <<''\na\n\nb", ["cat", "b"], "a\n"),
    ("cat 0<<EOF\na\nEOF\n", ["cat"], "a\n"),
    ("cat <<< 'a b'", ["cat"], "a b\n"),
    ("cat <<EOF 'x\ny'\na\nEOF\nb", ["cat x\ny", "b"], "a\n"),
]


@pytest.mark.parametrize(("text", "lines", "stdin"), DOCUMENTS, ids=[text for text, _, _ in DOCUMENTS])
def test_the_body_of_a_document_is_no_command_but_what_it_substitutes_is(
    text: str, lines: list[str], stdin: str
) -> None:
    found = list_commands(text)
    assert [line(command) for command in found] == lines
    assert [command.stdin for command in found if command.words[0].text == "cat"] == [stdin]


def test_several_documents_on_a_line_follow_each_other() -> None:
    found = list_commands("a <<A; b <<'B'\none\nA\n$(two)\nB\nc")
    assert [(line(command), command.stdin) for command in found] == [("a", "one\n"), ("b", "$(two)\n"), ("c", "")]


def test_documents_inside_of_substitutions_and_loops_end_there() -> None:
    assert shown("x=$(cat <<E\nrm\nE\n)\nwhile a; do b <<F\nrm\nF\ndone; (c <<G\nrm\nG\n)") == ["cat", "a", "b", "c"]


REDIRECTS = [
    ("a > x", [(">", "x")]),
    ("a>x", [(">", "x")]),
    ("> x a", [(">", "x")]),
    ("a 1>x 2>>y", [(">", "x"), ("2>>", "y")]),
    ("a &>x", [("&>", "x")]),
    ("a &>>x", [("&>>", "x")]),
    ("a >& x", [("&>", "x")]),
    ("a >| x <> y", [(">|", "x"), ("<>", "y")]),
    ("a < x 3<y", [("<", "x"), ("3<", "y")]),
    ("a {fd}>x", [(">", "x")]),
    ("a > x 2>&1", [(">", "x")]),
    ("a 2>&1 >&2 <&- 3>&-", []),
    ("a 2>'x y'", [("2>", "x y")]),
    ("a x2>y", [(">", "y")]),
]


@pytest.mark.parametrize(("text", "redirects"), REDIRECTS, ids=[text for text, _ in REDIRECTS])
def test_every_file_that_is_opened_is_given(text: str, redirects: list[tuple[str, str]]) -> None:
    assert only(text).redirects == tuple(Redirect(operator, Word(target)) for operator, target in redirects)


def test_a_target_that_only_a_shell_knows_is_not_exact() -> None:
    assert only("a > $x").redirects == (Redirect(">", Word("$x", exact=False)),)


@pytest.mark.parametrize(
    "text", ["> x", "{ a; } > x", "(a) > x", "while a; do b; done > x", "[[ a ]] > x", "bash -c a > x"]
)
def test_files_that_no_single_command_opens_are_given_without_words(text: str) -> None:
    assert list_commands(text)[0][:2] == ((), (Redirect(">", Word("x")),))


def test_assignments_before_a_command_are_kept_with_it() -> None:
    assert only("A=1 B=$x git push").assignments == (Word("A=1"), Word("B=$x", exact=False))


REFUSED = [
    "echo 'a",
    'echo "a',
    "echo `a",
    "echo $(a",
    "echo ${a",
    "echo $((1",
    "echo $'a",
    "a \\",
    "(a",
    "a)",
    "{ a; ",
    "a; }",
    "if a; then b",
    "if a; fi",
    "fi",
    "then",
    "do a; done",
    "while a; done",
    "for x in a b; c",
    "for $x in a; do b; done",
    "case x in a) b",
    "case x a) b;; esac",
    "esac",
    "a ;; b",
    "a ; ; b",
    "; a",
    "&& a",
    "a &&",
    "a | | b",
    "a |",
    "| a",
    "a & & b",
    "a &&& b",
    "( )",
    "{ }",
    "if ; then a; fi",
    "a (b)",
    "a(b",
    "echo a(b)",
    "ls *(e:x:)",
    "ls =(a)",
    "f() a",
    "f( a",
    "function",
    "function f a",
    "() { a; }",
    "a > ",
    "a >",
    "a > > b",
    "a <<",
    "a <<E\nb",
    "a <<E",
    "a <<$x\n$x\n",
    "$(a <<E\n)\nE\n",
    "a <<E $(b\n)\nE\n",
    "a <<E\nx\\\nE\nE\n",
    "a <<E\nE\\\n\nE\n",
    "[[ a",
    "[[ a #b ]]",
    "echo $[1+1]",
    "echo ${ a; }",
    "echo ${| a; }",
    "echo ${(e)x}",
    "echo ${x@P}",
    "echo ${x:-<(a)}",
    "echo ${x:-{}}",
    "echo $((a) ; (b))",
    "((a); (b))",
    "$((a $(case x in x) b;; esac)))",
    "echo $\\\n(a)",
    "i\\\nf a; then b; fi",
    "a[x #]=$(b)",
    "a b}\\\n c",
    "a=([x #]=$(b))",
    "a=(b)c d",
    "a=(b; c)",
    "x=$(a=(b))",
    'echo "`a \\"b\\"`"',
    "echo @(a|b)",
    "!(a)",
    "alias ls='git push'",
    "alias $x",
    "a\r\nb",
    "echo a\0b",
    "a >! b",
    "x='a[$(b)]'",
    "test -v 'a[`b`]'",
    "a &| b",
    "[[ 'a[$(b)]' -eq 1 ]]",
    "echo $'\\0'",
    "echo \"${x#'}'}\"",
    "echo \"${x:-'}'}\"",
    "cat <<E\n${x:-'}\nE\n",
    "for x in a; { b; }",
    "repeat 3 { a; }",
    "if [[ a ]] { b }",
    "find . -exec a",
    'bash -c "a \'"',
    "eval '('",
    'eval "("',
    "( " * 60 + "a" + " )" * 60,
    "$(" * 60 + "a" + ")" * 60,
    "a" * 100_001,
    "PS4='$(a)'; set -x",
    "compgen -C 'git push'",
    "mapfile -C 'git push' -c 1 a",
    "hash -p ./x ls",
    "shopt -s expand_aliases; alias ls=x",
    "enable -f ./x y",
    "bind -x '\"a\": git push'",
    "x=$(cat <<E\nE\ngit; push)",
    "x=<(cat <<E; git; push\nE\n)",
    "command test -v 'a[`b`]'",
    "x=$(coproc git push)",
    "eval " * 60 + "a",
    "sudo " * 60 + "a",
]


@pytest.mark.parametrize("text", REFUSED, ids=[text[:30].encode("unicode_escape").decode() for text in REFUSED])
def test_what_cannot_be_read_with_certainty_is_refused(text: str) -> None:
    with pytest.raises(NotParsed):
        list_commands(text)


def test_a_refusal_says_what_is_wrong_and_where() -> None:
    with pytest.raises(NotParsed, match=r"unclosed ' \(at character 7\)"):
        list_commands("echo 'abc")


@pytest.mark.parametrize("count", [1, 4, 8])
def test_nesting_as_people_write_it_is_read(count: int) -> None:
    assert shown("$(" * count + "git push" + ")" * count)[0] == "git push"
    assert shown("if a; then " * count + "git push; " + "fi; " * count)[-1] == "git push"
