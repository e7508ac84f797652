from __future__ import annotations

from contextlib import suppress

import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    ApprovalAsked,
    ModelCalled,
    ProgressRated,
    Tokens,
)
from duolog.engine.scorers.protocol import Measurement
from duolog.scoring.live import score_records
from duolog.scoring.scorers.progress import (
    NO_REPLY,
    AgentAction,
    Evidence,
    ProgressJudge,
    Verdict,
    rule_judge,
)
from duolog.testing.records import RecordWriter, run_scorer
from step_counter import count_lines


def ratings(measurements: list[Measurement]) -> list[tuple[int, int | None, int | None]]:
    events = [event for event, _ in measurements if isinstance(event, ProgressRated)]
    return [(event.round, event.rating, event.until) for event in events]


async def rated(script: RecordWriter) -> int | None:
    """How the offline judge rates the first round."""
    [first, *_] = ratings(await run_scorer(rule_judge(), script.records))
    return first[1]


# --- the rules -----------------------------------------------------------------------------------


async def after_an_update(reply: str) -> int | None:
    script = RecordWriter()
    script.opened()
    script.human("Please plan a trip to Rome in May for two people")
    script.output("Day 1: Rome")
    script.human(reply)
    return await rated(script)


@pytest.mark.parametrize(
    ("reply", "rating"),
    [
        ("Great, thank you!", 5),
        ("And the second day?", 4),
        ("The hotel is too expensive.", 3),
        ("Nice, but the hotel is too expensive.", 4),
        ("That's wrong: plan a trip to Rome in May for two people, please", 2),
        ("Stop.", 3),
    ],
)
async def test_an_update_is_judged_by_how_it_is_taken(reply: str, rating: int) -> None:
    assert await after_an_update(reply) == rating


async def test_a_round_in_which_nothing_happened_is_no_progress() -> None:
    script = RecordWriter()
    script.opened()
    script.human("Please plan a trip to Rome")
    action = script.agent(ActionTaken(name="search"))
    failed = ActionResolved(action=action.version, outcome="failed", error="no such city")
    script.add(failed, "env", "environment")
    script.human("Are you there?")
    assert await rated(script) == 2


async def test_a_question_or_a_search_is_neither_good_nor_bad() -> None:
    script = RecordWriter()
    script.opened()
    script.human("Please plan a trip to Rome")
    script.agent(ApprovalAsked(question="May I search?"))
    script.human("In May, for two.")
    script.agent(ActionTaken(name="search"))
    script.add(ActionResolved(action=5, outcome="ok"), "env", "environment")
    script.human("By train if possible.")
    measurements = await run_scorer(rule_judge(), script.records)
    assert ratings(measurements) == [(1, 3, 3), (2, 3, 5)]


async def test_the_worst_is_one() -> None:
    script = RecordWriter()
    script.opened()
    script.human("Please plan a trip to Rome")
    script.agent(ActionTaken(name="search"))
    script.human("Stop. I already told you to plan a trip to Rome, please")
    assert await rated(script) == 1


# --- when a judge rates --------------------------------------------------------------------------


async def test_a_round_is_rated_at_the_next_message_and_the_last_is_missing() -> None:
    script = RecordWriter()
    script.opened(config={"judge": "rule-judge"})
    script.human("go")
    script.output("a")
    script.human("great")
    script.output("b")
    script.closed()
    measurements = await run_scorer(rule_judge(), script.records)
    assert ratings(measurements) == [(1, 5, 3), (2, None, 5)]
    last = measurements[-1]
    assert isinstance(last.event, ProgressRated)
    assert (last.event.missing, last.of) == (NO_REPLY, "round/2")
    for event, _ in measurements:
        script.add(event, "rule-judge", "scorer", stream="rule-judge@1")
    points = score_records(script.records).points
    assert [(point.rating, point.pending) for point in points] == [(5, False), (None, False)]


async def test_the_evidence_is_what_was_said_done_and_replied() -> None:
    seen: list[Evidence] = []

    async def rate(evidence: Evidence) -> Verdict:
        seen.append(evidence)
        return Verdict(rating=4, explanation="fine")

    script = RecordWriter()
    script.opened(request="plan a trip")
    script.agent("where to?")
    script.human("Rome")
    script.agent(ActionTaken(name="search"))
    script.human(ActionTaken(name="look"))  # opens round 3 and says nothing
    draft = script.output("Day 1: Rome")
    script.add(ActionResolved(action=4, outcome="ok"), "env", "environment")
    script.human("good")
    judge = ProgressJudge("j", "1", rate)
    assert ratings(await run_scorer(judge, script.records)) == [(1, 4, 2), (2, 4, 4), (3, 4, 6)]
    first, second, third = seen
    assert (first.request, first.before, first.after) == ("plan a trip", "plan a trip", "Rome")
    assert (first.said, first.did, first.update) == (("where to?",), (), None)
    assert (second.before, second.after) == ("Rome", "good")
    assert second.did == (AgentAction("search", "ok"),)  # it ended after the round
    assert third.before == "Rome"
    assert third.update == draft.event
    assert third.round.updated


def test_rounds_that_wait_for_a_message_cost_nothing_at_each_outcome() -> None:
    """A human who only edits: no round is rated before the end."""

    def steps(rounds: int) -> float:
        script = RecordWriter()
        script.opened()
        for number in range(rounds):
            script.output(f"{number}", by="human")
            taken = script.agent(ActionTaken(name="search"))
            done = ActionResolved(action=taken.version, outcome="ok")
            script.add(done, "environment", "environment")
        session = rule_judge().begin(script.session)

        def judge() -> None:
            for record in script.records:
                with suppress(StopIteration):
                    session.observe(record).__await__().send(None)

        lines, _ = count_lines(judge)
        return lines / rounds

    assert steps(160) < 1.1 * steps(40)


async def test_a_model_judge_records_its_calls_before_its_rating() -> None:
    call = ModelCalled(model="m", purpose="judge", request="r", tokens=Tokens(completion=3))

    async def rate(evidence: Evidence) -> Verdict:
        return Verdict(missing="no number in the reply", calls=(call,))

    script = RecordWriter()
    script.opened()
    script.human("go")
    script.agent("a")
    script.human("b")
    measurements = await run_scorer(ProgressJudge("j", "1", rate), script.records)
    assert [(type(m.event), m.of) for m in measurements] == [
        (ModelCalled, "round/1/call/1"),
        (ProgressRated, "round/1"),
    ]


async def test_a_judge_counts_rounds_as_it_is_told() -> None:
    script = RecordWriter()
    script.opened()
    script.human("go")
    script.human("to Rome")
    script.agent("ok")
    script.closed()
    measurements = await run_scorer(rule_judge("human-turn"), script.records)
    assert ratings(measurements) == [(1, 2, 2), (2, None, 4)]
    assert rule_judge("human-turn").ref != rule_judge().ref


@pytest.mark.parametrize("fields", [{"rating": 0}, {"rating": 6}, {}, {"missing": " "}])
def test_a_verdict_is_a_rating_or_a_reason(fields: dict[str, int | str]) -> None:
    with pytest.raises(InvalidInput):
        Verdict(**fields)  # type: ignore[arg-type]
