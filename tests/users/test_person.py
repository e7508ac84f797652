"""A person in the human's seat: the session does what they type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import msgspec
import pytest
from duolog.engine.errors import (
    ModelDenied,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    SessionInterrupted,
)
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    ApprovalGiven,
    CloseReason,
    MessageSent,
    ProgressRated,
    SessionClosed,
    SnapshotTaken,
)
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.engine.models import (
    Caller,
    Message,
    ModelRequest,
    Models,
    Retry,
    ScriptedModel,
    Terms,
    model_actor,
)
from duolog.engine.records import Record
from duolog.engine.session.actors import playing
from duolog.engine.session.decisions import NOTHING, Ask, Decision, Say, Submit
from duolog.engine.session.runner import Session, run_session
from duolog.engine.session.time.clock import RealClock
from duolog.engine.session.time.timing import Timing
from duolog.engine.session.view import View
from duolog.testing import Workshop, a_session, agent, human, streams
from duolog.users.person import Person
from duolog.users.person_commands import HELP

AT_ONCE = Timing(
    read_wpm=1e9, type_wpm=1e9, human_step=0.0, agent_step=0.0, agent_tps=1e9, action=0.0
)


class TestSeat:
    """Types its lines one after the other, and then nothing more."""

    __test__ = False

    def __init__(self, *lines: str | None, editor: Callable[[str], str] | None = None) -> None:
        self._lines = list(lines)
        self._editor = editor
        self.notified: list[str] = []
        self.shown: list[Record] = []

    async def read_line(self) -> str | None:
        if not self._lines:
            await anyio.sleep_forever()
        return self._lines.pop(0)

    def show(self, view: View, fresh: Sequence[Record]) -> None:
        self.shown += fresh

    def notify(self, text: str) -> None:
        self.notified.append(text)

    async def edit(self, text: str) -> str | None:
        await anyio.lowlevel.checkpoint()
        return None if self._editor is None else self._editor(text)


class Echo:
    """Repeats what it hears; asks for leave, or puts something up, if it is told to."""

    async def decide(self, view: View) -> Decision:
        last = view.messages[-1] if view.messages else None
        if (
            last is None
            or last.actor == view.me
            or not any(r.kind == "MessageSent" for r in view.news)
        ):
            return NOTHING
        if last.text == "draft":
            return Decision((Submit("the agent's", overwrite=True),))
        if last.text == "ask":
            return Decision((Ask("May I?"),))
        return Decision((Say(f"You said {last.text}."),))


def session(person: Person, id: str = "chat") -> Session:
    return a_session(
        human(person.live),
        agent(playing(Echo())),
        clock=RealClock(),
        seed=None,
        timing=AT_ONCE,
        environment=Workshop(),
        id=id,
    )


async def sit(
    *lines: str | None, editor: Callable[[str], str] | None = None
) -> tuple[TestSeat, list[Record]]:
    """The seat and the records after these lines."""
    seat = TestSeat(*lines, editor=editor)
    async with open_log("memory://") as log:
        with anyio.fail_after(120):
            await run_session(log, session(Person(seat)))
        return seat, (await streams(log, "chat"))["trace"]


def by_user(trace: list[Record]) -> list[object]:
    return [record.event for record in trace if record.actor == "user"]


@pytest.mark.parametrize(
    ("line", "reason"), [("  /finish too long ", "finished"), ("/give-up too long", "abandoned")]
)
async def test_a_line_is_a_message_and_a_command_ends_it(line: str, reason: CloseReason) -> None:
    seat, trace = await sit("Hello", "", line)
    assert by_user(trace) == [
        MessageSent(text="Hello"),
        SessionClosed(reason=reason, by="user", detail="too long"),
    ]
    assert seat.notified == []


async def test_news_are_shown_while_the_person_types_nothing() -> None:
    seat = TestSeat("Hello")
    heard = anyio.Event()

    class Listening:
        read_line, notify, edit = seat.read_line, seat.notify, seat.edit

        def show(self, view: View, fresh: Sequence[Record]) -> None:
            if any(m.text == "You said Hello." for m in view.messages):
                heard.set()

    async with open_log("memory://") as log, anyio.create_task_group() as tasks:
        tasks.start_soon(run_session, log, session(Person(Listening())))
        with anyio.fail_after(120):
            await heard.wait()
        tasks.cancel_scope.cancel()


async def test_commands_that_only_show_something() -> None:
    seat, trace = await sit("/help", "/actions", "/output", "/wishes", "/what", "/finish")
    assert seat.notified[0] == HELP
    assert "/do search" in seat.notified[1]
    assert seat.notified[2:4] == ["There is no output yet.", "Your part says nothing."]
    assert seat.notified[4] == "unknown command /what; /help lists them"
    assert len(by_user(trace)) == 1


async def test_actions_take_arguments() -> None:
    line = "/do search of='New York' day=3 exact=true when=2022-03-01"
    _, trace = await sit(line, "/finish")
    taken = by_user(trace)[0]
    assert isinstance(taken, ActionTaken)
    assert taken.arguments == {"of": "New York", "day": 3, "exact": True, "when": "2022-03-01"}
    assert any(isinstance(r.event, ActionResolved) for r in trace)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("/do", "name an action and its arguments"),
        ("/do 'search", "name an action and its arguments"),
        ("/do fly to=Rome", "unknown action 'fly'; choose from "),
        ("/do search Rome", "'Rome' is not an argument; write NAME=VALUE"),
        ("/rate 6", "a rating is a number from 1 to 5, not '6'"),
        ("/rate", "a rating is a number from 1 to 5, not ''"),
        ("/rate 2", "there is nothing to rate"),
        ("/yes", "no approval was requested"),
        ("/submit /nowhere/at/all", "cannot read '/nowhere/at/all'"),
        ("/edit", "no editor was found"),
    ],
)
async def test_a_slip_is_explained_and_records_nothing(line: str, complaint: str) -> None:
    seat, trace = await sit(line, "/finish")
    assert complaint in seat.notified[0]
    assert len(by_user(trace)) == 1


async def test_a_rating_is_recorded() -> None:
    async with open_log("memory://") as log:

        class Patient(TestSeat):
            async def read_line(self) -> str | None:
                line = await super().read_line()
                if line is not None and line.startswith("/rate"):
                    await appears(log, "SnapshotTaken")
                return line

        with anyio.fail_after(120):
            await run_session(log, session(Person(Patient("draft", "/rate 4 not bad", "/finish"))))
        trace = (await streams(log, "chat"))["trace"]
    rated = [event for event in by_user(trace) if isinstance(event, ProgressRated)]
    assert [(one.round, one.rating, one.explanation) for one in rated] == [(1, 4, "not bad")]


async def test_the_output_is_edited_in_an_editor_or_taken_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "plan.txt"
    path.write_text("Day 1: Rome\n", encoding="utf-8")
    seat, trace = await sit(
        f"/submit {path}",
        "/edit",
        "/edit",
        "/output",
        "/finish",
        editor=lambda text: text.replace("Rome", "Naples"),
    )
    contents = [e.content for e in by_user(trace) if isinstance(e, SnapshotTaken)]
    assert contents == ["Day 1: Rome", "Day 1: Naples"]
    assert seat.notified == ["Nothing is changed.", "Day 1: Naples"]


async def test_an_edit_that_the_agent_crossed_is_refused_and_kept() -> None:
    """The person edits what they saw; meanwhile the agent has put up something else."""
    async with open_log("memory://") as log:
        edited: list[str] = []

        class Slow(TestSeat):
            async def edit(self, text: str) -> str | None:
                edited.append(text)
                if len(edited) == 1:
                    await appears(log, "SnapshotTaken")
                return "mine"

        seat = Slow("draft", "/edit", "/edit", "/finish")
        with anyio.fail_after(120):
            await run_session(log, session(Person(seat)))
        trace = (await streams(log, "chat"))["trace"]
    assert edited == ["", "mine"]
    assert "the output has changed" in seat.notified[0]
    contents = [r.event.content for r in trace if isinstance(r.event, SnapshotTaken)]
    assert contents == ["the agent's", "mine"]


async def appears(log: EventLog, kind: str) -> None:
    async with log.subscribe() as records:
        async for record in records:
            if record.kind == kind:
                return


async def test_an_approval_is_given_when_it_was_asked_for() -> None:
    async with open_log("memory://") as log:

        class Asked(TestSeat):
            async def read_line(self) -> str | None:
                line = await super().read_line()
                if line is not None and line.startswith("/no"):
                    await appears(log, "ApprovalAsked")
                return line

        seat = Asked("ask", "/no not yet", "/finish")
        with anyio.fail_after(120):
            await run_session(log, session(Person(seat)))
        trace = (await streams(log, "chat"))["trace"]
    given = [r.event for r in trace if isinstance(r.event, ApprovalGiven)]
    assert [(one.approved, one.comment) for one in given] == [(False, "not yet")]


@pytest.mark.parametrize("leaving", ["/quit", None])
async def test_who_leaves_can_come_back(leaving: str | None) -> None:
    async with open_log("memory://") as log:
        person = Person(TestSeat("Hello", leaving))
        with anyio.fail_after(120), pytest.raises(SessionInterrupted, match="user has left it"):
            await run_session(log, session(person))
        assert person.left
        assert (await log.summary("chat")).state == "open"
        back = TestSeat("/finish")
        await run_session(log, session(Person(back)))
        trace = (await streams(log, "chat"))["trace"]
    assert trace[-1].kind == "SessionClosed"
    assert any(r.kind == "MessageSent" and r.actor == "user" for r in back.shown)


async def test_a_person_who_thinks_is_not_nudged() -> None:
    """However long the others wait."""
    thinking = anyio.Event()

    class Thinking(TestSeat):
        async def read_line(self) -> str | None:
            await thinking.wait()
            return await super().read_line()

    async with open_log("memory://") as log, anyio.create_task_group() as tasks:
        tasks.start_soon(run_session, log, session(Person(Thinking("/finish"))))
        await anyio.wait_all_tasks_blocked()
        thinking.set()
        with anyio.fail_after(120):
            await appears(log, "SessionClosed")
        kinds = [r.kind for r in (await streams(log, "chat"))["trace"]]
    assert "Nudged" not in kinds


# --- when the agent's model fails --------------------------------------------------------------------


class Repeater:
    """Asks its model about each message that it hears, and says the answer."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def decide(self, view: View) -> Decision:
        if not view.messages or view.messages[-1].actor == view.me:
            return NOTHING
        heard = Message(role="user", content=view.messages[-1].text)
        reply = await self._caller.ask(ModelRequest(model="m", messages=(heard,)), purpose="act")
        return Decision((Say(reply.text),))


class PatientSeat(TestSeat):
    """Types each further line once a model has failed, or the agent has spoken."""

    __test__ = False

    def __init__(self, *lines: str) -> None:
        super().__init__(*lines)
        self._happened = anyio.Event()
        self._happened.set()

    def notify(self, text: str) -> None:
        super().notify(text)
        if "cannot be asked" in text:
            self._happened.set()

    def show(self, view: View, fresh: Sequence[Record]) -> None:
        super().show(view, fresh)
        if any(r.role == "agent" and r.kind == "MessageSent" for r in fresh):
            self._happened.set()

    async def read_line(self) -> str | None:
        await self._happened.wait()
        self._happened = anyio.Event()
        return await super().read_line()


@pytest.mark.parametrize("kind", [ModelUnavailable, ModelDenied, ModelRefused])
async def test_a_model_that_fails_is_asked_again_when_the_person_says_so(
    kind: type[ModelError],
) -> None:
    seat = PatientSeat("hello", "/retry", "are you there?", "/finish")
    failures = [kind("no luck"), kind("no luck")]

    def answer(request: ModelRequest) -> str:
        if failures:
            raise failures.pop()
        return "hello to you"

    person = Person(seat)
    terms = Terms(retry=Retry(attempts=1))
    models = Models(ScriptedModel(answer), terms=terms, on_outage=person.outage)
    async with open_log("memory://") as log:
        chat = msgspec.structs.replace(
            session(person),
            players=(human(person.live), agent(model_actor(models, Repeater))),
        )
        with anyio.fail_after(120):
            result = await run_session(log, chat)
        trace = (await streams(log, "chat"))["trace"]
    assert result.reason == "finished"
    said = [r.event.text for r in trace if isinstance(r.event, MessageSent)]
    assert said == ["hello", "are you there?", "hello to you"]
    told = [text for text in seat.notified if "cannot be asked: no luck" in text]
    assert len(told) == 2
    assert all("/retry" in text for text in told)
