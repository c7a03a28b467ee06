"""The built-in smoke task with the real Claude Code: one request over the network, one commit."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from jackline.fake_model.script import Reply
from tests.agents.test_claude_door import SetStage, set_stage

__all__ = ["set_stage"]

COMMIT = (
    "curl --silent --show-error --head --max-time 20 {url} | head -n 1 >> smoke.txt"
    " && git add -- smoke.txt && git commit --quiet --message 'Smoke test'"
)


def test_it_requests_a_page_and_commits_once(set_stage: SetStage) -> None:
    methods: list[str] = []

    class Page(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            methods.append(self.command)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/"
    try:
        stage = set_stage(Reply(shell=COMMIT.format(url=url)), Reply(say="the network works"))
        ended = stage.run("", "--task", "debug_smoke_commit", "--var", f"url={url}")
    finally:
        server.shutdown()
        server.server_close()
    assert ended.code == 0, ended
    assert methods == ["HEAD"]
    assert f"--max-time 20 {url}`" in stage.model.wait(1)[0].text
    assert "200" in stage.git("show", "HEAD:smoke.txt")
    assert [line.partition(" ")[2] for line in stage.show()["changes"]["commits"]] == ["Smoke test"]
