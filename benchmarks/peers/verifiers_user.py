"""A peer of training episodes: ``verifiers`` with its own modelled user (``pip install verifiers``).

Its environment ``user-sim`` has two models talk: the assistant, and a user whose instructions are the task. Here both
are a server in this process that answers at once. Only the processor time of verifiers counts, without its start;
it writes the traces that it always writes.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Final

__all__ = ("PACKAGE", "turn_of_theirs")

PACKAGE = "verifiers"

_TURNS: Final = 10  # replies of the assistant in each conversation
_FEW: Final = 10  # conversations of the run that tells what the start takes

_ROWS = """
import verifiers.v1 as vf


class Talks(vf.Taskset[vf.Task[vf.TaskData], vf.TasksetConfig]):
    def load(self):
        for number in range({count}):
            data = vf.TaskData(idx=number, prompt="Plan a trip of three days to Madison for two people.")
            yield vf.Task(data, self.config.task)


__all__ = ["Talks"]
"""


class _Null(BaseHTTPRequestHandler):
    """Answers at once; as the user, says that it is done after some turns."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = [one["role"] for one in asked["messages"]].count("assistant")
        is_user = "role-playing a USER" in str(asked["messages"][0]["content"])
        text = "###DONE###" if is_user and said >= _TURNS else "That would be fine with me."
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        body = json.dumps(
            {
                "id": "1",
                "object": "chat.completion",
                "created": 0,
                "model": "null",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": usage,
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


def turn_of_theirs(conversations: int) -> float:
    """Milliseconds of the processor for each reply of the assistant, with the user's reply to it.

    Raises:
        RuntimeError: its program failed.
    """
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Null)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        start = _spent(server.server_port, _FEW)
        more = _spent(server.server_port, _FEW + conversations)
    finally:
        server.shutdown()
        server.server_close()
    return 1e3 * (more - start) / (conversations * _TURNS)


def _spent(port: int, conversations: int) -> float:
    """The seconds of the processor that one run of its program takes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "null_talks.py").write_text(_ROWS.format(count=conversations), encoding="utf-8")
        command = [
            f"{Path(sys.executable).parent / 'vf-eval'}",
            "null-talks",
            *("--env.id", "user-sim", "--env.user.max-turns", str(_TURNS + 2)),
            *("--env.assistant.harness.id", "null", "--env.assistant.runtime.type", "subprocess"),
            *("--env.user.runtime.type", "subprocess"),
            *("--client.base-url", f"http://127.0.0.1:{port}/v1", "--client.api-key-var", "NO_KEY"),
            *("-m", "null", "-c", "64", "--no-push", "--no-rich", "--run.name", "run"),
            *("-o", f"{folder / 'out'}"),
        ]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ran = subprocess.run(
            command,
            env={**os.environ, "PYTHONPATH": name},
            capture_output=True,
            text=True,
            check=False,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if ran.returncode:
            raise RuntimeError(f"verifiers: {ran.stdout[-500:]}{ran.stderr[-2000:]}")
        traces = (folder / "out" / "run" / "traces.jsonl").read_text(encoding="utf-8")
        if len(traces.splitlines()) != conversations:
            raise RuntimeError(f"verifiers: {len(traces.splitlines())} of {conversations} ended")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
