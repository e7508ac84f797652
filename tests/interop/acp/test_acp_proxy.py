"""``duolog acp`` between programs: relayed and recorded messages, how it ends, and how it is killed."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from duolog.engine.errors import LogNotFound
from duolog.engine.events import (
    ActorFailed,
    ApprovalGiven,
    FeedbackGiven,
    MessageSent,
    SessionClosed,
    SnapshotTaken,
    UtilityScored,
)
from duolog.engine.log.open import open_log
from duolog.engine.records import Record
from later import imported_later

if TYPE_CHECKING:
    from acp import Agent
    from acp.schema import RequestPermissionResponse
    from acp_agent import Block

acp = imported_later("acp")
schema = imported_later("acp.schema")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="pipes and signals of POSIX"),
]

AGENT = (sys.executable, "-P", str(Path(__file__).parents[2] / "support" / "acp_agent.py"))
BARE = """
import sys
from duolog.interop.acp.process import end_like, run_proxy
grace, recorder, *agent = sys.argv[1:]
sys.exit(end_like(run_proxy(agent, recorder.split(), grace=float(grace), room=100_000)))
"""
SECONDS = 300.0


def command(log: Path, *agent: str, options: Sequence[str] = ()) -> list[str]:
    """The proxy as an editor starts it."""
    return [sys.executable, "-P", "-m", "duolog", "acp", "--log", str(log), *options, "--", *agent]


def bare(*agent: str, recorder: str = "cat", grace: float = SECONDS) -> list[str]:
    """The proxy with another recorder, and another patience with agents whose editor is gone."""
    return [sys.executable, "-P", "-c", BARE, str(grace), recorder, *agent]


@contextmanager
def started(arguments: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    pipe = subprocess.PIPE
    with subprocess.Popen(
        arguments, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def read_line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


def until(holds: Callable[[], bool]) -> None:
    """Waits until something holds that another program brings about."""
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, "it never came to hold"
        threading.Event().wait(0.02)


def gone(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return True
    return status.rpartition(")")[2].split()[0] == "Z"


async def read(log: Path, session: str) -> list[Record]:
    async with open_log(str(log), create=False) as opened:
        return [record async for record in opened.read_all(session=session)]


def recorded(log: Path, session: str, last: str) -> list[Record]:
    """The records of a session, once its trace has one of that kind at the end: the recorder may
    outlive the proxy a little.
    """
    found: list[Record] = []

    def ends() -> bool:
        nonlocal found
        try:
            found = anyio.run(read, log, session)
        except LogNotFound:  # or not a log yet
            return False
        trace = [record for record in found if record.stream == "trace"]
        return bool(trace) and trace[-1].kind == last

    until(ends)
    return found


class Editor:
    """A client of the protocol that says yes, and keeps all updates."""

    def __init__(self) -> None:
        self.updates: list[object] = []

    def on_connect(self, conn: Agent) -> None:
        """Does nothing: this client does not need the connection."""

    async def request_permission(
        self, session_id: str, tool_call: object, options: object, **_: object
    ) -> RequestPermissionResponse:
        outcome = schema.AllowedOutcome(outcome="selected", option_id="yes")
        answer: RequestPermissionResponse = schema.RequestPermissionResponse(outcome=outcome)
        return answer

    async def session_update(self, session_id: str, update: object, **_: object) -> None:
        self.updates.append(update)


def text(prompt: str) -> list[Block]:
    return [acp.text_block(prompt)]


async def talk(editor: Editor, start: Sequence[str], work: Path) -> int | None:
    """A session of a real editor with a real agent; the exit code."""
    client: Any = editor  # which has what this test needs of a client
    file = work / "a.py"
    environment = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    async with acp.spawn_agent_process(
        client, *start, env=environment, transport_kwargs={"shutdown_timeout": SECONDS}
    ) as (agent, process):
        await agent.initialize(protocol_version=1)
        session = (await agent.new_session(cwd=str(work), mcp_servers=[])).session_id
        await agent.prompt(session_id=session, prompt=text("hello"))
        assert (await agent.prompt(session_id=session, prompt=text("edit a.py"))).stop_reason
        await anyio.Path(file).write_text("print('hello, all')\n", encoding="utf-8")
        await agent.set_session_mode(session_id=session, mode_id="code")
        await agent.prompt(session_id=session, prompt=text("big 200000"))
        waiting = anyio.Event()

        async def wait() -> None:
            answer = await agent.prompt(session_id=session, prompt=text("wait"))
            assert answer.stop_reason == "cancelled"
            waiting.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            await agent.cancel(session_id=session)
        assert waiting.is_set()
    code: int | None = process.returncode
    return code


async def test_between_a_real_editor_and_a_real_agent(tmp_path: Path) -> None:
    log, work = tmp_path / "log.db", tmp_path / "work"
    work.mkdir()
    direct, through = Editor(), Editor()
    assert await talk(direct, AGENT, work) == 0
    (work / "a.py").unlink()
    proxied = command(log, *AGENT, options=["--track-edits"])
    assert await talk(through, proxied, work) == 0
    assert through.updates == direct.updates
    records = await anyio.to_thread.run_sync(recorded, log, "acp/s1", "SessionClosed")
    events = [record.event for record in records]
    texts = [event.text for event in events if isinstance(event, MessageSent)]
    assert [one[:12] for one in texts] == [
        "hello",
        "You said hel",
        "edit a.py",
        "Done.",
        "big 200000",
        "x" * 12,
        "wait",
        "I begin",
    ]
    assert len(texts[5]) == 200_000
    assert [one.approved for one in events if isinstance(one, ApprovalGiven)] == [True]
    files = [one.content for one in events if isinstance(one, SnapshotTaken)]
    assert isinstance(files[0], dict)
    assert "print('hello, world')\n" in files[0].values()
    kept = [one.edits_kept for one in events if isinstance(one, FeedbackGiven)]
    assert kept in ([], [0.5, 0.5])  # it is not measured if the recorder was late
    assert len([one for one in events if isinstance(one, UtilityScored)]) == len(kept)


def test_every_byte_passes_unchanged_both_ways(tmp_path: Path) -> None:
    random = Random(17)
    lines = [random.randbytes(random.randrange(200)) for _ in range(2000)]
    sent = b"\n".join([*lines, b'{"id":1}', b"[" * 100_000, b"x" * 5_000_000, b"no end"])
    done = subprocess.run(
        command(tmp_path / "log.db", "cat"),
        input=sent,
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0
    assert done.stdout == sent
    assert b"a message could not be recorded" in done.stderr


@pytest.mark.parametrize(
    ("script", "code", "output"),
    [
        ("cat >&2; exit 7", 7, b""),
        ("kill -SEGV $$", -signal.SIGSEGV, b""),
        ("echo a; exec 1>&-; cat >&2; exit 3", 3, b"a\n"),  # it closes its output and reads on
        ("exec 0<&-; echo a; exit 4", 4, b"a\n"),  # and the other way round
        ("sleep 1000 2>&- & echo $!", 0, None),  # a leftover process holds its output open
    ],
)
def test_the_agent_ends_as_it_does_without_the_proxy(
    script: str, code: int, output: bytes | None
) -> None:
    done = subprocess.run(
        bare("sh", "-c", script), input=b"", capture_output=True, check=False, timeout=300
    )
    if output is None:
        os.kill(int(done.stdout), signal.SIGKILL)
    else:
        assert done.stdout == output
    assert done.returncode == code


def test_an_agent_that_is_not_there(tmp_path: Path) -> None:
    done = subprocess.run(
        command(tmp_path / "log.db", "no-such-agent"),
        input=b"",
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 127
    assert done.stderr == (
        b"duolog acp: cannot start the agent 'no-such-agent': No such file or directory\n"
    )


def test_signals_reach_the_agent() -> None:
    with started(bare("sh", "-c", "trap 'exit 5' TERM; echo ready; read line")) as process:
        assert read_line(process) == b"ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 5
    with started(bare("sh", "-c", "echo ready; read line")) as process:
        assert read_line(process) == b"ready\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == -signal.SIGINT


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_nothing_is_left_when_the_proxy_is_killed_and_what_passed_is_recorded(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log.db"
    update = (
        b'{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":'
        b'"agent_message_chunk","content":{"type":"text","text":"I was about to"}}}}\n'
    )
    with started(command(log, "sh", "-c", "echo $$; cat; trap '' TERM; sleep 1000")) as process:
        agent = int(read_line(process))
        assert process.stdin is not None
        process.stdin.write(update)
        process.stdin.flush()
        assert read_line(process) == update
        process.kill()
        until(lambda: gone(agent))
    records = recorded(log, "acp/s", "SessionClosed")
    assert [one.text for e in records if isinstance(one := e.event, MessageSent)] == [
        "I was about to"
    ]


def test_an_agent_that_crashes_is_recorded_as_failed(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    script = (
        'echo \'{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":'
        '"agent_message_chunk","content":{"type":"text","text":"Oh"}}}}\'; kill -9 $$'
    )
    done = subprocess.run(
        command(log, "sh", "-c", script), input=b"", capture_output=True, check=False, timeout=300
    )
    assert done.returncode == -signal.SIGKILL
    *_, said, failed, closed = [one.event for one in recorded(log, "acp/s", "SessionClosed")]
    assert isinstance(said, MessageSent)
    assert failed == ActorFailed(error="the agent was ended by signal 9", type="exit")
    assert closed == SessionClosed(reason="failed", by="engine")


def test_an_agent_that_stays_though_the_editor_is_gone_is_ended() -> None:
    with started(bare("sh", "-c", "echo $$; exec sleep 1000", grace=0.1)) as process:
        agent = int(read_line(process))
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.stdout.close()
        assert process.wait(SECONDS) == -signal.SIGTERM
        assert gone(agent)


def test_it_passes_though_nothing_can_be_recorded(tmp_path: Path) -> None:
    sent = b"x" * 1_000_000
    log = tmp_path / "file" / "log.db"
    log.parent.write_text("no directory", encoding="utf-8")
    done = subprocess.run(
        command(log, "cat"), input=sent, capture_output=True, check=False, timeout=300
    )
    assert (done.returncode, done.stdout) == (0, sent)
    until(lambda: b"not recorded" in done.stderr)


@pytest.mark.parametrize(
    ("recorder", "said", "when"),
    [
        ("no-such-recorder", b"duolog acp: the session is not recorded: No such file", "at once"),
        (
            "true",
            b"duolog acp: the session is no longer recorded: the recorder is gone",
            "at once",
        ),
        ("sleep 3", b"bytes are not recorded: the recorder was too slow", "at the end"),
    ],
)
def test_it_passes_though_the_recorder_fails(recorder: str, said: bytes, when: str) -> None:
    sent = b"x" * 1_000_000
    with started(bare("cat", recorder=recorder)) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for start in range(0, len(sent), 10_000):
            process.stdin.write(sent[start : start + 10_000])
            process.stdin.flush()
            assert process.stdout.read(10_000) == sent[start : start + 10_000]
        assert select.select([process.stdout], [], [], 0)[0] == []
        assert process.stderr is not None
        told = process.stderr.readline() if when == "at once" else b""
        process.stdin.close()
        assert process.wait(SECONDS) == 0
        assert said in told + process.stderr.read()
