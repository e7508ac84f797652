"""The short programs that embed the engine: each runs as it says, and leaves a log to look at."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Self

import pytest
from forked import run_forked

pytestmark = pytest.mark.slow  # these tests start programs

LIMIT = 300


def run(root: Path, name: str, *arguments: str) -> list[str]:
    """The output of a program, which may not print a warning."""
    program = str(root / "examples" / name)
    done = subprocess.run(
        [sys.executable, "-W", "error", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def duolog(*arguments: str) -> str:
    """The output of a Duolog command."""
    done = run_forked(["-P", "-m", "duolog", *arguments], Path.cwd(), os.environ)
    assert done.returncode == 0, done.stderr
    return done.stdout


def report(log: Path) -> list[dict[str, object]]:
    """What ``duolog sessions`` tells of a log."""
    found: list[dict[str, object]] = json.loads(duolog("sessions", str(log), "--json"))
    return found


def test_the_synchronous_one(root: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    lines = run(root, "embed_sync.py", str(log))
    assert "  round 2: the human kept 75% of the agent's draft" in lines
    assert "  round 3: rounds (2, 3) were unproductive, rated (2, 2)" in lines
    assert lines[-1] == f"{log}: 11 events, 2 stops advised"
    assert run(root, "embed_sync.py", str(log))[-1] == lines[-1]
    session, _ = report(log)
    assert (session["task"], session["state"], session["rounds"]) == ("letters", "abandoned", 4)


def test_the_agui_stream(root: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    lines = run(root, "agui_stream.py", str(log))
    assert [line.split()[0] for line in lines].count("RUN_FINISHED") == 3
    assert lines[-3:] == [
        "  round 1: the human kept 80% of the agent's draft",
        "  round 2: the human kept 67% of the agent's draft",
        "  round 3: the human kept 100% of the agent's draft",
    ]
    [session] = report(log)
    assert (session["task"], session["state"], session["rounds"]) == ("invitations", "ended", 3)
    shown = duolog("show", str(log), str(session["session"]))
    assert "find_table(seats=6) → noon" in shown
    assert "(agui.RUN_FINISHED, kept as it came)" in shown
    assert run(root, "agui_stream.py", str(log))[-3:] == lines[-3:]


class Service:
    """The chat service, running, and a client of it."""

    def __init__(self, root: Path, log: Path) -> None:
        program = str(root / "examples" / "chat_service.py")
        command = [sys.executable, "-W", "error", program, str(log), "0"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self.port = 0

    def __enter__(self) -> Self:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if found := re.search(r"running on http://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
                return self
        raise AssertionError("the service did not start")

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGINT)
        assert self.process.stderr is not None
        self.process.stderr.read()
        self.process.stderr.close()
        self.process.wait(LIMIT)

    def ask(self, method: str, path: str, body: object = None) -> HTTPResponse:
        """An answer, not read yet."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        headers = {"Content-Type": "application/json", "Connection": "close"}
        connection.request(method, path, json.dumps(body), headers)
        answer = connection.getresponse()
        assert answer.status == 200
        return answer

    def json(self, method: str, path: str, body: object = None) -> dict[str, str]:
        """An answer."""
        with self.ask(method, path, body) as answer:
            found: dict[str, str] = json.load(answer)
            return found

    def advice_until(self, path: str, name: str) -> dict[str, list[dict[str, object]]]:
        """Streamed events by kind, until one of that kind has come."""
        found: dict[str, list[dict[str, object]]] = {}
        with self.ask("GET", path) as answer:
            kind = ""
            while name not in found:
                field, _, value = answer.readline().decode().strip().partition(": ")
                if field == "event":
                    kind = value
                elif field == "data":
                    found.setdefault(kind, []).append(json.loads(value))
        return found


def test_the_chat_service(root: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    with Service(root, log) as service:
        first = {"id": "m1", "text": "Invite the team to lunch."}
        answer = service.json("POST", "/chats/7/messages", first)
        assert service.json("POST", "/chats/7/messages", first) == answer
        assert answer["draft"] == "Dear all,\nInvite the team to lunch.\nRegards"
        letter = "Dear all,\nLunch on Thursday?\nRegards"
        assert service.json("PUT", "/chats/7/draft", {"text": letter}) == {"draft": letter}
        complaints = ("That is wrong, shorter!", "No, still wrong!", "It is still too long!")
        for number, text in enumerate(complaints, 2):
            service.json("POST", "/chats/7/messages", {"id": f"m{number}", "text": text})
        found = service.advice_until("/chats/7/advice", "StopAdvice")
        assert found["StopAdvice"][0]["tau"] == 1
        assert found["EffortUpdated"][0]["round"] == 1
        assert {advice["move"] for advice in found["Advice"]} <= {
            "act",
            "ask",
            "yield",
            "hand over",
        }
        asked = 0
        reply = ""
        end = time.monotonic() + LIMIT  # the advice has been recorded; the service hears of it soon
        while "a colleague" not in reply and time.monotonic() < end:
            asked += 1
            hello = {"id": f"h{asked}", "text": "Hello?"}
            reply = service.json("POST", "/chats/7/messages", hello)["reply"]
        assert "a colleague" in reply, f"nobody was called after {asked} messages"
        assert service.json("POST", "/chats/7/end") == {"ended": "7"}
        found = service.advice_until("/chats/7/advice", "UtilityUpdated")
        assert found["UtilityUpdated"]
    [session] = report(log)
    assert (session["session"], session["task"], session["state"]) == ("7", "letters", "ended")
