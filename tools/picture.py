"""`make picture`: records a real terminal session as docs/session.svg; fails unless the session ends as expected.

Claude Code fixes a test and asks to push. A person approves, SIGKILL ends everything during the push, and the resumed
run finds that the push arrived. The CLI and the terminal (tmux) are real; the model is `python -m jackline.fake`.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from tools.agents.pins import cache_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "session.svg"
COLUMNS, ROWS = 102, 60
SECONDS = 120.0
TICK = 0.05
PROMPT = r"^\$\s*\Z"
GIT = shutil.which("git") or "git"
PUSH = "git push origin main"
TEST = "#!/bin/sh\nsh ./add.sh 2 2 | grep -qx 4\n"
REPLIES = [
    {"say": "The sum is wrong.", "shell": "sh ./test.sh; cat add.sh"},
    {"shell": "printf 'echo $(($1 + $2))\\n' > add.sh && sh ./test.sh"},
    {"shell": "git commit --quiet --all --message 'Add instead of subtracting'"},
    {"shell": PUSH},
    {"shell": PUSH},  # the resumed model tries again, as models do
    {"say": "The fix is pushed."},
]
# The remote has the commit when this hook runs; the first push then never returns to its caller.
HOOK = """#!/bin/sh
read -r old new ref
git log -1 --format="$ref %h %s" "$new" >> pushes.log
[ -e arrived ] || { : > arrived; exec sleep 600; }
"""
# Like Rich's own template, without the font that it loads from the network: GitHub blocks that.
TEMPLATE = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
  font: 20px/{line_height}px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace;
}}
.{unique_id}-title {{ font: bold 18px sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
THEME = TerminalTheme(
    (22, 27, 34),
    (230, 237, 243),
    [
        (72, 79, 88), (255, 123, 114), (63, 185, 80), (210, 153, 34),
        (88, 166, 255), (188, 140, 255), (57, 197, 207), (177, 186, 196),
    ],
)  # fmt: skip


class Terminal:
    """A shell in its own tmux server."""

    def __init__(self, folder: Path, environ: dict[str, str], start: Path | None = None) -> None:
        self._tmux = ["tmux", "-S", str(folder / "tmux"), "-f", os.devnull]
        self._environ = environ
        shell = ("bash", "--norc", "--noprofile")
        size = ("-x", str(COLUMNS), "-y", str(ROWS))
        self._call("new-session", "-d", *size, "-c", str(start or folder / "sum"), *shell)

    def _call(self, *words: str) -> str:
        done = subprocess.run([*self._tmux, *words], env=self._environ, check=True, capture_output=True, text=True)
        return done.stdout

    def type(self, line: str) -> None:
        self._call("send-keys", "-l", line)
        self._call("send-keys", "Enter")

    def press(self, key: str) -> None:
        """Press one key, by tmux's name for it."""
        self._call("send-keys", key)

    def read(self, *, colours: bool = False) -> str:
        return self._call("capture-pane", "-p", *(["-e"] if colours else [])).rstrip()

    def wait_for(self, pattern: str) -> str:
        """Wait until the screen shows the pattern; returns its first group."""
        deadline = time.monotonic() + SECONDS
        while not (found := re.search(pattern, self.read(), re.MULTILINE)):
            if time.monotonic() > deadline:
                raise SystemExit(f"the screen never showed {pattern!r}:\n{self.read()}")
            time.sleep(TICK)
        return found[found.lastindex or 0]

    def kill_command(self) -> None:
        """Send SIGKILL to the command that the shell runs: jackline itself, without a chance to clean up."""
        shell = self._call("display-message", "-p", "#{pane_pid}").strip()
        (child,) = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
        os.kill(int(child), signal.SIGKILL)

    def close(self) -> None:
        """End the server; a second time it has nothing to do."""
        subprocess.run([*self._tmux, "kill-server"], env=self._environ, check=False, capture_output=True)


def prepare(folder: Path) -> None:
    """Create a repository with a failing test, and a remote that never answers the first push."""
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*words: str) -> None:
        subprocess.run([GIT, *words], cwd=folder, env=environ, check=True)

    git("init", "--quiet", "--bare", "--initial-branch=main", "remote.git")
    git("init", "--quiet", "--initial-branch=main", "sum")
    (folder / "sum" / "add.sh").write_text("echo $(($1 - $2))\n")
    (folder / "sum" / "test.sh").write_text(TEST)
    for words in (
        ("config", "user.name", "Ada"),
        ("config", "user.email", "ada@example.org"),
        ("remote", "add", "origin", str(folder / "remote.git")),
        ("add", "."),
        ("commit", "--quiet", "--message", "Start"),
        ("push", "--quiet", "--set-upstream", "origin", "main"),
    ):
        git("-C", "sum", *words)
    hook = folder / "remote.git" / "hooks" / "post-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(HOOK)
    hook.chmod(0o755)


@contextmanager
def serve_model(folder: Path) -> Iterator[str]:
    """Start the fake model; yields its address."""
    script = folder / "model.json"
    script.write_text(json.dumps({"replies": REPLIES}))
    argv = [sys.executable, "-m", "jackline.fake", "--script", str(script)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        if process.stdin is None or process.stdout is None:
            raise SystemExit("the fake model has no pipes")
        yield process.stdout.readline().strip()
        process.stdin.close()


def build_environment(folder: Path, address: str) -> dict[str, str]:
    claude = Path(cache_folder(os.environ)) / "bin" / "claude"
    if not claude.exists():
        raise SystemExit("Claude Code is not installed for the tests; run `make agents`")
    (folder / "user").mkdir()
    return {
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        "HOME": str(folder / "user"),
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "PS1": "\\n\\[\\e[1;32m\\]$\\[\\e[0m\\] ",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "JACKLINE_HOME": str(folder / "home"),
        "JACKLINE_MCP": "off",
        "JACKLINE_CLAUDE_BINARY": str(claude),
        "ANTHROPIC_BASE_URL": address,
        "ANTHROPIC_API_KEY": "fake-key",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


def wait_for_file(path: Path) -> None:
    deadline = time.monotonic() + SECONDS
    while not path.exists():
        if time.monotonic() > deadline:
            raise SystemExit(f"{path.name} never appeared")
        time.sleep(TICK)


def play(terminal: Terminal, folder: Path) -> None:
    """Play the session of the picture."""
    remote = folder / "remote.git"
    terminal.wait_for(PROMPT)
    terminal.type('jackline run "fix the failing test and push" --agent claude')
    terminal.wait_for(r"\[y")
    terminal.type("y")
    wait_for_file(remote / "arrived")
    terminal.kill_command()
    terminal.wait_for("Killed")
    terminal.wait_for(PROMPT)
    terminal.type("jackline resume 1    # after kill -9 from another terminal, in the middle of the push")
    terminal.wait_for("succeeded")
    terminal.wait_for(PROMPT)
    terminal.type("cat ../remote.git/pushes.log    # every push that the remote received")
    terminal.wait_for("refs/heads/main .* Add instead of subtracting")
    terminal.wait_for(PROMPT)


def check_outcome(folder: Path, environ: dict[str, str]) -> None:
    """Check that the remote received one push, confirmed by the probe."""
    pushes = (folder / "remote.git" / "pushes.log").read_text().splitlines()
    argv = [sys.executable, "-m", "jackline", "receipts", "1", "--json"]
    shown = subprocess.run(argv, cwd=folder / "sum", env=environ, check=True, capture_output=True, text=True).stdout
    receipts = [(one["status"], one["evidence"]) for one in json.loads(shown)["effects"]]
    if len(pushes) != 1 or ("confirmed", "probe") not in receipts:
        raise SystemExit(f"expected one push, confirmed by its probe: {pushes}, {receipts}")


def render(screen: str) -> str:
    lines = Text.from_ansi(screen.strip("\n"))
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(lines, no_wrap=True, overflow="ignore", highlight=False)
    return console.export_svg(title="jackline", theme=THEME, code_format=TEMPLATE, unique_id="session")


def main() -> int:
    if not shutil.which("tmux"):
        raise SystemExit("tmux is not installed")
    with tempfile.TemporaryDirectory(prefix="picture-") as name:
        folder = Path(name)
        prepare(folder)
        with serve_model(folder) as address:
            environ = build_environment(folder, address)
            terminal = Terminal(folder, environ)
            try:
                play(terminal, folder)
                screen = terminal.read(colours=True)
            finally:
                terminal.close()
            check_outcome(folder, environ)
    PICTURE.write_text(render(screen), encoding="utf-8")
    print(f"wrote {PICTURE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
