"""What goes on now: open sessions by urgency, and alerts that fire once."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import anyio
import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import ApprovalAsked
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.interop.workbench.live.alerts import Alerts, Fired, parse_rule, webhook
from duolog.interop.workbench.live.open_sessions import OpenSessions
from duolog.interop.workbench.live.page import open_row
from duolog.interop.workbench.live.routes import LiveSessions, live_messages
from duolog.scoring.trajectory.options import Options
from duolog.testing.records import RecordWriter
from duolog.testing.sessions import put_records
from workbench import visiting


def story(session: str, ratings: list[int]) -> RecordWriter:
    """A session of as many rounds as there are ratings, and one more."""
    script = RecordWriter(session)
    script.opened(clock="virtual", config={"judge": "judge", "utility": "u"})
    script.human("a plan")
    for number, rating in enumerate(ratings, start=1):
        script.scored(0.5, snapshot=script.output(f"plan {number}"))
        script.human("hm")
        script.rated(number, rating)
    return script


async def test_those_about_to_give_up_come_first() -> None:
    async with open_log("memory://") as log:
        for name, ratings in (("calm", [5, 5]), ("cross", [5, 1, 2]), ("soothed", [1, 4])):
            await put_records(log, story(name, ratings).records)
        asking = story("asking", [4])
        asking.agent(ApprovalAsked(question="may I?"))
        await put_records(log, asking.records)
        sessions = OpenSessions(log, Options())
        found = [await sessions.of(one) async for one in log.sessions()]
        ordered = sorted(found, key=lambda one: one.urgency, reverse=True)
        assert [one.summary.session for one in ordered][:2] == ["cross", "asking"]
        cross = ordered[0]
        assert (cross.stall, cross.approvals, dict(cross.stops)) == (2, 0, {1: 2, 2: 3})
        assert cross.flat == 3  # nothing rose after the first of four rounds
        assert ordered[1].approvals == 1
        await put_records(
            log, story("cross", [5, 1, 2, 5]).records[len(story("cross", [5, 1, 2]).records) :]
        )
        assert (await sessions.of(await log.summary("cross"))).stall == 0
        assert "<script" not in open_row(cross).text


async def test_the_page_shows_open_sessions_and_lets_go_of_closed_ones() -> None:
    async with open_log("memory://") as log, visiting(log) as visitor:
        script = story("s", [1])
        await put_records(log, script.records)
        messages = live_messages(LiveSessions(visitor.bench), 0)
        with anyio.fail_after(20):
            rows: dict[str, str] = {}
            while "s" not in rows:
                rows = json.loads(str((await anext(messages)).data))["rows"]
            script.closed()
            await put_records(log, script.records[-1:])
            gone: list[str] = []
            while not gone:
                gone = json.loads(str((await anext(messages)).data))["gone"]
            assert gone == ["s"]


@pytest.mark.parametrize(
    ("role", "status"), [("operator", 200), ("viewer", 200), ("participant", 403)]
)
async def test_it_is_for_those_to_whom_all_sessions_are_open(role: str, status: int) -> None:
    async with open_log("memory://") as log, visiting(log, role) as visitor:
        assert (await visitor.get("/live")).status_code == status
        if status == 403:
            assert (await visitor.get("/v1/live/stream")).status_code == 403


def test_a_rule_is_a_query() -> None:
    assert parse_rule(" tau=2 agent=a ").text == "tau=2 agent=a"
    for bad in ("", "utility=much", "state=wrong"):
        with pytest.raises(InvalidInput):
            parse_rule(bad)
    for bad in ("ftp://x", "file:///etc/passwd", "localhost:9000", ""):
        with pytest.raises(InvalidInput, match="webhook"):
            webhook(bad)


async def fires(log: EventLog, told: list[Fired], count: int) -> None:
    with anyio.fail_after(10):
        while len(told) < count:  # noqa: ASYNC110
            await anyio.sleep(0.01)


async def test_an_alert_fires_once_for_each_session_that_begins_to_meet_it() -> None:
    async with open_log("memory://") as log, anyio.create_task_group() as tasks:
        await put_records(log, story("before", [1, 1]).records)
        told: list[Fired] = []
        alerts = Alerts(log, [parse_rule("tau=2")], told.append, pace=0.01)
        tasks.start_soon(alerts.run)
        await anyio.wait_all_tasks_blocked()
        await put_records(log, story("calm", [5, 5]).records)
        cross = story("cross", [1, 1, 1])
        await put_records(log, cross.records)
        await fires(log, told, 1)
        assert [(one.rule, one.session) for one in told] == [("tau=2", "cross")]
        await put_records(log, story("other", [1, 1]).records)
        await fires(log, told, 2)
        assert {one.session for one in told} == {"cross", "other"}
        tasks.cancel_scope.cancel()


@pytest.fixture
def receiver() -> Iterator[tuple[str, list[bytes]]]:
    """A web server that keeps what it is sent."""
    bodies: list[bytes] = []

    class Keeper(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Keeper) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/hook", bodies
        server.shutdown()
        thread.join()


def test_a_webhook_gets_what_fired(receiver: tuple[str, list[bytes]]) -> None:
    address, bodies = receiver
    webhook(address)(Fired("tau=2", "s", 7))
    assert json.loads(bodies[0]) == {"rule": "tau=2", "session": "s", "position": 7}
