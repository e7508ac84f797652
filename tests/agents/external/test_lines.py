"""An agent that is a program on JSON lines takes a seat, whatever the program does."""

from __future__ import annotations

import json
import os
import re
import select
from pathlib import Path
from typing import Any

import anyio
import pytest
from duolog.engine.errors import SessionInterrupted
from duolog.engine.records import TRACE
from external_agents import LONG, SECRET, calls, program, record, session

pytestmark = pytest.mark.slow

LOOP = """
import json, os, sys, time
HERE = os.path.dirname(os.path.abspath(__file__))
def reply(turn, *actions, **more):
    print(json.dumps({"turn": turn["turn"], "actions": list(actions), **more}), flush=True)
def do(name, **arguments):
    return {"name": name, "arguments": arguments}
def first(what):
    path = os.path.join(HERE, what)
    if os.path.exists(path):
        return False
    open(path, "w").close()
    return True
for line in sys.stdin:
    turn = json.loads(line)
    with open(os.path.join(HERE, "turns"), "a") as file:
        file.write(line)
"""
ASK_THEN_TOAST = """
    said = [one for one in turn["news"] + turn.get("history", []) if one["kind"] == "MessageSent"]
    if not any("Butter" in one["text"] for one in said):
        reply(turn, do("message", text="What on it?"), do("wait"), tokens={"completion": 60})
    else:
        reply(turn, do("submit", content="toast with butter"))
"""


def turns(folder: Path) -> list[dict[str, Any]]:
    """The turns that the program was sent."""
    return [json.loads(line) for line in (folder / "turns").read_text("utf-8").splitlines()]


def test_a_program_works_on_what_it_is_shown_and_never_sees_the_private_part(
    tmp_path: Path,
) -> None:
    result, records = anyio.run(record, session(f"exec:{program(tmp_path, LOOP + ASK_THEN_TOAST)}"))
    assert (result.reason, result.utility) == ("finished", 1.0)
    sent = (tmp_path / "turns").read_text("utf-8")
    assert SECRET in str([one.body for one in records])
    assert SECRET not in sent
    one, two = turns(tmp_path)[:2]
    assert one["request"] == "Toast, please."
    assert {"message", "wait", "submit", "finish", "ask"} <= {a["name"] for a in one["actions"]}
    assert two["news"][0]["kind"] == "MessageSent"
    # Modelled time, not the program's: a second to start, and 60 tokens at 60 a second.
    assert calls(records)[0].latency == pytest.approx(2.0)
    again = anyio.run(record, session(f"exec:{program(tmp_path, LOOP + ASK_THEN_TOAST)}"))
    assert [one.body for one in again[1]] == [one.body for one in records]


def test_a_recorded_session_goes_on_without_asking_again(tmp_path: Path) -> None:
    made = session(f"exec:{program(tmp_path, LOOP + ASK_THEN_TOAST)}")
    _, records = anyio.run(record, made)
    trace = [one for one in records if one.stream == TRACE]
    cut = next(i for i, one in enumerate(trace) if one.kind == "MessageSent" and i > 2) + 1
    (tmp_path / "turns").unlink()
    _, resumed = anyio.run(record, made, trace[:cut])
    bodies = [one.body for one in resumed if one.stream == TRACE]
    assert bodies == [one.body for one in trace]
    late, *_ = turns(tmp_path)
    assert late["turn"] == 2
    assert late["history"][0]["kind"] == "MessageSent"


@pytest.mark.parametrize(
    ("mishap", "says"),
    [
        ("sys.exit('the oven is broken')", "exit code 1 .*the oven is broken"),
        ("time.sleep(600)", "no whole answer from 'exec-agent' within 5 s"),
        ("print('x' * 9_000_000, flush=True, end=''); time.sleep(600)", "wrote more than 8 MB"),
        (
            "sys.stderr.write('x' * 40_000_000); time.sleep(600)",
            "more than 32 MB to its standard error",
        ),
        ("os.kill(os.getpid(), 9)", "was ended by SIGKILL"),
    ],
)
def test_a_program_that_fails_is_started_again(tmp_path: Path, mishap: str, says: str) -> None:
    text = f"{LOOP}    if first('failed'):\n        {mishap}\n{ASK_THEN_TOAST}"
    timeout = 5.0 if "within" in says else LONG
    made_of = session(
        f"exec:{program(tmp_path, text)}", timeout=timeout, until=(tmp_path / "failed").exists
    )
    result, records = anyio.run(record, made_of)
    assert result.reason == "finished"
    failed, *_, made = calls(records)
    assert failed.error is not None
    assert re.search(says, failed.error), failed.error
    assert made.error is None


def test_a_program_that_always_fails_leaves_a_session_to_be_resumed(tmp_path: Path) -> None:
    made = session(f"exec:{program(tmp_path, 'import sys; sys.exit(3)')}")
    with pytest.raises(SessionInterrupted, match=r"exec:.* ended with exit code 3 before"):
        anyio.run(record, made)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("print('Hello!', flush=True)", "Hello!"),
        ("print('[1]', flush=True)", "Expected `object`, got `array`"),
        ("reply(turn, do('fly'))", "unknown action 'fly'"),
        ("reply(turn, do('message', words='Hi'))", "message was called wrongly"),
        ("print('[' * 100_000, flush=True)", "a reply is one line such as"),
    ],
)
def test_replies_that_cannot_be_used_are_answered_with_why_and_fail_the_session(
    tmp_path: Path, line: str, says: str
) -> None:
    result, records = anyio.run(record, session(f"exec:{program(tmp_path, f'{LOOP}    {line}')}"))
    assert result.reason == "failed"
    assert result.error is not None
    assert "no reply of exec-agent could be used in 3 tries" in result.error
    assert says in result.error
    sent = turns(tmp_path)
    assert len(sent) == len(calls(records)) == 3
    assert says in str(sent[1]["error"])


def test_a_wrong_reply_is_put_right(tmp_path: Path) -> None:
    text = f"{LOOP}    if 'error' not in turn and first('wrong'):\n        reply(turn, do('fly'))\n        continue\n{ASK_THEN_TOAST}"
    result, _ = anyio.run(record, session(f"exec:{program(tmp_path, text)}"))
    assert result.reason == "finished"


def test_leave_is_asked_and_given(tmp_path: Path) -> None:
    text = f"""{LOOP}
    if any(one["kind"] == "ApprovalGiven" and one["approved"] for one in turn["news"]):
        reply(turn, do("submit", content="toast"))
    else:
        reply(turn, do("ask", question="May I use the last bread?"), do("wait"))
"""
    result, records = anyio.run(record, session(f"exec:{program(tmp_path, text)}"))
    assert result.reason == "finished"
    assert "ApprovalGiven" in [one.kind for one in records]


def test_nothing_is_left_running_after_a_session(tmp_path: Path) -> None:
    text = f"""
import signal, subprocess, sys, os
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-E", "-S", "-c", "import time; time.sleep(600)"])
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "children"), "w") as file:
    file.write(str(child.pid))
{LOOP}{ASK_THEN_TOAST}"""
    result, _ = anyio.run(record, session(f"exec:{program(tmp_path, text)}"))
    assert result.reason == "finished"
    child = int((tmp_path / "children").read_text("utf-8"))
    try:
        ended = os.pidfd_open(child)
    except ProcessLookupError:
        return
    assert select.select([ended], [], [], 300)[0]
    os.close(ended)
