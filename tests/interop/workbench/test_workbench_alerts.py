"""Alerts: when a rule fired follows from the log; a webhook is called once for each time."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import anyio
import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import AlertSent, ModelCalled
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.engine.records import TRACE, Draft, Record
from duolog.interop.workbench.alerts.firing import ALERTS, Firing, FiringFold
from duolog.interop.workbench.alerts.history import AlertHistory, Fired
from duolog.interop.workbench.alerts.page import fired_row
from duolog.interop.workbench.alerts.routes import alert_messages
from duolog.interop.workbench.alerts.rules import AlertRules, parse_rule
from duolog.interop.workbench.alerts.sending import AlertSender, send_alerts, webhook
from duolog.scoring.index.lines import SessionLines
from duolog.scoring.index.sessions import SessionIndex
from duolog.testing.records import RecordWriter
from duolog.testing.sessions import put_records
from gated_log import Gate
from workbench import story, visiting


def test_a_rule_is_a_query() -> None:
    assert parse_rule(" tau=2 agent=a ").text == "tau=2 agent=a"
    for bad in ("", "utility=much", "state=wrong"):
        with pytest.raises(InvalidInput):
            parse_rule(bad)
    for bad in ("ftp://x", "file:///etc/passwd", "localhost:9000", ""):
        with pytest.raises(InvalidInput, match="webhook"):
            webhook(bad)


def fired_in(script: RecordWriter, *rules: str) -> list[tuple[str, int]]:
    fold = FiringFold(script.session, [parse_rule(rule) for rule in rules])
    for record in script.records:
        fold.feed(record)
    places = labels(script)
    return [(one.rule, places.index(one.record) + 1) for one in fold.fired]


def labels(script: RecordWriter) -> list[str]:
    """The names of records: the trace version, or ``4.1`` for the first measurement after it."""
    found: list[str] = []
    version = since = 0
    for record in script.records:
        version, since = (record.version, 0) if record.stream == TRACE else (version, since + 1)
        found.append(f"{version}.{since}" if since else str(version))
    return found


def cause_of(record: Record) -> str:
    return f"{record.stream}/{record.version}"


def numbers(script: RecordWriter, kind: str) -> list[int]:
    return [at for at, record in enumerate(script.records, start=1) if record.kind == kind]


def test_a_rule_fires_with_the_record_with_which_a_session_begins_to_meet_it() -> None:
    script = story("s", [1, 2, 5])
    script.closed("abandoned")
    rated = numbers(script, "ProgressRated")
    assert fired_in(script, "tau=1", "tau=2", "tau=3") == [("tau=1", rated[0]), ("tau=2", rated[1])]
    assert fired_in(script, "tau") == [("tau", rated[0])]
    assert fired_in(script, "state=abandoned") == [("state=abandoned", len(script.records))]
    assert fired_in(script, "rounds=3..", "other") == [
        ("rounds=3..", numbers(script, "MessageSent")[2])
    ]
    # Utility is 0 until something is scored, and a rule that is met again fires again.
    assert fired_in(script, "utility=0.5..") == [
        ("utility=0.5..", numbers(script, "UtilityScored")[0])
    ]
    assert fired_in(script, "utility=..0.1") == [("utility=..0.1", 1)]
    flat = story("flat", [3])
    flat.scored(0.1, snapshot=flat.output("worse"))
    assert [number for _, number in fired_in(flat, "utility=..0.2")] == [1, len(flat.records)]


async def test_who_meets_a_rule_at_the_end_is_who_is_listed() -> None:
    texts = ["tau=2", "utility=..0.4", "state=open rounds=2..", "utility=none"]
    rules = [parse_rule(text) for text in texts]
    async with open_log("memory://") as log:
        for name, ratings in (("a", [1, 1]), ("b", [5]), ("c", []), ("d", [2, 1, 4])):
            await put_records(log, story(name, ratings).records)
        async for summary in log.sessions():
            fold = FiringFold(summary.session, rules)
            async for record in log.read_all(session=summary.session):
                fold.feed(record)
            for met, rule in zip(fold.met, rules, strict=True):
                line = await SessionLines(log).line(summary)
                listed = rule.query.admits(summary) and rule.query.admits_line(line)
                assert met == listed, (summary.session, rule.text)


# --- the history --------------------------------------------------------------------------------


@asynccontextmanager
async def history_of(log: EventLog, *rules: str, most: int = 5000) -> AsyncIterator[AlertHistory]:
    async with anyio.create_task_group() as tasks:
        index = SessionIndex(log)
        tasks.start_soon(index.run)
        while not index.loaded:
            await index.wait()
        yield AlertHistory(log, index, AlertRules([parse_rule(rule) for rule in rules]), most=most)
        tasks.cancel_scope.cancel()


def shown(found: Sequence[Fired]) -> list[tuple[str, str, str]]:
    return [(one.firing.rule, one.firing.session, one.firing.record) for one in found]


async def test_what_fired_is_the_same_after_a_restart_and_however_it_was_read(
    tmp_path: Path,
) -> None:
    rules = ("tau=2", "state=failed")
    async with open_log(f"sqlite:///{tmp_path}/a.db") as log:
        await put_records(log, story("old", [1, 1]).records)
        async with history_of(log, *rules) as history:
            await history.refresh()
            assert history.met == [1, 0]
            for number in range(3):  # while one looks
                script = story(f"s{number}", [1, 1])
                script.closed("failed")
                for record in script.records:
                    await put_records(log, [record])
                    await history.refresh()
            with anyio.fail_after(120):
                while history.count < 7:
                    await history.soon()
            seen = shown(history.page(50))
            assert seen[0] == ("state=failed", "s2", labels(script)[-1])
            assert [row[1] for row in seen] == ["s2", "s2", "s1", "s1", "s0", "s0", "old"]
            assert (history.met, history.count) == ([4, 3], 7)
    async with open_log(f"sqlite:///{tmp_path}/a.db") as log:
        async with history_of(log, *rules) as again:
            await again.refresh()
            assert shown(again.page(50)) == seen
            assert (again.met, again.count, again.complete) == ([4, 3], 7, True)
            first = again.page(3)
            rest = again.page(50, before=first[-1].firing.position)
            assert shown(first) + shown(rest) == seen
        async with history_of(log, *rules, most=2) as small:
            await small.refresh()
            assert shown(small.page(50)) == seen[:2]
            assert small.count == 7


async def test_a_history_that_had_no_time_for_a_session_is_not_complete(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("duolog.interop.workbench.alerts.history._PATIENCE", 0.01)
    async with open_log("memory://") as log:
        gate = Gate(log)
        async with history_of(gate.log, "tau=2") as history:
            await history.refresh()
            assert (history.complete, history.count) == (True, 0)
            await put_records(log, story("s", [1, 1]).records)
            gate.shut_reads()
            with anyio.fail_after(120):
                while history.complete:
                    await history.soon()
                gate.open_reads()
                while not history.count:
                    await history.soon()
            assert (history.complete, history.count) == (True, 1)


async def test_the_page_shows_each_firing_and_what_its_webhook_answered() -> None:
    async with (
        open_log("memory://") as log,
        visiting(log, alerts=("tau=2", "<b>=x")) as visitor,
    ):
        page = await visitor.get("/alerts")
        assert 'href="/alerts"' in page.text
        workbench = visitor.workbench
        messages = alert_messages(
            workbench, AlertHistory(log, workbench.sessions, workbench.alerts), None
        )
        script = story("s", [1, 1])
        sent = AlertSent("tau=2", "retrying", 2, 1.8e9, "<i>refused</i>")

        async def data() -> dict[str, object]:
            found: dict[str, object] = json.loads(str((await anext(messages)).data))
            return found

        with anyio.fail_after(120):
            assert (await data())["note"] == "Nothing has fired yet"
            await put_records(log, script.records)
            while not (rows := (await data())["rows"]):
                pass
            [row] = dict(rows).values()  # type: ignore[call-overload]
            at = numbers(script, "ProgressRated")[1]
            assert f'href="/session?id=s&amp;at={labels(script)[at - 1]}"' in row
            assert "not called" in row
            cause = cause_of(script.records[at - 1])
            draft = Draft(sent, "workbench", "scorer", 0.0, cause=cause)
            await log.append("s", [draft], stream=ALERTS)
            while not (rows := (changed := await data())["rows"]):
                pass
            [row] = dict(rows).values()  # type: ignore[call-overload]
            assert "failed 2 times, is tried again" in row
            assert "&lt;i&gt;refused" in row
            assert "1 session now" in str(changed["rules"])


@pytest.mark.parametrize(
    ("role", "status"), [("operator", 200), ("viewer", 200), ("participant", 403)]
)
async def test_alerts_are_for_those_to_whom_all_sessions_are_open(role: str, status: int) -> None:
    async with open_log("memory://") as log, visiting(log, role) as visitor:
        page = await visitor.get("/alerts")
        assert page.status_code == status
        assert ('href="/alerts"' in page.text) == (status == 200)
        if status == 403:
            assert (await visitor.get("/v1/alerts/stream")).status_code == 403


# --- webhooks -----------------------------------------------------------------------------------


class Receiver:
    """A web server that keeps what it is sent, and refuses the first so many requests."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, object]] = []
        self.refusals = 0
        self.address = ""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A web server on this machine."""
    received = Receiver()

    class Keeper(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if received.refusals:
                received.refusals -= 1
                self.send_response(503)
            else:
                received.bodies.append(body)
                self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Keeper) as server:
        received.address = f"http://127.0.0.1:{server.server_port}/hook"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield received
        server.shutdown()
        thread.join()


def sender(log: EventLog, receiver: Receiver, *, lease: float = 90.0) -> AlertSender:
    rules = [parse_rule("tau=2")]
    return AlertSender(log, rules, webhook(receiver.address), pauses=(0.01, 0.01), lease=lease)


async def outcomes(log: EventLog, session: str, count: int) -> list[tuple[str, int]]:
    """The recorded outcomes of a session's alerts, once there are this many."""
    with anyio.fail_after(120):
        while True:
            events = [record.event async for record in log.read(session, stream=ALERTS)]
            if len(events) >= count:
                return [(e.outcome, e.attempt) for e in events if isinstance(e, AlertSent)]
            await anyio.sleep(0.01)


async def kept(log: EventLog, sender: AlertSender) -> None:
    """Waits until a server has noted that all of the log has been sent."""
    key = sender._follower._key
    assert key is not None
    with anyio.fail_after(120):
        while await log.checkpoint(*key) < log.statistics().position:  # noqa: ASYNC110
            await anyio.sleep(0.01)


async def test_a_webhook_that_refuses_is_called_again_and_what_it_took_is_not_sent_again(
    receiver: Receiver,
) -> None:
    async with open_log("memory://") as log:
        await put_records(log, story("before", [1, 1]).records)  # alerts were not set up yet
        receiver.refusals = 2
        async with anyio.create_task_group() as tasks:
            senders = [sender(log, receiver) for _ in range(2)]  # two servers
            for one in senders:
                tasks.start_soon(one.run)
            await anyio.wait_all_tasks_blocked()
            await put_records(log, story("calm", [5, 5]).records)
            cross = story("cross", [1, 1, 1])
            await put_records(log, cross.records)
            assert await outcomes(log, "cross", 6) == [
                ("sending", 1),
                ("retrying", 1),
                ("sending", 2),
                ("retrying", 2),
                ("sending", 3),
                ("delivered", 3),
            ]
            await kept(log, senders[0])
            tasks.cancel_scope.cancel()
        at = numbers(cross, "ProgressRated")[1]
        [body] = receiver.bodies
        assert body.pop("id")
        position = [r.position async for r in log.read_all(session="cross")][at - 1]
        assert body == {
            "rule": "tau=2",
            "session": "cross",
            "record": labels(cross)[at - 1],
            "position": position,
        }

        # What fires while no server runs is sent by the next one, and nothing else.
        await put_records(log, story("meanwhile", [1, 1]).records)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sender(log, receiver).run)
            assert await outcomes(log, "meanwhile", 2) == [("sending", 1), ("delivered", 1)]
            tasks.cancel_scope.cancel()
        assert [one["session"] for one in receiver.bodies] == ["cross", "meanwhile"]


async def test_a_webhook_that_never_answers_has_failed_and_a_cut_off_attempt_is_repeated(
    receiver: Receiver,
) -> None:
    async with open_log("memory://") as log, anyio.create_task_group() as tasks:
        receiver.refusals = 3
        tasks.start_soon(sender(log, receiver, lease=0.05).run)
        await anyio.wait_all_tasks_blocked()
        await put_records(log, story("lost", [1, 1]).records)
        assert (await outcomes(log, "lost", 6))[-1] == ("failed", 3)
        assert receiver.bodies == []
        script = story("cut", [1, 1])
        cause = cause_of(script.records[numbers(script, "ProgressRated")[1] - 1])
        sent = AlertSent("tau=2", "sending", 1, 0.0)
        draft = Draft(sent, "workbench", "scorer", 0.0, cause=cause)
        await log.append("cut", [draft], stream=ALERTS)
        await put_records(log, script.records)
        assert (await outcomes(log, "cut", 3))[1:] == [("sending", 2), ("delivered", 2)]
        tasks.cancel_scope.cancel()


def test_a_row_says_how_often_it_was_tried() -> None:
    firing = Firing("tau=2", "s", "trace/7", 9, "7", 61.0)
    for outcome, said in (
        ("sending", "is being sent at attempt 2"),
        ("failed", "failed after 2 attempts"),
        ("delivered", "delivered at attempt 2"),
    ):
        sent = AlertSent("tau=2", outcome, 2, 1.8e9)  # type: ignore[arg-type]
        assert said in fired_row(Fired(firing, sent)).text
    assert "1:01 into the simulation" in fired_row(Fired(firing, None)).text


async def test_operators_add_and_remove_rules_in_the_page() -> None:
    async with open_log("memory://") as log:
        await put_records(log, story("s", [1, 1]).records)
        async with visiting(log, alerts=("state=failed",)) as visitor:
            workbench = visitor.workbench
            messages = alert_messages(
                workbench, AlertHistory(log, workbench.sessions, workbench.alerts), None
            )
            first = json.loads(str((await anext(messages)).data))
            assert first["note"] == "Nothing has fired yet"
            assert (await visitor.post("/v1/alerts/add", {"rule": "tau=2"})).status_code == 200
            with anyio.fail_after(120):
                while True:
                    found = json.loads(str((await anext(messages)).data))
                    if found["rows"]:
                        break
            assert found["note"] == "1 time"
            assert 'data-remove="tau=2"' in found["rules"]
            assert "state=failed" in found["rules"]
            for rule, why in (
                ("tau=2", "already"),
                ("utilty=1", "did you mean 'utility'?"),
                ("utility=much", "expects a number"),
                ("", "an alert is a query"),
                ("x" * 500, "at most"),
            ):
                refused = await visitor.post("/v1/alerts/add", {"rule": rule})
                assert refused.status_code == 400
                assert why in refused.json()["message"]
            refused = await visitor.post("/v1/alerts/remove", {"rule": "state=failed"})
            assert "so it stays" in refused.json()["message"]
            assert (await visitor.post("/v1/alerts/remove", {"rule": "tau=2"})).status_code == 200
            assert [one.text for one in workbench.alerts.all] == ["state=failed"]
        async with visiting(log, "viewer") as viewer:
            page = (await viewer.get("/alerts")).text
            assert "There are no rules yet" in page
            assert 'id="rule-form"' not in page
            assert (await viewer.post("/v1/alerts/add", {"rule": "tau=2"})).status_code == 403


async def test_a_rule_that_is_added_is_sent_until_it_is_removed(receiver: Receiver) -> None:
    rules = AlertRules()
    async with open_log("memory://") as log, anyio.create_task_group() as tasks:
        tasks.start_soon(send_alerts, log, rules, webhook(receiver.address))
        await anyio.wait_all_tasks_blocked()
        rules.add("tau=2")
        await anyio.wait_all_tasks_blocked()
        await put_records(log, story("met", [1, 1]).records)
        assert await outcomes(log, "met", 2) == [("sending", 1), ("delivered", 1)]
        rules.remove("tau=2")
        await anyio.wait_all_tasks_blocked()
        await put_records(log, story("late", [1, 1]).records)
        await anyio.sleep(0.05)
        assert [one async for one in log.read("late", stream=ALERTS)] == []
        tasks.cancel_scope.cancel()


def test_alerts_ask_for_costs() -> None:
    script = RecordWriter("s")
    script.opened()
    for price in (0.5, 0.75):
        call = ModelCalled(model="m", purpose="act", request="r", cost=price)
        script.agent(call)
    assert fired_in(script, "cost>1", "cost>=0.5", "latency<5") == [("cost>=0.5", 2), ("cost>1", 3)]
