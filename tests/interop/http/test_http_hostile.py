"""Bad requests: each gets the right status, and the server continues as before."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress

import anyio
import pytest
from duolog.engine.budget import Budget
from duolog.engine.errors import InvalidInput
from duolog.engine.events import MessageSent
from duolog.engine.log.open import MemoryLog
from duolog.interop.http.app import make_app
from duolog.interop.http.bodies import receive
from duolog.interop.http.limits import HttpLimits
from duolog.interop.http.requests import InvalidBatch, TooManyEvents, read_batch
from duolog.interop.http.server import HttpServer
from duolog.testing import by
from http_server import Answer, Client, message, serving, until
from hypothesis import given
from hypothesis import strategies as st
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message

pytestmark = pytest.mark.slow

TOKEN = "a-token-of-these-tests-0123456789"
POST = "/v1/sessions/s/events"


@asynccontextmanager
async def target() -> AsyncIterator[Client]:
    """A client with a token, of a server with small limits, which is well afterwards."""
    limits = HttpLimits(body=20_000, events=50)
    async with MemoryLog() as log, serving(log, token=TOKEN, limits=limits) as (found, _):
        yield found
        assert (await found.post("well", message())).status == 200
        assert [record.session async for record in log.read_all()] == ["well", "well"]


def batch(*events: object, **more: object) -> bytes:
    return json.dumps({"events": list(events)} | more).encode()


FAULTS: list[tuple[str, bytes, int | None, str]] = [
    ("no JSON", b"{", None, ""),
    ("nothing", b"", None, ""),
    ("no object", b"[]", None, ""),
    ("no events", b"{}", None, ""),
    ("an empty batch", batch(), None, "events"),
    ("bad UTF-8", batch(message()).replace(b"hello", b"\xff\xfe"), None, ""),
    ("half a surrogate pair", batch(message()).replace(b"hello", b"\\ud800"), None, ""),
    ("half a pair in a name", batch(message()).replace(b'"ann"', b'"\\ud800"'), None, ""),
    ("an unknown field", batch(message(), extra=1), None, ""),
    ("an unknown field of an event", batch(message(), message(when=1)), 1, ""),
    ("an unknown field of a body", batch(message(body={"text": "", "txt": 1})), 0, "body.txt"),
    ("an unknown kind", batch(message(kind="MessageRead")), 0, "kind"),
    ("another kind within", batch(message(body={"kind": "NoteTaken"})), 0, "body.kind"),
    ("no body", batch({"kind": "MessageSent", "actor": "a", "role": "human"}), 0, ""),
    ("a body of another type", batch(message(body=[1])), 0, "body"),
    ("a missing field", batch(message(body={})), 0, "body"),
    ("a field of another type", batch(message(), message(body={"text": 5})), 1, "body.text"),
    ("an unknown role", batch(message(role="king")), 0, "role"),
    ("no actor", batch(message(actor="")), 0, "actor"),
    ("a control character", batch(message(actor="a\x00b")), 0, "actor"),
    ("a long id", batch(message(id="x" * 201)), 0, "id"),
    ("an id twice", batch(message(id="x"), message(id="x")), 1, "id"),
    ("ids and none", batch(message(id="x"), message()), 1, "id"),
    ("a time that is none", batch(message(time="now")), 0, "time"),
    ("an infinite time", batch(message(time=0)).replace(b": 0", b": 1e999"), 0, "time"),
    ("no number", batch(message(time=0)).replace(b": 0", b": NaN"), None, ""),
    ("a time after time", batch(message(time=1e30)), 0, "time"),
    ("more seen than there can be", batch(message(seen=2**80)), 0, "seen"),
    ("a negative version", batch(message(), expected_version=-1), None, "expected_version"),
    ("a scorer in the trace", batch(message(role="scorer")), 0, "role"),
    ("a human who scores", batch(message(), stream="x@1"), 0, "kind"),
    (
        "a rating beyond the scale",
        batch(message(kind="ProgressRated", body={"round": 1, "rating": 6})),
        0,
        "body.rating",
    ),
    (
        "a rating that says nothing",
        batch(message(kind="ProgressRated", body={"round": 1})),
        0,
        "body.missing",
    ),
    (
        "a wrong digest",
        batch(message(kind="SnapshotTaken", body={"content": "a", "digest": "b"})),
        0,
        "body.digest",
    ),
    (
        "an opening in the middle",
        batch(message(), message(kind="SessionOpened", body={})),
        1,
        "body",
    ),
    (
        "a body that is rather deep",
        batch(message(kind="SnapshotTaken", body={"content": "DEEP"})).replace(
            b'"DEEP"', b"[" * 110 + b"]" * 110
        ),
        0,
        "body",
    ),
]


@pytest.mark.parametrize(
    ("body", "event", "field"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS]
)
def test_a_body_that_is_not_valid_says_where(body: bytes, event: int | None, field: str) -> None:
    found = read_batch(body, 0.0, 1000)
    assert isinstance(found, InvalidBatch)
    assert (found.event, found.field) == (event, field)
    assert found.what


@pytest.mark.parametrize("body", [b"{nope", b'{"events": nope}'])
def test_what_is_no_json_is_named_as_people_write_it(body: bytes) -> None:
    found = read_batch(body, 0.0, 1000)
    assert isinstance(found, InvalidBatch)
    assert found.what.startswith("JSON is malformed")


@pytest.mark.parametrize("levels", [500, 2_000, 100_000])
def test_a_body_that_no_decoder_reads_is_not_valid(levels: int) -> None:
    """Versions of Python give up at different depths. After that, the failing event is unknown."""
    body = batch(message(kind="SnapshotTaken", body={"content": "DEEP"}))
    found = read_batch(body.replace(b'"DEEP"', b"[" * levels + b"]" * levels), 0.0, 1000)
    assert isinstance(found, InvalidBatch)
    assert "nests" in found.what


async def test_bodies_that_are_not_valid_are_bad_requests() -> None:
    async with target() as client:
        for _, body, event, field in FAULTS:
            answer = await client.request("POST", POST, body)
            assert answer.status == 400
            told = answer.json
            assert (told["error"], told.get("event"), told.get("field", "")) == (
                "invalid",
                event,
                field,
            )


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_any_bytes_are_a_batch_or_a_fault(data: bytes) -> None:
    assert isinstance(read_batch(data, 0.0, 1000), InvalidBatch)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(message(id="", seen=0, cause=""), PLAIN)))
def test_any_event_is_a_draft_or_a_fault(event: dict[str, object]) -> None:
    found = read_batch(batch(message() | event), 0.0, 1000)
    assert not isinstance(found, TooManyEvents)
    assert isinstance(found, InvalidBatch) or len(found.drafts) == 1


@pytest.mark.parametrize("authorization", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}"])
async def test_without_the_token_nothing_is_told(authorization: str) -> None:
    async with target() as client:
        stranger = Client(client.port)
        for path in ("/v1/sessions", "/v1/stream", "/v1/sessions/s", "/nothing"):
            answer = await stranger.get(path, Authorization=authorization)
            assert answer.status == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            assert TOKEN.encode() not in answer.body
        refused = await stranger.request(
            "POST", POST, batch(message()), {"Authorization": authorization}
        )
        assert refused.status == 401
        assert (await stranger.get("/healthz")).status == 200


async def test_without_a_token_only_those_who_name_this_machine_are_let_in() -> None:
    async with MemoryLog() as log, serving(log) as (client, _):
        for host in ("localhost", "127.0.0.1:80", "[::1]:80", "LOCALHOST:1"):
            assert (await client.get("/v1/sessions", Host=host)).status == 200
        for host in ("evil.example", "10.0.0.1", "localhost.evil.example", "127.0.0.1.evil"):
            assert (await client.get("/v1/sessions", Host=host)).status == 421


async def test_what_is_not_there() -> None:
    async with target() as client:
        unknown = await client.get("/v1/sessions/unknown")
        assert (unknown.status, unknown.json["error"]) == (404, "session-not-found")
        assert (await client.get("/v1/sessions/unknown?after=0")).status == 404
        assert (await client.get("/v2")).status == 404
        assert (await client.get("/v1/sessions/")).status == 400


async def test_methods_that_are_not_for_it() -> None:
    async with target() as client:
        for method, path in (("DELETE", "/v1/sessions/s"), ("GET", POST), ("PUT", POST)):
            assert (await client.request(method, path)).status in (404, 405)
        wrong = await client.request("DELETE", "/v1/sessions")
        assert wrong.status == 405
        assert set(wrong.headers["allow"].split(", ")) == {"GET", "HEAD"}
        assert (await client.request("HEAD", "/v1/stream")).body == b""


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": ""},
        {"Content-Type": "application/json; charset=latin-1"},
        {"Content-Encoding": "gzip"},
    ],
)
async def test_other_media_are_not_supported(headers: dict[str, str]) -> None:
    async with target() as client:
        answer = await client.request("POST", POST, batch(message()), headers)
        assert answer.status == 415


@pytest.mark.parametrize("size", [20_001, 150_000, 10_000_000])
async def test_a_body_that_is_too_large(size: int) -> None:
    async with target() as client:
        head = client.head("POST", POST, {}, size)
        sent = b"" if size > 160_000 else b" " * size
        assert (await client.raw(head + sent)).status == 413


async def test_a_body_that_never_ends() -> None:
    async with target() as client:
        headers = {"Transfer-Encoding": "chunked", "Content-Type": "application/json"}
        head = client.head("POST", POST, headers, None)
        chunk = b"4000\r\n" + b" " * 0x4000 + b"\r\n"
        assert (await client.raw(head + chunk * 10)).status == 413


async def test_too_many_events() -> None:
    async with target() as client:
        assert (await client.post("s", *[message("")] * 51)).status == 413


@pytest.mark.parametrize(
    "path",
    [
        "/v1/sessions/%ff",
        "/v1/sessions/%c3%28?after=0",
        "/v1/sessions/a%00b",
        "/v1/sessions/" + "x" * 201,
        "/v1/sessions?limit=-1",
        "/v1/sessions?limit=0",
        "/v1/sessions/well?after=0&limit=0",
        "/v1/sessions?after=x",
        "/v1/sessions?after=99999999999999999999999",
        "/v1/sessions?after=%ff",
        "/v1/stream?after=-5",
        "/v1/stream?session=",
        "/v1/stream?updates=1",
    ],
)
async def test_addresses_that_make_no_sense(path: str) -> None:
    async with target() as client:
        assert (await client.get(path)).status == 400


async def test_a_position_that_is_none() -> None:
    async with target() as client:
        answer = await client.get("/v1/stream", **{"Last-Event-ID": "seven"})
        assert answer.status == 400


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: elsewhere\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 200_000 + b"\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
    ],
    ids=[
        "TLS",
        "address",
        "no host",
        "two hosts",
        "length",
        "large head",
        "two lengths",
    ],
)
async def test_what_is_no_http(data: bytes) -> None:
    async with target() as client:
        assert (await client.raw(data)).status in (400, 431, 505)


async def test_a_large_head_behind_an_open_stream_ends_the_connection() -> None:
    async with (
        MemoryLog() as log,
        serving(log) as (client, _),
        await anyio.connect_tcp("127.0.0.1", client.port) as stream,
    ):
        await stream.send(client.head("GET", "/v1/stream", {"Connection": "keep-alive"}, None))
        await until(lambda: log.statistics().subscriptions)
        with anyio.fail_after(120), suppress(OSError, Broken):
            await stream.send(b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 1_000_000)
        await until(lambda: not log.statistics().subscriptions)


async def test_a_client_that_offers_another_protocol_is_answered_in_this_one() -> None:
    upgrade = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAM"}
    async with (
        MemoryLog() as log,
        serving(log) as (client, _),
        await anyio.connect_tcp("127.0.0.1", client.port) as stream,
    ):
        for _ in range(2):
            await stream.send(client.head("GET", "/healthz", upgrade, None))
            with anyio.fail_after(120):
                assert b" 200 OK" in await stream.receive()


async def test_a_request_that_does_not_arrive_is_given_up() -> None:
    limits = HttpLimits(patience=0.05)
    async with MemoryLog() as log, serving(log, limits=limits) as (client, _):
        for part in (b"", b"GET /healthz HT"):
            async with await anyio.connect_tcp("127.0.0.1", client.port) as stream:
                if part:
                    await stream.send(part)
                with anyio.fail_after(120), pytest.raises((anyio.EndOfStream, OSError, Broken)):
                    await stream.receive()


async def test_a_body_that_does_not_arrive_is_given_up() -> None:
    async def never() -> Message:
        await anyio.sleep_forever()
        raise AssertionError

    request = Request({"type": "http", "method": "POST", "headers": []}, never)
    with pytest.raises(HTTPException, match=r"did not arrive within 0\.01 seconds") as caught:
        await receive(request, Budget(seconds=0.01))
    assert caught.value.status_code == 408


Broken = anyio.BrokenResourceError


async def test_a_client_that_does_not_read_is_given_up() -> None:
    limits = HttpLimits(patience=0.2)
    async with MemoryLog() as log, serving(log, limits=limits) as (client, _):
        for _ in range(8):
            await log.append("s", [by("human", MessageSent(text="x" * 1_500_000))])
        slow = socket.create_connection(("127.0.0.1", client.port))
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with slow:
            slow.sendall(client.head("GET", "/v1/stream", {}, None))
            await until(lambda: log.statistics().subscriptions)
            await until(lambda: not log.statistics().subscriptions)


async def test_what_is_received_at_once_is_bounded() -> None:
    limits = HttpLimits(body=1000, buffered=1000)
    async with MemoryLog() as log, serving(log, limits=limits) as (client, _):
        async with await anyio.connect_tcp("127.0.0.1", client.port) as slow:
            await slow.send(client.head("POST", POST, {}, 1000) + b" " * 950)
            answers: list[Answer] = []
            while not answers or answers[-1].status == 200:
                answers.append(await client.post("s", message("x" * 100)))
            assert answers[-1].status == 503
            assert answers[-1].headers["retry-after"] == "1"
        while answers[-1].status == 503:
            answers.append(await client.post("s", message("x" * 100)))
        assert answers[-1].status == 200


async def test_streams_are_bounded() -> None:
    limits = HttpLimits(streams=2)
    async with MemoryLog() as log, serving(log, limits=limits) as (client, _):
        async with client.follow(), client.follow():
            await until(lambda: len(log.statistics().subscriptions) == 2)
            assert (await client.get("/v1/stream")).status == 503
        await until(lambda: not log.statistics().subscriptions)
        async with client.follow():
            await until(lambda: log.statistics().subscriptions)


async def test_connections_are_bounded() -> None:
    limits = HttpLimits(connections=5)
    async with MemoryLog() as log, serving(log, limits=limits) as (client, server):
        held = [await anyio.connect_tcp("127.0.0.1", client.port) for _ in range(5)]
        answer = await client.get("/healthz")
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        for _ in range(200):
            await (await anyio.connect_tcp("127.0.0.1", client.port)).aclose()
        await until(lambda: server.refused == 201)
        for stream in held:
            await stream.aclose()
        statuses: list[int] = []
        while not statuses or statuses[-1] == 503:
            statuses.append((await client.get("/healthz")).status)
        assert statuses[-1] == 200


async def test_one_client_cannot_take_all_connections() -> None:
    limits = HttpLimits(per_client=3)
    async with MemoryLog() as log, serving(log, limits=limits) as (client, _):
        held = [await anyio.connect_tcp("127.0.0.1", client.port) for _ in range(3)]
        answer = await client.get("/healthz")
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        other = await anyio.connect_tcp("127.0.0.1", client.port, local_host="127.0.0.2")
        await other.send(client.head("GET", "/healthz", {}, None))
        assert (await other.receive()).startswith(b"HTTP/1.1 200")
        await other.aclose()
        await held.pop().aclose()
        statuses: list[int] = []
        while not statuses or statuses[-1] == 503:
            statuses.append((await client.get("/healthz")).status)
        assert statuses[-1] == 200
        for stream in held:
            await stream.aclose()


async def test_clients_that_are_gone_before_they_are_refused_leave_nothing_behind() -> None:
    failed: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.append(context))
    limits = HttpLimits(per_client=1)
    async with (
        MemoryLog() as log,
        serving(log, limits=limits) as (client, server),
        await anyio.connect_tcp("127.0.0.1", client.port),
    ):
        for _ in range(100):
            # The server notices when it answers, because its writes are refused.
            socket.create_connection(("127.0.0.1", client.port)).close()
        await until(lambda: server.refused == 100)
        assert (await client.get("/healthz")).status == 503  # there is room to say why
    assert not failed


async def test_a_server_that_stops_takes_no_more_connections() -> None:
    async with MemoryLog() as log, serving(log) as (client, server):
        server.stop()
        answer = await client.get("/healthz")
        assert answer.status == 503
        assert answer.json["message"] == "the server is stopping; try again"


def test_limits_that_allow_nothing() -> None:
    with pytest.raises(InvalidInput, match="'streams' must be above 0"):
        HttpLimits(streams=0)


async def test_a_cancelled_server_leaves_nothing_behind() -> None:
    async with MemoryLog() as log:
        for _ in range(2):  # the second socket gets the number of the first
            stopping, limits = anyio.Event(), HttpLimits()
            server = HttpServer(make_app(log, limits=limits, stopping=stopping), stopping, limits)
            with closing(socket.create_server(("127.0.0.1", 0))) as bound:
                port = bound.getsockname()[1]
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(server.run, [bound])
                    await server.started()
                    with anyio.fail_after(120):
                        assert (await Client(port).get("/healthz")).status == 200
                    client = await anyio.connect_tcp("127.0.0.1", port)
                    await client.send(b"GET /healthz HTTP/1.1\r\nHost: here\r\n")
                    await anyio.wait_all_tasks_blocked()
                    tasks.cancel_scope.cancel()
            async with client:
                with (
                    anyio.fail_after(120),
                    pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)),
                ):
                    await client.receive()
