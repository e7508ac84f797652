"""Sessions that people take part in from the browser: begun, gone on with, and seen by whom they may."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import EffortObserved, MessageSent, SessionOpened
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.experiments.workbench import SessionHost
from duolog.interop.workbench.access.identity import Identity
from duolog.interop.workbench.app import PARTS
from duolog.interop.workbench.participation.host import NewSession
from duolog.interop.workbench.participation.routes import EFFORT, participation
from duolog.testing.tools import collect
from workbench import Visitor, visiting

ROOT = Path(__file__).resolve().parents[2]
TASK = f"{ROOT / 'tests' / 'support' / 'participation_task.py'}:ShoppingTask"
WANTED = NewSession(task=TASK, agents=("keeper",))
NUMBER = iter(range(10**6))


@asynccontextmanager
async def hosting(log: EventLog) -> AsyncIterator[SessionHost]:
    async with anyio.create_task_group() as tasks:
        host = SessionHost(log, tasks, task=TASK)
        try:
            yield host
        finally:
            await host.leave_all()
            tasks.cancel_scope.cancel()


def act(session: str, act: str, actor: str = "user", **more: object) -> dict[str, object]:
    return {"act": act, "session": session, "actor": actor, "id": f"act-{next(NUMBER):06}", **more}


async def done(visitor: Visitor, body: dict[str, object]) -> int:
    answer = await visitor.post("/v1/participate/act", body)
    assert answer.status_code == 200, answer.text
    version: int = answer.json()["version"]
    return version


async def kinds(log: EventLog, session: str) -> list[str]:
    return [record.kind for record in await collect(log.read(session))]


async def until(log: EventLog, session: str, kind: str) -> None:
    """Waits until a session holds an event."""
    with anyio.fail_after(120):
        async with log.subscribe(session=session) as records:
            async for record in records:
                if record.kind == kind and record.role == "agent":
                    return


async def test_what_is_sent_again_is_done_once() -> None:
    async with open_log("memory://") as log, hosting(log) as host:
        session = await host.begin(WANTED)
        async with visiting(log, parts=(*PARTS, participation(host))) as visitor:
            said = act(session, "say", text="milk")
            version = await done(visitor, said)
            assert await done(visitor, said) == version
            await until(log, session, "MessageSent")
            found = await kinds(log, session)
    assert found.count("MessageSent") == 2  # theirs, and the agent's
    assert found.count("SnapshotTaken") == 1


async def test_a_text_that_is_made_from_an_older_version_is_refused_and_merged() -> None:
    async with open_log("memory://") as log, hosting(log) as host:
        session = await host.begin(WANTED)
        async with visiting(log, parts=(*PARTS, participation(host))) as visitor:
            base = await done(visitor, act(session, "submit", content="eggs\nflour", base=None))
            await done(visitor, act(session, "say", text="milk"))
            await until(log, session, "SnapshotTaken")
            mine = "eggs, six\nflour"
            refused = await visitor.post(
                "/v1/participate/act", act(session, "submit", content=mine, base=base)
            )
            assert refused.status_code == 409
            merged = await visitor.post(
                "/v1/participate/merge",
                {"session": session, "actor": "user", "base": base, "mine": mine},
            )
            assert merged.json()["text"] == "eggs, six\nflour\nmilk"
            assert merged.json()["conflicts"] == 0
            latest = merged.json()["version"]
            taken = await done(
                visitor, act(session, "submit", content=merged.json()["text"], base=latest)
            )
            shown = await visitor.data("/v1/participate/output", session=session, actor="user")
    assert shown["version"] == taken


async def test_an_approval_waits_for_its_answer_and_a_stop_does_not() -> None:
    async with open_log("memory://") as log, hosting(log) as host:
        session = await host.begin(WANTED)
        async with visiting(log, parts=(*PARTS, participation(host))) as visitor:
            await done(visitor, act(session, "say", text="send it"))
            await until(log, session, "ApprovalAsked")
            [asked] = [r for r in await collect(log.read(session)) if r.kind == "ApprovalAsked"]
            await visitor.post(
                "/v1/participate/act", act(session, "stop", reason="abandoned", detail="enough")
            )
            assert (await log.summary(session)).state == "abandoned"
            late = await visitor.post(
                "/v1/participate/act", act(session, "approve", asked=asked.version, approved=True)
            )
    assert late.status_code in (400, 409, 422)
    assert "abandoned" in late.json()["message"]


async def test_an_open_session_goes_on_after_the_program_has_ended(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    async with open_log(url) as log, hosting(log) as host:
        session = await host.begin(WANTED)
        seat = await host.seat(session, "user")
        await seat.call(lambda context: context.say("milk"))
        await until(log, session, "MessageSent")
    async with open_log(url) as log:
        assert (await log.summary(session)).state == "open"
        async with hosting(log) as host:
            seat = await host.seat(session, "user")
            await seat.call(lambda context: context.say("eggs"))
            with anyio.fail_after(120):
                while (await kinds(log, session)).count("SnapshotTaken") < 2:
                    await anyio.lowlevel.checkpoint()
            with pytest.raises(InvalidInput, match="no seat for 'eve'"):
                await host.seat(session, "eve")


async def test_several_people_and_agents_in_one_session() -> None:
    wanted = NewSession(task=TASK, agents=("keeper", "keeper"), people=2)
    async with open_log("memory://") as log, hosting(log) as host:
        session = await host.begin(wanted)
        opened = (await collect(log.read(session)))[0].event
        assert isinstance(opened, SessionOpened)
        names = [(one.name, one.role) for one in opened.participants]
        assert names == [
            ("user", "human"),
            ("agent", "agent"),
            ("user-2", "human"),
            ("agent-2", "agent"),
        ]
        async with visiting(log, parts=(*PARTS, participation(host))) as visitor:
            await done(visitor, act(session, "say", actor="user-2", text="milk"))
            await until(log, session, "SnapshotTaken")


async def test_only_what_is_offered_is_run() -> None:
    async with (
        open_log("memory://") as log,
        hosting(log) as host,
        visiting(log, parts=(*PARTS, participation(host))) as visitor,
    ):
        for wanted, why in (
            ({"task": TASK, "agents": ["exec:rm -r /"]}, "unknown agent 'exec:rm"),
            ({"task": "/etc/passwd:Task", "agents": ["keeper"]}, "unknown task"),
            ({"task": TASK, "agents": ["keeper"], "people": 99}, "1 to 8 people"),
            ({"task": TASK, "agents": []}, "1 to 4 agents"),
        ):
            answer = await visitor.post("/v1/participate/begin", wanted)
            assert answer.status_code in (400, 422), answer.text
            assert why in answer.json()["message"]


async def test_who_works_alone_is_no_company() -> None:
    async with open_log("memory://") as log, hosting(log) as host:
        offers = {offer.task: offer for offer in await host.offers()}
    assert {"auto", "human-alone"} & set(offers["tutoring"].agents) == set()
    assert "adaptive" in offers["tutoring"].agents


async def test_each_role_may_do_its_own_and_sees_no_more() -> None:
    async with open_log("memory://") as log, hosting(log) as host:
        session = await host.begin(NewSession(task=TASK, agents=("keeper",), people=2))
        other = await host.begin(NewSession(task=TASK, agents=("keeper",), seed=2))
        parts = (*PARTS, participation(host))
        ann = Identity("participant", "user", session)
        async with visiting(log, who=ann, parts=parts) as visitor:
            assert (await visitor.get("/participate", id=session)).status_code == 200
            assert (
                await visitor.post("/v1/participate/act", act(session, "say", text="hi"))
            ).status_code == 200
            for path in ("/new", "/sessions", "/session"):
                assert (await visitor.get(path, id=session)).status_code == 403
            assert (await visitor.get("/participate", id=other)).status_code == 403
            for body in (
                act(session, "say", actor="user-2", text="as somebody else"),
                act(other, "say", text="elsewhere"),
            ):
                assert (await visitor.post("/v1/participate/act", body)).status_code == 403
            for path in ("stream", "output", "state"):
                asked = await visitor.get(f"/v1/participate/{path}", session=other, actor="user")
                assert asked.status_code == 403
            assert (await visitor.post("/v1/participate/begin", {})).status_code == 403
        async with visiting(log, "viewer", parts=parts) as visitor:
            assert (await visitor.get("/participate", id=session)).status_code == 403
            assert (
                await visitor.post("/v1/participate/act", act(session, "say", text="hi"))
            ).status_code == 403
        async with visiting(log, "operator", parts=parts) as visitor:
            assert (await visitor.get("/participate", id="nowhere")).status_code == 404
            bad = await visitor.post("/v1/participate/act", {"act": "say"})
            assert bad.status_code in (400, 422)


async def test_effort_is_recorded_beside_the_trace() -> None:
    async with open_log("memory://") as log, hosting(log) as host:
        session = await host.begin(WANTED)
        async with visiting(log, parts=(*PARTS, participation(host))) as visitor:
            seen = {
                "session": session,
                "actor": "user",
                "reading": 4.0,
                "typing": 2.5,
                "inserted": 9,
            }
            assert (await visitor.post("/v1/participate/effort", seen)).status_code == 200
        [record] = await collect(log.read(session, stream=EFFORT))
    effort = record.event
    assert isinstance(effort, EffortObserved)
    assert (effort.actor, effort.reading, effort.typing, effort.inserted) == ("user", 4.0, 2.5, 9)
    assert effort.until >= 1


async def test_of_two_copies_one_runs_a_session_and_the_other_takes_it_over(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    async with open_log(url) as one, open_log(url) as other:
        async with (
            hosting(other) as second,
            visiting(other, parts=(*PARTS, participation(second))) as at,
        ):
            async with (
                hosting(one) as first,
                visiting(one, parts=(*PARTS, participation(first))) as visitor,
            ):
                session = await first.begin(WANTED)
                said = act(session, "say", text="milk")
                version = await done(visitor, said)
                await until(other, session, "MessageSent")
                refused = await at.post("/v1/participate/act", said)
                assert refused.status_code == 503  # the page tries again
                assert "another copy" in refused.json()["message"]
                shown = await at.data("/v1/participate/output", session=session, actor="user")
                assert shown["text"] == "milk"
            assert await done(at, said) == version
            await done(at, act(session, "say", text="eggs"))
            with anyio.fail_after(120):
                while (await kinds(other, session)).count("SnapshotTaken") < 2:
                    await anyio.lowlevel.checkpoint()
        trace = await collect(one.read(session))
    said_texts = [r.event.text for r in trace if isinstance(r.event, MessageSent)]
    assert said_texts.count("milk") == 1


async def test_a_task_that_cannot_be_loaded_takes_no_other_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "duolog.experiments.workbench.installed_tasks", lambda: ["no-such-task", "travel"]
    )
    async with open_log("memory://") as log, hosting(log) as host:
        assert [offer.task for offer in await host.offers()] == [TASK, "travel"]
