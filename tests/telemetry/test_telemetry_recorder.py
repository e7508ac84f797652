"""The verbs of a recorder, sessions opened again, ids, bases, ratings, the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import msgspec
import pytest
from duolog.engine.codec import digest
from duolog.engine.errors import (
    DuologError,
    DuplicateConflict,
    InvalidInput,
    LogClosed,
    NotRecorded,
    SessionClosedError,
    StaleBase,
)
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    ApprovalAsked,
    ApprovalGiven,
    CloseReason,
    FeedbackGiven,
    MessageSent,
    ModelCalled,
    NoteTaken,
    Participant,
    ProgressRated,
    SessionClosed,
    SessionOpened,
    SnapshotTaken,
    Tokens,
    TurnYielded,
    Unknown,
)
from duolog.engine.log.contract import EventLog
from duolog.engine.log.exchange.jsonl_export import from_jsonl, to_jsonl
from duolog.engine.log.open import MemoryLog, open_log
from duolog.engine.records import Draft, Record
from duolog.engine.session.commands import Command, CommandResult, Sender, handle
from duolog.engine.session.state import TraceState
from duolog.scoring.display.records import describe
from duolog.telemetry.receipt import Awaited, version_of
from duolog.telemetry.recorder import Recorder
from duolog.telemetry.session import Recording
from gated_log import Gate


@pytest.fixture
async def log() -> AsyncIterator[EventLog]:
    async with open_log("memory://") as opened:
        yield opened


async def records(log: EventLog, session: str = "s") -> list[Record]:
    return [record async for record in log.read(session)]


async def told(log: EventLog, session: str = "s") -> list[tuple[str, object]]:
    """Actors and events after the opening."""
    found: list[tuple[str, object]] = [(r.actor, r.event) for r in await records(log, session)]
    return found[1:]


async def finished(s: Recording[Awaited]) -> None:
    """Closes a session, and waits until everything is in the log."""
    await s.close(durable=True)


async def test_what_happens_in_a_conversation_is_in_the_log(log: EventLog) -> None:
    async with Recorder(log) as recorder:
        s = await recorder.session("conversation-42", task="support", agent="v7")
        await s.human.says("My order has not come.")
        await s.agent.says("I am looking into it.")
        await s.agent.acts("search", {"order": 7}, result={"state": "lost"})
        await s.agent.submits("Dear customer")
        await s.human.edits("Dear Ann")
        await s.human.rates(4, "better")
        await s.human.feedback(thumbs="up")
        await s.close()
    found = await records(log, "conversation-42")
    opened = found[0].event
    assert isinstance(opened, SessionOpened)
    assert opened.task == "support"
    assert opened.clock == "utc"
    assert opened.config["group"] == {"agent": "v7"}
    assert opened.participants == (
        Participant(name="human", role="human"),
        Participant(name="agent", role="agent", policy="v7"),
    )
    first, second = "Dear customer", "Dear Ann"
    assert [(r.actor, r.role, r.event) for r in found[1:]] == [
        ("human", "human", MessageSent(text="My order has not come.")),
        ("agent", "agent", MessageSent(text="I am looking into it.")),
        ("agent", "agent", ActionTaken(name="search", arguments={"order": 7})),
        (
            "environment",
            "environment",
            ActionResolved(action=4, outcome="ok", observation={"state": "lost"}),
        ),
        ("agent", "agent", SnapshotTaken(content=first, digest=digest(first))),
        ("human", "human", SnapshotTaken(content=second, digest=digest(second), base=6)),
        ("human", "human", ProgressRated(round=1, rating=4, until=6, explanation="better")),
        ("human", "human", FeedbackGiven(thumbs="up")),
        ("engine", "environment", SessionClosed(reason="ended", by="engine")),
    ]
    assert found[4].cause == "trace/4"
    assert [r.version for r in found] == list(range(1, 11))
    times = [r.time for r in found]
    assert times == sorted(times)


async def test_every_other_verb(log: EventLog) -> None:
    async with Recorder(log) as recorder:
        s = await recorder.session("s")
        asked = await s.agent.asks("May I book it?", action="book", arguments={"id": 1})
        await s.human.approves(asked, approved=False, comment="too dear")
        await s.agent.notes("cheaper ones first")
        await s.agent.yields("waiting for the person")
        await s.agent.called_model(
            "m-1", purpose="plan", request={"b": 1, "a": 2}, reply="hello", tokens=Tokens(prompt=9)
        )
        await finished(s)
    assert (await told(log))[:-1] == [
        ("agent", ApprovalAsked(question="May I book it?", action="book", arguments={"id": 1})),
        ("human", ApprovalGiven(asked=2, approved=False, comment="too dear")),
        ("agent", NoteTaken(text="cheaper ones first")),
        ("agent", TurnYielded(reason="waiting for the person")),
        (
            "agent",
            ModelCalled(
                model="m-1",
                purpose="plan",
                request=digest({"a": 2, "b": 1}),
                reply="hello",
                tokens=Tokens(prompt=9),
            ),
        ),
    ]


async def test_an_action_is_resolved_later_and_those_in_flight_are_cancelled(log: EventLog) -> None:
    async with Recorder(log) as recorder:
        s = await recorder.session("s")
        slow = await s.agent.acts("slow")
        quick = await s.agent.acts("quick")
        await s.agent.acts("lost")
        await s.agent.resolves(quick, [1, 2])
        await s.agent.resolves(slow, error="timed out")
        await finished(s)
        assert (slow.version, quick.version) == (2, 3)
    resolved = [e for _, e in await told(log) if isinstance(e, ActionResolved)]
    assert resolved == [
        ActionResolved(action=3, outcome="ok", observation=[1, 2]),
        ActionResolved(action=2, outcome="failed", error="timed out"),
        ActionResolved(action=4, outcome="cancelled"),
    ]


async def test_an_action_is_resolved_once(log: EventLog) -> None:
    async with Recorder(log) as recorder:
        s = await recorder.session("s")
        action = await s.agent.acts("search", result=1)
        with pytest.raises(
            InvalidInput, match="version 2 of session 's' is not an action that waits"
        ):
            await s.agent.resolves(action, 2, durable=True)
        with pytest.raises(InvalidInput, match="no approval was requested at version 2"):
            await s.human.approves(action, durable=True)
        assert recorder.statistics().refused == 2


async def test_streamed_text_lands_as_one_message(log: EventLog) -> None:
    async with Recorder(log) as recorder:
        s = await recorder.session("s")
        async with s.agent.saying(to=["human"]) as message:
            for piece in ("It is ", "on its", " way."):
                message.write(piece)
            assert message.text == "It is on its way."
        async with s.agent.saying():
            pass  # nothing was said

        async def stream() -> None:
            async with s.agent.saying() as message:
                message.write("I will")
                raise ConnectionError("it broke off")

        with pytest.raises(ConnectionError):
            await stream()
        with pytest.raises(InvalidInput, match="a piece must be a text, not bytes"):
            message.write(b"x")  # type: ignore[arg-type]
        await finished(s)
    assert (await told(log))[:-1] == [
        ("agent", MessageSent(text="It is on its way.", to=("human",))),
        ("agent", MessageSent(text="I will", cut="ConnectionError: it broke off")),
    ]


async def test_a_cancelled_stream_is_recorded_as_cut_off(log: EventLog) -> None:
    async with Recorder(log) as recorder:
        s = await recorder.session("s")
        with anyio.CancelScope() as scope:
            async with s.agent.saying() as message:
                message.write("I was about")
                scope.cancel()
                await anyio.sleep_forever()
        await finished(s)
        record = (await records(log))[1]
    assert isinstance(record.event, MessageSent)
    assert (record.event.text, record.event.cut) == ("I was about", "CancelledError")
    assert describe(record).does == "was cut off (CancelledError)"


async def test_several_humans_and_agents(log: EventLog) -> None:
    async with Recorder(log) as recorder:
        s = await recorder.session(
            "s",
            humans=("ann", Participant(name="ben", role="human", persona="editor")),
            agents=("planner", "coder"),
            model="m",
        )
        await s.human.says("from ann")
        await s.actor("ben").says("from ben")
        await s.agent.says("from planner")
        await s.actor("coder").says("from coder", to=["planner"])
        await s.actor("guest", role="human").says("from a guest")
        with pytest.raises(
            InvalidInput, match=r"unknown participant 'nobody' in session .*; choose from ann, ben"
        ):
            s.actor("nobody")
        with pytest.raises(InvalidInput, match="'ben' is human in session 's', not agent"):
            s.actor("ben", role="agent")
        with pytest.raises(InvalidInput, match="'engine' cannot be the name"):
            s.actor("engine", role="human")
        await finished(s)
    found = await records(log)
    assert [(r.actor, r.role) for r in found[1:-1]] == [
        ("ann", "human"),
        ("ben", "human"),
        ("planner", "agent"),
        ("coder", "agent"),
        ("guest", "human"),
    ]
    opened = found[0].event
    assert isinstance(opened, SessionOpened)
    assert [p.name for p in opened.participants] == ["ann", "ben", "planner", "coder"]
    assert opened.participants[2].model == "m"


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"humans": ("x", "x")}, "participants need unique names: x, x, agent"),
        ({"humans": ("environment",)}, "'environment' cannot be the name of a participant"),
        ({"agents": (Participant(name="a", role="scorer"),)}, "'a' must be human or agent"),
    ],
)
async def test_participants_that_cannot_be(
    log: EventLog, about: dict[str, tuple[str, ...]], message: str
) -> None:
    async with Recorder(log) as recorder:
        with pytest.raises(InvalidInput, match=message):
            await recorder.session("s", **about)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("tsk", "; did you mean 'task'?"),
        ("agnet", "; did you mean 'agent' or 'agents'?"),
        ("label", "; did you mean 'labels'?"),
        ("colour", "; choose from agent, .*; a label of your own goes into labels={'colour': ...}"),
    ],
)
async def test_a_name_that_nobody_knows_is_refused(log: EventLog, name: str, hint: str) -> None:
    async with Recorder(log) as recorder:
        await recorder.session("s", task="t")
        for session in ("s", "new"):  # also when reopened, which leaves its opening as it is
            with pytest.raises(InvalidInput, match=f"unknown label or option '{name}'{hint}"):
                await recorder.session(session, task="t", **{name: "x"})  # type: ignore[arg-type]
    assert [summary.session async for summary in log.sessions()] == ["s"]


async def test_a_session_without_a_human_says_so(log: EventLog) -> None:
    async with Recorder(log) as recorder:
        s = await recorder.session("s", humans=())
        with pytest.raises(InvalidInput, match="was opened without a human"):
            _ = s.human
        with pytest.raises(InvalidInput, match="a session needs an id that is not empty"):
            await recorder.session("")
        with pytest.raises(InvalidInput, match="a session's id must be a text, not int"):
            await recorder.session(7)  # type: ignore[arg-type]


async def test_what_a_session_is_about_is_noted(log: EventLog) -> None:
    async with Recorder(log) as recorder:
        await recorder.session(
            "s",
            instance="order-7",
            user="trial",
            model="m",
            request="Help me",
            judge="rule-judge",
            utility="retention",
            labels={"country": "NZ"},
            config={"limit": 3},
            private={"human": {"age": 40}},
        )
    [opened] = [r.event for r in await records(log)]
    assert isinstance(opened, SessionOpened)
    assert opened.instance == "order-7"
    assert opened.request == "Help me"
    assert opened.private == {"human": {"age": 40}}
    assert opened.config == {
        "limit": 3,
        "group": {"user": "trial", "model": "m", "country": "NZ"},
        "judge": "rule-judge",
        "utility": "retention",
    }
    assert (await log.summary("s")).group == {"user": "trial", "model": "m", "country": "NZ"}


# --- opened again ----------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["memory", "file"])
async def test_a_session_goes_on_where_it_was(where: str, tmp_path: Path) -> None:
    url = "memory://" if where == "memory" else f"sqlite:///{tmp_path}/t.db"
    async with open_log(url) as log:
        async with Recorder(log) as recorder:
            s = await recorder.session("s", agent="v1")
            draft = await s.agent.submits("draft", durable=True)
            action = await s.agent.acts("search", durable=True)
        async with Recorder(log) as recorder:
            again = await recorder.session("s", agent="v2", humans=("ann",))
            assert not again.closed
            await again.agent.resolves(action.version or 0, "found")
            await again.human.edits("draft 2", base=draft.version)
            await finished(again)
        async with Recorder(log) as recorder:
            closed = await recorder.session("s")
            assert closed.closed
            with pytest.raises(SessionClosedError):
                await closed.human.says("hello?")
            await closed.human.feedback(thumbs="down", durable=True)
        found = await records(log)
        assert [r.kind for r in found] == [
            "SessionOpened",
            "SnapshotTaken",
            "ActionTaken",
            "ActionResolved",
            "SnapshotTaken",
            "SessionClosed",
            "FeedbackGiven",
        ]
        opened, edited = found[0].event, found[4].event
        assert isinstance(opened, SessionOpened)
        assert opened.config["group"] == {"agent": "v1"}
        assert isinstance(edited, SnapshotTaken)
        assert edited.base == 2


async def test_handles_of_one_session_share_its_state(log: EventLog) -> None:
    async with Recorder(log) as recorder:
        one, two = await recorder.session("s"), await recorder.session("s")
        draft = await one.agent.submits("a")
        await two.human.edits("b", base=draft)
        await one.close()
        assert two.closed
        await two.close("failed", durable=True)
    kinds = [r.kind for r in await records(log)]
    assert kinds == ["SessionOpened", "SnapshotTaken", "SnapshotTaken", "SessionClosed"]


async def test_a_session_may_be_closed_by_one_in_it(log: EventLog) -> None:
    async with Recorder(log) as recorder:
        s = await recorder.session("s")
        with pytest.raises(InvalidInput, match="unknown participant 'bob'"):
            await s.close(by="bob")
        await s.close("cancelled", by="human", detail="went away", durable=True)
    last = (await records(log))[-1]
    assert (last.actor, last.role) == ("human", "human")
    assert last.event == SessionClosed(reason="cancelled", by="human", detail="went away")


@pytest.mark.parametrize("reason", ["finished", "abandoned", "ended"])
async def test_who_closes_a_session_says_how_it_ended(reason: CloseReason, log: EventLog) -> None:
    async with Recorder(log) as recorder:
        s = await recorder.session("s")
        await s.close(reason, by="human", durable=True)
        assert (await log.summary("s")).state == reason


# --- ids -----------------------------------------------------------------------------------------


async def deliver(s: Recording[Awaited], text: str = "draft") -> None:
    """Events that refer to others, each with an id."""
    await s.human.says("hello", id="m1")
    await s.agent.acts("search", {"q": 1}, result=[1], id="a1")
    draft = await s.agent.submits(text, id="d1")
    await s.human.edits("edited", base=draft, id="d2")
    asked = await s.agent.asks("sure?", id="q1")
    await s.human.approves(asked, id="q2")
    await s.human.rates(5, id="r1")
    await s.human.feedback(thumbs="up", of=draft, id="f1")


async def test_a_receipt_gives_the_record_that_its_verb_is_named_after() -> None:
    """A close resolves first what is in flight; all are written in one batch."""
    async with Gate(MemoryLog()) as gate, Recorder(gate.log) as recorder:
        gate.shut()
        s = await recorder.session("s")
        verbs = (
            s.human.says("x"),
            s.agent.acts("look"),
            s.agent.acts("read"),
            s.agent.submits("y"),
        )
        receipts = [await verb for verb in verbs]
        closed = await s.close()
        gate.open()
        kinds = [record.kind for one in (*receipts, closed) if (record := await one.written())]
    assert kinds == ["MessageSent", "ActionTaken", "ActionTaken", "SnapshotTaken", "SessionClosed"]


async def test_what_is_delivered_again_is_recorded_once(log: EventLog) -> None:
    async with Recorder(log) as recorder:
        s = await recorder.session("s")
        await deliver(s)
        await deliver(s)
        await s.agent.submits("later", durable=True)
        before = await records(log)
        again = await s.agent.submits("draft", id="d1", durable=True)
        assert again.version == 5
        statistics = recorder.statistics()
        assert (statistics.refused, statistics.repeated) == (0, 9)
    async with Recorder(log) as recorder:  # in another process, say
        s = await recorder.session("s")
        await deliver(s)
        await s.close(durable=True)
        await deliver(s)
        await s.human.says("hello", id="m1", durable=True)
        assert recorder.statistics().refused == 0
    assert (await records(log))[: len(before)] == before
    assert len(await records(log)) == len(before) + 1


async def test_an_id_belongs_to_one_event(log: EventLog) -> None:
    async with Recorder(log) as recorder:
        s = await recorder.session("s")
        await s.human.says("hello", id="1")
        with pytest.raises(DuplicateConflict, match="'1' is already used"):
            await s.human.says("good-bye", id="1", durable=True)
        with pytest.raises(DuplicateConflict):
            await s.agent.acts("look", id="1", durable=True)
        await s.human.says("good-bye", id="2", durable=True)
        assert recorder.statistics().refused == 2
        with pytest.raises(InvalidInput, match="an id is a text that is not empty"):
            await s.human.says("x", id="")
    assert [e.text for _, e in await told(log) if isinstance(e, MessageSent)] == [
        "hello",
        "good-bye",
    ]


async def test_ids_hold_although_contents_are_redacted() -> None:
    from duolog.engine.records import Draft

    def redact(draft: Draft) -> Draft:
        if isinstance(draft.event, MessageSent):
            return Draft(MessageSent(text="[gone]"), draft.actor, draft.role, draft.time, draft.id)
        return draft

    async with open_log("memory://", redact=redact) as log, Recorder(log) as recorder:
        s = await recorder.session("s")
        await s.human.says("my number is 7", id="1", durable=True)
        receipt = await s.human.says("my number is 7", id="1", durable=True)
        assert receipt.version == 2
        assert await told(log) == [("human", MessageSent(text="[gone]"))]


# --- the shared output ---------------------------------------------------------------------------


async def test_an_outdated_base_is_refused_and_its_author_told(log: EventLog) -> None:
    async with Recorder(log) as recorder:
        s = await recorder.session("s")
        first = await s.agent.submits("one")
        second = await s.human.edits("two", base=first)
        with pytest.raises(StaleBase, match="made from version 2, the latest is version 3"):
            await s.agent.submits("three", base=first)
        await s.agent.submits("four", base=first, overwrite=True)
        with pytest.raises(StaleBase):
            await s.agent.submits("five", base=second.version)
        latest = await s.agent.submits("six")
        await s.human.edits("seven", base=latest)
        await finished(s)
        assert recorder.statistics().refused == 2
    events = [event for _, event in await told(log)]
    assert events[2:4] == [
        ActionTaken(
            name="submit",
            arguments={
                "content": "three",
                "media_type": "text/plain",
                "base": 2,
                "digest": digest("three"),
            },
        ),
        ActionResolved(action=4, outcome="failed", error=str(StaleBase(2, 3))),
    ]
    snapshots = [e for e in events if isinstance(e, SnapshotTaken)]
    assert [(e.content, e.base) for e in snapshots] == [
        ("one", None),
        ("two", 2),
        ("four", 3),
        ("six", 6),
        ("seven", 9),
    ]


async def test_a_refused_edit_that_is_sent_again_is_refused_again(log: EventLog) -> None:
    async with Recorder(log) as recorder:
        s = await recorder.session("s")
        first = await s.agent.submits("one")
        await s.agent.submits("two")
        for _ in range(2):
            with pytest.raises(StaleBase):
                await s.human.edits("mine", base=first, id="e1")
        await finished(s)
    assert [r.kind for r in await records(log)].count("ActionTaken") == 1


async def test_contents_are_taken_as_they_are_at_the_call(log: EventLog) -> None:
    async with Recorder(log) as recorder:
        s = await recorder.session("s")
        plan = {"days": [1]}
        await s.agent.submits(plan)
        await s.agent.acts("book", plan, result=plan)
        plan["days"].append(2)
        await finished(s)
    events = [event for _, event in await told(log)]
    assert isinstance(events[0], SnapshotTaken)
    assert events[0].content == {"days": [1]}
    assert events[0].media_type == "application/json"
    assert isinstance(events[1], ActionTaken)
    assert events[1].arguments == {"days": [1]}


async def test_what_json_cannot_say_is_recorded_as_it_can_be(log: EventLog) -> None:
    class Odd:
        def __repr__(self) -> str:
            return "<odd>"

    async with Recorder(log) as recorder:
        s = await recorder.session("s")
        await s.agent.acts("run", {"what": Odd(), 1: {2, 3}}, result=Odd())  # type: ignore[dict-item]
        await s.agent.acts("run", {"half": "\ud800"}, error="\udfff")
        await s.human.says("half \ud83d")
        await finished(s)
        assert recorder.statistics().failed == 0
    events = [event for _, event in await told(log)]
    assert isinstance(events[0], ActionTaken)
    assert events[0].arguments["what"] == "<odd>"
    assert isinstance(events[1], ActionResolved)
    assert events[1].observation == "<odd>"
    assert isinstance(events[4], MessageSent)
    assert events[4].text == "half \\ud83d"


# --- ratings -------------------------------------------------------------------------------------


async def ratings(log: EventLog) -> list[tuple[int, int | None]]:
    return [(e.round, e.until) for _, e in await told(log) if isinstance(e, ProgressRated)]


@pytest.mark.parametrize("rating", [True, 3.0, 0, 6])
async def test_what_is_no_rating_is_refused_at_once(log: EventLog, rating: int) -> None:
    async with Recorder(log) as recorder:
        session = await recorder.session("s")
        with pytest.raises(InvalidInput, match="a rating is 1 to 5, not"):
            await session.human.rates(rating)


async def test_a_rating_is_of_the_last_round_in_which_an_agent_acted(log: EventLog) -> None:
    async with Recorder(log) as recorder:
        s = await recorder.session("s")
        await s.human.says("please")  # 2
        with pytest.raises(InvalidInput, match="no agent has acted yet"):
            await s.human.rates(3, durable=True)
        first = await s.agent.says("here")  # 3
        await s.human.rates(2)  # 4: of the round that is open
        await s.human.says("no")  # 5
        await s.human.rates(1)  # 6: of the round before, since nothing was done since
        await s.agent.says("there")  # 7
        await s.human.rates(5)  # 8
        await s.human.rates(1, of=first)  # 9
        await finished(s)
    assert await ratings(log) == [(1, 3), (1, 3), (2, 7), (1, 3)]


# --- values of any kind ----------------------------------------------------------------------------


class Unshowable:
    """A tool's result whose ``repr`` raises."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __repr__(self) -> str:
        raise self.error


def nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


def endless() -> object:
    value: list[object] = []
    value.append(value)
    return value


ODD: dict[str, tuple[object, object]] = {
    "repr raises": (Unshowable(ZeroDivisionError()), "Unshowable that cannot be shown"),
    "repr is cancelled": (Unshowable(asyncio.CancelledError()), "cannot be shown"),
    "repr raises inside": ([1, Unshowable(ValueError())], [1, "Unshowable that cannot be shown"]),
    "5,001 digits": (10**5000, "an integer of 16,610 bits] 0x"),
    "5,001 digits inside": ({"n": 10**5000}, "dict that cannot be shown"),
    "NaN": (float("nan"), "nan"),
    "half a pair": ("\ud800", "\\ud800"),
    "half a pair inside": ({"x": "\ud800"}, "\\ud800"),
    "nested 90 deep": (nested(90), nested(90)),
    "nested 97 deep": (nested(97), "nested deeper than 96 levels] [[["),
    "nested 970 deep": (nested(970), "nested"),
    "nested 100,000 deep": (nested(100_000), "nested without end"),
    "nested in itself": (endless(), "nested without end"),
}


def fits(held: object, expected: object) -> bool:
    if isinstance(expected, str):
        return isinstance(held, str) and expected in held
    if isinstance(expected, list) and isinstance(held, list):
        return all(map(fits, held, expected))
    return held == expected


@pytest.mark.parametrize(("value", "expected"), ODD.values(), ids=ODD.keys())
async def test_no_value_raises_into_the_product_or_loses_its_event(
    log: EventLog, value: object, expected: object
) -> None:
    async with Recorder(log) as recorder:
        s = await recorder.session("s", config={"odd": value}, labels={"odd": value})  # type: ignore[dict-item]
        await s.agent.acts("look", {"a": value}, result=value)
        action = await s.agent.acts("look")
        await s.agent.resolves(action, value)
        first = await s.agent.submits(value)
        await s.agent.submits("newer")
        with pytest.raises(StaleBase):
            await s.agent.submits(value, base=first)
        await s.agent.called_model("m", request=value, reply=value)
        await s.human.asks("May I?", arguments={"a": value})
        await s.agent.acts("look", error=value)  # type: ignore[arg-type]
        await s.agent.adds(ActionTaken(name="added", arguments={"a": value}))  # type: ignore[dict-item]
        await s.close(durable=True)
        counted = recorder.statistics()
    assert (counted.failed, counted.dropped, counted.waiting, counted.refused) == (0, 0, 0, 1)
    found = [record.event for record in await records(log)]
    resolved = [event for event in found if isinstance(event, ActionResolved)]
    assert fits(resolved[0].observation, expected)
    assert fits(resolved[1].observation, expected)
    assert [type(event) for event in found[-3:]] == [ActionTaken, ActionResolved, SessionClosed]
    snapshot = next(event for event in found if isinstance(event, SnapshotTaken))
    assert fits(snapshot.content, expected)
    lines = [to_jsonl(record) for record in await records(log)]
    assert [from_jsonl(line).event for line in lines] == found


async def test_an_event_of_another_system_that_no_log_holds_is_shortened(log: EventLog) -> None:
    deep = b'{"kind":"Odd","x":' + b"[" * 500 + b"]" * 500 + b"}"
    async with Recorder(log) as recorder:
        s = await recorder.session("s")
        for body in (deep, b"no JSON"):
            await s.agent.adds(Unknown("Odd", 1, body), durable=True)
    bodies = [msgspec.json.decode(r.body or b"") for r in await records(log) if r.kind == "Odd"]
    assert [body["kind"] for body in bodies] == ["Odd", "Odd"]
    assert bodies[0]["value"].startswith("[shortened by Duolog: nested deeper than 96 levels] {")
    assert bodies[1]["value"] == "[shortened by Duolog: no JSON] no JSON"


# --- what is refused at once -----------------------------------------------------------------------


async def test_what_is_wrong_is_said_at_once(log: EventLog) -> None:
    async with Recorder(log) as recorder:
        s = await recorder.session("s")
        with pytest.raises(InvalidInput, match="a message must be a text, not NoneType"):
            await s.human.says(None)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="a rating is 1 to 5, not 6"):
            await s.human.rates(6)
        with pytest.raises(InvalidInput, match="thumbs are 'up' or 'down', not 'sideways'"):
            await s.human.feedback(thumbs="sideways")  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="share of edits kept lies in"):
            await s.human.feedback(edits_kept=1.5)
        with pytest.raises(InvalidInput, match="a time must be a finite number"):
            await s.human.says("x", at=float("nan"))
        other = await recorder.session("other")
        action = await other.agent.acts("look")
        with pytest.raises(InvalidInput, match="got one of session 'other'"):
            await s.agent.resolves(action, durable=True)
        await s.human.says("all is well", at=12.5, durable=True)
    assert [event for _, event in await told(log)] == [MessageSent(text="all is well")]


async def test_a_call_that_is_wrong_leaves_the_others_alone(log: EventLog) -> None:
    async with Recorder(log) as recorder:
        s = await recorder.session("s")
        await s.human.says("one")
        await s.agent.says("two")
        wrong = await s.human.feedback(thumbs="down", of="m1")
        await s.human.says("three")
        with pytest.raises(InvalidInput, match="session 's' lacks an event with the id 'm1'"):
            await wrong.written()
        statistics = recorder.statistics()
        assert (statistics.written, statistics.refused) == (4, 1)
        assert "lacks an event with the id 'm1'" in statistics.error
        await finished(s)
    assert [event.text for _, event in await told(log) if isinstance(event, MessageSent)] == [
        "one",
        "two",
        "three",
    ]


@pytest.mark.parametrize("bad", ["hook", "handler"])
async def test_what_nobody_foresaw_in_one_call_leaves_the_others_alone(
    bad: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hook(draft: Draft) -> Draft:
        if isinstance(draft.event, MessageSent) and draft.event.text == "bad":
            raise KeyError("a bug")
        return draft

    def handler(command: Command, state: TraceState, sender: Sender) -> CommandResult:
        if isinstance(command.event, MessageSent) and command.event.text == "bad":
            raise KeyError("a bug")
        return handle(command, state, sender)

    if bad == "handler":
        monkeypatch.setattr("duolog.telemetry.committer.handle", handler)
    async with MemoryLog(redact=hook if bad == "hook" else None) as log, Recorder(log) as recorder:
        s = await recorder.session("s")
        receipts = [await s.human.says(text) for text in ("a", "bad", "b")]
        await s.flush()
        with pytest.raises(DuologError, match="a bug"):
            await receipts[1].written()
        assert recorder.statistics().failed == 1
        assert [receipt.version for receipt in receipts] == [2, None, 3]


async def test_a_repetition_that_is_wrong_records_nothing_twice(log: EventLog) -> None:
    async with Recorder(log) as recorder:
        s = await recorder.session("s")
        await s.human.says("hello", id="m1", durable=True)
        await s.human.says("in between")
        again = await s.agent.adds(
            ModelCalled(model="m", purpose="act", request="", latency=float("nan")), id="m1"
        )
        await s.human.says("after")
        await s.flush()
        with pytest.raises(DuologError):
            await again.written()
        await finished(s)
    assert [event.text for _, event in await told(log) if isinstance(event, MessageSent)] == [
        "hello",
        "in between",
        "after",
    ]


async def test_events_are_referred_to_by_the_callers_ids(log: EventLog) -> None:
    async with Recorder(log) as recorder:
        s = await recorder.session("s")
        await s.human.says("hello", id="m1")
        await s.agent.acts("search", {"q": 1}, id="a1")
        await s.agent.resolves("a1", [1])
        await s.agent.submits("draft", id="d1")
        await s.human.edits("edited", base="d1", id="d2")
        await s.agent.asks("sure?", id="q1")
        await s.human.approves("q1", id="q2")
        await s.human.rates(5, of="d1")
        await s.human.feedback(thumbs="up", of="d1")
        with pytest.raises(StaleBase):
            await s.agent.edits("late", base="d1")
        await s.close(durable=True)
    async with Recorder(log) as recorder:
        s = await recorder.session("s")
        await s.human.feedback(thumbs="down", of="d2", durable=True)
        with pytest.raises(
            InvalidInput, match="lacks an event with the id 'd3'; choose from a1, d1, d2"
        ):
            await s.human.feedback(thumbs="down", of="d3", durable=True)
    found = {record.version: record.event for record in await records(log)}
    assert [found[n] for n in (4, 6, 8, 9, 10)] == [
        ActionResolved(action=3, outcome="ok", observation=[1]),
        SnapshotTaken(content="edited", digest=digest("edited"), base=5),
        ApprovalGiven(asked=7, approved=True),
        ProgressRated(round=1, rating=5, until=5),
        FeedbackGiven(thumbs="up", of=5),
    ]
    assert found[14] == FeedbackGiven(thumbs="down", of=6)


@pytest.mark.parametrize(("since", "hint"), [(99, "did you mean 'plan-1'"), (100, "choose from")])
def test_a_misspelled_id_is_looked_for_among_the_latest(since: int, hint: str) -> None:
    """A search among all ids of a long session would take long."""
    state = TraceState("s")
    state.ids = {"plan-1": 1} | {str(n): n for n in range(2, 2 + since)}
    with pytest.raises(InvalidInput, match=hint):
        version_of("plan-l", state)


async def test_a_base_is_the_latest_by_its_id_too() -> None:
    """An edit of the latest snapshot is handed over without waiting for the log."""
    async with Gate(MemoryLog()) as gate, Recorder(gate.log) as recorder:
        s = await recorder.session("s")
        await s.flush()
        gate.shut()
        await s.agent.submits("draft", id="d1")
        edited = await s.human.edits("edited", base="d1")
        assert not edited.settled
        gate.open()
        assert (await edited.written()) is not None


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.human.feedback(thumbs="up", of=1.5),
        lambda s: s.human.feedback(thumbs="up", of=""),
        lambda s: s.agent.resolves(None),
        lambda s: s.agent.resolves(True),
        lambda s: s.human.approves({"id": 1}),
        lambda s: s.human.says("x", to=5),
        lambda s: s.human.says("x", to=[5]),
        lambda s: s.human.says("x", at="now"),
        lambda s: s.human.says("x", id=5),
        lambda s: s.agent.asks("x", action=5),
        lambda s: s.human.approves(1, approved="yes"),
        lambda s: s.agent.called_model("m", latency="long"),
        lambda s: s.agent.called_model("m", tokens=12),
        lambda s: s.agent.called_model("m", attempt="first"),
        lambda s: s.agent.adds("a message"),
        lambda s: s.human.rates(4, round="first"),
        lambda s: s.human.feedback(edits_kept="all"),
    ],
)
async def test_a_value_of_another_type_is_refused_at_the_call(
    call: Callable[[Recording[Awaited]], Awaited], log: EventLog
) -> None:
    async with Recorder(log) as recorder:
        s = await recorder.session("s")
        with pytest.raises(InvalidInput):
            await call(s)
        assert recorder.statistics().accepted == 1


async def test_one_name_is_one_receiver(log: EventLog) -> None:
    async with Recorder(log) as recorder:
        s = await recorder.session("s")
        await s.agent.says("psst", to="human")
        await finished(s)
    assert (await told(log))[0] == ("agent", MessageSent(text="psst", to=("human",)))


async def test_feedback_on_a_version_that_is_not_there_is_refused(log: EventLog) -> None:
    async with Recorder(log) as recorder:
        s = await recorder.session("s")
        with pytest.raises(
            InvalidInput, match="lacks an event with the trace version 7: it has 1 events"
        ):
            await s.human.feedback(thumbs="up", of=7, durable=True)


async def test_nothing_is_recorded_before_and_after(log: EventLog) -> None:
    recorder = Recorder(log)
    with pytest.raises(LogClosed, match="open the log with 'async with' before recording"):
        await recorder.session("s")
    async with recorder:
        s = await recorder.session("s")
    with pytest.raises(LogClosed, match="is closed"):
        await s.human.says("too late")
    assert await recorder.aclose() == ()


async def test_what_refers_to_nothing_recorded_is_not_recorded(log: EventLog) -> None:
    async with Recorder(log) as recorder:
        s = await recorder.session("s")
        await s.close()
        lost = await s.agent.acts("look", id="x")
        with pytest.raises(SessionClosedError):
            await lost.written()
        with pytest.raises(NotRecorded, match="the event that it refers to was not recorded"):
            await s.human.feedback(thumbs="up", of=lost, durable=True)
        assert lost.version is None
        assert "SessionClosedError" in repr(lost)


async def test_events_of_another_system_are_kept_as_they_are(log: EventLog) -> None:
    strange = Unknown("other.Thing", 3, b'{"kind":"other.Thing","n":1}')
    async with Recorder(log) as recorder:
        s = await recorder.session("s")
        for _ in range(2):
            await s.agent.adds(strange, id="x")
        await s.actor("environment", role="environment").adds(strange)
        await s.actor("system", role="environment").adds(MessageSent(text="Be brief."))
        other = await s.agent.adds(MessageSent(text="another"), id="x")
        with pytest.raises(DuplicateConflict):
            await other.written()
        await finished(s)
    found = await records(log)
    assert [(r.actor, r.role, r.kind) for r in found[1:4]] == [
        ("agent", "agent", "other.Thing"),
        ("environment", "environment", "other.Thing"),
        ("system", "environment", "MessageSent"),
    ]
    assert found[1].body == strange.body


async def test_no_voice_of_the_environment_takes_anothers_name(log: EventLog) -> None:
    async with Recorder(log) as recorder:
        s = await recorder.session("s")
        with pytest.raises(InvalidInput, match="agent in session 's', not environment"):
            s.actor("agent", role="environment")
        with pytest.raises(InvalidInput, match="the engine's own"):
            s.actor("engine", role="environment")
        with pytest.raises(InvalidInput, match="the engine's own"):
            s.actor("environment", role="human")


async def test_a_flush_waits_for_all_that_was_handed_over(log: EventLog) -> None:
    async with Recorder(log) as recorder:
        s = await recorder.session("s")
        for number in range(100):
            await s.human.says(f"{number}")
        await s.flush()
        assert len(await records(log)) == 101
        assert recorder.statistics().waiting == 0
        await s.close()
        await s.flush()
        assert len(await records(log)) == 102
    with pytest.raises(LogClosed):
        await s.flush()


async def test_the_way_of_a_session_is_found_from_any_thread_and_is_one(log: EventLog) -> None:
    async with Recorder(log) as recorder:
        with ThreadPoolExecutor(8) as threads:
            ways = [
                threads.submit(recorder.queue_nowait, f"s{number % 4}", {"task": "t"})
                for number in range(64)
            ]
        queues = {id(way.result()): way.result().session for way in ways}
        assert sorted(queues.values()) == ["s0", "s1", "s2", "s3"]
        assert [r async for r in log.read_all()] == []
        s = await recorder.session("s0")
        await finished(s)
        with pytest.raises(InvalidInput, match="id that is not empty"):
            recorder.queue_nowait("", {})
    opened = (await records(log, "s0"))[0].event
    assert isinstance(opened, SessionOpened)
    assert opened.task == "t"


async def test_an_event_says_what_its_sender_had_received() -> None:
    async with open_log("memory://") as log, Recorder(log) as recorder:
        s = await recorder.session("s")
        await s.human.says("hello")
        await s.agent.acts("look", result=1)
        await s.agent.says("done", durable=True)
        trace = [record async for record in log.read("s")]
    found = [(r.version, r.kind, r.seen) for r in trace]
    assert found == [
        (1, "SessionOpened", None),
        (2, "MessageSent", 1),
        (3, "ActionTaken", 2),
        (4, "ActionResolved", None),
        (5, "MessageSent", 3),
    ]
    assert trace[3].cause == "trace/3"


async def test_what_products_know_of_a_session_is_labels() -> None:
    async with MemoryLog() as log, Recorder(log) as recorder:
        s = await recorder.session(
            "s", user="u1", tags=["vip", "billing", "vip"], environment="production", release="1.2"
        )
        await s.flush()
        assert (await log.summary("s")).group == {
            "user": "u1",
            "tags": "billing, vip",
            "environment": "production",
            "release": "1.2",
        }
        with pytest.raises(InvalidInput, match="tags are a list of texts"):
            await recorder.session("t", tags="vip")
