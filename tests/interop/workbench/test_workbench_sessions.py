"""The list of sessions: its rows, page by page, as the log grows, and for each role."""

from __future__ import annotations

import re

import msgspec
import pytest
from duolog.engine.events import MessageSent
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.engine.records import Draft
from duolog.interop.workbench.sessions.address import ListAddress, parse_address
from duolog.interop.workbench.sessions.page import searching_note
from duolog.scoring.index import lists
from duolog.scoring.index.lists import parse_key
from duolog.testing.records import RecordWriter
from duolog.testing.sessions import put_records
from workbench import visiting

HOSTILE = "</td><script>alert(1)</script>\u202e"


async def put(log: EventLog, number: int, *, utility: float | None = None, **labels: str) -> None:
    """A session of two rounds."""
    script = RecordWriter(f"s-{number}")
    script.opened(clock="virtual", config={"group": labels, "judge": "judge"})
    script.human("hello")
    draft = script.output("a plan")
    if utility is not None:
        script.scored(utility, snapshot=draft)
    script.human("better")
    script.rated(1, 2)
    script.closed()
    await put_records(log, script.records)


def test_an_address_holds_all_and_leads_back() -> None:
    given = [("q", "utility=..0.3 dinner"), ("agent", "two stage"), ("tau", "any")]
    given += [("sort", "-utility"), ("effort", "acts"), ("after", "[0.5,7]")]
    address = parse_address(given)
    assert address.parameters() == given
    assert str(address).startswith("/sessions?q=utility%3D..0.3+dinner&agent=two+stage&tau=any")
    assert address.query.tolerances
    assert str(ListAddress()) == "/sessions"
    for key in ("[0.5,7]", "[null,3]", '[["a",3,""],1]'):
        assert parse_key(key)


@pytest.mark.parametrize(
    "query", ["state=wrong", "effort=money", "after=x", "after=%5B%22a%22%2C1%5D", "utility=a..b"]
)
async def test_an_address_that_makes_no_sense_is_answered_by_what_is_wrong(query: str) -> None:
    async with open_log("memory://") as log, visiting(log) as visitor:
        await put(log, 1, utility=1.0)
        page = await visitor.get(f"/sessions?{query}")
        assert page.status_code == 400
        assert 'role="alert"' in page.text
        assert (await visitor.get(f"/v1/sessions/rows?{query}")).status_code == 400


async def test_the_page_escapes_what_sessions_are_called() -> None:
    async with open_log("memory://") as log:
        script = RecordWriter(HOSTILE)
        script.opened(config={"group": {HOSTILE: HOSTILE, "agent": HOSTILE}})
        await put_records(log, script.records)
        async with visiting(log) as visitor:
            page = (await visitor.get("/sessions")).text
            rows = await visitor.data("/v1/sessions/rows", of=HOSTILE)
        for text in (page, rows["rows"][HOSTILE]):
            assert "<script>alert" not in text
            assert "&lt;script&gt;" in text
            assert "\u202e</a>" not in text


@pytest.mark.parametrize(
    ("role", "status"), [("operator", 200), ("viewer", 200), ("participant", 403)]
)
async def test_the_list_is_for_those_to_whom_all_sessions_are_open(role: str, status: int) -> None:
    async with open_log("memory://") as log:
        await put(log, 1, utility=1.0)
        async with visiting(log, role) as visitor:
            for path in ("/sessions", "/v1/sessions/rows?of=s-1"):
                answer = await visitor.get(path)
                assert answer.status_code == status
                assert ("s-1" in answer.text) == (status == 200)
            if status == 403:
                assert (await visitor.get("/v1/sessions/stream")).status_code == 403


async def test_a_deep_link_shows_the_same_again() -> None:
    async with open_log("memory://") as log:
        for number in range(60):
            await put(log, number, utility=number % 7 / 10, agent=f"a{number % 2}")
        async with visiting(log) as visitor:
            page = await visitor.get("/sessions", agent="a1", sort="-utility")
            [following] = re.findall(r'href="([^"]*after=[^"]*)"', page.text) or [""]
            assert "30 of 60 sessions" in page.text
            assert not following  # they fit on a page
            page = await visitor.get("/sessions", sort="-utility")
            [following] = re.findall(r'href="([^"]*after=[^"]*)"', page.text)
            link = following.replace("&amp;", "&")
            second = await visitor.client.get(link)
            assert len(re.findall("<tr data-session", second.text)) == 10
            assert (await visitor.client.get(link)).text == second.text


async def test_a_page_of_a_part_of_the_list_says_so_until_all_was_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with open_log("memory://") as log:
        for number in range(3):
            await put(log, number, utility=number / 10)
        async with visiting(log) as visitor:
            with monkeypatch.context() as hurry:
                hurry.setattr(lists, "_PATIENCE", 0.0)
                page = await visitor.get("/sessions", sort="-utility")
                assert "data-complete" not in page.text
            page = await visitor.get("/sessions", sort="-utility")
            assert "data-complete" in page.text
            assert page.text.count("<tr data-session") == 3


async def test_a_row_says_who_took_part_and_how_it_ended() -> None:
    async with open_log("memory://") as log:
        await put(log, 1, agent="two-stage", user="ann", a="1", b="2", c="3", d="4")
        gone = RecordWriter("gone")
        gone.opened(clock="utc")
        gone.human("hello")
        gone.closed("abandoned")
        await put_records(log, gone.records)
        async with visiting(log) as visitor:
            rows = (await visitor.data("/v1/sessions/rows", of="s-1", effort="acts"))["rows"]
            left = (await visitor.data("/v1/sessions/rows", of="gone"))["rows"]["gone"]
    assert "<bdi>two-stage</bdi>" in rows["s-1"]
    assert 'class="agent a1"' in rows["s-1"]
    assert ">Finished</span>" in rows["s-1"]
    assert ">+2</span>" in rows["s-1"]  # of four labels two are shown
    assert ">simulated</span>" in rows["s-1"]
    assert "Given up, round 1" in left


async def test_a_session_of_a_source_without_times_is_not_said_to_be_simulated() -> None:
    async with open_log("memory://") as log:
        script = RecordWriter("timeless")
        script.opened(clock="virtual")
        script.human("hello", at=0.0)
        await put_records(log, [msgspec.structs.replace(one, time=0.0) for one in script.records])
        async with visiting(log) as visitor:
            row = (await visitor.data("/v1/sessions/rows", of="timeless"))["rows"]["timeless"]
    assert "simulated" not in row


async def test_an_empty_log_says_how_to_fill_it() -> None:
    async with open_log("memory://") as log, visiting(log) as visitor:
        await visitor.data("/v1/sessions/rows")  # by now the list is read
        page = (await visitor.get("/sessions")).text
    assert "duolog import" in page
    assert 'id="rows"' not in page


async def test_rows_are_measured_as_the_session_grows() -> None:
    async with open_log("memory://") as log:
        script = RecordWriter("live")
        script.opened(clock="utc")
        script.human("hello")
        await put_records(log, script.records)
        async with visiting(log) as visitor:
            first = await visitor.data("/v1/sessions/rows", of="live", effort="acts")
            assert '<td class="effort number">1</td>' in first["rows"]["live"]
            assert "<bdi>bot</bdi>" in first["rows"]["live"]  # its agent, which no label names
            await log.append("live", [Draft(MessageSent(text="more"), "ann", "human", 9.0)])
            second = await visitor.data("/v1/sessions/rows", of="live", effort="acts")
            assert '<td class="effort number">2</td>' in second["rows"]["live"]


@pytest.mark.parametrize(
    ("looked", "loaded", "complete", "note"),
    [
        (0, False, False, "the latest ones; reading the list: 2,000 sessions so far …"),
        (1500, False, False, "3 of 1,500 sessions so far; reading the list …"),
        (1500, True, False, "3 found in 1,500 of 2,000 sessions …"),
        (2000, True, True, "3 of 2,000 sessions"),
    ],
)
def test_a_list_says_what_is_still_being_read(
    looked: int, loaded: bool, complete: bool, note: str
) -> None:
    assert searching_note(3, 2000, looked, loaded=loaded, complete=complete) == note


async def test_conditions_are_chips_that_can_be_taken_away() -> None:
    async with open_log("memory://") as log:
        await put(log, 1, agent="two stage", user="ann")
        async with visiting(log) as visitor:
            query = "q=utility%3Dnone+ann&q=rounds%3D1..&agent=two+stage"
            page = (await visitor.client.get(f"/sessions?{query}")).text
    assert "agent <b><bdi>two stage</bdi></b>" in page
    assert 'href="/sessions?q=utility%3Dnone+ann+rounds%3D1.."' in page  # without the agent
    assert 'href="/sessions?q=ann+rounds%3D1..&amp;agent=two+stage"' in page
    assert 'value="&quot;agent=two stage&quot;">1 session</option>' in page  # completes
    assert "1 of 1 session" in page


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (
            "utilty=1",
            "unknown label or property &#x27;utilty&#x27;; did you mean &#x27;utility&#x27;?",
        ),
        ("utility=high", "utility expects a number"),
        ("agnt=a", "did you mean &#x27;agent&#x27;?"),
    ],
)
async def test_a_condition_that_makes_no_sense_is_said_and_the_others_stay(
    query: str, said: str
) -> None:
    async with open_log("memory://") as log:
        await put(log, 1, agent="a")
        async with visiting(log) as visitor:
            page = await visitor.get("/sessions", q=f"rounds=1.. {query}")
    assert page.status_code == 400
    assert said in page.text
    assert f'value="{query}"' in page.text  # to be corrected
    assert "rounds <b><bdi>1..</bdi></b>" in page.text


async def test_columns_are_chosen_by_the_address() -> None:
    async with open_log("memory://") as log:
        await put(log, 1, agent="a", model="gpt")
        async with visiting(log) as visitor:
            rows = await visitor.data("/v1/sessions/rows", of="s-1", columns="records,model")
            page = (await visitor.get("/sessions", columns="model")).text
            wrong = await visitor.get("/sessions", columns="modle")
    assert re.findall(r'<td class="([^"]*)"', rows["rows"]["s-1"]) == [
        "tick",
        "model",
        "records number",
    ]
    assert 'name="columns" value="model" checked' in page
    assert 'name="columns" value="agent" checked' not in page
    assert "did you mean &#x27;model&#x27;?" in wrong.text


async def test_a_word_is_looked_for_in_contents_too() -> None:
    async with open_log("memory://") as log:
        for name, said in (("a", "I want a <b>refund</b>"), ("b", "nothing")):
            script = RecordWriter(name)
            script.opened(clock="virtual")
            script.human(said)
            await put_records(log, script.records)
        for role in ("operator", "viewer"):
            async with visiting(log, role) as visitor:
                page = (await visitor.get("/sessions", q="refund")).text
                assert "1 of 2 sessions" in page
                assert "I want a &lt;b&gt;refund&lt;/b&gt;" in page
                rows = (await visitor.data("/v1/sessions/rows", q="refund", of="a"))["rows"]
                assert "refund" in rows["a"]
                assert "0 of 2 sessions" in (await visitor.get("/sessions", q="refunded")).text
                assert (await visitor.get("/sessions", q="!!")).status_code == 200
