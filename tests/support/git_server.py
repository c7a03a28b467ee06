"""A real git server on loopback: `git http-backend` behind a small HTTP server, which records every push."""

from __future__ import annotations

import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_HOOK = """#!/bin/sh
cat >> "$GIT_DIR/pushes"
"""


class GitServer(ThreadingHTTPServer):
    """Serves one bare repository, octo/garden, with the default branch main."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _GitHandler)
        self.root = folder / "served"
        self.bare = self.root / "octo" / "garden.git"
        self.bare.parent.mkdir(parents=True)
        _git("init", "--quiet", "--bare", "--initial-branch=main", str(self.bare))
        _git("-C", str(self.bare), "config", "http.receivepack", "true")
        hook = self.bare / "hooks" / "post-receive"
        hook.write_text(_HOOK)
        hook.chmod(0o755)
        self.host = f"127.0.0.1:{self.server_address[1]}"
        self.url = f"http://{self.host}/octo/garden.git"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def pushes(self) -> list[tuple[str, str]]:
        """The name and the new commit of each ref that was moved, in order."""
        path = self.bare / "pushes"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(name, new) for _, new, name in (line.split() for line in lines)]

    def read_ref(self, name: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(self.bare), "rev-parse", "--verify", "--quiet", name], capture_output=True, check=False
        )
        return done.stdout.decode().strip()

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class _GitHandler(BaseHTTPRequestHandler):
    server: GitServer

    def log_message(self, *_: object) -> None:
        pass

    def _serve(self) -> None:
        path, _, query = self.path.partition("?")
        length = int(self.headers.get("Content-Length") or 0)
        body = self._read_chunks() if self.headers.get("Transfer-Encoding") == "chunked" else self.rfile.read(length)
        environ = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.server.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=environ, capture_output=True, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = [line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line]
        status = next((int(value.split()[0]) for name, value in fields if name == "Status"), 200)
        self.send_response(status)
        for name, value in fields:
            if name != "Status":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _read_chunks(self) -> bytes:
        chunks = []
        while size := int(self.rfile.readline().strip(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()


def _git(*words: str) -> None:
    subprocess.run(["git", *words], check=True)
