"""Judges on a model: their prompts, their records, and replies that they do not guess from."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from duolog.engine.errors import InvalidInput, ModelRefused
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    ModelCalled,
    ProgressRated,
    UtilityScored,
)
from duolog.engine.models import ModelReply, ModelRequest, Models, ScriptedModel
from duolog.engine.models.prompting.conversation import ModelUse
from duolog.engine.records import Record
from duolog.engine.scorers.protocol import Measurement, Scorer, stream_of
from duolog.scoring.scorers.criterion import Criterion
from duolog.scoring.scorers.model_judge import JUDGE, model_judge
from duolog.scoring.scorers.rubric import conversation_rubric, rubric_utility
from duolog.testing.records import RecordWriter, run_scorer

USE = ModelUse(model="m")
CRITERIA = (
    Criterion(name="clear", description="Is it clear?", weight=3.0),
    Criterion(name="short", description="Is it short?"),
)


class Model:
    """Answers from a list, over and over its last; remembers the prompts."""

    def __init__(self, *answers: str | ModelRefused) -> None:
        self._answers = list(answers)
        self.prompts: list[str] = []

    def __call__(self, request: ModelRequest) -> ModelReply | str:
        self.prompts.append(request.messages[0].content)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, ModelRefused):
            raise answer
        return answer


def models(answer: Callable[[ModelRequest], ModelReply | str]) -> Models:
    return Models(ScriptedModel(answer))


def a_session() -> RecordWriter:
    """Two rounds with a reply after the first."""
    script = RecordWriter()
    script.opened()
    script.human("Please plan dinner.")
    search = script.agent(ActionTaken(name="taste", arguments={"dish": "soup"}))
    script.add(ActionResolved(action=search.version, outcome="ok"), "kitchen", "environment")
    script.output("Soup")
    script.agent("There is soup.")
    script.human("Not soup again!")
    script.output("Curry")
    script.closed()
    return script


def kinds(measured: list[Measurement]) -> list[str]:
    return [type(event).__name__ for event, _ in measured]


async def rated(model: Model, records: list[Record] | None = None) -> list[ProgressRated]:
    measured = await run_scorer(model_judge(models(model), USE), records or a_session().records)
    return [event for event, _ in measured if isinstance(event, ProgressRated)]


async def test_it_is_shown_the_round_and_what_was_said_before_and_after() -> None:
    model = Model("4\nIt listened.")
    first, last = await rated(model)
    assert (first.round, first.rating, first.explanation) == (1, 4, "It listened.")
    assert (last.round, last.rating) == (2, None)
    assert last.missing == "the human said nothing after the round"
    [prompt] = model.prompts
    order = ["Please plan dinner.", "There is soup.", "- taste: ok", "Soup", "Not soup again!"]
    places = [prompt.index(part) for part in order]
    assert places == sorted(places)


async def test_its_calls_are_recorded_before_the_rating() -> None:
    measured = await run_scorer(model_judge(models(Model("4")), USE), a_session().records)
    assert kinds(measured) == ["ModelCalled", "ProgressRated", "ProgressRated"]
    call, of = measured[0]
    assert isinstance(call, ModelCalled)
    assert (call.model, call.purpose, of) == ("m", "judge", "call/1")


async def test_what_it_cannot_read_it_asks_again_and_never_guesses() -> None:
    measured = await run_scorer(
        model_judge(models(Model("3 or 4", "good", "4.5")), USE), a_session().records
    )
    calls = [event.purpose for event, _ in measured if isinstance(event, ModelCalled)]
    assert calls == ["judge", "judge again", "judge again"]
    [rating] = [e for e, of in measured if isinstance(e, ProgressRated) and e.round == 1]
    assert rating.rating is None
    assert "lacks a single rating" in (rating.missing or "")


async def test_a_judge_that_is_refused_is_missing_and_goes_on() -> None:
    first, _ = await rated(Model(ModelRefused("against the rules")))
    assert (first.rating, first.missing) == (None, "against the rules")


async def test_what_is_much_too_long_is_cut() -> None:
    script = RecordWriter()
    script.opened()
    script.human("Dinner.")
    script.output("soup " * 100_000)
    script.agent("word " * 100_000)
    script.human("Well.")
    model = Model("3")
    await rated(model, script.records)
    assert len(model.prompts[0]) < 4 * 32_000
    assert model.prompts[0].count("characters are left out here") == 2


def test_two_models_are_two_judges() -> None:
    one = model_judge(models(Model("3")), USE)
    other = model_judge(models(Model("3")), ModelUse(model="m2"))
    again = model_judge(models(Model("3")), USE)
    assert one.ref.name == JUDGE
    assert one.ref == again.ref
    assert stream_of(one.ref) != stream_of(other.ref)


# --- rubrics -------------------------------------------------------------------------------------


def rubric(model: Model) -> Scorer:
    return rubric_utility(CRITERIA, models(model), USE)


async def scored(model: Model) -> list[UtilityScored]:
    measured = await run_scorer(rubric(model), a_session().records)
    return [event for event, _ in measured if isinstance(event, UtilityScored)]


async def test_a_rubric_is_the_weighted_mean_of_its_criteria() -> None:
    model = Model("clear: 5\nshort: 1", "**Clear**: 3/5\n- Short: 3")
    first, second = await scored(model)
    assert (first.value, first.parts) == (0.75, {"clear": 1.0, "short": 0.0})
    assert (second.value, second.parts) == (0.5, {"clear": 0.5, "short": 0.5})
    assert first.snapshot == 5
    for part in ("Please plan dinner.", "Soup", "- clear: Is it clear?", "short: <1 to 5>"):
        assert part in model.prompts[0]


async def test_a_missing_criterion_makes_the_utility_missing_and_keeps_the_others() -> None:
    first, _ = await scored(Model("clear: 5\nshort: maybe"))
    assert first.value is None
    assert first.parts == {"clear": 1.0, "short": None}
    assert "a rating from 1 to 5 is missing for short" in (first.missing or "")


async def test_a_missing_criterion_is_asked_for_again() -> None:
    model = Model("clear: 5", "clear: 5\nshort: 5")
    first, _ = await scored(model)
    assert first.value == 1.0
    assert len(model.prompts) == 3


async def test_a_refused_rubric_is_missing() -> None:
    first, _ = await scored(Model(ModelRefused("no")))
    assert (first.value, first.missing, first.parts) == (None, "no", {"clear": None, "short": None})


@pytest.mark.parametrize(
    "criteria", [(), (CRITERIA[0], Criterion(name="Clear", description="Again?"))]
)
def test_a_rubric_needs_criteria_with_names_of_their_own(criteria: tuple[Criterion, ...]) -> None:
    with pytest.raises(InvalidInput, match="at least one criterion"):
        rubric_utility(criteria, models(Model("3")), USE)


@pytest.mark.parametrize(
    ("name", "weight"), [("", 1.0), ("a: b", 1.0), ("a\nb", 1.0), ("a", 0.0), ("a", float("nan"))]
)
def test_a_criterion_that_makes_no_sense_is_refused(name: str, weight: float) -> None:
    with pytest.raises(InvalidInput):
        Criterion(name=name, description="?", weight=weight)


async def test_a_conversation_without_an_output_is_judged_round_by_round() -> None:
    script = RecordWriter()
    script.opened()
    script.agent("Hello, what can I do for you?")
    script.human("My parcel is late.")
    script.agent("It comes on Friday.")
    script.human("Good to know.")
    script.agent("Anything else?")
    script.human("No, thanks.")
    script.closed()
    model = Model("clear: 5\nshort: 1", "clear: 5\nshort: 5")
    measured = await run_scorer(conversation_rubric(CRITERIA, models(model), USE), script.records)
    events = [event for event, _ in measured if isinstance(event, UtilityScored)]
    assert [(e.round, e.until, e.value) for e in events] == [(1, 4, 0.75), (2, 6, 1.0)]
    first, second = model.prompts
    told = "Agent: Hello, what can I do for you?\nPerson: My parcel is late.\nAgent: It comes on Friday."
    assert told in first
    assert "Good to know" not in first
    assert "Person: Good to know.\nAgent: Anything else?" in second


async def test_of_a_long_conversation_the_end_is_judged() -> None:
    script = RecordWriter()
    script.opened()
    script.human("Tell me all.")
    script.agent("word " * 100_000 + "and that was all.")
    script.closed()
    model = Model("clear: 5\nshort: 1")
    await run_scorer(conversation_rubric(CRITERIA, models(model), USE), script.records)
    assert len(model.prompts[0]) < 4 * 33_000
    assert "(...)" in model.prompts[0]
    assert "and that was all." in model.prompts[0]
