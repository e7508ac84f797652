"""Runs a server and its clients on a network that fails, and checks their promises.

Each acknowledged batch is in the log once; any other is there whole or not at all. Followers get all
events, in order, once. A server that stops ends soon after, and leaves nothing behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any, Final, cast, final

import anyio
import msgspec

from ....engine.log.contract import EventLog
from ....engine.log.exchange.jsonl_export import to_jsonl
from ....engine.log.memory import MemoryLog
from ....engine.records import ENGINE, Record
from ....interop.http.app import make_app
from ....interop.http.limits import HttpLimits
from ....interop.http.server import HttpServer
from ...tools import collect, require
from ..faults import failure_text
from ..model import check_import, check_trace
from ..scenario import Operation, Outcome, Scenario
from .client import Client, Manner
from .link import LINK_FAULTS, Listener, Network, NetworkLoop

__all__ = ("run_network_scenario",)

_LIMITS: Final = HttpLimits(
    body=8000,
    events=20,
    buffered=6000,
    streams=3,
    page=5,
    page_bytes=2000,
    connections=6,
    per_client=4,
)
_LATEST: Final = 12.0  # seconds after which a server that stops has ended
_SOON: Final = 2.0  # the same if no client holds it up
_HOLDING: Final = {"vanish", "delay", "late", "left", "mute"}
_LONG: Final = 3000.0  # seconds after which all that was lost has been noticed


def run_network_scenario(scenario: Scenario) -> Outcome:
    """Runs the server and the clients of a seed."""
    run = _Run(scenario)
    loop = NetworkLoop(lambda step: None)  # type: ignore[abstract]
    loop.network = run.network
    failure = ""
    try:
        loop.run_until_complete(run.main())
        require(not loop.errors, f"nobody caught this: {loop.errors}")
        run.check_end(loop)
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 (it is what was looked for)
        failure = failure_text(error)
    finally:
        loop.abandon()
        loop.close()
    return Outcome(failure, tuple(run.happened + run.network.happened), loop.steps)


@final
class _Post:
    """A posted batch and its known outcome."""

    def __init__(self, operation: Operation, session: str, stream: str) -> None:
        self.session = session
        self.stream = stream
        self.tags = [f"op{operation.number}.{at}" for at in range(operation.size)]
        self.answered: list[tuple[int, int]] | None = None  # positions and versions
        self.refused = False
        self.unsure = False  # a try of it may have been taken


@final
class _Run:
    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        random = Random(f"network {scenario.seed}")
        on_link = {
            each.at: (each.kind, each.draw)
            for each in scenario.faults
            if each.kind in (*LINK_FAULTS, "stop")
        }
        self._manners = {
            each.at: (each.kind, each.draw)
            for each in scenario.faults
            if each.kind not in (*LINK_FAULTS, "stop")
        }
        self.network = Network(random, on_link, self._stop)
        self.happened: list[str] = []
        self._requests = 0
        self._posts: dict[int, _Post] = {}
        self._over = False
        self._server: HttpServer | None = None
        self._stopped = 0.0

    async def main(self) -> None:
        """The whole run."""
        async with MemoryLog() as log:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._serve, log)
                await self._work(log)
                await self._last(log)
                self._over = True
                self._stop()
            records = await collect(log.read_all())
            self._check(records)
            await check_import(records)
            with anyio.move_on_after(_LONG):
                while self.network.open:  # noqa: ASYNC110 (nothing signals it)
                    await anyio.sleep(10)

    def check_end(self, loop: NetworkLoop) -> None:
        """Checks that no connection or task is left."""
        require(not self.network.open, f"{self.network.open} ends of connections are left")
        left = [task for task in loop.tasks() if "_shutdown_watcher" not in repr(task)]
        require(not left, f"tasks are left: {left}")

    # --- the server -------------------------------------------------------------------------------

    async def _serve(self, log: EventLog) -> None:
        """One server after the other, until all is done."""
        while not self._over:
            stopping = anyio.Event()
            app = make_app(log, limits=_LIMITS, stopping=stopping)
            self._server = server = HttpServer(app, stopping, _LIMITS)
            _forget_other_loops()
            await server.run([cast(Any, Listener(self.network))])
            took = asyncio.get_running_loop().time() - self._stopped
            held_up = any(each.kind in _HOLDING for each in self._scenario.faults)
            most = _LATEST if held_up else _SOON
            require(took <= most, f"the server took {took:.1f} s to stop")
            await anyio.sleep(0.2)

    def _stop(self) -> None:
        if self._server is not None:
            self._stopped = asyncio.get_running_loop().time()
            self._server.stop()

    # --- the clients ------------------------------------------------------------------------------

    async def _work(self, log: EventLog) -> None:
        operations = [each for each in self._scenario.operations if each.kind != "follow"]
        followers = [
            _Follower(self.network, each.draw % 3)
            for each in self._scenario.operations
            if each.kind == "follow"
        ][: _LIMITS.streams]
        async with anyio.create_task_group() as following:
            for follower in followers:
                following.start_soon(follower.run)
            async with anyio.create_task_group() as working:
                for who in sorted({each.worker for each in operations}):
                    own = [each for each in operations if each.worker == who]
                    working.start_soon(self._worker, log, own)
            head = log.statistics().position
            with anyio.move_on_after(_LONG):
                while any(each.last < head for each in followers):  # noqa: ASYNC110 (nothing signals it)
                    await anyio.sleep(1)
            following.cancel_scope.cancel()
        records = await collect(log.read_all())
        for follower in followers:
            follower.check(records[:head])

    async def _worker(self, log: EventLog, operations: Sequence[Operation]) -> None:
        client = Client(self.network, keeps=bool(operations[0].draw & 16))
        try:
            for operation in operations:
                if operation.kind == "read":
                    await self._read(log, client, f"s{operation.session}")
                else:
                    await self._post(log, client, operation)
        finally:
            client.drop()

    def _manner(self) -> Manner:
        self._requests += 1
        kind, draw = self._manners.get(self._requests, ("", 0))
        if not kind:
            return Manner()
        self.happened.append(kind)
        return Manner(
            half_closed=kind == "half",
            twice=kind == "twice",
            left=kind == "left",
            storm=12 if kind == "storm" else 0,
            mute=_LIMITS.patience + 5 if kind == "mute" else 0.0,
            late=10.0 ** (draw % 4 - 2) if kind == "late" else 0.0,
        )

    async def _post(self, log: EventLog, client: Client, operation: Operation) -> None:
        session = f"s{operation.session}"
        stream = "judge@1" if operation.kind == "measure" else "trace"
        post = self._posts[operation.number] = _Post(operation, session, stream)
        batch: dict[str, object] = {"events": [_event(operation, tag) for tag in post.tags]}
        if operation.kind == "measure":
            batch["stream"] = stream
        if operation.kind == "expect":
            batch["expected_version"] = len(await collect(log.read(session)))

        def unsure() -> None:
            post.unsure = True

        path, body = f"/v1/sessions/{session}/events", msgspec.json.encode(batch)
        manner = self._manner()
        post.unsure = manner.twice
        answer = await client.request("POST", path, body, manner, unsure)
        if answer is None:
            return
        if answer.status == 200:
            records = answer.json["records"]
            require([each["actor"] for each in records] == post.tags, "an answer is about its post")
            post.answered = [(each["position"], each["version"]) for each in records]
        elif answer.status == 409:
            name = answer.json["error"]
            conflict = operation.kind == "expect" and name == "version-conflict"
            require(conflict or self._may_be_closed(session, name), f"refused: {answer.json}")
            post.refused = not post.unsure
        else:
            require(
                answer.status == 400 and manner.half_closed, f"{answer.status}: {answer.body!r}"
            )

    def _may_be_closed(self, session: str, error: str) -> bool:
        closing = any(
            each.kind == "close" and f"s{each.session}" == session
            for each in self._scenario.operations
        )
        return error == "session-closed" and closing

    async def _read(self, log: EventLog, client: Client, session: str) -> None:
        there = [_json(record) async for record in log.read_all(session=session)]
        if not there:
            return
        found: list[object] = []
        after: int | None = 0
        while after is not None:
            path = f"/v1/sessions/{session}?after={after}&limit=3"
            answer = await client.request("GET", path, None, self._manner())
            if answer is None or answer.status != 200:
                return
            found += answer.json["records"]
            after = answer.json["next"]
        require(found[: len(there)] == there, "pages give what the log holds")

    async def _last(self, log: EventLog) -> None:
        """Whatever has happened: in the end, a post is taken."""
        self.network.calm()
        self._manners.clear()
        operation = Operation(
            10**6, "append", 0, 99, 10, 3
        )  # as large as fits into an empty buffer
        client = Client(self.network, keeps=False)
        await self._post(log, client, operation)
        require(self._posts[operation.number].answered is not None, "in the end, a post is taken")
        answer = await client.request("GET", "/healthz")
        client.drop()
        require(answer is not None and answer.status == 200, "in the end, the server is well")
        streams = answer.json["streams"] if answer is not None else 0
        require(streams <= self.network.open, "event streams end with their connections")

    # --- what must hold ---------------------------------------------------------------------------

    def _check(self, records: Sequence[Record]) -> None:
        positions = [record.position for record in records]
        require(positions == list(range(1, len(records) + 1)), f"positions have gaps: {positions}")
        streams: dict[tuple[str, str], list[Record]] = {}
        for record in records:
            streams.setdefault((record.session, record.stream), []).append(record)
        for (_, stream), found in streams.items():
            versions = [record.version for record in found]
            require(versions == list(range(1, len(found) + 1)), f"versions have gaps: {versions}")
            if stream == "trace":
                check_trace(found)
        for number, post in self._posts.items():
            own = [record for record in records if record.actor in post.tags]
            where = [(record.position, record.version) for record in own]
            whole = [record.actor for record in own] == post.tags
            require(not own or whole, f"post {number} is there in part, or twice: {own}")
            require(not (post.refused and own), f"post {number} was refused, and is there")
            answered = post.answered is None or post.answered == where
            require(answered, f"post {number} was answered with {post.answered}, and is at {where}")
        tags = {tag for post in self._posts.values() for tag in post.tags} | {ENGINE}
        strays = {record.actor for record in records} - tags
        require(not strays, f"nobody posted this: {strays}")


@final
class _Follower:
    """A client that follows the log, and resumes at its last position when its connection ends."""

    def __init__(self, network: Network, after: int) -> None:
        self._client = Client(network, keeps=True)
        self._begin = self.last = after
        self._got: list[tuple[int, object]] = []
        self._text = b""

    async def run(self) -> None:
        """Follows, until it is cancelled."""
        while True:
            self._text = b""
            try:
                await self._client.follow("/v1/stream", self.last, self._take)
            except ConnectionError:
                pass
            await anyio.sleep(1)

    def _take(self, part: bytes) -> None:
        *events, self._text = (self._text + part).split(b"\n\n")
        for event in events:
            fields = dict(line.split(b": ", 1) for line in event.split(b"\n") if line[:1] != b":")
            require(fields.get(b"event") != b"error", f"a stream failed: {event!r}")
            if b"id" in fields:
                self.last = int(fields[b"id"])
                self._got.append((self.last, msgspec.json.decode(fields[b"data"])))

    def check(self, records: Sequence[Record]) -> None:
        """It got all records, once, in order."""
        wanted = [(record.position, _json(record)) for record in records[self._begin :]]
        require(
            self._got[: len(wanted)] == wanted,
            f"who follows gets all, once: {[at for at, _ in self._got]} of {len(records)}",
        )


def _event(operation: Operation, tag: str) -> dict[str, object]:
    kind, role = "MessageSent", "agent" if operation.draw & 8 else "human"
    body: dict[str, object] = {"text": tag + "x" * (operation.draw % 4 * 150)}
    if operation.kind == "measure":
        kind, role = "UtilityScored", "scorer"
        body = {
            "value": 0.5,
            "snapshot": 1,
            "scorer": {"name": "judge", "version": "1", "config": ""},
        }
    elif operation.kind == "close" and tag.endswith(f".{operation.size - 1}"):
        kind, role, body = "SessionClosed", "human", {"by": tag}
    event: dict[str, object] = {"kind": kind, "actor": tag, "role": role, "time": 1.0, "body": body}
    return event if operation.kind == "expect" else event | {"id": f"id {tag}"}


def _json(record: Record) -> object:
    return msgspec.json.decode(to_jsonl(record))


def _forget_other_loops() -> None:
    """``sse-starlette`` has one task per thread that waits for a server to stop; that of an earlier
    run went with its loop.
    """
    from sse_starlette import sse

    vars(sse)["_thread_state"].__dict__.clear()
