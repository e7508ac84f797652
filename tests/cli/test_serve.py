"""``duolog serve`` as a process: its messages, access, how it ends, and how it is killed."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

import anyio
import pytest
from duolog.cli import main
from duolog.engine.events import MessageSent
from duolog.engine.installation import install_command
from duolog.engine.log.open import open_log
from duolog.testing.postgres_server import PostgresServer
from forked import Forked
from http_server import Client, message, until

TOKEN = "a-token-of-these-tests-0123456789"


class Served:
    """A process that serves a log."""

    def __init__(self, *arguments: str, environment: dict[str, str] | None = None) -> None:
        self.process = Forked(
            ["-m", "duolog", "serve", *arguments],
            environment={**os.environ, **(environment or {})},
            stderr=subprocess.PIPE,
        )
        assert self.process.stderr is not None
        self.told = self.process.stderr.readline().decode()
        found = re.search(r"http://[^ ]*:(\d+)", self.told)
        assert found, self.told + self.process.stderr.read().decode()
        self.port = int(found[1])

    def end(self, how: signal.Signals) -> int:
        """Ends it, and waits for that."""
        self.process.send_signal(how)
        return self.wait()

    def wait(self) -> int:
        """Waits for its end."""
        assert self.process.stderr is not None
        self.told += self.process.stderr.read().decode()
        self.process.stderr.close()
        return self.process.wait(300)


@contextmanager
def served(
    log: Path | str, *arguments: str, port: int = 0, environment: dict[str, str] | None = None
) -> Iterator[Served]:
    server = Served("--log", str(log), f"--port={port}", *arguments, environment=environment)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.end(signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_told_to_stop(tmp_path: Path, how: signal.Signals) -> None:
    with served(tmp_path / "log.db") as server:
        client = Client(server.port)

        async def use() -> None:
            assert (await client.post("s", message())).status == 200
            async with client.follow() as told:
                assert (await anext(told)).id == 1
                assert server.end(how) == 0
                assert [one.id async for one in told] == [2]

        anyio.run(use)
    assert server.told.startswith(f"serving {tmp_path / 'log.db'} at http://127.0.0.1:")
    assert server.told.count("\n") == 1


@pytest.mark.slow
def test_a_request_that_has_begun_is_answered_though_the_server_stops(tmp_path: Path) -> None:
    body = b'{"events":[{"kind":"NoteTaken","actor":"a","role":"agent","body":{"text":"x"}}]}'
    with served(tmp_path / "log.db") as server:
        expect = {"Expect": "100-continue"}
        head = Client(server.port).head("POST", "/v1/sessions/s/events", expect, len(body))
        with socket.create_connection(("127.0.0.1", server.port), 300) as stream:
            stream.sendall(head)
            assert stream.recv(1000).startswith(b"HTTP/1.1 100")  # it waits for the body
            server.process.send_signal(signal.SIGTERM)
            while listens(server.port):
                pass  # each look is a connection that the server has to take, or to refuse
            stream.sendall(body)
            assert stream.recv(1000).startswith(b"HTTP/1.1 200")
        assert server.wait() == 0


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 300).close()
    except ConnectionError:
        return False
    return True


@pytest.mark.slow
def test_the_token_is_asked_for_and_never_told(tmp_path: Path) -> None:
    file = tmp_path / "token.txt"
    file.write_text(TOKEN + "\n", encoding="utf-8")

    async def use(port: int) -> None:
        assert (await Client(port).get("/v1/sessions")).status == 401
        assert (await Client(port, TOKEN).get("/v1/sessions")).status == 200

    for arguments, environment in (
        (["--token-file", str(file), "--host", "0.0.0.0"], {}),
        ([], {"DUOLOG_TOKEN": TOKEN}),
    ):
        with served(tmp_path / "log.db", *arguments, environment=environment) as server:
            anyio.run(use, server.port)
            server.end(signal.SIGTERM)
        assert TOKEN not in server.told


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["serve", *arguments]) == 2
    return capsys.readouterr().err


def test_it_does_not_listen_to_others_without_a_token(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DUOLOG_TOKEN", raising=False)
    log = str(tmp_path / "log.db")
    for host in ("0.0.0.0", "::"):
        assert "can be reached by others" in refusal(capsys, "--log", log, "--host", host)
    assert not (tmp_path / "log.db").exists()


def test_what_cannot_be_served(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = str(tmp_path / "log.db")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert "cannot listen on" in refusal(capsys, "--log", log, "--port", port)
    assert "unknown host" in refusal(capsys, "--log", log, "--host", "no.such.host.invalid")
    assert "choose from" in refusal(capsys, "--log", log, "--scorers", "mood")
    assert "cannot read none.txt" in refusal(capsys, "--log", log, "--token-file", "none.txt")
    for token in ("short", "with spaces, though long enough"):
        monkeypatch.setenv("DUOLOG_TOKEN", token)
        told = refusal(capsys, "--log", log)
        assert "DUOLOG_TOKEN must have at least 16" in told
        assert token not in told


def test_it_says_which_extra_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "duolog.interop.http.server", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert install_command("web") in refusal(capsys, "--log", str(tmp_path / "log.db"))


@pytest.mark.slow
def test_scorers_measure_what_is_posted(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        talk = [
            message("Plan a day in Bonn, please."),
            message("Here you are: a museum.", actor="bot", role="agent"),
            message("No, that is wrong. I said no museums!"),
        ]
        assert (await client.post("s", *talk)).status == 200
        with anyio.fail_after(120):
            async with client.follow("?updates=1") as told:
                async for one in told:
                    if one.event == "update" and one.data["update"] == "RatingUpdated":
                        assert one.data["by"].startswith("rule-judge@")
                        return

    with served(tmp_path / "log.db", "--scorers", "rule-judge,retention") as server:
        anyio.run(use, Client(server.port))


CLIENTS, POSTS = 12, 25


@pytest.mark.slow
def test_a_server_that_is_killed_loses_and_doubles_nothing(tmp_path: Path, port: int) -> None:
    log = tmp_path / "log.db"
    random = Random(5)
    acknowledged: Counter[str] = Counter()

    async def insist(client: Client, session: str, number: int) -> None:
        events = [message(f"{number}/{part}", id=f"{number}/{part}") for part in range(3)]
        while True:
            try:
                answer = await client.post(session, *events)
            except OSError:
                await anyio.sleep(0.02)  # as a client would wait before it tries again
                continue
            assert answer.status == 200, answer
            assert [one["id"] for one in answer.json["records"]] == [one["id"] for one in events]
            acknowledged[session] += 1
            return

    async def talk(client: Client, session: str) -> None:
        for number in range(POSTS):
            await insist(client, session, number)

    async def check() -> None:
        async with open_log(str(log)) as opened:
            for number in range(CLIENTS):
                records = [record async for record in opened.read(f"s{number}")]
                texts = [r.event.text for r in records if isinstance(r.event, MessageSent)]
                assert texts == [f"{n}/{part}" for n in range(POSTS) for part in range(3)]
                assert len(records) == len(texts) + 1
            assert not (await opened.verify()).problems

    async def run() -> None:
        with ExitStack() as servers:
            server = servers.enter_context(served(log, port=port))
            client = Client(port)
            async with anyio.create_task_group() as tasks:
                for number in range(CLIENTS):
                    tasks.start_soon(talk, client, f"s{number}")
                for part in range(1, 5):
                    due = (part + random.random() - 0.5) * CLIENTS * POSTS / 5
                    await until(lambda due=due: acknowledged.total() >= due)  # type: ignore[misc]
                    assert server.end(signal.SIGKILL) == -signal.SIGKILL
                    server = servers.enter_context(served(log, port=port))
            assert server.end(signal.SIGTERM) == 0

    anyio.run(run)
    assert acknowledged.total() == CLIENTS * POSTS
    anyio.run(check)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_copies_that_are_replaced_one_after_another_answer_all_and_double_nothing(
    postgres: PostgresServer,
) -> None:
    """As a rolling update does it: a new copy takes requests, then an old one is told to end."""
    log = postgres.url()
    random = Random(5)
    copies: list[Served] = []
    repeated: list[str] = []
    done: Counter[str] = Counter()
    over = anyio.Event()

    async def talk(session: str) -> None:
        while not over.is_set():
            number = done[session]
            event = message(f"{number}", id=f"{number}")
            while True:
                try:
                    answer = await Client(random.choice(copies).port).post(session, event)
                    break
                except OSError:  # it was sent to a copy that has just ended
                    repeated.append(session)
            assert answer.status == 200, answer
            done[session] += 1

    async def run() -> None:
        with ExitStack() as servers:
            copies.extend(servers.enter_context(served(log)) for _ in range(2))
            async with anyio.create_task_group() as tasks:
                for number in range(CLIENTS):
                    tasks.start_soon(talk, f"s{number}")
                for _ in range(4):
                    before = done.total()
                    while done.total() < before + CLIENTS:  # noqa: ASYNC110
                        await anyio.sleep(0.01)
                    new = await anyio.to_thread.run_sync(servers.enter_context, served(log))
                    old, copies[:] = copies[0], [copies[1], new]
                    assert await anyio.to_thread.run_sync(old.end, signal.SIGTERM) == 0
                over.set()

    async def check() -> None:
        async with open_log(log) as opened:
            for number in range(CLIENTS):
                records = [record async for record in opened.read(f"s{number}")]
                texts = [r.event.text for r in records if isinstance(r.event, MessageSent)]
                assert texts == [f"{n}" for n in range(done[f"s{number}"])]
            assert not (await opened.verify()).problems

    anyio.run(run)
    sys.stdout.write(f"{done.total()} posts, {len(repeated)} of them sent again\n")
    anyio.run(check)


def resident(process: int) -> float:
    """Memory of a process, in MB."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


@pytest.fixture
def many_files() -> Iterator[int]:
    """As many files open as the system allows; gives how many connections may be made."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 12_000 if before[1] == resource.RLIM_INFINITY else min(12_000, before[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, before[1]))
    yield min(10_000, most - 500)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_ten_thousand_connections_harm_nothing(tmp_path: Path, many_files: int) -> None:
    get = b"GET /v1/sessions HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with (
        ExitStack() as held,
        served(tmp_path / "log.db", "--connections", "1000", "--per-client", "1000") as server,
    ):
        address = ("127.0.0.1", server.port)
        before = resident(server.process.pid)
        friend = held.enter_context(socket.create_connection(address, 300))

        def ask(stream: socket.socket) -> bytes:
            stream.sendall(get)
            answer = b""
            while not answer.endswith(b"}") and (part := stream.recv(65536)):
                answer += part
            return answer

        assert ask(friend).startswith(b"HTTP/1.1 200")
        streams = []
        for number in range(many_files):
            streams.append(held.enter_context(socket.create_connection(address, 300)))
            if number % 1000 == 0:
                assert ask(friend).startswith(b"HTTP/1.1 200")
        assert ask(streams[500]).startswith(b"HTTP/1.1 200")
        assert streams[1500].recv(65536).startswith((b"HTTP/1.1 503", b""))
        assert resident(server.process.pid) - before < 100
        for stream in streams:
            stream.close()
        while True:
            with socket.create_connection(address, 300) as stream:
                if (answer := ask(stream)).startswith(b"HTTP/1.1 200"):
                    break
                assert answer.startswith(b"HTTP/1.1 503")
        assert ask(friend).startswith(b"HTTP/1.1 200")
        assert server.end(signal.SIGTERM) == 0
        assert server.told.count("\n") == 1
