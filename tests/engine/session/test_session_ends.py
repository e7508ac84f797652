"""How sessions end: finished, stalled, at a limit, by a failure, by an interruption."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import anyio
import msgspec
import pytest
from anyio.lowlevel import checkpoint
from duolog.engine.errors import (
    ContextError,
    InvalidInput,
    LogUnavailable,
    SessionClosedError,
    VersionConflict,
)
from duolog.engine.events import (
    ActionResolved,
    ActorFailed,
    CloseReason,
    MessageSent,
    SessionClosed,
    Tokens,
)
from duolog.engine.log.contract import Advance, EventLog
from duolog.engine.log.open import open_log
from duolog.engine.records import TRACE, Draft, Record
from duolog.engine.session.actors import playing
from duolog.engine.session.context import ActorContext, Reply
from duolog.engine.session.decisions import NOTHING, Decision, Note, Say, Verb, Wait
from duolog.engine.session.environment import Action, ActionSpec, Environment, Outcome
from duolog.engine.session.limits import Limits
from duolog.engine.session.runner import Session, SessionResult, run_session
from duolog.engine.session.time.clock import Clock, RealClock, VirtualClock
from duolog.engine.session.view import View
from duolog.testing import Script, Workshop, a_session, agent, human, put_records, streams
from virtual_loop import in_virtual_time


async def run(session: Session) -> tuple[SessionResult, list[Record]]:
    async with open_log("memory://") as log:
        result = await run_session(log, session)
        return result, (await streams(log, session.id))[TRACE]


def closing(trace: Sequence[Record]) -> tuple[CloseReason, str, str]:
    closed = trace[-1].event
    assert isinstance(closed, SessionClosed)
    return closed.reason, closed.by, closed.detail


@pytest.mark.parametrize("clock", [VirtualClock(), RealClock()])
async def test_an_actor_that_finishes_in_a_loop_ends_with_its_session(clock: Clock) -> None:
    async def insistent(context: ActorContext) -> None:
        while True:
            await context.finish()

    seed = 7 if isinstance(clock, VirtualClock) else None
    result, trace = await run(a_session(human(insistent), clock=clock, seed=seed))
    assert (result.reason, trace[-1].kind) == ("finished", "SessionClosed")


def raising(error: BaseException) -> Script:
    async def fail(context: ActorContext) -> None:
        raise error

    return Script(fail)


AT = f" (test_session_ends.py, line {raising.__code__.co_firstlineno + 2}, in fail)"
"""Where `raising` raises, as it is recorded."""


# --- stall -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nudges", [0, 1, 3])
async def test_when_all_wait_they_are_nudged_and_then_it_is_stalled(nudges: int) -> None:
    patient = Script().hear().times(9)
    result, trace = await run(a_session(human(patient), agent(patient), nudges=nudges))
    assert closing(trace) == ("stalled", "engine", f"everybody waited, after {nudges} nudges")
    assert [r.kind for r in trace] == ["SessionOpened", *["Nudged"] * 2 * nudges, "SessionClosed"]
    assert all(r.kind != "MessageSent" for r in trace), "a nudge is no chat message"
    assert (result.reason, result.seconds) == ("stalled", 0.0)


async def test_an_act_after_a_nudge_starts_the_count_anew() -> None:
    polite = Script().hear().say("Sorry, go on.").times(3)
    patient = Script().hear().times(30)
    _, trace = await run(a_session(human(polite), agent(patient), nudges=2))
    said = [r.version for r in trace if r.kind == "MessageSent"]
    nudged = [r.version for r in trace if r.kind == "Nudged" and r.version > said[-1]]
    assert len(said) == 3
    assert len(nudged) == 2, "the user has left, so only the agent is nudged"
    assert closing(trace)[0] == "stalled"


async def test_notes_and_waits_are_no_progress() -> None:
    class Brooding:
        async def decide(self, view: View) -> Decision:
            return Decision((Note("hm"), Wait()), seconds=1.0)

    brooding = playing(Brooding())
    _, trace = await run(a_session(human(brooding), agent(brooding), nudges=3))
    assert closing(trace)[0] == "stalled"
    assert len(trace) < 60


async def test_who_waits_for_a_time_does_not_stall() -> None:
    _, trace = await run(
        a_session(human(Script().hear(within=1e6).finish()), agent(Script().hear()), nudges=0)
    )
    assert closing(trace)[0] == "finished"
    assert trace[-1].time == 1e6


async def test_an_action_in_flight_is_no_stall() -> None:
    helper = Script().act("build").result().finish()
    _, trace = await run(a_session(agent(helper), environment=Workshop(), nudges=0))
    assert closing(trace)[0] == "finished"


async def test_when_everybody_has_left_it_is_over() -> None:
    result, trace = await run(a_session(human(Script().say("Bye.")), agent(Script())))
    assert closing(trace) == ("stalled", "engine", "everybody has left")
    assert [r.kind for r in trace] == ["SessionOpened", "MessageSent", "SessionClosed"]
    assert result.error is None


# --- finishing and limits ----------------------------------------------------------------------------


class CountingLog:
    """A log that remembers what was appended together."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self.appends: list[list[str]] = []

    async def append(
        self,
        session: str,
        drafts: Sequence[Draft],
        *,
        stream: str = TRACE,
        expected_version: int | None = None,
        checkpoint: Advance | None = None,
    ) -> list[Record]:
        self.appends.append([type(draft.event).__name__ for draft in drafts])
        return await self._log.append(
            session, drafts, stream=stream, expected_version=expected_version, checkpoint=checkpoint
        )

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)


def chatting(**fields: object) -> Session:
    """Two who chat with three actions in flight all the time."""
    talk = Script().act("search").act("look").say("word " * 5).pause(1).times(50)
    return msgspec.structs.replace(
        a_session(human(talk), agent(talk), environment=Workshop()), **fields
    )


async def spend(context: ActorContext) -> None:
    async def send() -> Reply:
        return Reply(reply="x", tokens=Tokens(prompt=70, completion=30), cost=0.25)

    await context.models.call(model="m", purpose="act", request=None, send=send)
    await context.pause(1)


@pytest.mark.parametrize(
    ("limits", "detail"),
    [
        (Limits(rounds=3), "rounds: 3"),
        (Limits(actions=10), "actions: 10"),
        (Limits(seconds=7.5), "seconds: 7.5"),
    ],
)
async def test_a_limit_closes_cleanly(limits: Limits, detail: str) -> None:
    async with open_log("memory://") as memory:
        log = CountingLog(memory)
        session = chatting(limits=limits)
        result = await run_session(log, session)  # type: ignore[arg-type]
        trace = (await streams(memory, session.id))[TRACE]
    assert closing(trace) == ("limit", "engine", detail)
    assert result.reason == "limit"
    taken = [r.version for r in trace if r.kind == "ActionTaken"]
    resolved = [r.event for r in trace if isinstance(r.event, ActionResolved)]
    assert sorted(event.action for event in resolved) == taken, "nothing is left in flight"
    last = log.appends[-1]
    assert last == [*["ActionResolved"] * (len(last) - 1), "SessionClosed"]
    assert len(last) > 1, "what was in flight is cancelled in the same append"
    assert {event.outcome for event in resolved[1 - len(last) :]} == {"cancelled"}
    if "actions" in detail:
        assert sum(r.kind in ("MessageSent", "ActionTaken") for r in trace) == 10
    elif "rounds" in detail:
        assert result.rounds == 3
    else:
        assert trace[-1].time == 7.5


@pytest.mark.parametrize(
    ("limits", "detail", "calls"),
    [(Limits(tokens=250), "tokens: 250", 3), (Limits(cost=0.5), "cost: 0.5", 2)],
)
async def test_what_models_use_is_limited(limits: Limits, detail: str, calls: int) -> None:
    helper = Script().then(spend).times(9)
    _, trace = await run(a_session(agent(helper), limits=limits))
    assert closing(trace) == ("limit", "engine", detail)
    assert sum(r.kind == "ModelCalled" for r in trace) == calls


async def test_a_limit_of_acts_holds_within_one_decision() -> None:
    async def much_at_once(context: ActorContext) -> None:
        said: list[Verb] = [Say(str(number)) for number in range(5)]
        await context.emit(Note("now"), *said, Note("never"))

    _, trace = await run(a_session(agent(Script().then(much_at_once)), limits=Limits(actions=3)))
    assert [r.kind for r in trace] == [
        "SessionOpened", "NoteTaken", *["MessageSent"] * 3, "SessionClosed"
    ]  # fmt: skip


async def test_a_session_without_any_acts_closes_at_once() -> None:
    _, trace = await run(a_session(agent(Script().say("a")), limits=Limits(actions=0)))
    assert [r.kind for r in trace] == ["SessionOpened", "SessionClosed"]
    assert closing(trace) == ("limit", "engine", "actions: 0")


async def test_the_round_that_would_be_one_too_many_is_not_begun() -> None:
    user = Script().say("more").hear().times(9)
    helper = Script().hear().say("here").times(9)
    result, trace = await run(a_session(human(user), agent(helper), limits=Limits(rounds=2)))
    assert closing(trace)[2] == "rounds: 2"
    assert [r.actor for r in trace if r.kind == "MessageSent"] == ["user", "agent"] * 2
    assert result.rounds == 2


async def test_what_is_said_before_the_round_that_is_too_many_still_counts() -> None:
    async def think_and_speak(context: ActorContext) -> None:
        await context.emit(Note("before"), Say("too many"))

    user = Script().say("one").hear().then(think_and_speak)
    _, trace = await run(
        a_session(human(user), agent(Script().hear().say("x").hear()), limits=Limits(rounds=1))
    )
    assert [r.kind for r in trace][-2:] == ["NoteTaken", "SessionClosed"]


async def test_finishing_cancels_what_is_in_flight_and_everybody_else() -> None:
    ends: list[str] = []

    async def wait_for_ever(context: ActorContext) -> None:
        try:
            await context.news()
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise

    helper = Script().then(wait_for_ever)
    result, trace = await run(
        a_session(
            human(Script().act("build").pause(1).finish("enough")),
            agent(helper),
            environment=Workshop(),
        )
    )
    assert closing(trace) == ("finished", "user", "enough")
    assert [r.kind for r in trace][-2:] == ["ActionResolved", "SessionClosed"]
    assert ends == ["cancelled"]
    assert result.seconds == 1.0


async def test_who_goes_on_after_the_end_is_told() -> None:
    """Even an actor that is shielded from cancellation cannot act any more, and blocks no other."""
    told: list[tuple[str, type[BaseException]]] = []

    async def stubborn(context: ActorContext) -> None:
        try:
            await context.pause(100)
        finally:
            with anyio.CancelScope(shield=True):
                try:
                    await context.note("one last thing")
                except (ContextError, asyncio.CancelledError) as error:
                    told.append((context.name, type(error)))

    async def last_word(context: ActorContext) -> None:
        await context.pause(1)
        await context.finish()
        with anyio.CancelScope(shield=True):
            try:
                await context.say("one last word")
            except SessionClosedError as error:
                told.append((context.name, type(error)))

    result, trace = await run(a_session(human(Script().then(last_word)), agent(stubborn)))
    assert result.reason == "finished"
    assert [r.kind for r in trace] == ["SessionOpened", "SessionClosed"]
    assert sorted(told) == [("agent", ContextError), ("user", SessionClosedError)]


# --- failures ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "type_", "text"),
    [
        (LookupError("no such thing"), "LookupError", f"no such thing{AT}"),
        (ExceptionGroup("several", [ValueError("the first")]), "ValueError", "the first"),
        (RuntimeError("half a pair: \udcff"), "RuntimeError", f"half a pair: \\udcff{AT}"),
        (asyncio.CancelledError("by a library"), "CancelledError", f"by a library{AT}"),
        (LogUnavailable("another log's"), "LogUnavailable", f"another log's{AT}"),
    ],
)
async def test_an_actor_that_raises_closes_the_session_as_failed(
    error: BaseException, type_: str, text: str
) -> None:
    helper = Script().act("search").pause(1).then(raising(error))
    result, trace = await run(
        a_session(human(Script().hear()), agent(helper), environment=Workshop())
    )
    assert [r.kind for r in trace][-3:] == ["ActorFailed", "ActionResolved", "SessionClosed"]
    assert trace[-3].event == ActorFailed(error=text, type=type_)
    assert closing(trace) == ("failed", "agent", f"{type_}: {text}")
    assert result.error == f"{type_}: {text}"


async def test_the_error_of_a_session_that_failed_before_is_known_afterwards() -> None:
    session = a_session(agent(raising(LookupError("lost"))))
    async with open_log("memory://") as log:
        first = await run_session(log, session)
        again = await run_session(log, session)
    assert first.error == again.error == f"LookupError: lost{AT}"


async def test_a_policy_that_raises_fails_its_session() -> None:
    class Broken:
        async def decide(self, view: View) -> Decision:
            raise TypeError("None is not a decision")

    result, _ = await run(a_session(agent(playing(Broken()))))
    line = Broken.decide.__code__.co_firstlineno + 1
    where = f"test_session_ends.py, line {line}, in decide"
    assert result.error == f"TypeError: None is not a decision ({where})"


async def test_what_cannot_be_written_fails_its_author() -> None:
    async def speak(context: ActorContext) -> None:
        await context.say("\ud800")

    result, trace = await run(a_session(human(Script().hear()), agent(speak)))
    assert result.reason == "failed"
    assert result.error is not None
    assert result.error.startswith("CodecError: cannot write MessageSent as JSON")
    assert [r.kind for r in trace] == ["SessionOpened", "ActorFailed", "SessionClosed"]


async def test_an_end_that_cannot_be_written_fails_its_author() -> None:
    async def end(context: ActorContext) -> None:
        await context.finish("\ud800")

    result, trace = await run(a_session(human(Script().hear()), agent(end)))
    assert result.reason == "failed"
    assert closing(trace)[1] == "agent"


class BrokenWorkshop:
    """An environment with a fault, or one that never answers."""

    def __init__(self, work: Callable[[], Awaitable[Outcome]]) -> None:
        self._work = work

    @property
    def actions(self) -> dict[str, ActionSpec]:
        return {"go": ActionSpec(name="go", description="goes")}

    async def perform(self, action: Action) -> Outcome:
        return await self._work()

    def recall(self, action: Action, resolved: ActionResolved) -> None:
        raise AssertionError("nothing is resumed here")


async def broken() -> Outcome:
    raise KeyError("a bug in the task")


async def never_ready() -> Outcome:
    return Outcome(seconds=float("inf"))


@pytest.mark.parametrize(
    ("work", "error"),
    [(broken, "KeyError: 'a bug in the task'"), (never_ready, "ValueError: cannot wait until inf")],
)
async def test_an_environment_that_fails_fails_the_session(
    work: Callable[[], Awaitable[Outcome]], error: str
) -> None:
    environment: Environment = BrokenWorkshop(work)
    helper = Script().act("go").result()
    result, trace = await run(a_session(agent(helper), environment=environment))
    assert closing(trace)[:2] == ("failed", "environment")
    assert (result.error or "").startswith(error)
    assert [r.event.outcome for r in trace if isinstance(r.event, ActionResolved)] == ["cancelled"]


async def test_a_wrong_action_is_an_outcome_and_no_failure() -> None:
    helper = Script().act("fumble").act("nonsense").result().finish()
    _, trace = await run(a_session(agent(helper), environment=Workshop()))
    errors = [r.event.error for r in trace if isinstance(r.event, ActionResolved)]
    assert sorted(map(str, errors)) == [
        "no participant can do this",
        "unknown action 'nonsense'; choose from build, fumble, look, search",
    ]
    assert closing(trace)[0] == "finished"


async def test_without_an_environment_there_are_no_actions() -> None:
    _, trace = await run(a_session(agent(Script().act("go").result().finish())))
    [resolved] = [r.event for r in trace if isinstance(r.event, ActionResolved)]
    assert resolved.outcome == "failed"
    assert "'go'" in (resolved.error or "")


async def test_when_the_log_fails_the_session_stands_where_it_was() -> None:
    class FullLog(CountingLog):
        async def append(self, *args: object, **options: object) -> list[Record]:
            if len(self.appends) == 4:
                raise LogUnavailable("the disk is full")
            return await super().append(*args, **options)  # type: ignore[arg-type]

    def session() -> Session:
        talk = Script().say("a").pause(1).times(9)
        return a_session(human(talk), agent(talk))

    _, expected = await run(session())
    async with open_log("memory://") as memory:
        with pytest.raises(LogUnavailable, match="the disk is full"):
            await run_session(FullLog(memory), session())  # type: ignore[arg-type]
        held = (await streams(memory, "session"))[TRACE]
        assert held == expected[: len(held)]
        await run_session(memory, session())
        assert (await streams(memory, "session"))[TRACE] == expected


async def test_two_processes_that_run_one_session_do_not_mix() -> None:
    async with open_log("memory://") as log, log.tap():  # a tap gets every record at once

        async def intrude(context: ActorContext) -> None:
            draft = Draft(MessageSent(text="from elsewhere"), "user", "human", 0.0)
            await log.append("session", [draft])

        talk = Script().say("a").then(intrude).pause(1).say("b")
        with pytest.raises(VersionConflict):
            await run_session(log, a_session(human(talk)))
        texts = [
            r.event.text async for r in log.read("session") if isinstance(r.event, MessageSent)
        ]
    assert texts == ["a", "from elsewhere"]


# --- who holds the turn too long -----------------------------------------------------------------------


async def hang() -> Outcome:
    await anyio.sleep_forever()
    raise AssertionError


async def hang_in_context(context: ActorContext) -> None:
    await anyio.sleep_forever()


@in_virtual_time
async def test_an_actor_that_hangs_fails_by_name() -> None:
    helper = Script().pause(1).then(hang_in_context)
    result, trace = await run(
        a_session(human(Script().hear()), agent(helper), clock=VirtualClock(hold=0.02))
    )
    assert closing(trace)[:2] == ("failed", "agent")
    assert result.error == "TimeoutError: 'agent' held the turn for more than 0.02 s of wall time"


@in_virtual_time
async def test_an_environment_that_hangs_fails_by_name() -> None:
    helper = Script().act("go").result()
    result, trace = await run(
        a_session(agent(helper), environment=BrokenWorkshop(hang), clock=VirtualClock(hold=0.02))
    )
    assert closing(trace)[:2] == ("failed", "environment")
    assert "'environment' held the turn" in (result.error or "")


@in_virtual_time
async def test_an_actor_that_hangs_on_and_is_cancelled_again_does_not_hang_the_session() -> None:
    async def stubborn(context: ActorContext) -> None:
        with suppress(asyncio.CancelledError):
            await anyio.sleep_forever()

    result, _ = await run(
        a_session(human(Script().hear()), agent(stubborn), clock=VirtualClock(hold=0.02))
    )
    assert "'agent' held the turn" in (result.error or "")


# --- loops in which no time passes -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "decision",
    [
        Decision((Wait(0.0),)),
        Decision((Note("again"),), seconds=0.0),
        Decision((), seconds=0.0),
        Decision((), seconds=-5.0),
        Decision((), seconds=1e-30),
        Decision((Note("again"), Wait(1e-30)), seconds=1.0),
    ],
    ids=str,
)
async def test_a_policy_that_lets_no_time_pass_is_caught(decision: Decision) -> None:
    class Restless:
        async def decide(self, view: View) -> Decision:
            return decision if view.now > 1e6 or decision.seconds != 1.0 else self.jump()

        def jump(self) -> Decision:
            return Decision((Wait(1e17),))

    result, trace = await run(a_session(agent(playing(Restless())), human(Script().pause(1e18))))
    assert result.reason == "failed"
    assert closing(trace)[1] == "agent"
    assert "without any time passing" in (result.error or "")


async def test_two_policies_that_wake_each_other_are_caught() -> None:
    class Echo:
        async def decide(self, view: View) -> Decision:
            return Decision((Say("!"),), seconds=0.0) if view.news else NOTHING

    echo = playing(Echo())
    limits = Limits(actions=None, rounds=None)
    result, _ = await run(a_session(human(echo), agent(echo), request="!", limits=limits))
    assert "without any time passing" in (result.error or "")


@pytest.mark.parametrize(
    "script",
    [Script().hear(within=0), Script().note("again"), Script().look(), Script().pause(-1)],
    ids=["news", "note", "look", "pause"],
)
async def test_a_script_that_lets_no_time_pass_is_caught(script: Script) -> None:
    async def forever(context: ActorContext) -> None:
        while True:
            await script(context)

    result, _ = await run(a_session(agent(forever)))
    assert "without any time passing" in (result.error or "")


# --- interruptions -----------------------------------------------------------------------------------


class Gate:
    """A log that stops in its n-th append, before or after it is written, until it is cancelled."""

    def __init__(self, log: EventLog, number: int, *, written: bool) -> None:
        self._log = log
        self._left = number
        self._written = written
        self.reached = anyio.Event()

    async def append(self, *args: object, **options: object) -> list[Record]:
        self._left -= 1
        if self._left == 0 and not self._written:
            self.reached.set()
            await anyio.sleep_forever()
        records = await self._log.append(*args, **options)  # type: ignore[arg-type]
        if self._left == 0:
            self.reached.set()
            await anyio.sleep_forever()
        return records

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)


@pytest.mark.parametrize("written", [False, True])
async def test_cancelled_from_outside_it_can_be_resumed(written: bool) -> None:
    """Cancelled while it appends, at each of its appends in turn: the log is consistent."""

    def session() -> Session:
        talk = Script().act("search").say("a").pause(1).times(3).finish()
        return a_session(human(talk), agent(talk), environment=Workshop())

    async with open_log("memory://") as memory:
        counting = CountingLog(memory)
        await run_session(counting, session())  # type: ignore[arg-type]
        expected = (await streams(memory, "session"))[TRACE]
    assert len(counting.appends) > 10
    for number in range(1, len(counting.appends) + 1):
        async with open_log("memory://") as memory:
            gate = Gate(memory, number, written=written)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run_session, gate, session())  # type: ignore[arg-type]
                await gate.reached.wait()
                tasks.cancel_scope.cancel()
            held = (await streams(memory, "session")).get(TRACE, [])
            assert held == expected[: len(held)]
            whole = counting.appends[: number if written else number - 1]
            assert sum(map(len, whole)) == len(held), "an append is whole, and the last"
            await run_session(memory, session())
            assert (await streams(memory, "session"))[TRACE] == expected


@pytest.mark.parametrize("written", [False, True])
async def test_an_actor_cancelled_while_it_appends_leaves_the_session_in_order(
    written: bool,
) -> None:
    """As if its own wall-clock time-out strikes in the middle of an append; the others continue."""
    said: list[bool] = []

    async def hasty(context: ActorContext) -> None:
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            await context.say("perhaps")
        said.append(scope.cancelled_caught)
        await context.say("for certain")

    async def cut() -> None:
        await gate.reached.wait()
        scopes[0].cancel()

    scopes: list[anyio.CancelScope] = []
    user = Script().pause(1).look().say("What was that?").finish()
    async with open_log("memory://") as memory, anyio.create_task_group() as tasks:
        gate = Gate(memory, 2, written=written)
        tasks.start_soon(cut)
        session = a_session(human(user), agent(hasty))
        await run_session(gate, session)  # type: ignore[arg-type]
        trace = (await streams(memory, "session"))[TRACE]
    texts = [r.event.text for r in trace if isinstance(r.event, MessageSent)]
    assert texts == [*(["perhaps"] if written else []), "for certain", "What was that?"]
    assert said == [True]
    assert closing(trace)[0] == "finished"


async def test_what_is_cancelled_from_outside_leaves_no_trace_of_that() -> None:
    """Neither the last words of its actors, shielded or not, nor what they raise on their way out."""
    working = anyio.Event()

    async def wordy(context: ActorContext) -> None:
        await context.say("a")
        try:
            working.set()
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await context.note("interrupted!")

    async def sulky(context: ActorContext) -> None:
        try:
            await context.news()
        except asyncio.CancelledError:
            raise LookupError("how dare you") from None

    for players in ((human(wordy), agent(sulky)), (agent(wordy), human(Script().hear()))):
        working = anyio.Event()
        async with open_log("memory://") as log, log.tap():  # a tap gets every record at once
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run_session, log, a_session(*players))
                await working.wait()
                tasks.cancel_scope.cancel()
            assert [r.kind async for r in log.read("session")] == ["SessionOpened", "MessageSent"]


async def test_cancelled_while_an_actor_works_it_can_be_resumed() -> None:
    working = anyio.Event()
    slow = True

    async def work(context: ActorContext) -> None:
        if slow:
            working.set()
            await anyio.sleep_forever()
        await checkpoint()

    def session() -> Session:
        return a_session(agent(Script().say("a").then(work).say("b").finish()))

    async with open_log("memory://") as log, log.tap():  # a tap gets every record at once
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_session, log, session())
            await working.wait()
            tasks.cancel_scope.cancel()
        held = [r.kind async for r in log.read("session")]
        assert held == ["SessionOpened", "MessageSent"]
        slow = False
        result = await run_session(log, session())
    assert (result.reason, result.resumed) == ("finished", 2)


async def test_a_run_that_is_cancelled_lets_nobody_act_in_the_place_of_its_environment() -> None:
    """The task of the run is the environment's, and the others are cancelled only after it has left."""
    performing = anyio.Event()
    user = Script().act("look").pause(2).finish()

    class Slow:
        actions = Workshop().actions

        async def perform(self, action: Action) -> Outcome:
            performing.set()
            await anyio.sleep_forever()
            raise AssertionError

        def recall(self, action: Action, resolved: ActionResolved) -> None: ...

    async with open_log("memory://") as log:
        session = a_session(human(user), agent(Script().hear()), environment=Slow())
        running = asyncio.create_task(run_session(log, session))
        await performing.wait()
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()
        assert "SessionClosed" not in [r.kind async for r in log.read("session")]


# --- sessions that contradict themselves -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("session", "message"),
    [
        (a_session(agent(Script()), agent(Script())), "unique names other than"),
        (a_session(agent(Script(), "engine")), "unique names other than"),
        (a_session(agent(Script(), "environment")), "unique names other than"),
        (a_session(agent(Script()), request="Please!"), "no human to make it"),
        (
            msgspec.structs.replace(a_session(agent(Script())), players=(human(Script()),)),
            "not in its opening",
        ),
        (
            msgspec.structs.replace(
                a_session(agent(Script())),
                opened=msgspec.structs.replace(a_session(agent(Script())).opened, clock="utc"),
            ),
            "opens with a utc clock",
        ),
    ],
)
async def test_a_session_that_contradicts_itself(session: Session, message: str) -> None:
    async with open_log("memory://") as log:
        with pytest.raises(InvalidInput, match=message):
            await run_session(log, session)
        assert [record async for record in log.read_all()] == []


async def test_a_trace_without_an_end_is_put_to_its_end() -> None:
    """A crash leaves an open session, which is listed as open, and then as finished."""

    def session() -> Session:
        return a_session(agent(Script().say("a").pause(1).say("b").finish()))

    _, whole = await run(session())
    async with open_log("memory://") as log:
        await put_records(log, whole[:-1])
        assert (await log.summary("session")).state == "open"
        await run_session(log, session())
        assert (await log.summary("session")).state == "finished"
