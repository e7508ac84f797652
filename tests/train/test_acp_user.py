"""The simulated user over the Agent Client Protocol: a client of another make, and a real process."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import duolog
import msgspec
import pytest
from duolog.cli import main
from duolog.engine.events import SnapshotTaken
from duolog.engine.log.contract import Store
from duolog.engine.log.open import open_log
from duolog.train.acp_user import AcpUser
from duolog.train.hosted import STOP, read_user
from later import imported_later

acp = imported_later("acp")

USER = "tutoring/proactive/0/7"


class Harness:
    """A client that keeps what it is told."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def session_update(self, session_id: str, update: Any, **_: object) -> None:  # noqa: ANN401
        self.heard.append(update.content.text)


async def _talk(arguments: list[str], client: Harness) -> list[dict[str, Any]]:
    """Talks to the process until the session is over; what each prompt's result has of Duolog."""
    found = []
    command = [sys.executable, "-P", "-m", "duolog", "user", "--acp", *arguments]
    async with acp.spawn_agent_process(
        client, *command, transport_kwargs={"shutdown_timeout": 60.0}
    ) as (agent, _):
        begun = await agent.initialize(protocol_version=1)
        assert begun.agent_capabilities.prompt_capabilities.embedded_context
        made = await agent.new_session(cwd="/", mcp_servers=[])
        for number in range(60):
            said = [acp.text_block(f"Lovely weather today! {number}")]
            answer = await agent.prompt(session_id=made.session_id, prompt=said)
            assert answer.stop_reason == "end_turn"
            found.append(answer.field_meta["duolog"])
            assert found[-1]["session"] == made.session_id
            if found[-1]["done"]:
                break
    return found


@pytest.mark.slow
def test_another_client_talks_to_a_user_in_a_process_of_its_own(tmp_path: Path) -> None:
    path, client = tmp_path / "users.db", Harness()

    async def main() -> None:
        found = await _talk([USER, "--log", str(path)], client)
        assert "due tomorrow" in client.heard[0]
        assert client.heard[-1].endswith(STOP)
        assert len(client.heard) == len(found)
        assert found[-1]["ended"] in ("abandoned", "finished", "limit")
        async with duolog.open(f"sqlite:///{path}") as log:
            trajectory = await duolog.score_log(log, found[-1]["session"])
        assert found[-1]["effort"]["acts"] == trajectory.points[-1].effort["acts"]
        assert trajectory.state == found[-1]["ended"]

    anyio.run(main)


class Wire:
    """A connection within the process."""

    def __init__(self, users: AcpUser) -> None:
        self._users = users
        self._out, self._in = anyio.create_memory_object_stream[bytes](9)
        self._back, self._lines = anyio.create_memory_object_stream[bytes](99)

    async def run(self) -> None:
        async def receive() -> bytes:
            try:
                return await self._in.receive()
            except anyio.EndOfStream:
                return b""

        with self._in, self._back:
            await self._users.serve(receive, self._back.send)

    async def send(self, line: bytes) -> None:
        await self._out.send(line + b"\n")

    async def read(self) -> Any:  # noqa: ANN401
        return msgspec.json.decode(await self._lines.receive())

    async def call(self, method: str, **parameters: object) -> Any:  # noqa: ANN401
        await self.send(msgspec.json.encode({"id": 1, "method": method, "params": parameters}))
        while "id" not in (found := await self.read()):
            pass
        return found

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        self._out.close()
        self._lines.close()


@asynccontextmanager
async def connected(log: Store, user: str | None = USER) -> AsyncIterator[Wire]:
    """A connection, which is closed at the end of the block."""
    async with anyio.create_task_group() as tasks:
        wire = Wire(AcpUser(log, None if user is None else read_user(user)))
        tasks.start_soon(wire.run)
        with wire:
            yield wire


def test_bad_messages_are_answered_with_errors_and_the_next_is_served() -> None:
    async def main() -> None:
        async with open_log("memory://") as log, connected(log, None) as wire:
            await wire.send(b"Hello!")
            said = await wire.read()
            assert (said["error"]["code"], said["id"]) == (-32700, None)
            assert "'Hello!', which is not JSON-RPC" in said["error"]["message"]
            for method, parameters, code, why in (
                ("session/dance", {}, -32601, "does not do session/dance"),
                (
                    "session/prompt",
                    {"sessionId": "nowhere"},
                    -32602,
                    "session 'nowhere' is not open",
                ),
                ("session/prompt", 5, -32602, "session '' is not open"),
                ("session/new", {}, -32602, "no user is named"),
                ("session/new", {"_meta": {"duolog": {"user": "x"}}}, -32602, "'x' is not a user"),
                (
                    "session/new",
                    {"_meta": {"duolog": {"user": "x/y/0/1"}}},
                    -32602,
                    "unknown task",
                ),
            ):
                await wire.send(
                    msgspec.json.encode({"id": 2, "method": method, "params": parameters})
                )
                error = (await wire.read())["error"]
                assert error["code"] == code
                assert why in error["message"]
            made = await wire.call("session/new", _meta={"duolog": {"user": USER}})
            assert "tutoring" in made["result"]["sessionId"]

    anyio.run(main)


def test_a_resource_is_put_up_as_the_output_and_the_end_closes_the_session() -> None:
    block = {"type": "resource", "resource": {"uri": "file:///a", "text": "x = 3\nThe end."}}

    async def main() -> None:
        async with open_log("memory://") as log:
            async with connected(log=log) as wire:
                session = (await wire.call("session/new"))["result"]["sessionId"]
                hello = {"type": "text", "text": "Hello!"}
                for prompt in ([hello], [hello, block]):
                    answer = await wire.call("session/prompt", sessionId=session, prompt=prompt)
                    assert answer["result"]["stopReason"] == "end_turn"
                empty = await wire.call("session/prompt", sessionId=session, prompt=[])
                assert "needs a text" in empty["error"]["message"]
            put = [r async for r in log.read_all(session=session) if r.kind == "SnapshotTaken"]
            assert [
                one.event.content
                for one in put
                if one.role == "agent" and isinstance(one.event, SnapshotTaken)
            ] == ["x = 3\nThe end."]
            assert (await log.summary(session)).state == "cancelled"

    anyio.run(main)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["x", "--acp", "--log", "memory://"], "'x' is not a user"),
        (["trvel/lazy/0/7", "--acp", "--log", "memory://"], "did you mean 'travel'?"),
        (["travel/lasy/0/7", "--acp", "--log", "memory://"], "did you mean 'lazy'?"),
        ([USER, "--log", "memory://"], "is for --acp"),
        (["--acp"], "--log"),
    ],
)
def test_wrong_options_are_one_clear_line(
    arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["user", *arguments]) == 2
    said = capsys.readouterr().err
    assert why in said
    assert "Traceback" not in said
