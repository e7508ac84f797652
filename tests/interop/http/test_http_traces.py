"""The receiver of OTLP/HTTP: requests of a real exporter, and bad ones."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from duolog.engine.events import MessageSent, SessionClosed
from duolog.engine.log.open import MemoryLog
from duolog.engine.records import Draft
from duolog.interop.http.limits import HttpLimits
from duolog.interop.importers.run import import_foreign
from duolog.interop.importers.traces.live import LiveTraces
from duolog.interop.importers.traces.otlp import OtlpImporter
from http_server import Answer, Client, serving
from log_measurements import rounds_of
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.trace import Status, StatusCode
from otlp_story import CONVERSATION, request, story

pytestmark = pytest.mark.slow

SESSION = f"/v1/sessions/{CONVERSATION}"


async def send(
    client: Client, body: bytes, media: str = "application/json", **headers: str
) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await client.request("POST", "/v1/traces", body, {"Content-Type": media, **named})


def encoded(spans: list[dict[str, Any]]) -> bytes:
    return json.dumps(request(*spans)).encode()


def said(text: str, role: str = "user") -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


async def test_what_the_exporter_of_the_sdk_sends_becomes_a_session() -> None:
    """Spans of a real provider, one request for each, in protobuf and compressed."""
    async with MemoryLog() as log:
        traces = LiveTraces(log)
        async with serving(log, token="t" * 20, traces=traces) as (client, _):
            exporter = OTLPSpanExporter(
                endpoint=f"http://127.0.0.1:{client.port}/v1/traces",
                headers={"authorization": f"Bearer {client.token}"},
                compression=Compression.Gzip,
            )

            def work() -> None:
                provider = TracerProvider()
                provider.add_span_processor(SimpleSpanProcessor(exporter))
                tracer = provider.get_tracer("app")
                with tracer.start_as_current_span("POST /chat"):
                    about = {"gen_ai.operation.name": "invoke_agent", "session.id": CONVERSATION}
                    with tracer.start_as_current_span("invoke_agent", attributes=about):
                        call: dict[str, str | int] = {
                            "gen_ai.operation.name": "chat",
                            "gen_ai.input.messages": said("Find a train"),
                            "gen_ai.usage.input_tokens": 7,
                        }
                        with tracer.start_as_current_span("chat m", attributes=call) as span:
                            span.set_attribute("gen_ai.output.messages", said("At 8.", "assistant"))
                        tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "book"}
                        with tracer.start_as_current_span("execute_tool", attributes=tool) as span:
                            span.set_status(Status(StatusCode.ERROR, "sold out"))
                provider.shutdown()

            await anyio.to_thread.run_sync(work)
            await traces.record(anyio.current_time() + 1.5)
            found = (await client.get(f"{SESSION}?after=0")).json
    bodies = [one["body"] for one in found["records"]]
    assert [one["kind"] for one in bodies] == [
        "SessionOpened",
        "MessageSent",
        "ModelCalled",
        "MessageSent",
        "ActionTaken",
        "ActionResolved",
    ]
    assert (bodies[1]["text"], bodies[3]["text"]) == ("Find a train", "At 8.")
    assert bodies[2]["tokens"]["prompt"] == 7
    assert (bodies[5]["outcome"], bodies[5]["error"]) == ("failed", "sold out")


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "identity"])
async def test_json_is_recorded_as_the_same_file_is_imported(tmp_path: Path, encoding: str) -> None:
    source = tmp_path / "spans.json"
    data = encoded(story())
    source.write_bytes(data)
    packed = {"gzip": gzip.compress(data), "deflate": zlib.compress(data), "identity": data}
    async with MemoryLog() as log, MemoryLog() as other:
        traces = LiveTraces(log)
        async with serving(log, traces=traces) as (client, _):
            answer = await send(client, packed[encoding], content_encoding=encoding)
        assert (answer.status, answer.json) == (200, {})
        await traces.record(0.0, everything=True)
        await import_foreign(other, source, OtlpImporter())
        one, two = [
            [(r.kind, r.actor, r.time, r.id, r.body) async for r in held.read(CONVERSATION)]
            for held in (log, other)
        ]
        assert one == two


async def test_spans_are_recorded_by_themselves_and_follow_one_another() -> None:
    async with MemoryLog() as log:
        traces = LiveTraces(log, settle=0.01)
        async with serving(log, traces=traces) as (client, _), anyio.create_task_group() as tasks:
            tasks.start_soon(traces.run)
            async with client.follow() as told:
                assert (await send(client, encoded(story()))).status == 200
                with anyio.fail_after(120):
                    assert (await anext(told)).data["session"] == CONVERSATION
            tasks.cancel_scope.cancel()


async def test_what_is_rejected_is_counted_and_the_rest_is_taken() -> None:
    bad = {**story()[0], "spanId": ""}
    closed = [
        Draft(MessageSent(text="x"), "ann", "human", 1.0),
        Draft(SessionClosed(reason="ended", by="ann"), "ann", "human", 1.0),
    ]
    over = story()[-1] | {"traceId": "t9"}
    over["attributes"] = [
        {"key": "gen_ai.conversation.id", "value": {"stringValue": "over"}},
        {"key": "gen_ai.operation.name", "value": {"stringValue": "invoke_agent"}},
    ]
    async with MemoryLog() as log:
        await log.append("over", closed)
        traces = LiveTraces(log)
        async with serving(log, traces=traces) as (client, _):
            answer = await send(client, encoded([*story(), bad, over]))
        partial = answer.json["partialSuccess"]
        assert (answer.status, partial["rejectedSpans"]) == (200, "2")
        assert "span 10: invalid span: it lacks an id" in partial["errorMessage"]
        await traces.record(0.0, everything=True)
        assert await rounds_of(log, CONVERSATION) == 2


async def test_protobuf_is_answered_in_protobuf() -> None:
    message = ExportTraceServiceRequest()
    message.resource_spans.add().scope_spans.add().spans.add(name="no id")
    async with MemoryLog() as log, serving(log, traces=LiveTraces(log)) as (client, _):
        media = "application/x-protobuf"
        answer = await send(client, message.SerializeToString(), media)
        found = ExportTraceServiceResponse.FromString(answer.body)
        assert answer.headers["content-type"] == media
        assert found.partial_success.rejected_spans == 1
        assert "lacks an id" in found.partial_success.error_message
        wrong = await send(client, b"\xff\xff\xff", media)
        assert (wrong.status, wrong.headers["content-type"]) == (400, media)
        assert wrong.body[:1] == b"\x12"
        empty = await send(client, b"", media)
        assert (empty.status, empty.body) == (200, b"")


async def test_hostile_requests_are_refused_and_the_server_goes_on() -> None:
    limits = HttpLimits(traces=20_000)
    bomb = gzip.compress(b" " * 10_000_000)
    deep = b'{"resourceSpans":' + b"[" * 5000
    many = gzip.compress(b'{"resourceSpans": []}') * 2
    async with (
        MemoryLog() as log,
        serving(log, limits=limits, traces=LiveTraces(log), token="t" * 20) as (client, _),
    ):
        cases: list[tuple[bytes, dict[str, str], int]] = [
            (b"{}", {"media": "text/plain"}, 415),
            (b"{}", {"content_encoding": "br"}, 415),
            (b"{", {}, 400),
            (b"[]", {}, 400),
            (b'{"resourceSpans": 7}', {}, 400),
            (deep, {}, 400),
            (b"no gzip", {"content_encoding": "gzip"}, 400),
            (bomb[:-9], {"content_encoding": "gzip"}, 413),
            (gzip.compress(b"{}" * 50)[:-9], {"content_encoding": "gzip"}, 400),
            (b" " * 30_000, {}, 413),
            (many, {"content_encoding": "gzip"}, 400),
            (b'{"resourceSpans": []}', {}, 200),
            (b"{}", {}, 400),
            (b"{}", {"Authorization": "Bearer wrong"}, 401),
        ]
        for body, headers, status in cases:
            answer = await send(client, body, **headers)
            assert answer.status == status, (body[:40], answer.body)
            assert answer.headers["content-type"] == "application/json"
            assert status == 200 or answer.json["message"]


async def test_a_body_of_very_many_compressed_parts_takes_time_in_proportion() -> None:
    many = gzip.compress(b"") * 200_000 + gzip.compress(b'{"resourceSpans": []}')
    async with MemoryLog() as log, serving(log, traces=LiveTraces(log)) as (client, _):
        assert (await send(client, many, content_encoding="gzip")).status == 200


async def test_the_exporter_learns_that_it_may_try_again() -> None:
    limits = HttpLimits(buffered=10)
    async with MemoryLog() as log, serving(log, limits=limits, traces=LiveTraces(log)) as (c, _):
        answer = await send(c, encoded(story()))
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")


async def test_the_description_names_it_where_it_is_there() -> None:
    async with MemoryLog() as log, serving(log, traces=LiveTraces(log)) as (client, _):
        assert "post" in (await client.get("/openapi.json")).json["paths"]["/v1/traces"]
    async with MemoryLog() as log, serving(log) as (client, _):
        assert "/v1/traces" not in (await client.get("/openapi.json")).json["paths"]
        assert (await send(client, encoded(story()))).status == 404


async def test_without_a_token_the_exporter_is_refused() -> None:
    async with MemoryLog() as log:
        async with serving(log, token="t" * 20, traces=LiveTraces(log)) as (client, _):
            exporter = OTLPSpanExporter(endpoint=f"http://127.0.0.1:{client.port}/v1/traces")
            provider = TracerProvider()
            with provider.get_tracer("app").start_as_current_span("x") as span:
                pass
            done = await anyio.to_thread.run_sync(lambda: exporter.export([span]))  # type: ignore[list-item]
            exporter.shutdown()  # type: ignore[no-untyped-call]
        assert done is SpanExportResult.FAILURE
