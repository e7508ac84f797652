"""Checks of a log against itself: nothing differs in a sound one, and what differs is named."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import anyio
import pytest
from duolog.engine.errors import SessionNotFound
from duolog.engine.events import (
    Event,
    MessageSent,
    ProgressRated,
    ScorerRef,
    SessionOpened,
    SnapshotTaken,
    StopAdvised,
    UtilityScored,
)
from duolog.engine.log.contract import Store
from duolog.engine.log.open import open_log
from duolog.engine.records import TRACE, Draft, Record
from duolog.engine.scorers.protocol import Measurement, Scorer, measurement_id, stream_of
from duolog.scoring.check import Check, _Checker, check_session
from duolog.scoring.scorers.progress import rule_judge
from duolog.scoring.scorers.utility import Score, SnapshotUtility
from duolog.testing.records import RecordWriter, run_scorer
from step_counter import count_lines


@pytest.fixture
async def log() -> AsyncIterator[Store]:
    async with open_log("memory://") as log:
        yield log


def lengths(config: str = "by characters") -> SnapshotUtility:
    """A utility that can be measured again: how long the output is, of ten characters."""
    return SnapshotUtility("length", "1", _length, config=config)


def _length(taken: SnapshotTaken, opened: SessionOpened) -> Score:
    return Score(len(str(taken.content)) / 10)


def trip() -> list[Record]:
    """The trace of a session of three rounds."""
    script = RecordWriter("s")
    script.opened()
    script.human("plan a trip")
    script.output("aaaa")
    script.human("longer, please")
    script.output("aaaaaaaa")
    script.human("no, shorter")
    script.agent("sorry")
    script.closed()
    return script.records


async def measure(log: Store, scorer: Scorer, measurements: Sequence[Measurement]) -> None:
    for event, of in measurements:
        ident = measurement_id(scorer.ref, of)
        draft = Draft(event, scorer.ref.name, "scorer", 0.0, ident)
        await log.append("s", [draft], stream=stream_of(scorer.ref))


def told(check: Check) -> list[str]:
    return [difference.what for difference in check.differences]


async def test_a_sound_log(log: Store) -> None:
    scorers: list[Scorer] = [lengths(), rule_judge()]
    await log.restore(trip())
    for scorer in scorers:
        await measure(log, scorer, await run_scorer(scorer, trip()))
    check = await check_session(log, "s", scorers)
    assert check.differences == ()
    assert check.records == 8 + check.measurements
    assert check.remeasured == check.measurements == 2 + 3
    assert check.skipped == ()
    assert not check.forgotten


async def test_a_stream_that_nobody_can_measure_again_is_skipped(log: Store) -> None:
    scorer = lengths()
    await log.restore(trip())
    await measure(log, scorer, await run_scorer(scorer, trip()))
    for scorers in ([], [lengths("by words")], [rule_judge()]):
        check = await check_session(log, "s", scorers)
        assert (check.skipped, check.remeasured, check.measurements) == (("length@1",), 0, 2)
        assert check.differences == ()


async def test_a_value_that_comes_out_otherwise(log: Store) -> None:
    scorer = lengths()
    await log.restore(trip())
    first, second = await run_scorer(scorer, trip())
    assert isinstance(second.event, UtilityScored)
    other = UtilityScored(scorer=scorer.ref, snapshot=second.event.snapshot, value=0.9)
    await measure(log, scorer, [first, Measurement(other, second.of)])
    [difference] = (await check_session(log, "s", [scorer])).differences
    assert difference.what == f"measurement {measurement_id(scorer.ref, second.of)}"
    assert '"value":0.9' in (difference.recorded or "")
    assert '"value":0.8' in (difference.fresh or "")


async def test_a_measurement_that_is_missing_and_one_too_many(log: Store) -> None:
    scorer = lengths()
    await log.restore(trip())
    first, second = await run_scorer(scorer, trip())
    await measure(log, scorer, [first, Measurement(second.event, "something else")])
    check = await check_session(log, "s", [scorer])
    assert [(d.recorded is None, d.fresh is None) for d in check.differences] == [
        (False, True),
        (True, False),
    ]


async def test_a_scorer_that_fails_now(log: Store) -> None:
    def fail(taken: SnapshotTaken, opened: SessionOpened) -> Score:
        raise ZeroDivisionError("no length")

    scorer, broken = lengths(), SnapshotUtility("length", "1", fail, config="by characters")
    await log.restore(trip())
    await measure(log, scorer, await run_scorer(scorer, trip()))
    check = await check_session(log, "s", [broken])
    assert any("no length" in (difference.fresh or "") for difference in check.differences)


REF = ScorerRef(name="x", version="1", config="")


@pytest.mark.parametrize(
    ("event", "difference"),
    [
        (UtilityScored(scorer=REF, snapshot=3, value=0.5), None),
        (UtilityScored(scorer=REF, snapshot=4, value=0.5), "what UtilityScored x@1/1 scores"),
        (UtilityScored(scorer=REF, snapshot=99, value=0.5), "what UtilityScored x@1/1 scores"),
        (ProgressRated(round=2, until=5, rating=3, scorer=REF), None),
        (
            ProgressRated(round=1, until=5, rating=3, scorer=REF),
            "the round that ProgressRated x@1/1 is about",
        ),
        (StopAdvised(round=2, tau=1, scorer=REF), "the round after which x@1 stops at τ = 1"),
    ],
)
async def test_what_a_measurement_is_about(
    event: Event, difference: str | None, log: Store
) -> None:
    await log.restore(trip())
    await log.append("s", [Draft(event, "x", "scorer", 0.0)], stream="x@1")
    assert told(await check_session(log, "s")) == ([difference] if difference else [])


async def test_a_stop_that_the_ratings_bear_out(log: Store) -> None:
    await log.restore(trip())
    for event in (
        ProgressRated(round=1, until=3, rating=1, scorer=REF),
        StopAdvised(round=1, tau=1, scorer=REF),
    ):
        await log.append("s", [Draft(event, "x", "scorer", 0.0)], stream="x@1")
    assert told(await check_session(log, "s")) == []


async def test_a_stop_whose_rating_was_replaced_before_it_was_recorded(log: Store) -> None:
    """A person rates round 1 with 2, then with 3, while the advice of the 2 is on its way."""
    script = RecordWriter("s")
    script.opened(config={"judge": "human"})
    script.human("plan a trip")
    script.output("aaaa")
    for rating in (2, 3):
        script.human(ProgressRated(round=1, rating=rating))
    script.human("longer, please")
    await log.restore(script.records)
    advised = StopAdvised(round=1, tau=1, rule="1 round in a row")
    await log.append("s", [Draft(advised, "tolerance", "scorer", 9.0)], stream="tolerance@1")
    assert told(await check_session(log, "s")) == []
    never = StopAdvised(round=1, tau=2, rule="2 rounds in a row")
    await log.append("s", [Draft(never, "tolerance", "scorer", 9.0)], stream="tolerance@1")
    assert told(await check_session(log, "s")) == [
        "the round after which tolerance@1 stops at τ = 2"
    ]


def test_checking_stops_costs_the_same_for_each_record() -> None:
    def steps(name: str, count: int) -> float:
        script = RecordWriter(name)
        script.opened()
        for number in range(1, count + 1):
            script.human("plan a trip")
            script.output(f"{number}")
            script.rated(number, 1)
        script.add(StopAdvised(round=1, tau=1, scorer=REF), "x", "scorer", stream="x@1")
        lines, _ = count_lines(_Checker(name).compare_stops, script.records)
        return lines / count

    assert steps("long", 160) < 1.1 * steps("short", 40)


async def test_the_line_in_the_session_list(log: Store) -> None:
    """A line that says something else than the records, as a faulty store would have it."""

    class Faulty:
        async def summary(self, session: str) -> object:
            import msgspec

            return msgspec.structs.replace(await log.summary(session), events=7, state="open")

        def read_all(self, *, session: str) -> AsyncIterator[Record]:
            return log.read_all(session=session)

    await log.restore(trip())
    check = await check_session(Faulty(), "s")  # type: ignore[arg-type]
    assert told(check) == ["number of records in the session list", "state in the session list"]
    assert [(d.recorded, d.fresh) for d in check.differences] == [("7", "8"), ("open", "finished")]


async def test_a_session_that_grows_all_the_time_is_checked_as_it_was(log: Store) -> None:
    class Growing:
        async def summary(self, session: str) -> object:
            return await log.summary(session)

        async def read_all(self, *, session: str) -> AsyncIterator[Record]:
            await log.append(session, [Draft(MessageSent(text="more"), "ann", "human", 9.0)])
            async for record in log.read_all(session=session):
                yield record

    await log.restore(trip()[:3])
    with anyio.fail_after(120):
        check = await check_session(Growing(), "s")  # type: ignore[arg-type]
    assert (check.records, check.differences) == (3, ())


async def test_a_session_that_is_not_there(log: Store) -> None:
    with pytest.raises(SessionNotFound):
        await check_session(log, "nowhere")


def test_streams_in_this_file_are_named_as_the_engine_names_them() -> None:
    assert stream_of(REF) == "x@1" != TRACE
