"""A session in the workbench: its records, any moment of it, its drafts, and the view of each role."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from html import unescape
from typing import Literal

import anyio
import pytest
from duolog.engine import codec
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    ActorFailed,
    ApprovalAsked,
    ApprovalGiven,
    Event,
    MessageSent,
    ModelCalled,
    NoteTaken,
    Origin,
    Participant,
    ProfileChanged,
    SessionOpened,
    SimulatorFlagged,
    SnapshotTaken,
)
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import MemoryLog, open_log
from duolog.engine.records import Draft, Record
from duolog.interop.workbench.access.disclosure import Disclosure
from duolog.interop.workbench.access.identity import Identity
from duolog.interop.workbench.session.forking import ForkRequest
from duolog.interop.workbench.session.reading import Readings, SessionReading
from duolog.scoring.trajectory.fold import TrajectoryFold
from duolog.scoring.trajectory.options import Options
from duolog.testing.records import AGENT, HUMAN, RecordWriter
from duolog.testing.sessions import put_records
from msgspec.structs import replace
from workbench import identity, visiting

SECRETS = ("likes-trains", "evaluator-data", "a-note", "a-reply", "a-detail", "new-fact")
"""What only one actor, or only the evaluator, knows."""

HOSTILE = (
    "<script>alert(1)</script><img src=https://evil.example/x onerror=alert(1)>"
    "[a](javascript:alert(1)) ![b](https://evil.example/y) \x1b[31m \u202e"
)


def story(session: str = "s") -> RecordWriter:
    """A session with something private of every kind."""
    script = RecordWriter(session)
    opened = SessionOpened(
        task="travel",
        instance="1",
        participants=(Participant(name="ann", role="human"), Participant(name="bot", role="agent")),
        clock="virtual",
        request="a trip",
        config={"judge": "judge", "utility": "u"},
        private={"ann": {"profile": "likes-trains"}, "travel": {"answer": "evaluator-data"}},
    )
    script.add(opened, "engine", "environment", at=0.0)
    script.human("hello")
    script.agent(NoteTaken(text="a-note"))
    script.agent(ModelCalled(model="m", purpose="act", request="r", reply="a-reply"))
    taken = script.agent(ActionTaken(name="search", arguments={"q": "x"}))
    script.add(
        ActionResolved(action=taken.version, outcome="ok", observation=["found"]),
        "environment",
        "environment",
    )
    first = script.output("one\ntwo")
    script.scored(0.25, snapshot=first)
    script.human("more, please")
    script.rated(1, 2)
    second = script.output("one\nthree")
    script.scored(0.75, snapshot=second)
    asked = script.agent(ApprovalAsked(question="may I?"))
    script.human(ApprovalGiven(asked=asked.version, approved=True))
    flagged = SimulatorFlagged(fault="leak", of=2, detail="a-detail")
    script.add(flagged, "audit", "scorer", stream="audit@1")
    changed = ProfileChanged(owner="ann", profile={"now": "new-fact"}, reason="a new-fact")
    script.human(changed)
    script.human("thanks")
    script.rated(2, 1)
    script.closed()
    return script


async def told(log: EventLog, role: str, count: int) -> str:
    """All that a role is told about session s, by every route."""
    async with visiting(log, role) as visitor:
        answers = [await visitor.get("/session", id="s")]
        for name, parameters in (
            ("index", {}),
            ("records", {"from": 1, "to": 40}),
            ("state", {"at": count}),
            ("about", {"at": count}),
            ("output", {"version": 7}),
            *(("raw", {"at": number}) for number in range(1, count + 1)),
        ):
            answers.append(await visitor.get(f"/v1/session/{name}", session="s", **parameters))
        if role == "participant":
            assert {answer.status_code for answer in answers} == {403}
        else:
            assert {answer.status_code for answer in answers} == {200}
        return "".join(answer.text for answer in answers)


async def test_each_role_is_told_what_it_may_know_on_every_route() -> None:
    script = story()
    async with open_log("memory://") as log:
        await put_records(log, script.records)
        operator = await told(log, "operator", len(script.records))
        assert [secret for secret in SECRETS if secret not in operator] == []
        viewer = await told(log, "viewer", len(script.records))
        assert [secret for secret in SECRETS if secret in viewer] == []
        assert "hello" in viewer
        participant = await told(log, "participant", len(script.records))
        assert "hello" not in participant


def test_a_participant_sees_what_the_session_shows_to_its_actor() -> None:
    script = story()
    seen = [Disclosure(identity("participant")).see(record) for record in script.records]
    text = b"".join(record.body or b"" for record in seen if record is not None).decode()
    assert "likes-trains" in text  # its own
    assert "new-fact" in text
    assert [secret for secret in SECRETS[1:-1] if secret in text] == []
    assert all(record is None or record.stream == "trace" for record in seen)
    other = Disclosure(Identity("participant", "ann", "another"))
    assert [other.see(record) for record in script.records] == [None] * len(script.records)


def test_of_an_opening_of_unknown_schema_a_viewer_sees_nothing() -> None:
    script = RecordWriter("s")
    record = script.opened()
    unknown = replace(record, schema=99, body=b'{"kind":"SessionOpened","secret":1}', _event=None)
    shown = Disclosure(identity("viewer")).see(unknown)
    assert shown is not None
    assert shown.body == b"{}"
    assert Disclosure(identity("operator")).see(unknown) is unknown


async def test_any_moment_is_as_it_was_then() -> None:
    script = story()
    async with open_log("memory://") as log:
        await put_records(log, script.records)
        reading = SessionReading(log, "s", identity("operator"), Options())
        await reading.refresh()
        order = [*range(len(script.records) + 1), 5, 17, 3, 3, 12]
        for count in order:
            fold = TrajectoryFold("s", Options())
            for record in script.records[:count]:
                fold.feed(record)
            moment = await reading.at(count)
            trajectory = fold.trajectory()
            assert (moment.points, moment.state) == (trajectory.points, trajectory.state)
            assert (moment.stops, moment.missing) == (fold.stops, fold.utility_missing)
        asked = [number for number in order[:19] if (await reading.at(number)).approvals]
        assert asked == [13]  # asked for in record 13, answered in record 14


async def test_the_index_says_where_everything_is() -> None:
    async with open_log("memory://") as log:
        await put_records(log, story().records)
        async with visiting(log) as visitor:
            index = await visitor.data("/v1/session/index", session="s")
            assert index["count"] == 19
            assert index["rounds"] == [1, 9, 14]
            assert [draft["version"] for draft in index["drafts"]] == [7, 9]
            assert index["advice"] == [10, 18]
            assert index["closed"] == 19
            later = await visitor.data("/v1/session/index", session="s", after=10)
            assert (later["after"], len(later["times"]), later["rounds"]) == (10, 9, [14])
            assert (await visitor.get("/v1/session/index", session="t")).status_code == 404
            assert (await visitor.get("/session", id="<b>")).status_code == 404
            assert (
                await visitor.get("/v1/session/index", session="s", after="x")
            ).status_code == 400


async def test_work_overlaps_where_actions_and_acts_do() -> None:
    script = RecordWriter("s")
    script.opened(clock="virtual")
    first = script.agent(ActionTaken(name="a"), at=10.0)
    second = script.agent(ActionTaken(name="b"), at=11.0)
    script.human("meanwhile", at=15.0)
    for taken, at in ((second, 14.0), (first, 20.0)):
        resolved = ActionResolved(action=taken.version, outcome="ok")
        script.add(resolved, "environment", "environment", at=at)
    async with open_log("memory://") as log:
        await put_records(log, script.records)
        reading = SessionReading(log, "s", identity("operator"), Options())
        await reading.refresh()
        work = [(one.actor, one.begin, one.end) for one in reading.growth().work]
        assert ("environment", 10.0, 20.0) in work
        assert ("environment", 11.0, 14.0) in work
        assert ("bot", 10.0, 11.0) in work


async def test_records_are_read_part_by_part_with_the_headings_of_rounds() -> None:
    async with open_log("memory://") as log:
        await put_records(log, story().records)
        async with visiting(log) as visitor:
            found: list[str] = []
            for first in range(1, 20, 5):
                part = await visitor.data(
                    "/v1/session/records", session="s", **{"from": first, "to": first + 4}
                )
                found += re.findall(r'<article[^>]*data-i="(\d+)"', part["html"])
                assert all(
                    f'data-round="{n}"' in part["html"]
                    for n in {9: [2], 14: [3]}.get(first + 4, [])
                )
            assert found == [str(number) for number in range(1, 20)]
            whole = (
                await visitor.data("/v1/session/records", session="s", **{"from": 1, "to": 40})
            )["html"]
            assert re.findall(r'data-round="(\d)" data-i="(\d+)"', whole) == [
                ("1", "1"),
                ("2", "9"),
                ("3", "14"),
            ]
            assert "τ = 1 is used up in round 1" in whole
            assert "<ins" in whole
            assert 'class="result"' in whole
            assert "→ 1 item (1.0 s)" in whole


async def test_a_run_of_calls_is_one_row_that_shows_its_failures() -> None:
    script = RecordWriter("s")
    script.opened(clock="virtual")
    script.human("look it up")
    for place in range(5):
        taken = script.agent(ActionTaken(name=f"look-{place}"))
        outcome: Literal["ok", "failed"] = "failed" if place == 3 else "ok"
        resolved = ActionResolved(action=taken.version, outcome=outcome, error="no such town")
        script.add(resolved, "environment", "environment")
    async with open_log("memory://") as log:
        await put_records(log, script.records)
        async with visiting(log) as visitor:
            asked: dict[str, str | int] = {"session": "s", "from": 1, "to": 20}
            html = (await visitor.data("/v1/session/records", **asked))["html"]
    assert re.search(r'<details[^>]*class="run"[^>]*open', html)
    assert re.search(r"<summary>5 calls<b[^>]*>, 1 failed</b></summary>", html)
    call = re.search(r'<article class="entry slim agent call" data-i="9".*?</article>', html)
    assert call is not None
    assert "no such town" in call[0]
    numbers = re.findall(r'<article[^>]*data-i="(\d+)"', html)
    assert numbers == [str(number) for number in range(1, 13)]


async def test_a_call_has_its_outcome_where_a_part_ends_between_them() -> None:
    script = RecordWriter("s")
    script.opened(clock="virtual")
    script.human("look it up")
    taken = script.agent(ActionTaken(name="look"))
    script.agent("a moment")
    script.add(
        ActionResolved(action=taken.version, outcome="ok", observation="sunny"),
        "environment",
        "environment",
    )
    async with open_log("memory://") as log:
        await put_records(log, script.records)
        async with visiting(log) as visitor:

            async def part(first: int, last: int) -> str:
                asked = {"from": first, "to": last}
                found = await visitor.data("/v1/session/records", session="s", **asked)
                return str(found["html"])

            assert re.search(r'class="result" data-i="5">.*sunny', await part(1, 3))
            later = await part(4, 5)  # the page hides this one if the part before has it
            assert re.search(r'<article[^>]* data-i="5"', later)


async def test_the_heading_of_a_round_says_what_came_of_it() -> None:
    script = RecordWriter("s")
    script.opened(clock="virtual")
    script.human("a plan", at=10.0)
    taken = script.agent(ActionTaken(name="look"))
    script.add(
        ActionResolved(action=taken.version, outcome="failed", error="no"),
        "environment",
        "environment",
    )
    script.scored(0.5, snapshot=script.output("plan 1"))
    script.human("no", at=70.0)
    script.rated(1, 2)
    script.scored(0.25, snapshot=script.output("plan 2"))
    async with open_log("memory://") as log:
        await put_records(log, script.records)
        async with visiting(log) as visitor:
            asked: dict[str, str | int] = {"session": "s", "from": 1, "to": 20}
            html = (await visitor.data("/v1/session/records", **asked))["html"]
    first, second = (
        re.sub("<[^>]*>", "|", one) for one in re.findall(r"<h2[^>]*>(.*?)</h2>", html)
    )
    assert [part for part in first.split("|") if part] == [
        "Round 1",
        "from 0:00, lasted 1:10",
        "1 failed",
        "rated 2 of 5",
        "utility 0.500",
    ]
    assert second.endswith("utility 0.500 → 0.250|")
    assert html.count('<span class="on">') == 2
    assert "scores draft 2" in html  # drafts have one numbering everywhere


async def test_files_are_shown_by_path_with_code_in_colours() -> None:
    script = RecordWriter("s")
    script.opened(clock="virtual")
    script.human("write it")
    script.files({"a.py": "def f():\n    return '<b>'  # x\n", "notes.md": "*so*"})
    latest = script.files({"b.unknown": "<i>"})
    async with open_log("memory://") as log:
        await put_records(log, script.records)
        async with visiting(log) as visitor:
            asked: dict[str, str | int] = {"session": "s", "version": latest.version}
            html = (await visitor.data("/v1/session/output", **asked))["html"]
    assert re.findall(r"<summary><code>(.*?)</code>", html) == ["a.py", "notes.md", "b.unknown"]
    assert '<span class="tok-keyword">def</span>' in html
    assert "&lt;b&gt;" in html
    assert "<em>so</em>" in html
    assert "&lt;i&gt;" in html


async def test_the_strip_says_why_a_session_failed() -> None:
    script = RecordWriter("s")
    script.opened()
    script.human("a plan")
    script.agent(ActorFailed(error="no answer after 300 s", type="TimeoutError"))
    script.closed("failed")
    async with open_log("memory://") as log:
        await put_records(log, script.records)
        async with visiting(log) as visitor:
            told = (await visitor.data("/v1/session/strip", session="s"))["html"]
    assert "by engine: “TimeoutError: no answer after 300 s”" in told


async def test_the_strip_names_the_fork_with_the_highest_utility() -> None:
    async with open_log("memory://") as log:
        for name, value in (("origin", 0.5), ("worse", 0.25), ("better", 0.75)):
            script = RecordWriter(name)
            opened = SessionOpened(
                task="test",
                instance="1",
                participants=(HUMAN, AGENT),
                clock="virtual",
                config={"group": {"agent": f"the-{name}"}, "utility": "u"},
                forked_from=None if name == "origin" else Origin(session="origin", version=2),
            )
            script.add(opened, "engine", "environment", at=0.0)
            script.human("a plan")
            script.scored(value, snapshot=script.output("plan"))
            await put_records(log, script.records)
        async with visiting(log) as visitor:
            told = (await visitor.data("/v1/session/strip", session="origin"))["html"]
            assert "A fork did better" in told
            assert "0.750 with the-better" in told
            assert "of 2 forks" in told
            assert "/pair?left=origin&amp;right=better" in told
            told = (await visitor.data("/v1/session/strip", session="worse"))["html"]
            assert "Fork of" in told


async def test_versions_of_the_output_are_compared() -> None:
    async with open_log("memory://") as log:
        await put_records(log, story().records)
        async with visiting(log) as visitor:
            output = await visitor.data("/v1/session/output", session="s", version=9)
            assert "three" in output["html"]
            changes = await visitor.data(
                "/v1/session/output", session="s", version=9, against=7, shape="changes"
            )
            assert re.findall("<(ins|del) [^>]*>(.*?)</", changes["html"]) == [
                ("del", "two"),
                ("ins", "three"),
            ]
            missing = await visitor.get("/v1/session/output", session="s", version=8)
            assert missing.status_code == 404
            huge = [f"line {number}" for number in range(3000)]
            for at, content in enumerate(("\n".join(huge), "\n".join(huge[::-1]))):
                event = SnapshotTaken(content=content, digest=codec.digest(content))
                await log.append("t", [Draft(event, "bot", "agent", float(at))])
            long = await visitor.data(
                "/v1/session/output", session="t", version=2, against=1, shape="changes"
            )
            assert "too long to be compared" in long["html"]


@pytest.mark.parametrize(
    "event",
    [
        MessageSent(text=HOSTILE, to=(HOSTILE,)),
        ActionTaken(name=HOSTILE, arguments={HOSTILE: HOSTILE}, raw=HOSTILE),
        SnapshotTaken(content=HOSTILE, digest=codec.digest(HOSTILE), media_type="text/markdown"),
        ApprovalAsked(question=HOSTILE, action=HOSTILE, arguments={HOSTILE: HOSTILE}),
        NoteTaken(text=HOSTILE),
        ModelCalled(model=HOSTILE, purpose=HOSTILE, request="", reply=HOSTILE, error=HOSTILE),
        SimulatorFlagged(fault=HOSTILE, of=1, detail=HOSTILE),
    ],
    ids=lambda event: type(event).__name__,
)
async def test_texts_neither_run_nor_load(event: Event) -> None:
    async with open_log("memory://") as log:
        await log.append("s", [Draft(event, HOSTILE, "agent", 0.0)])
        async with visiting(log) as visitor:
            pieces = [
                (await visitor.data("/v1/session/records", session="s"))["html"],
                (await visitor.data("/v1/session/raw", session="s", at=1))["html"],
                (await visitor.data("/v1/session/about", session="s"))["html"],
            ]
            if isinstance(event, SnapshotTaken):
                output = await visitor.data("/v1/session/output", session="s", version=1)
                pieces.append(output["html"])
        for html in pieces:
            for bad in ("<script", "<img", '<a href="java', '<a href="http', "\x1b", "\u202e"):
                assert bad not in html
            elements = set(re.findall(r"<([a-z0-9]+)", html))
            assert elements <= set(
                "article h2 header span time a div p pre details summary code b button dl dt dd ul li "
                "table caption thead tbody tr th td ins br".split()
            ), elements
            assert "alert(1)" in unescape(html) or "dl" in elements


async def test_what_comes_is_sent_once_and_from_any_position() -> None:
    script = story()
    async with open_log("memory://") as log, visiting(log) as visitor:
        await put_records(log, script.records[:6])
        readings = Readings(visitor.workbench)
        growths = readings.follow("s", identity("operator"), 0)
        first = await anext(growths)
        assert (first.after, first.count) == (0, 6)
        await put_records(log, script.records[6:])
        count = 6
        with anyio.fail_after(120):
            while count < len(script.records):
                growth = await anext(growths)
                assert growth.after == count
                assert len(growth.times) == growth.count - growth.after
                count = growth.count
        resumed = await anext(
            readings.follow("s", identity("operator"), script.records[9].position)
        )
        assert (resumed.after, resumed.count) == (10, 19)
        missing = readings.follow("t", identity("operator"), 0)
        with pytest.raises(Exception, match="t"):
            await anext(missing)


async def test_a_long_session_looks_back_from_folds_that_were_kept() -> None:
    script = RecordWriter("s")
    script.opened(clock="virtual")
    for number in range(2200):
        script.human(f"word {number}")
        script.agent("answer")
    async with open_log("memory://") as log:
        drafts = [Draft(r.event, r.actor, r.role, r.time) for r in script.records]  # type: ignore[arg-type]
        await log.append("s", drafts)
        reading = SessionReading(log, "s", identity("operator"), Options())
        await reading.refresh()
        for count in (4300, 4100, 2100, 10):
            points = (await reading.at(count)).points
            assert len(points) == (count - 1) // 2 + (count - 1) % 2
            assert points[-1].effort["acts"] == len(points)


async def test_a_fork_begins_where_one_looks_and_names_no_program() -> None:
    script = story()
    asked: list[tuple[ForkRequest, int]] = []

    async def fork(request: ForkRequest, version: int) -> str:
        asked.append((request, version))
        return "a-fork"

    body: dict[str, object] = {"session": "s", "at": 9, "agent": "two-stage", "seed": 8}
    async with open_log("memory://") as log:
        await put_records(log, script.records)
        async with visiting(log, forks=fork) as visitor:
            assert "Fork here" in (await visitor.get("/session", id="s")).text
            begun = await visitor.post("/v1/session/fork", body)
            assert begun.json() == {"session": "a-fork"}
            assert asked == [(ForkRequest(session="s", at=9, agent="two-stage", seed=8), 8)]
            for agent in ("exec:rm", "x.py:Agent", "openai:http://evil.example", "../a", ""):
                refused = await visitor.post("/v1/session/fork", body | {"agent": agent})
                assert refused.status_code == 400, agent
            assert (await visitor.post("/v1/session/fork", {"at": "x"})).status_code == 400
        for role, read_only in (("viewer", False), ("participant", False), ("operator", True)):
            async with visiting(log, role, forks=fork, read_only=read_only) as visitor:
                assert (await visitor.post("/v1/session/fork", body)).status_code == 403
        assert len(asked) == 1


async def test_what_was_erased_is_not_shown_from_what_was_read_before() -> None:
    async with open_log("memory://") as log, visiting(log) as visitor:
        script = RecordWriter("s")
        script.opened(config={"note": "a private matter"})
        await put_records(log, script.records)
        about = await visitor.data("/v1/session/about", session="s")
        assert "a private matter" in about["html"]
        await log.forget("s")
        about = await visitor.data("/v1/session/about", session="s")
        assert "a private matter" not in about["html"]


async def test_a_session_that_is_followed_is_not_read_anew_because_others_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("duolog.interop.workbench.session.reading._KEPT", 1)
    began: list[str | None] = []
    read_all = MemoryLog.read_all

    def reading(
        log: MemoryLog, *, session: str | None = None, after_position: int = 0
    ) -> AsyncIterator[Record]:
        if not after_position:
            began.append(session)
        return read_all(log, session=session, after_position=after_position)

    monkeypatch.setattr(MemoryLog, "read_all", reading)
    async with open_log("memory://") as log, visiting(log) as visitor:
        scripts = [RecordWriter("s"), RecordWriter("t")]
        for script in scripts:
            script.opened()
            await put_records(log, script.records)
        readings = Readings(visitor.workbench)
        growths = readings.follow("s", Identity("operator"), 0)
        written = (await anext(growths)).count
        await readings.of("t", Identity("operator"))
        scripts[0].human("more")
        await put_records(log, scripts[0].records[written:])
        assert (await anext(growths)).count == written + 1
    assert began.count("s") == 1
