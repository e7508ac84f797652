"""Sessions on models over HTTP: faults, costs, replays, resuming, interruptions, budgets."""

from __future__ import annotations

import logging
import os
import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec
import pytest
from duolog.engine.errors import (
    Divergence,
    ModelDenied,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    SessionInterrupted,
)
from duolog.engine.events import ActorFailed, ModelCalled, SessionClosed, Tokens
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.engine.models import (
    Breaker,
    Budget,
    LiteLLMModel,
    ModelReply,
    ModelRequest,
    Models,
    RecordedModel,
    ResponseCache,
    Retry,
    ScriptedModel,
    Terms,
    model_actor,
    request_digest,
    spending,
)
from duolog.engine.models.calls.call_records import recorded_failure, recorded_reply
from duolog.engine.records import TRACE, Record
from duolog.engine.session.decisions import Decision, Say
from duolog.engine.session.limits import Limits
from duolog.engine.session.runner import SessionResult, run_session
from duolog.engine.session.simulation import Outcome, SessionFailure, simulate
from duolog.engine.session.view import View
from duolog.testing import put_records, streams
from openai_server import FAULTS, Body, Fault, OpenAIServer, usage
from talkers import Talker, a_conversation, answer, answering

IDS = [f"s{number}" for number in range(8)]
# With a fault in every fourth call, six in a row come up once in a few runs; twenty never do.
QUICK = Terms(timeout=1.0, retry=Retry(attempts=20, first=0.001, longest=0.01))
AT_ONCE = Terms(retry=Retry(attempts=None, first=0.0))
FAILED_AS = {
    "429": "ModelRateLimited",
    "500": "ModelUnavailable",
    "timeout": "ModelTimeout",
    "truncated": "ModelBadReply",
    "malformed": "ModelBadReply",
}


async def run_all(log: EventLog, models: Models, ids: Sequence[str] = IDS) -> list[Outcome]:
    makers = [partial(a_conversation, models, id=id, seed=seed) for seed, id in enumerate(ids)]
    outcomes: list[Outcome] = []
    sessions = models.while_reachable(makers)
    await simulate(log, sessions, concurrency=6, on_outcome=outcomes.append)
    return outcomes


async def trace(log: EventLog, id: str) -> list[Record]:
    return (await streams(log, id))[TRACE]


def calls(records: Sequence[Record]) -> list[ModelCalled]:
    return [event for record in records if isinstance(event := record.event, ModelCalled)]


# --- faults, costs, replays ------------------------------------------------------------------------


def each_in_twenty(seed: int) -> Callable[[int, Body], Fault | None]:
    """Each fault in 5 % of the calls, by chance; timeouts in 2 %, since each takes seconds."""

    def fault(number: int, body: Body) -> Fault | None:
        chance = random.Random(f"{seed}/{number}")
        drawn = chance.randrange(20)
        if drawn >= len(FAULTS) or FAULTS[drawn] == "timeout" and chance.random() > 0.4:
            return None
        return FAULTS[drawn]

    return fault


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ids", "enough", "seeds", "least"),
    [
        (IDS[:3], 12, (692, 814), 2),
        pytest.param(IDS, 25, (4, 3), 10, marks=pytest.mark.soak),
    ],
    ids=["some", "all"],
)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_faults_lose_no_session_and_are_all_in_the_log(
    openai_server: OpenAIServer,
    stream: bool,
    ids: list[str],
    enough: int,
    seeds: tuple[int, int],
    least: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = openai_server
    server.answer = partial(answer, enough=enough)
    server.fault = each_in_twenty(seeds[stream])
    # Only what is never answered times out, however slow the machine.
    terms = msgspec.structs.replace(QUICK, timeout=10.0)
    models = Models(LiteLLMModel(api_base=server.url, stream=stream), terms=terms)
    async with open_log("memory://") as log, open_log("memory://") as again:
        caplog.set_level(logging.INFO, "duolog.models")
        outcomes = await run_all(log, models, ids)
        reasons = [o.reason for o in outcomes if isinstance(o, SessionResult)]
        assert reasons == ["finished"] * len(ids)

        recorded = [call for id in ids for call in calls(await trace(log, id))]
        assert len(recorded) == len(server.requests)
        failed = Counter((call.error or "").partition(":")[0] for call in recorded if call.error)
        assert failed == Counter(FAILED_AS[fault] for fault in server.faults if fault in FAILED_AS)
        assert set(server.faults) == set(FAULTS)
        assert min(Counter(server.faults).values()) > least
        follow_each_other(recorded)

        prices = {"prompt": 2.5e-06, "completion": 1e-05}
        for call in recorded:
            if call.error is None:
                cost = sum(getattr(call.tokens, name) * price for name, price in prices.items())
                assert call.cost == pytest.approx(cost)
            else:
                assert call.cost is None
        sent = [usage(body, server.answer(body)) for body in server.requests]
        spent = await spending(log)
        assert spent == models.statistics().spent
        assert spent.calls == len(recorded)
        assert spent.failures == failed.total()
        assert spent.tokens < sum(prompt + completion for prompt, completion in sent)

        at_server = len(server.requests)
        replayed = Models(RecordedModel(log), terms=AT_ONCE)
        await run_all(again, replayed, ids)
        for id in ids:
            assert await streams(again, id) == await streams(log, id)
        assert len(server.requests) == at_server
        assert (await spending(again)).cost == pytest.approx(spent.cost)
    assert os.environ["OPENAI_API_KEY"] not in caplog.text
    assert caplog.text.count("model_call_failed") == 2 * failed.total()


def follow_each_other(recorded: Sequence[ModelCalled]) -> None:
    """Each attempt but the first follows a failure of the same request."""
    before: ModelCalled | None = None
    for call in recorded:
        if before is not None and before.error is not None:
            assert (call.request, call.attempt) == (before.request, before.attempt + 1)
        else:
            assert call.attempt == 1
        before = call


@pytest.mark.slow
async def test_faults_change_nothing_but_the_attempts(openai_server: OpenAIServer) -> None:
    """Without them the same is said and done at the same time."""
    server = openai_server
    server.answer = answer
    outcomes: list[list[tuple[object, ...]]] = []
    for fault in (each_in_twenty(1), lambda number, body: None):
        server.fault = fault
        models = Models(LiteLLMModel(api_base=server.url), terms=QUICK)
        async with open_log("memory://") as log:
            await run_session(log, a_conversation(models))
            done: list[tuple[object, ...]] = []
            for record in await trace(log, "session"):
                event = record.event
                if isinstance(event, ModelCalled):
                    if event.error is None:
                        done.append((record.time, record.actor, event.tokens, event.latency))
                elif record.kind in ("MessageSent", "ActionTaken", "SessionClosed"):
                    done.append((record.time, record.actor, record.body))
            outcomes.append(done)
    assert server.faults
    assert outcomes[0] == outcomes[1]


async def test_a_recording_of_something_else_is_told_apart() -> None:
    models = Models(ScriptedModel(answering))
    async with open_log("memory://") as log, open_log("memory://") as again:
        await run_all(log, models, ["s0"])
        replayed = Models(RecordedModel(log), terms=AT_ONCE)
        other = a_conversation(replayed, id="s0")
        other = msgspec.structs.replace(other, request="Another trip, please")
        with pytest.raises(Divergence, match=r"was answered to request \w+ then, and asks"):
            await run_session(again, other)
        with pytest.raises(Divergence, match="at version 1: it holds no further reply to"):
            await run_session(again, a_conversation(replayed, id="never recorded"))
        outcomes = await run_all(again, replayed, ["neither"])
        assert isinstance(outcomes[0], SessionFailure)


# --- resuming --------------------------------------------------------------------------------------


class Rest:
    """Answers what a recorded session was answered after some version, in order."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._calls = calls(records)
        self.asked = 0

    async def complete(self, request: ModelRequest) -> ModelReply:
        call = self._calls[self.asked]
        self.asked += 1
        assert call.request == request_digest(request)
        if call.error is not None:
            raise recorded_failure(call.error)
        return recorded_reply(call.reply, call.tokens, call.cost, call.latency)


async def test_resumed_after_any_record_it_ends_as_it_would_have() -> None:
    """Recorded replies are never asked for again, and recorded failures are followed up."""

    chance = random.Random(5)

    def faulty(request: ModelRequest) -> ModelReply:
        if chance.random() < 0.3:
            raise chance.choice([ModelTimeout("late"), ModelUnavailable("away")])
        if chance.random() < 0.1:
            raise ModelRefused("improper")
        return answering(request)

    models = Models(ScriptedModel(faulty), terms=QUICK)
    async with open_log("memory://") as log:
        await run_session(log, a_conversation(models))
        whole = await trace(log, "session")
    kinds = Counter((call.error or "").partition(":")[0] for call in calls(whole))
    assert min(kinds.values()) > 2
    assert len(kinds) == 4
    for cut in range(1, len(whole)):
        rest = Rest(whole[cut:])
        resumed = Models(rest, terms=AT_ONCE)
        async with open_log("memory://") as log:
            await put_records(log, whole[:cut])
            await run_session(log, a_conversation(resumed))
            assert await trace(log, "session") == whole
        assert rest.asked == len(calls(whole[cut:]))


# --- interruptions ---------------------------------------------------------------------------------


@pytest.mark.slow
async def test_an_outage_leaves_sessions_to_be_resumed(openai_server: OpenAIServer) -> None:
    server = openai_server
    server.answer = partial(answer, enough=12)
    server.fault = lambda number, body: "500" if number >= 50 else None
    terms = Terms(
        retry=Retry(attempts=3, first=0.001, longest=0.001),
        breaker=Breaker(failures=5, pause=0.001, longest=0.001, probes=3),
    )
    models = Models(LiteLLMModel(api_base=server.url), terms=terms)
    async with open_log("memory://") as log, open_log("memory://") as healthy:
        outcomes = await run_all(log, models)
        interrupted = [o for o in outcomes if isinstance(o, SessionFailure)]
        assert interrupted
        assert all(o.resumable and "gpt" in o.error for o in interrupted)
        assert models.stopped is not None
        assert "3 probes in a row have failed" in models.stopped
        assert len(outcomes) < len(IDS)  # no further ones were begun
        made = len(server.requests)
        assert made < 100  # and the model was left alone: there would be 200 in all
        for o in interrupted:
            assert (await log.summary(o.session)).state == "open"

        server.fault = lambda number, body: None
        models = Models(LiteLLMModel(api_base=server.url), terms=terms)
        outcomes = await run_all(log, models)
        assert not [o for o in outcomes if isinstance(o, SessionFailure)]
        recorded = [call for id in IDS for call in calls(await trace(log, id))]
        assert len(recorded) == len(server.requests)
        for id in IDS:
            follow_each_other(calls(await trace(log, id)))

        await run_all(healthy, Models(ScriptedModel(partial(answering, enough=12))))
        for id in IDS:
            ours, theirs = await trace(log, id), await trace(healthy, id)
            assert [r.time for r in ours if r.kind != "ModelCalled"] == [
                r.time for r in theirs if r.kind != "ModelCalled"
            ]


async def test_a_server_that_always_fails_is_given_up_and_the_reason_said(
    openai_server: OpenAIServer,
) -> None:
    openai_server.fault = lambda number, body: "500"
    retry = Retry(first=0.001, longest=0.001)
    models = Models(
        LiteLLMModel(api_base=openai_server.url),
        terms=Terms(retry=retry, breaker=Breaker(pause=0.001)),
    )
    async with open_log("memory://") as log:
        outcomes = await run_all(log, models)
    assert all(isinstance(outcome, SessionFailure) for outcome in outcomes)
    assert len(outcomes) < len(IDS)  # no further ones were begun
    assert len(openai_server.requests) <= 5 + 2 + 6  # some were under way when it opened
    assert models.stopped is not None
    assert "it has never answered; 5 calls and 2 probes in a row have failed" in models.stopped
    assert "The server had an error" in models.stopped


async def test_a_wrong_key_is_not_tried_again(openai_server: OpenAIServer) -> None:
    openai_server.fault = lambda number, body: "401"
    models = Models(LiteLLMModel(api_base=openai_server.url), terms=Terms(retry=QUICK.retry))
    async with open_log("memory://") as log:
        with pytest.raises(SessionInterrupted, match=r"Incorrect API key provided: \[removed\]"):
            await run_session(log, a_conversation(models))
        [call] = calls(await trace(log, "session"))
        assert call.error is not None
        assert call.error.startswith("ModelDenied: ")
        assert os.environ["OPENAI_API_KEY"] not in call.error
        outcomes = await run_all(log, models)
        assert len(openai_server.requests) <= 2 + 6  # those under way; then there are no more
        assert all(isinstance(outcome, SessionFailure) for outcome in outcomes)
        assert len(outcomes) < len(IDS)


async def test_a_mind_cannot_swallow_an_interruption() -> None:
    class Stubborn(Talker):
        async def ask(self, view: View, purpose: str, text: str) -> str:
            try:
                return await super().ask(view, purpose, text)
            except Exception:  # noqa: BLE001  (what must not help)
                return "say whatever"

    def deny(request: ModelRequest) -> str:
        raise ModelDenied("no such key")

    models = Models(ScriptedModel(deny))
    session = a_conversation(models)
    [user, agent] = session.players
    stubborn = msgspec.structs.replace(agent, actor=model_actor(models, Stubborn))
    async with open_log("memory://") as log:
        with pytest.raises(SessionInterrupted):
            await run_session(log, msgspec.structs.replace(session, players=(user, stubborn)))
        kinds = [record.kind for record in await trace(log, "session")]
        assert kinds == ["SessionOpened", "MessageSent", "ModelCalled"]


async def test_a_refusal_is_the_minds_to_deal_with() -> None:
    def refuse(request: ModelRequest) -> ModelReply:
        if "agent" in request.messages[0].content:
            raise ModelRefused("too long")
        return answering(request)

    async with open_log("memory://") as log:
        models = Models(ScriptedModel(refuse))
        result = await run_session(log, a_conversation(models, limits=Limits(actions=20)))
        assert result.reason in ("finished", "limit")
        said = [r.body for r in await trace(log, "session") if r.kind == "MessageSent"]
        assert sum(b"I am lost for words" in (body or b"") for body in said) > 1


async def test_a_refusal_that_nobody_deals_with_fails_the_session() -> None:
    class Careless(Talker):
        async def decide(self, view: View) -> Decision:
            return Decision((Say(await self.ask(view, "act", "")),))

    def refuse(request: ModelRequest) -> str:
        raise ModelRefused("improper")

    models = Models(ScriptedModel(refuse))
    session = a_conversation(models)
    careless = tuple(
        msgspec.structs.replace(player, actor=model_actor(models, Careless))
        for player in session.players
    )
    async with open_log("memory://") as log:
        result = await run_session(log, msgspec.structs.replace(session, players=careless))
        assert result.reason == "failed"
        events = [record.event for record in await trace(log, "session")]
        where = f"test_models_sessions.py, line {refuse.__code__.co_firstlineno + 1}, in refuse"
        assert ActorFailed(error=f"improper ({where})", type="ModelRefused") in events


# --- budgets ---------------------------------------------------------------------------------------


async def test_a_session_that_uses_up_its_tokens_closes_as_limited() -> None:
    def answer(request: ModelRequest) -> ModelReply:
        tokens = Tokens(prompt=90, completion=10)
        return msgspec.structs.replace(answering(request), tokens=tokens, cost=0.01)

    async with open_log("memory://") as log:
        models = Models(ScriptedModel(answer))
        for id, limits, detail in (
            ("a", Limits(tokens=1000), "tokens: 1000"),
            ("b", Limits(cost=0.095), "cost: 0.095"),
        ):
            result = await run_session(log, a_conversation(models, id=id, limits=limits))
            assert result.reason == "limit"
            records = await trace(log, id)
            assert len(calls(records)) == 10
            closed = records[-1].event
            assert isinstance(closed, SessionClosed)
            assert closed.detail == detail


async def test_a_budget_stops_an_experiment_which_goes_on_with_a_larger_one() -> None:
    def answer(request: ModelRequest) -> ModelReply:
        return msgspec.structs.replace(answering(request), cost=0.01)

    async with open_log("memory://") as log, open_log("memory://") as whole:
        runs = 0
        while True:
            runs += 1
            budget = Budget(cost=0.8 * runs, spent=await spending(log))
            models = Models(ScriptedModel(answer), budget=budget)
            outcomes = await run_all(log, models)
            spent = await spending(log)
            assert spent.cost < 0.8 * runs + 0.07  # those under way when it was reached
            if models.stopped is None:
                break
            assert "US dollars are spent" in models.stopped
            assert any(isinstance(outcome, SessionFailure) for outcome in outcomes)
        assert runs > 2
        await run_all(whole, Models(ScriptedModel(answer)))
        for id in IDS:
            assert await streams(log, id) == await streams(whole, id)
        assert spent.cost == pytest.approx((await spending(whole)).cost)


@pytest.mark.slow
async def test_the_cache_answers_an_experiment_that_is_run_anew(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.answer = answer
    client = LiteLLMModel(api_base=openai_server.url)
    async with open_log("memory://") as log, open_log("memory://") as again:
        models = Models(client, cache=ResponseCache(tmp_path))
        await run_all(log, models, IDS[:3])
        made = len(openai_server.requests)
        models = Models(client, cache=ResponseCache(tmp_path))
        await run_all(again, models, IDS[:3])
        assert len(openai_server.requests) == made
        statistics = models.statistics()
        assert statistics.misses == 0
        assert statistics.spent.cost == 0.0
        for id in IDS[:3]:
            ours, theirs = await trace(again, id), await trace(log, id)
            assert [(r.time, r.kind, r.actor) for r in ours] == [
                (r.time, r.kind, r.actor) for r in theirs
            ]
            for call, first in zip(calls(ours), calls(theirs), strict=True):
                assert isinstance(call.reply, dict)
                assert call.reply["from_cache"] is True
                assert (call.cost, call.tokens) == (0.0, first.tokens)
