"""Scorers that ask models: their calls are measurements, taken from the log when it holds them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import anyio
import anyio.lowlevel
import pytest
from duolog.engine.errors import (
    Divergence,
    ModelDenied,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    SessionInterrupted,
)
from duolog.engine.events import ModelCalled, ProgressRated, ScorerFailed, ScorerRef, Tokens
from duolog.engine.log.open import open_log
from duolog.engine.models import (
    Asker,
    Message,
    ModelReply,
    ModelRequest,
    Models,
    RecordedModel,
    Retry,
    ScorerCaller,
    ScriptedModel,
    Terms,
    request_digest,
    spending,
)
from duolog.engine.records import Draft, Record
from duolog.engine.scorers.protocol import Measurement
from duolog.engine.session.runner import Session, run_session
from duolog.engine.session.time.clock import VirtualClock
from duolog.testing import Script, a_session, agent, human, put_records, streams
from virtual_loop import in_virtual_time

REF = ScorerRef(name="judge", version="2", config="c")
STREAM = "judge@2"
QUICK = Terms(retry=Retry(first=0.001, longest=0.01))


class Judge:
    """Rates each message of the human's by asking a model about it."""

    ref = REF

    def __init__(self, models: Models, question: str = "How good was that?") -> None:
        self._models = models
        self.question = question

    def begin(self, session: str) -> Judging:
        return Judging(ScorerCaller(self._models, session, REF), self.question)


class Judging:
    def __init__(self, caller: ScorerCaller, question: str) -> None:
        self._caller = caller
        self._question = question
        self._round = 0

    def attend(
        self, recorded: Sequence[Record], excused: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._caller.attend(recorded, excused)

    async def observe(self, record: Record) -> Sequence[Measurement]:
        if record.kind != "MessageSent" or record.role != "human":
            return []
        self._round += 1
        message = Message(role="user", content=f"{self._question} {self._round}")
        try:
            request = ModelRequest(model="m", messages=(message,))
            reply = await self._caller.ask(request, purpose="judge")
            rated = ProgressRated(scorer=REF, round=self._round, rating=int(reply.text))
        except ModelRefused as error:
            rated = ProgressRated(scorer=REF, round=self._round, missing=str(error))
        return [*self._caller.take(), Measurement(rated, f"round/{self._round}")]


def session(models: Models, clock: VirtualClock | None = None, question: str = "Well?") -> Session:
    user = Script().say("one").say("two").say("three").finish()
    return a_session(
        human(user),
        agent(Script().hear()),
        scorers=[Judge(models, question)],
        clock=clock,
    )


class Answers:
    """Answers or fails as a list says, and counts."""

    def __init__(self, *answers: str | ModelError) -> None:
        self._answers = list(answers)
        self.asked = 0

    def __call__(self, request: ModelRequest) -> ModelReply:
        answer = self._answers[self.asked]
        self.asked += 1
        if isinstance(answer, ModelError):
            raise answer
        return ModelReply(text=answer, tokens=Tokens(prompt=5, completion=1), cost=0.5, latency=9.0)


def models(*answers: str | ModelError) -> tuple[Models, Answers]:
    script = Answers(*answers)
    return Models(ScriptedModel(script), terms=QUICK), script


async def test_calls_are_recorded_before_what_follows_from_them() -> None:
    asked, _ = models("4", ModelUnavailable("away"), "2", ModelRefused("improper"))
    async with open_log("memory://") as log:
        result = await run_session(log, session(asked))
        measured = (await streams(log, "session"))[STREAM]
        spent = await spending(log)
    assert result.reason == "finished"
    assert [record.id for record in measured] == [
        f"{STREAM}/{of}"
        for of in ("call/1", "round/1", "call/2", "call/3", "round/2", "call/4", "round/3")
    ]
    calls = [record.event for record in measured if isinstance(record.event, ModelCalled)]
    assert [(c.attempt, c.error, c.latency, c.purpose) for c in calls] == [
        (1, None, 0.0, "judge"),
        (1, "ModelUnavailable: away", 0.0, "judge"),
        (2, None, 0.0, "judge"),
        (1, "ModelRefused: improper", 0.0, "judge"),
    ]
    ratings = [record.event for record in measured if isinstance(record.event, ProgressRated)]
    assert [(r.rating, r.missing) for r in ratings] == [(4, None), (2, None), (None, "improper")]
    assert (spent.calls, spent.failures, spent.cost) == (4, 2, 1.0)


async def test_what_was_asked_is_not_asked_again() -> None:
    """Resumed with any part of its measurements in the log, it asks for the others alone."""
    failures = (ModelUnavailable("away"), ModelUnavailable("away"))
    answers = ("4", *failures, "2", ModelRefused("improper"))
    asked, script = models(*answers)
    async with open_log("memory://") as log:
        await run_session(log, session(asked))
        whole = await streams(log, "session")
    assert script.asked == 5
    measured = whole[STREAM]
    appended = (0, 2, 6, 8)  # recorded at once: calls, and the resulting rating
    for kept in appended:
        known = sum(record.kind == "ModelCalled" for record in measured[:kept])
        for trace in (whole["trace"], whole["trace"][:-1], whole["trace"][:3]):
            rest, script = models(*answers[known:])
            async with open_log("memory://") as log:
                await put_records(log, [*trace, *measured[:kept]])
                await run_session(log, session(rest))
                assert await streams(log, "session") == whole
            assert script.asked == 5 - known


async def test_a_session_is_run_again_from_its_recording() -> None:
    asked, _ = models("4", ModelUnavailable("away"), "2", "5")
    async with open_log("memory://") as log, open_log("memory://") as again:
        await run_session(log, session(asked))
        replayed = Models(RecordedModel(log), terms=Terms(retry=Retry(attempts=None, first=0.0)))
        await run_session(again, session(replayed))
        assert await streams(again, "session") == await streams(log, "session")


async def test_an_outage_interrupts_the_session_and_no_rating_is_lost() -> None:
    down, _ = models("4", ModelDenied("no credit"))
    up, script = models("2", "5")
    async with open_log("memory://") as log:
        with pytest.raises(SessionInterrupted, match="no credit"):
            await run_session(log, session(down))
        result = await run_session(log, session(up))
        measured = (await streams(log, "session"))[STREAM]
    assert result.reason == "finished"
    assert script.asked == 2
    ratings = [record.event for record in measured if isinstance(record.event, ProgressRated)]
    assert [rating.rating for rating in ratings] == [4, 2, 5]
    assert not any(isinstance(record.event, ScorerFailed) for record in measured)


async def test_another_question_under_the_same_version_is_told_apart() -> None:
    first, _ = models("4", "2", "5")
    second, script = models("1", "1", "1")
    async with open_log("memory://") as log:
        await run_session(log, session(first))
        with pytest.raises(Divergence, match=r"'judge' asked a model \w+ then, and asks it"):
            await run_session(log, session(second, question="And now?"))
    assert script.asked == 0


@in_virtual_time
async def test_a_judge_that_waits_for_its_model_is_not_late() -> None:
    class Slow:
        async def complete(self, request: ModelRequest) -> ModelReply:
            await anyio.sleep(0.3)
            return ModelReply(text="3")

    async with open_log("memory://") as log:
        await run_session(log, session(Models(Slow()), clock=VirtualClock(hold=0.1)))
        measured = (await streams(log, "session"))[STREAM]
    assert [record.kind for record in measured] == ["ModelCalled", "ProgressRated"] * 3


async def test_a_recording_whose_reading_was_cancelled_is_read_again() -> None:
    request = ModelRequest(model="m", messages=(), asker=Asker("s", "bot"))
    called = ModelCalled(
        model="m", purpose="act", request=request_digest(request), reply={"text": "yes"}
    )
    async with open_log("memory://") as log:
        await log.append("s", [Draft(called, "bot", "agent", 0.0)])
        model = RecordedModel(log)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(model.complete, request)
            await anyio.lowlevel.checkpoint()  # it has begun to read
            tasks.cancel_scope.cancel()
        assert (await model.complete(request)).text == "yes"
