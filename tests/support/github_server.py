"""A stand-in of GitHub's API on a socket, which the real `gh` is pointed at; nothing leaves the machine."""

from __future__ import annotations

import json
import os
import re
import shutil
import socketserver
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, NamedTuple

import pytest

needs_gh = pytest.mark.skipif(shutil.which("gh") is None, reason="gh is not installed")
_PERMISSION = re.compile(r"/repos/([^/]+/[^/]+)/collaborators/([^/]+)/permission")
_PULL = re.compile(r"pullRequest\(number: (\d+)\)")
_LABEL = re.compile(r"(label\d+): issues\(labels: \[\$(label\d+)\]")


class GitHubServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Issues and pull requests of one repository. `requests` has every request, with its variables."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "github.sock")
        super().__init__(self.path, _Handler)
        self.repository = "octo/garden"
        self.issues: list[dict[str, Any]] = []  # with `labels`, which the answer leaves out
        self.pulls: list[dict[str, Any]] = []
        self.bodies: dict[str, dict[str, Any]] = {}  # by GraphQL id
        self.writers: set[str] = set()
        self.permission_codes: dict[str, int] = {}  # the answer for a login; 0: the connection is closed
        self.is_broken = False
        self.requests: list[tuple[str, dict[str, Any]]] = []
        config = folder / "gh"
        config.mkdir()
        (config / "config.yml").write_text(f"http_unix_socket: {self.path}\n")
        self.environ = {"GH_CONFIG_DIR": str(config), "GH_TOKEN": "dummy"}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def add_issue(self, number: int, author: str, label: str, title: str = "A title", body: str = "A text") -> None:
        self.bodies[f"I{number}"] = {"body": body}
        fields = {"id": f"I{number}", "number": number, "title": title, "author": {"login": author}}
        url = f"https://github.com/{self.repository}/issues/{number}"
        self.issues.append({**fields, "url": url, "labels": [label]})

    def add_comment(self, number: int, comment: int, author: str, body: str, at: str) -> None:
        url = f"https://github.com/{self.repository}/pull/{number}"
        self.bodies[f"C{comment}"] = {"body": body, "path": "src/tree.py", "line": 7}
        fields = {"id": f"C{comment}", "databaseId": comment, "url": f"{url}#r{comment}", "createdAt": at}
        node = {**fields, "author": {"login": author}}
        thread = {"id": f"T{comment}", "isResolved": False, "comments": {"nodes": [node]}}
        names = {"number": number, "title": "A change", "url": url, "headRefName": "grow-tree", "updatedAt": at}
        self.pulls.append({**names, "reviews": {"nodes": []}, "reviewThreads": {"nodes": [thread]}})

    def answer_query(self, query: str, values: dict[str, Any]) -> dict[str, Any] | None:
        """The answer to a query of another kind of server."""
        return None

    def find_log(self, path: str) -> str | None:
        """The log at this path, of another kind of server."""
        return None

    def count(self, start: str) -> int:
        """How many requests began with this path."""
        return sum(path.startswith(start) for path, _ in self.requests)

    def close(self) -> None:
        self.shutdown()
        self.server_close()
        os.unlink(self.path)


class _Pages(NamedTuple):
    """Cuts pages out of lists, as the query asks for them; a cursor is a place in the list."""

    query: str
    cursor: str | None

    def cut(self, name: str, nodes: list[dict[str, Any]]) -> dict[str, Any]:
        asked = re.search(rf"\b{name}\([^)]*?(first|last): (\d+)", self.query)
        if asked is None:
            return {"nodes": []}
        size = int(asked[2])
        if asked[1] == "first":
            start = int(self.cursor or 0)
            end = min(start + size, len(nodes))
            page = {"more": end < len(nodes), "cursor": str(end)}
        else:
            end = len(nodes) if self.cursor is None else int(self.cursor)
            start = max(0, end - size)
            page = {"more": start > 0, "cursor": str(start)}
        return {"nodes": nodes[start:end], "pageInfo": page}

    def cut_pull(self, pull: dict[str, Any]) -> dict[str, Any]:
        whole = _Pages(self.query, None)
        threads = self.cut("reviewThreads", pull["reviewThreads"]["nodes"])
        threads["nodes"] = [
            {**thread, "comments": whole.cut("comments", thread["comments"]["nodes"])} for thread in threads["nodes"]
        ]
        return {**pull, "reviews": self.cut("reviews", pull["reviews"]["nodes"]), "reviewThreads": threads}


class _Handler(BaseHTTPRequestHandler):
    server: GitHubServer

    def address_string(self) -> str:
        return "unix"

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        asked = json.loads(self.rfile.read(length))
        values = asked.get("variables", {})
        self.server.requests.append((self.path, values))
        if self.server.is_broken:
            self._answer(502, {"message": "Bad gateway"})
            return
        if "node(id:" in asked["query"]:
            data = {name.replace("id", "node"): self.server.bodies.get(one, {}) for name, one in values.items()}
            self._answer(200, {"data": data})
            return
        answered = self.server.answer_query(asked["query"], values)
        if answered is not None:
            self._answer(200, answered)
            return
        if f"{values.get('owner')}/{values.get('name')}" != self.server.repository:
            self._answer(200, {"data": {"repository": None}, "errors": [{"message": "Could not resolve"}]})
            return
        pages = _Pages(asked["query"], values.get("cursor"))
        if one := _PULL.search(asked["query"]):
            pull = next(pull for pull in self.server.pulls if pull["number"] == int(one[1]))
            found: dict[str, Any] = {"pullRequest": pages.cut_pull(pull)}
        else:
            found = {"pullRequests": pages.cut("pullRequests", self.server.pulls)}
            pulls = [_Pages(asked["query"], None).cut_pull(pull) for pull in found["pullRequests"]["nodes"]]
            found["pullRequests"]["nodes"] = pulls
        for alias, variable in _LABEL.findall(asked["query"]):
            nodes = [issue for issue in self.server.issues if values[variable] in issue["labels"]]
            plain = [{k: v for k, v in node.items() if k != "labels"} for node in nodes]
            found[alias] = pages.cut("issues", plain)
        self._answer(200, {"data": {"repository": found}})

    def do_GET(self) -> None:
        self.server.requests.append((self.path, {}))
        path = self.path.removeprefix("/api/v3")  # of a host that is not github.com
        log = self.server.find_log(path)
        if log is not None:
            self._send(200, "text/plain", log.encode())
            return
        found = _PERMISSION.fullmatch(path)
        if found is None or self.server.is_broken:
            self._answer(404 if found is None else 502, {"message": "Not Found"})
            return
        code = self.server.permission_codes.get(found[2], 200)
        if code == 0:
            return
        permission = "write" if found[2] in self.server.writers else "read"
        self._answer(code, {"permission": permission} if code == 200 else {"message": "Must have push access"})

    def _answer(self, code: int, values: dict[str, Any]) -> None:
        self._send(code, "application/json", json.dumps(values).encode())

    def _send(self, code: int, kind: str, text: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
