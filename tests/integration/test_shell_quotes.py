"""Quoted text that bash evaluates as a name, an index or a number: no accepted parse misses the program it runs.

Each line is run by a real bash in an empty folder. `touch hit` is the program that may be hidden.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from jackline.shell import list_commands
from jackline.shell.model import NotParsed

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 20
LINES = r"""
echo ${y['$(touch hit)']}
echo ${y["$(touch hit)"]}
echo ${y[$'$(touch hit)']}
echo ${y[$'\x24(touch hit)']}
echo "${y['$(touch hit)']}"
echo "${y["$(touch hit)"]}"
echo ${#y['$(touch hit)']}
echo ${!y['$(touch hit)']}
echo ${y['a[$(touch hit)]']}
echo ${y[0]:-'$(touch hit)'}
echo ${y:-'$(touch hit)'}
echo ${y:'$(touch hit)'}
echo ${y:0:'$(touch hit)'}
y=abc; echo ${y:'a[$(touch hit)]'}
y=abc; echo ${y:0:'a[$(touch hit)]'}
y=abc; echo "${y:'a[$(touch hit)]'}"
echo ${y:"a['\$(touch hit)']"}
echo ${y[\$(touch hit)]}
echo ${y[\$\(touch hit\)]}
echo ${y[`touch hit`]}
echo ${y['`touch hit`']}
y['$(touch hit)']=1
y["$(touch hit)"]=1
y[\$(touch hit)]=1
y=(['$(touch hit)']=1)
y=([0]=1 ['$(touch hit)']=2)
echo $(( y['$(touch hit)'] ))
echo $(( '$(touch hit)' ))
echo $(( "$(touch hit)" ))
echo $(( y["\$(touch hit)"] ))
echo $(( $'y[\x24(touch hit)]' ))
echo $(( y[\$(touch hit)] ))
(( y['$(touch hit)'] ))
for (( i=y['$(touch hit)']; i<0; i++ )); do :; done
[[ -v 'a[$(touch hit)]' ]]
[[ 'a[$(touch hit)]' -eq 0 ]]
[[ -n 'a[$(touch hit)]' ]]
[[ a['$(touch hit)'] -eq 0 ]]
[[ -v a['$(touch hit)'] ]]
[[ -R 'a[$(touch hit)]' ]]
[ -v 'a[$(touch hit)]' ]
[ 'a[$(touch hit)]' -eq 0 ]
test -v 'a[$(touch hit)]'
unset 'a[$(touch hit)]'
a=(1); unset 'a[$(touch hit)]'
a=(1); unset a['$(touch hit)']
read 'a[$(touch hit)]' <<< x
read -a 'a[$(touch hit)]' <<< x
read -u 'a[$(touch hit)]' <<< x
read -t 'a[$(touch hit)]' x <<< x
printf -v 'a[$(touch hit)]' x
printf '%d' 'a[$(touch hit)]'
printf '%d' '$(touch hit)'
declare 'a[$(touch hit)]=1'
declare -i 'a=b[$(touch hit)]'
declare -i a='b[$(touch hit)]'
typeset 'a[$(touch hit)]=1'
f() { local 'a[$(touch hit)]=1'; }; f
export 'a[$(touch hit)]=1'
readonly 'a[$(touch hit)]=1'
let 'a[$(touch hit)]=1'
let a='b[$(touch hit)]'
declare -n r='a[$(touch hit)]'; echo $r
declare -n r='a[$(touch hit)]'; r=1
r='a[$(touch hit)]'; echo ${!r}
r='a[$(touch hit)]'; echo $((r))
r='a[$(touch hit)]'; (( r ))
r='a[$(touch hit)]'; [[ r -eq 0 ]]
r='a[$(touch hit)]'; [[ -v $r ]]
r='a[$(touch hit)]'; test -v $r
r='$(touch hit)'; echo ${y[$r]}
r='a[$(touch hit)]'; echo ${y[$r]}
r='a[$(touch hit)]'; echo ${y[r]}
r='a[$(touch hit)]'; y=abc; echo ${y:r}
r='a[$(touch hit)]'; y=abc; echo ${y:$r}
r='a[$(touch hit)]'; read "$r" <<< x
r='a[$(touch hit)]'; printf -v "$r" x
r='a[$(touch hit)]'; unset "$r"
r='a[$(touch hit)]'; declare "$r=1"
r='a[$(touch hit)]'; let "$r=1"
r='a[$(touch hit)]'; declare -i x=$r
r='a[$(touch hit)]'; declare -i x; x=$r
r='a[$(touch hit)]'; x=(1 2); echo ${x[@]:r}
r='$(touch hit)'; echo ${r@P}
r='$(touch hit)'; echo "${r@P}"
wait -n -p 'a[$(touch hit)]'
mapfile 'a[$(touch hit)]' <<< x
getopts ab 'a[$(touch hit)]' -a
getopts ab 'a[$(touch hit)]'
exec {a['$(touch hit)']}>/dev/null
exec {a[$(touch hit)]}>/dev/null
shift 'a[$(touch hit)]'
exit 'a[$(touch hit)]'
return 'a[$(touch hit)]'
f() { return 'a[$(touch hit)]'; }; f
break 'a[$(touch hit)]'
coproc 'a[$(touch hit)]' { :; }
for 'a[$(touch hit)]' in 1; do :; done
echo ${y[$(( z['$(touch hit)'] ))]}
echo ${y[${z['$(touch hit)']}]}
echo ${y[${z:-'$(touch hit)'}]}
echo ${y[${z:-'a[$(touch hit)]'}]}
echo ${y["a['\$(touch hit)']"]}
echo ${y["a[\$(touch hit)]"]}
echo ${y["\$(touch hit)"]}
echo ${y[0]:-${z['$(touch hit)']}}
echo ${y[@]:'a[$(touch hit)]'}
x=(1 2); echo ${x[@]:'a[$(touch hit)]'}
echo ${y/'$(touch hit)'/b}
echo ${y#'$(touch hit)'}
echo ${y^'$(touch hit)'}
set -- 1; echo ${1:'a[$(touch hit)]'}
set -- 1; echo ${@:'a[$(touch hit)]'}
declare -A m; echo ${m['$(touch hit)']}
declare -A m; m['$(touch hit)']=1
declare -A m; [[ -v m['$(touch hit)'] ]]
declare -A m; [[ -v 'm[$(touch hit)]' ]]
HISTSIZE='a[$(touch hit)]'
RANDOM='a[$(touch hit)]'
SECONDS='a[$(touch hit)]'
OPTIND='a[$(touch hit)]'
RANDOM='a[$(touch hit)]' true
BASHPID='a[$(touch hit)]'
LINENO='a[$(touch hit)]'
declare -i n=1; n='a[$(touch hit)]'
declare -i n=1; n+='a[$(touch hit)]'
declare -i n; printf -v n 'a[$(touch hit)]'
declare -i n; : ${n:='a[$(touch hit)]'}
declare -ai n; n=('a[$(touch hit)]')
declare -i n; export n='a[$(touch hit)]'
local -i n='a[$(touch hit)]'
readonly -i n='a[$(touch hit)]'
echo $[ y['$(touch hit)'] ]
echo ${y['$''(touch hit)']}
echo ${y["\$"'(touch hit)']}
echo ${y[\$'(touch hit)']}
echo ${y["$"'(touch hit)']}
echo ${y[$\(touch hit)]}
echo "${y[\$(touch hit)]}"
echo "${y["\$(touch hit)"]}"
y=abc; echo "${y:\$(touch hit)}"
""".strip().splitlines()
# Ordinary texts with quotes in braces stay readable: what is rejected is only a quoted `$` or backtick.
PLAIN = r"""
echo ${name:-'a b'}
echo "${other:-'quoted'}"
echo ${table['key']} ${table["key"]} "${list[@]}" ${list[$((i + 1))]} ${list[i]} ${#list[@]} ${!list[@]}
echo ${path//\// } ${path##*/} ${path%'.txt'} "${text//\"/}"
echo ${name:-$(date)} "${name:-`date`}" ${text:0:3} ${text:$start:${#other}}
echo ${list[$(date '+$')]} "${name:-$(grep '$x' "$file")}"
""".strip().splitlines()


def runs(line: str, folder: Path) -> bool:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder)}
    subprocess.run(
        ["/bin/bash", "-c", line],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    return (folder / "hit").exists()


def names(line: str) -> bool:
    """Whether the parse is rejected, or names the program."""
    try:
        found = list_commands(line)
    except NotParsed:
        return True
    return any([word.text for word in one.words] == ["touch", "hit"] for one in found)


@pytest.mark.parametrize("line", LINES)
def test_what_bash_runs_is_not_missed(line: str, tmp_path: Path) -> None:
    if runs(line, tmp_path):
        assert names(line)


def test_bash_runs_many_of_them(tmp_path: Path) -> None:
    """The comparison means something only if bash evaluates quoted text here at all."""
    assert runs("echo ${y['$(touch hit)']}", tmp_path)


@pytest.mark.parametrize("line", PLAIN)
def test_plain_quotes_in_braces_are_read(line: str) -> None:
    assert list_commands(line)
