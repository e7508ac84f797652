"""Two sessions side by side, finding a text in a session, and cards for what waits for a person."""

from __future__ import annotations

import re

import pytest
from duolog.engine.events import (
    ActionTaken,
    ApprovalAsked,
    ApprovalGiven,
    MessageSent,
    NoteTaken,
    Origin,
    Participant,
    RecordsLate,
    RecordsLost,
    SessionOpened,
)
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.engine.records import ENGINE, RECORDING, Draft
from duolog.interop.workbench.session.forking import ForkRequest
from duolog.testing.records import HUMAN, RecordWriter
from duolog.testing.sessions import put_records
from workbench import visiting

BOT = Participant(name="bot", role="agent", policy="rules")


def talk(session: str, agent: str, *more: str, origin: Origin | None = None) -> RecordWriter:
    script = RecordWriter(session)
    script.add(
        SessionOpened(
            task="trip",
            instance="7",
            participants=(HUMAN, BOT),
            clock="virtual",
            config={"group": {"agent": agent, "user": "proactive"}},
            forked_from=origin,
        ),
        "engine",
        "environment",
        at=0.0,
    )
    for text in ("a plan", "better", *more):
        script.human(text)
        script.output(f"{agent}: {text}")
    return script


async def filled(log: EventLog) -> None:
    await put_records(log, talk("one", "a").records)
    origin = Origin(session="one", version=3)  # in round 2
    await put_records(log, talk("two", "<b>", "and more", origin=origin).records)


async def test_a_fork_and_its_origin_are_aligned_by_round() -> None:
    async with open_log("memory://") as log:
        await filled(log)
        async with visiting(log) as visitor:
            page = (await visitor.get("/pair", left="one", right="two")).text
            apart = await visitor.get("/pair", left="one", right="three")
            strip = await visitor.data("/v1/session/strip", session="two")
        async with visiting(log, "participant") as visitor:
            assert (await visitor.get("/pair", left="one", right="two")).status_code == 403
    assert "Round 1 is the same in both." in page
    assert re.findall(r"<h2>(Round \d)</h2>", page) == ["Round 2", "Round 3"]
    cells = re.findall(r'data-session="(\w+)" data-from="(\d+)" data-to="(\d+)"', page)
    assert cells == [("one", "4", "5"), ("two", "4", "5"), ("two", "6", "7")]
    assert "It had ended." in page
    assert "<b></span>" not in page
    assert apart.status_code == 404
    assert 'href="/pair?left=one&amp;right=two"' in strip["html"]


async def test_a_text_is_found_in_what_one_may_see() -> None:
    script = talk("s", "a")
    script.agent(NoteTaken(text="they like SOUP"))
    script.agent(ActionTaken(name="search", arguments={"dish": ["Soup of the day"]}))
    script.agent(MessageSent(text="nothing"))
    async with open_log("memory://") as log:
        await put_records(log, script.records)
        for role, found in (("operator", [6, 7]), ("viewer", [7])):
            async with visiting(log, role) as visitor:
                answer = await visitor.data("/v1/session/find", session="s", text="soup")
                assert answer["found"] == found, role  # the text of the note is private
                nothing = await visitor.data("/v1/session/find", session="s", text="MessageSent")
                assert nothing["found"] == []  # names of kinds and fields are not contents
                assert (await visitor.data("/v1/session/find", session="s", text=" "))[
                    "found"
                ] == []


async def test_what_waits_for_a_person_is_a_card() -> None:
    script = talk("s", "a")
    script.agent(MessageSent(text="Which <day>?"))
    async with open_log("memory://") as log, visiting(log) as visitor:

        async def card() -> str:
            html: str = (await visitor.data("/v1/session/strip", session="s"))["html"]
            return html.partition("pinned")[2]

        await put_records(log, script.records)
        assert "bot waits for a reply" in await card()
        assert "Which &lt;day&gt;?" in await card()
        assert f"{HUMAN.name} can answer, by their own link." in await card()
        done = len(script.records)
        asked = script.agent(ApprovalAsked(question="Book it?"))
        await put_records(log, script.records[done:])
        assert "bot asks for approval" in await card()
        assert "Book it?" in await card()
        done = len(script.records)
        script.add(ApprovalGiven(asked=asked.version, approved=True), HUMAN.name, "human")
        await put_records(log, script.records[done:])
        assert await card() == ""


async def test_the_results_say_what_was_lost_and_what_came_late() -> None:
    script = talk("s", "a")
    late, lost = RecordsLate(2, 3, 0.0, 1.0), RecordsLost(4, 0.0, 1.0, "the disk was full")
    async with open_log("memory://") as log, visiting(log) as visitor:
        await put_records(log, script.records)
        html: str = (await visitor.data("/v1/session/strip", session="s"))["html"]
        assert "written late" not in html
        assert "lost" not in html
        drafts = [Draft(event, ENGINE, "environment", 1.0) for event in (late, lost)]
        await log.append("s", drafts, stream=RECORDING)
        html = (await visitor.data("/v1/session/strip", session="s"))["html"]
        assert "4 events lost: incomplete" in html
        assert "written late in part: round 1" in html


@pytest.mark.parametrize("refused", [False, True])
async def test_a_fork_is_picked_from_what_exists_and_where_it_can_be_done(refused: bool) -> None:
    async def fork(request: ForkRequest, version: int) -> str:
        return "never"

    async with open_log("memory://") as log:
        await filled(log)
        here = RecordWriter("here")
        here.add(
            SessionOpened(
                task="trip",
                instance="8",
                participants=(HUMAN, BOT),
                clock="utc" if refused else "virtual",
            ),
            "engine",
            "environment",
            at=1.7e9 if refused else 0.0,
        )
        await put_records(log, here.records)
        async with visiting(log, forks=fork) as visitor:
            page = (await visitor.get("/session", id="here")).text
    button = re.search(r'<button[^>]*id="fork"[^>]*>', page)
    assert button is not None
    assert (" disabled" in button[0]) == refused
    choice = page.partition('id="fork-agent"')[2].partition("</select>")[0]
    assert "<option>a</option>" in choice
    assert "&lt;b&gt;" not in choice  # not a kind of agent
