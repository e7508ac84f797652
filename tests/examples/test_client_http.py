"""The client in plain Python against a real server: as a program, and while the server is away."""

from __future__ import annotations

import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.error import HTTPError

import pytest
from duolog.examples.client_http import Duolog, said

TOKEN = "a-token-of-these-tests-0123456789"


@pytest.mark.slow
def test_it_runs_as_it_says(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUOLOG_TOKEN", TOKEN)
    serve = [sys.executable, "-m", "duolog", "serve", "--log", str(tmp_path / "log.db")]
    with subprocess.Popen([*serve, "--port", "0"], stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        address = server.stderr.readline().split(" at ")[1].split()[0]
        try:
            done = subprocess.run(
                [sys.executable, str(root / "examples" / "client_http.py"), address],
                capture_output=True,
                text=True,
                check=True,
                timeout=300,
            )
            client = Duolog(address, TOKEN)
            again = [{"id": "once", **said("ann", "human", "Hello?")}]
            assert client.post("a/b c", again) == client.post("a/b c", again)
            with pytest.raises(HTTPError, match="401"):
                Duolog(address, "wrong").post("s", again)
        finally:
            server.terminate()
            server.stderr.read()
    lines = [line.split() for line in done.stdout.splitlines()]
    kinds = [kind for name, kind, *_ in lines if name == "record"]
    assert kinds == [
        "SessionOpened",
        "MessageSent",
        "ActionTaken",
        "ActionResolved",
        "MessageSent",
        "MessageSent",
        "SessionClosed",
    ]
    assert lines[-1][:2] == ["update", "SessionEnded"]


def test_it_sends_the_same_again_until_it_is_acknowledged() -> None:
    bodies: list[bytes] = []

    class Shaky(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            if len(bodies) == 1:
                return  # cut off without an answer
            self.send_response(503 if len(bodies) == 2 else 200)
            self.end_headers()
            self.wfile.write(b'{"records": [{"version": 1}]}')

        def log_message(self, format: str, *args: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Shaky)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        client = Duolog(f"http://127.0.0.1:{server.server_port}")
        assert client.post("s", [said("ann", "human", "Hi")]) == [{"version": 1}]
    finally:
        server.shutdown()
        server.server_close()
    assert len(bodies) == 3
    assert len(set(bodies)) == 1
