"""Random texts for a shell: the whole grammar, and the same with a few letters broken. They start nothing."""

from __future__ import annotations

from random import Random

# What may end, hide or begin something wherever it stands; `_` is a space.
_WRITTEN = """
p1 ; && || | |& & ( ) {_ ;_} $( ` " ' \\ $x ${x:- ${x# ${x// } { _# # if_ ;_then_ ;_fi ;_else_ while_ until_
for_i_in_ ;_do_ ;_done case_x_in_x)_ ;;_esac ;& [[_ _]] (( )) $(( <( >( a= a=( $' $" \\' eval_ !_ f()_ f _>f
_2>&1 _&>f _<f _<<< {a,b} * ~ trap_ _EXIT [ ] a[ ]= = function_g_ coproc_ time_ select_ do_ in p4_'$(p5)' @P //
'it' ${# $ 1 - : . += declare_ export_ test_ =~_ ${! , ! ? % $[ &| command_ builtin_ exec_ then fi esac done E
$@ cd_a \\\\ \\$ \\` \\" let_ x='y[$(p6)]' $((x)) @( !( +( if_p1;_then_p2;_fi {_p1;_} (p1) `p2` $(p3) unset_
printf_-v_ read_ -v_ ${x@ P} ${_ $(< a+=( 'a_b'
"""
FRAGMENTS = [fragment.replace("_", " ") for fragment in _WRITTEN.split()]
FRAGMENTS += [
    " ",
    "\t",
    "\n",
    "\\\n",
    "\r",
    " <<E\n",
    "\nE\n",
    ' <<"E"\n',
    " <<-E\n\t",
    "alias p1=p7\n",
    "shopt -s extglob\n",
]

PLAIN = [
    "x",
    "a_b",
    "-f",
    "k=v",
    "1",
    "E",
    "$x",
    "${x}",
    "\\;",
    "\\ ",
    "\\#",
    "a#b",
    "*",
    "~",
    "{a,b}",
    "a\\\nb",
    '""',
    "$",
    "{",
    "}",
    "!",
]
QUOTED = ["a;b", "$(p1)", "#", "E", " | p2", "\n", "`p1`", "})", "$x"]


class Texts:
    """Makes texts by chance; each here-document gets a delimiter of its own."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.documents = 0

    def one(self, *choices: str) -> str:
        return self.chance.choice(choices)

    def program(self) -> str:
        return f"p{self.chance.randint(1, 9)}"

    def word(self, depth: int) -> str:
        kind = self.chance.randint(0, 16 if depth > 0 else 6)
        if kind <= 3:
            return self.one(*PLAIN)
        if kind <= 6:
            quoted = self.one(*QUOTED)
            return self.one(
                f"'{quoted}'", f"$'{quoted}'", '"' + quoted.replace("`", "\\`") + '"', '"${x:-y}"', "$'\\x41\\''"
            )
        if kind == 7:
            return self.word(depth - 1) + self.word(depth - 1)
        if kind == 8:
            return "`" + self.series(0).replace("\\", "\\\\").replace("`", "\\`").replace("$", "\\$") + "`"
        if kind <= 10:
            inner = self.word(depth - 1)
            return self.one(f"${{x:-{inner}}}", f'"${{x:={inner}}}"', f"${{x/{inner}/}}", f"${{y[{inner}]}}")
        inner = self.series(depth - 1)
        return self.one(
            f"$({inner})", f'"a $({inner}) b"', f"<({inner})", f"$((1+$({inner})))", f'"${{x:-$({inner})}}"'
        )

    def simple(self, depth: int) -> str:
        words = " ".join([self.program(), *(self.word(depth) for _ in range(self.chance.randint(0, 3)))])
        value = self.word(depth)
        before = self.one(
            "", "", "", "", "", f"a={value} ", f"a[0]={value} ", f"a=({value} x) ", "command ", "eval ", "! "
        )
        if self.chance.random() < 0.15:
            return before + words + self.document(depth)
        after = self.one(
            "", "", "", "", "", " >f", " 2>&1", " <f", f" <<<{value}", " &>f", ">f p", "\\\n x", " # c\n", f" >{value}"
        )
        return before + words + after

    def document(self, depth: int) -> str:
        self.documents += 1
        name = f"E{self.documents}"
        body = self.one(
            "p1; rm\n",
            "it's\n",
            "`p3`\n",
            "\\$(p2)\n",
            '"\n',
            "${x:-$(p4)}\n",
            "a\\\nb\n",
            "\tx\n",
            "",
            f"$({self.series(depth - 1)})\n",
        )
        rest = self.one("", "", "", "; p1", " | p2", " && p3 z")
        return f" {self.one('<<', '<<-')}{self.one(name, repr(name), chr(92) + name)}{rest}\n{body}{name}\n"

    def ended(self, depth: int) -> str:
        series = self.series(depth)
        return series if series.endswith("\n") else series + self.one("; ", "\n")

    def command(self, depth: int) -> str:
        if depth <= 0 or self.chance.random() < 0.5:
            return self.simple(depth)
        first, second = self.ended(depth - 1), self.ended(depth - 1)
        return self.one(
            f"({first})",
            f"{{ {first}}} {self.one('', '>f', '2>&1')}",
            f"if {first}then {second}{self.one('', 'else p1; ', 'elif p2; then p3; ')}fi",
            f"while {first}do {second}break; done",
            f"until ! {first}do {second}break; done",
            f"for i in {self.word(depth - 1)}; do {first}done",
            self.choice(depth, first.rstrip("; "), second.rstrip("; ")),
            f"f() {{ {first}}}; f",
            f"function g {{ {first}}}\ng",
            f"[[ {self.one('-n ', '', '! ')}{self.word(depth - 1)}{self.one('', ' =~ ^(a|b)$', ' && -n x')} ]] && p1",
            f"((1+$({first})))",
        )

    def choice(self, depth: int, first: str, second: str) -> str:
        pattern = self.one("(*)", "*)", "x|*)")
        return f"case {self.word(depth - 1)} in {pattern} {first}\n;; y) {second}\n;; esac"

    def series(self, depth: int) -> str:
        text = self.command(depth)
        for _ in range(self.chance.choice([0, 0, 1, 1, 2])):
            separator = self.one("; ", " && ", " || ", " | ", "\n", " & ", " |& ", "&&", "||", "|", ";")
            text += ("\n" if text.endswith("\n") else separator) + self.command(depth)
        return text


def text_of(chance: Random) -> str:
    """A text, most often one that a shell would run."""
    if chance.random() < 0.2:
        return "".join(chance.choice(FRAGMENTS) for _ in range(chance.randint(2, 14)))
    text = Texts(chance).series(chance.randint(0, 3))
    for _ in range(chance.choice([0, 0, 0, 1, 1, 2])):
        at = chance.randint(0, len(text))
        text = text[:at] + chance.choice(FRAGMENTS) + text[at + chance.choice([0, 0, 1, 2]) :]
    return text
