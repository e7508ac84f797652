"""Compare: the report of the sessions in a list, and the roles that may read it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from duolog.cli.reporting import Asked, oversight_by, page_of, report_of, sessions_of
from duolog.engine.errors import CodecError, InvalidInput
from duolog.engine.events import Origin, SessionOpened
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.engine.records import Record
from duolog.interop.workbench.sessions.address import parse_address
from duolog.scoring.index.query import parse_query
from duolog.scoring.live import score_log
from duolog.scoring.oversight import Oversight, OversightReport, summarise
from duolog.scoring.report import compare_agents, document_html, oversight_document
from duolog.scoring.report.html import figure_data
from duolog.scoring.trajectory.fold import TrajectoryFold
from duolog.scoring.trajectory.updates import Update
from duolog.testing.records import AGENT, HUMAN, RecordWriter
from duolog.testing.sessions import put_records
from workbench import Visitor, visiting

HOSTILE = "</pre><script>alert(1)</script>"


async def put(
    log: EventLog,
    number: int,
    agent: str,
    *,
    origin: str = "",
    automated: bool = False,
    task: str = "test",
) -> None:
    script = RecordWriter(f"{agent}-{number}")
    script.add(
        SessionOpened(
            task=task,
            instance=str(number),
            problem=str(number),
            participants=(AGENT,) if automated else (HUMAN, AGENT),
            clock="virtual",
            config={"group": {"agent": agent}},
            forked_from=Origin(session=origin, version=2) if origin else None,
        ),
        "engine",
        "environment",
        at=0.0,
    )
    if not automated:
        script.human("a plan, please")
    script.scored(number / 10, snapshot=script.output(f"plan {number}"))
    if not automated:
        script.human("better")
        script.scored(number / 10 + 0.2, snapshot=script.output(f"better plan {number}"))
    script.closed("abandoned" if number % 2 else "finished")
    await put_records(log, script.records)


async def test_the_page_is_the_verdict_and_the_report_and_is_escaped() -> None:
    async with open_log("memory://") as log:
        for number in range(6):
            for agent in ("a", HOSTILE):
                await put(log, number, agent)
        trajectories = [await score_log(log, one.session) async for one in log.sessions()]
    compared = await anyio.to_thread.run_sync(compare_agents, trajectories)
    document = compared.document(links={"a-1": "/session?id=a-1"})
    html = document_html(document)
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "style=" not in html
    for figure in ("overall", "curve", "survival"):
        assert f'id="{figure}"' in html
    assert "0.450" in html  # mean final utility
    assert 'href="/session?id=a-1"' in html
    assert len(document.figures[0].series) == 2


async def sent(visitor: Visitor, event: str = "report", **query: str) -> dict[str, Any]:
    """The report, or what else the page receives once."""
    text = (await visitor.get("/v1/compare/stream", **query)).text
    [data] = [
        part.split("data: ", 1)[1].splitlines()[0]
        for part in text.replace("\r\n", "\n").split("\n\n")
        if f"event: {event}" in part
    ]
    found: dict[str, Any] = json.loads(data)
    return found


async def played(file: str) -> tuple[dict[str, Any], ...]:
    """A log with a fork, an automated run and another task; the messages to five pages of it."""
    async with open_log(file) as log:
        for number in range(6):
            for agent in ("a", "b"):
                await put(log, number, agent)
        await put(log, 7, "c", origin="a-3")
        await put(log, 8, "auto", automated=True)
        await put(log, 9, "a", task="other")
        async with visiting(log) as visitor:
            return (
                await sent(visitor),
                await sent(visitor, agent="c"),
                await sent(visitor, task="other"),
                await sent(visitor, agents="b"),
                await sent(visitor, agents="d"),
            )


def test_it_is_the_report_of_the_command_line(tmp_path: Path) -> None:
    file = str(tmp_path / "some.db")
    shown, filtered, other, one, none = anyio.run(played, file)
    asked = Asked(sources=[file], task="test")
    report = report_of(asked)
    assert report.groups[-1].baseline
    assert sum(group.sessions for group in report.groups) == 13
    compared = compare_agents(sessions_of(asked))
    assert compared.report == report
    links = {one.session: f"/session?id={one.session}" for one in report.scores}
    document = compared.document(links=links, marks={"a": 0, "b": 1})
    assert shown["html"] == document_html(document)
    assert shown["figures"] == json.loads(figure_data(document))
    assert "15 sessions; 1 fork left out" in shown["text"]
    assert "1 fork left out" in filtered["text"]  # though its origin is not in the list
    page = page_of(sessions_of(asked), asked)
    assert document.verdict in page  # the page in a file is the same document
    assert '<option value="test" selected>test (14)</option>' in shown["pickers"]
    assert '<option value="other" selected>' in other["pickers"]
    assert 'value="b" checked' in one["pickers"]
    assert 'value="a" checked' not in one["pickers"]
    assert one["html"].count("There is no other agent") == 1
    assert "no session of agent" in none["text"]


async def test_the_oversight_of_the_compared_agents_follows() -> None:
    async with open_log("memory://") as log:
        for number in range(6):
            for agent in ("a", "b"):
                await put(log, number, agent)
        await put(log, 7, "c", origin="a-3")
        await put(log, 9, "a", task="other")
        async with visiting(log) as visitor:
            shown = await sent(visitor, "oversight")
            assert await sent(visitor, "oversight", agents="d") == {"html": ""}
        query = parse_query(["task=test"])
        groups: dict[str, list[Oversight]] = {}
        for agent, one in await oversight_by(log, "agent", query):
            groups.setdefault(agent, []).append(one)
    del groups["c"]  # a fork whose origin is in the log
    expected = {agent: summarise(some) for agent, some in groups.items()}
    assert expected["a"].agent_turns > 0
    document = oversight_document(OversightReport(by="agent", groups=expected))
    assert shown == {"html": document_html(document)}


@pytest.mark.parametrize(
    ("role", "status"), [("operator", 200), ("viewer", 200), ("participant", 403)]
)
async def test_it_is_for_those_to_whom_all_sessions_are_open(role: str, status: int) -> None:
    async with open_log("memory://") as log, visiting(log, role) as visitor:
        assert (await visitor.get("/compare")).status_code == status
        assert (await visitor.get("/compare", state="wrong")).status_code in (400, 403)
        if status == 403:
            assert (await visitor.get("/v1/compare/stream")).status_code == 403


async def test_it_says_how_many_sessions_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    feed = TrajectoryFold.feed

    def damaged(self: TrajectoryFold, record: Record) -> Sequence[Update]:
        if record.session == "a-1":
            raise CodecError("a damaged record")
        return feed(self, record)

    monkeypatch.setattr(TrajectoryFold, "feed", damaged)
    async with open_log("memory://") as log:
        for number in range(3):
            await put(log, number, "a")
        async with visiting(log) as visitor:
            sent = (await visitor.get("/v1/compare/stream")).text
    assert "3 sessions; 1 of them cannot be read, and are left out" in sent


async def test_its_address_is_that_of_the_list() -> None:
    async with open_log("memory://") as log, visiting(log) as visitor:
        await put(log, 1, "a")
        listed = await visitor.client.get("/sessions?agent=a&sort=-utility")
        assert 'href="/compare?agent=a&amp;sort=-utility"' in listed.text
        page = await visitor.client.get("/compare?agent=a&sort=-utility")
        assert 'href="/sessions?agent=a&amp;sort=-utility"' in page.text
        with pytest.raises(InvalidInput):
            parse_address([("utility", "much")])
