"""The program `python -m jackline.fake`: serves the fake model until its input ends or it gets SIGTERM."""

from __future__ import annotations

import argparse
import signal
import sys
from typing import TYPE_CHECKING

from jackline.errors import JacklineError, ScriptError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.fake_model.script import Script
    from jackline.fake_model.server import FakeModel


class _Terminated(BaseException):
    """SIGTERM arrived: stop reading, and close everything on the way out."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m jackline.fake", description="A fake model that plays a script.")
    parser.add_argument("--script", required=True, metavar="FILE", help="the replies, as JSON")
    parser.add_argument("--log", metavar="FILE", help="the file that gets one JSON line per request, without headers")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="0 for a free port")
    options = parser.parse_args(arguments)
    try:
        with _build_model(_load_script(options.script), options.log, options.port) as model:
            _serve(model)
    except JacklineError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def _load_script(path: str) -> Script:
    from jackline.fake_model.script import load_script

    try:
        with open(path, encoding="utf-8") as file:
            return load_script(file.read())
    except (OSError, UnicodeDecodeError) as error:
        raise ScriptError(f"the script {path} cannot be read: {error}") from None


def _build_model(script: Script, log: str | None, port: int) -> FakeModel:
    from jackline.fake_model.server import FakeModel

    try:
        return FakeModel(script, log, port=port)
    except (OSError, OverflowError) as error:
        raise UsageError(f"the fake model cannot start: {error}: use another --port or --log") from None


def _serve(model: FakeModel) -> None:
    try:
        signal.signal(signal.SIGTERM, _terminate)  # before the caller knows the address
        print(model.address, flush=True)
        for _ in sys.stdin.buffer:
            pass
    except (_Terminated, KeyboardInterrupt):
        return


def _terminate(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second signal must not interrupt closing
    raise _Terminated
