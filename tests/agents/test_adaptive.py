"""The adaptive agent: it sees its view only, and lets the human's effort decide who leads."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest
from duolog.agents.adaptive import Adaptive, Estimate
from duolog.agents.mind import Intent
from duolog.engine.events import JSON
from duolog.engine.records import Record
from duolog.engine.session.decisions import NOTHING, Act, Decision, Note, Say
from duolog.engine.session.view import View, Visibility
from duolog.scoring.control_rules import Advice, ControlRules
from duolog.testing.records import RecordWriter

ASKED = Decision((Say("What is your budget?"),))
REPORTED = Decision((Say("Please have a look."),))
HANDED_OVER = Decision((Say("It is yours."),))
QUESTION = Decision((Say("Where to?"),))
WORK = Decision((Act("search"),))
WORDS = ("Two cities.", "No flights.", "Our dog comes along.", "We eat meat.")


class Mind:
    """Wants to message, unless it is told otherwise."""

    def __init__(self, intent: Intent = "message", question: Decision | None = None) -> None:
        self.intent = intent
        self.question = question
        self.questions: list[int] = []

    async def step(self, view: View, *, alone: bool) -> Decision:
        raise AssertionError("an adaptive agent works in two stages")

    async def plan(self, view: View) -> Intent:
        return self.intent

    async def message(self, view: View, *, questions: int = 1) -> Decision:
        self.questions.append(questions)
        return ASKED

    async def ask(self, view: View, *, questions: int = 1) -> Decision | None:
        self.questions.append(questions)
        return self.question

    async def report(self, view: View, *, final: bool) -> Decision:
        return HANDED_OVER if final else REPORTED

    async def act(self, view: View) -> Decision:
        return WORK

    def estimate(self, view: View) -> float | None:
        return None


def seen(records: Sequence[Record]) -> View:
    """The view of ``bot`` after these records."""
    view, visibility = View("bot", "agent"), Visibility("bot")
    for record in records:
        visible = visibility.see(record)
        if visible is not None:
            view.feed(visible)
    return view


def played(steps: str) -> View:
    """``h``: the human speaks, ``v``: vaguely, ``a``: the agent speaks, ``d``: it submits."""
    script = RecordWriter()
    script.opened(config={"judge": "human"})
    for step in steps:
        match step:
            case "h":
                script.human("Two cities, please.")
                script.rated(1, 1, judge=None)  # only the human can see it
            case "v":
                script.human("Whatever, you decide.")
            case "a":
                script.agent("Well.")
            case "q":
                script.agent("Where to?")
            case "d":
                script.output(f"draft {len(script.records)}")
    return seen(script.records)


async def decided(agent: Adaptive, view: View) -> tuple[str, Decision]:
    """The note on why, and the rest of a decision."""
    decision = await agent.decide(view)
    note, *verbs = decision.verbs
    assert isinstance(note, Note)
    return note.text, Decision(tuple(verbs))


@pytest.mark.parametrize(
    ("steps", "rules", "decision", "why"),
    [
        ("h", None, ASKED, "Ask: there is no output yet"),
        ("hah", ControlRules(questions=1), WORK, "Act: enough was asked"),
        ("havav", None, WORK, "Act: the human waves questions away"),
        ("hd", None, REPORTED, "Yield: there is a first output"),
        ("hdahd", None, REPORTED, "Yield: what the human said led to progress"),
        ("hdah", None, ASKED, "Ask: what the human said changed nothing"),
        (
            "hdahah",
            ControlRules(tolerance=1),
            HANDED_OVER,
            "Hand over: 1 unproductive round in a row",
        ),
    ],
)
async def test_where_it_would_message_the_advice_decides(
    steps: str, rules: ControlRules | None, decision: Decision, why: str
) -> None:
    note, rest = await decided(Adaptive(Mind(), rules), played(steps))
    assert rest == decision
    assert note.startswith(why)


async def test_work_comes_first_and_waiting_is_waiting() -> None:
    view = played("hd")
    assert await Adaptive(Mind("act")).decide(view) == WORK
    assert await Adaptive(Mind("wait")).decide(view) == NOTHING


async def test_it_looks_at_each_record_once_however_often_it_decides() -> None:
    agent, fresh = Adaptive(Mind()), Adaptive(Mind())
    script = RecordWriter()
    script.opened()
    for turn in range(6):
        script.human("More, please.")
        view = seen(script.records)
        assert await agent.decide(view) == await agent.decide(view)
        script.output(f"draft {turn}") if turn % 2 else script.agent("Well.")
        view = seen(script.records)
        once = await agent.decide(view)
    assert once == await fresh.decide(view)


@pytest.mark.parametrize("config", [{}, {"utility": "trips"}])
def test_each_update_of_the_output_is_a_gain_to_it_whoever_scores(config: dict[str, JSON]) -> None:
    """The agent does the same if a scorer is named, because it cannot see that scorer's scores."""
    script = RecordWriter()
    script.opened(config=config)
    expected = Estimate()
    for said in WORDS:
        script.human(said)
        script.output(f"draft for {said}")
        script.agent("Done.")
        advice = expected.look(seen(script.records), worked=True)
    assert advice is not None
    assert advice.move == "yield"
    assert advice.why == "what the human said led to progress"


def followed(*estimates: float, said: str = "") -> Advice:
    """The advice after drafts with these estimates of the agent; the human answers each draft."""
    script = RecordWriter()
    script.opened()
    expected = Estimate(ControlRules(gain=0.05))
    for turn, estimate in enumerate(estimates):
        script.human(f"{said} {WORDS[turn]}")
        script.output(f"draft {turn}")
        advice = expected.look(seen(script.records), estimate=estimate, worked=True)
        script.agent("Done.")
    assert advice is not None
    return advice


def test_what_it_estimates_decides_whether_an_update_was_a_gain() -> None:
    paid = followed(0.2, 0.4)
    assert (paid.move, paid.why) == ("yield", "what the human said led to progress")
    in_vain = followed(0.2, 0.21)
    assert (in_vain.move, in_vain.why) == ("ask", "what the human said changed nothing")
    assert paid.slope == pytest.approx(0.2)  # utility per round that the human led


def test_what_the_human_says_to_a_round_counts_towards_their_tolerance() -> None:
    assert followed(0.2, 0.3, 0.4, 0.5).left == 3
    assert followed(0.2, 0.3, 0.4, 0.5, said="That is still wrong.").left == 0
    assert followed(0.2, 0.2, 0.2, 0.2).left == 1
    assert followed(0.2, 0.2, 0.2, 0.2, said="Perfect!").left == 3


def test_it_asks_before_the_first_output_where_the_rules_say_so() -> None:
    """Though the mind would rather work, and not while a question waits."""

    async def moves(rules: ControlRules, steps: str) -> Decision:
        decision = await Adaptive(Mind("act"), rules).decide(played(steps))
        return Decision(tuple(v for v in decision.verbs if not isinstance(v, Note)))

    async def check() -> None:
        assert await moves(ControlRules(least=2), "h") == ASKED
        assert await moves(ControlRules(least=2), "hah") == ASKED
        assert await moves(ControlRules(least=2), "hahah") == WORK
        assert await moves(ControlRules(least=2), "hq") == NOTHING
        assert await moves(ControlRules(), "h") == WORK

    anyio.run(check)


@pytest.mark.parametrize(
    ("steps", "question", "does"),
    [
        ("h", QUESTION, ASKED),
        ("hqh", QUESTION, WORK),  # a draft, on one answer
        ("hqhd", QUESTION, QUESTION),  # and the next question with it, without a report
        ("hqhd", None, ASKED),  # nothing else matters so much: a report, and further questions
        ("hqhdqh", QUESTION, QUESTION),
        ("hqhdqhqh", QUESTION, REPORTED),  # three were asked
        ("hqvdqv", QUESTION, REPORTED),  # two were waved away
    ],
)
@pytest.mark.parametrize("intent", ["message", "act"])
async def test_it_asks_on_after_a_draft_that_it_shows_early(
    intent: Intent, steps: str, question: Decision | None, does: Decision
) -> None:
    if intent == "act":  # there is work to do on the last answer
        does = WORK if steps != "h" and (question is None or does == REPORTED) else does
    agent = Adaptive(
        Mind(intent, question), ControlRules(questions=3, show=1, least=1, tolerance=9)
    )
    decision = await agent.decide(played(steps))
    assert Decision(tuple(v for v in decision.verbs if not isinstance(v, Note))) == does


@pytest.mark.parametrize("steps", ["h", "hqhd"])
async def test_it_asks_as_many_questions_in_one_message_as_the_rules_say(steps: str) -> None:
    mind = Mind(question=QUESTION)
    await Adaptive(mind, ControlRules(show=1, at_once=3)).decide(played(steps))
    assert mind.questions == [3]


def test_whoever_answers_is_asked_so_much_and_whoever_would_rather_not_lead_is_asked_on() -> None:
    rules = ControlRules(first="ask", persist=9, insist=9, keep=1, asks=2, tolerance=9)

    def move(steps: str) -> str:
        advice = Estimate(rules).look(played(steps))
        assert advice is not None
        return advice.move

    assert [move(steps) for steps in ("hd", "hdqh", "hdqhqh")] == ["ask", "ask", "yield"]
    assert [move(steps) for steps in ("hdqv", "hdqvqh", "hdqvqhqh")] == ["ask", "ask", "ask"]


@pytest.mark.parametrize(("steps", "move"), [("hahd", "ask"), ("hhd", "yield"), ("hvd", "ask")])
def test_whoever_says_something_unasked_may_lead(steps: str, move: str) -> None:
    """``ha``: an answer to a question is none; nor is a vague word."""
    advice = Estimate(ControlRules(first="follow")).look(played(steps.replace("a", "q")))
    assert advice is not None
    assert advice.move == move


def test_it_knows_nothing_that_its_view_does_not_show() -> None:
    """Ratings and utility are in the log, but the agent does not use them."""
    script = RecordWriter()
    script.opened(config={"judge": "human"})
    script.human("hello")
    draft = script.output("draft")
    script.scored(0.1, snapshot=draft)
    script.rated(1, 1, judge=None)
    script.human("go on")
    with_scores = Estimate().look(seen(script.records))
    bare = [r for r in script.records if r.kind not in ("UtilityScored", "ProgressRated")]
    assert with_scores == Estimate().look(seen(bare))
    assert Estimate().look(View("bot", "agent")) is None
