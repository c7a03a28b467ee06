"""One effect in many wordings, and a workspace in which all of them mean the same: `send E1`."""

from __future__ import annotations

import json
from pathlib import Path

SEND = """#!/bin/sh
# Sends a message: one line in the outbox for each time.
echo "$@" >> "$(dirname "$(readlink -f "$0" 2>/dev/null || echo "$0")")/../outbox"
echo "sent $1"
"""

# `{S}` is the absolute path of the program.
WORDINGS = (
    'send "E1"', "'{S}' \"E1\"", "bin/../bin/send E1", "./bin/send E1", "bash -c 'send E1'", 'sh -c "send E1"',
    "env X=1 send E1", "X=1 send E1", "send E1 2>&1", "send E1 | tee log", "cd bin && ./send E1",
    "echo sending; send E1", "send E1 && echo ok", "send E1 --now", "send E1; send E9", "(send E1)", "{ send E1; }",
    "if true; then send E1; fi", "time send E1", "timeout 10 send E1", "nohup send E1", "command send E1",
    "exec send E1", "eval send E1", "a=E1; send $a", "for i in E1; do send $i; done", 'ID=E1; export ID; send "$ID"',
    "export ID=E1 && send $ID", "send $(echo E1)", "send `cat id`", "echo E1 | xargs send", "send ${ID:-E1}",
    "send E{1,}", "send E?", "printf 'E1\\n' | while read x; do send $x; done", "S=./bin/send; $S E1",
    'f() { send "$@"; }; f E1', "alias s=send; s E1", "sh <<X\nsend E1\nX", "sh bin/send E1", "bash ./bin/send E1",
    ". bin/send E1", "source bin/send E1", "./copy-of-send E1", "ln -sf bin/send s2; ./s2 E1", "sh go.sh",
    "./go.sh", "make deliver", "make V=1 deliver", "make -C . deliver", "npm run deliver",
    "python3 -c 'import subprocess; subprocess.run([\"send\", \"E1\"])'",
)  # fmt: skip
# Not in the list of samples.
VARIANTS = (
    "send  E1", "send 'E''1'", "send E\\1", "send E1;", "send E1 &", "send E1 &\nwait", "send E1 || true", "! send E1",
    "send E1 > out.txt", "send E1 >/dev/null 2>&1", "send E1 | cat", "cat /dev/null | send E1", "true && send E1",
    "mkdir -p out && send E1", "touch x; send E1", "./build.sh && send E1", "send E1 && ./build.sh",
    "send E9; send E1", "send E9 && send E1", "for i in E9 E1; do send $i; done", "while true; do send E1; break; done",
    "until send E1; do :; done", "case x in x) send E1;; esac", "cd . && send E1", "cd /tmp && '{S}' E1",
    "sudo send E1",
    "nice -n 5 send E1", "stdbuf -o0 send E1", "setsid send E1", "bash -lc 'send E1'", "bash -c \"bash -c 'send E1'\"",
    "sh -c 'send \"$0\"' E1", "sh -c 'send $1' x E1", "echo 'send E1' | sh", "bash <<< 'send E1'", "sh < go.sh",
    "cat go.sh | sh", 'bash -c "$(cat go.sh)"', "echo $(send E1)", 'x="$(send E1)"; echo "$x"', "cat <(send E1)",
    'set -- E1; send "$1"', "ID=$(cat id); send $ID", "read x < id; send $x", "xargs send < id", "xargs -a id send",
    "find id -exec send E1 \\;", "parallel send ::: E1", "perl -e 'system(\"send E1\")'", "node -e 'run(\"send E1\")'",
    "PATH=$PWD/bin:$PATH send E1", "trap 'send E1' EXIT", "coproc send E1", "cp bin/send s3; ./s3 E1",
    "echo 'send E1' > go2.sh; sh go2.sh", "./two.sh", "npm run deliver --silent", "npm run all", "make", "make all",
    "python3 tool.py", "env -i send E1", "exec ./bin/send E1", "builtin command send E1", "send -- E1",
    "bin/s?nd E1", "./bin/s* E1", "bin/[s]end E1", "python3 -m tool", "python3 -um tool",
)  # fmt: skip

FILES = {
    "bin/send": SEND,
    "go.sh": "#!/bin/sh\n# delivers\nsend E1\n",
    "two.sh": "#!/bin/sh\nsh ./go.sh\n",
    "build.sh": "#!/bin/sh\necho built\n",
    "tool.py": "import subprocess\nsubprocess.run(['bin/send', 'E1'], check=True)\n",
    "id": "E1\n",
    "Makefile": "SEND = ./bin/send\nall: deliver\n\ndeliver:\n\t$(SEND) E1\n\ntest:\n\techo tested\n",
    "package.json": json.dumps(
        {"scripts": {"deliver": "send E1", "all": "npm run deliver", "test": "echo tested", "resend": "echo none"}}
    ),
}


def write_workspace(folder: Path) -> str:
    """Write the workspace and return the path of the program."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if text.startswith("#!") else 0o644)
    (folder / "copy-of-send").symlink_to("bin/send")
    return str(folder / "bin" / "send")
