"""The effort-utility controller: its rules, the quantities that it rests on, and streams of updates."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import ActionTaken
from duolog.engine.records import Record
from duolog.scoring.control import Controller, advise
from duolog.scoring.control_rules import Advice, ControlRules
from duolog.scoring.trajectory.fold import TrajectoryFold
from duolog.scoring.trajectory.options import Options
from duolog.scoring.trajectory.updates import Update
from duolog.testing.records import RecordWriter
from hypothesis import given
from hypothesis import strategies as st

CONCRETE = "Lunch on day 2 has to be vegetarian."
VAGUE = "I don't mind, up to you."


class Story:
    """A session told step by step to a controller, as an agent in it would follow it.

    ``h`` the human says something concrete, ``v`` something vague, ``a`` the agent speaks, ``s`` it
    searches, ``d`` it puts up another version of the output, ``w`` it has done what it can.
    """

    def __init__(self, rules: ControlRules | None = None, options: Options | None = None) -> None:
        self.script = RecordWriter()
        self.fold = TrajectoryFold("s", options or Options(judge="none", taus=()))
        self.controller = Controller("s", rules)
        self.told: list[Advice] = []
        self.take(self.script.opened())

    def take(self, record: Record) -> None:
        for update in self.fold.feed(record):
            advice = self.controller.feed(update)
            if advice is not None:
                self.told.append(advice)

    def play(self, steps: str) -> Advice:
        for step in steps:
            match step:
                case "h":
                    self.take(self.script.human(CONCRETE))
                case "v":
                    self.take(self.script.human(VAGUE))
                case "a":
                    self.take(self.script.agent("Here you are."))
                case "s":
                    self.take(self.script.agent(ActionTaken(name="search")))
                case "d":
                    self.take(self.script.output(f"draft {len(self.script.records)}"))
                    self.controller.submitted()
                case "w":
                    self.controller.work_done()
        return self.controller.advice


@pytest.mark.parametrize(
    ("steps", "move", "why"),
    [
        # without an output
        ("h", "ask", "there is no output yet"),
        ("ha h", "ask", "there is no output yet"),
        ("ha ha ha h", "act", "enough was asked"),
        ("ha v", "ask", "there is no output yet"),
        ("ha va v", "act", "the human waves questions away"),
        ("ha va h", "ask", "there is no output yet"),
        # the lead after the first output
        ("hsd", "yield", "there is a first output to look at"),
        ("hsda h", "yield", "there is a first output to look at"),
        ("hsda hd", "yield", "what the human said led to progress"),
        ("hsda hw", "ask", "what the human said changed nothing"),
        ("hsda ha h", "ask", "what the human said changed nothing"),
        ("hsda hwa h", "ask", "what the human said changed nothing"),
        ("hsda hwa hd", "ask", "the last answer led to progress"),
        ("hsda hwa hw", "yield", "the last answer changed nothing"),
        ("hsda ha ha h", "yield", "the last answer changed nothing"),
        ("hsda ha ha hd", "yield", "what the human said led to progress"),
        # the human would rather not
        ("hsda v", "ask", "the human would rather not lead"),
        ("hsda va v", "act", "the human waved the question away"),
        ("hsda va va h", "yield", "the human would rather not lead"),
        # no tolerance left
        ("hsda ha ha ha h", "hand over", "3 unproductive rounds in a row"),
        ("hsda ha ha ha hd", "hand over", "3 unproductive rounds in a row"),
        ("hsda ha ha ha hda h", "ask", "the last answer led to progress"),
    ],
)
def test_the_rules(steps: str, move: str, why: str) -> None:
    advice = Story().play(steps)
    assert (advice.move, advice.why[: len(why)]) == (move, why)


def test_what_an_advice_rests_on() -> None:
    story = Story()
    assert story.controller.advice == Advice(
        session="s",
        round=1,
        move="ask",
        why="there is no output yet, and an answer may shape it",
        slope=None,
        since_gain=0.0,
        left=3,
    )
    advice = story.play("hdahah")
    assert advice.round == 3
    assert advice.slope == pytest.approx(1 / 3)  # one update in three rounds that the human led
    assert advice.since_gain == 2
    assert advice.left == 2


def test_an_estimate_counts_where_nobody_measures_utility() -> None:
    rules = ControlRules(first="ask", enough=0.8)
    story = Story(rules)
    story.play("hd")
    assert story.controller.estimated(0.7) is None  # it changes nothing
    assert story.controller.advice.move == "ask"
    advice = story.controller.estimated(0.8)
    assert advice is not None
    assert (advice.move, advice.why) == ("yield", "the output is good enough, as far as is known")
    assert advice.slope == pytest.approx(0.8)


def test_a_reaction_counts_where_nobody_rates() -> None:
    story = Story()
    story.play("hdah")
    before = story.controller.advice.left
    story.controller.reacted(-1)
    assert (before, story.controller.advice.left) == (3, 2)
    story.play("ah")
    story.controller.reacted(1)
    assert story.controller.advice.left == 3


def test_what_the_human_says_again_unasked_costs_no_look_at_all_rounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story = Story()
    story.play("hd" * 50)
    story.controller.volunteered()
    looked: list[int] = []
    lead = Controller._lead

    def counted(self: Controller, index: int) -> None:
        looked.append(index)
        lead(self, index)

    monkeypatch.setattr(Controller, "_lead", counted)
    advice = story.controller.advice
    assert story.controller.volunteered() is None
    assert story.controller.advice == advice
    assert len(looked) == 1


def test_the_slope_is_taken_over_a_window() -> None:
    assert Story(ControlRules(window=2)).play("hdahah").slope == 0.0
    assert Story(ControlRules(window=2)).play("hdahdahd").slope == 1.0


@pytest.mark.parametrize(
    ("rules", "steps", "move"),
    [
        (ControlRules(questions=0), "h", "act"),
        (ControlRules(questions=1), "hah", "act"),
        (ControlRules(unanswered=1), "hav", "act"),
        (ControlRules(first="ask"), "hd", "ask"),
        (ControlRules(tolerance=1), "hdahah", "hand over"),
        (ControlRules(tolerance=9), "hdahahahah", "ask"),
        (ControlRules(budget=1.0), "hdahah", "hand over"),
        (ControlRules(persist=2), "hdahw", "yield"),
        (ControlRules(persist=2), "hdahwahw", "ask"),
        (ControlRules(insist=2), "hdahwav", "ask"),
        (ControlRules(insist=2), "hdahwavav", "act"),
        (ControlRules(keep=1), "hdav", "ask"),
        (ControlRules(keep=1), "hdavahw", "ask"),
        (ControlRules(keep=2), "hdavahw", "yield"),
        (ControlRules(first="ask", spent=3.0), "hdahdahd", "yield"),
        (ControlRules(first="ask", spent=4.0), "hdahdahd", "ask"),
        (ControlRules(first="ask", pace=0.9), "hdahdas", "ask"),
        (ControlRules(first="ask", pace=2.0), "hdahd", "yield"),
        (ControlRules(budget=3.0, measure="acts"), "hdahhh", "yield"),
        (ControlRules(budget=2.0, measure="acts"), "hdahhh", "hand over"),
    ],
)
def test_the_numbers_in_the_rules(rules: ControlRules, steps: str, move: str) -> None:
    assert Story(rules).play(steps).move == move


@pytest.mark.parametrize(
    "rules",
    [
        {"questions": -1},
        {"unanswered": 0},
        {"gain": -0.1},
        {"window": 0},
        {"tolerance": 0},
        {"measure": "sweat"},
    ],
)
def test_rules_that_make_no_sense(rules: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        ControlRules(**rules)  # type: ignore[arg-type]


# --- with scorers ----------------------------------------------------------------------------------


def scored(*values: float | None, rules: ControlRules | None = None) -> Advice:
    """A round per value: the human speaks, the agent submits, it is scored; then the human speaks."""
    story = Story(rules)
    for value in values:
        story.play("h")
        snapshot = story.script.output(f"draft {len(story.script.records)}")
        story.take(snapshot)
        story.take(story.script.scored(value, snapshot=snapshot))
        story.play("a")
    return story.play("h")


def test_measured_utility_counts_and_not_that_something_changed() -> None:
    better = scored(0.5, 0.75)
    assert better.slope == pytest.approx(0.75 / 3)
    assert (better.since_gain, better.left) == (1, 3)
    same = scored(0.5, 0.5)
    assert same.slope == pytest.approx(0.5 / 3)
    assert (same.since_gain, same.left) == (2, 2)
    worse = scored(0.5, 0.25, 0.25)
    assert worse.slope == pytest.approx(-0.25 / 3)
    assert worse.left == 1
    assert scored(0.5, 0.505).left == 2  # too little to count
    assert scored(0.5, 0.505, rules=ControlRules(gain=0.001)).left == 3


def test_a_score_that_comes_late_is_taken_into_account() -> None:
    story = Story()
    story.play("h")
    first = story.script.output("first")
    story.take(first)
    story.play("ah")
    second = story.script.output("second")
    story.take(second)
    story.play("ah")
    story.take(story.script.scored(0.5, snapshot=first))
    assert story.controller.advice.left == 2
    story.take(story.script.scored(0.9, snapshot=second))
    assert story.controller.advice.left == 3
    assert story.controller.advice.since_gain == 1


def test_ratings_decide_on_tolerance_where_there_are_any() -> None:
    story = Story(options=Options(judge="j", taus=()))
    story.play("hda")
    for number, rating in ((1, 2), (2, 1), (3, 2)):
        story.play("hd")
        story.take(story.script.rated(number, rating, judge="j@1"))
        story.play("a")
    assert (story.play("").left, story.play("").move) == (0, "hand over")
    story.take(story.script.rated(3, 4, judge="j@1"))  # corrected
    assert (story.play("").left, story.play("").move) == (3, "yield")


# --- streams -------------------------------------------------------------------------------------


def test_advice_is_told_when_it_changes() -> None:
    story = Story()
    story.play("h")
    assert story.told == []  # as it was from the beginning
    story.play("ssah")
    assert [(advice.round, advice.move) for advice in story.told] == [(2, "ask")]
    assert story.controller.submitted() is not None
    assert story.controller.submitted() is None


def test_updates_of_another_session_are_refused() -> None:
    story = Story()
    update = next(iter(TrajectoryFold("t").feed(RecordWriter("t").opened())))
    with pytest.raises(InvalidInput, match="session 't' was given to the controller of 's'"):
        story.controller.feed(update)


async def test_advice_for_all_sessions_of_a_stream() -> None:
    scripts = [RecordWriter(name) for name in ("a", "b")]
    folds = [TrajectoryFold(name) for name in ("a", "b")]

    async def updates() -> AsyncIterator[Update]:
        for script, fold in zip(scripts, folds, strict=True):
            for record in (
                script.opened(),
                script.human("Please write to Ann."),
                script.output("Dear Ann"),
                script.human("Thanks!"),
                script.closed(),
            ):
                for update in fold.feed(record):
                    yield update

    found = [(advice.session, advice.round, advice.move) async for advice in advise(updates())]
    assert found == [("a", 2, "yield"), ("b", 2, "yield")]


async def test_a_session_is_followed_from_its_beginning() -> None:
    script, fold = RecordWriter("a"), TrajectoryFold("a")
    fold.feed(script.opened())
    fold.feed(script.human("hello"))
    fold.feed(script.agent("hello"))

    async def updates() -> AsyncIterator[Update]:
        for record in (script.human("well?"), script.agent("well"), script.human("so?")):
            for update in fold.feed(record):
                yield update

    assert [advice.round async for advice in advise(updates())] == [2, 3]


@given(steps=st.text("hvasdw", max_size=40), rules=st.sampled_from([None, ControlRules(budget=2)]))
def test_whatever_happens_it_has_advice_that_explains_itself(
    steps: str, rules: ControlRules | None
) -> None:
    story = Story(rules)
    for step in steps:
        advice = story.play(step)
        assert advice.move in ("act", "ask", "yield", "hand over")
        assert advice.why
        assert 0 <= advice.left <= 3
        assert advice.since_gain >= 0
        assert advice.round == len(story.fold.trajectory().points or [1])
