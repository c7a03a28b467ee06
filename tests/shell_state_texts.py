"""Random texts for a shell that keep state: variables, parameters, functions, aliases, traps, nested shells."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

NAMES = ["a", "b", "c"]
VALUES = [
    "E1",
    "E2",
    "",
    "x",
    "1",
    "2",
    "'x y'",
    "'*'",
    "-n",
    "'$b'",
    "'a=5'",
    "p7",
    "'p8 x'",
    "E{1,2}",
    '"q"',
    "~",
    "a",
]
CHANGES = r"""
{n}={v} ¦ {n}={v} ¦ {n}={v} ¦ {n}={v} {m}={w} ¦ {n}={w} ¦ {n}+={v} ¦ export {n}={v} ¦ export {n} ¦ readonly {n}={v}
declare {n}={v} ¦ typeset {n}={w} ¦ local {n}={v} ¦ declare -i {n}={v} ¦ declare -n {m}={n} ¦ declare -x {n}={v}
unset {n} ¦ unset -v {n} ¦ unset "${m}" ¦ read {n} <<<{v} ¦ read -r {n} {m} <<<"x y" ¦ printf -v {n} %s {v}
let {n}=1+1 ¦ (({n}++)) ¦ (({n}=3)) ¦ : $(({n}=4)) ¦ : ${{{n}:={v}}} ¦ : ${{c:{n}=5}} ¦ : ${{{n}:-{v}}} ¦ {n}=(x y)
{n}[0]={v} ¦ {n}[b]=z ¦ IFS=E ¦ IFS= ¦ set -- {v} {w} ¦ set -- "$@" z ¦ set x y ¦ shift ¦ shift 2 ¦ set -f ¦ set +B
set -e ¦ set -k ¦ set -o posix ¦ set -u ¦ exec {{{n}}}>f ¦ coproc {n} {{ :; }} ¦ mapfile {n} <<<x ¦ getopts x {n} -x
trap '{n}=2' DEBUG ¦ trap '{c}' EXIT ¦ trap '{n}=3; {c}' ERR ¦ eval '{n}={v}' ¦ eval "{n}=${m}" ¦ eval {n}=$b
printf '{n}=2' >f; . ./f ¦ source ./f ¦ printf 'p3 z' >f; . ./f y ¦ alias g=p5 ¦ alias p1=p6 ¦ alias k='p5 x'
shopt -s expand_aliases ¦ shopt -s lastpipe ¦ [[ {n} -eq 1 ]] ¦ [[ -v {n} ]] ¦ [[ ${n} == E* ]] ¦ test -v {n}
[ ${n} = E1 ] ¦ f() {{ {c}; }} ¦ g() {{ {n}={v}; {c}; }} ¦ f() {{ local {n}=$1; {c}; }}
f() {{ {n}=$1; return; {n}=2; }} ¦ f() {{ "$@"; }} ¦ f() {{ $1 $2; }} ¦ f() {{ shift; {c}; f; }} ¦ echo x | read {n}
: | {n}=2 ¦ {n}=2 & ¦ ({n}=3; {c}) ¦ {n}=9 : ¦ {n}=8 f ¦ unset -f f ¦ enable -n test ¦ cd . ¦ wait ¦ {n}=$( {c} )
{n}=`p9` ¦ {n}=$? ¦ RANDOM=1 ¦ {n}=$RANDOM ¦ {n}=${{#m}} ¦ {n}=${{{m}%1}} ¦ {n}=$'E1' ¦ {n}=\* ¦ break ¦ return
"""
CALLS = r"""
p1 {r} {s} ¦ p2 {r} ¦ p3 "x"{r} ¦ p4 {r}{s} ¦ $S {r} ¦ {r} x ¦ "$@" ¦ f {r} {s} ¦ f {r} ¦ g ¦ k {r} ¦ {n}=5 p5 {r}
command p6 {r} ¦ eval p7 {r} ¦ eval "p8 {q}" ¦ eval '{c}' ¦ time p1 {r} ¦ ! p2 {s} ¦ builtin eval 'p3 {q}'
env p4 {r} ¦ env {n}=6 p4 {r} ¦ bash -c 'p5 $1 "$@" {q}' _ {r} ¦ sh -c 'p6 {q} E{{1,2}}' ¦ {n}=7 bash -c 'p7 {q}'
bash -c "p8 {q}" ¦ bash <<X\np9 {q}\nX\n ¦ bash <<'X'\np1 {q} $1\nX\n ¦ bash -s {r} <<'X'\np2 "$1"\nX\n
timeout 5 p3 {r} ¦ p1 {r} >f ¦ p1 {r} | p2 {s} ¦ exec p4 {r} ¦ p5 {r} & ¦ xargs p6 <<<{r} ¦ p7 <(p8 {r}) ¦ ( p9 {r} )
p1 E{{1,2}} {{a,b}}{r} ¦ p2 {{1..2}} ¦ p3 ${{{n}:-p}} "${{{n}-q}}" ¦ p4 $#$* ¦ p5 "$*" "$1"$2 ¦ p6 ${{1}} ${{@}}
p7 $10 ¦ p8 "${n}[0]" ¦ $( p9 {r} ) ¦ p1 `p2 {r}` ¦ echo p3 {r} | bash ¦ cat <<X | bash\np4 {q}\nX\n
p5 x{r}y $'{n}' '{r}' \$a ¦ set -- {r}; p6 "$@" ¦ coproc p7 {r} ¦ [[ $(p8 {r}) ]] ¦ (( $(p9) + 1 ))
exec 3< <(p1 {r}) ¦ p2 {r} <<<{s}
"""
FRAMES = r"""
{x}; {y} ¦ {x}; {y} ¦ {x}; {y} ¦ {x}; {y}; {z} ¦ {x} && {y} ¦ {x} || {y} ¦ {x} && {y} || {z}
if {x}; then {y}; else {z}; fi ¦ if {x}; then {y}; fi; {z} ¦ for {n} in {v} {w}; do {x}; {y}; done; {z}
for {n} in {v} x "y z"; do {y}; done ¦ for {n}; do {y}; done ¦ while {x}; do {y}; break; done; {z}
until {x}; do {y}; break; done ¦ while read {n}; do {y}; done <<<"x y" ¦ ({x}; {y}); {z} ¦ {{ {x}; {y}; }}; {z}
{{ {x}; }} | {y} ¦ case ${n} in E*) {x};; x) {y};& *) {z};; esac ¦ case x in x) {x};;& *) {y};; esac; {z}
for (({n}=0; {n}<2; {n}++)); do {y}; done ¦ select {n} in x y; do {y}; break; done <<<1
f() {{ {x}; {y}; }}; f {v}; {z} ¦ f() {{ {x}; }}; f {v} {w}; {y} ¦ f() {{ {y}; {x}; {y}; }}; f {v}; f {w} ¦ {x} & {y}
for {n} in 1 2; do {y}; {x}; {y}; done; {z} ¦ eval '{x}; {y}'; {z} ¦ eval "{x}; {y}" ¦ bash -c '{x}; {y}' _ {v}
time {x}; {y} ¦ ! {x}; {y} ¦ {x}; f() ( {y} ); f; {z} ¦ function g {{ {x}; f {v}; {y}; }}; g {w}; {z} ¦ S=p3; {x}; {y}
S=p3; {x}; for {n} in {v}; do $S ${n}; {x}; done; {z}
"""


def _read(table: str) -> list[str]:
    """The entries of a table; a line break in an entry is written `\\n`."""
    lines = table.strip().split("\n")
    return [entry.replace("\\n", "\n") for line in lines for entry in line.split(" ¦ ")]


class StateTexts:
    """Makes texts by chance, a few commands deep."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.changes, self.calls, self.frames = _read(CHANGES), _read(CALLS), _read(FRAMES)

    def reference(self) -> str:
        name = self.chance.choice(NAMES)
        return self.chance.choice(
            [f"${name}", f"${name}", f'"${name}"', f"${{{name}}}", f'"x${name}"', "$1", '"$@"', "E1"]
        )

    def fill(self, form: str, depth: int) -> str:
        chance = self.chance
        return form.format(
            n=chance.choice(NAMES),
            m=chance.choice(NAMES),
            v=chance.choice(VALUES),
            w=chance.choice([self.reference(), chance.choice(VALUES)]),
            r=self.reference(),
            s=self.reference(),
            q=chance.choice(["$a", "$b", "E1", "${c}"]),
            c="" if "{c}" not in form else self.command(depth - 1),
            x="" if "{x}" not in form else self.text(depth - 1),
            y="" if "{y}" not in form else self.text(depth - 1),
            z="" if "{z}" not in form else self.command(depth - 1),
        )

    def command(self, depth: int) -> str:
        if depth <= 0:
            return f"p{self.chance.randint(1, 9)} {self.reference()}"
        return self.fill(self.chance.choice(self.chance.choice([self.changes, self.calls, self.calls])), depth)

    def text(self, depth: int) -> str:
        if depth <= 0 or self.chance.random() < 0.3:
            return self.command(depth)
        return self.fill(self.chance.choice(self.frames), depth)


def state_text_of(chance: Random) -> str:
    """A text that a shell would run, most often: changes of its state, then calls that show it."""
    texts = StateTexts(chance)
    parts = [texts.text(chance.choice([1, 2, 3])) for _ in range(chance.choice([1, 2, 2, 3]))]
    whole = chance.choice(["; ", "\n", "\n"]).join([*parts, texts.fill(chance.choice(texts.calls), 1)])
    return whole.replace("\n; ", "\n").replace("&; ", "& ")
